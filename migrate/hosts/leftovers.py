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
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from migrate.hosts.collected import METADATA_FOLDER
from migrate.hosts.manual.executor import ManualFiles
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.properties import all_directories
from migrate.hosts.remote_files import RemoteFiles
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.outcome import Unknown
from migrate.model.ports import Files, target_of
from migrate.model.views import ConfigFile, HostFile, KeptFiles, NoFile

BACKUP_SUFFIX: Final = ".kraft-migrate-backup"
ASIDE_SUFFIX: Final = ".kraft-migrate-set-aside"


def read_all(files: Files, node: NodeId, paths: Sequence[str]) -> dict[str, bytes | OSError]:
    """Each file's bytes, or why it cannot be read; in one round trip where the executor can."""
    if isinstance(files, RemoteFiles):
        return files.read_all(node, paths)
    found: dict[str, bytes | OSError] = {}
    for path in paths:
        try:
            found[path] = files.read(node, path)
        except OSError as error:
            found[path] = error
    return found


def keep_copies(files: Files, node: NodeId, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Keep a copy of each of those files beside it, path -> copy; by one command where the executor can.

    Raises:
        OSError: what has a copy's name cannot be read.
        FileNotReplaced, HostCommandUnknown: as of `write`; some of the copies may be there.
    """
    named = {path: (target_of(files, node, path) or path) + BACKUP_SUFFIX for path in contents}
    there = _there(files, node, named.values())
    for path, content in contents.items():
        if there.get(named[path], content) != content:  # the other one is of an earlier attempt
            named[path] = f"{named[path]}-{hashlib.sha256(content).hexdigest()[:8]}"
    there |= _there(files, node, [copy for copy in named.values() if not copy.endswith(BACKUP_SUFFIX)])
    wanted = {path: (copy, contents[path]) for path, copy in named.items() if copy not in there}
    if wanted and isinstance(files, RemoteFiles):
        files.keep(node, wanted)
        return named
    for copy, content in wanted.values():
        files.write(node, copy, content)
    return named


def _there(files: Files, node: NodeId, paths: Collection[str]) -> dict[str, bytes]:
    """The bytes of those that are there."""
    found: dict[str, bytes] = {}
    for path, content in read_all(files, node, tuple(paths)).items():
        if isinstance(content, bytes):
            found[path] = content
        elif not isinstance(content, FileNotFoundError):
            raise content
    return found


def kept_files(files: Files, node: NodeId, config: ConfigFile | NoFile | Unknown | None) -> KeptFiles | Unknown:
    """Every copy beside the node's configuration, and the meta.properties of each of its directories."""
    if not isinstance(config, ConfigFile):
        return config if isinstance(config, Unknown) else Unknown(f"node {int(node)} has no configuration file")
    metas = [f"{directory}/{META_PROPERTIES}" for directory in all_directories(config.values)]
    return kept_beside(files, node, config.path, metas)


def kept_beside(files: Files, node: NodeId, path: str, metas: Sequence[str] = ()) -> KeptFiles | Unknown:
    """Every copy beside that file, which may be gone itself, and those meta.properties."""
    try:
        folder, name = os.path.split(target_of(files, node, path) or path)
        entries = [entry for entry in files.names(node, folder) if entry.startswith(name + BACKUP_SUFFIX)]
    except OSError as error:
        return Unknown(f"the copies beside {path} cannot be read: {error.strerror or error}")
    copies = [os.path.join(folder, entry) for entry in entries]  # noqa: PTH118 - of a host
    kept: dict[str, HostFile] = {}
    for place, raw in read_all(files, node, (*copies, *metas)).items():
        if isinstance(raw, bytes):
            kept[place] = HostFile(place, raw, hashlib.sha256(raw).hexdigest())
        elif place in copies:  # the disks' view reports unhealthy directories
            return Unknown(f"the copies beside {path} cannot be read: {raw.strerror or raw}")
    return KeptFiles(tuple(kept[place] for place in copies), tuple(kept[place] for place in metas if place in kept))


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
