"""A controller's metadata on disk: segments, snapshots, bootstrap.checkpoint and quorum-state.

Names: `Snapshots.java`, `BootstrapDirectory.java`, `FileQuorumStateStore.java`.  Producer state (`.snapshot`), indexes,
`.checkpoint.part` and `.checkpoint.deleted` lie there too and are no metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import BatchError, MetadataFileError, WorldError
from migrate.kraft.image import Image
from migrate.model import limits, strict_json
from migrate.model.ids import METADATA_TOPIC
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.protocol.batches import Batch, Idle, batch_at, stream

ONE_DIRECTORY: Final = Unknown("files of one directory alone do not say what is committed")
PARTITION_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
BOOTSTRAP: Final = "bootstrap.checkpoint"
QUORUM_STATE: Final = "quorum-state"
_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
LARGEST_OFFSET: Final = 2**63 - 1


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


def read_batches_at(path: Path, positions: Iterable[int]) -> Iterator[Batch]:
    """The batches of a file that begin at these positions, one in memory at a time, each checked.

    Raises BatchError and its kinds, WorldError where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for position in positions:
                batch = batch_at(file, position, where=str(path))
                if batch is None:
                    raise BatchError("the file has become shorter", where=f"{path} at position {position}")
                yield batch
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
    """The batches of a segment, each checked; with numpy (extra `fast`) NoOps in a row are one.

    Raises what `read_batches` raises.
    """
    try:
        from migrate.kraft.idle import read_stretches  # noqa: PLC0415 - numpy: `status` does without; and a cycle
    except ModuleNotFoundError:
        return read_batches(path)
    return read_stretches(path)


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
