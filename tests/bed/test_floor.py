"""What the floor of a run on hosts tells, and that its script can be read; by hand it runs (README.md)."""

from __future__ import annotations

import subprocess

from tests.bed.floor import SCRIPT, lines


def test_the_script_is_one_that_bash_can_read() -> None:
    """It is no test's to run: that takes a bed of its own."""
    assert subprocess.run(["bash", "-n", str(SCRIPT)], capture_output=True, check=True).stderr == b""


def test_a_stage_ends_where_the_next_begins_and_a_soak_is_told_apart() -> None:
    """A script has no soak, so a run is compared without it."""
    told = list(lines({"begin": 10.0, "controllers": 12.0, "soak": 15.5, "finalize": 16.0}, 12))
    assert told[:3] == ["controllers: 2.0 s", "soak: 3.5 s", "finalize: 0.5 s"]
    assert told[3].startswith("total: 6.0 s (2.5 s without the soak), 12 starts of units (load ")


def test_times_without_a_soak_have_one_total() -> None:
    """The script's."""
    assert list(lines({"begin": 1.0, "controllers": 3.0}, 3))[1].startswith("total: 2.0 s, 3 starts")
