"""Topics and partition states that a live ZooKeeper answers, from bytes to columns of numbers in one pass.

What each result must be is told by `migrate.zookeeper.multiread`, what a znode must be by `migrate.zookeeper.decode`:
this accepts what ZooKeeper sends and Kafka 3.9 writes at rest, byte for byte, and leaves all the rest to those.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from migrate.kernels.bytes_at import byte, i32, i64
from migrate.kernels.compiled import BYTES, LONG, LONGS, NONE, OUT_INTS, OUT_LONGS, helper, kernel
from migrate.kernels.kafka_json import state_data, topic_data
from migrate.kernels.live_columns import (
    COUNT,
    DENIED,
    FIRST,
    HIGH,
    LEADER,
    LOW,
    MISSING,
    MZXID,
    NOT_PLAIN,
    WHERE,
)

INT_TABLE: Final = types.Array(types.int32, 2, "C")
LONG_TABLE: Final = types.Array(types.int64, 2, "C")

GET_DATA: Final = 4
FAILED: Final = -1
NO_NODE: Final = -101  # of org.apache.zookeeper.KeeperException.Code
NO_AUTH: Final = -102
HEADER: Final = 4 + 1 + 4  # kind, is it the end?, error
STAT: Final = 68
MZXID_IN_STAT: Final = 8


@helper
def one_result(raw: Any, at: Any, row: Any, rows: Any, longs: Any, members: Any, used: Any) -> Any:
    """A result into its row: (where it ends, how long its ISR is); the first is -1 where it is none that we know."""
    broken, size, minus = (np.int64(-1), np.int64(0)), np.int64(len(raw)), np.int64(-1)
    if at + HEADER + 4 > size or byte(raw, at + 4) != 0:
        return broken
    kind, length, longs[row, WHERE] = i32(raw, at), i32(raw, at + HEADER), at
    at += HEADER + 4
    if kind == FAILED and length in (NO_NODE, NO_AUTH):
        rows[row, LEADER], longs[row, MZXID] = MISSING if length == NO_NODE else DENIED, minus
        return at, np.int64(0)
    end = at + max(length, 0)
    if kind != GET_DATA or length < -1 or end + STAT > size:
        return broken
    count = state_data(raw, at, end, rows, row, used, members) if length > 0 else minus
    longs[row, MZXID] = i64(raw, end + MZXID_IN_STAT)
    if count < 0:
        rows[row, LEADER] = NOT_PLAIN
    return end + STAT, max(count, np.int64(0))


@kernel(
    *(LONG, BYTES, LONG, INT_TABLE, LONG_TABLE, OUT_INTS),
    reference="migrate.zookeeper.multiread.MultiRead.deserialize, migrate.zookeeper.decode.written_states",
)
def states(raw: Any, at: Any, rows: Any, longs: Any, members: Any) -> Any:
    """As many results as there are rows, from `at` on, and the mark that ends them: how many `members` are used.

    -1: these are not as many results as that, or one of them is none that we know.
    """
    used = np.int64(0)
    for row in range(len(rows)):
        at, count = one_result(raw, at, row, rows, longs, members, used)
        if at < 0:
            return np.int64(-1)
        used += count
    whole = at + HEADER <= len(raw) and i32(raw, at) == -1 and byte(raw, at + 4) == 1
    return used if whole else np.int64(-1)


@kernel(
    *(NONE, BYTES, LONGS, LONG_TABLE, INT_TABLE, OUT_INTS, OUT_LONGS),
    reference="migrate.zookeeper.decode.topic",
)
def assignments(raw: Any, ends: Any, topics: Any, rows: Any, members: Any, used: Any) -> None:
    """The data of topics, each ending where `ends` says, into one of `topics` and as many rows as it has partitions.

    `used`, a number, counts the members.  There are rows for all partitions that so many bytes can hold.
    """
    at, row = np.int64(0), np.int64(0)
    for topic in range(len(ends)):
        before = used[0]
        count, high, low = topic_data(raw, at, ends[topic], rows[row:], used, members)
        if count == 0:
            used[0] = before
        topics[topic, HIGH], topics[topic, LOW] = high, low
        topics[topic, FIRST], topics[topic, COUNT] = row, count
        row, at = row + count, ends[topic]
