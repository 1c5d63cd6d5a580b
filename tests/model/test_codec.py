"""Views become JSON and are the same afterwards; what is not theirs is refused, with the place."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.codec import NotDecodable, decode, encode
from migrate.model.columns import EntityColumns, PartitionColumns, ReplicaColumns
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import Direction
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import (
    ConfigFile,
    ControllerZnode,
    KraftView,
    Malformed,
    NoZnode,
    PartlyRead,
    ZnodePart,
    ZookeeperView,
)
from migrate.model.world import World
from migrate.observe.bundle import PARTS
from tests.testing import worlds
from tests.testing.clusters import uuid

HINTS = typing.get_type_hints(World)
ONE_PARTITION = PartitionColumns(["t"], [""], [0], [[0]], [[0]], [[]], [[]], [0], [0], [0], [[]], [0])


def there_and_back(value: Any, kind: Any) -> Any:
    """Through JSON text, as a bundle does it."""
    return decode(kind, json.loads(json.dumps(encode(value))), "value")


# -- without loss --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stage", Stage)
def test_every_part_of_a_world_is_the_same_afterwards(stage: Stage) -> None:
    """Values and types, at each stage; what is unknown stays unknown."""
    world = worlds.world_at(stage)
    for part in PARTS:
        before = getattr(world, part)
        after = there_and_back(before, HINTS[part])
        assert after == before
        assert encode(after) == encode(before)


def test_ids_keep_their_types() -> None:
    """Keys of mappings, too: a look-up by NodeId must find them."""
    view = there_and_back(worlds.world_at(Stage.KRAFT_MODE).kraft, HINTS["kraft"])
    assert isinstance(view, KraftView)
    assert {type(node) for node in view.brokers} == {NodeId}
    assert {type(entry) for entry in view.brokers[NodeId(1)].log_dirs} == {DirectoryId}
    assert view.migration_state is ZkMigrationState.MIGRATION


def test_a_tree_that_was_read_in_part_stays_so() -> None:
    """It is Unknown, and has its view all the same."""
    broken = Malformed("/brokers/topics/x", "no JSON", ZnodePart.TOPIC)
    before = PartlyRead("malformed", replace(worlds.zk(worlds.world_at(Stage.COPY)), malformed=(broken,)))
    after = there_and_back(before, HINTS["zookeeper"])
    assert after == before
    assert isinstance(after, PartlyRead)
    assert isinstance(after, Unknown)


TEXT = st.text(st.characters(exclude_categories=[]) | st.sampled_from("\udc80\udcff\0\n\"\\'=/$"), max_size=8).filter(
    lambda text: text == json.loads(json.dumps(text))  # halves of a pair side by side are one character to JSON
)


@pytest.mark.slow
@given(st.lists(st.tuples(TEXT, TEXT, TEXT, TEXT, TEXT), max_size=4), TEXT, st.integers(), st.binary(max_size=20))
def test_odd_names_and_numbers_are_the_same_afterwards(
    rows: list[tuple[str, str, str, str, str]], name: str, number: int, raw: bytes
) -> None:
    """Control characters, quotes, lone surrogates of file names, numbers beyond 64 bits, any bytes."""
    columns = EntityColumns()
    for row in rows:
        columns.add(*row)
    view = replace(
        worlds.zk(worlds.world_at(Stage.COPY)),
        connect=name,
        entities=columns,
        zxid_last=number,
        topics_without_id=(name, name),
        controller=ControllerZnode(number, -1, ephemeral=True, version=0),
        migration=NoZnode(),
    )
    assert there_and_back(view, HINTS["zookeeper"]) == view
    file = ConfigFile(NodeId(1), name, raw, "", {name: name, name + "x": ""})
    assert there_and_back({NodeId(1): file}, HINTS["configs"]) == {1: file}


def test_partitions_are_the_same_afterwards() -> None:
    """Lists in lists, empty ones too."""
    rows = PartitionColumns(["t"], [uuid(1)], [0], [[1, 2]], [[]], [[]], [[]], [-1], [0], [0], [[]], [5])
    assert there_and_back(rows, PartitionColumns) == rows


# -- what is refused -----------------------------------------------------------------------------------------------
def places(data: Any) -> list[tuple[Any, Any]]:
    """Every container of the data with each key or index of it."""
    if isinstance(data, dict):
        return [(data, key) for key in data] + [found for entry in data.values() for found in places(entry)]
    if isinstance(data, list):
        return [(data, index) for index in range(len(data))] + [found for entry in data for found in places(entry)]
    return []


def small() -> ZookeeperView:
    """A tree with one partition and one setting, so that each place in it can be tried."""
    rows = PartitionColumns(["t"], [uuid(1)], [0], [[1]], [[1]], [[]], [[]], [1], [0], [0], [[]], [5])
    return replace(
        worlds.zk(worlds.world_at(Stage.COPY)),
        partitions=rows,
        entities=EntityColumns(["acl"], ["k"], ["n"], ["v"], ["w"]),
    )


@pytest.mark.parametrize("wrong", [1.5, "§", None, {}, [[]], True])
def test_a_wrong_type_anywhere_is_refused_or_changes_the_value(wrong: Any) -> None:
    """Never another exception, and never the value that was written."""
    before = small()
    text = json.dumps(encode(before))
    for number in range(len(places(json.loads(text)))):
        data = json.loads(text)
        container, key = places(data)[number]
        if container[key] == wrong and type(container[key]) is type(wrong):
            continue
        container[key] = wrong
        try:
            found = decode(HINTS["zookeeper"], data, "zookeeper")
        except NotDecodable:
            continue
        assert found != before or key in ("clients", "acls")


def test_missing_and_unknown_fields_and_strangers_are_refused() -> None:
    """With the place, and what is wrong there."""
    whole = encode(small())
    for change, words in (
        ({"znodes": None}, "zookeeper.znodes: no int"),
        ({"more": 1}, "zookeeper: missing or unknown: more"),
        ({"controller": {"$": "NoFile", "path": ""}}, "zookeeper.controller: none of ControllerZnode"),
        ({"partitions": {**whole["partitions"], "leader": []}}, "different lengths"),
        ({"brokers": [[1]]}, "no pair"),
        ({"brokers": [[-1, {}]]}, "outside"),
        ({"brokers": [*whole["brokers"], *whole["brokers"]]}, "twice"),
    ):
        with pytest.raises(NotDecodable, match=words.replace("$", ".")):
            decode(HINTS["zookeeper"], {**whole, **change}, "zookeeper")
    del whole["znodes"]
    with pytest.raises(NotDecodable, match="missing or unknown: znodes"):
        decode(HINTS["zookeeper"], whole, "zookeeper")


def test_what_no_view_has_is_not_written() -> None:
    """A set, a function, an infinite number: our own mistake, and loud."""

    @dataclass(frozen=True, slots=True)
    class Odd:
        value: object

    for value in ({1}, print, float("inf"), Odd):
        with pytest.raises(TypeError, match="no form in JSON"):
            encode(Odd(value))


# -- what no reader puts into columns ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (ReplicaColumns(["t"], [0], [""], ["x"], ["t-0"], [1]), "no kind of replica: 'x'"),
        (ReplicaColumns(["t"], [2**63], [""], ["current"], ["t-0"], [1]), "64 bits"),
        (replace(ONE_PARTITION, replicas=[[2**31]]), "no node id"),
        (replace(ONE_PARTITION, isr=[[-1]]), "no node id"),
    ],
)
def test_rows_that_no_cluster_has_are_refused(columns: PartitionColumns | ReplicaColumns, says: str) -> None:
    """They would end later, in whatever is decided by them."""
    with pytest.raises(NotDecodable, match=says):
        there_and_back(columns, type(columns))


# -- the plain form -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Inner:
    """What a built value holds."""

    word: Direction
    stage: Stage = Stage.COPY


@dataclass(frozen=True, slots=True)
class Outer:
    """Every kind of field that a plan has."""

    text: str
    number: int
    time: float
    counts: Mapping[str, int]
    inner: tuple[Inner, ...]
    sure: bool = True
    version: int | None = None


PLAIN = {
    "text": "a",
    "number": 1,
    "time": 2,
    "counts": {"topics": 3},
    "inner": [{"word": "back", "stage": "hybrid"}],
    "sure": False,
    "version": None,
}


def from_plain(value: object) -> Any:
    """Of a plan's form."""
    return decode(Outer, value, "it", plain=True)


def test_a_value_is_built_of_its_declared_types() -> None:
    """Enums by their values or labels; a whole number is a float where one belongs."""
    inner = Inner(Direction.BACK, Stage.HYBRID)
    assert from_plain(PLAIN) == Outer("a", 1, 2.0, {"topics": 3}, (inner,), sure=False)
    assert type(from_plain(PLAIN).time) is float
    assert from_plain({**PLAIN, "version": 3}).version == 3


@pytest.mark.parametrize(
    "other",
    [
        {"text": 1},
        {"text": None},
        {"number": True},
        {"number": 1.5},
        {"number": "1"},
        {"time": "2"},
        {"time": False},
        {"counts": {"topics": "3"}},
        {"counts": [["topics", 3]]},
        {"inner": {}},
        {"inner": [[]]},
        {"inner": [{"word": "back"}]},
        {"inner": [{"word": "away", "stage": "hybrid"}]},
        {"inner": [{"word": ["back"], "stage": "hybrid"}]},
        {"inner": [{"word": "back", "stage": "nowhere"}]},
        {"sure": 1},
        {"version": "3"},
        {"version": True},
        {"more": 1},
    ],
    ids=str,
)
def test_another_type_and_a_missing_or_unknown_field_are_refused(other: dict[str, object]) -> None:
    """At every depth; a field with a default must be there as well."""
    with pytest.raises(NotDecodable):
        from_plain({**PLAIN, **other})
    for name in PLAIN:
        with pytest.raises(NotDecodable, match=f"missing or unknown: {name}"):
            from_plain({key: value for key, value in PLAIN.items() if key != name})
