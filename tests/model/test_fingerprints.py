"""Fingerprints differ where topics differ, in whatever the comparison compares, and nowhere else."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model import fingerprints
from migrate.model.columns import PartitionColumns
from migrate.model.fingerprints import NOTHING, assignment, hashed, identity, state, topic_fingerprints
from tests.diff.reference import ORDERED, SETS

brokers = st.lists(st.integers(0, 5), unique=True, max_size=4)
numbers = st.integers(-1, 2**31 - 1)
ID = base64.urlsafe_b64encode(bytes(range(16)))[:22].decode()
OTHER_ID = base64.urlsafe_b64encode(bytes(range(1, 17)))[:22].decode()
FIELDS = (*ORDERED, *SETS)
Row = dict[str, object]


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """The fields of a partition that are compared."""
    return {
        "topic_id": draw(st.sampled_from([ID, OTHER_ID, ""])),
        "replicas": draw(brokers),
        "isr": draw(brokers),
        "adding": draw(brokers),
        "removing": draw(brokers),
        "leader": draw(numbers),
        "leader_epoch": draw(numbers),
        "recovery_state": draw(st.integers(0, 1)),
    }


def columns(*partitions: Row) -> PartitionColumns:
    """One topic."""
    found = PartitionColumns()
    for number, row in enumerate(partitions):
        for name, value in {"topic": "t", "partition": number, **row, "directories": [], "revision": number}.items():
            getattr(found, name).append(value)
    return found


def compared(row: Row) -> Row:
    """As the comparison sees it."""
    return {name: frozenset(row[name]) if name in SETS else row[name] for name in FIELDS}  # type: ignore[call-overload]


@given(rows(), rows(), st.sampled_from(FIELDS))
def test_a_topic_in_which_any_one_field_differs_has_another_fingerprint(row: Row, other: Row, field: str) -> None:
    """And one in which only a set's order differs has the same."""
    changed = {**row, field: other[field]}
    one, two = (topic_fingerprints(columns(entry, row))["t"] for entry in (row, changed))
    same = compared(row) == compared(changed)
    if field == "topic_id":
        one, two = (topic_fingerprints(columns(entry))["t"] for entry in (row, changed))
    assert (one == two) is same
    assert same or (one.a != two.a and one.b != two.b), "each lane alone sees one changed field"


@given(st.lists(rows(), max_size=4), st.lists(rows(), max_size=4))
def test_fingerprints_are_equal_exactly_where_the_field_by_field_comparison_finds_nothing(
    left: list[Row], right: list[Row]
) -> None:
    """Whatever else the partitions have: directories and revisions are not compared."""
    uniform = [[{**row, "topic_id": ID} for row in side] for side in (left, right)]
    found = [topic_fingerprints(columns(*side)) for side in uniform]
    assert (found[0] == found[1]) is ([*map(compared, uniform[0])] == [*map(compared, uniform[1])])


@given(st.lists(rows(), min_size=2, max_size=4))
def test_swapped_partitions_have_another_fingerprint(partitions: list[Row]) -> None:
    """A partition's number is a part of its hashes."""
    some = [{**row, "topic_id": ID} for row in partitions]
    turned = [*some[1:], some[0]]
    same = [*map(compared, some)] == [*map(compared, turned)]
    assert (topic_fingerprints(columns(*some)) == topic_fingerprints(columns(*turned))) is same


def test_lists_do_not_flow_into_each_other() -> None:
    """What a hash of the members alone would not see."""
    found = {
        assignment(0, [1], [2, 3], []),
        assignment(0, [1, 2], [3], []),
        assignment(0, [1, 2], [], [3]),
        assignment(0, [1, 2, 3], [], []),
        assignment(0, [], [1, 2, 3], []),
        state(0, 1, 2, 0, [3]),
        state(0, 1, 2, 0, []),
        assignment(1, [2, 0], [], []),
    }
    assert len(found) == 8


def test_the_order_of_replicas_counts_and_that_of_a_set_does_not() -> None:
    """The first replica is the preferred leader."""
    assert assignment(0, [1, 2]) != assignment(0, [2, 1])
    assert state(0, 1, 2, 0, [1, 2]) == state(0, 1, 2, 0, [2, 1, 1])
    assert assignment(0, [1], [2, 3], [4, 5]) == assignment(0, [1], [3, 2], [5, 4])


def test_another_spelling_of_an_id_is_another_id() -> None:
    """The comparison compares texts; no id is none of both."""
    twin = ID[:-1] + chr(ord(ID[-1]) + 1)
    assert base64.urlsafe_b64decode(twin + "==") == base64.urlsafe_b64decode(ID + "==")
    assert len({identity(ID), identity(twin), identity(""), identity("A" * 22)}) == 4


@pytest.mark.parametrize("place", range(16))
def test_each_byte_of_an_id_counts(place: int) -> None:
    """In both lanes: two topics whose ids differ in one byte are two topics."""
    raw = bytearray(range(16))
    raw[place] ^= 0x80
    other = identity(base64.urlsafe_b64encode(raw)[:22].decode())
    assert other.a != identity(ID).a
    assert other.b != identity(ID).b


def test_an_id_is_hashed_as_the_two_numbers_that_java_keeps_of_it() -> None:
    """Most significant bits first, as the compiled reader hashes the 16 bytes of a record."""
    both = (0x0001020304050607, 0x08090A0B0C0D0E0F)
    assert identity(ID) == hashed(fingerprints.IDENTITY, both)
    twin = ID[:-1] + chr(ord(ID[-1]) + 1)
    spelling = int(hashlib.sha256(twin.encode()).hexdigest()[:16], 16)
    assert identity(twin) == hashed(fingerprints.IDENTITY, (*both, spelling))


def test_parts_of_different_kinds_never_hash_alike() -> None:
    """The same numbers, in each kind of part."""
    kinds = (fingerprints.ASSIGNMENT, fingerprints.STATE, fingerprints.IDENTITY)
    assert len({hashed(kind, [1, 2]) for kind in kinds}) == len(kinds)


def test_a_topics_id_counts_once_however_many_partitions_it_has() -> None:
    """Rows that name two ids are of two topics: both are in the fingerprint."""
    row: Row = {name: [] for name in ("replicas", "isr", "adding", "removing")}
    row |= {"leader": 1, "leader_epoch": 2, "recovery_state": 0}
    parts = NOTHING
    for number in range(3):
        parts = parts.plus(assignment(number, [])).plus(state(number, 1, 2, 0, []))
    one, two = {**row, "topic_id": ID}, {**row, "topic_id": OTHER_ID}
    assert topic_fingerprints(columns(one, one, one)) == {"t": parts.plus(identity(ID))}
    assert topic_fingerprints(columns(one, two, one)) == {"t": parts.plus(identity(ID)).plus(identity(OTHER_ID))}


def test_columns_of_different_lengths_have_no_fingerprint() -> None:
    """A row that lacks a field is no row to leave out."""
    torn = columns({name: [] for name in ("replicas", "isr", "adding", "removing")} | {"topic_id": ID, "leader": 1})
    with pytest.raises(ValueError, match="shorter"):
        topic_fingerprints(torn)


@pytest.mark.parametrize(
    ("tag", "values", "found"),
    [
        (1, [], (0xC2AF6615955AD044, 0x7C3AAA8E0B900590)),
        (2, [0], (0x9135FBC8912947FC, 0x16C3167BD2267237)),
        (3, [-1, 2**63 - 1, 1], (0xD39C8985CCCC9989, 0x9F895B091EF5C3BA)),
        (5, [7] * 5, (0x582AF58FD79402FE, 0xDA200608097B0CAC)),
    ],
)
def test_a_hash_mixes_as_it_always_has(tag: int, values: list[int], found: tuple[int, int]) -> None:
    """Each constant and each shift counts: with a weaker mix two different topics may look the same."""
    assert hashed(tag, values) == found


def test_each_part_of_a_topic_keeps_its_own_hash() -> None:
    """A replica list is never taken for a state, nor one spelling of an id for another."""
    assert assignment(3, [1, 2], [4], [5]) == (726324785035706383, 6848994181599249369)
    assert state(3, 1, 2, 0, [2, 1]) == (11303128111143604841, 10113313015004230536)
    assert identity("AAAAAAAAAAAAAAAAAAAAAQ") == (17163449624717591657, 6731211091794276123)
    assert identity("") == (5498008998094006531, 14873328111144804069)
    other = identity("AAAAAAAAAAAAAAAAAAAAAR")  # the same bytes, another text
    assert other != identity("AAAAAAAAAAAAAAAAAAAAAQ")
