"""Copies of files that stand beside them on their host: how they are named, and how they are found again.

A copy is never overwritten: one of other content gets the first digits of its hash behind the name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import Final

from migrate.hosts.config import log_dirs, metadata_log_dir
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.ports import Files
from migrate.model.views import ConfigFile, HostFile, KeptFiles, NoFile

BACKUP_SUFFIX: Final = ".kraft-migrate-backup"
ASIDE_SUFFIX: Final = ".kraft-migrate-set-aside"


def backup_path(files: Files, node: NodeId, path: str, content: bytes) -> str:
    """Where a copy of that content belongs: beside the file, under a name that no other content has."""
    beside = path + BACKUP_SUFFIX
    if files.exists(node, beside) and files.read(node, beside) != content:
        beside = f"{beside}-{hashlib.sha256(content).hexdigest()[:8]}"  # the other one is of an earlier attempt
    return beside


def kept_files(files: Files, node: NodeId, config: ConfigFile | NoFile | Unknown | None) -> KeptFiles | Unknown:
    """Every copy beside the node's configuration, and the meta.properties of each of its directories."""
    if not isinstance(config, ConfigFile):
        return config if isinstance(config, Unknown) else Unknown(f"node {int(node)} has no configuration file")
    folder, name = os.path.split(config.path)
    try:
        copies = [entry for entry in files.names(node, folder) if entry.startswith(name + BACKUP_SUFFIX)]
        kept = tuple(_read(files, node, os.path.join(folder, entry)) for entry in copies)  # noqa: PTH118 - of a host
    except OSError as error:
        return Unknown(f"the copies beside {config.path} cannot be read: {error.strerror or error}")
    return KeptFiles(kept, tuple(_metas(files, node, config)))


def _metas(files: Files, node: NodeId, config: ConfigFile) -> list[HostFile]:
    """Those that can be read: whether a directory is healthy is for the disks' view to say."""
    apart = metadata_log_dir(config.values)
    found: list[HostFile] = []
    for directory in (*log_dirs(config.values), *([apart] if apart else [])):
        with contextlib.suppress(OSError):
            found.append(_read(files, node, f"{directory}/{META_PROPERTIES}"))
    return found


def _read(files: Files, node: NodeId, path: str) -> HostFile:
    raw = files.read(node, path)
    return HostFile(path, raw, hashlib.sha256(raw).hexdigest())
