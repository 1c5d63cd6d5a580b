"""Ask all nodes at once: each part of the answer is known, or Unknown with the reason, by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Final, TypeVar

from migrate.errors import MigrateError, NotLeader
from migrate.kafka import connection as ask_node
from migrate.kafka.codes import Code
from migrate.kafka.connection import DEFAULT_LIMITS, Connection, KeptConnections, Limits
from migrate.kafka.controller import describe_quorum
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.views import LiveView, LogDirAnswer, MetadataAnswer, NodeAnswer, PartitionHealth, Quorum
from migrate.protocol.loader import Values
from migrate.protocol.messages import DESCRIBE_LOG_DIRS, METADATA

NO_PARTITION: Final = -1  # of a topic that answers with an error and without partitions


# -- Metadata ----------------------------------------------------------------------------------------------------
def metadata(connection: Connection, *, controller_samples: int = 1) -> MetadataAnswer:
    """Request every topic once, and the controller's id that many times.

    A broker that believes in a KRaft controller names a random living broker in each answer; only equal answers, many
    of them, tell that it believes in one.  Topics that the principal may not describe are left out by Kafka.
    """
    first = connection.call(METADATA, {"topics": None, "allowAutoTopicCreation": False})
    brief = {"topics": [], "allowAutoTopicCreation": False}
    again = [connection.call(METADATA, brief)["controllerId"] for _ in range(controller_samples - 1)]
    return fold(first, (first["controllerId"], *again))


def fold(answer: Values, controller_ids: tuple[int, ...]) -> MetadataAnswer:
    """The answer as counts and exceptions (pure)."""
    return MetadataAnswer(
        controller_ids=controller_ids,
        brokers=tuple(sorted(entry["nodeId"] for entry in answer["brokers"])),
        partitions=sum(len(topic["partitions"]) for topic in answer["topics"]),
        unhealthy=tuple(_unhealthy(answer)),
    )


def _unhealthy(answer: Values) -> Iterator[PartitionHealth]:
    for topic in answer["topics"]:
        name = topic["name"] or topic.get("topicId", "")
        if topic["errorCode"] != Code.NONE and not topic["partitions"]:
            yield PartitionHealth(name, NO_PARTITION, -1, (), ())
        for entry in topic["partitions"]:
            isr, replicas = entry["isrNodes"], entry["replicaNodes"]
            whole = entry["errorCode"] == Code.NONE and entry["leaderId"] >= 0 and not entry["offlineReplicas"]
            if not whole or set(isr) != set(replicas):
                yield PartitionHealth(name, entry["partitionIndex"], entry["leaderId"], tuple(isr), tuple(replicas))


# -- DescribeLogDirs ---------------------------------------------------------------------------------------------
def describe_log_dirs(connection: Connection) -> tuple[LogDirAnswer, ...]:
    """Every log directory of that broker, an offline one with its error.

    Raises:
        AccessRefused: DESCRIBE on Cluster is missing.
    """
    found = connection.call(DESCRIBE_LOG_DIRS, {"topics": None})
    connection.refuse(DESCRIBE_LOG_DIRS, found.get("errorCode", Code.NONE))
    return tuple(_log_dir(entry) for entry in sorted(found["results"], key=lambda entry: str(entry["logDir"])))


def _log_dir(entry: Values) -> LogDirAnswer:
    replicas = [(topic["name"], part) for topic in entry["topics"] for part in topic["partitions"]]
    future = sorted(f"{name}-{part['partitionIndex']}" for name, part in replicas if part["isFutureKey"])
    return LogDirAnswer(entry["logDir"], entry["errorCode"], len(replicas) - len(future), tuple(future))


NOT_WANTED: Final = Unknown("not asked for")
MAX_THREADS: Final = 32
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Wants:
    """Which parts to request; the others are Unknown("not asked for")."""

    controllers: bool = True
    brokers: bool = True
    metadata: bool = True
    log_dirs: bool = True


EVERYTHING: Final = Wants()


@dataclass(slots=True)
class _BrokerSaid:
    answer: NodeAnswer | Unknown = NOT_WANTED
    metadata: MetadataAnswer | Unknown = NOT_WANTED
    log_dirs: tuple[LogDirAnswer, ...] | Unknown = NOT_WANTED


@dataclass(slots=True)
class _ControllerSaid:
    answer: NodeAnswer | Unknown = NOT_WANTED
    quorum: Quorum | Unknown = NOT_WANTED
    follows: bool = False


@dataclass(frozen=True, slots=True)
class _Look:
    """What is asked, the same for every node."""

    inventory: Inventory
    wants: Wants
    controller_samples: int
    limits: Limits
    kept: KeptConnections

    def broker(self, node: BrokerNode) -> _BrokerSaid:
        """All wanted parts of one broker, over one connection."""
        try:
            with self.kept.connection(node.address, self.inventory.broker_access, self.limits) as connection:
                said = _BrokerSaid(_part(lambda: ask_node.answer(connection)))
                if self.wants.metadata:
                    samples = self.controller_samples
                    said.metadata = _part(lambda: metadata(connection, controller_samples=samples))
                if self.wants.log_dirs:
                    said.log_dirs = _part(lambda: describe_log_dirs(connection))
                return said
        except MigrateError as error:
            silent = Unknown(str(error))
            return _BrokerSaid(
                silent,
                silent if self.wants.metadata else NOT_WANTED,
                silent if self.wants.log_dirs else NOT_WANTED,
            )

    def controller(self, node: ControllerNode) -> _ControllerSaid:
        """One controller's answer and, if it leads, the quorum."""
        try:
            with self.kept.connection(node.address, self.inventory.controller_access, self.limits) as connection:
                said = _ControllerSaid(_part(lambda: ask_node.answer(connection)))
                try:
                    said.quorum = describe_quorum(connection)
                except NotLeader as error:
                    said.follows, said.quorum = True, Unknown(str(error))
                except MigrateError as error:
                    said.quorum = Unknown(str(error))
                return said
        except MigrateError as error:
            silent = Unknown(str(error))
            return _ControllerSaid(silent, silent)


def look(
    inventory: Inventory,
    *,
    controller_samples: int = 1,
    wants: Wants = EVERYTHING,
    limits: Limits = DEFAULT_LIMITS,
    kept: KeptConnections | None = None,
) -> LiveView:
    """Ask every node in parallel; failures become Unknown.  Without `kept` no connection stays open.

    `controller_samples` is how often each broker is asked for its controller (see `broker.metadata`).  A node that
    does not answer costs `limits.connect_seconds + limits.answer_seconds` once, whatever the number of nodes, and
    `limits.answer_seconds` more where a connection to it was kept.
    """
    brokers = inventory.brokers if wants.brokers or wants.metadata or wants.log_dirs else ()
    controllers = inventory.controllers if wants.controllers else ()
    threads = min(MAX_THREADS, len(brokers) + len(controllers)) or 1
    with (
        closing(KeptConnections()) if kept is None else nullcontext(kept) as connections,
        ThreadPoolExecutor(threads, thread_name_prefix="look") as pool,
    ):
        asked = _Look(inventory, wants, controller_samples, limits, connections)
        of_brokers = {node.id: pool.submit(asked.broker, node) for node in brokers}
        of_controllers = {node.id: pool.submit(asked.controller, node) for node in controllers}
        broker_said = {node_id: future.result() for node_id, future in of_brokers.items()}
        controller_said = {node_id: future.result() for node_id, future in of_controllers.items()}
    return LiveView(
        quorum=_leaders_answer(controller_said) if wants.controllers else NOT_WANTED,
        controllers={node_id: said.answer for node_id, said in controller_said.items()},
        brokers={node_id: said.answer for node_id, said in broker_said.items()},
        metadata={node_id: said.metadata for node_id, said in broker_said.items()},
        log_dirs={node_id: said.log_dirs for node_id, said in broker_said.items()},
    )


def _leaders_answer(said: dict[NodeId, _ControllerSaid]) -> Quorum | Unknown:
    """The answer of the newest leader: one that was partitioned may still claim to lead."""
    found = [entry.quorum for entry in said.values() if isinstance(entry.quorum, Quorum)]
    if found:
        return max(found, key=lambda quorum: quorum.leader_epoch)
    if not said:
        return Unknown("the inventory names no controllers")
    reasons = [
        f"{node_id} does not lead" if entry.follows else f"{node_id}: {entry.quorum.reason}"
        for node_id, entry in sorted(said.items())
        if isinstance(entry.quorum, Unknown)
    ]
    return Unknown("no controller leads the quorum: " + "; ".join(reasons))


def _part(ask: Callable[[], Found]) -> Found | Unknown:
    try:
        return ask()
    except MigrateError as error:
        return Unknown(str(error))
