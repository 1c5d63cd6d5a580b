"""Findings that differ in their node alone are one finding with the list of nodes; others stay as they are."""

from __future__ import annotations

from dataclasses import replace
from re import _compiler  # type: ignore[attr-defined] # what runs on each miss of re's cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.findings import Finding, Severity, behind_words, one_per_kind, places, ranges


def found(about: str, message: str = "it is wrong", evidence: str = "", fix: str = "repair it") -> Finding:
    """A warning."""
    return Finding("W-AAA-01", Severity.WARNING, about, message, evidence, fix, 99)


def one(*findings: Finding) -> Finding:
    """What they come to, which must be one."""
    (single,) = one_per_kind(findings)
    return single


def test_the_same_on_forty_brokers_is_one_finding_with_ranges_and_every_object() -> None:
    """Neighbours are a range; the list has each by its own name."""
    brokers = [*range(1, 41), 42]
    single = one(*(found(f"broker {node}: /etc/kafka/server.properties") for node in brokers))
    assert single.about == "brokers 1-40, 42: /etc/kafka/server.properties"
    assert single.objects == tuple(f"broker {node}: /etc/kafka/server.properties" for node in brokers)
    assert (single.code, single.severity, single.message, single.fix) == (
        "W-AAA-01",
        Severity.WARNING,
        "it is wrong",
        "repair it",
    )


@pytest.mark.parametrize(
    ("abouts", "together"),
    [
        (("broker 0", "broker 1"), "brokers 0-1"),
        (("the disks of broker 0", "the disks of broker 2"), "the disks of brokers 0, 2"),
        (("how broker 0 was started", "how broker 1 was started"), "how each of brokers 0-1 was started"),
        (("controller 3000: /c/3000.properties", "controller 3001: /c/3001.properties"),
         "controllers 3000-3001: /c/<id>.properties"),
        (("/config/brokers/0", "/config/brokers/1"), "/config/brokers/<id> of brokers 0-1"),
        (("node 1 on h1", "node 2 on h2"), "nodes 1-2 on h<id>"),
        (("node 1 on east", "node 2 on west"), "node 1 on east; node 2 on west"),
        (("broker 1: /d1", "broker 1: /d2"), "broker 1: /d1; broker 1: /d2"),
    ],
)  # fmt: skip
def test_every_way_to_name_a_node(abouts: tuple[str, ...], together: str) -> None:
    """What follows the node is said once where it is the same, perhaps but for the node's own id."""
    single = one(*map(found, abouts))
    assert (single.about, single.objects, places(single)) == (together, abouts, "")


def test_many_places_are_counted_and_listed_apart() -> None:
    """A title of ten lines is none."""
    single = one(*(found(f"broker {node}: /data{disk}/kafka") for node in range(9) for disk in range(3)))
    assert single.about == "brokers 0-8 (27 places)"
    assert places(single).startswith("broker 0: /data0/kafka; broker 0: /data1/kafka; ")
    assert len(single.objects) == 27


def test_the_node_is_told_in_the_texts_too() -> None:
    """A message about one of forty would be wrong."""
    single = one(
        found("broker 0", "broker 0 is deaf", "/logs/broker-0/disk0, broker 0", "wake broker 0"),
        found("broker 7", "broker 7 is deaf", "/logs/broker-7/disk0, broker 7", "wake broker 7"),
    )
    assert single.message == "brokers 0, 7 is deaf"
    assert single.evidence == "/logs/broker-<id>/disk0, brokers 0, 7"
    assert single.fix == "wake brokers 0, 7"


def test_what_was_seen_of_each_is_kept() -> None:
    """Numbers that are ids by chance are not taken for them."""
    single = one(found("broker 1", evidence="1 key"), found("broker 2", evidence="2 keys"), found("broker 3"))
    assert single.evidence == "broker 1: 1 key; broker 2: 2 keys"
    assert one(found("broker 1", evidence="1 keys"), found("broker 2", evidence="2 keys")).evidence.count("broker") == 2


@pytest.mark.parametrize(
    "other",
    [
        found("broker 1", "it is wrong in another way"),
        found("broker 1", fix="repair it otherwise"),
        found("controller 1"),
        found("the disks of broker 1"),
        found("topic orders"),
        replace(found("broker 1"), code="W-AAA-02"),
        replace(found("broker 1"), severity=Severity.BLIND_SPOT),
        replace(found("broker 1"), blocks_from=3),
    ],
)
def test_what_differs_in_more_than_its_node_stays_apart(other: Finding) -> None:
    """Another text, code, severity or stage is another finding."""
    assert one_per_kind((found("broker 0"), other)) == (found("broker 0"), other)


def test_names_that_somebody_chose_are_no_nodes() -> None:
    """A user may be called `broker 5`, and topics are never put together."""
    several = (found("/config/users/broker 5"), found("/config/users/broker 6"), found("topic t1"), found("topic t2"))
    assert one_per_kind(several) == several


@pytest.mark.slow
@given(st.lists(st.builds(found, st.sampled_from(["broker 0", "broker 1: /d", "node 2 on h", "topic t", ""]))))
def test_no_object_is_lost_and_the_first_stays_first(several: list[Finding]) -> None:
    """Each object is in one finding, and the first one stays first."""
    grouped = one_per_kind(several)
    assert sorted(name for entry in grouped for name in entry.objects or (entry.about,)) == sorted(
        entry.about for entry in several
    )
    assert [entry.objects[0] if entry.objects else entry.about for entry in grouped][:1] == [
        entry.about for entry in several
    ][:1]


@pytest.mark.slow
@given(st.sets(st.integers(0, 60)))
def test_ranges_name_exactly_those_numbers(numbers: set[int]) -> None:
    """Read back they are the same."""
    read: set[int] = set()
    for part in filter(None, ranges(numbers).split(", ")):
        low, _, high = part.partition("-")
        read |= set(range(int(low), int(high or low) + 1))
    assert read == numbers


def test_many_nodes_are_grouped_without_a_pattern_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition may name 100,000 brokers that are not there; compiling a pattern takes longer than all else."""
    compiled, whole = list[object](), _compiler.compile

    def counted(*words: object) -> object:
        compiled.append(words)
        return whole(*words)

    monkeypatch.setattr(_compiler, "compile", counted)
    many = [found(f"broker {node}", f"broker {node} is gone, not broker x{node}") for node in range(5000)]
    assert one_per_kind(many)
    assert len(compiled) < 10


def of_disk(code: str, about: str, words: str = "", blocks_from: int = 4) -> Finding:
    """A blocker of a broker with a dead disk."""
    return Finding(code, Severity.BLOCKER, about, words, "", "fix", blocks_from)


def test_one_dead_disk_is_one_blocker_with_all_that_follows_from_it_behind_it() -> None:
    """Of its broker alone, and only what can follow; thirty dead disks are one finding as well."""
    dead = of_disk("B-DIR-01", "broker 1: /d7", "the directory is gone")
    follow = [
        of_disk("B-DIR-17", "broker 1: /d7", "DescribeLogDirs answers KAFKA_STORAGE_ERROR (56)"),
        *(
            of_disk("B-DIR-13", f"broker 1: t-{number}", "no healthy log directory holds a copy")
            for number in range(20)
        ),
        *(of_disk("B-DIR-08", f"broker 1: u-{number}", "its row is NOT ON DISK", 2) for number in range(3)),
    ]
    single = one(dead, *follow)
    assert (single.code, single.about, single.blocks_from, len(single.behind)) == ("B-DIR-01", "broker 1: /d7", 2, 24)
    assert behind_words(single) == "24 findings behind it: 1 B-DIR-17, 20 B-DIR-13, 3 B-DIR-08"
    assert single.behind[1] == "B-DIR-13 broker 1: t-0"
    others = (
        of_disk("B-DIR-13", "broker 2: t-0", "no healthy log directory holds a copy"),
        of_disk("B-DIR-08", "broker 1: v-0", "its row is MISMATCH"),
        of_disk("B-DIR-17", "broker 1: /d8", "DescribeLogDirs answers KAFKA_STORAGE_ERROR (56)"),
        replace(follow[1], severity=Severity.BLIND_SPOT),
    )
    assert one_per_kind((*others, dead)) == (*others, dead), "of another broker, cause, directory, or not seen"
    many = one(
        *(
            replace(entry, about=entry.about.replace("1", str(node), 1))
            for node in range(2, 5)
            for entry in (dead, follow[0])
        )
    )
    assert (many.about, len(many.behind)) == ("brokers 2-4: /d7", 3)


def test_what_follows_from_a_stopped_broker_is_behind_its_dead_disk_or_the_first_of_it() -> None:
    """One cause is one blocker; a broker that runs has its own."""
    dead, fenced, other = (
        of_disk("B-DIR-01", "broker 1: /d7"),
        of_disk("B-MIG-05", "broker 1"),
        of_disk("B-MIG-05", "broker 2"),
    )
    unseen = of_disk("B-NET-01", "broker 0", "it does not see brokers [1]")
    down = {fenced: 1, unseen: 1}.get
    assert [(entry.code, len(entry.behind)) for entry in one_per_kind((fenced, dead, unseen), down)] == [
        ("B-DIR-01", 2)
    ]
    told = one_per_kind((fenced, unseen, other), down)
    assert [(entry.code, entry.behind) for entry in told] == [
        ("B-MIG-05", ("B-NET-01 broker 0",)),
    ], "of both brokers one finding"
    assert told[0].about == "brokers 1-2"
