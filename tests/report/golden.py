"""Golden files of reports: what a person would rather read than code."""

from __future__ import annotations

from pathlib import Path

from tests.testing.golden import same_as_kept

FOLDER = Path(__file__).parent / "golden"


def same_as_golden(name: str, text: str) -> None:
    """Assert that the text is the golden file's."""
    same_as_kept(FOLDER / name, text.encode())
