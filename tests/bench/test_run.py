"""The table of all benchmarks: made in pieces, honest about what was not measured, the same in the docs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import growing, listing, races, run
from tests.bench.growing import with_growth
from tests.bench.races import ROOT, Race, known, result
from tests.bench.races import Run as Ran
from tests.bench.run import Kept, Machine

NO_FIGURE = re.compile(r"\| (not measured yet|no benchmark yet|skipped: [^|]*|failed: [^|]*) \|")
HERE = Machine("a CPU", 2, 24, "3.11.7", "17.0.15", "3.9.2", (0.5, 0.4, 0.3))


@pytest.fixture
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not each side in one of its own, as `test_races` has it."""
    for module in (races, growing):
        monkeypatch.setattr(module, "in_its_own_process", races.here)


def a_race(**changes: object) -> Race:
    """A race of nothing."""
    return replace(listing.RACES[0], **{"seconds": 0.0, "growing": ("ours", "peer"), **changes})  # type: ignore[arg-type]


def an_outcome(entry: Race, rounds: int = 2) -> Kept:
    """Figures of it: ours twice as fast, with half of the memory."""
    runs = {"ours": [Ran(1.0, 2_000_000, "x")] * rounds, "peer": [Ran(2.0, 4_000_000, "x")] * rounds}
    grown = {"ours": Ran(5.0, 2_000_000, "x"), "peer": Ran(11.0, 4_000_000, "x")}
    return Kept(entry.name, "2026-01-01T00:00Z", HERE, result(entry, entry.size, runs, grown))


def test_the_docs_show_the_figures_that_are_kept() -> None:
    """Nobody writes one there by hand, and none is left out; a race that is new stands there from the next run on."""
    kept = run.as_markdown([one for one in run.collect(run.KEPT, known().values()) if one.result is not None])
    page = run.PAGE.read_text()
    assert figures(page[page.index(run.BEGIN) : page.index(run.END)]) == figures(kept), "tests/bench/run --collect"


def figures(table: str) -> set[str]:
    """Its lines that hold figures."""
    lines = table.splitlines()
    return {line for line in lines if line.startswith("| ") and "| 5N: time" not in line and not NO_FIGURE.search(line)}


def test_every_goal_stands_in_the_table() -> None:
    """Measured, not measured, or without a benchmark: none is passed over in silence."""
    table = run.as_markdown(run.collect(Path("/nowhere"), known().values()))
    for goal in run.GOALS:
        assert f"| {goal} |" in table
    assert "not measured yet" in table
    assert table.index("| P4 |") < table.index("| audit of a host |")


def test_what_is_kept_is_read_as_it_was(tmp_path: Path) -> None:
    """Figures, machine and load."""
    for found in (an_outcome(a_race()), Kept("x / y", "now", HERE, why="skipped: no javac", small=True)):
        run.write(tmp_path, found)
        assert run.read(run.file_of(tmp_path, found.name)) == found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit-of-a-host.json", "x-y.json"]


def test_a_race_that_is_kept_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless more rounds are asked for, or its size has changed since, or `--again` says so."""
    asked: list[tuple[str, int]] = []

    def ran(entry: Race, *, repeat: int, is_small: bool, grows: bool) -> Kept:
        assert grows
        asked.append((entry.name, repeat))
        return an_outcome(entry, repeat)

    monkeypatch.setattr(run, "run", ran)
    words = ["--only", "audit of a host", "--into", str(tmp_path)]
    assert run.main([*words, "--repeat", "2"]) == run.main([*words, "--repeat", "2"]) == 0
    assert asked == [("audit of a host", 2)]
    run.main([*words, "--repeat", "3"])
    run.main([*words, "--repeat", "2"])
    run.main([*words, "--repeat", "2", "--again"])
    run.main([*words, "--collect", "--again"])
    assert asked[1:] == [("audit of a host", 3), ("audit of a host", 2)]


@pytest.mark.usefixtures("_in_this_process")
def test_growth_is_not_tried_where_there_is_no_time_for_it(tmp_path: Path) -> None:
    """And the table says so."""
    words = ["--only", "audit of a host", "--small", "--no-growth", "--into", str(tmp_path)]
    assert run.main(words) == 0
    found = run.read(run.file_of(tmp_path, "audit of a host"))
    assert found.result is not None
    assert found.result.ours_growth == (0.0, 0.0)
    assert "| not tried |" in run.as_markdown([found])


@pytest.mark.usefixtures("_in_this_process")
def test_growth_is_tried_behind_the_rounds_that_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounds stay as they were; what was grown is not grown again, and what is not kept is not begun."""
    words = ["--only", "audit of a host", "--into", str(tmp_path)]
    assert run.main([*words, "--growth"]) == 0
    assert not list(tmp_path.iterdir())
    assert run.main([*words, "--small", "--no-growth"]) == 0
    path = run.file_of(tmp_path, "audit of a host")
    before = run.read(path).result
    assert run.main([*words, "--growth"]) == 0
    grown = run.read(path).result
    assert before is not None
    assert grown is not None
    assert grown.ours_growth[0] > 0  # of its memory nothing may be measured: so few files need none
    assert replace(grown, ours_growth=(0.0, 0.0), peer_growth=(0.0, 0.0)) == before

    def never(*_: object) -> None:
        raise AssertionError("again")

    monkeypatch.setattr(run, "behind", never)
    assert run.main([*words, "--growth"]) == 0


@pytest.mark.usefixtures("_in_this_process")
def test_growth_that_fails_leaves_the_rounds_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the exit code tells."""
    words = ["--only", "audit of a host", "--into", str(tmp_path)]
    assert run.main([*words, "--small", "--no-growth"]) == 0
    before = run.file_of(tmp_path, "audit of a host").read_text()

    def broken(*_: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(run, "behind", broken)
    assert run.main([*words, "--growth"]) == 1
    assert run.file_of(tmp_path, "audit of a host").read_text() == before


def test_promises_are_judged_again_with_what_has_grown() -> None:
    """Growth that was promised and is not there breaks the line; memory that was missed stays missed."""
    entry = a_race(at_most=False, promise=2.0, growth=4.0)
    found = an_outcome(replace(entry, growth=0.0)).result
    assert found is not None
    bare = replace(found, ours_growth=(0.0, 0.0), peer_growth=(0.0, 0.0))
    grown = with_growth(entry, bare, {"ours": Ran(5.0, 2_000_000, "x")})
    assert (grown.holds, grown.missed, grown.peer_growth) == (False, ("x5.0 for 5N, not 4",), (0.0, 0.0))
    assert with_growth(replace(entry, growth=5.0), bare, {"ours": Ran(5.0, 2_000_000, "x")}).holds


def test_a_race_that_has_no_larger_form_says_why() -> None:
    """In the table, where the figures would stand."""
    entry = known()["demo without load"]
    found = an_outcome(replace(entry, least=1))
    assert found.result is not None
    bare = replace(found, result=replace(found.result, ours_growth=(0.0, 0.0), peer_growth=(0.0, 0.0)))
    assert "| restarts are what it spends its time on, not partitions |" in run.as_markdown([bare])
    assert run.grow(bare, entry) is bare


def test_what_cannot_run_here_is_skipped_aloud(capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason, and it is no failure."""
    found = run.run(a_race(lacks=lambda: "there is no compiler"), repeat=1, is_small=True)
    assert (found.result, found.why, found.failed) == (None, "skipped: there is no compiler", False)
    assert "SKIPPED, there is no compiler" in capsys.readouterr().err
    assert "| skipped: there is no compiler |" in run.as_markdown([found])


def test_a_race_that_fails_stops_no_other_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code tells."""

    def broken(entry: Race, *_: object) -> None:
        raise RuntimeError(f"{entry.name}: the two did not find the same")

    monkeypatch.setattr(run, "race", broken)
    words = ["--only", "audit of a host", "--only", "comparison, warm", "--small", "--into", str(tmp_path)]
    assert run.main(words) == 1
    shown = capsys.readouterr().out
    assert shown.count("failed: ") == 2
    assert not list(tmp_path.iterdir())


def test_a_small_race_runs_from_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As a reader would type it; the project's own table is left alone."""
    before = run.PAGE.read_text()
    words = ["--only", "audit of a host", "--small", "--no-growth", "--json", str(tmp_path / "table.json")]
    assert run.main(words) == 0
    assert "| audit of a host | 100 |" in capsys.readouterr().out
    (row,) = json.loads((tmp_path / "table.json").read_text())
    assert row["result"]["size"] == 100
    assert row["machine"]["cores"] > 0
    assert len(row["machine"]["load"]) == 3
    assert run.PAGE.read_text() == before


def test_a_word_that_names_nothing_is_refused() -> None:
    """Not an empty table."""
    with pytest.raises(ValueError, match="no race and no goal 'P99'"):
        run.chosen(["P99"])
    assert {entry.goal for entry in run.chosen(["P4"])} == {"P4"}


def test_promises_about_memory_and_growth_are_told_with_the_ratio() -> None:
    """A race that keeps its ratio and breaks one of these is not met, and says which."""
    held = an_outcome(a_race(at_most=False, promise=2.0, memory=0.5, megabytes=2.0, growth=5.0))
    assert held.result is not None
    assert held.result.holds
    missed = an_outcome(a_race(at_most=False, promise=2.0, memory=0.4, megabytes=1.0, growth=4.9))
    assert missed.result is not None
    assert not missed.result.holds
    assert missed.result.missed == (
        "memory 0.50 of the peer's, not 0.4",
        "2 MB, not 1",
        "x5.0 for 5N, not 4.9",
    )
    assert "**no** (memory 0.50" in run.as_markdown([missed])


def test_the_clock_stands_beside_the_cpus_seconds() -> None:
    """And the other way round."""
    found = an_outcome(a_race())
    assert found.result is not None
    both = replace(found.result, by="CPU", ours_also=2.0, peer_also=6.0, ratio_also=3.0)
    shown = run.as_markdown([replace(found, result=both)])
    assert "(clock 3) |" in shown
    assert "CPU 1 : 2 (clock 2 : 6)" in shown
    assert "(CPU 3) |" in run.as_markdown([replace(found, result=replace(both, by="clock"))])
    assert "clock" not in run.as_markdown([found]).splitlines()[-1]


def test_the_command_stands_beside_its_module() -> None:
    """And can be started."""
    assert (ROOT / "tests/bench/run").stat().st_mode & 0o100
