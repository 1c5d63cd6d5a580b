"""Parts of the world as checks ask for them: the value where it is known, and what is missing with the reason.

A part that cannot exist yet (the metadata before there is a quorum) is neither: there is nothing to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from migrate.checks import processes
from migrate.checks.phase import no_quorum_yet
from migrate.checks.remembered import remembered
from migrate.model.difference import DiffReport
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.launch import Launch, Listening
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.units import Unit
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

T = TypeVar("T")
U = TypeVar("U")
Missing = tuple[tuple[str, str], ...]  # (what, reason)
Names = tuple[str, str]  # of one node's part, and of all together


@dataclass(frozen=True, slots=True)
class Sight(Generic[T]):
    """`value` is None where nothing can be decided; `missing` says what is Unknown.  Both may hold."""

    value: T | None
    missing: Missing = ()


def _whole(part: T | Unknown, name: str) -> Sight[T]:
    return Sight(None, ((name, part.reason),)) if isinstance(part, Unknown) else Sight(part)


def inventory(world: World) -> Sight[Inventory]:
    """The inventory: always known."""
    return Sight(world.inventory)


def playbook(world: World) -> Sight[Playbook]:
    """The playbook; without one, nothing is expected and nothing is missed."""
    return Sight(None if isinstance(world.playbook, Unknown) else world.playbook)


def zookeeper(world: World) -> Sight[ZookeeperView]:
    """ZooKeeper's tree."""
    return _whole(world.zookeeper, "ZooKeeper")


def readable_zookeeper(world: World) -> Sight[ZookeeperView]:
    """What of ZooKeeper's tree could be read, for findings about single objects; malformed parts are missing."""
    found = world.zookeeper
    if isinstance(found, PartlyRead):
        return Sight(found.view, (("the malformed parts of ZooKeeper", found.reason),))
    return _whole(found, "ZooKeeper")


def kraft(world: World) -> Sight[KraftView]:
    """The metadata image; nothing to see before there is a quorum."""
    if no_quorum_yet(world):
        return Sight(None)
    return _whole(world.kraft, "the KRaft metadata")


def live_quorum(world: World) -> Sight[Quorum]:
    """DescribeQuorum; nothing to see before there is a quorum."""
    if no_quorum_yet(world):
        return Sight(None)
    return _live(world, lambda view: view.quorum, "the controllers' quorum")


def _live(world: World, part: Callable[[LiveView], T | Unknown], name: str) -> Sight[T]:
    return _whole(world.live if isinstance(world.live, Unknown) else part(world.live), name)


def controller_answers(world: World) -> Sight[dict[NodeId, NodeAnswer]]:
    """What each controller says of itself; nothing to see before there is a quorum."""
    if no_quorum_yet(world):
        return Sight(None)
    found = world.live if isinstance(world.live, Unknown) else _or_not_running(world, world.live.controllers)
    return _by_node(
        found,
        [node.id for node in world.inventory.controllers],
        ("what controller {} says of itself", "what the controllers say of themselves"),
    )


def _or_not_running(world: World, answers: Mapping[NodeId, NodeAnswer | Unknown]) -> dict[NodeId, NodeAnswer | Unknown]:
    """Where no answer comes from a process that does not run: the host, the unit, and how it is started."""
    found = dict(answers)
    states = {} if isinstance(world.services, Unknown) else world.services
    for node in world.inventory.controllers:
        if isinstance(found.get(node.id), Unknown) and isinstance(states.get(node.id), Stopped):
            nodes = [int(node.id)]
            said = processes.do_not_run(world.inventory, nodes)
            found[node.id] = Unknown(f"{said}; {processes.start(world.inventory, nodes)}")
    return found


def broker_answers(world: World) -> Sight[dict[NodeId, NodeAnswer]]:
    """What each broker says of itself."""
    found = world.live if isinstance(world.live, Unknown) else world.live.brokers
    return _by_node(
        found,
        [node.id for node in world.inventory.brokers],
        ("what broker {} says of itself", "what the brokers say of themselves"),
    )


def metadata_answers(world: World) -> Sight[dict[NodeId, MetadataAnswer]]:
    """Each broker's Metadata answer."""
    found = world.live if isinstance(world.live, Unknown) else world.live.metadata
    return _by_node(
        found,
        [node.id for node in world.inventory.brokers],
        ("the Metadata answer of broker {}", "the brokers' Metadata answers"),
    )


def log_dir_answers(world: World) -> Sight[dict[NodeId, tuple[LogDirAnswer, ...]]]:
    """Each broker's DescribeLogDirs answer."""
    found = world.live if isinstance(world.live, Unknown) else world.live.log_dirs
    return _by_node(
        found,
        [node.id for node in world.inventory.brokers],
        ("the DescribeLogDirs answer of broker {}", "the brokers' DescribeLogDirs answers"),
    )


@remembered
def broker_disks(world: World) -> Sight[dict[NodeId, BrokerDisks]]:
    """Each broker's log directories as its host shows them."""
    return _by_node(
        world.disks, [node.id for node in world.inventory.brokers], ("the disks of broker {}", "the brokers' disks")
    )


def every_disk(world: World) -> Sight[dict[NodeId, BrokerDisks]]:
    """Each node's directories: controllers' metadata directories too, where there is a quorum already."""
    brokers = broker_disks(world)
    if no_quorum_yet(world):
        return brokers
    ids = [node.id for node in world.inventory.controllers]
    others = _by_node(world.disks, ids, ("the disks of controller {}", "the controllers' disks"))
    return Sight({**(brokers.value or {}), **(others.value or {})} or None, (*brokers.missing, *others.missing))


def broker_configs(world: World) -> Sight[dict[NodeId, ConfigFile]]:
    """Each broker's configuration file; one that does not exist is missing."""
    return _files(
        world,
        [node.id for node in world.inventory.brokers],
        ("the configuration of broker {}", "the brokers' configuration files"),
        planned=False,
    )


def controller_configs(world: World) -> Sight[dict[NodeId, ConfigFile]]:
    """Each controller's file; one that does not exist yet is not missed while there is no quorum."""
    ids = [node.id for node in world.inventory.controllers]
    return _files(
        world,
        ids,
        ("the configuration of controller {}", "the controllers' configuration files"),
        planned=no_quorum_yet(world),
    )


def node_configs(world: World) -> Sight[dict[NodeId, ConfigFile]]:
    """All files of brokers and controllers that can be seen."""
    one, two = broker_configs(world), controller_configs(world)
    return Sight({**(one.value or {}), **(two.value or {})} or None, (*one.missing, *two.missing))


def broker_launches(world: World) -> Sight[dict[NodeId, Launch]]:
    """How each broker's process was started; of one that does not run, nothing can be seen."""
    return _by_node(
        world.launches,
        [node.id for node in world.inventory.brokers],
        ("how broker {} was started", "how the brokers were started"),
    )


def controller_launches(world: World) -> Sight[dict[NodeId, Launch]]:
    """How each controller's process was started, or will be, as far as that can be foreseen."""
    return _by_node(
        world.launches,
        [node.id for node in world.inventory.controllers],
        ("how controller {} is started", "how the controllers are started"),
    )


def controller_ports(world: World) -> Sight[dict[NodeId, tuple[Listening, ...]]]:
    """What listens on each controller's host."""
    return _by_node(
        world.ports,
        [node.id for node in world.inventory.controllers],
        ("the ports of controller {}'s host", "the ports of the controllers' hosts"),
    )


def host_rights(world: World) -> Sight[dict[NodeId, HostRights]]:
    """What is allowed on each node's host; nothing to see where a supervisor or people work them."""
    if world.inventory.executor not in ("local", "ssh"):
        return Sight(None)
    names = ("the rights on node {}'s host", "the rights on the nodes' hosts")
    return _by_node(world.host_rights, [node.id for node in world.inventory.nodes], names)


def units(world: World) -> Sight[dict[NodeId, Unit]]:
    """What systemd says of each node's unit; nothing to see where nodes are no units that the executor works."""
    if world.inventory.executor not in ("local", "ssh"):
        return Sight(None)
    names = ("the unit of node {}", "the nodes' units")
    return _by_node(world.units, [node.id for node in world.inventory.nodes], names)


def ledger(world: World) -> Sight[Ledger]:
    """The ledger."""
    return _whole(world.ledger, "the ledger")


def diff(world: World) -> Sight[DiffReport]:
    """The comparison of ZooKeeper with KRaft."""
    return _whole(world.diff, "the comparison of ZooKeeper with KRaft")


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


def _by_node(
    found: Mapping[NodeId, T | Unknown] | Unknown, ids: Iterable[NodeId], names: Names
) -> Sight[dict[NodeId, T]]:
    if isinstance(found, Unknown):
        return Sight(None, ((names[1], found.reason),))
    known: dict[NodeId, T] = {}
    missing: list[tuple[str, str]] = []
    for node in ids:
        entry = found.get(node, Unknown("it was not looked at"))
        if isinstance(entry, Unknown):
            missing.append((names[0].format(int(node)), entry.reason))
        else:
            known[node] = entry
    return Sight(known or None, tuple(missing))


def _files(world: World, ids: list[NodeId], names: Names, *, planned: bool) -> Sight[dict[NodeId, ConfigFile]]:
    if isinstance(world.configs, Unknown):
        return Sight(None, ((names[1], world.configs.reason),))
    entries: dict[NodeId, ConfigFile | Unknown] = {}
    for node in ids:
        entry = world.configs.get(node, Unknown("it was not read"))
        if not isinstance(entry, NoFile):
            entries[node] = entry
        elif not planned:
            entries[node] = Unknown(f"{entry.path} does not exist")
    return _by_node(entries, entries, names)
