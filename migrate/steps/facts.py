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
from migrate.model.step import Predicted
from migrate.model.views import ConfigFile, LiveView, NoFile, NoZnode, NullZnode
from migrate.model.world import World

ABSENT: Final = "absent"
UNKNOWN: Final = "unknown"


def sha256(content: bytes) -> str:
    """Hex SHA-256."""
    return hashlib.sha256(content).hexdigest()


def config(world: World, node: int) -> ConfigFile | NoFile | Unknown:
    """A node's configuration file as it was observed."""
    if isinstance(world.configs, Unknown):
        return world.configs
    return world.configs.get(NodeId(node), Unknown(f"the file of node {node} was not read"))


def offline_directories(live: LiveView) -> list[tuple[int, str]]:
    """(broker, path) of every log directory that its broker calls offline."""
    told = ((node, found) for node, found in sorted(live.log_dirs.items()) if not isinstance(found, Unknown))
    return [(int(node), entry.path) for node, found in told for entry in found if entry.error]


def predicted_config(world: World, before: Predicted, node: int) -> bytes | None:
    """The file's bytes as the steps before leave them; None where it does not exist."""
    if NodeId(node) in before.configs:
        return before.configs[NodeId(node)]
    seen = config(world, node)
    return seen.raw if isinstance(seen, ConfigFile) else None


def with_config(before: Predicted, node: int, content: bytes) -> Predicted:
    """The prediction after that file was written."""
    modes = {**before.modes, NodeId(node): node_mode(parse(content))}
    return Predicted(configs={**before.configs, NodeId(node): content}, modes=modes)


def observed(world: World, keys: Iterable[str]) -> dict[str, str]:
    """The observed value of each fact; `unknown` where it cannot be seen."""
    return {key: _observe(world, *key.partition(":")[::2]) for key in keys}


def shown(world: World, key: str) -> str:
    """What a fact is about, for people: a file by its path, node and host; other facts by their key."""
    name, _, about = key.partition(":")
    if name != "config":
        return key
    node = world.inventory.node(int(about))
    return f"{node.config} of {processes.called(world.inventory, int(about))} on {node.host}"


def _observe(world: World, name: str, about: str) -> str:
    match name:
        case "config":
            return _config_sha(world, int(about))
        case "mode":
            found = config(world, int(about))
            return node_mode(found.values) if isinstance(found, ConfigFile) else UNKNOWN
        case "registered":
            return _registered(world, int(about))
        case "cluster_id":
            return _cluster_id(world)
        case "log_dirs":
            return _log_dirs(world, int(about))
        case "migration_state":
            return UNKNOWN if isinstance(world.kraft, Unknown) else world.kraft.migration_state.name
        case "migration_znode":
            return _migration_znode(world)
        case "controller_znode":
            return _controller_znode(world)
        case "session":
            return _session(world, int(about))
        case _:
            return UNKNOWN


def _config_sha(world: World, node: int) -> str:
    match config(world, node):
        case ConfigFile(sha256=digest):
            return digest
        case NoFile():
            return ABSENT
        case _:
            return UNKNOWN


def _registered(world: World, node: int) -> str:
    if isinstance(world.kraft, Unknown):
        return UNKNOWN
    registration = world.kraft.brokers.get(NodeId(node))
    if registration is None:
        return "no"
    return Mode.MIGRATION if registration.migrating else Mode.KRAFT


def _cluster_id(world: World) -> str:
    if not isinstance(world.zookeeper, Unknown):
        return world.zookeeper.cluster_id
    return UNKNOWN if isinstance(world.kraft, Unknown) else world.kraft.cluster_id


def _log_dirs(world: World, node: int) -> str:
    found = config(world, node)
    if not isinstance(found, ConfigFile):
        return UNKNOWN
    return found.values.get("log.dirs", found.values.get("log.dir", ""))


def _migration_znode(world: World) -> str:
    if isinstance(world.zookeeper, Unknown):
        return UNKNOWN
    match world.zookeeper.migration:
        case NoZnode():
            return ABSENT
        case Unknown():
            return UNKNOWN
        case NullZnode():
            return "null"
        case znode:
            return "copied" if znode.copied else "waiting"


def _controller_znode(world: World) -> str:
    """Whose /controller is: `zookeeper` for a broker's, `kraft` for a KRaft controller's."""
    if isinstance(world.zookeeper, Unknown):
        return UNKNOWN
    match world.zookeeper.controller:
        case NoZnode():
            return ABSENT
        case Unknown():
            return UNKNOWN
        case _:
            return "kraft" if world.zookeeper.kraft_owns else "zookeeper"


def _session(world: World, broker: int) -> str:
    """Has the broker a registration in /brokers/ids?"""
    if isinstance(world.zookeeper, Unknown):
        return UNKNOWN
    return "yes" if NodeId(broker) in world.zookeeper.brokers else "no"
