"""What is committed, told by the metadata directories of several controllers (KIP-595), and the view of that.

First the history of each log: which epoch wrote which offsets.  No CRC covers a batch's epoch.  These rules do: epochs
never go back; an epoch begins with its leader's LEADER_CHANGE and nothing else raises it
(`KafkaRaftClient.onBecomeLeader`); a snapshot's epoch is that of the record before its end; no log is newer than the
epoch in its quorum-state.  One hole is left: a log that ends with the LEADER_CHANGE itself.

Then the end.  A record is committed for good where a majority of the voters hold it and no voter can win an election
without it.  The second half needs either all voters' logs at hand, or a majority that never heard of a newer epoch than
the record's: who leads in a newer one was elected by somebody of that majority.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, repeat
from pathlib import Path
from typing import Final

from migrate.errors import BatchError, DecodeError, MetadataDiverges, OffsetNotThere, SnapshotError
from migrate.kraft.files import (
    MetadataFiles,
    QuorumState,
    Snapshot,
    find,
    load,
    read_batches,
    read_quorum_state,
    read_segment,
)
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, majority
from migrate.protocol.batches import CRC_FROM, Batch, Idle, check_order
from migrate.protocol.loader import Values
from migrate.protocol.records import KRAFT_VOTERS, LEADER_CHANGE, decode_control

VoterKey = tuple[int, str]  # node id and directory id; "" in a static quorum
_CRC: Final = slice(CRC_FROM - 4, CRC_FROM)


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

    `voters` are those that log and snapshots name last: by a KRaftVotersRecord, which every snapshot of a dynamic
    quorum repeats, else by the last leader change.  `voters_at` is that record's offset (of a snapshot's its last
    one); None for a leader change.
    """

    where: str
    marks: Marks
    snapshots: tuple[Snapshot, ...]
    voters: frozenset[VoterKey]
    voters_at: int | None = None

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
    def voters(self) -> frozenset[VoterKey]:
        """The quorum's voters as this directory knows them; empty where it does not."""
        if self.lineage.voters_at is None and self.quorum is not None and self.quorum.voters:
            return frozenset((voter, "") for voter in self.quorum.voters)
        return self.lineage.voters

    def votes(self, voters: frozenset[VoterKey]) -> bool:
        return not voters.isdisjoint({(self.node, ""), (self.node, self.identity)})

    @property
    def name(self) -> str:
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
    marks = Marks()
    last: tuple[int, int] | None = None  # offset and epoch
    voters: frozenset[VoterKey] = frozenset()
    written: int | None = None  # the offset of a KRaftVotersRecord, which counts for more than a leader change
    for batch in (batch for segment in files.segments for batch in read_segment(segment.path)):
        tables = [] if isinstance(batch, Idle) else _control_tables(batch)
        before, last = last, check_order(batch, last)
        leads = bool(tables) and tables[0][0] is LEADER_CHANGE
        if before is not None and (batch.epoch > before[1]) != leads:
            unled = f"epoch {batch.epoch} begins after epoch {before[1]} without its leader change"
            raise BatchError(f"a leader change within epoch {batch.epoch}" if leads else unled, where=batch.place)
        for table, named in tables:
            if table is KRAFT_VOTERS:
                voters, written = named, batch.last_offset
            elif table is LEADER_CHANGE and written is None:
                voters = named
        marks.add(batch)
    newest = files.snapshots[-1] if files.snapshots else None
    if newest is not None and (written is None or newest.end_offset > written):
        head = next(read_batches(newest.path), None)
        for table, named in [] if head is None else _control_tables(head):
            if table is KRAFT_VOTERS:
                voters, written = named, newest.end_offset - 1
    if newest is not None and last is not None and newest.end_offset > last[0] + 1:
        marks = Marks()  # a fetched snapshot has overtaken the log, which the node throws away at its next start
    lineage = Lineage(str(files.path), marks, files.snapshots, voters, written)
    for snapshot in files.snapshots:
        epoch = lineage.epoch_of(snapshot.end_offset - 1)
        if epoch != snapshot.epoch:
            what = f"the snapshot's name says epoch {snapshot.epoch}; its last offset was written in epoch {epoch}"
            raise SnapshotError(what, where=str(snapshot.path))
    return lineage


def first_voters(files: MetadataFiles) -> str:
    """ID@HOST:PORT:DIRECTORY of each voter with which a directory was formatted, also once a controller ran on it.

    "" without any, and where Kafka has deleted that snapshot.  Raises what `read_batches` raises.
    """
    first = [snapshot.path for snapshot in files.snapshots if not snapshot.end_offset]
    for batch in (batch for path in first for batch in read_batches(path) if batch.control):
        for _, key, value in batch.records():
            _, table, _, values = decode_control(key, value)
            if table is KRAFT_VOTERS:
                return ",".join(map(_voter_text, sorted(values["voters"], key=lambda voter: int(voter["voterId"]))))
    return ""


def _voter_text(voter: Values) -> str:
    (at,) = voter["endpoints"]
    host = f"[{at['host']}]" if ":" in at["host"] else at["host"]
    return f"{voter['voterId']}@{host}:{at['port']}:{voter['voterDirectoryId']}"


def _control_tables(batch: Batch) -> list[tuple[object, frozenset[VoterKey]]]:
    """Tables of the batch's control records, with the voters that they name; empty for a data batch."""
    found: list[tuple[object, frozenset[VoterKey]]] = []
    for _, key, value in batch.records() if batch.control else ():
        try:
            _, table, _, values = decode_control(key, value)
        except DecodeError as error:
            raise type(error)(error.what, where=batch.place) from error
        named = values.get("voters", ()) if table in (KRAFT_VOTERS, LEADER_CHANGE) else ()
        ids = ((voter["voterId"], voter["voterDirectoryId"] if table is KRAFT_VOTERS else "") for voter in named)
        found.append((table, frozenset(ids)))
    return found


def common_end(one: Lineage, other: Lineage) -> int:
    """The offset (exclusive) up to which both are one history.

    Below the later start both were committed once: a log begins late only behind a snapshot, and snapshots hold
    committed records alone.  Such a snapshot's name must still agree with the other's epochs.
    """
    low = max(one.start, other.start)
    for log, beside in ((one, other), (other, one)):
        named = ((found.epoch, log.epoch_of(found.end_offset - 1)) for found in beside.snapshots)
        if any(epoch is not None and epoch != name for name, epoch in named):
            return min(low, one.end, other.end, log.start)
    parted = one.marks.parts(other.marks, one.marks.after(low), other.marks.after(low))
    return min(one.end, other.end) if parted is None else parted


@dataclass(frozen=True, slots=True)
class Tail:
    """From which directory to read, how far (`end`, exclusive), and what is known to be committed.

    `notes` say what was left out and why: directories that went another way, or count once only.  `voters` are the
    quorum's, empty where nothing names them; `counted` are those of which a directory counts for a majority.
    """

    directory: MetadataDirectory
    end: int
    high_watermark: int | Unknown
    notes: tuple[str, ...] = ()
    voters: tuple[int, ...] = ()
    counted: tuple[int, ...] = ()


def judge(directories: Sequence[MetadataDirectory]) -> Tail:
    """The committed end that these directories prove.

    Without a proof the longest log is read, and the end is Unknown; then all must be one history.  Raises
    MetadataDiverges.
    """
    voters = _voters(directories)
    if isinstance(voters, Unknown):
        return _unproven(directories, voters, ())
    holders, notes = _holders(directories, voters)
    found = _judged(directories, voters, holders, notes)
    counted = sorted(entry.node for entry in holders if entry.node is not None)
    return replace(found, voters=tuple(sorted(node for node, _ in voters)), counted=tuple(counted))


def _judged(
    directories: Sequence[MetadataDirectory],
    voters: frozenset[VoterKey],
    holders: Sequence[MetadataDirectory],
    notes: tuple[str, ...],
) -> Tail:
    needed = majority(len(voters))
    if len(holders) < needed:
        reason = f"{len(holders)} of {len(voters)} voters available, {needed} are a majority"
        return _unproven(directories, Unknown(f"tail unproven: {reason}"), notes)
    reference, end = max(
        ((entry, _held(entry, holders, needed)) for entry in holders), key=lambda found: (found[1], found[0].name)
    )
    end = _uncontested(reference, end, holders)
    doubt = _doubt(reference, end, holders) if len(holders) < len(voters) else None
    if doubt is not None:
        return _unproven(directories, Unknown(f"tail unproven: {doubt}"), notes)
    for entry in directories:
        if any(snapshot.end_offset > end for snapshot in entry.files.snapshots):
            what = f"a snapshot holds more than the offsets below {end}, which a majority holds: logs were lost"
            raise MetadataDiverges(what, where=entry.name)
    for entry in _written(directories):
        changed = entry.lineage.voters_at
        if changed is not None and min(end, common_end(reference.lineage, entry.lineage)) <= changed:
            reason = f"tail unproven: no majority of its voters holds the change of voters at offset {changed}"
            return _unproven(directories, Unknown(reason), notes)
    return Tail(reference, end, end, (*notes, *_apart(directories, reference)))


def _written(directories: Sequence[MetadataDirectory]) -> list[MetadataDirectory]:
    """Those that hold the newest record of voters; none in a static quorum."""
    newest = max(-1 if entry.lineage.voters_at is None else entry.lineage.voters_at for entry in directories)
    return [entry for entry in directories if entry.lineage.voters_at == newest]


def _voters(directories: Sequence[MetadataDirectory]) -> frozenset[VoterKey] | Unknown:
    """By the newest record of them: a copy may lag behind it.  Without any, all must name the same."""
    named = {entry.voters for entry in _written(directories) or directories if entry.voters}
    if not named:
        return Unknown("tail unproven: no directory names the quorum's voters")
    if len(named) > 1:
        return Unknown("tail unproven: the directories name different voters")
    return named.pop()


def _holders(
    directories: Sequence[MetadataDirectory], voters: frozenset[VoterKey]
) -> tuple[list[MetadataDirectory], tuple[str, ...]]:
    """Select one directory per voter.

    Directories with the same node.id or the same directory.id count once, by the shortest of them: one is a copy of
    the other, whatever its meta.properties was changed to.  One that lacks an id, or is of no voter, does not count.
    """
    held: list[MetadataDirectory] = []
    notes = []
    for entry in directories:
        if entry.node is None:
            notes.append(f"{entry.name}: no meta.properties says whose it is: it does not count towards the majority")
        elif entry.node not in {node for node, _ in voters}:
            notes.append(f"{entry.name}: node {entry.node} is no voter: it does not count for the majority")
        elif entry.identity is not None and not entry.votes(voters):
            what = f"directory.id {entry.identity} of node {entry.node} is no voter's"
            notes.append(f"{entry.name}: {what}: it does not count for the majority")
        elif entry.identity is None:
            notes.append(f"{entry.name}: its meta.properties has no directory.id: it does not count for the majority")
        else:
            same = [other for other in held if other.node == entry.node or other.identity == entry.identity]
            for other in same:
                what = "a second directory of controller" if other.node == entry.node else "the directory.id is that of"
                which = entry.node if other.node == entry.node else other.name
                notes.append(f"{entry.name}: {what} {which}: it counts once")
            held = [other for other in held if other not in same]
            held.append(min((*same, entry), key=lambda found: found.lineage.end))
    return held, tuple(notes)


def _held(reference: MetadataDirectory, holders: Sequence[MetadataDirectory], needed: int) -> int:
    ends = sorted((common_end(reference.lineage, entry.lineage) for entry in holders), reverse=True)
    return ends[needed - 1]


def _uncontested(reference: MetadataDirectory, end: int, holders: Sequence[MetadataDirectory]) -> int:
    """The end without what a voter with a newer epoch lacks: it may be elected, and would cut that off."""
    while True:
        epoch = reference.lineage.epoch_of(end - 1)
        rivals = [
            shared
            for entry in holders
            if epoch is not None
            and entry.lineage.last_epoch > epoch
            and (shared := common_end(reference.lineage, entry.lineage)) < end
        ]
        if not rivals:
            return end
        end = min(rivals)


def _doubt(reference: MetadataDirectory, end: int, holders: Sequence[MetadataDirectory]) -> str | None:
    """Why a voter that is not at hand might be elected without the last of these records; None if it cannot."""
    epoch = reference.lineage.epoch_of(end - 1)
    if epoch is None:
        return f"the epoch of offset {end - 1} is not known"
    for entry in holders:
        if entry.quorum is None:
            return f"{entry.name} has no quorum-state, and not all voters are available"
        if entry.quorum.leader_epoch > epoch:
            heard = entry.quorum.leader_epoch
            return (
                f"offset {end - 1} is of epoch {epoch}, {entry.name} heard of {heard}, and not all voters are available"
            )
    return None


def _apart(directories: Sequence[MetadataDirectory], reference: MetadataDirectory) -> list[str]:
    notes = []
    for entry in directories:
        shared = common_end(reference.lineage, entry.lineage)
        if shared < min(entry.lineage.end, reference.lineage.end):
            notes.append(f"{entry.name}: parts from {reference.name} at offset {shared}: read from the latter alone")
    return notes


def _one_history(directories: Sequence[MetadataDirectory]) -> None:
    """Raise MetadataDiverges where two of the logs part."""
    for one, other in combinations(directories, 2):
        shared = common_end(one.lineage, other.lineage)
        if shared < min(one.lineage.end, other.lineage.end):
            mine, theirs = one.lineage.epoch_of(shared), other.lineage.epoch_of(shared)
            why = f"epoch {mine} there, and epoch {theirs} in {other.name}"
            what = f"this log and that of {other.name} part at offset {shared}"
            raise MetadataDiverges(what, where=one.name, why=why)


def _unproven(directories: Sequence[MetadataDirectory], reason: Unknown, notes: tuple[str, ...]) -> Tail:
    _one_history(directories)
    longest = max(directories, key=lambda entry: entry.lineage.end)
    return Tail(longest, longest.lineage.end, reason, notes)


def view_of(tail: Tail, digester: Digester, *, cluster_id: str) -> KraftView:
    """The image at the end of the tail; an open transaction is not in it.

    Raises OffsetNotThere where the log ends before that, or it is before the oldest snapshot; BatchError, DecodeError,
    ReplayError, SnapshotError for what is no metadata.
    """
    directory, below = tail.directory, tail.end
    snapshots = directory.files.snapshots
    oldest = 0 if not directory.lineage.start else snapshots[0].end_offset if snapshots else directory.lineage.start
    if below < oldest:
        what = (
            f"the image at offset {below - 1} cannot be determined: the oldest snapshot ends with offset {oldest - 1}"
        )
        raise OffsetNotThere(what, where=directory.name)
    image = load(directory.files, digester, below=below)
    if image.next_offset != below:
        what = f"the log ends before offset {image.next_offset}; {below} was due"
        raise OffsetNotThere(what, where=directory.name)
    return image.view(cluster_id, tail.high_watermark, f"files of {directory.name}")
