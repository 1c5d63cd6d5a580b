"""The AssignReplicasToDirs requests that tell the controller in which directories a broker's replicas are (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from migrate.model.ids import DirectoryId, NodeId
from migrate.protocol.fields import Values
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS
from migrate.protocol.writer import encode

MAX_ASSIGNMENTS: Final = 2250  # AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST, a rule of senders
VERSION: Final = 0  # the only one there is
Replica = tuple[str, int]


@dataclass(frozen=True, slots=True)
class AssignRequest:
    """One request: its body in version 0, and how many replicas it names."""

    broker: NodeId
    body: bytes
    replicas: int


def requests_of(
    broker: NodeId, broker_epoch: int, assignments: Mapping[str, Sequence[Replica]], most: int = MAX_ASSIGNMENTS
) -> list[AssignRequest]:
    """The requests for directory id -> [(topic id, partition)]: sorted, each replica once, at most `most` a request.

    Raises:
        ValueError: a replica in two directories, or a directory id that Kafka reserves.
        EncodeError: an id that is none.
    """
    entries = distinct(assignments)
    parts = (entries[start : start + most] for start in range(0, len(entries), most))
    return [
        AssignRequest(
            broker, encode(ASSIGN_REPLICAS_TO_DIRS.request, VERSION, body_of(broker, broker_epoch, part)), len(part)
        )
        for part in parts
    ]


def distinct(assignments: Mapping[str, Sequence[Replica]]) -> list[tuple[str, Replica]]:
    """(directory id, replica) pairs, each replica once, sorted (pure).

    Kafka writes a record for each repetition, and of two directories the last wins.

    Raises:
        ValueError: a replica in two directories, or a directory id that Kafka reserves.
    """
    chosen: dict[Replica, str] = {}
    for directory, replicas in assignments.items():
        if DirectoryId(directory).reserved:
            message = f"directory id {directory} is reserved"
            raise ValueError(message)
        for replica in replicas:
            if chosen.setdefault(replica, directory) != directory:
                message = f"replica {replica} is given two directories"
                raise ValueError(message)
    return sorted((directory, replica) for replica, directory in chosen.items())


def body_of(broker: NodeId, broker_epoch: int, part: Sequence[tuple[str, Replica]]) -> Values:
    """One AssignReplicasToDirs for (directory id, replica) pairs, grouped as Kafka wants it (pure)."""
    tree: dict[str, dict[str, list[int]]] = {}
    for directory, (topic_id, partition) in part:
        tree.setdefault(directory, {}).setdefault(topic_id, []).append(partition)
    directories = [
        {
            "id": directory,
            "topics": [
                {"topicId": topic_id, "partitions": [{"partitionIndex": number} for number in numbers]}
                for topic_id, numbers in topics.items()
            ],
        }
        for directory, topics in tree.items()
    ]
    return {"brokerId": int(broker), "brokerEpoch": broker_epoch, "directories": directories}
