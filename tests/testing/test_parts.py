"""What `python -m tests` runs: each test once, no part's failure is lost, and what is run again is said."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from _pytest.mark.expression import Expression

from tests import __main__ as program
from tests.conftest import REAL
from tests.testing.tiers import parts

MARKERS = (*REAL, "slow")
EVERY = {**program.PARTS, **program.NOT_OF_A_COMMIT}


def runs(marked: str, markers: tuple[str, ...]) -> bool:
    """Does pytest's `-m` of that value select a test with those markers?"""

    def has(name: str, /, **_: str | int | bool | None) -> bool:
        return name in markers

    return Expression.compile(marked).evaluate(has)


@pytest.mark.slow
def test_every_test_is_in_one_part() -> None:
    """Whatever markers it has, and in a file that its part collects; `fast` is of `unit`, without what is slow."""
    for number in range(len(MARKERS) + 1):
        for markers in itertools.combinations(MARKERS, number):
            found = [part for part in EVERY.values() if runs(part.marked, markers)]
            assert len(found) == 1, markers
            assert not found[0].files or set(found[0].files) & set(markers), markers
            assert runs(program.FAST, markers) == (found == [program.PARTS["unit"]] and "slow" not in markers), markers


@pytest.mark.slow
def test_a_part_collects_the_files_that_name_its_markers() -> None:
    """And nothing else: this file names all of them, but marks no test."""
    assert "tests/lab/test_demo.py" in program.naming(("kafka",))
    assert "tests/lab/test_demo.py" not in program.naming(("hosts", "explorer"))


def test_a_file_whose_long_parts_are_given_by_parts_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker is then in another file."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("from tests.testing.tiers import parts\n")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    assert program.naming(("long",)) == ["tests/test_a.py"]
    assert program.naming(("kafka",)) == []


@pytest.mark.slow
@pytest.mark.parametrize("codes", [(0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 5, 0), (0, 0, 0, 5), (-9, 0, 0, 0), (2, 1, 0, 0)])
def test_every_part_runs_and_the_first_failure_is_the_exit_code(
    codes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part without tests and one that was killed have failed; what the hosts' part printed is shown."""
    left = dict(zip((part.marked for part in program.PARTS.values()), codes, strict=True))

    def run(words: list[str], *, stdout: IO[bytes] | None = None, **_: object) -> SimpleNamespace:
        marked = next((word for word in words if word in left), "")
        if stdout:
            stdout.write(f"tests of {marked}".encode())
        return SimpleNamespace(returncode=left.pop(marked, 0))

    monkeypatch.setattr(subprocess, "run", run)
    assert program.main([]) == next((code for code in codes if code), 0)
    assert not left
    assert "tests of hosts" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "failed", "second", "code"),
    [
        ("clusters", ["tests/a.py::test_one"], 0, 0),
        ("clusters", ["tests/a.py::test_one"], 1, 1),
        ("hosts", ["tests/a.py::test_one", "tests/b.py::test_two"], 0, 0),
        ("clusters", ["tests/a.py::test_1", "tests/a.py::test_2", "tests/a.py::test_3"], 0, 1),
        ("unit", ["tests/a.py::test_one"], 0, 1),
    ],
)
def test_one_or_two_failures_of_real_processes_are_run_once_more_and_named(
    name: str,
    failed: list[str],
    second: int,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """More than two, and tests that start nothing, have failed at once; the second run decides otherwise."""
    alone: list[list[str]] = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        cache = [word.removeprefix("cache_dir=") for word in words if word.startswith("cache_dir=")]
        if not cache:
            alone.append(words[words.index("pytest") + 1 :])
            return SimpleNamespace(returncode=second)
        kept = Path(cache[0], "v", "cache", "lastfailed")
        kept.parent.mkdir(parents=True)
        kept.write_text(json.dumps(dict.fromkeys(failed, True)))
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(subprocess, "run", run)
    assert program.main([name]) == code
    again = name != "unit" and len(failed) <= program.AGAIN
    assert alone == ([failed] if again else [])
    verdict = "failed again" if second else "passed when it was run alone"
    assert all((f"{one} failed, and {verdict}" in capsys.readouterr().out) == again for one in failed[:1])


def test_parts_of_a_story_are_of_one_tier_each() -> None:
    """Each commit's have no marker, the others `long`; one that there is not is refused."""
    found = parts(["a", "b", "c"], each_commit=["a"])
    assert [(one.values[0], [mark.name for mark in one.marks]) for one in found] == [
        ("a", []),
        ("b", ["long"]),
        ("c", ["long"]),
    ]
    with pytest.raises(ValueError, match="no such part: d"):
        parts(["a", "b"], each_commit=["a", "d"])
