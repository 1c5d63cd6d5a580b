"""A ZooKeeper transaction log: entries, each with its Adler32, in a file that ZooKeeper fills with zeros ahead.

Layout (`FileTxnLog`): header; then checksum (8), length (4), header and transaction (`length` bytes), 0x42.  An entry
whose last byte is still zero was being written when the server stopped or the file was copied.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from struct import Struct
from typing import IO, Final, NamedTuple

from migrate.errors import ZookeeperFileDamaged, ZookeeperFilesMissing
from migrate.zookeeper.offline.jute import LONGEST, damaged

HEADER: Final = Struct(">4siq")
ENTRY: Final = Struct(">qi")
TXN_HEADER: Final = Struct(">qiqqi")  # session, cxid, zxid, time (ms), type
MAGIC: Final = b"ZKLG"
VERSION: Final = 2
END_OF_ENTRY: Final = 0x42
CHUNK: Final = 1 << 20
GROWS_BY: Final = 64 << 20  # zookeeper.preAllocSize, by default; done when fewer than SPARE bytes are left
SPARE: Final = 4096


class Entry(NamedTuple):
    """One entry: `body` (header and transaction) begins at `offset` in the file."""

    zxid: int
    offset: int
    body: bytes


class LogEnd(Enum):
    """How a log ends."""

    PADDED = "zeros follow the last entry, as ZooKeeper leaves it"
    UNFINISHED = "an entry was being written"
    BARE = "no zeros follow the last entry"
    CUT = "the file ends inside an entry"


class TxnLog:
    """The entries of one file, in order; when they are all read, `end` and `end_offset` tell how the file ends.

    Iterating raises ZookeeperFileDamaged where the file was changed, and ZookeeperFilesMissing where it cannot be read.
    A file that was cut is no error here: whether something is lost shows in what follows.
    """

    def __init__(self, path: Path, zxid: int) -> None:
        self.path = path
        self.zxid = zxid
        self.end = LogEnd.CUT
        self.end_offset = 0

    def damage(self, what: str, offset: int) -> ZookeeperFileDamaged:
        """An error at a place in this file."""
        return damaged(what, str(self.path), offset)

    def __iter__(self) -> Iterator[Entry]:
        try:
            with self.path.open("rb") as file:
                yield from self._entries(file)
        except OSError as error:
            raise ZookeeperFilesMissing(f"the file cannot be read ({error.strerror})", where=str(self.path)) from error

    def _entries(self, file: IO[bytes]) -> Iterator[Entry]:
        head = file.read(HEADER.size)
        if len(head) < HEADER.size:
            raise self.damage("the file ends before its header does", len(head))
        magic, version, _ = HEADER.unpack(head)
        if magic != MAGIC:
            raise self.damage("the file does not begin as ZooKeeper's transaction logs do", 0)
        if version != VERSION:
            raise self.damage(f"transaction logs of version {version} are not known", 4)
        start = before = HEADER.size
        first = True
        while (entry := self._entry(file, start, before)) is not None:
            if first and entry.zxid != self.zxid:
                raise self.damage(f"the first transaction is 0x{entry.zxid:x}, not the one in the file's name", start)
            first = False
            yield entry
            before, start = start, entry.offset + len(entry.body) + 1

    def _entry(self, file: IO[bytes], start: int, before: int) -> Entry | None:
        """The entry at `start`, or None at the end; `before` is where the last one began."""
        head = file.read(ENTRY.size)
        self.end_offset = start
        if len(head) < ENTRY.size:
            self.end = self._end_of_file(head, start, before)
            return None
        checksum, length = ENTRY.unpack(head)
        if length < TXN_HEADER.size or length > LONGEST:
            if not self._zeros_follow(file):
                raise self.damage(f"the length of an entry is {length}", start + 8)
            self.end = LogEnd.UNFINISHED if checksum or length else LogEnd.PADDED
            return None
        body = file.read(length + 1)
        if len(body) == length + 1 and body[-1] == END_OF_ENTRY:
            if zlib.adler32(memoryview(body)[:-1]) != checksum:
                raise self.damage("the checksum (Adler32) is not that of the entry", start)
            return Entry(TXN_HEADER.unpack_from(body)[2], start + ENTRY.size, body[:-1])
        if _ends_earlier(checksum, body):
            raise self.damage(f"the length of an entry is wrong: {length}", start + 8)
        if len(body) <= length:
            self.end = LogEnd.CUT
            return None
        if body[-1] or not self._zeros_follow(file):
            raise self.damage("an entry does not end as it must", start + ENTRY.size + length)
        self.end = LogEnd.UNFINISHED
        return None

    def _end_of_file(self, rest: bytes, start: int, before: int) -> LogEnd:
        """The end where fewer bytes follow than an entry's head has; a checksum's first bytes are zeros too."""
        if rest.strip(b"\0"):
            return LogEnd.CUT
        # an entry that begins before the zeros run short may end behind them: the next one brings new zeros
        end = start + len(rest)
        edges = [end - (end - offset) % GROWS_BY for offset in (0, HEADER.size)]
        return LogEnd.PADDED if any(before + SPARE < edge for edge in edges) else LogEnd.BARE

    def _zeros_follow(self, file: IO[bytes]) -> bool:
        while chunk := file.read(CHUNK):
            if chunk.count(0) != len(chunk):
                return False
        return True


def _ends_earlier(checksum: int, body: bytes) -> bool:
    """Whether a whole entry lies within `body`: then it is the length that is wrong."""
    summed, done = 1, 0
    at = body.find(END_OF_ENTRY, TXN_HEADER.size)
    while at != -1:
        summed = zlib.adler32(memoryview(body)[done:at], summed)
        if summed == checksum:
            return True
        done, at = at, body.find(END_OF_ENTRY, at + 1)
    return False
