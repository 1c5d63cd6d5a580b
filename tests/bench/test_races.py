"""Every race runs, and both of its sides find the same: a benchmark that nobody can run any more tells nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.diff.session import SparkHandle
from tests.bench import comparing, demonstrating, listing
from tests.bench.races import (
    Race,
    Result,
    Run,
    Work,
    as_markdown,
    here,
    in_its_own_process,
    known,
    measured,
    race,
    result,
)

NAMES = (
    "comparison, warm",
    "audit of a host",
    "twenty hosts over SSH",
    "twenty hosts over SSH, one machine",
    "demo without load",
    "live read, a thousand at once",
    "live read, Java, ten at once",
)


def a_race(**changes: object) -> Race:
    """A race of nothing."""
    values: dict[str, Any] = {"seconds": 0.0, "around": comparing.nothing, "growing": ("ours", "peer"), **changes}
    return replace(listing.RACES[0], **values)


def ran(seconds: float, answer: str = "same") -> Run:
    """A run."""
    return Run(seconds, 3_000_000, answer)


def test_every_race_has_a_promise_and_two_sides() -> None:
    """Each is tried below, or beside its module."""
    found = known()
    assert set(found) == set(NAMES)
    assert all(set(entry.sides) == {"ours", "peer"} and entry.promise + entry.seconds > 0 for entry in found.values())


def test_the_race_finds_the_same_on_both_sides() -> None:
    """Small, with its five times larger form; the whole line can be printed."""
    found = race(known()["audit of a host"], 2, 300, here)
    assert (found.rounds, found.size) == (2, 300)
    assert found.ratio > 0
    assert found.ours_growth[0] > 0
    assert found.peer_growth == (0.0, 0.0), "five times as much is not tried there"
    assert "| audit of a host | 300 | " in as_markdown([found])


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")
def test_the_race_of_hosts_finds_the_same_on_all() -> None:
    """Twenty real sessions at once, through the client that an operator has."""
    found = race(known()["twenty hosts over SSH"], 1, 10, here)
    assert found.ratio > 0


@pytest.mark.spark
def test_the_comparisons_race_finds_what_was_planted_on_both_sides(spark_handle: SparkHandle, tmp_path: Path) -> None:
    """Spark and pandas, on the session of these tests."""
    size = 5_100
    ours = measured(comparing.on_spark(spark_handle, size))
    with comparing.by_pandas(tmp_path, size) as work:
        assert measured(work).answer == ours.answer
        rows = work.timed()
    assert len(rows) == size // comparing.EVERY + size // comparing.ABSENT
    assert {field for _, field in rows} == {"", "isr", "leader_epoch"}


def test_the_demos_race_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching Kafka is no part of the figure."""
    monkeypatch.setattr(demonstrating, "cached_jars", lambda: None)
    assert "not in the cache" in demonstrating.RACES[0].lacks()


def test_a_side_runs_in_a_process_of_its_own_and_says_what_it_found(tmp_path: Path) -> None:
    """As the figures are made."""
    with listing.a_host(tmp_path, 100):
        far = in_its_own_process("audit of a host", "ours", tmp_path, 100)
        assert far.answer == here("audit of a host", "peer", tmp_path, 100).answer
        assert far.seconds > 0
        shutil.rmtree(tmp_path / "d0")
        with pytest.raises(RuntimeError, match="audit of a host, peer"):
            in_its_own_process("audit of a host", "peer", tmp_path, 100)


def test_sides_that_find_different_things_give_no_figure() -> None:
    """However fast they are."""

    def run(_name: str, side: str, _folder: Path, _size: int) -> Run:
        return ran(1.0, side)

    with pytest.raises(RuntimeError, match="did not find the same"):
        race(a_race(once="small"), 1, 100, run)


def test_sides_take_turns() -> None:
    """So that a busy minute hits both."""
    order: list[str] = []

    def run(_name: str, side: str, _folder: Path, _size: int) -> Run:
        order.append(side)
        return ran(1.0)

    race(a_race(once="small"), 3, 100, run)
    assert order == ["ours", "peer", "peer", "ours", "ours", "peer"]


@pytest.mark.parametrize(
    ("changes", "ratio", "promise", "holds"),
    [
        ({"at_most": True, "promise": 1.5}, 0.5, "ours / peer <= 1.5", True),
        ({"at_most": True, "promise": 0.4}, 0.5, "ours / peer <= 0.4", False),
        ({"at_most": False, "promise": 2.0}, 2.0, "peer / ours >= 2", True),
        ({"at_most": False, "promise": 20.0}, 2.0, "peer / ours >= 20", False),
        ({"at_most": True, "seconds": 1.0}, 0.5, "ours <= 1 s", True),
        ({"at_most": True, "seconds": 0.9}, 0.5, "ours <= 0.9 s", False),
    ],
)
def test_a_ratio_is_the_median_of_its_rounds(
    changes: dict[str, object], ratio: float, promise: str, holds: bool
) -> None:
    """One slow round on either side changes nothing."""
    runs = {"ours": [ran(1.0), ran(1.0), ran(9.0)], "peer": [ran(2.0), ran(2.0), ran(2.0)]}
    found: Result = result(a_race(**changes), 100, runs, {"ours": ran(5.0), "peer": ran(8.0)})
    assert (found.ratio, found.promise, found.holds) == (ratio, promise, holds)
    assert (found.ours_growth, found.peer_growth) == ((5.0, 1.0), (4.0, 1.0))


def test_a_race_by_the_cpu_tells_the_clock_too() -> None:
    """A reader who waits for an answer waits by the clock."""
    runs = {"ours": [Run(1.0, 3_000_000, "same", 4.0, "CPU")], "peer": [Run(3.0, 3_000_000, "same", 6.0, "CPU")]}
    found = result(a_race(at_most=False, promise=2.0, once="small"), 100, runs, {})
    assert (found.ratio, found.ratio_also, found.ours_also, found.peer_also) == (3.0, 1.5, 4.0, 6.0)
    its_own = result(a_race(once="small"), 100, {"ours": [ran(1.0)], "peer": [ran(2.0)]}, {})
    assert (its_own.by, its_own.ratio_also) == ("", 0.0), "a figure that the peer tells of itself has no other"


def test_a_side_too_large_for_five_times_as_much_is_not_tried_with_it() -> None:
    """The other one grows alone."""
    asked: list[tuple[str, int]] = []

    def run(_name: str, side: str, _folder: Path, size: int) -> Run:
        asked.append((side, size))
        return ran(1.0)

    found = race(a_race(growing=("ours",)), 1, 100, run)
    assert asked == [("ours", 100), ("peer", 100), ("ours", 500)]
    assert (found.ours_growth[0], found.peer_growth) == (1.0, (0.0, 0.0))


def test_a_works_own_memory_is_measured() -> None:
    """What was there before does not count, what is given back does."""
    kept = bytearray(30_000_000)

    @contextmanager
    def working() -> Iterator[Work]:
        yield Work(lambda: len(bytearray(b"x") * 60_000_000), str)

    with working() as work:
        found = measured(work)
    assert found.answer == "60000000"
    assert 50_000_000 < found.peak < 80_000_000
    assert len(kept) == 30_000_000
