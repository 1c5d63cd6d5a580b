"""Parts of the world as checks ask for them: the value where it is known, and what is missing with the reason.

A part that cannot exist yet (the metadata before there is a quorum) is neither: there is nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar

from migrate.checks import processes
from migrate.checks.phase import no_quorum_yet
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.launch import Launch, Listening, Unit
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    KraftView,
    LiveView,
    LogDirAnswer,
    MetadataAnswer,
    NodeAnswer,
    NoFile,
    PartlyRead,
    Quorum,
    Stopped,
    ZookeeperView,
)
from migrate.model.world import World

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")
Configs = dict[NodeId, ConfigFile]
Disks = dict[NodeId, BrokerDisks]
Missing = tuple[tuple[str, str], ...]  # (what, reason)
Names = tuple[str, str]  # of one node's part, and of all together
NOT_LOOKED: Final = Unknown("it was not looked at")
Key = tuple[Any, ...]
_ANSWERS: Final[ContextVar[dict[Key, tuple[tuple[Any, ...], Any]] | None]] = ContextVar("answers", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Within the block each `remembered` function answers once for the same objects, by identity: views are frozen.

    Answers are kept with their arguments, so that no other object gets their identity; nothing outlives the block, and
    a block within another one shares its answers.
    """
    answers = _ANSWERS.get()
    token = _ANSWERS.set({} if answers is None else answers)
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """Ask the function once per block for the same arguments; its answer is shared, so nobody may change it."""

    @wraps(function)
    def asked(*args: P.args, **words: P.kwargs) -> T:
        answers = _ANSWERS.get()
        if answers is None or words:
            return function(*args, **words)
        key = (function, *map(id, args))
        if key not in answers:
            answers[key] = (args, function(*args, **words))
        answer: T = answers[key][1]
        return answer

    return asked


@dataclass(frozen=True, slots=True)
class Sight(Generic[T]):
    """`value` is None where nothing can be decided; `missing` says what is Unknown.  Both may hold."""

    value: T | None
    missing: Missing = ()


def of_node(part: Mapping[NodeId, T] | Unknown, node: int) -> T | Unknown:
    """One node's entry in a part of the world; Unknown where the part is, or nobody looked."""
    return part if isinstance(part, Unknown) else part.get(NodeId(node), NOT_LOOKED)


def _whole(part: T | Unknown, name: str) -> Sight[T]:
    return Sight(None, ((name, part.reason),)) if isinstance(part, Unknown) else Sight(part)


def _live(world: World, part: Callable[[LiveView], T | Unknown]) -> T | Unknown:
    return world.live if isinstance(world.live, Unknown) else part(world.live)


def _by_node(
    found: Mapping[NodeId, T | Unknown] | Unknown, nodes: Iterable[BrokerNode | ControllerNode], names: Names
) -> Sight[dict[NodeId, T]]:
    if isinstance(found, Unknown):
        return Sight(None, ((names[1], found.reason),))
    known: dict[NodeId, T] = {}
    missing: list[tuple[str, str]] = []
    for node in nodes:
        entry = of_node(found, node.id)
        if isinstance(entry, Unknown):
            missing.append((names[0].format(int(node.id)), entry.reason))
        else:
            known[node.id] = entry
    return Sight(known or None, tuple(missing))


def _joined(one: Sight[dict[NodeId, T]], two: Sight[dict[NodeId, T]]) -> Sight[dict[NodeId, T]]:
    return Sight({**(one.value or {}), **(two.value or {})} or None, (*one.missing, *two.missing))


def inventory(world: World) -> Sight[Inventory]:
    return Sight(world.inventory)


def zookeeper(world: World) -> Sight[ZookeeperView]:
    return _whole(world.zookeeper, "ZooKeeper")


def readable_zookeeper(world: World) -> Sight[ZookeeperView]:
    """What of ZooKeeper's tree could be read, for findings about single objects; malformed parts are missing."""
    found = world.zookeeper
    if isinstance(found, PartlyRead):
        return Sight(found.view, (("the malformed parts of ZooKeeper", found.reason),))
    return _whole(found, "ZooKeeper")


def kraft(world: World) -> Sight[KraftView]:
    """The metadata image; nothing to see before there is a quorum."""
    return Sight(None) if no_quorum_yet(world) else _whole(world.kraft, "the KRaft metadata")


def live_quorum(world: World) -> Sight[Quorum]:
    """DescribeQuorum; nothing to see before there is a quorum."""
    found = _live(world, lambda live: live.quorum)
    return Sight(None) if no_quorum_yet(world) else _whole(found, "the controllers' quorum")


def controller_answers(world: World) -> Sight[dict[NodeId, NodeAnswer]]:
    """What each controller says of itself; nothing to see before there is a quorum.

    Where one does not run, the reason names its host and unit, and how it is started.
    """
    if no_quorum_yet(world):
        return Sight(None)
    found = _live(world, lambda live: live.controllers)
    if not isinstance(found, Unknown):
        found = dict(found)
        for node in world.inventory.controllers:
            stopped = isinstance(of_node(world.services, node.id), Stopped)
            if isinstance(found.get(node.id), Unknown) and stopped:
                said = processes.do_not_run(world.inventory, [node.id])
                found[node.id] = Unknown(f"{said}; {processes.start(world.inventory, [node.id])}")
    names = "what controller {} says of itself", "what the controllers say of themselves"
    return _by_node(found, world.inventory.controllers, names)


def broker_answers(world: World) -> Sight[dict[NodeId, NodeAnswer]]:
    names = "what broker {} says of itself", "what the brokers say of themselves"
    return _by_node(_live(world, lambda live: live.brokers), world.inventory.brokers, names)


def metadata_answers(world: World) -> Sight[dict[NodeId, MetadataAnswer]]:
    names = "the Metadata answer of broker {}", "the brokers' Metadata answers"
    return _by_node(_live(world, lambda live: live.metadata), world.inventory.brokers, names)


def log_dir_answers(world: World) -> Sight[dict[NodeId, tuple[LogDirAnswer, ...]]]:
    names = "the DescribeLogDirs answer of broker {}", "the brokers' DescribeLogDirs answers"
    return _by_node(_live(world, lambda live: live.log_dirs), world.inventory.brokers, names)


@remembered
def broker_disks(world: World) -> Sight[Disks]:
    return _by_node(world.disks, world.inventory.brokers, ("the disks of broker {}", "the brokers' disks"))


def every_disk(world: World) -> Sight[Disks]:
    """Each node's directories: controllers' metadata directories too, where there is a quorum already."""
    brokers, names = broker_disks(world), ("the disks of controller {}", "the controllers' disks")
    if no_quorum_yet(world):
        return brokers
    return _joined(brokers, _by_node(world.disks, world.inventory.controllers, names))


def broker_configs(world: World) -> Sight[Configs]:
    """Each broker's configuration file; one that does not exist is missing."""
    names = "the configuration of broker {}", "the brokers' configuration files"
    return _files(world, world.inventory.brokers, names, planned=False)


def broker_configs_now(world: World) -> Sight[Configs]:
    """The same, for what is right or wrong of a file at this moment alone: not asked of files to come."""
    return broker_configs(world)


def controller_configs(world: World) -> Sight[Configs]:
    """Each controller's file; one that does not exist yet is not missed while there is no quorum."""
    names = "the configuration of controller {}", "the controllers' configuration files"
    return _files(world, world.inventory.controllers, names, planned=no_quorum_yet(world))


def _files(
    world: World, nodes: Iterable[BrokerNode | ControllerNode], names: Names, *, planned: bool
) -> Sight[Configs]:
    if isinstance(world.configs, Unknown):
        return Sight(None, ((names[1], world.configs.reason),))
    entries: dict[NodeId, ConfigFile | Unknown] = {}
    for node in nodes:
        entry = world.configs.get(node.id, Unknown("it was not read"))
        if not isinstance(entry, NoFile):
            entries[node.id] = entry
        elif not planned:
            copies = "a copy of one that was there is beside it, or in backup/ of a run's folder"
            entries[node.id] = Unknown(f"{entry.path} does not exist; {copies}")
    return _by_node(entries, [node for node in nodes if node.id in entries], names)


def node_configs(world: World) -> Sight[Configs]:
    """All files of brokers and controllers that can be seen."""
    return _joined(broker_configs(world), controller_configs(world))


def broker_launches(world: World) -> Sight[dict[NodeId, Launch]]:
    """How each broker's process was started; of one that does not run, nothing can be seen."""
    names = "how broker {} was started", "how the brokers were started"
    return _by_node(world.launches, world.inventory.brokers, names)


def controller_launches(world: World) -> Sight[dict[NodeId, Launch]]:
    """How each controller's process was started, or will be, as far as that can be foreseen."""
    names = "how controller {} is started", "how the controllers are started"
    return _by_node(world.launches, world.inventory.controllers, names)


def controller_ports(world: World) -> Sight[dict[NodeId, tuple[Listening, ...]]]:
    names = "the ports of controller {}'s host", "the ports of the controllers' hosts"
    return _by_node(world.ports, world.inventory.controllers, names)


def host_rights(world: World) -> Sight[dict[NodeId, HostRights]]:
    """What is allowed on each node's host; nothing to see where a supervisor or people work them."""
    if world.inventory.executor not in ("local", "ssh"):
        return Sight(None)
    names = "the rights on node {}'s host", "the rights on the nodes' hosts"
    return _by_node(world.host_rights, world.inventory.nodes, names)


def units(world: World) -> Sight[dict[NodeId, Unit]]:
    """What systemd says of each node's unit; nothing to see where nodes are no units that the executor works."""
    if world.inventory.executor not in ("local", "ssh"):
        return Sight(None)
    return _by_node(world.units, world.inventory.nodes, ("the unit of node {}", "the nodes' units"))


def controller_units(world: World) -> Sight[dict[NodeId, Unit]]:
    """The same of controllers alone."""
    if world.inventory.executor not in ("local", "ssh"):
        return Sight(None)
    names = "the unit of controller {}", "the controllers' units"
    return _by_node(world.units, world.inventory.controllers, names)


def ledger(world: World) -> Sight[Ledger]:
    return _whole(world.ledger, "the ledger")


def diff(world: World) -> Sight[DiffReport]:
    return _whole(world.diff, "the comparison of ZooKeeper with KRaft")


def entities(view: ZookeeperView, kind: str) -> Iterator[tuple[str, str, str, str]]:
    """Key, name, value and znode of each of the view's rows of that kind."""
    rows = view.entities
    for row in zip(rows.kind, rows.key, rows.name, rows.value, rows.where, strict=True):
        if row[0] == kind:
            yield row[1:]


def both(
    first: Callable[[World], Sight[T]], second: Callable[[World], Sight[U]]
) -> Callable[[World], Sight[tuple[T, U]]]:
    """Two parts at once: decided only where both are known."""

    def look(world: World) -> Sight[tuple[T, U]]:
        one, two = first(world), second(world)
        missing = tuple(dict.fromkeys((*one.missing, *two.missing)))
        if one.value is None or two.value is None:
            return Sight(None, missing)
        return Sight((one.value, two.value), missing)

    return look


both_configs = both(broker_configs, controller_configs)
FILES: Final = frozenset({broker_configs, controller_configs, node_configs, both_configs})  # nothing but files
