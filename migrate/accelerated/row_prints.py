"""Rows of partitions, as Arrow lays columns out: a fingerprint a row, summed by topic.

Every member of a list is within the buffers that Arrow vouches for; the caller gives codes below the number of names.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from migrate.accelerated.compiled import BYTES, INTS, OUT_INTS, OUT_LONGS, OUT_PAIRS, helper, kernel
from migrate.accelerated.fingerprints import finish, mix, start
from migrate.accelerated.row_print_columns import Array, Lists, Rows, Sums, Texts
from migrate.model import fingerprints

ROW: Final = np.uint64(fingerprints.ROW)
TEXT: Final = np.uint64(fingerprints.TEXT)


_LISTS: Final = types.NamedUniTuple(INTS, 2, Lists)
_TEXTS: Final = types.NamedTuple((INTS, BYTES), Texts)
_ROWS: Final = types.NamedTuple((*([INTS] * 6), *([_LISTS] * 4)), Rows)
_SUMS: Final = types.NamedTuple((OUT_PAIRS, OUT_LONGS, OUT_LONGS, OUT_LONGS), Sums)


@helper
def _mix_list(a: Any, b: Any, lists: Any, row: Any) -> Any:
    """The lanes with an ordered list: its length, then its members."""
    first, end = lists.offsets[row], lists.offsets[row + 1]
    a, b = mix(a, b, np.int64(end - first))
    for at in range(first, end):
        a, b = mix(a, b, np.int64(lists.values[at]))
    return a, b


@helper
def _mix_set(a: Any, b: Any, lists: Any, row: Any, room: Any) -> Any:
    """The lanes with a set: how many members it has, then these in order, each once."""
    first, end = lists.offsets[row], lists.offsets[row + 1]
    count = 0
    for at in range(first, end):
        value = lists.values[at]
        place = count
        while place > 0 and room[place - 1] > value:
            place -= 1
        if place > 0 and room[place - 1] == value:
            continue
        for behind in range(count, place, -1):
            room[behind] = room[behind - 1]
        room[place] = value
        count += 1
    a, b = mix(a, b, count)
    for at in range(count):
        a, b = mix(a, b, np.int64(room[at]))
    return a, b


@kernel(types.void, _TEXTS, OUT_PAIRS, reference="migrate.diff.topic_sums.text_print")
def hash_texts(texts: Texts, prints: Array) -> None:
    """Two numbers for each text."""
    for number in range(len(texts.offsets) - 1):
        a, b = start(TEXT)
        for at in range(texts.offsets[number], texts.offsets[number + 1]):
            a, b = mix(a, b, np.int64(texts.raw[at]))
        a, b = finish(a, b)
        prints[number, 0], prints[number, 1] = a, b


@kernel(types.void, _ROWS, OUT_PAIRS, OUT_INTS, OUT_PAIRS, reference="migrate.diff.topic_sums.row_print")
def hash_rows(rows: Rows, ids: Array, room: Array, prints: Array) -> None:
    """Two numbers for each row.

    `ids` are the two numbers of each topic id; `room` is as long as the longest set.
    """
    for row in range(len(rows.topic)):
        a, b = start(ROW)
        topic_id = rows.topic_id[row]
        a, b = mix(a, b, ids[topic_id, 0])
        a, b = mix(a, b, ids[topic_id, 1])
        a, b = mix(a, b, np.int64(rows.partition[row]))
        a, b = mix(a, b, np.int64(rows.leader[row]))
        a, b = mix(a, b, np.int64(rows.leader_epoch[row]))
        a, b = mix(a, b, np.int64(rows.recovery_state[row]))
        a, b = _mix_list(a, b, rows.replicas, row)
        a, b = _mix_set(a, b, rows.isr, row, room)
        a, b = _mix_set(a, b, rows.adding, row, room)
        a, b = _mix_set(a, b, rows.removing, row, room)
        a, b = finish(a, b)
        prints[row, 0], prints[row, 1] = a, b


@kernel(types.void, _ROWS, OUT_PAIRS, _SUMS, reference="migrate.diff.topic_sums.by_reference")
def sum_rows(rows: Rows, prints: Array, sums: Sums) -> None:
    """Add each row's two numbers to its topic."""
    for row in range(len(rows.topic)):
        number = np.int64(rows.partition[row])
        topic = rows.topic[row]
        sums.lanes[topic, 0] += prints[row, 0]
        sums.lanes[topic, 1] += prints[row, 1]
        sums.rows[topic] += 1
        sums.numbers[topic] += number
        sums.squares[topic] += number * number
