"""What several files of labs ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.commands import stopped


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; whatever lives in it at the end is stopped."""
    yield tmp_path / "lab"
    stopped(tmp_path / "lab")
