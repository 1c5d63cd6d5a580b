"""What `python -m tests` runs: each test once, and no part's failure is lost."""

from __future__ import annotations

import itertools
import subprocess
from types import SimpleNamespace
from typing import IO

import pytest
from _pytest.mark.expression import Expression

from tests import __main__ as program
from tests.conftest import REAL

TIERS = (*REAL, "slow")


def runs(marked: str, markers: tuple[str, ...]) -> bool:
    """Does pytest's `-m` of that value select a test with those markers?"""

    def has(name: str, /, **_: str | int | bool | None) -> bool:
        return name in markers

    return Expression.compile(marked).evaluate(has)


def test_every_test_but_long_ones_is_in_one_part() -> None:
    """Whatever markers it has; `fast` is of the first part, without what is slow."""
    for number in range(len(TIERS) + 1):
        for markers in itertools.combinations(TIERS, number):
            found = [runs(marked, markers) for marked, _ in program.PARTS]
            assert sum(found) == ("long" not in markers), markers
            assert runs(program.FAST, markers) == (found[1] and "slow" not in markers), markers


@pytest.mark.parametrize("codes", [(0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 5, 0), (0, 0, 0, 5), (-9, 0, 0, 0), (2, 1, 0, 0)])
def test_every_part_runs_and_the_first_failure_is_the_exit_code(
    codes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part without tests and one that was killed have failed; what the hosts' part printed is shown."""
    left = dict(zip((marked for marked, _ in program.PARTS), codes, strict=True))

    def run(words: list[str], *, stdout: IO[bytes] | None = None, **_: object) -> SimpleNamespace:
        marked = next((word for word in words if word in left), "")
        if stdout:
            stdout.write(f"tests of {marked}".encode())
        return SimpleNamespace(returncode=left.pop(marked, 0))

    monkeypatch.setattr(subprocess, "run", run)
    assert program.main([]) == next((code for code in codes if code), 0)
    assert not left
    assert "tests of hosts" in capsys.readouterr().out
