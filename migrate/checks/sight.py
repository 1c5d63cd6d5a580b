"""Parts of the world as checks ask for them: the value where it is known, and what is missing with the reason.

A part that cannot exist yet (the metadata before there is a quorum) is neither: there is nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from operator import attrgetter
from typing import Any, Final, Generic, ParamSpec, TypeVar

from migrate.checks import processes
from migrate.checks.phase import no_quorum_yet
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    LiveView,
    NodeAnswer,
    NoFile,
    PartlyRead,
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
Nodes = Callable[[Inventory], Iterable[BrokerNode | ControllerNode]]
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


Look = Callable[[World], Sight[T]]


def _whole(name: str, part: Callable[[World], T | Unknown]) -> Look[T]:
    """A part that is known as a whole, or not."""

    def look(world: World) -> Sight[T]:
        found = part(world)
        return Sight(None, ((name, found.reason),)) if isinstance(found, Unknown) else Sight(found)

    return look


def _each(
    names: Names, nodes: Nodes, part: Callable[[World], Mapping[NodeId, T | Unknown] | Unknown]
) -> Look[dict[NodeId, T]]:
    """A part with an entry for each of those nodes."""
    return lambda world: _by_node(part(world), nodes(world.inventory), names)


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


def _joined(one: Look[dict[NodeId, T]], two: Look[dict[NodeId, T]]) -> Look[dict[NodeId, T]]:
    def look(world: World) -> Sight[dict[NodeId, T]]:
        first, second = one(world), two(world)
        return Sight({**(first.value or {}), **(second.value or {})} or None, (*first.missing, *second.missing))

    return look


def _with_quorum(look: Look[T]) -> Look[T]:
    """Nothing to see before there is a quorum."""
    return lambda world: Sight(None) if no_quorum_yet(world) else look(world)


def _with_units(look: Look[T]) -> Look[T]:
    """Nothing to see where nodes are no units that the executor works."""
    return lambda world: look(world) if world.inventory.executor in ("local", "ssh") else Sight(None)


def _live(part: Callable[[LiveView], T | Unknown]) -> Callable[[World], T | Unknown]:
    return lambda world: world.live if isinstance(world.live, Unknown) else part(world.live)


def _files(names: Names, nodes: Nodes, planned: Callable[[World], bool]) -> Look[Configs]:
    """Each node's configuration file; one that does not exist is missing, unless it is planned."""

    def look(world: World) -> Sight[Configs]:
        if isinstance(world.configs, Unknown):
            return Sight(None, ((names[1], world.configs.reason),))
        entries: dict[NodeId, ConfigFile | Unknown] = {}
        for node in nodes(world.inventory):
            entry = world.configs.get(node.id, Unknown("it was not read"))
            if not isinstance(entry, NoFile):
                entries[node.id] = entry
            elif not planned(world):
                back = "where it was there, `apply` of the plan for the next stage says from what it is put back"
                entries[node.id] = Unknown(f"{entry.path} does not exist; {back}")
        return _by_node(entries, [node for node in nodes(world.inventory) if node.id in entries], names)

    return look


def _answers_of_controllers(world: World) -> Mapping[NodeId, NodeAnswer | Unknown] | Unknown:
    """Where one does not run, the reason names its host and unit, and how it is started."""
    found = _live(lambda live: live.controllers)(world)
    if isinstance(found, Unknown):
        return found
    found = dict(found)
    for node in world.inventory.controllers:
        stopped = isinstance(of_node(world.services, node.id), Stopped)
        if isinstance(found.get(node.id), Unknown) and stopped:
            said = processes.do_not_run(world.inventory, [node.id])
            found[node.id] = Unknown(f"{said}; {processes.start(world.inventory, [node.id])}")
    return found


BROKERS: Final[Nodes] = attrgetter("brokers")
CONTROLLERS: Final[Nodes] = attrgetter("controllers")
NODES: Final[Nodes] = attrgetter("nodes")

zookeeper = _whole("ZooKeeper", lambda world: world.zookeeper)
kraft = _with_quorum(_whole("the KRaft metadata", lambda world: world.kraft))
live_quorum = _with_quorum(_whole("the controllers' quorum", _live(lambda live: live.quorum)))
ledger = _whole("the ledger", lambda world: world.ledger)
diff = _whole("the comparison of ZooKeeper with KRaft", lambda world: world.diff)

controller_answers = _with_quorum(
    _each(
        ("what controller {} says of itself", "what the controllers say of themselves"),
        CONTROLLERS,
        _answers_of_controllers,
    )
)
broker_answers = _each(
    (processes.SAYS, "what the brokers say of themselves"), BROKERS, _live(lambda live: live.brokers)
)
metadata_answers = _each(
    (processes.METADATA, "the brokers' Metadata answers"), BROKERS, _live(lambda live: live.metadata)
)
log_dir_answers = _each(
    (processes.LOG_DIRS, "the brokers' DescribeLogDirs answers"),
    BROKERS,
    _live(lambda live: live.log_dirs),
)

broker_disks = remembered(
    _each(("the disks of broker {}", "the brokers' disks"), BROKERS, lambda world: world.disks),
)
controller_disks = _with_quorum(
    _each(("the disks of controller {}", "the controllers' disks"), CONTROLLERS, lambda world: world.disks)
)
every_disk = _joined(broker_disks, controller_disks)

BROKERS_FILES: Final = ("the configuration of broker {}", "the brokers' configuration files")
CONTROLLERS_FILES: Final = ("the configuration of controller {}", "the controllers' configuration files")
broker_configs = _files(BROKERS_FILES, BROKERS, planned=lambda _: False)
broker_configs_now = _files(BROKERS_FILES, BROKERS, planned=lambda _: False)  # not asked of files to come
controller_configs = _files(CONTROLLERS_FILES, CONTROLLERS, planned=no_quorum_yet)
node_configs = _joined(broker_configs, controller_configs)

# How a process was started, or will be, as far as that can be foreseen; of one that does not run, nothing is seen.
broker_launches = _each((processes.LAUNCH, "how the brokers were started"), BROKERS, lambda world: world.launches)
controller_launches = _each(
    ("how controller {} is started", "how the controllers are started"), CONTROLLERS, lambda world: world.launches
)
controller_ports = _each(
    ("the ports of controller {}'s host", "the ports of the controllers' hosts"),
    CONTROLLERS,
    lambda world: world.ports,
)
host_rights = _with_units(
    _each(("the rights on node {}'s host", "the rights on the nodes' hosts"), NODES, lambda world: world.host_rights)
)
units = _with_units(_each(("the unit of node {}", "the nodes' units"), NODES, lambda world: world.units))
controller_units = _with_units(
    _each(("the unit of controller {}", "the controllers' units"), CONTROLLERS, lambda world: world.units)
)


def inventory(world: World) -> Sight[Inventory]:
    return Sight(world.inventory)


def readable_zookeeper(world: World) -> Sight[ZookeeperView]:
    """What of ZooKeeper's tree could be read, for findings about single objects; malformed parts are missing."""
    found = world.zookeeper
    if isinstance(found, PartlyRead):
        return Sight(found.view, (("the malformed parts of ZooKeeper", found.reason),))
    return zookeeper(world)


def entities(view: ZookeeperView, kind: str) -> Iterator[tuple[str, str, str, str]]:
    """Key, name, value and znode of each of the view's rows of that kind."""
    rows = view.entities
    for row in zip(rows.kind, rows.key, rows.name, rows.value, rows.where, strict=True):
        if row[0] == kind:
            yield row[1:]


def both(first: Look[T], second: Look[U]) -> Look[tuple[T, U]]:
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
