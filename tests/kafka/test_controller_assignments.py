"""The AssignReplicasToDirs requests of a broker hold each replica once, and never a directory that Kafka reserves."""

from __future__ import annotations

import random  # noqa: TID251 - seeded

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.errors import EncodeError
from migrate.kafka.controller import MAX_ASSIGNMENTS, AssignRequest, Replica, requests_of
from migrate.model.ids import LOST, DirectoryId, NodeId, TopicId
from migrate.protocol.codec import decode_whole
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS

Assignments = dict[str, list[Replica]]
# ids whose bytes and whose letters sort differently
RAW = [bytes([first, *range(14), last]) for first in (0, 0xF8, 0xFC, 0x69, 0xD0) for last in (0, 1, 255)]
DIRECTORIES = [str(DirectoryId.from_bytes(raw)) for raw in RAW]
TOPICS = [str(TopicId.from_bytes(raw[::-1])) for raw in RAW]
EPOCH = 1 << 40
ROWS = st.dictionaries(
    st.tuples(st.sampled_from(TOPICS), st.integers(0, 3) | st.sampled_from([127, 2**31 - 1])),
    st.sampled_from(DIRECTORIES),
    max_size=20,
)


def sent(requests: list[AssignRequest], broker: int = 1) -> list[tuple[str, str, int]]:
    """(directory, topic, partition) of each entry, in the order in which they are sent."""
    found: list[tuple[str, str, int]] = []
    for request in requests:
        body = decode_whole(ASSIGN_REPLICAS_TO_DIRS.request, 0, request.body, 0)
        assert (body["brokerId"], body["brokerEpoch"]) == (broker, EPOCH)
        entries = [
            (room["id"], topic["topicId"], partition["partitionIndex"])
            for room in body["directories"]
            for topic in room["topics"]
            for partition in topic["partitions"]
        ]
        assert len({room["id"] for room in body["directories"]}) == len(body["directories"])
        assert len(entries) == request.replicas
        found += entries
    return found


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(ROWS, st.integers(1, 4) | st.just(MAX_ASSIGNMENTS), st.integers(0, 2))
def test_each_replica_is_sent_once_in_as_few_requests_as_there_can_be(
    rows: dict[Replica, str], most: int, repeats: int
) -> None:
    """Replicas that are named more than once, too; every request but the last is full."""
    assignments: Assignments = {}
    for replica, directory in rows.items():
        assignments.setdefault(directory, []).extend([replica] * (1 + repeats))
    requests = requests_of(NodeId(1), EPOCH, assignments, most)
    assert sent(requests) == sorted((directory, *replica) for replica, directory in rows.items())
    assert [request.replicas for request in requests[:-1]] == [most] * (len(requests) - 1)
    assert all(1 <= request.replicas <= most for request in requests)


@pytest.mark.parametrize("count", [2_200, MAX_ASSIGNMENTS, MAX_ASSIGNMENTS + 1, 7_000])
def test_a_large_broker_is_sent_full_requests(count: int) -> None:
    """At most 2,250 replicas per request, as Kafka's own brokers send; whatever the order they are given in."""
    draw = random.Random(count)
    rows = [(draw.choice(TOPICS), number) for number in range(count)]
    assignments: Assignments = {}
    for row in rows:
        assignments.setdefault(draw.choice(DIRECTORIES), []).append(row)
    requests = requests_of(NodeId(1), EPOCH, assignments)
    full, rest = divmod(count, MAX_ASSIGNMENTS)
    assert [request.replicas for request in requests] == [MAX_ASSIGNMENTS] * full + [rest] * (rest > 0)
    assert sorted((topic, partition) for _, topic, partition in sent(requests)) == sorted(rows)
    shuffled = {room: draw.sample(found, len(found)) for room, found in reversed(assignments.items())}
    assert requests_of(NodeId(1), EPOCH, shuffled) == requests


def test_nothing_to_send_is_no_request() -> None:
    """Neither without directories nor with an empty one."""
    assert requests_of(NodeId(1), EPOCH, {}) == []
    assert requests_of(NodeId(1), EPOCH, {DIRECTORIES[3]: []}) == []


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        ({str(LOST): [(TOPICS[0], 0)]}, "is reserved"),
        ({str(DirectoryId.from_bytes(bytes(15) + bytes([99]))): [(TOPICS[0], 0)]}, "is reserved"),
        ({str(LOST): [], DIRECTORIES[3]: [(TOPICS[0], 0)]}, "is reserved"),
        ({DIRECTORIES[3]: [(TOPICS[0], 0)], DIRECTORIES[4]: [(TOPICS[1], 0), (TOPICS[0], 0)]}, "two directories"),
        ({DIRECTORIES[3]: [("no id", 0)]}, "is no Kafka UUID"),
        ({"no id": [(TOPICS[0], 0)]}, "is no Kafka UUID"),
        ({DIRECTORIES[3]: [(TOPICS[0], 2**31)]}, "does not fit int32"),
    ],
)
def test_what_would_harm_is_refused(assignments: Assignments, says: str) -> None:
    """A reserved directory, a replica in two directories, an id that is none, a partition that no int32 holds."""
    with pytest.raises((ValueError, EncodeError), match=says):
        requests_of(NodeId(1), EPOCH, assignments)
