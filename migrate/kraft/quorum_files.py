"""What is committed, told by the metadata directories of several controllers (KIP-595), and the view of that.

A record is committed for good where a majority of the voters hold it and no voter can win an election without it.  The
second half needs either all voters' logs at hand, or a majority that never heard of a newer epoch than the record's:
who leads in a newer one was elected by somebody of that majority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from migrate.errors import MetadataDiverges, OffsetNotThere
from migrate.kraft.files import load
from migrate.kraft.lineage import MetadataDirectory, common_end
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, majority


@dataclass(frozen=True, slots=True)
class Tail:
    """From which directory to read, how far (`end`, exclusive), and what is known to be committed.

    `notes` say what was left out and why: directories that went another way, or count once only.
    """

    directory: MetadataDirectory
    end: int
    high_watermark: int | Unknown
    notes: tuple[str, ...] = ()


def judge(directories: Sequence[MetadataDirectory], high_watermark: int | None = None) -> Tail:
    """The committed end that these directories prove, or that was told.

    Without a proof the longest log is read, and the end is Unknown; then all must be one history.  Raises
    MetadataDiverges, OffsetNotThere.
    """
    if high_watermark is not None:
        return _told(directories, high_watermark)
    voters = _voters(directories)
    if isinstance(voters, Unknown):
        return _unproven(directories, voters, ())
    holders, notes = _holders(directories, voters)
    needed = majority(len(voters))
    if len(holders) < needed:
        reason = f"{len(holders)} of {len(voters)} voters at hand, {needed} make a majority"
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
    return Tail(reference, end, end, (*notes, *_apart(directories, reference)))


def _voters(directories: Sequence[MetadataDirectory]) -> frozenset[int] | Unknown:
    named = {entry.voters for entry in directories if entry.voters}
    if not named:
        return Unknown("tail unproven: no directory names the quorum's voters")
    if len(named) > 1:
        return Unknown("tail unproven: the directories name different voters")
    return named.pop()


def _holders(
    directories: Sequence[MetadataDirectory], voters: frozenset[int]
) -> tuple[list[MetadataDirectory], tuple[str, ...]]:
    """Select one directory per voter.

    Directories with the same node.id or the same directory.id count once, by the shortest of them: one is a copy of
    the other, whatever its meta.properties was changed to.  One that lacks an id, or is of no voter, does not count.
    """
    held: list[MetadataDirectory] = []
    notes = []
    for entry in directories:
        if entry.node is None:
            notes.append(f"{entry.name}: no meta.properties tells whose it is: it does not count for the majority")
        elif entry.node not in voters:
            notes.append(f"{entry.name}: node {entry.node} is no voter: it does not count for the majority")
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
    """How far a majority holds what the reference holds."""
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
            return f"{entry.name} has no quorum-state, and not all voters are at hand"
        if entry.quorum.leader_epoch > epoch:
            heard = entry.quorum.leader_epoch
            return (
                f"offset {end - 1} is of epoch {epoch}, {entry.name} heard of {heard}, and not all voters are at hand"
            )
    return None


def _apart(directories: Sequence[MetadataDirectory], reference: MetadataDirectory) -> list[str]:
    notes = []
    for entry in directories:
        shared = common_end(reference.lineage, entry.lineage)
        if shared < min(entry.lineage.end, reference.lineage.end):
            notes.append(f"{entry.name}: parts from {reference.name} at offset {shared}: read from the latter alone")
    return notes


def _one_history(directories: Sequence[MetadataDirectory], below: int | None) -> None:
    """Raise MetadataDiverges where two of the logs part (below that offset)."""
    for one, other in combinations(directories, 2):
        shared = common_end(one.lineage, other.lineage)
        due = min(one.lineage.end, other.lineage.end)
        if shared < (due if below is None else min(due, below)):
            mine, theirs = one.lineage.epoch_of(shared), other.lineage.epoch_of(shared)
            why = f"epoch {mine} there, and epoch {theirs} in {other.name}"
            what = f"this log and that of {other.name} part at offset {shared}"
            raise MetadataDiverges(what, where=one.name, why=why)


def _unproven(directories: Sequence[MetadataDirectory], reason: Unknown, notes: tuple[str, ...]) -> Tail:
    _one_history(directories, None)
    longest = max(directories, key=lambda entry: entry.lineage.end)
    return Tail(longest, longest.lineage.end, reason, notes)


def _told(directories: Sequence[MetadataDirectory], high_watermark: int) -> Tail:
    reaching = [entry for entry in directories if entry.lineage.end >= high_watermark]
    if not reaching:
        longest = max(entry.lineage.end for entry in directories)
        what = f"the metadata at hand ends before offset {longest}; the high watermark {high_watermark} was told"
        raise OffsetNotThere(what, where=directories[0].name)
    _one_history(reaching, high_watermark)
    return Tail(reaching[0], high_watermark, high_watermark, tuple(_apart(directories, reaching[0])))


def view_of(tail: Tail, digester: Digester, *, cluster_id: str, at: int | None = None) -> KraftView:
    """The image at the end of the tail, or at the offset `at`; an open transaction is not in it.

    Raises OffsetNotThere for an offset behind the end or before the oldest snapshot; BatchError, DecodeError,
    ReplayError, SnapshotError for what is no metadata.
    """
    directory, below = tail.directory, tail.end if at is None else at + 1
    if below > tail.end:
        what = f"offset {at} is not there: what may be read ends with offset {tail.end - 1}"
        raise OffsetNotThere(what, where=directory.name)
    snapshots = directory.files.snapshots
    oldest = 0 if not directory.lineage.start else snapshots[0].end_offset if snapshots else directory.lineage.start
    if below < oldest:
        what = f"the image at offset {below - 1} cannot be told: the oldest snapshot ends with offset {oldest - 1}"
        raise OffsetNotThere(what, where=directory.name)
    image = load(directory.files, digester, below=below)
    if image.next_offset != below:
        what = f"the log ends before offset {image.next_offset}; {below} was due"
        raise OffsetNotThere(what, where=directory.name)
    return image.view(cluster_id, tail.high_watermark, f"files of {directory.name}")
