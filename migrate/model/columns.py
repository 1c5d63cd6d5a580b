"""Tables as columns: partitions by the hundred thousand are lists of plain values, never objects."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

UNREADABLE_TOPIC_ID: Final = "?"  # ReplicaColumns: partition.metadata is there and cannot be read


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """One entry a partition in each list; all lists have one length.

    `topic_id` is "" where ZooKeeper has none.  `leader` -1 is none.  `directories` holds one directory id a replica
    (KRaft) or is an empty list an entry (ZooKeeper).  `revision` is the mzxid of the state znode (ZooKeeper; -1 where
    the state znode is missing) or the partition epoch (KRaft).
    """

    topic: list[str] = field(default_factory=list)
    topic_id: list[str] = field(default_factory=list)
    partition: list[int] = field(default_factory=list)
    replicas: list[list[int]] = field(default_factory=list)
    isr: list[list[int]] = field(default_factory=list)
    adding: list[list[int]] = field(default_factory=list)
    removing: list[list[int]] = field(default_factory=list)
    leader: list[int] = field(default_factory=list)
    leader_epoch: list[int] = field(default_factory=list)
    recovery_state: list[int] = field(default_factory=list)
    directories: list[list[str]] = field(default_factory=list)
    revision: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.topic)

    def replica_count(self) -> int:
        return sum(map(len, self.replicas))

    def rows_of(self, broker: int) -> Iterator[int]:
        return (index for index, replicas in enumerate(self.replicas) if broker in replicas)

    def reassigned(self) -> Iterator[str]:
        """`topic-partition` of each whose replicas are being added or removed (KIP-455)."""
        rows = zip(self.topic, self.partition, self.adding, self.removing, strict=True)
        return (f"{topic}-{number}" for topic, number, adding, removing in rows if adding or removing)

    def directory_of(self, index: int, place: int) -> str:
        """The directory that is named for the replica at that place of a partition's list; "" for none."""
        named = self.directories[index] if index < len(self.directories) else []
        return named[place] if place < len(named) else ""


@dataclass(frozen=True, slots=True)
class EntityColumns:
    """Everything that is not a partition, as (kind, key, name, value) rows: one entry each in the lists.

    Kinds: `topic`, `topic-config`, `broker-config`, `client-quota`, `scram`, `acl`, `delegation-token`,
    `producer-ids`, `feature`.  Both views spell keys, names and values in the same way (see each reader), secrets
    stand as keyed digests.  `where` is the znode (ZooKeeper) or the record's offset (KRaft), for messages.
    """

    kind: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    value: list[str] = field(default_factory=list)
    where: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.kind)

    def add(self, kind: str, key: str, name: str, value: str, where: str = "") -> None:
        """Append one row (only while the view is being built)."""
        self.kind.append(kind)
        self.key.append(key)
        self.name.append(name)
        self.value.append(value)
        self.where.append(where)

    def cut(self, length: int) -> None:
        """Take back all rows after the first `length` (only while the view is being built)."""
        for column in (self.kind, self.key, self.name, self.value, self.where):
            del column[length:]

    def counts(self) -> dict[str, int]:
        keys: dict[str, set[str]] = {}
        for kind, key in zip(self.kind, self.key, strict=True):
            keys.setdefault(kind, set()).add(key)
        return {kind: len(found) for kind, found in sorted(keys.items())}


@dataclass(frozen=True, slots=True)
class ReplicaColumns:
    """Replica folders found on disks: one entry a folder in each list.

    `kind` is `current`, `future`, `deleted` or `stray`; `topic_id` is "" where `partition.metadata` is missing and
    `?` where it cannot be read.  `size` is in bytes.
    """

    topic: list[str] = field(default_factory=list)
    partition: list[int] = field(default_factory=list)
    topic_id: list[str] = field(default_factory=list)
    kind: list[str] = field(default_factory=list)
    folder: list[str] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.topic)


class _Paused:
    """How many blocks are at work, in all threads; and was the collector on before the first?"""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.was_on = False


_PAUSED = _Paused()


@contextmanager
def unswept() -> Iterator[None]:
    """Let Python look for no cycles while the block runs, in any thread: for blocks that end within a minute.

    The collector looks at all containers each time that their number has grown by a quarter.  While a view of twenty
    thousand partitions is built that is a third of the work, and finds nothing: lists of numbers hold no cycles.
    """
    with _PAUSED.lock:
        if not _PAUSED.blocks:
            _PAUSED.was_on = gc.isenabled()
            gc.disable()
        _PAUSED.blocks += 1
    try:
        yield
    finally:
        with _PAUSED.lock:
            _PAUSED.blocks -= 1
            if not _PAUSED.blocks and _PAUSED.was_on:
                gc.enable()
