"""The parts of a World that explanations rest on, each once: who is registered, what runs, which file, who leads.

Lines of Kafka's logs are more evidence, never the reason of an explanation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from migrate.checks.registry import shown
from migrate.checks.sight import of_node
from migrate.checks.stuck.codes import CODES
from migrate.model.findings import Clues, Explanation
from migrate.model.ids import NodeId
from migrate.model.kafka_values import protocol_version
from migrate.model.outcome import Unknown
from migrate.model.views import (
    BrokerDisks,
    ConfigFile,
    MetaProperties,
    PartlyRead,
    Quorum,
    Running,
    Stopped,
    ZookeeperView,
)
from migrate.model.world import NOT_ASKED, World

# MetadataVersion.java: the values of inter.broker.protocol.version for each metadata.version from 8 on
RELEASES: Final = (
    "3.4 3.4-IV0|3.5-IV0|3.5-IV1|3.5 3.5-IV2|3.6-IV0|3.6-IV1|3.6 3.6-IV2|3.7-IV0|3.7-IV1|3.7-IV2|3.7-IV3|3.7 3.7-IV4|"
    "3.8 3.8-IV0|3.9 3.9-IV0"
)
LEVELS: Final = {name: level for level, names in enumerate(RELEASES.split("|"), 8) for name in names.split()}


def no_answer(world: World, node: int) -> Unknown | None:
    """Why a controller that was asked did not answer; None where it did, and where nobody asked."""
    answer = None if isinstance(world.live, Unknown) else world.live.controllers.get(NodeId(node))
    return answer if isinstance(answer, Unknown) and answer.reason != NOT_ASKED.reason else None


def quorum_of(world: World) -> Quorum | Unknown:
    return world.live if isinstance(world.live, Unknown) else world.live.quorum


def readable(world: World) -> ZookeeperView | Unknown:
    """ZooKeeper's tree; where parts are malformed, the rest of it."""
    return world.zookeeper.view if isinstance(world.zookeeper, PartlyRead) else world.zookeeper


def metas_of(world: World, node: int) -> tuple[MetaProperties, ...] | Unknown:
    """The meta.properties of a broker's log directories, those that can be trusted."""
    disks = of_node(world.disks, node)
    if not isinstance(disks, BrokerDisks):
        return disks
    return tuple(entry.meta for entry in disks.directories if isinstance(entry.meta, MetaProperties))


def exit_of(state: Stopped) -> str:
    """As evidence: the code with which a process ended, where it is known."""
    return "" if state.exit_code is None else f"it ended with code {state.exit_code}"


def other_file(state: Running, file: ConfigFile) -> str:
    """As evidence: the hashes of the file and of what the process was started with."""
    return f"{file.path} is {file.sha256[:12]}, the process was started with {(state.config_sha256 or '')[:12]}"


def not_seen(parts: Iterable[tuple[str, object]]) -> str:
    """Which of these are Unknown, and why; "" where all were seen."""
    unseen = [f"{what}: {part.reason}" for what, part in parts if isinstance(part, Unknown)]
    return f"not seen: {'; '.join(unseen)}" if unseen else ""


def level_of(version: str) -> int | None:
    """metadata.version of an inter.broker.protocol.version, as Kafka reads it (3.9.1 is 3.9); None: not known."""
    try:
        return LEVELS.get(protocol_version(version))
    except ValueError:
        return None


def log_lines(clues: Clues, node: int) -> tuple[str, ...]:
    """What the node's log says of it, as evidence."""
    lines = clues.logs.get(NodeId(node), ())
    return () if isinstance(lines, Unknown) else tuple(f"log of node {node}: {line}" for line in lines)


def leader_log(world: World, clues: Clues, *but: int) -> tuple[str, ...]:
    """What the active controller's log says, where it is none of these nodes."""
    quorum = quorum_of(world)
    return log_lines(clues, quorum.leader) if isinstance(quorum, Quorum) and quorum.leader not in but else ()


def explanation(
    code: str,
    waits_for: str,
    cause: str | Unknown,
    *evidence: str,
    owner: str = "the operator",
    nodes: Iterable[int] = (),
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
        evidence=tuple(filter(None, evidence)),
        nodes=tuple(int(node) for node in nodes),
        driver=doc.driver,
    )


KEPT: Final = 3  # lines a node
TELLING: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"Still waiting for ZK brokers",
        r"No brokers are (?:known to KRaft|registered in ZK)",
        r"Still waiting for all controller nodes",
        r"KRaft controller indicates an active migration",
        r"Staying in SYNC_KRAFT_TO_ZK",
        r"Performing a full metadata sync from KRaft to ZK",
        r"Unhandled error in SyncKRaftMetadataEvent",
        r"during event SyncKRaftMetadataEvent",
        r"Unknown config resource type",
        r"zk migration fault",
        r"Encountered ZooKeeper error",
        r"Error in topic consumer",
        r"NoSuchElementException: None\.get",
        r"Cannot register KRaft controller",
        r"Should not have ZK migrations enabled",
        r"Unable to register (?:the )?broker",
        r"(?:INVALID_REGISTRATION|INCONSISTENT_CLUSTER_ID|BROKER_ID_NOT_REGISTERED|DUPLICATE_BROKER_REGISTRATION)",
        r"UNSUPPORTED_VERSION",
        r"maybeSendAssignments: sending \d+ assignments",
        r"handleResponse: \d+ assignments failed",
        r"Connection to node -?\d+ .*could not be established",
        r"Shutdown broker because",
        r"Exiting Kafka",
    )
)


def telling(lines: Iterable[str]) -> tuple[str, ...]:
    """The last lines of that kind, each kind once, oldest first."""
    found: dict[str, str] = {}
    for line in lines:
        for pattern in TELLING:
            if pattern.search(line):
                found.pop(pattern.pattern, None)  # the newest of a kind stands last
                found[pattern.pattern] = shown(line.strip())
                break
    return tuple(found.values())[-KEPT:]
