"""What the files of both sides agree on, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from migrate.model.difference import Difference
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView
from migrate.observe.agreement import Agreement

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
            f"ZooKeeper's files hold what dual write had done up to metadata offset {passed}; the metadata go on to "
            f"{image.offset}"
        )
    return [*notes, *zookeeper.blind_spots, EARLY]


def agreement_json(found: Agreement, image: KraftView, zxid: int, notes: Sequence[str]) -> dict[str, Any]:
    """Everything, schema 1."""
    return {
        "schema": 1,
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
        yield f"  {len(found.excused)} differences are excused by rules ({rules})"
    for note in notes:
        yield f"note: {note}"


def _value(value: str | None) -> str:
    return "has none" if value is None else f"has {value!r}"
