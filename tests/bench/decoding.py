"""Races of the reference decoders: metadata records, and a ZooKeeper snapshot."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any, Final

from migrate.kraft.files import read_batches
from migrate.protocol.records import decode_record
from migrate.zookeeper.offline.snapshot import Snapshot, read_snapshot
from migrate.zookeeper.offline.tree import OPEN_ACL
from tests.bench import files, peers
from tests.bench.races import Race, Work

CHECKPOINT: Final = f"{10**6:020d}-{files.EPOCH:010d}.checkpoint"
SNAPSHOT: Final = "snapshot.7fffffff"

Record = tuple[int, int, dict[str, Any]]


def digest(rows: Iterable[object]) -> str:
    """One hash for all rows, in their order."""
    found = hashlib.sha256()
    for row in rows:
        found.update(repr(row).encode())
    return found.hexdigest()


# -- metadata records ------------------------------------------------------------------------------------------------
@contextmanager
def a_checkpoint(folder: Path, size: int) -> Iterator[None]:
    """The file of both."""
    files.checkpoint(folder / CHECKPOINT, size)
    yield


def records(path: Path) -> Iterator[Record]:
    """As our reader gives them, one batch in memory at a time."""
    for batch in read_batches(path):
        if not batch.control:
            for _, _, value in batch.records():
                table, version, values = decode_record(value)
                yield table.key, version, values


@contextmanager
def our_records(folder: Path, _size: int) -> Iterator[Work]:
    """Every record through the tables."""
    path = folder / CHECKPOINT
    yield Work(lambda: deque(records(path), maxlen=0), lambda _: digest(records(path)), clock=process_time)


@contextmanager
def their_records(folder: Path, _size: int) -> Iterator[Work]:
    """Every record by the loop."""
    path = folder / CHECKPOINT
    found = peers.metadata_records
    yield Work(lambda: deque(found(path), maxlen=0), lambda _: digest(found(path)), clock=process_time)


# -- a snapshot of ZooKeeper -----------------------------------------------------------------------------------------
@contextmanager
def a_snapshot(folder: Path, size: int) -> Iterator[None]:
    """The file of both."""
    files.zookeeper_snapshot(folder / SNAPSHOT, size)
    yield


@contextmanager
def our_snapshot(folder: Path, _size: int) -> Iterator[Work]:
    """The tree, checked: parents, no znode twice, the newest zxid; ready for transactions to be replayed on it."""

    def told(snapshot: Snapshot) -> str:
        assert all(node.acl == OPEN_ACL for node in snapshot.tree.nodes.values())
        return digest((path, node.data, files.OPEN, node.stat) for path, node in snapshot.tree.nodes.items())

    yield Work(lambda: read_snapshot(folder / SNAPSHOT, 0x7FFFFFFF), told, clock=process_time)


@contextmanager
def their_snapshot(folder: Path, _size: int) -> Iterator[Work]:
    """A dictionary."""

    def told(found: dict[str, tuple[bytes | None, int, bytes]]) -> str:
        return digest((path, *rest) for path, rest in found.items())

    yield Work(lambda: peers.snapshot_znodes(folder / SNAPSHOT), told, clock=process_time)


RACES: Final = (
    Race(
        "metadata records",
        50_000,
        promise=1.5,
        at_most=True,
        around=a_checkpoint,
        sides={"ours": our_records, "peer": their_records},
        note="a struct loop for exactly these record types and versions",
    ),
    Race(
        "ZooKeeper snapshot",
        50_000,
        promise=1.5,
        at_most=True,
        around=a_snapshot,
        sides={"ours": our_snapshot, "peer": their_snapshot},
        note="a struct loop into a dictionary; the whole tree is kept, for transactions are replayed on it",
    ),
)
