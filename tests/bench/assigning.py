"""AssignReplicasToDirs for a whole cluster: from replicas to encoded requests, against grouping and struct by hand.

Here `size` counts replicas: factor 3, 50 partitions a topic, 100 brokers with 12 directories each.  Each side is given
the form that suits it, columns or tuples; both are measured in CPU seconds.
"""

from __future__ import annotations

import struct
import subprocess
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from migrate.kafka.assignment_columns import AssignmentColumns, requests_by_kernel
from migrate.kafka.assignment_requests import MAX_ASSIGNMENTS
from migrate.model.ids import NodeId
from tests.bench.javac import compiled, no_compiler
from tests.bench.races import SIDES, Race, Work

BROKERS, DIRECTORIES, PARTITIONS, FACTOR = 100, 12, 50, 3
EPOCHS: Final = {NodeId(broker): 4711 + broker for broker in range(BROKERS)}
Row = tuple[int, bytes, bytes, int]


def columns_of_a_cluster(size: int) -> AssignmentColumns:
    """Each replica's broker, directory, topic and partition: topics in order, as views hold them."""
    chance = np.random.default_rng(size)
    number = np.arange(size) // FACTOR
    first = chance.integers(0, BROKERS, size // FACTOR + 1)
    step = 1 + chance.integers(0, 30, size // FACTOR + 1)
    broker = (first[number] + step[number] * (np.arange(size) % FACTOR)) % BROKERS
    place = broker * DIRECTORIES + chance.integers(0, DIRECTORIES, size)
    topics = chance.integers(0, 256, (size // FACTOR // PARTITIONS + 1, 16), np.uint8)
    directories = chance.integers(1, 256, (BROKERS * DIRECTORIES, 16), np.uint8)
    return AssignmentColumns(
        broker.astype(np.int32),
        directories[place],
        topics[number // PARTITIONS],
        (number % PARTITIONS).astype(np.int32),
    )


def rows_of(columns: AssignmentColumns) -> list[Row]:
    """The same as tuples; equal ids are one object."""
    known: dict[bytes, bytes] = {}

    def ids(column: Any) -> list[bytes]:
        raw = column.tobytes()
        found = (raw[at : at + 16] for at in range(0, len(raw), 16))
        return [known.setdefault(one, one) for one in found]

    return list(
        zip(
            columns.broker.tolist(),
            ids(columns.directory),
            ids(columns.topic),
            columns.partition.tolist(),
            strict=True,
        )
    )


def planned(columns: AssignmentColumns) -> list[bytes]:
    """By the kernel."""
    found = requests_by_kernel(columns, EPOCHS, MAX_ASSIGNMENTS)
    assert found is not None
    return [request.body for request in found]


def length(count: int) -> bytes:
    """A compact array's length."""
    value, found = count + 1, bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def written(broker: int, group: dict[bytes, dict[bytes, list[int]]]) -> bytes:
    """One request's body."""
    out = bytearray(struct.pack(">iq", broker, EPOCHS[NodeId(broker)])) + length(len(group))
    for directory, topics in group.items():
        out += directory + length(len(topics))
        for topic, partitions in topics.items():
            out += topic + length(len(partitions))
            for partition in partitions:
                out += struct.pack(">ib", partition, 0)
            out.append(0)
        out.append(0)
    return bytes(out + b"\0")


def grouped(rows: Sequence[Row]) -> list[bytes]:
    """As a script would: no check of ids, nothing sorted, a replica that stands twice is sent twice."""
    brokers: dict[int, list[tuple[bytes, bytes, int]]] = {}
    for broker, directory, topic, partition in rows:
        brokers.setdefault(broker, []).append((directory, topic, partition))
    requests = []
    for broker, replicas in brokers.items():
        for start in range(0, len(replicas), MAX_ASSIGNMENTS):
            group: dict[bytes, dict[bytes, list[int]]] = {}
            for directory, topic, partition in replicas[start : start + MAX_ASSIGNMENTS]:
                group.setdefault(directory, {}).setdefault(topic, []).append(partition)
            requests.append(written(broker, group))
    return requests


def read_length(body: bytes, at: int) -> tuple[int, int]:
    """A compact array's length, and where it ends."""
    value, shift = 0, 0
    while body[at] > 127:
        value |= (body[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return (value | body[at] << shift) - 1, at + 1


def told(requests: Sequence[bytes]) -> str:
    """How many requests, how many replicas, and a sum over replicas that does not see their order."""
    replicas, total, crc = 0, 0, zlib.crc32
    for body in requests:
        directories, at = read_length(body, 12)
        for _ in range(directories):
            directory = crc(body[at : at + 16], crc(body[:12]))
            topics, at = read_length(body, at + 16)
            for _ in range(topics):
                topic = crc(body[at : at + 16], directory)
                partitions, at = read_length(body, at + 16)
                total += sum(crc(body[start : start + 4], topic) for start in range(at, at + 5 * partitions, 5))
                replicas, at = replicas + partitions, at + 5 * partitions + 1
            at += 1
        assert at == len(body) - 1
    return f"{len(requests)} requests, {replicas} replicas, {total:x}"


@contextmanager
def nothing(_folder: Path, _size: int) -> Iterator[None]:
    """No files are needed."""
    yield


@contextmanager
def ours(_folder: Path, size: int) -> Iterator[Work]:
    """In columns."""
    planned(columns_of_a_cluster(100))  # loads the kernel: that is measured elsewhere
    columns = columns_of_a_cluster(size)
    yield Work(lambda: planned(columns), told, clock=time.process_time)


@contextmanager
def by_hand(_folder: Path, size: int) -> Iterator[Work]:
    """The script."""
    rows = rows_of(columns_of_a_cluster(size))
    yield Work(lambda: grouped(rows), told, clock=time.process_time)


@contextmanager
def by_kafkas_builder(folder: Path, size: int) -> Iterator[Work]:
    """A Java program with the broker's own builder and serializer, warm; its seconds are those that it tells."""
    columns = columns_of_a_cluster(size)
    rows, bodies = folder / "rows", folder / "bodies"
    raw = np.zeros((size, 40), np.uint8)
    raw[:, :4] = columns.broker.astype(">i4").view(np.uint8).reshape(-1, 4)
    raw[:, 4:20], raw[:, 20:36] = columns.directory, columns.topic
    raw[:, 36:] = columns.partition.astype(">i4").view(np.uint8).reshape(-1, 4)
    raw.tofile(rows)
    command = [*compiled(folder, "AssignReplicas", "org.apache.kafka.server.", ("-Xmx2g",)), str(rows), str(bodies)]
    seconds = [0.0]

    def timed() -> bytes:
        told_by_java = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        seconds[0] = float(told_by_java[0])
        return bodies.read_bytes()

    yield Work(timed, lambda raw: told(each_body(raw)), tree=True, clock=lambda: seconds[0])


def each_body(raw: bytes) -> list[bytes]:
    """What the Java program wrote: each request's body behind its length."""
    found, at = [], 0
    while at < len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], "big")
        found.append(raw[at + 4 : end])
        at = end
    return found


def a_race(name: str, size: int, promise: float, *, growth: float = 0.0, growing: Sequence[str] = SIDES) -> Race:
    """Of that size, against a script."""
    return Race(
        name,
        size,
        promise=promise,
        at_most=False,
        around=nothing,
        sides={"ours": ours, "peer": by_hand},
        growth=growth,
        growing=growing,
        goal="P10",
        peer="dict grouping",
        note="replicas; a script that checks and sorts nothing; ours sorts, and refuses what would harm",
    )


RACES: Final = (
    a_race("assignments", 300_000, 10.0),
    # 15 million tuples are 3 GB
    a_race("assignments of a large cluster", 3_000_000, 18.0, growth=6.0, growing=("ours",)),
    Race(
        "assignments, Kafka's builder",
        3_000_000,
        promise=1.0,
        at_most=False,
        around=nothing,
        sides={"ours": ours, "peer": by_kafkas_builder},
        growing=("ours",),  # fifteen million objects of Kafka's would be 9 GB
        goal="P10",
        peer="AssignmentsManager's builder and Kafka's serializer, warm",
        note="replicas; CPU seconds, the peer's as it tells them: its objects are made, and sorted by broker, before",
        lacks=no_compiler,
    ),
)
