"""Copies of files and set-aside metadata that runs leave on the nodes' hosts.  They contain Kafka's secrets.

What is kept of a file that is a link is beside the file that it leads to.  A copy is never overwritten: one with other
content gets the first digits of its hash as a suffix.

A controller's metadata is set aside inside its own directory, entry by entry.  The directory keeps its name: it may be
a mount point, which cannot be renamed, and its parent may belong to root.  Kafka formats a directory with such a folder
in it, and runs a controller there (seen on 3.9.2, with `lost+found` too).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from typing import Final

from migrate.hosts.collected import METADATA_FOLDER
from migrate.hosts.manual.executor import ManualFiles
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.properties import all_directories
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.outcome import Unknown
from migrate.model.ports import Files, target_of
from migrate.model.views import ConfigFile, HostFile, KeptFiles, NoFile

BACKUP_SUFFIX: Final = ".kraft-migrate-backup"
ASIDE_SUFFIX: Final = ".kraft-migrate-set-aside"


def backup_path(files: Files, node: NodeId, path: str, content: bytes) -> str:
    """Return the path for a copy of that content: beside the file, under a name of its own for each content."""
    beside = (target_of(files, node, path) or path) + BACKUP_SUFFIX
    if files.exists(node, beside) and files.read(node, beside) != content:
        beside = f"{beside}-{hashlib.sha256(content).hexdigest()[:8]}"  # the other one is of an earlier attempt
    return beside


def kept_files(files: Files, node: NodeId, config: ConfigFile | NoFile | Unknown | None) -> KeptFiles | Unknown:
    """Every copy beside the node's configuration, and the meta.properties of each of its directories."""
    if not isinstance(config, ConfigFile):
        return config if isinstance(config, Unknown) else Unknown(f"node {int(node)} has no configuration file")
    folder, name = os.path.split(config.target or config.path)
    try:
        copies = [entry for entry in files.names(node, folder) if entry.startswith(name + BACKUP_SUFFIX)]
        kept = tuple(_read(files, node, os.path.join(folder, entry)) for entry in copies)  # noqa: PTH118 - of a host
    except OSError as error:
        return Unknown(f"the copies beside {config.path} cannot be read: {error.strerror or error}")
    metas: list[HostFile] = []
    for directory in all_directories(config.values):
        with contextlib.suppress(OSError):  # the disks' view reports unhealthy directories
            metas.append(_read(files, node, f"{directory}/{META_PROPERTIES}"))
    return KeptFiles(kept, tuple(metas))


def _read(files: Files, node: NodeId, path: str) -> HostFile:
    raw = files.read(node, path)
    return HostFile(path, raw, hashlib.sha256(raw).hexdigest())


ASIDE_FOLDER: Final = "kraft-migrate-aside"
# what Kafka writes there; meta.properties goes last: a directory without it has nothing more to set aside, and a folder
# without it takes the rest after a kill
ENTRIES: Final = ("bootstrap.checkpoint", ".lock", METADATA_FOLDER, META_PROPERTIES)


def holds_metadata(files: Files, node: NodeId, directory: str) -> bool:
    """Does the directory contain a quorum's metadata?  OSError where that cannot be seen."""
    if files.exists(node, f"{directory}/{META_PROPERTIES}"):
        return True
    return files.exists(node, directory) and METADATA_FOLDER in files.names(node, directory)


def choose_aside_folder(files: Files, node: NodeId, directory: str, moment: str) -> str:
    """Return the folder that an interrupted move began to fill, or an unused name.  OSError."""
    names = files.names(node, directory)
    begun = [name for name in names if name.startswith(f"{ASIDE_FOLDER}-")]
    for name in reversed(begun if not isinstance(files, ManualFiles) else []):
        taken = {META_PROPERTIES, *(entry for entry in ENTRIES if entry in names)}
        if not any(files.exists(node, f"{directory}/{name}/{entry}") for entry in taken):
            return f"{directory}/{name}"
    new, number = f"{ASIDE_FOLDER}-{moment}", 1
    while new in names:
        new, number = f"{ASIDE_FOLDER}-{moment}-{number}", number + 1
    return f"{directory}/{new}"


def set_metadata_aside(files: Files, node: NodeId, directory: str, new: str, between: Callable[[str], None]) -> None:
    """Move Kafka's files into the folder; `between` is called before each rename.  OSError."""
    if isinstance(files, ManualFiles):
        files.move_entries(node, directory, new, ENTRIES)
        return
    files.make_directory(node, new)
    names = files.names(node, directory)
    for entry in ENTRIES:
        if entry in names:
            between(entry)
            files.rename(node, f"{directory}/{entry}", f"{new}/{entry}")


SUFFIXES: Final = (BACKUP_SUFFIX, ASIDE_SUFFIX)


def leftovers(files: Files, node: BrokerNode | ControllerNode) -> tuple[str, ...]:
    """List copies beside a node's file and folders in its metadata directory.  OSError where they cannot be listed."""
    folder, name = os.path.split(target_of(files, node.id, node.config) or node.config)
    beginnings = tuple(name + suffix for suffix in SUFFIXES)
    found = [f"{folder}/{entry}" for entry in files.names(node.id, folder) if entry.startswith(beginnings)]
    if isinstance(node, ControllerNode):
        home = node.metadata_directory.rstrip("/")
        with contextlib.suppress(FileNotFoundError):
            names = files.names(node.id, home)
            found += [f"{home}/{entry}" for entry in names if entry.startswith(f"{ASIDE_FOLDER}-")]
    return tuple(found)


def is_copy(path: str) -> bool:
    """Is the path, by its name, a copy or a file that was set aside?"""
    return any(suffix in os.path.basename(path) for suffix in SUFFIXES)  # noqa: PTH119 - a path of another host
