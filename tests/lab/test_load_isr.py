"""From samples of ISRs to the times below min.insync.replicas, and to their reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import LoadHistoryBroken
from migrate.lab.load_isr import FILE, IsrSample, Short, ShortInterval, intervals, judge, read, why
from migrate.lab.load_watch import UNEXPLAINED, RestartInterval

THREE = Short("t-0", (0, 1, 2), 1, 2)
TWO = Short("p-4", (0, 1), 1, 2)


def seen(time: float, *short: Short) -> IsrSample:
    """A sample that judged ten partitions."""
    return IsrSample(time, 10, short)


def test_a_partition_is_held_against_its_own_topics_minimum() -> None:
    """One of a topic that nobody knows the minimum of is not judged, and is not counted as judged."""
    partitions = [("a-b-0", [0, 1, 2], 1), ("a-b-1", [0, 1, 2], 2), ("c-0", [0], 1), ("new-0", [0, 1, 2], 0)]
    found = judge(5.0, {"a-b": 2, "c": 1}, partitions)
    assert found == IsrSample(5.0, 3, (Short("a-b-0", (0, 1, 2), 1, 2),))


def test_a_sample_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A torn last line is a kill's."""
    path = tmp_path / FILE
    path.write_text(seen(1.0).line() + seen(2.25, THREE, TWO).line() + '{"time":3')
    assert list(read(path)) == [seen(1.0), seen(2.25, THREE, TWO)]
    assert list(read(tmp_path / "absent")) == []


@pytest.mark.parametrize("line", ["{}", "[]", '{"time":1,"judged":1,"short":[["t-0",[0],1]]}', "x"])
def test_a_line_that_is_no_sample_is_named(line: str, tmp_path: Path) -> None:
    """Never left out in silence."""
    (tmp_path / FILE).write_text(f"{seen(1.0).line()}{line}\n")
    with pytest.raises(LoadHistoryBroken, match="line 2 is no sample"):
        list(read(tmp_path / FILE))


def test_a_time_lasts_from_the_first_short_sample_to_the_first_that_is_not() -> None:
    """With the fewest that were in sync on the way."""
    none = Short("t-0", (0, 1, 2), 0, 2)
    found, judged = intervals([seen(0.0), seen(1.0, THREE), seen(2.0, none), seen(3.0), seen(4.0, THREE)])
    assert found == (ShortInterval(1.0, 3.0, none), ShortInterval(4.0, 4.0, THREE))
    assert judged == 5


def test_a_sample_that_judged_nothing_ends_nothing() -> None:
    """A broker that has just started knows no partition."""
    found, judged = intervals([seen(0.0, THREE), IsrSample(1.0, 0), seen(2.0, THREE), seen(3.0)])
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
    assert why(ShortInterval(start, end, short), [RestartInterval(node, 9.0, 21.0)]) == expected
