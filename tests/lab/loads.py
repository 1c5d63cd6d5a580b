"""How far a load is."""

from __future__ import annotations

from pathlib import Path

from migrate.lab.load import ACKED, histories, printed


def acknowledged(lab_dir: Path) -> int:
    """How many records are acknowledged by now."""
    return sum(entry["name"] == ACKED for _, _, path in histories(lab_dir) for entry in printed(path))
