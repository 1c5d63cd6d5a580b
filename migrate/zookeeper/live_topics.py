"""Topics and partition states of a live ZooKeeper in bulk: bytes to values, with no znode or JSON in between.

A kernel reads what is as Kafka writes it at rest.  A state that is not is given as the znode that it is, a topic that
is not is None; an answer that is not as ZooKeeper writes it is read by `MultiRead`, with its errors.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, repeat
from typing import Any, Final

import numpy as np

from migrate.kernels.choice import kernels
from migrate.kernels.live_columns import (
    COUNT,
    DENIED,
    FIRST,
    HIGH,
    ISR,
    ISR_COUNT,
    LEADER,
    LEADER_EPOCH,
    LONG_COLUMNS,
    LOW,
    MISSING,
    MZXID,
    REPLICA_COUNT,
    REPLICAS,
    ROW_COLUMNS,
    TOPIC_COLUMNS,
    WHERE,
    WRITER,
)
from migrate.zookeeper.decode import PartitionState, TopicZnode
from migrate.zookeeper.multiread import GET_DATA, MultiRead, chunks, first_of
from migrate.zookeeper.znode import Absent

Array = np.ndarray[Any, np.dtype[Any]]

ABSENT: Final = {MISSING: Absent.MISSING, DENIED: Absent.DENIED}
NEW: Final = partial(tuple.__new__, PartitionState)
MEMBER_BYTES: Final = 2  # a member of a list and its comma, at least
PARTITION_BYTES: Final = len('"0":[1],')  # of a topic's data, at least
STATE: Final = [b"%d/state" % number for number in range(1000)]


def state_paths(topics: bytes, wanted: Iterable[tuple[str, Sequence[int]]]) -> Iterator[list[bytes]]:
    """The paths of these partitions' states, topic by topic; `topics` is the path of all, chroot included."""
    for topic, numbers in wanted:
        base = b"%b/%b/partitions/" % (topics, topic.encode())
        if max(numbers, default=0) < len(STATE):
            yield [base + STATE[number] for number in numbers]
        else:
            yield [base + b"%d/state" % number for number in numbers]


def requests(topics: Iterable[list[bytes]], operations: int) -> Iterator[Sequence[bytes]]:
    """The paths in runs that fit one request each, made while earlier ones are under way."""
    waiting: list[bytes] = []
    for paths in topics:
        waiting += paths
        if len(waiting) >= operations:
            *full, waiting = map(list, chunks(waiting, operations))
            yield from full
    yield from chunks(waiting, operations)


class StatesRead(MultiRead):
    """A MultiRead of partition states; where it is made, the kernel `live_topics` is ready."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        MultiRead.__init__(self, GET_DATA, paths)

    def deserialize(self, raw: bytes, offset: int) -> list[Any]:
        """A state, a znode to be looked at, or why there is none, for each path; raises what MultiRead raises."""
        states = kernels("live_topics").states

        rows = np.empty((len(self.paths), ROW_COLUMNS), np.int32)
        longs = np.empty((len(self.paths), LONG_COLUMNS), np.int64)
        members = np.empty(len(raw) // MEMBER_BYTES, np.int32)
        used = states(np.frombuffer(raw, np.uint8), offset, rows, longs, members)
        if used < 0:
            return MultiRead.deserialize(self, raw, offset)
        leaders = rows[:, LEADER]
        odd = np.flatnonzero(leaders < -1)
        rows[odd, ISR] = rows[odd, ISR_COUNT] = 0
        values = zip(
            leaders.tolist(),
            rows[:, LEADER_EPOCH].tolist(),
            _lists(rows[:, ISR], rows[:, ISR_COUNT], members[:used]),
            repeat(0),
            longs[:, MZXID].tolist(),
            rows[:, WRITER].tolist(),
            strict=False,  # one of them has no end
        )
        found: list[Any] = [*map(NEW, values)]
        for row in odd.tolist():
            found[row] = ABSENT.get(int(leaders[row])) or first_of(raw, int(longs[row, WHERE]))
        return found


def plain_topics(contents: Sequence[bytes]) -> list[TopicZnode | None]:
    """Topics from their data, where the kernel `live_topics` is ready; None: `decode.topic` is to look at it."""
    assignments = kernels("live_topics").assignments

    raw = np.frombuffer(b"".join(contents), np.uint8)
    ends = np.fromiter(accumulate(map(len, contents)), np.int64, len(contents))
    topics = np.empty((len(contents), TOPIC_COLUMNS), np.int64)
    rows = np.empty((len(raw) // PARTITION_BYTES + 1, ROW_COLUMNS), np.int32)
    members = np.empty(len(raw) // MEMBER_BYTES + 1, np.int32)
    counted = np.zeros(1, np.int64)
    assignments(raw, ends, topics, rows, members, counted)
    used = rows[: int(topics[:, COUNT].sum())]
    lists = _lists(used[:, REPLICAS], used[:, REPLICA_COUNT], members[: int(counted[0])])
    ids = topics[:, [HIGH, LOW]].astype(">i8").tobytes()
    found: list[TopicZnode | None] = []
    for number, (first, count) in enumerate(topics[:, [FIRST, COUNT]].tolist()):
        if not count:
            found.append(None)
            continue
        name = base64.urlsafe_b64encode(ids[16 * number : 16 * number + 16])[:22].decode()
        found.append(TopicZnode(name, dict(enumerate(lists[first : first + count])), {}, {}))
    return found


def _lists(starts: Array, counts: Array, members: Array) -> list[list[int]]:
    """The run of `members` of each row, a list of its own."""
    flat = members.tolist()
    return [flat[start:stop] for start, stop in zip(starts.tolist(), (starts + counts).tolist(), strict=True)]
