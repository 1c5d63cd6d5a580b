"""The controllers' metadata directories, read while no controller runs.

Dual write follows the log: a record that a majority holds and `/migration` has not passed is lost on a way back, unless
a controller comes back to write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from migrate.errors import MetadataFileError, MigrateError
from migrate.kraft.files import find
from migrate.kraft.idle import read_stretches
from migrate.kraft.lineage import MetadataDirectory
from migrate.model.ids import NodeId
from migrate.model.metadata_logs import MetadataLogs
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.observe.metadata_files import read_metadata
from migrate.protocol.batches import Idle
from migrate.protocol.fields import Struct
from migrate.protocol.records import brokers, settings
from migrate.protocol.records.frame import decode_record

NOT_WRITTEN: Final[frozenset[Struct]] = frozenset(  # no ZkMetadataWriter writes these (`KRaftMigrationZkWriter`)
    {
        settings.NO_OP,
        settings.ZK_MIGRATION_STATE,
        settings.BEGIN_TRANSACTION,  # what is in one counts by itself
        settings.END_TRANSACTION,
        settings.ABORT_TRANSACTION,
        settings.FEATURE_LEVEL,
        brokers.REGISTER_BROKER,
        brokers.UNREGISTER_BROKER,
        brokers.BROKER_REGISTRATION_CHANGE,
        brokers.FENCE_BROKER,
        brokers.UNFENCE_BROKER,
        brokers.REGISTER_CONTROLLER,
    }
)


def metadata_logs(directories: Mapping[NodeId, Path], digester: Digester) -> MetadataLogs | Unknown:
    """What they hold together; Unknown where one that counts cannot be read."""
    try:
        holders = {node: path for node, path in directories.items() if _holds(path)}
        if not holders:
            return MetadataLogs()
        found = read_metadata(list(holders.values()), digester)
        end = found.view.high_watermark
        return MetadataLogs(
            holders=tuple(sorted(map(int, holders))),
            end=end,
            content=_last_content(found.directory, found.end),
            state=found.view.migration_state,
            epoch=max(_epoch(found.directory), found.view.epoch),
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


def _epoch(directory: MetadataDirectory) -> int:
    return directory.quorum.leader_epoch if directory.quorum is not None else -1


def _last_content(directory: MetadataDirectory, end: int) -> int:
    """The last offset below `end` that ZooKeeper must have; where the log begins later, what lies before it counts."""
    last = directory.lineage.start - 1
    for segment in directory.files.segments:
        for batch in read_stretches(segment.path):
            if isinstance(batch, Idle) or batch.control:
                continue
            for offset, _, value in batch.records():
                if last < offset < end and decode_record(value)[0] not in NOT_WRITTEN:
                    last = offset
    return last
