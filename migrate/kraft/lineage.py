"""The history of one metadata log: which epoch wrote which offsets, told by its batches.

No CRC covers a batch's epoch.  These rules do: epochs never go back; an epoch begins with its leader's LEADER_CHANGE
and nothing else raises it (`KafkaRaftClient.onBecomeLeader`); a snapshot's epoch is that of the record before its end;
no log is newer than the epoch in its quorum-state.  One hole is left: a log that ends with the LEADER_CHANGE itself.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

from migrate.errors import BatchError, DecodeError, SnapshotError
from migrate.kraft.files import MetadataFiles, QuorumState, Snapshot, find, read_quorum_state
from migrate.protocol.batches import CRC_FROM, Batch, Idle
from migrate.protocol.records import KRAFT_VOTERS, LEADER_CHANGE, decode_control

_CRC: Final = slice(CRC_FROM - 4, CRC_FROM)


class Last(NamedTuple):
    """The end of a log, as the next batch must fit to it."""

    last_offset: int
    epoch: int


class Marks:
    """Of each batch what a copy of it must equal, in columns: replicas of the log hold the same batches, byte for byte.

    A log of a week has a million batches, nearly all of them NoOps: 24 bytes each here.
    """

    __slots__ = ("bases", "crcs", "epochs", "lasts")

    def __init__(self) -> None:
        self.bases, self.lasts, self.epochs = array("q"), array("q"), array("q")
        self.crcs = bytearray()

    def __len__(self) -> int:
        return len(self.bases)

    def add(self, batch: Batch | Idle) -> None:
        """One batch, or NoOps in a row."""
        if isinstance(batch, Idle):
            offsets = range(batch.base_offset, batch.last_offset + 1)
            self.bases.extend(offsets)
            self.lasts.extend(offsets)
            self.epochs.extend(repeat(batch.epoch, len(offsets)))
            self.crcs += batch.crcs
        else:
            self.bases.append(batch.base_offset)
            self.lasts.append(batch.last_offset)
            self.epochs.append(batch.epoch)
            self.crcs += batch.raw[_CRC]

    def after(self, offset: int) -> int:
        """The index of the first batch that holds something from that offset on."""
        return bisect_right(self.lasts, offset - 1)

    def parts(self, other: Marks, first: int, others_first: int) -> int | None:
        """The lower base offset of the first pair of batches that differ, from those indexes on; None where none do."""
        low, end = 0, min(len(self) - first, len(other) - others_first)
        if self._same(other, first, others_first, end):
            return None
        while end - low > 1:  # all below `low` are equal, and not all below `end`
            middle = (low + end) // 2
            if self._same(other, first + low, others_first + low, middle - low):
                low = middle
            else:
                end = middle
        return min(self.bases[first + low], other.bases[others_first + low])

    def _same(self, other: Marks, first: int, others_first: int, count: int) -> bool:
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("bases", "lasts", "epochs"))
        return all(
            _bytes(mine, 8, first, count) == _bytes(theirs, 8, others_first, count) for mine, theirs in pairs
        ) and _bytes(self.crcs, 4, first, count) == _bytes(other.crcs, 4, others_first, count)


def _bytes(column: array[int] | bytearray, size: int, first: int, count: int) -> memoryview:
    return memoryview(column).cast("B")[size * first : size * (first + count)]


@dataclass(frozen=True, slots=True)
class Lineage:
    """A log's batches, from `start` to `end` (exclusive), and the snapshots beside it.

    `voters` are those that the log itself names last: KRaftVotersRecord, else the last leader change.
    """

    where: str
    marks: Marks
    snapshots: tuple[Snapshot, ...]
    voters: frozenset[int]

    @property
    def start(self) -> int:
        """The first offset of the log; where there is none, the end of the newest snapshot."""
        return self.marks.bases[0] if self.marks else self.end

    @property
    def end(self) -> int:
        """The log end offset (exclusive)."""
        if self.marks:
            return self.marks.lasts[-1] + 1
        return self.snapshots[-1].end_offset if self.snapshots else 0

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; -1 for none."""
        if self.marks:
            return self.marks.epochs[-1]
        return self.snapshots[-1].epoch if self.snapshots else -1

    def epoch_of(self, offset: int) -> int | None:
        """The epoch that wrote that offset; None where neither the log nor a snapshot's name tells."""
        index = bisect_right(self.marks.bases, offset) - 1
        if index >= 0 and offset <= self.marks.lasts[index]:
            return self.marks.epochs[index]
        return next((found.epoch for found in self.snapshots if found.end_offset - 1 == offset), None)


@dataclass(frozen=True, slots=True)
class MetadataDirectory:
    """One node's metadata directory, read through.

    `node` and `identity` are node.id and directory.id of its meta.properties, None where it does not say.
    """

    files: MetadataFiles
    node: int | None
    identity: str | None
    lineage: Lineage
    quorum: QuorumState | None

    @property
    def voters(self) -> frozenset[int]:
        """The quorum's voters as this directory knows them; empty where it does not."""
        if self.quorum is not None and self.quorum.voters:
            return frozenset(self.quorum.voters)
        return self.lineage.voters

    @property
    def name(self) -> str:
        """For messages."""
        return str(self.files.path)


def read_directory(path: Path, node: int | None = None, identity: str | None = None) -> MetadataDirectory:
    """Read all batches of a metadata directory, and hold them to the rules on epochs.

    quorum-state is read after the log: a running node writes it before it takes records of a new epoch.  Raises
    BatchError and its kinds, SnapshotError, MetadataFileError, WorldError.
    """
    files = find(path)
    lineage = _lineage(files)
    quorum = read_quorum_state(files.quorum_state) if files.quorum_state is not None else None
    if quorum is not None and lineage.last_epoch > quorum.leader_epoch:
        what = f"the log ends in epoch {lineage.last_epoch}, and quorum-state knows {quorum.leader_epoch} only"
        raise BatchError(what, where=str(path))
    return MetadataDirectory(files, node, identity, lineage, quorum)


def _lineage(files: MetadataFiles) -> Lineage:
    from migrate.kraft.idle import read_stretches  # noqa: PLC0415 - numpy: `status` does without

    marks = Marks()
    last: Last | None = None
    voters: frozenset[int] = frozenset()
    written = False  # by a KRaftVotersRecord, which counts for more than a leader change
    for batch in (batch for segment in files.segments for batch in read_stretches(segment.path)):
        tables = [] if isinstance(batch, Idle) else _control_tables(batch)
        _check(batch, last, leads=bool(tables) and tables[0][0] is LEADER_CHANGE)
        for table, named in tables:
            if table is KRAFT_VOTERS or (table is LEADER_CHANGE and not written):
                voters, written = named, table is KRAFT_VOTERS
        marks.add(batch)
        last = Last(batch.last_offset, batch.epoch)
    newest = files.snapshots[-1] if files.snapshots else None
    if newest is not None and last is not None and newest.end_offset > last.last_offset + 1:
        marks = Marks()  # a fetched snapshot has overtaken the log, which the node throws away at its next start
    lineage = Lineage(str(files.path), marks, files.snapshots, voters)
    for snapshot in files.snapshots:
        _check_snapshot(snapshot, lineage)
    return lineage


def _control_tables(batch: Batch) -> list[tuple[object, frozenset[int]]]:
    """Tables of the batch's control records, with the voters that they name; empty for a data batch."""
    found: list[tuple[object, frozenset[int]]] = []
    for _, key, value in batch.records() if batch.control else ():
        try:
            _, table, _, values = decode_control(key, value)
        except DecodeError as error:
            raise type(error)(error.what, where=batch.place) from error
        found.append((table, frozenset(voter["voterId"] for voter in values.get("voters", ()))))
    return found


def _check(batch: Batch | Idle, before: Last | None, *, leads: bool) -> None:
    if before is None:
        return
    if batch.base_offset != before.last_offset + 1:
        what = f"a batch begins at offset {batch.base_offset}; {before.last_offset + 1} was due"
        raise BatchError(what, where=batch.place)
    if batch.epoch < before.epoch:
        raise BatchError(f"a batch of epoch {batch.epoch} follows one of epoch {before.epoch}", where=batch.place)
    if (batch.epoch > before.epoch) != leads:
        what = (
            f"a leader change within epoch {batch.epoch}"
            if leads
            else f"epoch {batch.epoch} begins after epoch {before.epoch} without its leader change"
        )
        raise BatchError(what, where=batch.place)


def _check_snapshot(snapshot: Snapshot, lineage: Lineage) -> None:
    epoch = lineage.epoch_of(snapshot.end_offset - 1)
    if epoch != snapshot.epoch:
        what = f"the snapshot's name says epoch {snapshot.epoch}; its last offset was written in epoch {epoch}"
        raise SnapshotError(what, where=str(snapshot.path))


def common_end(one: Lineage, other: Lineage) -> int:
    """The offset (exclusive) up to which both are one history.

    Below the later start both were committed once: a log begins late only behind a snapshot, and snapshots hold
    committed records alone.  Such a snapshot's name must still agree with the other's epochs.
    """
    low = max(one.start, other.start)
    for log, beside in ((one, other), (other, one)):
        if _contradicts(log, beside.snapshots):
            return min(low, one.end, other.end, log.start)
    parted = one.marks.parts(other.marks, one.marks.after(low), other.marks.after(low))
    return min(one.end, other.end) if parted is None else parted


def _contradicts(log: Lineage, snapshots: Iterable[Snapshot]) -> bool:
    found = ((entry.epoch, log.epoch_of(entry.end_offset - 1)) for entry in snapshots)
    return any(epoch is not None and epoch != named for named, epoch in found)
