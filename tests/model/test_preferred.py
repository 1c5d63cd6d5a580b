"""Which partitions are away from their first replica, and which of them an election gives back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.preferred import Away, by_topic, of_kraft, of_zookeeper
from migrate.model.views import Registration
from tests.testing.clusters import Partition, kraft_view, registration, zookeeper_view

BROKERS = [registration(number, []) for number in range(3)]


def part(number: int, leader: int, isr: list[int] | None = None, replicas: list[int] | None = None) -> Partition:
    """One of topic a."""
    return Partition("a", "id", number, [0, 1, 2] if replicas is None else replicas, isr=isr, leader=leader)


@pytest.mark.parametrize(
    ("leader", "isr", "change", "why"),
    [
        (0, None, {}, None),
        (1, None, {}, ""),
        (-1, None, {}, ""),
        (1, [1, 2], {}, "broker 0 is not in its ISR"),
        (1, None, {"fenced": True}, "broker 0 is fenced"),
        (1, None, {"in_controlled_shutdown": True}, "broker 0 is in controlled shutdown"),
    ],
)
def test_by_the_metadata_a_broker_takes_leadership_or_is_named(
    leader: int, isr: list[int] | None, change: dict[str, bool], why: str | None
) -> None:
    """In the ISR, unfenced, in no controlled shutdown: all three."""
    first: Registration = replace(BROKERS[0], **change)  # type: ignore[arg-type]
    found = of_kraft(kraft_view([part(0, leader, isr)], brokers=[first, *BROKERS[1:]]))
    told = [*found.electable, *found.left]
    assert told == ([] if why is None else [Away("a", 0, 0, leader, why)])
    assert bool(found.electable) is (why == "")


def test_a_broker_that_is_not_registered_is_asked_for_nothing() -> None:
    """Nor one that has no znode."""
    rows = [part(0, 1)]
    assert of_kraft(kraft_view(rows, brokers=BROKERS[1:])).left[0].why == "broker 0 is not registered"
    assert of_zookeeper(zookeeper_view(rows, brokers=[1, 2])).left[0].why == "broker 0 is not registered"
    assert of_zookeeper(zookeeper_view(rows, brokers=[0, 1, 2])).electable == (Away("a", 0, 0, 1),)


def test_a_partition_without_replicas_is_named_not_elected() -> None:
    """What a torn view holds."""
    found = of_kraft(kraft_view([part(0, -1, [], [])], brokers=BROKERS))
    assert found.electable == ()
    assert found.left[0].why == "it has no replica"


def test_what_is_told_counts_every_partition() -> None:
    """At most three are named."""
    rows = [part(0, 0), *(part(number, 1, [1]) for number in range(1, 6))]
    found = of_kraft(kraft_view(rows, brokers=BROKERS))
    assert found.told.startswith("1 of 6 partitions are led by their first replica; no election gives back a-1 (broker")
    assert found.told.endswith("and 2 more")
    assert of_kraft(kraft_view([part(0, 0)], brokers=BROKERS)).told == (
        "1 of 1 partitions are led by their first replica"
    )


PARTITIONS = st.lists(
    st.permutations(range(4)).flatmap(
        lambda nodes: st.tuples(
            st.just(list(nodes[:3])),
            st.lists(st.sampled_from(nodes[:3]), unique=True),
            st.sampled_from([*nodes[:3], -1]),
        )
    ),
    max_size=6,
)


@given(PARTITIONS, st.sets(st.integers(0, 2)))
def test_every_partition_is_at_home_electable_or_left_and_never_two_of_them(
    found: list[tuple[list[int], list[int], int]], known: set[int]
) -> None:
    """Whatever replicas, ISRs, leaders and registrations there are."""
    rows = [part(number, leader, isr, replicas) for number, (replicas, isr, leader) in enumerate(found)]
    leaders = of_kraft(kraft_view(rows, brokers=[entry for entry in BROKERS if int(entry.id) in known]))
    names = [entry.name for entry in (*leaders.electable, *leaders.left)]
    home = [f"a-{row.partition}" for row in rows if row.leader == row.replicas[0]]
    assert sorted([*names, *home]) == sorted(f"a-{row.partition}" for row in rows)
    for entry in leaders.electable:
        replicas, isr, _ = found[entry.partition]
        assert entry.preferred == replicas[0]
        assert replicas[0] in isr
        assert replicas[0] in known
    assert sum(map(len, by_topic(leaders.electable).values())) == len(leaders.electable)
