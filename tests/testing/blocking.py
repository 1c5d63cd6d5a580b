"""The findings that block a stage."""

from __future__ import annotations

from collections.abc import Iterable

from migrate.model.findings import Finding, blocks
from migrate.model.stage import Stage


def blocking(findings: Iterable[Finding], target: Stage) -> tuple[Finding, ...]:
    """Blockers of that stage, and blind spots that it cannot do without."""
    return tuple(entry for entry in findings if blocks(entry, target))
