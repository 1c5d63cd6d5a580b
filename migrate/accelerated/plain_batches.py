"""Batches of a metadata snapshot, or log, in columns: the kernel for what is plain, the reference for other records.

A batch is applied whole in the reference's order: topics, their partitions, and between them what the kernel listed.
The reference is `migrate.kraft.image.snapshot_state`, of a log `migrate.kraft.image.Image`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from migrate.accelerated import metadata_columns as kernels
from migrate.accelerated.choice import kernels as kernel_code
from migrate.kraft.rules import PartitionRow
from migrate.model.ids import MIGRATING
from migrate.protocol.batches import Batch
from migrate.protocol.primitives import uuid_text

Array = np.ndarray[Any, np.dtype[Any]]
MOST_PARTITIONS: Final = 1 << 17  # of a topic; more have no fingerprint
MIGRATING_TEXT: Final = str(MIGRATING)
SMALLEST_NUMBER: Final = 4  # bytes of a member of a list
SMALLEST_RECORD: Final = 7


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A record that the kernel listed: its offset and value, and how many rows and topics stand before it."""

    offset: int
    value: bytes
    rows_before: int
    topics_before: int


@dataclass(frozen=True, slots=True)
class PlainBatch:
    """What a batch holds, until the next one is decoded: the arrays are used again.

    `topics`, `lanes` and their neighbours begin with the topic that the batch before ended with (it may have no rows
    here); `names` and `ids` are those of the topics that begin here.
    """

    batch: Batch
    names: list[str]
    ids: list[bytes]
    counts: list[int]  # partitions, of each of 1 + len(names) topics
    odd: list[bool]  # is the fingerprint of that topic not to be used?
    lanes: Array  # uint64, (1 + len(names), 2)
    rows: Array  # int32, as migrate.accelerated.metadata has them
    members: Array
    others: list[OtherRecord]

    def topic_offsets(self) -> list[int]:
        """The offsets of the records of the topics that begin here."""
        found, at, listed = list[int](), self.batch.base_offset, 0
        for topic, rows in enumerate(self.counts[:-1]):
            before = listed
            while listed < len(self.others) and self.others[listed].topics_before <= topic:
                listed += 1
            at += rows + listed - before
            found.append(at)
            at += 1
        return found

    def partitions(self, first: int, end: int) -> Iterator[tuple[int, PartitionRow]]:
        """Number and row of the partitions in that range of rows, in order."""
        rows, raw = self.rows[first:end], self.batch.raw
        if not len(rows):
            return iter(())
        low = int(rows[0, kernels.FIRST])
        columns = rows.T.tolist()
        sizes = [columns[column] for column in (kernels.REPLICAS, kernels.ISR, kernels.REMOVING, kernels.ADDING)]
        high = columns[kernels.FIRST][-1] + sum(size[-1] for size in sizes)
        flat = self.members[low:high].tolist()
        at = (rows[:, kernels.FIRST] - low).tolist()
        lists = []
        for size in sizes:
            ends = [start + count for start, count in zip(at, size, strict=True)]
            lists.append([flat[start:end] for start, end in zip(at, ends, strict=True)])
            at = ends
        replicas, isr, removing, adding = lists
        directories = [
            [MIGRATING_TEXT] * count
            if begin == kernels.UNTOLD
            else [uuid_text(raw[start : start + 16]) for start in range(begin, begin + 16 * count, 16)]
            for begin, count in zip(columns[kernels.DIRECTORIES], sizes[0], strict=True)
        ]
        made = map(
            PartitionRow,
            replicas,
            isr,
            adding,
            removing,
            columns[kernels.LEADER],
            columns[kernels.LEADER_EPOCH],
            columns[kernels.RECOVERY],
            directories,
            columns[kernels.PARTITION_EPOCH],
        )
        return zip(columns[kernels.PARTITION], made, strict=True)


class PlainBatches:
    """Decodes batches one after another; keeps which topic is at hand, and its arrays."""

    def __init__(self) -> None:
        self._decode = kernel_code("metadata").decode
        self._counters = np.zeros(kernels.COUNTERS, np.int64)
        self._current = np.zeros(16, np.uint8)
        self._sorting = np.empty(kernels.ISR_LIMIT, np.int32)
        self._seen = np.full(MOST_PARTITIONS, -1, np.int32)
        self._columns: kernels.Columns | None = None

    def at_hand(self, topic: bytes) -> None:
        """The batch that comes next may begin with partitions of that topic (its id; empty: of none)."""
        self._counters[kernels.AT_HAND] = bool(topic)
        if topic:
            self._current[:] = np.frombuffer(topic, np.uint8)

    def decode(self, batch: Batch) -> PlainBatch | None:
        """The batch in columns; None where the reference must decode it."""
        raw, count = np.frombuffer(batch.raw, np.uint8), batch.last_offset - batch.base_offset + 1
        counters = self._counters
        if count * SMALLEST_RECORD > len(raw):
            counters[kernels.AT_HAND] = 0
            return None
        columns = self._room(len(raw), count)
        if self._decode(raw, count, columns) != 0:
            counters[kernels.AT_HAND] = 0
            return None
        topics = columns.topics[: int(counters[kernels.TOPICS]) + 1]
        names, ids = list[str](), list[bytes]()
        try:
            for name, length, place in topics[1:, : kernels.ID + 1].tolist():
                names.append(batch.raw[name : name + length].decode())
                ids.append(batch.raw[place : place + 16])
        except UnicodeDecodeError:
            counters[kernels.AT_HAND] = 0
            return None
        return PlainBatch(
            batch=batch,
            names=names,
            ids=ids,
            counts=topics[:, kernels.COUNT].tolist(),
            odd=topics[:, kernels.ODD].astype(bool).tolist(),
            lanes=columns.lanes[: len(topics)],
            rows=columns.rows[: int(counters[kernels.ROWS])],
            members=columns.members,
            others=[
                OtherRecord(batch.base_offset + index, batch.raw[begin:end], rows, before)
                for index, begin, end, rows, before in columns.others[: int(counters[kernels.OTHERS])].tolist()
            ],
        )

    def _room(self, size: int, count: int) -> kernels.Columns:
        """Arrays that a batch of that size fits into, and never less than before."""
        found = self._columns
        records, members = count + 2, size // SMALLEST_NUMBER
        if found is None or len(found.rows) < records or len(found.members) < members:
            if found is not None:
                records, members = max(records, len(found.rows)), max(members, len(found.members))
            found = self._columns = kernels.Columns(
                np.empty((records, kernels.ROW_COLUMNS), np.int32),
                np.empty(members, np.int32),
                np.empty((records, kernels.TOPIC_COLUMNS), np.int32),
                np.empty((records, 2), np.uint64),
                np.empty((records, kernels.OTHER_COLUMNS), np.int32),
                self._seen,
                self._current,
                self._sorting,
                self._counters,
            )
        return found


def in_order(
    plain: PlainBatch,
    topic: Callable[[int], None],
    rows: Callable[[int, int, int], None],
    other: Callable[[OtherRecord], None],
) -> None:
    """Call for each topic that begins, each range of rows (topic, first, end) and each other record, as they stand."""
    at_topic, at_row, ends = 0, 0, _running(plain.counts)

    def advance(topics: int, until: int) -> None:
        nonlocal at_topic, at_row
        while True:
            end = min(ends[at_topic], until)
            if end > at_row:
                rows(at_topic, at_row, end)
                at_row = end
            if at_topic == topics:
                return
            at_topic += 1
            topic(at_topic)

    for record in plain.others:
        advance(record.topics_before, record.rows_before)
        other(record)
    advance(len(plain.names), len(plain.rows))


def topic_values(plain: PlainBatch, topic: int) -> dict[str, str]:
    """What a TopicRecord's values are, of the topic with that number in the batch (from 1 on)."""
    return {"name": plain.names[topic - 1], "topicId": uuid_text(plain.ids[topic - 1])}


def _running(counts: list[int]) -> list[int]:
    total, found = 0, []
    for count in counts:
        total += count
        found.append(total)
    return found
