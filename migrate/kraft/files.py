"""A controller's metadata on disk: segments, snapshots, bootstrap.checkpoint and quorum-state.

Names: `Snapshots.java`, `BootstrapDirectory.java`, `FileQuorumStateStore.java`.  Producer state (`.snapshot`), indexes,
`.checkpoint.part` and `.checkpoint.deleted` lie there too and are no metadata.
"""

from __future__ import annotations

import re
import struct as packing
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import google_crc32c

from migrate.errors import DecodeError, MetadataFileError, WorldError
from migrate.kraft.image import Image
from migrate.model import limits, strict_json
from migrate.model.ids import METADATA_TOPIC
from migrate.model.secrets import Digester
from migrate.protocol import records
from migrate.protocol.batches import CRC_FROM, HEADER_SIZE, Batch, Idle, batch_at, check_order, stream
from migrate.protocol.records import decode_record

PARTITION_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
BOOTSTRAP: Final = "bootstrap.checkpoint"
QUORUM_STATE: Final = "quorum-state"
_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
LARGEST_OFFSET: Final = 2**63 - 1
LARGEST_NOOP: Final = HEADER_SIZE + 32  # bytes of a NoOp's batch: nothing larger is looked at
FIRST_LOOK: Final = 64  # batches that are looked at first; eight times as many while all of them are NoOps
LONGEST_LOOK: Final = 1 << 14
CRC_AT: Final = CRC_FROM - 4
TIMES: Final = range(CRC_FROM + 6, CRC_FROM + 22)  # base and newest timestamp


@dataclass(frozen=True, slots=True)
class Segment:
    path: Path
    base_offset: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: holds what is below `end_offset`; `epoch` is that of its last record."""

    path: Path
    end_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What a node remembers of elections; -1 is nobody.  `voters` is empty in version 1 (they stand in the log)."""

    version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str
    voters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The files of one metadata directory, each kind by offset; None where there is none."""

    path: Path
    segments: tuple[Segment, ...]
    snapshots: tuple[Snapshot, ...]
    bootstrap: Path | None
    quorum_state: Path | None


def find(path: Path) -> MetadataFiles:
    """The metadata files under a metadata directory, or under its `__cluster_metadata-0`.

    Raises MetadataFileError where there is neither a segment, nor a snapshot, nor a bootstrap.checkpoint, WorldError
    where the directory cannot be read.
    """
    partition = path if path.name == PARTITION_DIRECTORY else path / PARTITION_DIRECTORY
    bootstrap = partition.parent / BOOTSTRAP
    try:
        names = sorted(entry.name for entry in partition.iterdir()) if partition.is_dir() else []
        bootstraps = bootstrap.is_file()
        odd = [name for name in names if (partition / name).exists() and not (partition / name).is_file()]
    except OSError as error:
        raise WorldError(f"the directory cannot be read: {error.strerror}", where=str(partition)) from error
    logs = [(name, found) for name in names if (found := _SEGMENT.fullmatch(name))]
    checkpoints = [(name, found) for name in names if (found := _SNAPSHOT.fullmatch(name))]
    for name, found in (*logs, *checkpoints):
        if name in odd:  # a FIFO would be waited for without end
            raise MetadataFileError("it is no regular file", where=str(partition / name))
        if int(found[1]) > LARGEST_OFFSET:
            raise MetadataFileError(f"offset {found[1]} does not fit into 64 bits", where=str(partition / name))
    segments = tuple(Segment(partition / name, int(found[1])) for name, found in logs)
    snapshots = tuple(Snapshot(partition / name, int(found[1]), int(found[2])) for name, found in checkpoints)
    files = MetadataFiles(
        path=path,
        segments=segments,
        snapshots=snapshots,
        bootstrap=bootstrap if bootstraps else None,
        quorum_state=partition / QUORUM_STATE if QUORUM_STATE in names else None,
    )
    if not segments and not snapshots and files.bootstrap is None:
        raise MetadataFileError("there is no KRaft metadata here", where=str(path))
    return files


def snapshot_of(path: Path) -> Snapshot | None:
    """What a snapshot's name says; None for another name."""
    found = _SNAPSHOT.fullmatch(path.name)
    return Snapshot(path, int(found[1]), int(found[2])) if found else None


def due_offset(path: Path) -> int | None:
    """The offset that a segment's name says its first batch has; None for a snapshot or another name of a log.

    Raises MetadataFileError for a name that is neither a .log nor a .checkpoint.
    """
    segment = _SEGMENT.fullmatch(path.name)
    if segment is None and path.suffix not in {".log", ".checkpoint"}:
        raise MetadataFileError("the name ends neither in .log nor in .checkpoint", where=str(path))
    return int(segment[1]) if segment else None


def read_batches(path: Path) -> Iterator[Batch]:
    """The batches of a .log or .checkpoint, one in memory at a time, each checked.

    Raises BatchError and its kinds with file and position, MetadataFileError for a name that is neither, WorldError
    where the file cannot be read.
    """
    due = due_offset(path)
    try:
        with path.open("rb") as file:
            yield from stream(file, where=str(path), due=due)
    except OSError as error:
        raise WorldError(f"the file cannot be read: {error.strerror}", where=str(path)) from error


def read_quorum_state(path: Path) -> QuorumState:
    """The quorum-state file, in its version 0 (static voters) or 1 (KIP-853)."""
    try:
        with path.open("rb") as file:
            raw = file.read(limits.most("quorum-state") + 1)
        if len(raw) > limits.most("quorum-state"):
            raise MetadataFileError(f"it has more than {len(raw) - 1} bytes: this is no quorum-state", where=str(path))
        state = strict_json.mapping(raw)
        version = int(state["data_version"])
        return QuorumState(
            version=version,
            leader_id=int(state["leaderId"]),
            leader_epoch=int(state["leaderEpoch"]),
            voted_id=int(state["votedId"]),
            voted_directory_id=str(state["votedDirectoryId"]) if version > 0 else "",
            voters=tuple(int(voter["voterId"]) for voter in state.get("currentVoters") or ()),
        )
    except OSError as error:
        raise WorldError(f"the file cannot be read: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MetadataFileError(f"this is no quorum-state: {error!r}", where=str(path)) from error


def read_segment(path: Path) -> Iterator[Batch | Idle]:
    """The batches of a segment, each checked; NoOps in a row as one.  Raises what `read_batches` raises.

    The active controller writes a NoOpRecord twice a second (`metadata.max.idle.interval.ms`), each in a batch of its
    own: a million in a week, which say nothing of the image.  Those that equal the one before them but for offset,
    timestamps and CRC are told together; every CRC is still held against the batch's bytes.
    """
    due, where = due_offset(path), str(path)
    position, before = 0, None
    idle = 0  # NoOps in a row, one by one: alone between others they are not worth a look ahead
    try:
        with path.open("rb") as file:
            while (batch := batch_at(file, position, where=where)) is not None:
                before = check_order(batch, before, due)
                yield batch
                position, due = position + len(batch.raw), None
                idle = idle + 1 if _is_noop(batch) else 0
                if idle > 1:
                    for stretch in _behind(file, batch, position):
                        yield stretch
                        before = stretch.last_offset, stretch.epoch
                        position += len(batch.raw) * (stretch.last_offset - stretch.base_offset + 1)
                    idle = 0
    except OSError as error:
        raise WorldError(f"the file cannot be read: {error.strerror}", where=where) from error


def _is_noop(batch: Batch) -> bool:
    if batch.control or batch.base_offset != batch.last_offset or len(batch.raw) > LARGEST_NOOP:
        return False
    try:
        ((_, _, value),) = batch.records()
        return decode_record(value)[0] is records.NO_OP
    except DecodeError:  # whoever needs the record says what is wrong with it
        return False


def _behind(file: BinaryIO, noop: Batch, position: int) -> Iterator[Idle]:
    """What equals that NoOp's batch from that position on; the first that does not ends it."""
    size, wanted, offset = len(noop.raw), FIRST_LOOK, noop.last_offset + 1
    while True:
        file.seek(position)
        raw = file.read(size * wanted)
        count = _alike(raw, noop.raw, offset)
        if count:
            crcs = b"".join(raw[at : at + 4] for at in range(CRC_AT, count * size, size))
            yield Idle(offset, offset + count - 1, noop.epoch, position, noop.where, crcs)
        if count < wanted:
            return
        position, offset, wanted = position + len(raw), offset + count, min(8 * wanted, LONGEST_LOOK)


def _alike(raw: bytes, noop: bytes, offset: int) -> int:
    """How many batches from the first on are that NoOp's at the next offsets, each with the CRC of its bytes.

    A byte at a time of all of them: slices with a step are compared in C.
    """
    size = len(noop)
    count = len(raw) // size
    offsets = packing.pack(f">{count}q", *range(offset, offset + count))
    for at in (at for at in range(size) if at not in TIMES and not CRC_AT <= at < CRC_FROM):
        told = raw[at : count * size : size]
        wanted = offsets[at : 8 * count : 8] if at < 8 else noop[at : at + 1] * count
        if told != wanted:
            count = next(place for place, pair in enumerate(zip(told, wanted, strict=True)) if pair[0] != pair[1])
    for begin in range(0, count * size, size):
        crc = google_crc32c.value(raw[begin + CRC_FROM : begin + size])
        if raw[begin + CRC_AT : begin + CRC_FROM] != crc.to_bytes(4, "big"):
            return begin // size
    return count


def load(files: MetadataFiles, digester: Digester, *, below: int | None = None) -> Image:
    """The image of one directory: its newest snapshot, then the segments' tail, up to the offset `below`.

    One directory alone proves nothing of what is committed: without a high watermark from a majority the view is for
    looking only.  bootstrap.checkpoint counts only where the log is empty, as for the controller itself.
    """
    image = Image(digester)
    usable = [entry for entry in files.snapshots if below is None or entry.end_offset <= below]
    if usable:
        newest = usable[-1]
        image.load_snapshot_batches(read_batches(newest.path), newest.end_offset, newest.epoch, str(newest.path))
    for segment in files.segments:
        image.apply(read_segment(segment.path), below=below)
    if image.next_offset == 0 and files.bootstrap is not None:
        image.load_snapshot_batches(read_batches(files.bootstrap), 0, 0, str(files.bootstrap))
    return image
