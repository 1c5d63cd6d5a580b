"""The last look before the copy against the metadata at its end: each kind of loss is named, each excuse is narrow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.copied import ORPHAN, CopyCheck, CopyEnd, counted, lacking, names_of, orphaned, still_lacking
from migrate.model.difference import Difference, DifferenceClass
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import PendingWork, ZookeeperView
from tests.testing.worlds import COPY_HELD, with_entity, world_at, zk

ROWS = (
    ("topic-config", "orders", "retention.ms", "1"),
    ("broker-config", "1", "log.cleaner.threads", "2"),
    ("client-quota", "user=bob", "producer_byte_rate", "1000.0"),
    ("scram", "bob", "SCRAM-SHA-256.salt", "hmac:1"),
    ("acl", "Topic|LITERAL|a|User:b|*|READ|ALLOW", "present", "true"),
    ("delegation-token", "hmac:2", "owner", "User:bob"),
    ("producer-ids", "", "next_producer_id", "3000"),
)


def look() -> ZookeeperView:
    """The healthy cluster's ZooKeeper before the copy, with one row of each kind."""
    world = world_at(Stage.CONTROLLERS)
    for row in ROWS:
        world = with_entity(world, *row)
    view = zk(world)
    topics = sorted(set(zip(view.partitions.topic, view.partitions.topic_id, strict=True)))
    for name, topic_id in (("orders", "x" * 22), *topics):
        world = with_entity(world, "topic", name, "topic_id", topic_id)
    return zk(world)


def copied(view: ZookeeperView) -> CopyEnd:
    """What a copy that drops nothing makes of it."""
    return CopyEnd(500, view.partitions, view.entities, {"TOPIC_RECORD": 3})


def without(columns: EntityColumns, index: int) -> EntityColumns:
    """Without one row."""
    names = ("kind", "key", "name", "value", "where")
    return EntityColumns(*([*values[:index], *values[index + 1 :]] for values in (getattr(columns, n) for n in names)))


def changed(columns: PartitionColumns, name: str, value: Any) -> PartitionColumns:
    """With another value in the first row."""
    return replace(columns, **{name: [value, *getattr(columns, name)[1:]]})


def found(view: ZookeeperView, end: CopyEnd) -> list[Difference]:
    """What is lacking, without what a rule explains."""
    return [row for row in lacking(view, end, frozenset()) if not row.rule]


def test_a_whole_copy_lacks_nothing_and_counts_every_kind() -> None:
    """Registrations and features are none of it."""
    view = look()
    assert lacking(view, copied(view), frozenset()) == []
    counts = counted(view, copied(view))
    assert {"topic", "partition", "scram", "acl", "client-quota", "delegation-token"} <= set(counts)
    assert all(before == after for before, after in counts.values())


@pytest.mark.parametrize("index", range(len(ROWS)), ids=[row[0] for row in ROWS])
def test_a_dropped_entity_of_any_kind_is_named(index: int) -> None:
    """By kind, key and name, and counted."""
    view = look()
    at = list(zip(view.entities.kind, view.entities.key, view.entities.name, strict=True)).index(ROWS[index][:3])
    end = replace(copied(view), entities=without(view.entities, at))
    (row,) = found(view, end)
    assert (row.kind, row.key, row.field, row.cls) == (*ROWS[index][:3], DifferenceClass.ONLY_ZK)
    before, after = counted(view, end)[row.kind]
    assert after == before - 1


def test_a_value_that_the_copy_changed_is_named() -> None:
    """With both values."""
    view = look()
    values = ["2" if value == "1" else value for value in view.entities.value]
    (row,) = found(view, replace(copied(view), entities=replace(view.entities, value=values)))
    assert (row.kind, row.cls, row.zookeeper, row.kraft) == ("topic-config", DifferenceClass.DIFFERS, "1", "2")


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("replicas", [2, 1, 0], True),
        ("adding", [1], True),
        ("leader_epoch", -5, True),
        ("leader_epoch", 99, False),
        ("leader", 2, False),
        ("isr", [0], False),
        ("revision", 99, False),
    ],
)
def test_of_a_partition_what_only_a_reassignment_changes_is_held(field: str, value: object, told: bool) -> None:
    """Leaders and ISRs move while the last broker is restarted; a leader epoch goes forward only."""
    view = look()
    end = replace(copied(view), partitions=changed(view.partitions, field, value))
    assert [row.field for row in found(view, end)] == ([field] if told else [])


def test_a_dropped_partition_and_a_dropped_topic_are_named_once() -> None:
    """The partitions of a topic that is gone altogether are not listed again."""
    view = look()
    names = list(PartitionColumns.__dataclass_fields__)
    short = PartitionColumns(**{name: getattr(view.partitions, name)[1:] for name in names})
    (row,) = found(view, replace(copied(view), partitions=short))
    assert (row.kind, row.key) == ("partition", f"{view.partitions.topic[0]}-{view.partitions.partition[0]}")
    keep = [topic != view.partitions.topic[0] for topic in view.partitions.topic]
    gone = PartitionColumns(
        **{n: [v for v, k in zip(getattr(view.partitions, n), keep, strict=True) if k] for n in names}
    )
    at = list(zip(view.entities.kind, view.entities.key, strict=True)).index(("topic", view.partitions.topic[0]))
    rows = found(view, CopyEnd(500, gone, without(view.entities, at), {}))
    assert [(row.kind, row.key) for row in rows] == [("topic", view.partitions.topic[0])]


def test_what_was_made_since_is_no_loss() -> None:
    """Only in the metadata; and another block of producer ids was taken."""
    view = look()
    values = ["4000" if value == "3000" else value for value in view.entities.value]
    rows = view.entities
    more = EntityColumns([*rows.kind], [*rows.key], [*rows.name], values, [*rows.where])
    more.add("acl", "Topic|LITERAL|new|User:b|*|READ|ALLOW", "present", "true")
    assert found(view, replace(copied(view), entities=more)) == []
    less = replace(view.entities, value=["2000" if value == "3000" else value for value in view.entities.value])
    assert [row.kind for row in found(view, replace(copied(view), entities=less))] == ["producer-ids"]


def test_an_orphaned_configuration_is_known_and_nothing_else_of_that_shape() -> None:
    """A topic without id, and one without partitions, exist."""
    view = zk(with_entity(world_at(Stage.ASSESS), "topic-config", "ghost", "retention.ms", "1"))
    assert orphaned(view) == {"ghost"}
    assert orphaned(replace(view, topics_without_id=("ghost",))) == frozenset()
    (row,) = lacking(view, CopyEnd(1, view.partitions, zk(world_at(Stage.ASSESS)).entities, {}), frozenset())
    assert (row.rule, row.cls) == (ORPHAN, DifferenceClass.EXPECTED)


def test_a_topic_that_is_being_deleted_is_known() -> None:
    """Not the one beside it."""
    view = look()
    doomed = replace(view, pending=PendingWork(deletions=("orders",)))
    rows = lacking(doomed, CopyEnd(1, PartitionColumns(), EntityColumns(), {}), frozenset())
    assert {row.rule for row in rows if row.key == "orders"} == {"X-TOPIC-01"}
    assert {row.rule for row in rows if row.key != "orders"} == {""}


def test_a_password_that_nobody_could_decode_is_left_out() -> None:
    """It is a blind spot, told elsewhere."""
    view = look()
    end = replace(copied(view), entities=EntityColumns())
    kinds = {row.kind for row in lacking(view, end, frozenset({("1", "log.cleaner.threads")}))}
    assert "broker-config" not in kinds
    assert "scram" in kinds


def test_what_was_made_again_lacks_no_more() -> None:
    """As the look had it; with another value it still does."""
    view = look()
    rows = lacking(view, CopyEnd(1, PartitionColumns(), EntityColumns(), {}), frozenset())
    assert rows
    assert still_lacking(rows, copied(view)) == []
    other = replace(view.entities, value=["x"] * len(view.entities))
    assert len(still_lacking(rows, replace(copied(view), entities=other))) == len(rows)
    one = Difference("partition", "a-b-0", "", DifferenceClass.ONLY_ZK, "replicas 0,1", None)
    assert still_lacking([one], copied(view)) == [one]


@pytest.mark.parametrize(
    ("driver", "wrong"),
    [
        ({"TOPIC_RECORD": 3, "PARTITION_RECORD": 6}, 0),
        ({"TOPIC_RECORD": 4, "PARTITION_RECORD": 6}, 1),
        ({"TOPIC_RECORD": 3}, 0),
        ({"TOPIC_RECORD": 3, "PARTITION_RECORD": 6, "CONFIG_RECORD": 1}, 1),
        (Unknown("no log"), 0),
    ],
)
def test_the_controllers_counts_are_held_against_the_log(driver: Any, wrong: int) -> None:
    """Each type with both numbers; a log that cannot be read is no contradiction."""
    check: CopyCheck = replace(COPY_HELD, driver=driver)
    assert len(check.miscounted) == wrong


def test_names_are_told_once_and_not_all() -> None:
    """With their first fields."""
    rows = tuple(
        Difference("topic-config", f"t{number}", name, DifferenceClass.ONLY_ZK, "1", None)
        for number in range(7)
        for name in ("a", "b")
    )
    assert names_of(rows).startswith("topic-config t0 (a, b); topic-config t1 (a, b)")
    assert names_of(rows).endswith("and 2 more")
