"""The controllers' metadata directories, read while no controller runs, and the `state` znodes behind them.

What a majority holds and ZooKeeper lacks is lost with a rollback: ZooKeeper is compared with the image of these logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from migrate.errors import MetadataFileError, MigrateError
from migrate.kraft.files import find
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs, StateBehind
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.observe.metadata_files import read_metadata
from migrate.zookeeper.layout import Absent, TreeReader, partition_states


def metadata_logs(directories: Mapping[NodeId, Path], digester: Digester) -> MetadataLogs | Unknown:
    """What they hold together; Unknown where one that counts cannot be read."""
    try:
        holders = {node: path for node, path in directories.items() if _holds(path)}
        if not holders:
            return MetadataLogs()
        found = read_metadata(list(holders.values()), digester)
        end, quorum = found.view.high_watermark, found.directory.quorum
        return MetadataLogs(
            holders=tuple(sorted(map(int, holders))),
            end=end,
            state=found.view.migration_state,
            epoch=found.view.epoch if quorum is None else quorum.leader_epoch,  # no log ends in a newer one
            registered=tuple(sorted(map(int, found.view.brokers))),
            partitions=found.view.partitions,
            view=replace(found.view, source="the stopped controllers' logs"),
        )
    except MigrateError as error:
        return Unknown(f"the controllers' metadata on disk cannot be read: {error.id} {error}")


def _holds(path: Path) -> bool:
    """A log or a snapshot: a bootstrap.checkpoint alone is a controller that never ran."""
    try:
        files = find(path)
    except MetadataFileError:
        return False
    return bool(files.segments or files.snapshots)


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
