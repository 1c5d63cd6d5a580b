"""Directories of this host that brokers shall get as log directories: looked at as those that they have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.hosts.config import log_dirs, metadata_log_dir
from migrate.hosts.directories import PROBE_PREFIX, LocalDisks
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, NoFile

NAMES: Final = 50  # names that a look keeps: one is enough to refuse
Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory in use, or wanted: whose it is, on which host, where it really lies."""

    node: NodeId
    host: str
    path: str
    real: str


def look(
    disks: LocalDisks, inventory: Inventory, configs: Configs, wanted: Mapping[NodeId, tuple[str, ...]]
) -> dict[NodeId, tuple[NewDirectory, ...] | Unknown]:
    """Each broker's wanted directories; Unknown where they cannot be looked at, or where it is not known what is used.

    A directory of another broker, or of this one, is told by where its path leads to, not by its spelling.
    """
    places = _places(inventory, configs, wanted)
    return {node: _of_broker(disks, node, paths, places) for node, paths in wanted.items()}


def _of_broker(
    disks: LocalDisks, node: NodeId, paths: Sequence[str], places: Sequence[_Place] | Unknown
) -> tuple[NewDirectory, ...] | Unknown:
    if isinstance(places, Unknown):
        return places
    found = disks.look(node, paths, None)
    if isinstance(found, Unknown):
        return found
    entries = []
    for directory in found.directories:
        own = next(place for place in places if (place.node, place.path) == (node, directory.path))
        entries.append(NewDirectory(directory, own.real, _names(directory.path), tuple(_taken(own, places))))
    return tuple(entries)


def _places(
    inventory: Inventory, configs: Configs, wanted: Mapping[NodeId, tuple[str, ...]]
) -> tuple[_Place, ...] | Unknown:
    """Everything that is a log directory already, by the files, and everything that shall be one."""
    found: dict[tuple[NodeId, str], _Place] = {}

    def add(node: NodeId, host: str, path: str) -> None:
        found.setdefault((node, path), _Place(node, host, path, os.path.realpath(path)))

    for broker in inventory.brokers:
        for path in wanted.get(broker.id, ()):
            add(broker.id, broker.host, path)
        file = configs.get(broker.id, Unknown("it was not read"))
        if isinstance(file, Unknown):
            return Unknown(f"which directories broker {int(broker.id)} uses is unknown: {file.reason}")
        if isinstance(file, ConfigFile):
            apart = metadata_log_dir(file.values)
            for path in (*log_dirs(file.values), *([apart] if apart else [])):
                add(broker.id, broker.host, path)
    for controller in inventory.controllers:
        add(controller.id, controller.host, controller.metadata_directory)
    return tuple(found.values())


def _taken(own: _Place, places: Sequence[_Place]) -> Iterator[str]:
    """The other directories of the host that are the same, or hold one another."""
    for other in places:
        if other.host != own.host or (other.node, other.path) == (own.node, own.path):
            continue
        if other.real == own.real or _inside(own.real, other.real) or _inside(other.real, own.real):
            yield f"{other.path} of node {int(other.node)}"


def _inside(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _names(path: str) -> tuple[str, ...]:
    """What lies in it, but for our own probes; () where it cannot be listed: its look says why."""
    try:
        names = sorted(entry.name for entry in Path(path).iterdir() if not entry.name.startswith(PROBE_PREFIX))
    except OSError:
        return ()
    return tuple(names[:NAMES])
