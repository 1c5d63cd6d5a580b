"""Facts by name: what plans are bound to and what predictions are held against (pure).

A fact is a short text under a key such as `config:1`.  The same key is computed from the predicted world while a plan
is built, and from the observed world when a step is about to act or has acted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from migrate.checks import processes
from migrate.hosts.properties import parse
from migrate.model.broker_modes import Mode, node_mode
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.step import NO_ZNODE, Predicted
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    ControllerZnode,
    LiveView,
    MigrationZnode,
    NoFile,
    NoZnode,
    NullZnode,
    ZookeeperView,
)
from migrate.model.world import World

ABSENT: Final = "absent"
UNKNOWN: Final = "unknown"
NO_COPY: Final = "no copy yet"  # /migration as controllers make it


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def brokers(world: World) -> tuple[int, ...]:
    return tuple(int(node.id) for node in world.inventory.brokers)


def controllers(world: World) -> tuple[int, ...]:
    return tuple(int(node.id) for node in world.inventory.controllers)


def config(world: World, node: int) -> ConfigFile | NoFile | Unknown:
    if isinstance(world.configs, Unknown):
        return world.configs
    return world.configs.get(NodeId(node), Unknown(f"the file of node {node} was not read"))


def disks(world: World, node: int, unseen: str = "") -> BrokerDisks | Unknown:
    """A node's directories as they were observed; `unseen` is the reason where nobody looked at that node."""
    if isinstance(world.disks, Unknown):
        return world.disks
    return world.disks.get(NodeId(node), Unknown(unseen or f"the disks of broker {node} were not looked at"))


def offline_directories(live: LiveView) -> list[tuple[int, str]]:
    told = ((node, found) for node, found in sorted(live.log_dirs.items()) if not isinstance(found, Unknown))
    return [(int(node), entry.path) for node, found in told for entry in found if entry.error]


def predicted_config(world: World, before: Predicted, node: int) -> bytes | None:
    if NodeId(node) in before.configs:
        return before.configs[NodeId(node)]
    seen = config(world, node)
    return seen.raw if isinstance(seen, ConfigFile) else None


def file_name(world: World, node: int) -> str:
    """A node's file for people; both names where it is a link."""
    seen = config(world, node)
    return seen.shown if isinstance(seen, ConfigFile) else world.inventory.node(node).config


def predicted_sha256(world: World, before: Predicted, node: int) -> str:
    raw = predicted_config(world, before, node)
    return UNKNOWN if raw is None else sha256(raw)


def with_config(before: Predicted, node: int, content: bytes) -> Predicted:
    modes = {**before.modes, NodeId(node): node_mode(parse(content))}
    return Predicted(configs={**before.configs, NodeId(node): content}, modes=modes)


def observed(world: World, keys: Iterable[str]) -> dict[str, str]:
    return {key: _observe(world, *key.partition(":")[::2]) for key in keys}


def shown(world: World, key: str) -> str:
    """What a fact is about, for people: a file by its path, node and host; other facts by their key."""
    name, _, about = key.partition(":")
    if name != "config":
        return key
    node = world.inventory.node(int(about))
    return f"{node.config} of {processes.name_of(world.inventory, int(about))} on {node.host}"


def _observe(world: World, name: str, about: str) -> str:
    match name:
        case "config" | "mode" | "log_dirs":
            return _of_file(config(world, int(about)), name)
        case "registered" | "migration_state":
            if isinstance(world.kraft, Unknown):
                return UNKNOWN
            if name == "migration_state":
                return world.kraft.migration_state.name
            found = world.kraft.brokers.get(NodeId(int(about)))
            return "no" if found is None else Mode.MIGRATION if found.migrating else Mode.KRAFT
        case "cluster_id":
            view = world.kraft if isinstance(world.zookeeper, Unknown) else world.zookeeper
            return UNKNOWN if isinstance(view, Unknown) else view.cluster_id
        case "migration_znode" | "controller_znode" | "session":
            return UNKNOWN if isinstance(world.zookeeper, Unknown) else _of_zookeeper(world.zookeeper, name, about)
        case _:
            return UNKNOWN


def _of_file(file: ConfigFile | NoFile | Unknown, name: str) -> str:
    if not isinstance(file, ConfigFile):
        return ABSENT if name == "config" and isinstance(file, NoFile) else UNKNOWN
    if name == "config":
        return file.sha256
    return node_mode(file.values) if name == "mode" else file.values.get("log.dirs", file.values.get("log.dir", ""))


def version_and_value(
    found: ControllerZnode | MigrationZnode | NullZnode | NoZnode | Unknown,
) -> tuple[int | None, str | None]:
    """A znode of the takeover as a plan shows it: its version, and its value in words; None where it is not known."""
    match found:
        case Unknown():
            return None, None
        case NoZnode():
            return None, NO_ZNODE
        case NullZnode(version=version):
            return version, "no data"
        case ControllerZnode(id=owner, version=version) if found.ephemeral:
            return version, f"broker {owner}"
        case ControllerZnode(id=owner, version=version):
            return version, f"controller {owner} (KRaft epoch {found.kraft_epoch})"
        case MigrationZnode(version=version) if found.copied:
            told = f"a copy up to metadata offset {found.offset}, epoch {found.epoch}, by controller"
            return version, f"{told} {found.controller_id}"
        case MigrationZnode(version=version):
            return version, NO_COPY


def _of_zookeeper(view: ZookeeperView, name: str, about: str) -> str:
    """/controller is `zookeeper` where a broker owns it, `kraft` where a KRaft controller does."""
    if name == "session":
        return "yes" if NodeId(int(about)) in view.brokers else "no"
    match view.migration if name == "migration_znode" else view.controller:
        case NoZnode():
            return ABSENT
        case Unknown():
            return UNKNOWN
        case NullZnode():
            return "null"
        case MigrationZnode(copied=copied):
            return "copied" if copied else "waiting"
        case _:
            return "kraft" if view.kraft_owns else "zookeeper"
