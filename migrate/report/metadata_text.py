"""A metadata image, and what the files of both sides agree on, as JSON and as text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from migrate.model.difference import Difference
from migrate.model.ids import directory_name
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView
from migrate.observe.agreement import Agreement

FIXED_KINDS: Final = ("brokers", "controllers", "features", "topics", "partitions")
ENTITY_KINDS: Final = (
    "topic-config",
    "broker-config",
    "client-quota",
    "scram",
    "acl",
    "delegation-token",
    "producer-ids",
)
OTHER: Final = "other"  # entity kinds that Kafka 3.9 knows and ZooKeeper never had
KINDS: Final = (*FIXED_KINDS, *ENTITY_KINDS, OTHER)


def image_json(view: KraftView, kinds: Collection[str], notes: Sequence[str]) -> dict[str, Any]:
    """The image as one JSON object; `kinds` limits what follows the counts (empty: everything).

    `cluster_id` is null where unknown.
    """
    parts = _parts(view)
    (here,) = parts.pop("metadata")
    return {
        **here,
        "cluster_id": view.cluster_id or None,
        "notes": list(notes),
        "counts": counts(view),
        **{name: rows for name, rows in parts.items() if not kinds or name in kinds},
    }


def counts(view: KraftView) -> dict[str, int]:
    """How many of each kind there are; MIGRATING, UNASSIGNED and LOST replicas each by name."""
    named: dict[str, int] = {"MIGRATING": 0, "UNASSIGNED": 0, "LOST": 0}
    for listed in view.partitions.directories:
        for name in map(directory_name, listed):
            if name in named:
                named[name] += 1
    entities = view.entities.counts()
    return {
        "brokers": len(view.brokers),
        "controllers": len(view.controllers),
        "topics": entities.pop("topic", 0),
        "partitions": len(view.partitions),
        "replicas": view.partitions.replica_count(),
        **{f"replicas {name}": count for name, count in named.items()},
        **{kind: count for kind, count in entities.items() if kind != "broker"},
    }


def _parts(view: KraftView) -> dict[str, list[dict[str, Any]]]:
    return {
        **view.rows(),
        "topics": [
            {"topic": entry["key"], **entry["values"], "where": entry["where"]} for entry in _entities(view, "topic")
        ],
        "partitions": list(_partitions(view)),
        **{kind: list(_entities(view, kind)) for kind in ENTITY_KINDS},
        OTHER: list(_entities(view, None)),
    }


def _partitions(view: KraftView) -> Iterator[dict[str, Any]]:
    columns = view.partitions
    for index in range(len(columns)):
        yield {
            "topic": columns.topic[index],
            "topic_id": columns.topic_id[index],
            "partition": columns.partition[index],
            "leader": columns.leader[index],
            "leader_epoch": columns.leader_epoch[index],
            "partition_epoch": columns.revision[index],
            "recovery_state": columns.recovery_state[index],
            "replicas": columns.replicas[index],
            "isr": columns.isr[index],
            "adding": columns.adding[index],
            "removing": columns.removing[index],
            "directories": [directory_name(entry) for entry in columns.directories[index]],
        }


def _entities(view: KraftView, kind: str | None) -> Iterator[dict[str, Any]]:
    """The entities of a kind (None: of those that have no name here), each with its values."""
    columns = view.entities
    known = {*ENTITY_KINDS, "topic", "broker"}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in zip(columns.kind, columns.key, columns.name, columns.value, columns.where, strict=True):
        if row[0] == kind or (kind is None and row[0] not in known):
            head = {"kind": row[0]} if kind is None else {}
            entry = found.setdefault(row[:2], {**head, "key": row[1], "values": {}, "where": row[4]})
            entry["values"][row[2]] = row[3]
    yield from found.values()


def image_lines(view: KraftView, kinds: Collection[str], notes: Sequence[str]) -> Iterator[str]:
    """The image as text: where it stands, counts, notes, and one line an object."""
    shown = image_json(view, kinds, notes)
    yield f"cluster {shown['cluster_id'] or '?'}, metadata offset {view.offset}, epoch {view.epoch}, {view.source}"
    yield (
        shown["unproven"]
        if shown["unproven"] is not None
        else f"committed: everything below offset {shown['high_watermark']}"
    )
    yield f"migration state {view.migration_state.name}"
    yield ", ".join(f"{name} {count}" for name, count in shown["counts"].items())
    yield from (f"note: {note}" for note in notes)
    for kind in KINDS:
        rows = shown.get(kind, ())
        if rows:
            yield ""
            yield f"{kind}:"
            yield from (f"  {_line(row)}" for row in rows)


def _line(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{name} {_text(value)}" for name, value in row.items() if value not in (None, [], {}))


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={entry}" for name, entry in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


SHOWN: Final = 40
EARLY: Final = "fingerprints say where the two differ and prove nothing: a gate compares every field"


def agreement_notes(zookeeper: ZookeeperView, image: KraftView) -> list[str]:
    """What a reader must know of the two before the answer."""
    notes = []
    if image.migration_state is not ZkMigrationState.MIGRATION:
        notes.append(f"dual write keeps both equal in MIGRATION alone; the metadata says {image.migration_state.name}")
    passed = zookeeper.migration.offset if isinstance(zookeeper.migration, MigrationZnode) else -1
    if passed < image.offset:
        notes.append(
            f"ZooKeeper's files contain dual write up to metadata offset {passed}; the metadata continues to "
            f"{image.offset}"
        )
    return [*notes, *zookeeper.blind_spots, EARLY]


def agreement_json(found: Agreement, image: KraftView, zxid: int, notes: Sequence[str]) -> dict[str, Any]:
    """Everything, schema 1."""
    return {
        "equal": found.equal,
        "offset": image.offset,
        "zxid": zxid,
        "equal_partitions": found.partitions,
        "topics": list(found.topics),
        "differences": [_row(row) for row in found.others],
        "topics_being_deleted": list(found.deleting),
        "excused": [{**_row(row), "rule": row.rule} for row in found.excused],
        "notes": list(notes),
    }


def _row(row: Difference) -> dict[str, Any]:
    return {"kind": row.kind, "key": row.key, "field": row.field, "zookeeper": row.zookeeper, "kraft": row.kraft}


def agreement_lines(found: Agreement, image: KraftView, zxid: int, notes: Sequence[str]) -> Iterator[str]:
    """The answer first, then what differs, at most forty of each."""
    word = "equal" if found.equal else "not equal"
    yield f"{word}: ZooKeeper after zxid 0x{zxid:x}, the metadata at offset {image.offset}"
    yield f"  {found.partitions} partitions of topics that are the same on both sides"
    for name in found.topics[:SHOWN]:
        yield f"  topic {name}: its partitions differ, or one side does not have it"
    for row in found.others[:SHOWN]:
        yield f"  {row.kind} {row.key} {row.field}: ZooKeeper {_value(row.zookeeper)}, KRaft {_value(row.kraft)}"
    more = max(0, len(found.topics) - SHOWN) + max(0, len(found.others) - SHOWN)
    if more:
        yield f"  and {more} more: see --output json"
    if found.excused or found.deleting:
        rules = ", ".join(sorted({row.rule for row in found.excused}))
        yield f"  {len(found.excused)} differences are expected by rules ({rules})"
    for note in notes:
        yield f"note: {note}"


def _value(value: str | None) -> str:
    return "has none" if value is None else f"has {value!r}"
