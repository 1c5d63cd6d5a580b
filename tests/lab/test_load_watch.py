"""From samples of the metadata to intervals without leader, and to their reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import LoadHistoryBroken
from migrate.lab.load_watch import (
    RF_1,
    UNEXPLAINED,
    Leaderless,
    LeaderlessInterval,
    LeaderMemory,
    RestartInterval,
    Sample,
    WatchResult,
    append_lines,
    attribute,
    fold_samples,
    read_samples,
)

GONE = Leaderless("t-0", (1, 2), 1)


def good(time: float, *leaderless: Leaderless) -> Sample:
    """A sample that saw ten partitions."""
    return Sample(time, 10, leaderless)


def blind(time: float, why: str = "timed out") -> Sample:
    """A sample that saw nothing."""
    return Sample(time, 0, problem=why)


def interval(start: float, end: float, replicas: tuple[int, ...] = (1, 2), leader: int = 1) -> LeaderlessInterval:
    """A partition without leader."""
    return LeaderlessInterval("t-0", start, end, replicas, leader)


# -- one answer --------------------------------------------------------------------------------------------------
def test_an_answer_names_who_led_last() -> None:
    """A leaderless partition carries its last leader, so that a restart can be blamed rightly."""
    memory = LeaderMemory()
    memory.sample(1.0, [("t-0", 1, [1, 2], 0), ("t-1", 2, [2], 0)])
    sample = memory.sample(2.0, [("t-0", -1, [1, 2], 5), ("t-1", 2, [2], 0)])

    assert sample == Sample(2.0, 2, (Leaderless("t-0", (1, 2), 1),))


def test_a_missing_replica_is_no_missing_leader() -> None:
    """REPLICA_NOT_AVAILABLE (9) is told of partitions that lead on."""
    assert LeaderMemory().sample(1.0, [("t-0", 2, [1, 2], 9)]).leaderless == ()


def test_leader_not_available_counts_whatever_the_id() -> None:
    """Error 5 is a partition without leader even where an id stands beside it."""
    assert LeaderMemory().sample(1.0, [("t-0", 1, [1], 5)]).leaderless == (Leaderless("t-0", (1,), -1),)


def test_an_empty_answer_saw_nothing() -> None:
    """A broker that has just started knows no partition: that is blindness, not health."""
    assert LeaderMemory().sample(1.0, []).problem


# -- lines -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sample", [good(1.25), good(1.5, GONE, Leaderless("a.b-1", (3,), -1)), blind(2.0, 'a "quote"')]
)
def test_a_sample_survives_its_line(tmp_path: Path, sample: Sample) -> None:
    """What is written is read."""
    path = tmp_path / "watch.jsonl"
    path.write_text(sample.line())
    assert list(read_samples(path)) == [sample]


def test_a_torn_line_is_left_out_and_a_bad_one_named(tmp_path: Path) -> None:
    """A kill within the last write is normal; a line that is no sample is damage."""
    path = tmp_path / "watch.jsonl"
    path.write_text(good(1.0).line() + good(2.0).line()[:-4])
    assert [sample.time for sample in read_samples(path)] == [1.0]

    path.write_text(good(1.0).line() + "[]\n" + good(2.0).line())
    with pytest.raises(LoadHistoryBroken, match="line 2"):
        list(read_samples(path))


def test_appending_after_a_kill_glues_nothing(tmp_path: Path) -> None:
    """The torn line goes before the restarted load writes its first."""
    path = tmp_path / "watch.jsonl"
    path.write_text(good(1.0).line() + good(2.0).line()[:-4])
    for time in (3.0, 4.0):
        with append_lines(path) as log:
            log.write(good(time).line())

    assert [sample.time for sample in read_samples(path)] == [1.0, 3.0, 4.0]


def test_no_file_is_no_samples(tmp_path: Path) -> None:
    """A load that never watched has no intervals; that is for the judge to say."""
    assert fold_samples(read_samples(tmp_path / "watch.jsonl")) == WatchResult((), (), 0)


# -- intervals ---------------------------------------------------------------------------------------------------
def test_an_interval_ends_with_the_first_sample_that_sees_a_leader() -> None:
    """The upper bound is told: never shorter than it was."""
    result = fold_samples([good(0.0), good(0.25, GONE), good(0.5, GONE), good(0.75), good(1.0)])
    assert result.leaderless == (interval(0.25, 0.75),)
    assert result.blind == ()
    assert result.samples == 5


def test_two_losses_are_two_intervals() -> None:
    """A leader in between separates them."""
    result = fold_samples([good(0.0, GONE), good(0.25), good(0.5, GONE), good(0.75)])
    assert result.leaderless == (interval(0.0, 0.25), interval(0.5, 0.75))


def test_samples_that_saw_nothing_do_not_end_an_interval() -> None:
    """Unknown is not a leader."""
    result = fold_samples([good(0.0, GONE), blind(0.25), blind(0.5), good(0.75, GONE), good(1.0)])
    assert result.leaderless == (interval(0.0, 1.0),)


def test_an_interval_open_at_the_end_is_told() -> None:
    """A partition that never came back is not forgotten."""
    assert fold_samples([good(0.0), good(0.25, GONE), good(0.5, GONE)]).leaderless == (interval(0.25, 0.5),)


def test_the_first_known_leader_stays() -> None:
    """A watcher restarted within an interval has no memory; what the first sample knew is kept."""
    later = Leaderless("t-0", (1, 2), -1)
    assert fold_samples([good(0.0, GONE), good(0.25, later), good(0.5)]).leaderless == (interval(0.0, 0.5),)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([good(0.0), good(2.0)], ()),
        ([good(0.0), good(2.5)], ((0.0, 2.5, "no samples: the load did not run"),)),
        ([good(0.0), blind(1.0), blind(2.0, "later"), good(3.0)], ((0.0, 3.0, "timed out"),)),
        ([good(0.0), blind(1.0), good(1.5)], ()),
        ([blind(0.0), good(3.0)], ((0.0, 3.0, "timed out"),)),
        ([good(0.0), blind(1.0), blind(4.0)], ((0.0, 4.0, "timed out"),)),
    ],
)
def test_times_without_samples_are_listed(samples: list[Sample], expected: tuple[object, ...]) -> None:
    """From the last good sample to the next, with the first reason; a hiccup shorter than the bound is none."""
    assert fold_samples(samples).blind == expected


# -- reasons -----------------------------------------------------------------------------------------------------
RESTARTS = (RestartInterval(2, 50.0, 60.0), RestartInterval(1, 100.0, 110.0))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (interval(10.0, 20.0, replicas=(1,)), RF_1),
        (interval(100.5, 104.0), "restart of broker 1"),
        (interval(98.5, 111.5), "restart of broker 1"),
        (interval(51.0, 52.0, leader=1), "restart of broker 2"),
        (interval(100.5, 120.0), UNEXPLAINED),
        (interval(97.0, 101.0), UNEXPLAINED),
        (interval(101.0, 102.0, replicas=(2, 3), leader=2), UNEXPLAINED),
        (interval(70.0, 71.0), UNEXPLAINED),
    ],
)
def test_reasons_are_given_only_where_they_hold(found: LeaderlessInterval, why: str) -> None:
    """One replica; a restart of a node that holds a replica and that covers the whole time; nothing else."""
    assert attribute(found, RESTARTS) == why


def test_the_last_leaders_restart_is_named_first() -> None:
    """Where two restarts would do, the one of the leader that went away is the reason."""
    both = (RestartInterval(2, 0.0, 10.0), RestartInterval(1, 1.0, 10.0))
    assert attribute(interval(2.0, 3.0, leader=1), both) == "restart of broker 1"
    assert attribute(interval(2.0, 3.0, leader=2), both) == "restart of broker 2"
