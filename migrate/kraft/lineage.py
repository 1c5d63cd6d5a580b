"""The history of one metadata log: which epoch wrote which offsets, told by its batches.

No CRC covers a batch's epoch.  These rules do: epochs never go back; an epoch begins with its leader's LEADER_CHANGE
and nothing else raises it (`KafkaRaftClient.onBecomeLeader`); a snapshot's epoch is that of the record before its end;
no log is newer than the epoch in its quorum-state.  One hole is left: a log that ends with the LEADER_CHANGE itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from migrate.errors import BatchError, DecodeError, SnapshotError
from migrate.kraft.files import MetadataFiles, QuorumState, Snapshot, find, read_batches, read_quorum_state
from migrate.protocol.batches import CRC_FROM, Batch
from migrate.protocol.records.control import KRAFT_VOTERS, LEADER_CHANGE, decode_control

_CRC: Final = slice(CRC_FROM - 4, CRC_FROM)


class Mark(NamedTuple):
    """One batch: what a copy of it must equal.  Replicas of the log hold the same batches, byte for byte."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: bytes


@dataclass(frozen=True, slots=True)
class Lineage:
    """A log's batches, from `start` to `end` (exclusive), and the snapshots beside it.

    `voters` are those that the log itself names last: KRaftVotersRecord, else the last leader change.
    """

    where: str
    marks: tuple[Mark, ...]
    snapshots: tuple[Snapshot, ...]
    voters: frozenset[int]

    @property
    def start(self) -> int:
        """The first offset of the log; where there is none, the end of the newest snapshot."""
        return self.marks[0].base_offset if self.marks else self.end

    @property
    def end(self) -> int:
        """The log end offset (exclusive)."""
        if self.marks:
            return self.marks[-1].last_offset + 1
        return self.snapshots[-1].end_offset if self.snapshots else 0

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; -1 for none."""
        if self.marks:
            return self.marks[-1].epoch
        return self.snapshots[-1].epoch if self.snapshots else -1

    def epoch_of(self, offset: int) -> int | None:
        """The epoch that wrote that offset; None where neither the log nor a snapshot's name tells."""
        index = bisect_right(self.marks, offset, key=lambda mark: mark.base_offset) - 1
        if index >= 0 and offset <= self.marks[index].last_offset:
            return self.marks[index].epoch
        return next((found.epoch for found in self.snapshots if found.end_offset - 1 == offset), None)


@dataclass(frozen=True, slots=True)
class MetadataDirectory:
    """One node's metadata directory, read through.  `node` is its id, None where no meta.properties tells."""

    files: MetadataFiles
    node: int | None
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


def read_directory(path: Path, node: int | None = None) -> MetadataDirectory:
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
    return MetadataDirectory(files, node, lineage, quorum)


def _lineage(files: MetadataFiles) -> Lineage:
    marks: list[Mark] = []
    voters: frozenset[int] = frozenset()
    written = False  # by a KRaftVotersRecord, which counts for more than a leader change
    for batch in (batch for segment in files.segments for batch in read_batches(segment.path)):
        tables = _control_tables(batch)
        _check(batch, marks[-1] if marks else None, leads=bool(tables) and tables[0][0] is LEADER_CHANGE)
        for table, named in tables:
            if table is KRAFT_VOTERS or (table is LEADER_CHANGE and not written):
                voters, written = named, written or table is KRAFT_VOTERS
        marks.append(Mark(batch.base_offset, batch.last_offset, batch.epoch, batch.raw[_CRC]))
    newest = files.snapshots[-1] if files.snapshots else None
    if newest is not None and marks and newest.end_offset > marks[-1].last_offset + 1:
        marks = []  # a fetched snapshot has overtaken the log, which the node throws away at its next start
    lineage = Lineage(str(files.path), tuple(marks), files.snapshots, voters)
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


def _check(batch: Batch, before: Mark | None, *, leads: bool) -> None:
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
    if snapshot.end_offset and lineage.marks:
        epoch = lineage.epoch_of(snapshot.end_offset - 1)
        if epoch is not None and epoch != snapshot.epoch:
            what = f"the snapshot's name says epoch {snapshot.epoch}; the log wrote its last offset in epoch {epoch}"
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
    pairs = zip(_from(one.marks, low), _from(other.marks, low), strict=False)
    for mine, theirs in pairs:
        if mine != theirs:
            return min(mine.base_offset, theirs.base_offset)
    return min(one.end, other.end)


def _contradicts(log: Lineage, snapshots: Iterable[Snapshot]) -> bool:
    found = ((entry.epoch, log.epoch_of(entry.end_offset - 1)) for entry in snapshots if entry.end_offset)
    return any(epoch is not None and epoch != named for named, epoch in found)


def _from(marks: tuple[Mark, ...], offset: int) -> Iterable[Mark]:
    return marks[bisect_right(marks, offset - 1, key=lambda mark: mark.last_offset) :]
