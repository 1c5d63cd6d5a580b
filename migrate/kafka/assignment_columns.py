"""AssignReplicasToDirs for whole clusters: replicas as columns, planned and encoded by a kernel.

The reference is `migrate.kafka.assignment_requests.requests_by_reference`, broker after broker; what a kernel
finds odd, and what has to be refused, goes there.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from migrate.errors import EncodeError
from migrate.kafka.assignment_requests import AssignRequest, Replica
from migrate.kernels.choice import kernels
from migrate.model.ids import RESERVED_DIRECTORY_IDS, NodeId
from migrate.protocol.primitives import uuid_bytes

Array = np.ndarray[Any, np.dtype[Any]]
FEW_IDS: Final = 1 << 12
BITS: Final = 63  # of a replica's number


@dataclass(frozen=True, slots=True)
class AssignmentColumns:
    """One entry a replica in each: `broker` and `partition` int32, `directory` and `topic` uint8 of shape (n, 16)."""

    broker: Array
    directory: Array
    topic: Array
    partition: Array

    def __len__(self) -> int:
        return len(self.broker)


def columns_of(assignments: Mapping[NodeId, Mapping[str, Sequence[Replica]]]) -> AssignmentColumns | None:
    """Broker -> directory id -> replicas as columns; None for what the reference must say: an id that is none."""
    known: dict[str, bytes] = {}
    brokers, sizes = list[int](), list[int]()
    directories, topics, partitions = list[bytes](), list[bytes](), list[int]()
    try:
        for broker, of_broker in assignments.items():
            for directory, rows in of_broker.items():
                if not rows:
                    return None  # its id would be in no column, and unproven
                brokers.append(broker)
                sizes.append(len(rows))
                directories.append(uuid_bytes(directory))
                for topic, partition in rows:
                    raw = known.get(topic)
                    topics.append(known.setdefault(topic, uuid_bytes(topic)) if raw is None else raw)
                    partitions.append(partition)
        return AssignmentColumns(
            np.repeat(np.array(brokers, np.int32), sizes),
            np.repeat(_ids(directories), sizes, axis=0),
            _ids(topics),
            np.array(partitions, np.int32),
        )
    except (EncodeError, OverflowError):
        return None


def _ids(raw: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(raw), np.uint8).reshape(-1, 16)


def requests_by_kernel(
    columns: AssignmentColumns, epochs: Mapping[NodeId, int], most: int
) -> list[AssignRequest] | None:
    """The same bytes by the kernel; None where anything is not plain, or is to be refused."""
    if not len(columns):
        return []
    plan = _numbered(columns)
    if plan is None:
        return None
    code = kernels("assignments")

    places = np.concatenate(([0], np.cumsum(plan.widths, dtype=np.int64)))
    starts = np.empty(len(plan.owners) + len(columns) // most + 2, np.int64)
    seen, sums = np.full(places[-1], -1, np.int32), np.zeros(3, np.int64)
    shifts = plan.topic_shift, plan.directory_shift
    count = code.cut(plan.keys, *shifts, plan.owners, places[:-1], most, seen, starts, sums)
    if count < 0:
        return None
    starts, ends = starts[: count + 1], np.empty(count, np.int64)
    out = np.empty(_room(count, sums), np.uint8)
    of_owners = np.array([epochs[NodeId(owner)] for owner in plan.owners.tolist()], np.int64)
    ids = plan.directory_ids, plan.topic_ids
    code.encoded(plan.keys, starts, *shifts, plan.owners, of_owners, *ids, out, ends)
    brokers = plan.owners[(plan.keys[starts[:-1]] >> np.uint64(plan.directory_shift)).astype(np.int64)]
    return [
        AssignRequest(NodeId(broker), out[start:end].tobytes(), replicas)
        for broker, start, end, replicas in zip(
            brokers.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), np.diff(starts).tolist(), strict=True
        )
    ]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A sorted number for each replica, and what its parts mean; owners, ids and widths stand by rank."""

    keys: Array
    topic_shift: int
    directory_shift: int
    owners: Array  # each directory's broker
    directory_ids: Array
    topic_ids: Array
    widths: Array  # each topic's highest partition + 1


def _numbered(columns: AssignmentColumns) -> _Plan | None:
    """The replicas' numbers, sorted a directory at a time; None where they are not plain."""
    code = kernels("assignments")

    directory_codes, directory_ids = _coded(columns.directory)
    topic_codes, topic_ids = _coded(columns.topic)
    codes = directory_codes, topic_codes, columns.partition
    owners, widths = np.full(len(directory_ids), -1, np.int32), np.zeros(len(topic_ids), np.int32)
    sizes = np.zeros(len(directory_ids), np.int64)
    odd = code.surveyed(columns.broker, *codes, owners, widths, sizes)
    topic_shift = max(int(widths.max()) - 1, 0).bit_length()
    directory_shift = topic_shift + (len(topic_ids) - 1).bit_length()
    if odd or _any_reserved(directory_ids) or directory_shift + len(directory_ids).bit_length() > BITS:
        return None
    if int(widths.sum(dtype=np.int64)) > 8 * len(columns) + (1 << 20):
        return None  # partitions far apart: no cluster's, and a table of them would be huge
    by_directory = np.lexsort((_texts(directory_ids), owners))
    by_topic = np.argsort(_texts(topic_ids))
    keys, ends = np.empty(len(columns), np.uint64), np.cumsum(sizes[by_directory])
    places = np.empty(len(sizes), np.int64)
    places[by_directory] = ends - sizes[by_directory]
    code.numbered(*codes, _ranks(by_directory), _ranks(by_topic), topic_shift, directory_shift, places, keys)
    for start, end in pairwise([0, *ends.tolist()]):
        keys[start:end].sort()
    return _Plan(
        keys,
        topic_shift,
        directory_shift,
        owners[by_directory],
        directory_ids[by_directory],
        topic_ids[by_topic],
        widths[by_topic],
    )


def _coded(ids: Array) -> tuple[Array, Array]:
    """A number for each id (int32), and the ids by number (uint8, one a row)."""
    code = kernels("assignments")

    pairs = np.ascontiguousarray(ids).view(np.uint64)
    codes, few = np.empty(len(ids), np.int32), FEW_IDS
    while True:
        table, unique = np.full(4 * few, -1, np.int32), np.empty((few, 2), np.uint64)
        count = code.coded(pairs, table, codes, unique)
        if count >= 0:
            return codes, unique[:count].view(np.uint8)
        few *= 8


def _any_reserved(ids: Array) -> bool:
    return bool((~ids[:, :15].any(axis=1) & (ids[:, 15] < RESERVED_DIRECTORY_IDS)).any())


def _texts(ids: Array) -> Array:
    """The ids as text, by which the reference sorts: its order is not that of the bytes."""
    padded = np.zeros((len(ids), 18), np.uint8)  # a multiple of three, so that each id ends with its last letter
    padded[:, :16] = ids
    return np.frombuffer(base64.urlsafe_b64encode(padded.tobytes()), "S24")


def _ranks(order: Array) -> Array:
    """Where each stands, from which stands where."""
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


def _room(requests: int, sums: Array) -> int:
    """Bytes that the bodies of so many requests, replicas and runs cannot exceed."""
    replicas, runs, inner = (int(value) for value in sums)
    return requests * (12 + 5 + 1) + (runs + inner) * (16 + 5 + 1) + replicas * 5
