"""What each side had for a row of the comparison: a stamp that changes whenever the object does, and where it was read.

A stamp holds the values and their revision (mzxid; partition epoch; the record's offset), so that an object that
changed and changed back did not stand still.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.difference import Difference
from migrate.model.ids import NodeId
from migrate.model.views import KraftView, ZookeeperView

RowKey = tuple[str, str, str]  # kind, key, field
IN_TOPIC_ZNODE: Final = ("", "topic_id", "replicas", "adding", "removing")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A row's object on one side; `stamp` is None where that side has none."""

    stamp: Hashable | None
    where: str


def row_key(row: Difference) -> RowKey:
    """What a row is about."""
    return row.kind, row.key, row.field


def in_zookeeper(view: ZookeeperView, rows: Iterable[Difference]) -> Mapping[RowKey, Sighting]:
    """Each row's object in ZooKeeper: the znode and its mzxid, or that nothing is there (pure)."""
    wanted = {row_key(row) for row in rows}
    partitions = _partitions(view.partitions, wanted)
    entities = _entities(view.entities, wanted)
    found: dict[RowKey, Sighting] = {}
    for kind, key, field in wanted:
        absent = Sighting(None, f"not there at zxid {view.zxid_last}")
        if kind == "partition":
            found[kind, key, field] = _state(view, partitions.get(key), key, field) or absent
        elif kind == "broker":
            znode = view.brokers.get(NodeId(int(key)))
            found[kind, key, field] = Sighting(znode, f"/brokers/ids/{key}, czxid {znode.epoch}") if znode else absent
        elif (kind, key, field) in entities:
            value, path = entities[kind, key, field]
            mzxid = view.mzxids.get(path, -1)
            found[kind, key, field] = Sighting((value, path, mzxid), f"{path}, mzxid {mzxid}" if mzxid >= 0 else path)
        else:
            found[kind, key, field] = absent
    return found


def in_kraft(view: KraftView, rows: Iterable[Difference]) -> Mapping[RowKey, Sighting]:
    """Each row's object in the metadata image: its record or partition epoch, or that it is not there (pure)."""
    wanted = {row_key(row) for row in rows}
    partitions = _partitions(view.partitions, wanted)
    entities = _entities(view.entities, wanted)
    image = f"image at metadata offset {view.offset}"
    found: dict[RowKey, Sighting] = {}
    for kind, key, field in wanted:
        seen = Sighting(None, f"not in the {image}")
        if kind == "partition" and key in partitions:
            stamp = _values(view.partitions, partitions[key])
            seen = Sighting(stamp, f"{image}, partition epoch {view.partitions.revision[partitions[key]]}")
        elif kind == "broker" and NodeId(int(key)) in view.brokers:
            broker = view.brokers[NodeId(int(key))]
            seen = Sighting(broker, f"{image}, broker epoch {broker.epoch}")
        elif kind == "feature" and key in view.features:
            seen = Sighting(view.features[key], image)
        elif (kind, key, field) in entities:
            stamp = entities[kind, key, field]
            seen = Sighting(stamp, f"{image}, {stamp[1]}" if stamp[1] else image)
        found[kind, key, field] = seen
    return found


def _state(view: ZookeeperView, index: int | None, key: str, field: str) -> Sighting | None:
    if index is None:
        return None
    topic, _, number = key.rpartition("-")
    path, mzxid = f"/brokers/topics/{topic}", view.mzxids.get(f"/brokers/topics/{topic}", -1)
    if field not in IN_TOPIC_ZNODE:
        path, mzxid = f"{path}/partitions/{number}/state", view.partitions.revision[index]
    return Sighting(_values(view.partitions, index), f"{path}, mzxid {mzxid}" if mzxid >= 0 else path)


def _partitions(columns: PartitionColumns, wanted: Iterable[RowKey]) -> dict[str, int]:
    """Key -> index, of the wanted partitions."""
    keys = {key for kind, key, _ in wanted if kind == "partition"}
    if not keys:
        return {}
    topics = {key.rpartition("-")[0] for key in keys}
    named = enumerate(zip(columns.topic, columns.partition, strict=True))
    found = {f"{topic}-{number}": index for index, (topic, number) in named if topic in topics}
    return {key: found[key] for key in keys if key in found}


def _values(columns: PartitionColumns, index: int) -> Hashable:
    lists = (columns.replicas, columns.isr, columns.adding, columns.removing)
    plain = (columns.topic_id, columns.leader, columns.leader_epoch, columns.recovery_state, columns.revision)
    return *(tuple(column[index]) for column in lists), *(column[index] for column in plain)


def _entities(columns: EntityColumns, wanted: set[RowKey]) -> dict[RowKey, tuple[str, str]]:
    """Value and where, of the wanted rows."""
    keys = zip(columns.kind, columns.key, columns.name, strict=True)
    return {key: (columns.value[at], columns.where[at]) for at, key in enumerate(keys) if key in wanted}
