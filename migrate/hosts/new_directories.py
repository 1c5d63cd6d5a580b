"""Inspect directories that are to become log directories, on the brokers' hosts, like those in use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from migrate.hosts.collect_disks import PROBE_PREFIX
from migrate.hosts.config import log_dirs, metadata_log_dir
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Unknown
from migrate.model.ports import Disks
from migrate.model.views import ConfigFile, NoFile

NAMES: Final = 50  # names that a look keeps: one is enough to refuse
Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]


@dataclass(frozen=True, slots=True)
class Told:
    """Where a path leads to, links resolved, and the names that lie there; () where it cannot be listed."""

    real: str
    names: tuple[str, ...] = ()


class PathDisks(Disks, Protocol):
    """Disks of hosts that also say where a path leads to."""

    def told(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        """Each path's; Unknown where the host does not answer."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory in use, or wanted: whose it is, and on which host."""

    node: NodeId
    host: str
    path: str


def look(
    disks: PathDisks,
    inventory: Inventory,
    configs: Configs,
    wanted: Mapping[NodeId, tuple[str, ...]],
) -> dict[NodeId, tuple[NewDirectory, ...] | Unknown]:
    """Each broker's wanted directories; Unknown where they cannot be looked at, or where it is not known what is used.

    A directory of another broker, or of this one, is told by where its path leads to, not by its spelling.
    """
    used = _used(inventory, configs, wanted)
    if isinstance(used, Unknown):
        return dict.fromkeys(wanted, used)
    told = _told(used, disks)
    return {node: _of_broker(disks, node, paths, told) for node, paths in wanted.items()}


def _of_broker(
    disks: Disks, node: NodeId, paths: Sequence[str], told: Mapping[NodeId, Mapping[_Place, Told] | Unknown]
) -> tuple[NewDirectory, ...] | Unknown:
    known: dict[_Place, Told] = {}
    for found in told.values():
        if isinstance(found, Unknown):  # another node's directories may be these
            return found
        known |= found
    looked = disks.look(node, paths, None)
    if isinstance(looked, Unknown):
        return looked
    entries = []
    for directory in looked.directories:
        own = next(place for place in known if (place.node, place.path) == (node, directory.path))
        names = tuple(name for name in known[own].names if not name.startswith(PROBE_PREFIX))
        entries.append(NewDirectory(directory, known[own].real, names[:NAMES], tuple(_taken(own, known))))
    return tuple(entries)


def _used(
    inventory: Inventory, configs: Configs, wanted: Mapping[NodeId, tuple[str, ...]]
) -> tuple[_Place, ...] | Unknown:
    """Everything that is a log directory already, by the files, and everything that shall be one."""
    found: dict[_Place, None] = {}
    for broker in inventory.brokers:
        found |= dict.fromkeys(_Place(broker.id, broker.host, path) for path in wanted.get(broker.id, ()))
        file = configs.get(broker.id, Unknown("it was not read"))
        if isinstance(file, Unknown):
            return Unknown(f"which directories broker {int(broker.id)} uses is unknown: {file.reason}")
        if isinstance(file, ConfigFile):
            apart = metadata_log_dir(file.values)
            paths = (*log_dirs(file.values), *([apart] if apart else []))
            found |= dict.fromkeys(_Place(broker.id, broker.host, path) for path in paths)
    for controller in inventory.controllers:
        found[_Place(controller.id, controller.host, controller.metadata_directory)] = None
    return tuple(found)


def _told(used: Sequence[_Place], disks: PathDisks) -> dict[NodeId, Mapping[_Place, Told] | Unknown]:
    """A node's places, each with what its host says."""
    found: dict[NodeId, Mapping[_Place, Told] | Unknown] = {}
    for node in dict.fromkeys(place.node for place in used):
        mine = {place.path: place for place in used if place.node == node}
        told = disks.told(node, tuple(mine))
        if isinstance(told, Unknown):
            found[node] = told
        elif untold := sorted(mine.keys() - told.keys()):
            found[node] = Unknown(f"the host of node {int(node)} does not say where {untold[0]} leads to")
        else:
            found[node] = {mine[path]: told[path] for path in mine}
    return found


def _taken(own: _Place, known: Mapping[_Place, Told]) -> Iterator[str]:
    """The other directories of the host that are the same, or hold one another."""
    real = known[own].real
    for other, told in known.items():
        if other.host != own.host or other == own:
            continue
        if told.real == real or _inside(real, told.real) or _inside(told.real, real):
            yield f"{other.path} of node {int(other.node)}"


def _inside(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder
