"""What runs leave on the nodes' hosts: copies of files, and what was set aside.  Secrets of Kafka's are in them."""

from __future__ import annotations

import os
from typing import Final

from migrate.hosts.aside import FOLDER
from migrate.hosts.backups import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.ports import Files

SUFFIXES: Final = (BACKUP_SUFFIX, ASIDE_SUFFIX)


def leftovers(files: Files, node: BrokerNode | ControllerNode) -> tuple[str, ...]:
    """Paths beside a node's file, and of folders in its metadata directory.  OSError where they cannot be listed."""
    folder, name = os.path.split(node.config)
    beginnings = tuple(name + suffix for suffix in SUFFIXES)
    found = [f"{folder}/{entry}" for entry in files.names(node.id, folder) if entry.startswith(beginnings)]
    if isinstance(node, ControllerNode):
        home = node.metadata_directory.rstrip("/")
        found += [f"{home}/{entry}" for entry in _names(files, node.id, home) if entry.startswith(f"{FOLDER}-")]
    return tuple(found)


def is_copy(path: str) -> bool:
    """Is it a copy of a file, or a file that was set aside, by its name?"""
    return any(suffix in os.path.basename(path) for suffix in SUFFIXES)  # noqa: PTH119 - a path of another host


def _names(files: Files, node: NodeId, folder: str) -> list[str]:
    try:
        return list(files.names(node, folder))
    except FileNotFoundError:
        return []
