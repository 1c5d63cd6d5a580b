"""The controllers' metadata directories, read while no controller runs.

What a majority holds and ZooKeeper lacks is lost with a rollback: ZooKeeper is compared with the image of these logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from migrate.errors import MetadataFileError, MigrateError
from migrate.kraft.files import find
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_evidence import MetadataLogs
from migrate.model.secrets import Digester
from migrate.observe.metadata_files import read_metadata


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
