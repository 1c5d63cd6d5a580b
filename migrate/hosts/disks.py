"""Log directories of nodes, present and planned, as the collector sees them.

The host program starts `collect_disks.py` as the unit's user; `collected.py` decodes its answer, and checks its hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.collect_disks import PROBE_PREFIX
from migrate.hosts.collected import decode_collected
from migrate.hosts.properties import all_directories
from migrate.hosts.runner import Runner
from migrate.model import strict_json
from migrate.model.codec import decode
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.new_directories import NewDirectory
from migrate.model.outcome import Unknown, unknown
from migrate.model.ports import Disks
from migrate.model.views import BrokerDisks, ConfigFile, Directory, NoFile

NAMES: Final = 50  # names that a look keeps: one is enough to refuse
Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown]


@dataclass(frozen=True, slots=True)
class Told:
    """A path with its links resolved, and the names in it; () where it cannot be listed."""

    real: str
    names: tuple[str, ...] = ()


class PathDisks(Disks, Protocol):
    """Disks of hosts that also resolve paths."""

    def told(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        """Each path's; Unknown where the host does not answer."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A directory in use, or wanted: its node and host."""

    node: NodeId
    host: str
    path: str


def inspect_new_directories(
    disks: PathDisks,
    inventory: Inventory,
    configs: Configs,
    wanted: Mapping[NodeId, tuple[str, ...]],
) -> dict[NodeId, tuple[NewDirectory, ...] | Unknown]:
    """Inspect each broker's wanted directories; Unknown where they, or the directories in use, cannot be inspected.

    Directories are compared by their resolved paths, not by their spelling.
    """
    used = _used(inventory, configs, wanted)
    known = used if isinstance(used, Unknown) else _resolve(used, disks)
    if isinstance(known, Unknown):
        return dict.fromkeys(wanted, known)
    return {node: _of_broker(disks, node, paths, known) for node, paths in wanted.items()}


def _of_broker(
    disks: Disks, node: NodeId, paths: Sequence[str], known: Mapping[_Place, Told]
) -> tuple[NewDirectory, ...] | Unknown:
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
    """Every log directory in use, by the configuration files, and every wanted one."""
    found: dict[_Place, None] = {}
    for broker in inventory.brokers:
        found |= dict.fromkeys(_Place(broker.id, broker.host, path) for path in wanted.get(broker.id, ()))
        file = configs.get(broker.id, Unknown("it was not read"))
        if isinstance(file, Unknown):
            return Unknown(f"which directories broker {int(broker.id)} uses is unknown: {file.reason}")
        if isinstance(file, ConfigFile):
            found |= dict.fromkeys(_Place(broker.id, broker.host, path) for path in all_directories(file.values))
    for controller in inventory.controllers:
        found[_Place(controller.id, controller.host, controller.metadata_directory)] = None
    return tuple(found)


def _resolve(used: Sequence[_Place], disks: PathDisks) -> Mapping[_Place, Told] | Unknown:
    """Resolve the places on their hosts; Unknown where one does not say: its directories may be any of the others."""
    found: dict[_Place, Told] = {}
    for node in dict.fromkeys(place.node for place in used):
        mine = {place.path: place for place in used if place.node == node}
        told = disks.told(node, tuple(mine))
        if isinstance(told, Unknown):
            return told
        if untold := sorted(mine.keys() - told.keys()):
            return Unknown(f"the host of node {int(node)} does not say where {untold[0]} leads to")
        found |= {mine[path]: told[path] for path in mine}
    return found


def _taken(own: _Place, known: Mapping[_Place, Told]) -> Iterator[str]:
    """Other directories of the host that are the same one, contain it, or are inside it."""
    real = known[own].real
    for other, told in known.items():
        if other.host != own.host or other == own:
            continue
        if told.real == real or _inside(real, told.real) or _inside(told.real, real):
            yield f"{other.path} of node {int(other.node)}"


def _inside(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


LOOK_SECONDS: Final = 120.0  # 10 s for a disk to store a block, and time to list some 100,000 folders
TELL_SECONDS: Final = 30.0


class CollectorDisks:
    """Implements `PathDisks`."""

    def __init__(self, runners: Mapping[NodeId, Runner]) -> None:
        self._runners = runners

    def look(self, broker: NodeId, log_dirs: Sequence[str], metadata_dir: str | None) -> BrokerDisks | Unknown:
        known = {os.path.normpath(path) for path in log_dirs}
        apart = metadata_dir if metadata_dir and os.path.normpath(metadata_dir) not in known else None
        paths = tuple(dict.fromkeys((*log_dirs, *([apart] if apart else []))))
        try:
            runner = self._runners[broker]
            host, done = runner.host, runner.run(commands.collector(broker, paths), seconds=LOOK_SECONDS)
            if done.code:
                return Unknown(f"the look at the disks of {host} ended with {done.code}: {done.says}")
            disks = decode_collected(done.output, f"{host}: the collector's answer").disks
        except MigrateError as error:
            return unknown(error)
        if isinstance(disks, Unknown):
            return disks
        found: Mapping[str, Directory] = {entry.path: entry for entry in disks.directories}
        if missing := [path for path in paths if path not in found]:
            return Unknown(f"{host} did not answer for {', '.join(missing)}")
        return BrokerDisks(broker, tuple(found[path] for path in log_dirs), found[apart] if apart else None)

    def told(self, node: NodeId, paths: Sequence[str]) -> Mapping[str, Told] | Unknown:
        runner = self._runners[node]
        try:
            done = runner.run(commands.resolve_paths(node, tuple(paths)), seconds=TELL_SECONDS)
        except MigrateError as error:
            return unknown(error)
        if done.code:
            return Unknown(f"where paths lead to on {runner.host} is unknown: {done.says or done.code}")
        try:
            found = strict_json.mapping(done.output, surrogates=True)
            return {path: _told(entry) for path, entry in found.items()}
        except ValueError as error:
            return Unknown(f"{runner.host} gave no answer that can be read: {error}")


def _told(entry: Any) -> Told:
    told: Told = decode(Told, entry, "it", plain=True)
    if not told.real.startswith("/"):
        raise ValueError(f"{told.real[:80]!r} is no absolute path")
    return told


def not_storing(disks: Disks, node: NodeId, paths: Sequence[str]) -> Mapping[str, str]:
    """Return path -> why that directory does not store a block now; every path where the host cannot be asked.

    The check before a stopped broker starts: a disk that became read-only or full still shows its meta.properties.
    """
    found = disks.look(node, paths, None)
    if isinstance(found, Unknown):
        return dict.fromkeys(paths, f"cannot be looked at: {found.reason}")
    return {entry.path: entry.problem for entry in found.directories if entry.problem}
