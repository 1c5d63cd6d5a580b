"""Snappy, as snappy-java's `SnappyOutputStream` writes it: a head, then blocks, each behind its length.

Source: github.com/google/snappy, format_description.txt; `org.xerial.snappy.SnappyOutputStream`.  Only reading, and
only what ZooKeeper needs: no library of ours has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

MAGIC: Final = b"\x82SNAPPY\x00"
HEAD: Final = len(MAGIC) + 8  # version, least compatible version
LARGEST_BLOCK: Final = 16 << 20  # snappy-java's blocks are 32 KiB by default


class SnappyError(ValueError):
    """The bytes are not Snappy; `offset` is where that was seen, within what was given."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def blocks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The content, block by block; `read(n)` gives up to n bytes of the file, fewer only at its end."""
    head = read(HEAD)
    if len(head) < HEAD or not head.startswith(MAGIC):
        raise SnappyError("the file does not begin as snappy-java's files do", 0)
    if head[-8:] != b"\0\0\0\1\0\0\0\1":
        raise SnappyError("an unknown version of snappy-java's format", len(MAGIC))
    offset = HEAD
    while prefix := read(4):
        size = int.from_bytes(prefix, "big")
        if len(prefix) < 4 or not 0 < size <= LARGEST_BLOCK:
            raise SnappyError("the length of a block is wrong or cut short", offset)
        block = read(size)
        if len(block) < size:
            raise SnappyError(f"the file ends {size - len(block)} bytes before a block does", offset + 4 + len(block))
        try:
            yield decompress(block)
        except SnappyError as error:
            raise SnappyError(str(error), offset + 4 + error.offset) from error
        offset += 4 + size


def decompress(block: bytes) -> bytes:
    """One block's content; raises SnappyError."""
    size, at = _uncompressed_size(block)
    out = bytearray()
    while at < len(block):
        start, tag = at, block[at]
        at += 1
        length = (tag >> 2) + 1
        if tag & 3 == 0:  # a literal; lengths over 60 stand in the 1 to 4 bytes after the tag
            if length > 60:
                extra = length - 60
                length = _number(block, at, extra) + 1
                at += extra
            if length > len(block) - at:
                raise SnappyError("a literal is longer than its block", start)
            out += block[at : at + length]
            at += length
        else:  # a copy of what was written `distance` bytes ago
            if tag & 3 == 1:
                length, distance = ((tag >> 2) & 7) + 4, (tag >> 5 << 8) | _number(block, at, 1)
                at += 1
            else:
                width = 2 if tag & 3 == 2 else 4
                distance = _number(block, at, width)
                at += width
            _copy(out, length, distance, start)
        if len(out) > size:
            raise SnappyError("a block holds more than it says", start)
    if len(out) != size:
        raise SnappyError("a block holds less than it says", at)
    return bytes(out)


def _uncompressed_size(block: bytes) -> tuple[int, int]:
    size = 0
    for at, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            if size > LARGEST_BLOCK:
                raise SnappyError("a block says that it is larger than any is", 0)
            return size, at + 1
    raise SnappyError("the size of a block is cut short", 0)


def _number(block: bytes, at: int, width: int) -> int:
    if at + width > len(block):
        raise SnappyError("a block ends inside an element", at)
    return int.from_bytes(block[at : at + width], "little")


def _copy(out: bytearray, length: int, distance: int, at: int) -> None:
    if not 0 < distance <= len(out):
        raise SnappyError("a copy reaches before the block's beginning", at)
    start = len(out) - distance
    piece = bytes(out[start : start + length])
    while len(piece) < length:  # it overlaps itself: a run
        piece += piece
    out += piece[:length]
