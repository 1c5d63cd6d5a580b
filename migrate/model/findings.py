"""Findings of checks: a code, an object, the evidence, the fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """B blocks, W warns, I informs; a blind spot is something that could not be checked, and never counts as a pass."""

    BLOCKER = "B"
    WARNING = "W"
    INFO = "I"
    BLIND_SPOT = "?"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.  `code` is severity-area-number (`B-ZKN-01`); `about` names znode, file, broker."""

    code: str
    severity: Severity
    about: str
    message: str
    evidence: str = ""
    fix: str = ""
    blocks_from: int = 0  # number of the first stage that this finding blocks (blockers and blind spots)


@dataclass(frozen=True, slots=True)
class CodeDoc:
    """What `explain CODE` and the generated page say of a code."""

    code: str
    title: str
    why: str
    cause: str
    fix: str
    source: str
