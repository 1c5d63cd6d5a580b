"""Fingerprints of all topics of a view at once: `migrate.model.fingerprints`, a column at a time.

Rows whose lists are as long as each other's are hashed together; what is not plain (a reassignment, a member twice) is
hashed by the reference.  A million partitions take about two seconds instead of twenty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from migrate.model import fingerprints
from migrate.model.columns import PartitionColumns
from migrate.model.fingerprints import ASSIGNMENT, LAST, START, STATE, STEP, TURN, WRAP, Fingerprint

Array = np.ndarray[Any, np.dtype[Any]]
U64: Final = np.uint64


def fingerprints_of(columns: PartitionColumns) -> dict[str, Fingerprint]:
    """As `migrate.model.fingerprints.topic_fingerprints`: by name, of each topic that has partitions."""
    total = len(columns)
    if not total:
        return {}
    lanes = row_prints(columns)
    starts = [0]
    starts += [
        at for at, (one, other) in enumerate(zip(columns.topic, columns.topic[1:], strict=False), 1) if one != other
    ]
    names = [columns.topic[start] for start in starts]
    ids = [columns.topic_id[start] for start in starts]
    lengths = np.diff(np.array([*starts, total]))
    one_id = np.repeat(np.array(ids, object), lengths).tolist() == columns.topic_id
    if len(set(names)) < len(names) or not one_id:
        return fingerprints.topic_fingerprints(columns)  # rows that do not stand by topic, or a topic with two ids
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(lanes, np.array(starts), axis=0).tolist()
    return {
        name: Fingerprint(*lane).plus(fingerprints.identity(topic_id))
        for name, lane, topic_id in zip(names, sums, ids, strict=True)
    }


def row_prints(columns: PartitionColumns) -> Array:
    """The sum of the two parts of each row: uint64, (rows, 2)."""
    total = len(columns)
    lanes = np.zeros((total, 2), U64)
    replicas, isr = columns.replicas, columns.isr
    lengths = np.fromiter(map(len, replicas), np.int64, total) << 32 | np.fromiter(map(len, isr), np.int64, total)
    moving = np.fromiter(map(bool, columns.adding), np.bool_, total)
    moving |= np.fromiter(map(bool, columns.removing), np.bool_, total)
    lengths[moving] = -1
    for kind in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == kind)
        lanes[rows] = _by_reference(columns, rows.tolist()) if kind < 0 else _together(columns, rows)
    return lanes


def _by_reference(columns: PartitionColumns, rows: Sequence[int]) -> Array:
    return np.array([_row(columns, row) for row in rows], U64)


def _row(columns: PartitionColumns, row: int) -> Fingerprint:
    number = columns.partition[row]
    one = fingerprints.assignment(number, columns.replicas[row], columns.adding[row], columns.removing[row])
    leader, epoch = columns.leader[row], columns.leader_epoch[row]
    return one.plus(fingerprints.state(number, leader, epoch, columns.recovery_state[row], columns.isr[row]))


def _together(columns: PartitionColumns, rows: Array) -> Array:
    """Of rows without a reassignment, whose lists have the same lengths."""
    where = rows.tolist()

    def lists(column: list[list[int]]) -> Array:
        return np.array([column[row] for row in where], np.int64).reshape(len(where), -1)

    def numbers(column: list[int]) -> Array:
        return np.array([column[row] for row in where], np.int64)

    replicas, isr = lists(columns.replicas), np.sort(lists(columns.isr), axis=1)
    number = numbers(columns.partition)
    first = _hashed(ASSIGNMENT, [number, replicas.shape[1], *replicas.T, 0, 0])
    state = [numbers(columns.leader), numbers(columns.leader_epoch), numbers(columns.recovery_state)]
    lanes = first + _hashed(STATE, [number, *state, isr.shape[1], *isr.T])
    twice = np.flatnonzero((isr[:, 1:] == isr[:, :-1]).any(axis=1))
    if len(twice):
        lanes[twice] = _by_reference(columns, rows[twice].tolist())
    return lanes


def _hashed(tag: int, values: Iterable[Array | int]) -> Array:
    """`fingerprints.hashed` of a column each."""
    a: Any = U64(START[0] ^ tag)
    b: Any = U64((START[1] + tag) & WRAP)
    with np.errstate(over="ignore"):
        for value in values:
            number = value.astype(U64) if isinstance(value, np.ndarray) else U64(value)
            a = (a ^ number) * U64(STEP[0])
            a = a ^ (a >> U64(32))
            b = (b + number) * U64(STEP[1])
            b = (b << U64(TURN)) | (b >> U64(64 - TURN))
            b = b ^ (b >> U64(35))
        a = a ^ (a >> U64(33))
        a = a * U64(LAST[0])
        b = b ^ (b >> U64(31))
        b = b * U64(LAST[1])
        return np.stack([a ^ (a >> U64(29)), b ^ (b >> U64(32))], axis=1)
