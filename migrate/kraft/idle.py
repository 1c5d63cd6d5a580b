"""NoOps of a quiet quorum, passed over many at a time.

The active controller writes a NoOpRecord twice a second (`metadata.max.idle.interval.ms`), each in a batch of its own:
a million in a week, which say nothing of the image.  Batches that equal the NoOp batch before them but for offset,
timestamps and CRC are told in columns; every CRC is still held against the batch's bytes.  `read_batches` is the
reference: the same batches, one by one (`tests/kraft/test_idle.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final

import google_crc32c
import numpy as np

from migrate.errors import DecodeError, WorldError
from migrate.kraft.files import due_offset
from migrate.protocol import records
from migrate.protocol.batches import CRC_FROM, HEADER_SIZE, LENGTH_END, Batch, Idle, batch_at, check_order
from migrate.protocol.records import decode_record

LARGEST: Final = HEADER_SIZE + 32  # bytes of a NoOp's batch: nothing larger is looked at
FIRST: Final = 64  # batches that are looked at first; eight times as many while all of them are NoOps
MOST: Final = 1 << 14
_EPOCH_AND_MAGIC: Final = slice(LENGTH_END, CRC_FROM - 4)
_CRC: Final = slice(CRC_FROM - 4, CRC_FROM)
_TIMES: Final = slice(CRC_FROM + 6, CRC_FROM + 22)  # base and newest timestamp
_SAME: Final = (slice(8, LENGTH_END), _EPOCH_AND_MAGIC, slice(CRC_FROM, _TIMES.start), slice(_TIMES.stop, None))


def read_stretches(path: Path) -> Iterator[Batch | Idle]:
    """The batches of a .log or .checkpoint, each checked; NoOps in a row as one.  Raises what `read_batches` raises."""
    due, where = due_offset(path), str(path)
    position, before = 0, None
    idle = 0  # NoOps in a row, one by one: alone between others they are not worth a look ahead
    try:
        with path.open("rb") as file:
            while (batch := batch_at(file, position, where=where)) is not None:
                before = check_order(batch, before, due)
                yield batch
                position, due = position + len(batch.raw), None
                idle = idle + 1 if _is_noop(batch) else 0
                if idle > 1:
                    for stretch in _behind(file, batch, position):
                        yield stretch
                        before = stretch.last_offset, stretch.epoch
                        position += len(batch.raw) * (stretch.last_offset - stretch.base_offset + 1)
                    idle = 0
    except OSError as error:
        raise WorldError(f"the file cannot be read: {error.strerror}", where=where) from error


def _is_noop(batch: Batch) -> bool:
    if batch.control or batch.base_offset != batch.last_offset or len(batch.raw) > LARGEST:
        return False
    try:
        ((_, _, value),) = batch.records()
        return decode_record(value)[0] is records.NO_OP
    except DecodeError:  # whoever needs the record says what is wrong with it
        return False


def _behind(file: BinaryIO, noop: Batch, position: int) -> Iterator[Idle]:
    """What equals that NoOp's batch from that position on; the first that does not ends it."""
    size, wanted, offset = len(noop.raw), FIRST, noop.last_offset + 1
    while True:
        file.seek(position)
        raw = file.read(size * wanted)
        rows = np.frombuffer(raw, np.uint8)[: len(raw) // size * size].reshape(-1, size)
        count = _alike(rows, np.frombuffer(noop.raw, np.uint8), offset)
        if count:
            crcs = rows[:count, _CRC].tobytes()
            yield Idle(offset, offset + count - 1, noop.epoch, position, noop.where, crcs)
        if count < wanted:
            return
        position, offset, wanted = position + len(raw), offset + count, min(8 * wanted, MOST)


def _alike(rows: Any, noop: Any, offset: int) -> int:
    """How many rows from the first on are that NoOp's batch at the next offsets, each with the CRC of its bytes."""
    same = _numbers(rows[:, :8], ">i8") == np.arange(offset, offset + len(rows))
    for part in _SAME:
        same &= (rows[:, part] == noop[part]).all(axis=1)
    times, table = rows[:, _TIMES] ^ noop[_TIMES], _crc_changes(len(noop))
    crc = np.full(len(rows), _numbers(noop[np.newaxis, _CRC], ">u4")[0], np.uint32)
    for at in range(times.shape[1]):
        crc ^= table[at][times[:, at]]
    same &= _numbers(rows[:, _CRC], ">u4") == crc
    return int(same.argmin()) if len(same) and not same.all() else len(same)


def _numbers(columns: Any, kind: str) -> Any:
    return np.ascontiguousarray(columns).view(kind).ravel()


@lru_cache(maxsize=4)
def _crc_changes(size: int) -> Any:
    """By byte of the timestamps and by what is flipped in it: how the CRC of a batch of that many bytes changes.

    A CRC is affine: of messages of one length, crc(a ^ b) = crc(a) ^ crc(b) ^ crc(0).
    """
    zeros = bytes(size - CRC_FROM)
    nothing = google_crc32c.value(zeros)
    table = np.zeros((_TIMES.stop - _TIMES.start, 256), np.uint32)
    for at in range(len(table)):
        for flipped in range(256):
            message = bytearray(zeros)
            message[_TIMES.start - CRC_FROM + at] = flipped
            table[at, flipped] = google_crc32c.value(bytes(message)) ^ nothing
    return table
