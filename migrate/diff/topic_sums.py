"""Sums of fingerprints by topic, of rows of partitions that lie in Arrow: which topics need the comparison of fields.

A row's fingerprint is a hash of all that the comparison compares (`migrate.diff.tables.PARTITION_FIELDS`) and of the
partition's number, sets as sets; a topic's is the sum of its rows', in two lanes of 64 bits.  So two tables have the
same sum where they have the same rows, in whatever order and in whatever files.  The sums of the numbers and of their
squares say whether they are 0 to n - 1, each once: where not, a topic is not called equal by its sum.

Runs in Spark's Python workers and in this process alike; nothing here imports pyspark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrate.model.fingerprints import ROW, TEXT, WRAP, Fingerprint, hashed

KERNEL: Final = "row_prints"
LEAST: Final = 20_000  # rows; a quarter, once it is compiled
HIGHEST: Final = 1 << 20  # a partition's number above it is no number of Kafka's, and its square might not fit
NUMBERS: Final = ("partition", "leader", "leader_epoch", "recovery_state")
LISTS: Final = ("replicas", "isr", "adding", "removing")
SETS: Final = frozenset({"isr", "adding", "removing"})
COMPARED: Final = ("topic", "topic_id", *NUMBERS, *LISTS)
# a topic in one batch: `side` 1 (ZooKeeper) or -1 (KRaft); lanes in halves of 32 bits, for they are added elsewhere
SUMS: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("side", pa.int64()),
        *((name, pa.int64()) for name in ("rows", "a_low", "a_high", "b_low", "b_high", "numbers", "squares", "odd")),
    ]
)


def text_print(text: str) -> Fingerprint:
    """Two numbers for a text."""
    return hashed(TEXT, text.encode())


def row_print(row: dict[str, Any]) -> Fingerprint:
    """The fingerprint of one partition."""
    values = [*text_print(row["topic_id"]), *(row[name] for name in NUMBERS)]
    for name in LISTS:
        members = sorted(set(row[name])) if name in SETS else row[name]
        values += [len(members), *members]
    return hashed(ROW, values)


def topic_sums(batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
    """One row a topic of the batch, as `SUMS`.

    A batch with a null, or with a number that no partition has, is `odd`: all of its topics need the comparison.
    """
    batch = _whole(batch)
    if _is_odd(batch):
        return _odd(batch, side)
    if _compiled(len(batch)):
        return _by_kernel(batch, side)
    return by_reference(batch, side)


def row_prints(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """Two numbers for each row; None, and none counts: there is a null, or a number that no partition has."""
    batch = _whole(batch)
    if _is_odd(batch):
        return None
    if not _compiled(len(batch)):
        return np.array([row_print(row) for row in batch.to_pylist()], np.uint64).reshape(-1, 2)
    prints: np.ndarray[Any, np.dtype[np.uint64]] = _hashed(batch)[1]
    return prints


def _compiled(rows: int) -> bool:
    """May the compiled loop be used for a batch with so many rows?"""
    try:
        from migrate.accelerated.choice import ready
    except ImportError:  # the optional part is not there
        return False
    return ready(KERNEL, rows, LEAST)


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What is compared, names as dictionaries; a row that belongs to nothing is refused."""
    if batch.column("topic").null_count or batch.column("partition").null_count:
        raise ValueError("a partition without topic, or without number")
    return pa.record_batch([_coded(batch, name) for name in COMPARED], names=list(COMPARED))


def _is_odd(batch: pa.RecordBatch) -> bool:
    """Is there a null, or a number that no partition has?"""
    bounds = pc.min_max(batch.column("partition")).as_py() if len(batch) else {"min": 0, "max": 0}
    return any(map(_has_null, batch.columns)) or bounds["min"] < 0 or bounds["max"] > HIGHEST


def by_reference(batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
    """The same in plain Python."""
    found: dict[str, list[int]] = {}
    for row in batch.to_pylist():
        a, b = row_print(row)
        sums = found.setdefault(row["topic"], [0] * 5)
        number = row["partition"]
        for at, value in enumerate((1, a, b, number, number * number)):
            sums[at] += value
    columns = list(zip(*found.values(), strict=True)) if found else [()] * 5
    rows, lane_a, lane_b, numbers, squares = (np.array([v & WRAP for v in column], np.uint64) for column in columns)
    names = pa.array(list(found), pa.string())
    return _table(names, side, np.stack([lane_a, lane_b], axis=1), [rows, numbers, squares])


def _by_kernel(batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
    from migrate.accelerated.choice import kernels
    from migrate.accelerated.row_print_columns import Sums

    rows, prints = _hashed(batch)
    names = batch.column("topic").dictionary
    count = len(names)
    sums = Sums(np.zeros((count, 2), np.uint64), *(np.zeros(count, np.int64) for _ in range(3)))
    kernels(KERNEL).sum_rows(rows, prints, sums)
    met = np.flatnonzero(sums.rows)
    return _table(
        names.take(pa.array(met)), side, sums.lanes[met], [sums.rows[met], sums.numbers[met], sums.squares[met]]
    )


def _hashed(batch: pa.RecordBatch) -> tuple[Any, Any]:
    """The rows as the kernel wants them, and two numbers for each."""
    from migrate.accelerated.choice import kernels
    from migrate.accelerated.row_print_columns import Lists, Rows, Texts

    kernel = kernels(KERNEL)
    topic, topic_id = batch.column("topic"), batch.column("topic_id")
    ids = np.zeros((len(topic_id.dictionary), 2), np.uint64)
    kernel.hash_texts(Texts(*_text_buffers(topic_id.dictionary)), ids)
    lists: dict[str, Any] = {name: Lists(*_list_buffers(batch.column(name))) for name in LISTS}
    longest = max((int(np.diff(lists[name].offsets).max(initial=0)) for name in SETS), default=0)
    codes = (_plain(topic.indices), _plain(topic_id.indices))
    rows = Rows(*codes, *(_plain(batch.column(name)) for name in NUMBERS), **lists)
    prints = np.zeros((len(batch), 2), np.uint64)
    kernel.hash_rows(rows, ids, np.zeros(longest + 1, np.int32), prints)
    return rows, prints


def _table(names: pa.Array, side: int, lanes: Any, parts: list[Any]) -> pa.RecordBatch:
    """As `SUMS`; numbers and squares of one side are enough, since they are asked where the sides agree."""
    rows, numbers, squares = (part.astype(np.int64) for part in parts)
    seen = int(side > 0)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    halves = [(part.astype(np.int64) * side) for lane in lanes.T for part in (lane & mask, lane >> half)]
    columns = [names, np.full(len(names), side), rows, *halves, numbers * seen, squares * seen, np.zeros_like(rows)]
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, SUMS.types, strict=True)], SUMS)


def _odd(batch: pa.RecordBatch, side: int) -> pa.RecordBatch:
    """Every topic of the batch with its number of rows, and marked."""
    counted = batch.column("topic").dictionary_decode().value_counts()
    rows = np.asarray(counted.field("counts"))
    zero = np.zeros_like(rows)
    columns = [counted.field("values"), np.full(len(rows), side), rows, *([zero] * 6), np.ones_like(rows)]
    return pa.record_batch([pa.array(column, kind) for column, kind in zip(columns, SUMS.types, strict=True)], SUMS)


# -- Arrow's buffers -------------------------------------------------------------------------------------------------
def _coded(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column; texts as a dictionary."""
    column = batch.column(name)
    if name in {"topic", "topic_id"} and not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column


def _has_null(column: pa.Array) -> bool:
    if column.null_count:
        return True
    if pa.types.is_dictionary(column.type):
        return bool(column.dictionary.null_count)
    return bool(column.values.null_count) if pa.types.is_list(column.type) else False


def _plain(column: pa.Array) -> Any:
    """A column of numbers, as numpy sees its buffer."""
    return _sealed(np.ascontiguousarray(column.to_numpy(zero_copy_only=True), np.int32))


def _sealed(values: Any) -> Any:
    """Read-only, as the kernel's types say: some of Arrow's buffers are, others are not."""
    view = values.view()
    view.flags.writeable = False
    return view


def _list_buffers(column: pa.ListArray) -> tuple[Any, Any]:
    return _plain(column.offsets), _plain(column.values)


def _text_buffers(texts: pa.StringArray) -> tuple[Any, Any]:
    _, offsets, raw = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1] if offsets else None
    if bounds is None or raw is None:
        return _sealed(np.zeros(len(texts) + 1, np.int32)), _sealed(np.zeros(0, np.uint8))
    return _sealed(bounds), _sealed(np.frombuffer(raw, np.uint8))


# -- some rows -------------------------------------------------------------------------------------------------------
def topics_of(batches: Iterable[pa.RecordBatch], wanted: pa.Array) -> Iterable[pa.RecordBatch]:
    """The rows of these topics; each text of a batch is looked for once."""
    for batch in batches:
        coded = _coded(batch, "topic")
        each = pc.is_in(coded.dictionary, value_set=wanted).to_numpy(zero_copy_only=False)
        found = each[np.asarray(coded.indices)]
        if found.any():
            yield batch.filter(pa.array(found))
