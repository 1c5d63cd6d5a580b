"""Record batches of magic 2, verified before use (`DefaultRecordBatch.java`, `DefaultRecord.java`).

The CRC covers all bytes from the attributes on.  Other rules cover base offset, length, epoch and magic: batches follow
each other without a gap, epochs never decrease, and the length must give a batch whose CRC is right.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import google_crc32c

from migrate.errors import BatchCrcError, BatchCutError, BatchError, DecodeError
from migrate.model import limits
from migrate.protocol.primitives import read_varint, read_varlong

HEADER: Final = packing.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
LENGTH_END: Final = 12  # base offset and batch length, which the length does not count
CRC_FROM: Final = 21
NULL: Final = 1  # the varint of -1
MAGIC: Final = 2
COMPRESSION: Final = 0x07
CONTROL: Final = 0x20

Record = tuple[int, bytes | None, bytes | None]  # offset, key, value


@dataclass(frozen=True, slots=True)
class Batch:
    """A verified batch: offsets are inclusive, `position` is where it begins in its file or response."""

    base_offset: int
    last_offset: int
    epoch: int
    control: bool
    position: int
    where: str
    timestamp: int
    raw: bytes

    @property
    def place(self) -> str:
        return _place(self.where, self.position)

    def records(self) -> Iterator[Record]:
        """Yield (offset, key, value) of each record.  Raises BatchError where a record contradicts its batch."""
        raw, end, offset = self.raw, len(self.raw), HEADER_SIZE
        count = self.last_offset - self.base_offset + 1
        try:
            for index in range(count):
                key, value, offset = _record(raw, offset, index)
                yield self.base_offset + index, key, value
        except IndexError as error:
            raise BatchError("the records run past the end of their batch", where=self.place) from error
        except DecodeError as error:
            raise BatchError(error.what, where=self.place) from error
        if offset != end:
            raise BatchError(f"{end - offset} bytes follow the last record of a batch", where=self.place)


@dataclass(frozen=True, slots=True)
class Idle:
    """Consecutive NoOps of one epoch, one per batch; `crcs` has the four bytes of each batch's CRC, as in the log."""

    base_offset: int
    last_offset: int
    epoch: int
    position: int
    where: str
    crcs: bytes

    @property
    def place(self) -> str:
        return _place(self.where, self.position)


def _record(raw: bytes, offset: int, index: int) -> tuple[bytes | None, bytes | None, int]:
    """Return key and value of the batch's record of that index, and the offset after it."""
    length, start = read_varint(raw, offset)
    end = start + length
    if length < 0 or end > len(raw):
        raise DecodeError(f"a record says {length} bytes; {len(raw) - start} are left in its batch")
    offset = start + 1  # attributes: unused
    if raw[offset] < 0x80:  # these three are one byte nearly always
        offset += 1
    else:
        _, offset = read_varlong(raw, offset)
    delta, offset = read_varint(raw, offset)
    if delta != index:
        raise DecodeError(f"record {index} says the offset delta {delta}")
    if raw[offset] == NULL:
        key, offset = None, offset + 1
    else:
        key, offset = _nullable(raw, offset, end)
    value, offset = _nullable(raw, offset, end)
    headers, offset = read_varint(raw, offset)
    if headers:
        raise DecodeError(f"a record with {headers} headers: the metadata log has none")
    if offset != end:
        raise DecodeError(f"a record of {length} bytes has {offset - start} bytes of fields")
    return key, value, offset


def _nullable(raw: bytes, offset: int, end: int) -> tuple[bytes | None, int]:
    length, start = read_varint(raw, offset)
    if length < 0:
        return None, start
    if start + length > end:
        raise DecodeError(f"a key or value says {length} bytes; {end - start} are left in its record")
    return raw[start : start + length], start + length


def parse(raw: bytes, *, where: str, position: int) -> Batch:
    """Read one batch from exactly its bytes.  Raises BatchError and its subclasses."""
    if len(raw) < HEADER_SIZE:
        raise BatchCutError(
            f"a batch header of {HEADER_SIZE} bytes is cut after {len(raw)}", where=_place(where, position)
        )
    base, _, epoch, magic, crc, attributes, last_delta, _, newest, _, _, _, count = HEADER.unpack_from(raw)
    if magic != MAGIC:
        what = f"a batch of magic {magic}; the metadata log has magic {MAGIC} only"
        raise BatchError(what, where=_place(where, position))
    found = google_crc32c.value(raw[CRC_FROM:])
    if found != crc:
        what = f"a batch says the CRC-32C {crc:#010x}, its bytes have {found:#010x}"
        raise BatchCrcError(what, where=_place(where, position))
    if attributes & COMPRESSION:
        what = f"a compressed batch (codec {attributes & COMPRESSION}); the metadata log is never compressed"
        raise BatchError(what, where=_place(where, position))
    if base < 0 or epoch < 0:
        raise BatchError(f"a batch with base offset {base} and epoch {epoch}", where=_place(where, position))
    if count < 1 or last_delta != count - 1:
        what = f"a batch of {count} records whose last offset delta is {last_delta}"
        raise BatchError(what, where=_place(where, position))
    return Batch(base, base + last_delta, epoch, bool(attributes & CONTROL), position, where, newest, raw)


def _place(where: str, position: int) -> str:
    return f"{where} at position {position}"


def _size(head: bytes, where: str, position: int) -> int:
    """The bytes of a whole batch, by what its first ones say."""
    length = int.from_bytes(head[8:LENGTH_END], "big", signed=True)
    if not HEADER_SIZE - LENGTH_END <= length <= limits.most("batch"):
        raise BatchError(f"a batch says the length {length}", where=_place(where, position))
    return LENGTH_END + length


def check_order(batch: Batch | Idle, before: tuple[int, int] | None, due: int | None = None) -> tuple[int, int]:
    """Verify that the batch follows one with that last offset and epoch, and return its own.

    `due` is the base offset in a segment's name.  Raises BatchError.
    """
    if due is not None and batch.base_offset != due:
        what = f"a segment's first batch has the offset {batch.base_offset}; its name says {due}"
        raise BatchError(what, where=batch.place)
    if before is not None and batch.base_offset != before[0] + 1:
        what = f"a batch begins at offset {batch.base_offset}; {before[0] + 1} was due"
        raise BatchError(what, where=batch.place)
    if before is not None and batch.epoch < before[1]:
        what = f"a batch of epoch {batch.epoch} follows one of epoch {before[1]}"
        raise BatchError(what, where=batch.place)
    return batch.last_offset, batch.epoch


def split(raw: bytes, *, where: str, partial_tail: bool = False) -> Iterator[Batch]:
    """Yield the batches of these bytes in order, each verified.

    `partial_tail` allows a last batch that is cut at the size limit of a Fetch response.  It is left out, unless it is
    the only one.  Raises BatchCutError otherwise.
    """
    position, before = 0, None
    while position < len(raw):
        left = len(raw) - position
        size = HEADER_SIZE
        if left >= LENGTH_END:
            size = _size(raw[position : position + LENGTH_END], where, position)
        if left < size:
            if partial_tail and before is not None:
                return
            raise BatchCutError(f"a batch of {size} bytes is cut after {left}", where=_place(where, position))
        batch = parse(raw[position : position + size], where=where, position=position)
        before = check_order(batch, before)
        yield batch
        position += size


def stream(file: BinaryIO, *, where: str, due: int | None = None) -> Iterator[Batch]:
    """Yield the batches of an open, seekable file from its beginning, with one in memory at a time.

    `due` is the base offset of the first one.
    """
    position, before = 0, None
    while (batch := batch_at(file, position, where=where)) is not None:
        before = check_order(batch, before, due)
        yield batch
        position, due = position + len(batch.raw), None


def batch_at(file: BinaryIO, position: int, *, where: str) -> Batch | None:
    """Return the batch that begins at that position of an open file; None at its end."""
    file.seek(position)
    head = file.read(LENGTH_END)
    if not head:
        return None
    if len(head) < LENGTH_END:
        raise BatchCutError(f"a batch header is cut after {len(head)} bytes", where=_place(where, position))
    size = _size(head, where, position)
    file.seek(position)
    raw = file.read(size)  # from its beginning again: large batches are not copied together
    if len(raw) < size:
        raise BatchCutError(f"a batch of {size} bytes is cut after {len(raw)}", where=_place(where, position))
    return parse(raw, where=where, position=position)
