"""Ask all nodes at once: each part of the answer is known, or Unknown with the reason, by itself.  Rights, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from typing import Final, TypeVar

from migrate.errors import AccessRefused, AnswerBroken, KafkaRefused, MigrateError, NotLeader
from migrate.kafka import connection as ask_node
from migrate.kafka.connection import DEFAULT_LIMITS, Connection, KeptConnections, Limits
from migrate.kafka.controller import describe_quorum
from migrate.model.config_keys import IBP
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, Inventory
from migrate.model.outcome import Denied, Unknown
from migrate.model.rights import operations
from migrate.model.views import LiveView, LogDirAnswer, MetadataAnswer, NodeAnswer, PartitionHealth, Quorum
from migrate.protocol.loader import Values
from migrate.protocol.messages import (
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    FETCH,
    METADATA,
    Code,
    metadata_fetch,
)

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

    Raises AccessRefused: DESCRIBE on Cluster is missing.
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
class _Said:
    """The parts of one node's answer: `quorum` of the controller that leads."""

    answer: NodeAnswer | Unknown = NOT_WANTED
    metadata: MetadataAnswer | Unknown = NOT_WANTED
    log_dirs: tuple[LogDirAnswer, ...] | Unknown = NOT_WANTED
    quorum: Quorum | Unknown = NOT_WANTED
    follows: bool = False


def _ask_broker(opened: AbstractContextManager[Connection], wants: Wants, samples: int) -> _Said:
    try:
        with opened as broker:
            said = _Said(_part(lambda: ask_node.answer(broker)))
            if wants.metadata:
                said.metadata = _part(lambda: metadata(broker, controller_samples=samples))
            if wants.log_dirs:
                said.log_dirs = _part(lambda: describe_log_dirs(broker))
            return said
    except MigrateError as error:
        silent = Unknown(error.advised)
        return _Said(silent, silent if wants.metadata else NOT_WANTED, silent if wants.log_dirs else NOT_WANTED)


def _ask_controller(opened: AbstractContextManager[Connection]) -> _Said:
    try:
        with opened as controller:
            said = _Said(_part(lambda: ask_node.answer(controller)))
            try:
                said.quorum = describe_quorum(controller)
            except MigrateError as error:
                said.follows, said.quorum = isinstance(error, NotLeader), Unknown(error.advised)
            return said
    except MigrateError as error:
        return _Said(Unknown(error.advised), quorum=Unknown(error.advised))


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
        of_brokers = {
            node.id: pool.submit(
                _ask_broker,
                connections.connection(node.address, inventory.access_of(node), limits),
                wants,
                controller_samples,
            )
            for node in brokers
        }
        of_controllers = {
            node.id: pool.submit(
                _ask_controller, connections.connection(node.address, inventory.access_of(node), limits)
            )
            for node in controllers
        }
        broker_said = {node_id: future.result() for node_id, future in of_brokers.items()}
        controller_said = {node_id: future.result() for node_id, future in of_controllers.items()}
    return LiveView(
        quorum=_leaders_answer(controller_said) if wants.controllers else NOT_WANTED,
        controllers={node_id: said.answer for node_id, said in controller_said.items()},
        brokers={node_id: said.answer for node_id, said in broker_said.items()},
        metadata={node_id: said.metadata for node_id, said in broker_said.items()},
        log_dirs={node_id: said.log_dirs for node_id, said in broker_said.items()},
    )


BROKER: Final = 4  # ConfigResource.Type


def protocol_version(connection: Connection, broker: int) -> str:
    """The inter.broker.protocol.version that the broker runs with, whatever its file says by now.

    Raises AccessRefused: DESCRIBE_CONFIGS on Cluster is missing.
    """
    told = [entry["value"] for entry in _configs(connection, broker, [IBP]) if entry["name"] == IBP]
    if not told or not told[0]:
        raise KafkaRefused(f"its answer has no {IBP}", where=connection.address)
    return str(told[0])


def described(connection: Connection, broker: int) -> dict[str, str]:
    """The configuration that the broker runs with: dynamic values count once it has applied them.

    Kafka tells no value of a password or of a key that it does not define.  Raises AccessRefused: DESCRIBE_CONFIGS on
    Cluster is missing.
    """
    found = _configs(connection, broker, None)
    return {entry["name"]: entry["value"] for entry in found if entry["value"] is not None}


def _configs(connection: Connection, broker: int, keys: list[str] | None) -> list[Values]:
    asked = {"resourceType": BROKER, "resourceName": str(broker), "configurationKeys": keys}
    results = connection.call(DESCRIBE_CONFIGS, {"resources": [asked]})["results"]
    if len(results) != 1:
        raise AnswerBroken(f"DescribeConfigs answered {len(results)} resources", where=connection.address)
    connection.refuse(DESCRIBE_CONFIGS, results[0]["errorCode"], results[0]["errorMessage"])
    configs: list[Values] = results[0]["configs"]
    return configs


def protocol_versions(inventory: Inventory, kept: KeptConnections) -> dict[NodeId, str | Unknown]:
    """Ask each broker which protocol version it runs with, all at once."""
    return _each_broker(inventory, kept, protocol_version)


def applied_configs(inventory: Inventory, kept: KeptConnections) -> dict[NodeId, dict[str, str] | Unknown]:
    """Ask each broker which configuration it runs with, all at once."""
    return _each_broker(inventory, kept, described)


def _each_broker(
    inventory: Inventory, kept: KeptConnections, question: Callable[[Connection, int], Found]
) -> dict[NodeId, Found | Unknown]:
    def ask(broker: BrokerNode) -> Found | Unknown:
        try:
            with kept.connection(broker.address, inventory.access_of(broker)) as opened:
                return question(opened, int(broker.id))
        except AccessRefused as error:
            return Denied(error.advised)

    with ThreadPoolExecutor(min(MAX_THREADS, len(inventory.brokers) or 1), thread_name_prefix="look") as pool:
        asked = {node.id: pool.submit(_part, lambda node=node: ask(node)) for node in inventory.brokers}
        return {node: future.result() for node, future in asked.items()}


def _leaders_answer(said: dict[NodeId, _Said]) -> Quorum | Unknown:
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
        return Unknown(error.advised)


# -- what Kafka authorizes this tool's principal to do: by requests that change nothing (KIP-430) -----------------
# a controller asks for the right first: whatever of these it then says, it was there
LET_IN: Final = (
    Code.NONE,
    Code.OFFSET_OUT_OF_RANGE,
    Code.NOT_LEADER_OR_FOLLOWER,
    Code.FENCED_LEADER_EPOCH,
    Code.UNKNOWN_LEADER_EPOCH,
)


@dataclass(frozen=True, slots=True)
class ControllerRights:
    """DESCRIBE by DescribeQuorum, CLUSTER_ACTION by Fetch (`reads`).

    `operations` of Cluster come from DescribeCluster, which needs ALTER: None without that.
    """

    describes: bool
    reads: bool
    operations: frozenset[str] | None


def cluster_rights(connection: Connection) -> frozenset[str]:
    """The operations on Cluster that a broker allows; an empty set means that DESCRIBE is missing, too."""
    asked = {"includeClusterAuthorizedOperations": True, "endpointType": 1}
    found = connection.call(DESCRIBE_CLUSTER, asked)
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    return operations(found["clusterAuthorizedOperations"]) or frozenset()


def count_topics(connection: Connection) -> int:
    """How many topics the principal may describe; a broker leaves the others out."""
    topics = connection.call(METADATA, {"topics": None, "allowAutoTopicCreation": False})["topics"]
    return sum(topic["errorCode"] != Code.TOPIC_AUTHORIZATION_FAILED for topic in topics)


def controller_rights(connection: Connection) -> ControllerRights:
    """What a controller allows; followers and the leader answer alike."""
    describes = True
    try:
        describe_quorum(connection)
    except AccessRefused:
        describes = False
    except NotLeader:  # said to who may ask alone
        pass
    reads = _reads(connection)
    asked = {"includeClusterAuthorizedOperations": True, "endpointType": 2}
    found = connection.call(DESCRIBE_CLUSTER, asked)
    if found["errorCode"] == Code.CLUSTER_AUTHORIZATION_FAILED:
        return ControllerRights(describes, reads, None)
    connection.refuse(DESCRIBE_CLUSTER, found["errorCode"], found["errorMessage"])
    return ControllerRights(describes, reads, operations(found["clusterAuthorizedOperations"]))


def _reads(connection: Connection) -> bool:
    """May the metadata log be read?  Fetched as an observer, from its beginning: little is sent, nothing is changed.

    Raises KafkaRefused: an answer that says neither.
    """
    answer = connection.call(FETCH, metadata_fetch(0, most=1))
    parts = [entry for topic in answer["responses"] for entry in topic["partitions"]]
    codes = [answer["errorCode"], *(entry["errorCode"] for entry in parts)]
    if Code.CLUSTER_AUTHORIZATION_FAILED in codes:
        return False
    for code in codes:
        if code not in LET_IN:
            connection.refuse(FETCH, code)
    return True
