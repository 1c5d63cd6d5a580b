"""Jute, ZooKeeper's serialization, read from a stream: big-endian numbers, and lengths before what they measure.

Source: `org.apache.jute.BinaryInputArchive`.  A length of -1 is null.  Lengths are never believed: memory grows only
with bytes that are really there.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, Self

from migrate.errors import ZookeeperFileDamaged

LONGEST: Final = 64 << 20  # bytes of one field or log entry; jute.maxbuffer is 1 MiB unless someone raised it


def damaged(what: str, file: str, offset: int) -> ZookeeperFileDamaged:
    """The error of a place in a file; `offset` counts bytes (of the uncompressed content, where it is compressed)."""
    return ZookeeperFileDamaged(what, where=f"{file}, byte {offset}")


class JuteReader:
    """Reads fields from chunks of bytes, knows the offset, and sums what it has read (Adler32).

    Every method raises ZookeeperFileDamaged where the bytes end early or are no such field.
    """

    def __init__(self, chunks: Iterator[bytes], file: str, offset: int = 0, summed: int = 1) -> None:
        """`offset` and `summed`: where the chunks begin, and the sum of what lies before."""
        self.file = file
        self._chunks = chunks
        self._buffer = b""
        self._at = 0
        self._base = offset
        self._sum = summed
        self._summed = 0

    @classmethod
    def of(cls, body: bytes, file: str, offset: int) -> Self:
        """A reader of bytes that are all here; `offset` is where they begin in the file."""
        reader = cls(iter(()), file, offset)
        reader._buffer = body
        return reader

    @property
    def offset(self) -> int:
        return self._base + self._at

    @property
    def left(self) -> int:
        """Bytes that are here and not yet read (all there are, for `of`)."""
        return len(self._buffer) - self._at

    def error(self, what: str, offset: int | None = None) -> ZookeeperFileDamaged:
        return damaged(what, self.file, self.offset if offset is None else offset)

    def take(self, count: int) -> bytes:
        if count > len(self._buffer) - self._at:
            self._fill(count)
        start = self._at
        self._at = start + count
        return self._buffer[start : self._at]

    def window(self) -> tuple[bytes, int]:
        """The bytes that are here, and where among them the next field begins; `advance` says how far they were read.

        For loops over many small records: what does not lie in the window as a whole is read field by field.
        """
        return self._buffer, self._at

    def advance(self, at: int) -> None:
        self._at = at

    def _fill(self, count: int) -> None:
        self.checksum()
        parts = [self._buffer[self._at :]]
        have = len(parts[0])
        while have < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                raise self.error(f"the file ends where {count - have} more bytes must follow", self.offset + have)
            parts.append(chunk)
            have += len(chunk)
        self._base += self._at
        self._buffer = b"".join(parts)
        self._at = self._summed = 0

    def checksum(self) -> int:
        self._sum = zlib.adler32(memoryview(self._buffer)[self._summed : self._at], self._sum)
        self._summed = self._at
        return self._sum

    def remainder(self, limit: int) -> int:
        """How many bytes are left to the end; an error if there are more than `limit`."""
        while self.left <= limit:
            chunk = next(self._chunks, None)
            if chunk is None:
                return self.left
            self.checksum()
            self._buffer, self._base = self._buffer[self._at :] + chunk, self._base + self._at
            self._at = self._summed = 0
        raise self.error("bytes follow that belong to nothing")

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def peek32(self) -> int:
        number = self.int32()
        self._at -= 4
        return number

    def int64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def flag(self) -> bool:
        value = self.take(1)
        if value not in (b"\0", b"\1"):
            raise self.error(f"a boolean is {value[0]}", self.offset - 1)
        return value == b"\1"

    def buffer(self) -> bytes | None:
        start = self.offset
        length = self.int32()
        if length == -1:
            return None
        if not 0 <= length <= LONGEST:
            raise self.error(f"a length is {length}", start)
        return self.take(length)

    def text(self) -> str:
        """A string; lone surrogates, which Java writes, are kept."""
        start = self.offset
        raw = self.buffer()
        try:
            return "" if raw is None else raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.error("a string is not UTF-8", start) from error

    def path(self) -> str:
        """An absolute path; "" is the root."""
        start = self.offset
        raw = self.buffer()
        try:
            path = None if raw is None else raw.decode()
        except UnicodeDecodeError as error:
            raise self.error("a path is not UTF-8", start) from error
        if path is None or (path and not path.startswith("/")):
            raise self.error("a path does not begin with /", start)
        return path

    def count(self) -> int:
        start = self.offset
        count = self.int32()
        if count < -1:
            raise self.error(f"a count is {count}", start)
        return max(count, 0)

    def acl(self) -> tuple[tuple[int, str, str], ...]:
        return tuple((self.int32(), self.text(), self.text()) for _ in range(self.count()))
