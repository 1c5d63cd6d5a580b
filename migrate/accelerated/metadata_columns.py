"""What `migrate.accelerated.metadata` fills, without the kernel: nothing of numba is loaded here."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

ISR_LIMIT: Final = 64  # of members; longer ISRs are sorted elsewhere
# columns of a partition's row: where its members begin, how many there are; where in `raw` its directories stand, or
# UNTOLD
(
    TOPIC,
    PARTITION,
    LEADER,
    LEADER_EPOCH,
    PARTITION_EPOCH,
    RECOVERY,
    FIRST,
    REPLICAS,
    ISR,
    REMOVING,
    ADDING,
    DIRECTORIES,
) = range(12)
ROW_COLUMNS: Final = 12
UNTOLD: Final = -1  # a record of a version without directories
# of a topic: where its name begins, and its length; where its id stands; partitions; is its fingerprint not to be used?
NAME, LENGTH, ID, COUNT, ODD = range(5)
TOPIC_COLUMNS: Final = 5
# of another record: its index; where its value begins and ends (-1: none); rows and topics before it
INDEX, BEGIN, END, ROWS_BEFORE, TOPICS_BEFORE = range(5)
OTHER_COLUMNS: Final = 5
# what is kept from batch to batch: is there a topic at hand, its number over all; what this batch had
AT_HAND, NUMBER, ROWS, TOPICS, OTHERS, MEMBERS = range(6)
COUNTERS: Final = 6

Array = np.ndarray[Any, np.dtype[Any]]


class Columns(NamedTuple):
    """What `decode` fills; topic 0 of a batch is the one that the batch before it ended with."""

    rows: Array  # int32: ROW_COLUMNS
    members: Array  # int32: replicas, isr, removing, adding of each row
    topics: Array  # int32: TOPIC_COLUMNS
    lanes: Array  # uint64: two a topic
    others: Array  # int32: OTHER_COLUMNS
    seen: Array  # int32: by partition, the number of the topic that has it
    current: Array  # uint8: the id of the topic at hand
    room: Array  # int32, ISR_LIMIT: to sort in
    counters: Array  # int64
