"""The parts of a World that explanations rest on, each once: who is registered, what runs, which file, who leads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from migrate.checks.stuck.codes import CODES
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    MetaProperties,
    NodeAnswer,
    NoFile,
    PartlyRead,
    Quorum,
    ServiceState,
    ZookeeperView,
)
from migrate.model.waiting import Clues, Explanation
from migrate.model.world import NOT_ASKED, World

NOT_LOOKED: Final = Unknown("it was not looked at")
LEVELS: Final[Mapping[str, int]] = {  # MetadataVersion.java: inter.broker.protocol.version -> metadata.version
    "3.4": 8,
    "3.4-IV0": 8,
    "3.5": 11,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6": 14,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7": 19,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8": 20,
    "3.8-IV0": 20,
    "3.9": 21,
    "3.9-IV0": 21,
}


def file_of(world: World, node: int) -> ConfigFile | NoFile | Unknown:
    """A node's configuration file."""
    if isinstance(world.configs, Unknown):
        return world.configs
    return world.configs.get(NodeId(node), NOT_LOOKED)


def state_of(world: World, node: int) -> ServiceState:
    """A node's process."""
    if isinstance(world.services, Unknown):
        return world.services
    return world.services.get(NodeId(node), NOT_LOOKED)


def controller_answer(world: World, node: int) -> NodeAnswer | Unknown:
    """What a controller says of itself."""
    if isinstance(world.live, Unknown):
        return world.live
    return world.live.controllers.get(NodeId(node), NOT_LOOKED)


def no_answer(world: World, node: int) -> Unknown | None:
    """Why a controller that was asked did not answer; None where it did, and where nobody asked."""
    if isinstance(world.live, Unknown):
        return None
    answer = world.live.controllers.get(NodeId(node))
    return answer if isinstance(answer, Unknown) and answer.reason != NOT_ASKED.reason else None


def quorum_of(world: World) -> Quorum | Unknown:
    """The leader's own answer."""
    return world.live if isinstance(world.live, Unknown) else world.live.quorum


def readable(world: World) -> ZookeeperView | Unknown:
    """ZooKeeper's tree; where parts are malformed, the rest of it."""
    return world.zookeeper.view if isinstance(world.zookeeper, PartlyRead) else world.zookeeper


def metas_of(world: World, node: int) -> tuple[MetaProperties, ...] | Unknown:
    """The meta.properties of a broker's log directories, those that can be trusted."""
    if isinstance(world.disks, Unknown):
        return world.disks
    disks = world.disks.get(NodeId(node), NOT_LOOKED)
    if not isinstance(disks, BrokerDisks):
        return disks
    return tuple(entry.meta for entry in disks.directories if isinstance(entry.meta, MetaProperties))


def level_of(version: str) -> int | None:
    """metadata.version of an inter.broker.protocol.version, as Kafka reads it (3.9.1 is 3.9); None: not known."""
    return LEVELS.get(".".join(version.strip().split(".")[:2]))


def listed(nodes: list[int]) -> str:
    """The ids, comma separated."""
    return ", ".join(map(str, nodes))


def said(clues: Clues, node: int) -> tuple[str, ...]:
    """What the node's log says of it, as evidence."""
    lines = clues.logs.get(NodeId(node), ())
    return () if isinstance(lines, Unknown) else tuple(f"log of node {node}: {line}" for line in lines)


def leader_log(world: World, clues: Clues, *but: int) -> tuple[str, ...]:
    """What the active controller's log says, where it is none of these nodes."""
    quorum = quorum_of(world)
    return said(clues, quorum.leader) if isinstance(quorum, Quorum) and quorum.leader not in but else ()


def explained(
    code: str,
    waits_for: str,
    owner: str,
    cause: str | Unknown,
    *,
    evidence: tuple[str, ...] = (),
    nodes: tuple[int, ...] = (),
    next_step: str = "",
) -> Explanation:
    """An explanation under its code, with the code's own next step where there is none more exact."""
    doc = CODES[code]
    return Explanation(
        code=code,
        waits_for=waits_for,
        owner=owner,
        cause=cause,
        next_step=next_step or doc.fix,
        by_itself=doc.by_itself,
        evidence=tuple(entry for entry in evidence if entry),
        nodes=nodes,
        driver=doc.driver,
    )
