"""The sentences of a start's verdict: which file, what is wrong with it, how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from migrate.model.views import MetaBroken
from migrate.model.words import plural

if TYPE_CHECKING:
    from migrate.hosts.start_place import Mode, Place

WRONG_DIRECTORY: Final = "every replica in it then has the wrong directory in the metadata"
RIGHT_DISK: Final = "Put the right disk in its place; do not edit ids over data that nobody has looked at"


def meta(path: str) -> str:
    """The file in that directory."""
    return f"{path.rstrip('/') or '/'}/meta.properties"


def by_hand(version: int, cluster_id: str, node_id: int) -> str:
    """The lines of a file written by hand."""
    key = "node.id" if version else "broker.id"
    return f"version={version}, {key}={node_id}, cluster.id={cluster_id}"


def starts(directories: int, failed: int) -> str:
    """The good answer."""
    lost = f", {failed} of them failed" if failed else ""
    return f"Kafka would start with {plural(directories, 'directory', 'directories')}{lost}"


# -- why it would not start --------------------------------------------------------------------------------------
def none_readable(paths: Iterable[str]) -> str:
    """No file at all."""
    return (
        f"no meta.properties can be read in {', '.join(paths)}. Are the disks mounted? Restore the files; on new disks "
        "format them with kafka-storage.sh"
    )


def version_1(path: str) -> str:
    """KAFKA-20762."""
    return (
        f"{meta(path)} has version 1, and a broker in plain ZooKeeper mode starts on version 0 only (KAFKA-20762). "
        "Write it again with version=0, broker.id for node.id, and the same cluster.id and directory.id"
    )


def other_cluster(path: str, found: str, expected: str) -> str:
    """Another cluster's disk, or two clusters' disks in one node."""
    return f"{meta(path)} has cluster.id {found}, expected is {expected}. {RIGHT_DISK}"


def other_node(path: str, found: int, expected: int) -> str:
    """Another node's disk."""
    return f"{meta(path)} has node id {found}, expected is {expected}. {RIGHT_DISK}"


def reserved(path: str, directory_id: str) -> str:
    """An id that Kafka keeps for itself."""
    return (
        f"{meta(path)} has directory.id {directory_id}, which Kafka keeps for itself. Put the true id back (the "
        "broker's registration names it), or take the line out: a new one is made at the start"
    )


def same_id(path: str, first: str, directory_id: str, *, same_place: bool) -> str:
    """A copy, or one directory under two names."""
    if same_place:
        return (
            f"{meta(path)} and {meta(first)} are one file: the directory is named twice. Spell it in one way in "
            "log.dirs and metadata.log.dir"
        )
    return (
        f"{meta(path)} has directory.id {directory_id}, which {first} has too: one is a copy. Find out which, and take "
        "directory.id out of the copy's file: a new one is made at the start"
    )


def metadata_failed(path: str, why: str) -> str:
    """Nothing starts without the metadata directory."""
    return f"{meta(path)}: {why}, and it is the metadata directory. Restore the file, or mend the disk"


def misplaced(path: str, wanted: str) -> str:
    """KafkaRaftServer: unexpected metadata location."""
    return (
        f"{path}/__cluster_metadata-0 lies outside of the metadata directory {wanted}. Move it aside while the broker "
        "is stopped (it fetches what it needs), or set metadata.log.dir to where it lies"
    )


def not_formatted(path: str, cluster_id: str, node_id: int, replicas: int) -> str:
    """An empty disk under a KRaft node."""
    if replicas:
        lines = by_hand(0, cluster_id, node_id)
        mend = (
            f"{plural(replicas, 'replica')} there keep their place: write the file with {lines} and the directory.id "
            "that the broker's registration names"
        )
    else:
        command = f"kafka-storage.sh format --ignore-formatted --cluster-id={cluster_id}"
        mend = f"Is the disk mounted? On a new one: {command}"
    return f"{meta(path)} is not there. {mend}"


def lacks(path: str, key: str, cluster_id: str, node_id: int) -> str:
    """A version 0 file that is not complete."""
    return f"{meta(path)} has no {key}. Complete it: {by_hand(0, cluster_id, node_id)}; keep its directory.id"


def no_room_for_id(path: str) -> str:
    """The file must be written, and cannot be."""
    return f"{meta(path)} has no directory.id, and {path} cannot be written. Mend the disk, or its rights"


def metadata_not_writable(path: str) -> str:
    """Raft cannot write its log."""
    return f"{path} is the metadata directory and cannot be written. Mend the disk, or its rights"


def two_names(path: str, other: str) -> str:
    """LogManager: duplicate log directory."""
    return f"{path} and {other} are one directory. Name it once in log.dirs"


def all_failed(paths: Sequence[str]) -> str:
    """LogManager: none of the directories can be used."""
    return f"no log directory can be used: {', '.join(paths)}. Mend the disks, or their rights"


def halts(path: str) -> str:
    """KafkaServer in migration mode."""
    return (
        f"{path} cannot be written, and in migration mode one failing directory halts the broker. Mend the disk first"
    )


# -- what Kafka takes in silence ---------------------------------------------------------------------------------
def made_anew(place: Place, mode: Mode) -> str:
    """A file that is not there, in ZooKeeper or migration mode."""
    what = "the directory is not there: Kafka makes an empty one" if place.missing else "Kafka makes a new file"
    id_ = " with a new directory.id" if mode == "migration" else ""
    if place.replicas:
        return f"{meta(place.path)} is not there: {what}{id_}; {_lies(place)}, {WRONG_DIRECTORY}. {_restore()}"
    return f"{meta(place.path)} is not there: {what}{id_}. Is the disk mounted?"


def doubted(place: Place, mode: Mode) -> str:
    """A file that Kafka takes and we do not trust."""
    happens = " Kafka takes it as it is." if mode == "zookeeper" else ""
    return f"{meta(place.path)} cannot be trusted: {place.doubt}.{happens} {_restore()}"


def new_id(place: Place) -> str:
    """No directory.id: one is made."""
    if not place.replicas:
        return f"{meta(place.path)} has no directory.id: Kafka makes a new one"
    return (
        f"{meta(place.path)} has no directory.id: Kafka makes a new one; {_lies(place)}. Where the metadata knows this "
        f"directory already, {WRONG_DIRECTORY}. {_restore()}"
    )


def refused_later(path: str, found: str, expected: str) -> str:
    """A KRaft node knows its cluster from its own files alone."""
    return (
        f"{meta(path)} has cluster.id {found}, expected is {expected}: the process starts, and the controllers refuse "
        f"it. {RIGHT_DISK}"
    )


def no_way_back(path: str) -> str:
    """Version 1 on the way back."""
    return f"{meta(path)} has version 1: a way back to plain ZooKeeper mode ends at it (KAFKA-20762)"


def metadata_log(path: str, mode: Mode, metadata_dir: str) -> list[str]:
    """A local copy of the metadata log, where it is not used or about to be in the way."""
    if path != metadata_dir:
        later = " and lets no KRaft node start" if mode != "kraft" else ""
        return [f"{path}/__cluster_metadata-0 lies outside of the metadata directory {metadata_dir}{later}"]
    return [f"{path}/__cluster_metadata-0 is deleted and made again at the start"] if mode == "migration" else []


def failed(place: Place, mode: Mode) -> str:
    """What a failed directory costs."""
    why = place.unusable or (f"{meta(place.path)}: {place.meta.reason}" if isinstance(place.meta, MetaBroken) else "")
    why = why or ("it is not there and cannot be made" if place.missing else "it cannot be written")
    cost = {
        "zookeeper": "its replicas are offline",
        "migration": "its replicas stay MIGRATING in the metadata, and are not failed over",
        "kraft": "its replicas are offline",
    }[mode]
    return f"{place.path} counts as failed: {why}; {cost}. Restore the file, or mend the disk"


def _lies(place: Place) -> str:
    return f"{plural(place.replicas, 'replica')} {'lies' if place.replicas == 1 else 'lie'} in it"


def _restore() -> str:
    return "Restore the file with the directory.id that the broker's registration or the last proof names"
