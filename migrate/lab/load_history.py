"""The load's history on disk: every record id before it is sent, and again when it is acknowledged.

One file an epoch (`history-0001.bin`; a restarted load begins a new one): a line of JSON, then entries of 32 bytes,
each one write, so that a killed process leaves whole entries and at most one torn tail.  Nothing is fsynced: the
history has to survive the process, not the host.  A record's id is (epoch, sequence); its value names the load's tag
too, so that records of another load, or of none, are never mistaken for ours.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple, Self

from migrate.errors import LoadHistoryBroken

FORMAT: Final = 1
ENTRY: Final = struct.Struct(">BxHIQdq")  # kind, topic's index, partition, sequence, time, offset
VALUE: Final = struct.Struct(">4s8sIQ")  # magic, tag, epoch, sequence
VALUE_MAGIC: Final = b"KMLD"
TAG_BYTES: Final = 8
PADDING: Final = b"." * 76  # a record of 100 bytes, so that segments grow at a believable pace
CHUNK: Final = ENTRY.size * 4096
_NAME: Final = re.compile(r"history-(\d{4,})\.bin")


class Kind(IntEnum):
    """What happened to a record: SENT is written before it is handed to the producer."""

    SENT = 1
    ACKED = 2
    FAILED = 3  # the producer gave up: it may be there or not
    CLOSED = 4  # the load ended by itself; no record


_KINDS: Final = frozenset(int(kind) for kind in Kind)


class Entry(NamedTuple):
    """One entry; `time` in seconds since the epoch, `offset` -1 unless acknowledged."""

    kind: int
    topic: int
    partition: int
    sequence: int
    time: float
    offset: int


@dataclass(frozen=True, slots=True)
class LoadTopic:
    """A topic of the load as it was when the load began."""

    name: str
    partitions: int
    replication_factor: int

    @property
    def claimed(self) -> bool:
        """Must the topic lose nothing?  With one replica Kafka cannot guarantee that."""
        return self.replication_factor > 1


@dataclass(frozen=True, slots=True)
class HistoryHead:
    """The first line of a history: whose records, which epoch, which topics (entries name them by index)."""

    tag: bytes
    epoch: int
    topics: tuple[LoadTopic, ...]

    def line(self) -> bytes:
        topics = [[topic.name, topic.partitions, topic.replication_factor] for topic in self.topics]
        data = {"format": FORMAT, "tag": self.tag.hex(), "epoch": self.epoch, "topics": topics}
        return json.dumps(data, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes, where: str) -> Self:
        """Read such a line; LoadHistoryBroken for anything else."""
        try:
            data = json.loads(line)
            if data["format"] != FORMAT:
                raise LoadHistoryBroken(f"history format {data['format']!r}, this version reads {FORMAT}", where=where)
            topics = tuple(LoadTopic(str(name), int(count), int(factor)) for name, count, factor in data["topics"])
            return cls(bytes.fromhex(data["tag"]), int(data["epoch"]), topics)
        except (ValueError, KeyError, TypeError) as error:
            raise LoadHistoryBroken(f"the first line is no history's: {error!r}", where=where) from error


def record_value(tag: bytes, epoch: int, sequence: int) -> bytes:
    return VALUE.pack(VALUE_MAGIC, tag, epoch, sequence) + PADDING


def record_id(value: bytes | None, tag: bytes) -> tuple[int, int] | None:
    """(epoch, sequence) of a record of this load, None for any other record."""
    if value is None or len(value) != VALUE.size + len(PADDING):
        return None
    magic, found, epoch, sequence = VALUE.unpack_from(value)
    return (epoch, sequence) if magic == VALUE_MAGIC and found == tag else None


class HistoryWriter:
    """Appends to one epoch's history; each entry is one unbuffered write.  Not for several threads."""

    def __init__(self, folder: Path, tag: bytes, topics: tuple[LoadTopic, ...]) -> None:
        self.head, self._file = _next_epoch(folder, tag, topics)

    def write(self, topic: int, partition: int, sequence: int, kind: Kind, time: float, offset: int = -1) -> None:
        self._file.write(ENTRY.pack(kind, topic, partition, sequence, time, offset))

    def close(self, time: float) -> None:
        """Record that the load ended regularly."""
        self.write(0, 0, 0, Kind.CLOSED, time)
        self._file.close()


def _next_epoch(folder: Path, tag: bytes, topics: tuple[LoadTopic, ...]) -> tuple[HistoryHead, io.FileIO]:
    epoch = max((number for number, _ in histories(folder)), default=0) + 1
    head = HistoryHead(tag, epoch, topics)
    draft = folder / f".history-{epoch:04d}.{os.getpid()}"
    handle = io.FileIO(draft, "w")
    handle.write(head.line())
    os.link(draft, folder / f"history-{epoch:04d}.bin")  # appears whole, and fails where another took the epoch
    draft.unlink()
    return head, handle


def histories(folder: Path) -> list[tuple[int, Path]]:
    """(epoch, path) of all histories, in order."""
    found = ((match, path) for path in folder.glob("history-*.bin") if (match := _NAME.fullmatch(path.name)))
    return sorted((int(match[1]), path) for match, path in found)


def read_head(path: Path) -> HistoryHead:
    """The first line of a history."""
    with path.open("rb") as handle:
        return HistoryHead.parse(handle.readline(), str(path))


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a history in order, in constant memory; a torn last one is left out.

    Raises:
        LoadHistoryBroken: something in it is no entry.
    """
    with path.open("rb") as handle:
        handle.readline()
        position = handle.tell()
        rest = b""
        while chunk := handle.read(CHUNK):
            block = rest + chunk
            whole = len(block) - len(block) % ENTRY.size
            for fields in ENTRY.iter_unpack(block[:whole]):
                entry = Entry._make(fields)
                if entry.kind not in _KINDS:
                    raise LoadHistoryBroken(f"kind {entry.kind} at byte {position}", where=str(path))
                position += ENTRY.size
                yield entry
            rest = block[whole:]
