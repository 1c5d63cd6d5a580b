"""AssignReplicasToDirs for a whole cluster: from rows to encoded requests, against grouping and struct by hand.

Here `size` counts replicas, over ten directories of one broker; both sides are measured in CPU seconds.
"""

from __future__ import annotations

import base64
import random  # noqa: TID251 - seeded
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.kafka.controller import body_of, distinct
from migrate.model.ids import NodeId, TopicId
from migrate.protocol.codec import encode
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS
from migrate.run.drive import MOST, chunks
from tests.bench.races import Race, Work

DIRECTORIES: Final = 10
PARTITIONS: Final = 50  # a topic
BROKER, EPOCH = NodeId(1), 4711
Rows = dict[str, tuple[tuple[str, int], ...]]


def uuid_of(number: int) -> str:
    """An id that is not reserved."""
    return str(TopicId.from_bytes((number + 500).to_bytes(16, "big")))


def rows_of(size: int) -> Rows:
    """Directory id -> (topic id, partition), as the ledger gives them."""
    chance = random.Random(size)
    found: dict[str, list[tuple[str, int]]] = {uuid_of(10**9 + index): [] for index in range(DIRECTORIES)}
    places = list(found.values())
    for number in range(size):
        topic, partition = divmod(number, PARTITIONS)
        chance.choice(places).append((uuid_of(topic), partition))
    return {directory: tuple(rows) for directory, rows in found.items() if rows}


def told(requests: list[bytes]) -> str:
    """How many, and how many bytes."""
    return f"{len(requests)} {sum(map(len, requests))}"


def planned(rows: Rows) -> list[bytes]:
    """As policy drive does it."""
    return [encode(ASSIGN_REPLICAS_TO_DIRS.request, 0, body_of(BROKER, EPOCH, distinct(part))) for part in chunks(rows)]


def length(count: int) -> bytes:
    """A compact array's length."""
    value, found = count + 1, bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def written(group: dict[str, dict[str, list[int]]]) -> bytes:
    """One request's body."""
    out = bytearray(struct.pack(">iq", BROKER, EPOCH)) + length(len(group))
    for directory, topics in group.items():
        out += base64.urlsafe_b64decode(directory + "==") + length(len(topics))
        for topic, partitions in topics.items():
            out += base64.urlsafe_b64decode(topic + "==") + length(len(partitions))
            for partition in partitions:
                out += struct.pack(">ib", partition, 0)
            out.append(0)
        out.append(0)
    return bytes(out + b"\0")


def grouped(rows: Rows) -> list[bytes]:
    """As a script would: no check of ids, nothing sorted, a replica that stands twice is sent twice."""
    requests, group, held = [], dict[str, dict[str, list[int]]](), 0
    for directory, replicas in rows.items():
        for topic, partition in replicas:
            group.setdefault(directory, {}).setdefault(topic, []).append(partition)
            held += 1
            if held == MOST:
                requests.append(written(group))
                group, held = {}, 0
    return [*requests, written(group)] if held else requests


@contextmanager
def nothing(_folder: Path, _size: int) -> Iterator[None]:
    """No files are needed."""
    yield


@contextmanager
def ours(_folder: Path, size: int) -> Iterator[Work]:
    """Policy drive."""
    rows = rows_of(size)
    yield Work(lambda: planned(rows), told, clock=time.process_time)


@contextmanager
def by_hand(_folder: Path, size: int) -> Iterator[Work]:
    """The script."""
    rows = rows_of(size)
    yield Work(lambda: grouped(rows), told, clock=time.process_time)


RACES: Final = (
    Race(
        "assignments",
        300_000,
        promise=10.0,
        at_most=False,
        around=nothing,
        sides={"ours": ours, "peer": by_hand},
        note="replicas; a script that checks and sorts nothing; ours also proves each id and sends no replica twice",
    ),
)
