"""From samples of the metadata to intervals without leader, and to their reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import LoadHistoryBroken
from migrate.lab.load_watch import (
    FILE,
    RF_1,
    UNEXPLAINED,
    IsrSample,
    Leaderless,
    LeaderlessInterval,
    LeaderMemory,
    RestartInterval,
    Sample,
    Short,
    ShortInterval,
    WatchResult,
    append_lines,
    attribute,
    explain_shortage,
    find_short_intervals,
    fold_samples,
    judge_isr,
    read_isr_samples,
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


THREE = Short("t-0", (0, 1, 2), 1, 2)
TWO = Short("p-4", (0, 1), 1, 2)


def seen(time: float, *short: Short) -> IsrSample:
    """A sample that judged ten partitions."""
    return IsrSample(time, 10, short)


def test_a_partition_is_held_against_its_own_topics_minimum() -> None:
    """One of a topic that nobody knows the minimum of is not judged, and is not counted as judged."""
    partitions = [("a-b-0", [0, 1, 2], 1), ("a-b-1", [0, 1, 2], 2), ("c-0", [0], 1), ("new-0", [0, 1, 2], 0)]
    found = judge_isr(5.0, {"a-b": 2, "c": 1}, partitions)
    assert found == IsrSample(5.0, 3, (Short("a-b-0", (0, 1, 2), 1, 2),))


def test_a_sample_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A torn last line is a kill's."""
    path = tmp_path / FILE
    path.write_text(seen(1.0).line() + seen(2.25, THREE, TWO).line() + '{"time":3')
    assert list(read_isr_samples(path)) == [seen(1.0), seen(2.25, THREE, TWO)]
    assert list(read_isr_samples(tmp_path / "absent")) == []


@pytest.mark.parametrize("line", ["{}", "[]", '{"time":1,"judged":1,"short":[["t-0",[0],1]]}', "x"])
def test_a_line_that_is_no_sample_is_named(line: str, tmp_path: Path) -> None:
    """Never left out in silence."""
    (tmp_path / FILE).write_text(f"{seen(1.0).line()}{line}\n")
    with pytest.raises(LoadHistoryBroken, match="line 2 is no sample"):
        list(read_isr_samples(tmp_path / FILE))


def test_a_time_lasts_from_the_first_short_sample_to_the_first_that_is_not() -> None:
    """With the fewest that were in sync on the way."""
    none = Short("t-0", (0, 1, 2), 0, 2)
    found, judged = find_short_intervals([seen(0.0), seen(1.0, THREE), seen(2.0, none), seen(3.0), seen(4.0, THREE)])
    assert found == (ShortInterval(1.0, 3.0, none), ShortInterval(4.0, 4.0, THREE))
    assert judged == 5


def test_a_sample_that_judged_nothing_ends_nothing() -> None:
    """A broker that has just started knows no partition."""
    found, judged = find_short_intervals([seen(0.0, THREE), IsrSample(1.0, 0), seen(2.0, THREE), seen(3.0)])
    assert found == (ShortInterval(0.0, 3.0, THREE),)
    assert judged == 3


@pytest.mark.parametrize(
    ("short", "node", "start", "end", "expected"),
    [
        (TWO, 1, 10.0, 20.0, "needs every replica; restart of broker 1"),
        (TWO, 2, 10.0, 20.0, UNEXPLAINED),
        (TWO, 1, 10.0, 40.0, UNEXPLAINED),
        (THREE, 1, 10.0, 20.0, UNEXPLAINED),
    ],
    ids=["its own replica's restart", "another broker's", "longer than it", "it can spare one"],
)
def test_only_what_needs_every_replica_is_excused_by_a_restart(
    short: Short, node: int, start: float, end: float, expected: str
) -> None:
    """One broker is down by our hand: who can spare one replica must not notice."""
    assert explain_shortage(ShortInterval(start, end, short), [RestartInterval(node, 9.0, 21.0)]) == expected
