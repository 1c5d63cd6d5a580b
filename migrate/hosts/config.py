"""A node's configuration file as evidence, and the few things that others need of its values."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Final

from migrate.errors import ConfigUnreadable
from migrate.hosts import properties
from migrate.model.ids import NodeId
from migrate.model.ports import Files
from migrate.model.views import ConfigFile, NoFile

DEFAULT_LOG_DIR: Final = "/tmp/kafka-logs"  # noqa: S108 - Kafka's own default
SLASHES: Final = re.compile("/+")


def read_config(files: Files, node: NodeId, path: str) -> ConfigFile | NoFile:
    """The node's properties file, or that there is none.

    Raises:
        ConfigUnreadable: it is a link, or not ours to read.
        BadProperties: Kafka would refuse to load it.
    """
    try:
        raw = files.read(node, path)
    except FileNotFoundError:
        return NoFile(path)
    except OSError as error:
        raise ConfigUnreadable(
            f"the configuration of node {node} cannot be read: {error.strerror or error}", where=path
        ) from error
    return ConfigFile(node, path, raw, hashlib.sha256(raw).hexdigest(), properties.parse(raw, path))


def log_dirs(values: Mapping[str, str]) -> tuple[str, ...]:
    """log.dirs, else log.dir, else Kafka's default; in the file's order (`KafkaConfig.logDirs`), each `as_told`."""
    listed = values.get("log.dirs") or values.get("log.dir") or DEFAULT_LOG_DIR
    return tuple(as_told(part) for part in (entry.strip() for entry in listed.split(",")) if part)


def as_told(path: str) -> str:
    """A directory as its broker tells it: no doubled slash, none at the end, and `.`, `..` and links stay.

    DescribeLogDirs answers `java.io.File.getAbsolutePath` (`ReplicaManager.describeLogDirs`): another spelling is
    another directory to whoever looks for the one that a broker calls offline.
    """
    single = SLASHES.sub("/", path)
    return single.rstrip("/") or single


def metadata_log_dir(values: Mapping[str, str]) -> str | None:
    """metadata.log.dir where it lies apart from log.dirs, else None (then it is the first of them)."""
    apart = values.get("metadata.log.dir", "").strip()
    if not apart or os.path.normpath(apart) in map(os.path.normpath, log_dirs(values)):
        return None
    return as_told(apart)
