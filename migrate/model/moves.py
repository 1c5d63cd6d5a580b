"""Moves between the directories of one broker (AlterReplicaLogDirs), as its disks show them (pure).

A move is a future copy in one directory that follows the current one in another; the broker swaps them when it has
caught up.  A KRaft broker that starts in between makes the future copy the current one where the metadata names its
directory, whole or not (KAFKA-16082, `LogManager.recoverAbandonedFutureLogs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks
from migrate.model.words import plural

CURRENT, FUTURE = "current", "future"
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Move:
    """One future copy: `done` of `total` bytes; `source` is "" and `total` -1 where no healthy directory has a copy."""

    broker: int
    topic: str
    partition: int
    source: str
    target: str
    folder: str
    done: int
    total: int

    def __str__(self) -> str:
        size = f"{self.done} bytes" if self.total < 0 else f"{self.done} of {self.total} bytes"
        return (
            f"{self.topic}-{self.partition} on broker {self.broker} from {self.source or 'nowhere'} to {self.target} "
            f"({size})"
        )


def moves_of(disks: BrokerDisks) -> Iterator[Move]:
    """The broker's moves, in the order of its directories."""
    current: dict[tuple[str, int], tuple[str, int]] = {}
    future: list[tuple[tuple[str, int], str, str, int]] = []
    for directory in disks.directories:
        rows = directory.replicas
        for topic, partition, kind, folder, size in zip(
            rows.topic, rows.partition, rows.kind, rows.folder, rows.size, strict=True
        ):
            if kind == FUTURE:
                future.append(((topic, partition), directory.path, folder, size))
            elif kind == CURRENT and not directory.problem:
                current[topic, partition] = (directory.path, size)
    for (topic, partition), target, folder, done in future:
        source, total = current.get((topic, partition), ("", -1))
        yield Move(int(disks.broker), topic, partition, source, target, folder, done, total)


def moves(disks: Mapping[NodeId, BrokerDisks | Unknown] | Unknown) -> tuple[Move, ...] | Unknown:
    """All moves; Unknown where one broker's disks are."""
    if isinstance(disks, Unknown):
        return disks
    found: list[Move] = []
    for node, seen in disks.items():
        if isinstance(seen, Unknown):
            return Unknown(f"whether replicas move between directories of broker {int(node)} is unknown: {seen.reason}")
        found += moves_of(seen)
    return tuple(found)


def told(found: Sequence[Move]) -> str:
    """How many, and the first of them in full."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{plural(len(found), 'move')} between directories: {'; '.join(map(str, found[:SHOWN]))}{more}"
