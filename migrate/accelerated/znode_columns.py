"""What the kernels of ZooKeeper's topics fill, and where in it what stands: for those who call them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Columns(NamedTuple):
    """What `scan` fills: topics and their fingerprints, partitions, lists of brokers, ranges of other znodes, counters.

    Topics are rows of TOPIC_COLUMNS numbers; a partition is one of `rows` and one of `longs`; see below.
    """

    topics: Array  # int64
    lanes: Array  # uint64, two a topic
    rows: Array  # int32
    longs: Array  # int64
    members: Array  # int32
    others: Array  # int64: begin and end in the file
    counters: Array  # int64


# `counters`: how far it is, how much was found, the newest zxid; has /brokers/topics been
# seen; is a topic that does not lie whole in `raw` to be stepped over?
AT, TOPICS, ROW, MEMBER, RANGE, NEWEST, NODES, ROOM, PASS_OVER = range(9)
COUNTERS: Final = 9
# columns of `topics`: byte range in the file, length of the name, mzxid; id; rows
BEGIN, END, NAME, MZXID, HIGH, LOW, FIRST, COUNT = range(8)
TOPIC_COLUMNS: Final = 8
# columns of `longs`: the state's mzxid, and where in the file the partition's first znode begins
STATE_MZXID, WHERE = range(2)
LONG_COLUMNS: Final = 2

DONE, MORE, BROKEN = 0, 1, 2  # the end was found; more bytes are needed; these are no znodes
# columns of rows; replicas and ISR are runs of `members`
LEADER, LEADER_EPOCH, WRITER, REPLICAS, REPLICA_COUNT, ISR, ISR_COUNT = range(7)
ROW_COLUMNS: Final = 7
MOST_MEMBERS: Final = 1000  # of one list
