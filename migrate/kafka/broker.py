"""What a broker says of its cluster and its log directories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.kafka.codes import Code
from migrate.kafka.connection import Connection
from migrate.model.views import LogDirAnswer, MetadataAnswer, PartitionHealth
from migrate.protocol.fields import Values
from migrate.protocol.messages import DESCRIBE_LOG_DIRS, METADATA

NO_PARTITION: Final = -1  # of a topic that answers with an error and without partitions


# -- Metadata ----------------------------------------------------------------------------------------------------
def metadata(connection: Connection, *, controller_samples: int = 1) -> MetadataAnswer:
    """Every topic once, and the controller's id asked that many times.

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
