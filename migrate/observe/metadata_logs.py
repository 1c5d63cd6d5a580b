"""The controllers' metadata directories, read while no controller runs, and the `state` znodes behind them.

What a majority holds and ZooKeeper lacks is lost with a rollback: ZooKeeper is compared with the image of these logs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from migrate.errors import InputError, MetadataDiverges, MetadataFileError, MigrateError, WorldError
from migrate.hosts import meta_properties
from migrate.hosts.files import read_within
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.kraft.files import PARTITION_DIRECTORY, find
from migrate.kraft.quorum_files import MetadataDirectory, Tail, first_voters, judge, read_directory, view_of
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs, StateBehind
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, MetaBroken, MetaMissing, MetaProperties, ZookeeperView
from migrate.zookeeper.layout import Absent, TreeReader, partition_states

LOG: Final = logging.getLogger("migrate.observe")


@dataclass(frozen=True, slots=True)
class MetadataRead:
    """A view from files, what was left out, and why; `tail` says which directory the view was read from."""

    view: KraftView
    notes: tuple[str, ...]
    tail: Tail


def read_metadata(paths: Sequence[Path], digester: Digester) -> MetadataRead:
    """The image in these directories at what they prove to be committed.

    The cluster id is "" where no directory tells it.  With several directories a damaged one is left out, and noted: it
    does not count for a majority.  Raises what `read_directory`, `judge` and `view_of` raise.
    """
    found: list[MetadataDirectory] = []
    notes: list[str] = []
    clusters: dict[str, Path] = {}
    for path in dict.fromkeys(path.resolve() for path in paths):
        meta = _identity(path)
        if isinstance(meta, MetaBroken):
            notes.append(f"{path}: {META_PROPERTIES} is not trusted: {meta.reason}")
        if isinstance(meta, MetaProperties) and meta.cluster_id is not None:
            clusters.setdefault(meta.cluster_id, path)
        node, identity = (meta.node_id, meta.directory_id) if isinstance(meta, MetaProperties) else (None, None)
        try:
            found.append(read_directory(path, node, None if identity is None else str(identity)))
        except InputError as error:
            if len(paths) == 1:
                raise
            notes.append(f"{path}: left out: {error.id} {error}")
            damaged = error
    if len(clusters) > 1:
        what = f"the directories belong to different clusters: {', '.join(sorted(clusters))}"
        raise MetadataDiverges(what, where=", ".join(map(str, clusters.values())))
    if not found:
        raise damaged
    tail = judge(found)
    view = view_of(tail, digester, cluster_id=next(iter(clusters), ""))
    notes += tail.notes
    for note in notes:
        LOG.info("%s", note)
    return MetadataRead(view, tuple(notes), tail)


def _identity(path: Path) -> MetaProperties | MetaBroken | MetaMissing:
    home = path.parent if path.name == PARTITION_DIRECTORY else path
    try:
        return meta_properties.decode(read_within(home / META_PROPERTIES, "meta-properties"))
    except (FileNotFoundError, NotADirectoryError):
        return MetaMissing()
    except OSError as error:
        raise WorldError(f"the file cannot be read: {error.strerror}", where=str(home / META_PROPERTIES)) from error


def metadata_logs(directories: Mapping[NodeId, Path], digester: Digester) -> MetadataLogs | Unknown:
    """What they hold together; Unknown where one that counts cannot be read."""
    try:
        holders = {node: path for node, path in directories.items() if _holds(path)}
        formatted = {node: voters for node, path in directories.items() if (voters := _formatted(path))}
        if not holders:
            return MetadataLogs(formatted=formatted)
        found = read_metadata(list(holders.values()), digester)
        end, quorum = found.view.high_watermark, found.tail.directory.quorum
        return MetadataLogs(
            holders=tuple(sorted(map(int, holders))),
            end=end,
            state=found.view.migration_state,
            epoch=found.view.epoch if quorum is None else quorum.leader_epoch,  # no log ends in a newer one
            registered=tuple(sorted(map(int, found.view.brokers))),
            partitions=found.view.partitions,
            view=replace(found.view, source="the stopped controllers' logs"),
            formatted=formatted,
            voters=found.tail.voters,
            counted=found.tail.counted,
        )
    except MigrateError as error:
        return Unknown(f"the controllers' metadata on disk cannot be read: {error.id} {error}")


def _holds(path: Path) -> bool:
    """A log or a snapshot: a bootstrap.checkpoint alone, or voters at offset 0 beside it, never ran."""
    try:
        files = find(path)
    except MetadataFileError:
        return False
    return bool(files.segments or any(entry.end_offset for entry in files.snapshots))


def _formatted(path: Path) -> str:
    try:
        return first_voters(find(path))
    except MetadataFileError:
        return ""


AT_ONCE: Final = 20_000  # states whose answers are held at once


def states_behind(
    reader: Callable[[], TreeReader], logs: MetadataLogs, view: ZookeeperView
) -> tuple[StateBehind, ...] | Unknown:
    """All of them, by path; Unknown where one of the states cannot be read.

    A topic that ZooKeeper no longer has, or has created again under another id, is none of the metadata's.
    """
    found: list[StateBehind] = []
    wanted, tree = _known_to_both(logs, view), reader()
    while some := dict(islice(wanted, AT_ONCE)):
        for path, answer in zip(some, tree.data([*some]), strict=True):
            if isinstance(answer, Absent):
                return Unknown(f"{path} is {answer.value}: it cannot be held to the metadata's partition epoch")
            if answer.version < some[path]:
                found.append(StateBehind(path, answer.version, some[path]))
    return tuple(sorted(found, key=lambda entry: entry.path))


def _known_to_both(logs: MetadataLogs, view: ZookeeperView) -> Iterator[tuple[str, int]]:
    """(state znode, partition epoch) of each partition of the metadata whose topic ZooKeeper has."""
    ids = dict(zip(view.partitions.topic, view.partitions.topic_id, strict=True))
    of = logs.partitions
    for topic, topic_id, number, epoch in zip(of.topic, of.topic_id, of.partition, of.revision, strict=True):
        if ids.get(topic) in (topic_id, ""):
            yield partition_states(topic, (number,))[0], epoch
