"""The active controller: who it is, the quorum's state, and the two requests that change something there.

`ActiveController` implements `model.ports.DirectoryAssigner`.  It sends each request once: the caller decides whether
to send it again, after observing again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from migrate.errors import (
    AnswerBroken,
    MigrateError,
    NoActiveController,
    NotController,
    NotLeader,
    Retryable,
    StaleBrokerEpoch,
)
from migrate.kafka.connection import DEFAULT_LIMITS, Connection, Limits
from migrate.model.ids import METADATA_TOPIC, MIGRATING, DirectoryId, NodeId
from migrate.model.inventory import Inventory
from migrate.model.views import Quorum, Voter
from migrate.protocol.codec import encode
from migrate.protocol.loader import Values
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS, DESCRIBE_QUORUM, ELECT_LEADERS, Api, Code, error_name

MAX_ASSIGNMENTS: Final = 2250  # AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST, a rule of senders
VERSION: Final = 0  # the only one there is
Replica = tuple[str, int]


class AssignRequest(NamedTuple):
    """One request: its body in version 0, and how many replicas it names."""

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
    entries, schema = distinct(assignments), ASSIGN_REPLICAS_TO_DIRS.request
    parts = (entries[start : start + most] for start in range(0, len(entries), most))
    return [AssignRequest(encode(schema, VERSION, body_of(broker, broker_epoch, part)), len(part)) for part in parts]


def distinct(assignments: Mapping[str, Sequence[Replica]]) -> list[tuple[str, Replica]]:
    """(directory id, replica) pairs, each replica once, sorted (pure).

    Kafka writes a record for each repetition, and of two directories the last wins.  Raises ValueError: a replica in
    two directories, or a directory id that Kafka reserves.
    """
    chosen: dict[Replica, str] = {}
    for directory, replicas in assignments.items():
        if DirectoryId(directory).reserved:
            raise ValueError(f"directory id {directory} is reserved")
        for replica in replicas:
            if chosen.setdefault(replica, directory) != directory:
                raise ValueError(f"replica {replica} is given two directories")
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


PREFERRED: Final = 0
_ELECTION_MS: Final = 5000


# -- the quorum --------------------------------------------------------------------------------------------------
def describe_quorum(connection: Connection) -> Quorum:
    """Describe the quorum as its leader sees it.

    A follower answers without an error on top, with error 6 on the partition and leaderId 0, which is a possible id:
    so nothing of such an answer is read.

    Raises:
        NotLeader: this controller does not lead.
        AccessRefused: DESCRIBE on Cluster is missing.
    """
    found = connection.call(
        DESCRIBE_QUORUM, {"topics": [{"topicName": METADATA_TOPIC, "partitions": [{"partitionIndex": 0}]}]}
    )
    connection.refuse(DESCRIBE_QUORUM, found["errorCode"], found.get("errorMessage"))
    partitions = [entry for topic in found["topics"] for entry in topic["partitions"]]
    if len(partitions) != 1:
        raise AnswerBroken(f"DescribeQuorum answered {len(partitions)} partitions", where=connection.address)
    only = partitions[0]
    if only["errorCode"] in (Code.NOT_LEADER_OR_FOLLOWER, Code.LEADER_NOT_AVAILABLE):
        raise NotLeader("this controller does not lead the quorum", where=connection.address)
    connection.refuse(DESCRIBE_QUORUM, only["errorCode"], only.get("errorMessage"))
    ids = (state["replicaId"] for state in (*only["currentVoters"], *only["observers"]))
    if min((only["leaderId"], *ids)) < 0:
        raise AnswerBroken("DescribeQuorum answered with a negative id", where=connection.address)
    now = max((voter.get("lastCaughtUpTimestamp", -1) for voter in only["currentVoters"]), default=-1)  # the leader's
    return Quorum(
        leader=NodeId(only["leaderId"]),
        leader_epoch=only["leaderEpoch"],
        high_watermark=only["highWatermark"],
        voters=_replicas(only["currentVoters"], now),
        observers=_replicas(only["observers"], now),
    )


def _replicas(states: Sequence[Values], now: int) -> tuple[Voter, ...]:
    """In order of their ids; those of versions below 2, and of static quorums, have no directory id."""
    found = (
        Voter(
            NodeId(state["replicaId"]),
            state["logEndOffset"],
            max(now - then, 0) if (then := state.get("lastCaughtUpTimestamp", -1)) >= 0 else -1,
            "" if (named := DirectoryId(state.get("replicaDirectoryId", MIGRATING))).reserved else named,
        )
        for state in states
    )
    return tuple(sorted(found, key=lambda replica: (replica.id, replica.directory)))


# -- acting ------------------------------------------------------------------------------------------------------
class ActiveController:
    """Finds the leader among the inventory's controllers and sends requests to it; one thread at a time."""

    def __init__(self, inventory: Inventory, limits: Limits = DEFAULT_LIMITS) -> None:
        self._inventory = inventory
        self._limits = limits
        self._last: NodeId | None = None

    def quorum(self) -> Quorum:
        """The quorum, described by the leader.  Raises what `connect` raises."""
        connection, quorum = self.connect()
        connection.close()
        return quorum

    def connect(self) -> tuple[Connection, Quorum]:
        """An open connection to the leader, and the quorum; the caller closes it.

        Raises NoActiveController: no controller that answers leads (Retryable); `why` holds what each said.
        """
        said: list[str] = []
        answered = False
        for node in sorted(self._inventory.controllers, key=lambda node: node.id != self._last):
            connection = None
            try:
                connection = Connection(node.address, self._inventory.access_of(node), self._limits)
                quorum = describe_quorum(connection)
            except MigrateError as error:
                said.append(f"{node.id}: {error.what}")
                if connection is not None:
                    answered = True
                    connection.close()
                continue
            self._last = node.id
            return connection, quorum
        self._last = None
        what = "no controller leads the quorum" if answered else "no controller can be reached"
        raise NoActiveController(what, where=self._inventory.name, why="; ".join(said))

    def assign(
        self, broker: NodeId, broker_epoch: int, assignments: Mapping[str, Sequence[Replica]]
    ) -> Mapping[Replica, int]:
        """AssignReplicasToDirs: directory id -> [(topic id, partition)]; answers an error code a replica.

        At most 2,250 entries a request, each replica once.  Success says that Kafka took the request, not that the
        directory was right: 0 comes for unknown directories too.  Read the metadata afterwards.

        Raises:
            StaleBrokerEpoch, NotController, AnswerTimeout, ConnectionClosed, NoActiveController: Retryable.
            AccessRefused: CLUSTER_ACTION on Cluster is missing.
            ValueError: a replica in two directories, or a reserved directory id.
        """
        requests = requests_of(broker, broker_epoch, assignments)
        if not requests:
            return {}
        answers: dict[Replica, int] = {}
        connection, _ = self.connect()
        with connection:
            for request in requests:
                answers |= _assign(connection, request)
            asked = {replica for replicas in assignments.values() for replica in replicas}
            if missing := asked - answers.keys():
                message = f"{len(missing)} of {len(asked)} replicas are not in the answer"
                raise AnswerBroken(message, where=connection.address)
        return answers

    def elect_leaders(self, partitions: Mapping[str, Sequence[int]]) -> Mapping[Replica, int]:
        """ElectLeaders PREFERRED for topic *name* -> partitions; answers an error code a partition.

        Needed where a single replica's leader stayed -1 after its directory was put right.  84 is: not needed.

        Raises:
            NotController, NoActiveController: Retryable.
            AccessRefused: ALTER on Cluster is missing.
        """
        connection, _ = self.connect()
        with connection:
            return elect(connection, partitions)


def elect(connection: Connection, partitions: Mapping[str, Sequence[int]]) -> Mapping[Replica, int]:
    topics = [{"topic": topic, "partitions": list(numbers)} for topic, numbers in partitions.items()]
    found = connection.call(
        ELECT_LEADERS,
        {"electionType": PREFERRED, "topicPartitions": topics, "timeoutMs": _ELECTION_MS},
        seconds=_ELECTION_MS / 1000 + 1,
    )
    _check(connection, ELECT_LEADERS, found["errorCode"])
    return {
        (topic["topic"], entry["partitionId"]): entry["errorCode"]
        for topic in found["replicaElectionResults"]
        for entry in topic["partitionResult"]
    }


def _assign(connection: Connection, request: AssignRequest) -> Mapping[Replica, int]:
    found = connection.call(ASSIGN_REPLICAS_TO_DIRS, request.body)
    _check(connection, ASSIGN_REPLICAS_TO_DIRS, found["errorCode"])
    answers = {
        (topic["topicId"], entry["partitionIndex"]): entry["errorCode"]
        for directory in found["directories"]
        for topic in directory["topics"]
        for entry in topic["partitions"]
    }
    if (missing := request.replicas - len(answers)) > 0:
        message = f"{missing} of {request.replicas} replicas are not in the answer"
        raise AnswerBroken(message, where=connection.address)
    return answers


def _check(connection: Connection, api: Api, code: int) -> None:
    known: dict[int, type[Retryable]] = {Code.NOT_CONTROLLER: NotController, Code.STALE_BROKER_EPOCH: StaleBrokerEpoch}
    if code in known:
        raise known[code](f"answered with {error_name(code)}", where=connection.address)
    connection.refuse(api, code)
