"""What `migrate.accelerated.row_prints` reads and fills, without the kernel: nothing of numba is loaded here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Texts(NamedTuple):
    """Distinct texts: where each begins (one more than there are), and their bytes."""

    offsets: Array  # int32
    raw: Array  # uint8


class Lists(NamedTuple):
    """A list a row: where each begins (one more than there are), and the members."""

    offsets: Array  # int32
    values: Array  # int32


class Rows(NamedTuple):
    """One batch; `topic` and `topic_id` are codes."""

    topic: Array  # int32, as all numbers
    topic_id: Array
    partition: Array
    leader: Array
    leader_epoch: Array
    recovery_state: Array
    replicas: Lists
    isr: Lists
    adding: Lists
    removing: Lists


class Sums(NamedTuple):
    """What `sum_rows` adds to: an entry a topic's code; all begin at 0."""

    lanes: Array  # uint64: two a topic
    rows: Array  # int64
    numbers: Array  # int64: the sum of the partitions' numbers
    squares: Array  # int64: the sum of their squares
