"""A ZooKeeper transaction log: entries, each with its Adler32, in a file that ZooKeeper fills with zeros ahead.

Layout (`FileTxnLog`): header; then checksum (8), length (4), header and transaction (`length` bytes), 0x42.  An entry
whose last byte is still zero was being written when the server stopped or the file was copied.  What an entry says is
decoded as `SerializeUtils.deserializeTxn`, `DataTree.processTxn` and zookeeper.jute (module txn) have it: a transaction
that failed, and one that only opens a session, changes nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from enum import Enum, IntEnum
from pathlib import Path
from struct import Struct
from typing import IO, Final, NamedTuple

from migrate.errors import ZookeeperFileDamaged, ZookeeperFilesMissing
from migrate.zookeeper.offline.jute import LONGEST, JuteReader, damaged
from migrate.zookeeper.offline.tree import (
    CONTAINER_OWNER,
    DIGEST_VERSION,
    TTL_BITS,
    TTL_OWNER,
    Change,
    CloseSession,
    Create,
    Delete,
    SetAcl,
    SetData,
)

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


class Kind(IntEnum):
    """Types of transactions (`ZooDefs.OpCode`)."""

    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    CREATE_SESSION = -10
    CLOSE_SESSION = -11
    ERROR = -1


DIGEST: Final = 4 + 8
Changes = tuple[Change, ...]


class Transaction(NamedTuple):
    """One transaction; `digest` is (version, value) of the tree after it, from 3.6 on."""

    zxid: int
    time: int
    changes: Changes
    digest: tuple[int, int] | None


def decode(entry: Entry, file: str) -> Transaction:
    """The entry's transaction; raises ZookeeperFileDamaged."""
    session, _, zxid, time, kind = TXN_HEADER.unpack_from(entry.body)
    reader = JuteReader.of(entry.body, file, entry.offset)
    reader.take(TXN_HEADER.size)
    if kind not in KNOWN or kind == Kind.CHECK:
        raise reader.error(f"transactions of type {kind} are not known")
    changes = _multi(reader, session) if kind == Kind.MULTI else _changes(kind, reader, session)
    digest = (reader.int32(), reader.int64()) if reader.left == DIGEST else None
    if reader.left:
        raise reader.error("an entry holds more bytes than its transaction")
    return Transaction(zxid, time, changes, digest)


def _multi(reader: JuteReader, session: int) -> Changes:
    """All of them, or none where one failed."""
    parts: list[tuple[int, bytes, int]] = []
    for _ in range(reader.count()):
        kind = reader.int32()
        data = reader.buffer() or b""
        parts.append((kind, data, reader.offset - len(data)))
    if any(kind == Kind.ERROR for kind, _, _ in parts):
        return ()
    changes: list[Change] = []
    for kind, data, offset in parts:
        part = JuteReader.of(data, reader.file, offset)
        if kind not in IN_MULTI:
            raise part.error(f"operations of type {kind} are not known in a multi")
        changes += _changes(kind, part, session)
        if part.left:
            raise part.error("an operation of a multi holds more bytes than it needs")
    return tuple(changes)


def _changes(kind: int, reader: JuteReader, session: int) -> Changes:
    match kind:
        case Kind.CREATE | Kind.CREATE2:
            path, data, acl = reader.path(), reader.buffer(), reader.acl()
            owner = session if reader.flag() else 0
            parent_cversion = reader.int32() if reader.left else -1  # absent in what servers before 3.4 wrote
            return (Create(path, data, acl, owner, parent_cversion, mends=kind == Kind.CREATE),)
        case Kind.CREATE_CONTAINER:
            return (Create(reader.path(), reader.buffer(), reader.acl(), CONTAINER_OWNER, reader.int32(), mends=False),)
        case Kind.CREATE_TTL:
            path, data, acl, parent_cversion = reader.path(), reader.buffer(), reader.acl(), reader.int32()
            start = reader.offset
            lifetime = reader.int64()
            if not 0 < lifetime < 1 << TTL_BITS:
                raise reader.error(f"a time to live is {lifetime} ms", start)
            return (Create(path, data, acl, TTL_OWNER | lifetime, parent_cversion, mends=False),)
        case Kind.DELETE | Kind.DELETE_CONTAINER:
            return (Delete(reader.path()),)
        case Kind.SET_DATA | Kind.RECONFIG:
            return (SetData(reader.path(), reader.buffer(), reader.int32()),)
        case Kind.SET_ACL:
            return (SetAcl(reader.path(), reader.acl(), reader.int32()),)
        case Kind.CLOSE_SESSION:
            # from 3.6 on the ephemeral znodes may be named (zookeeper.closeSessionTxn.enabled); a digest alone is no
            # list: as one its version would be the number of paths, for which 8 bytes do not suffice
            if reader.left == 0 or (reader.left == DIGEST and reader.peek32() == DIGEST_VERSION):
                return (CloseSession(session, ()),)
            return (CloseSession(session, tuple(reader.path() for _ in range(reader.count()))),)
        case Kind.CHECK:
            reader.path()
    reader.int32()  # of a check the version, of an error its code, of a session its timeout
    return ()


KNOWN: Final = frozenset(Kind)
NOT_IN_MULTI: Final = {Kind.SET_ACL, Kind.RECONFIG, Kind.MULTI, Kind.CREATE_SESSION, Kind.CLOSE_SESSION, Kind.ERROR}
IN_MULTI: Final = KNOWN - NOT_IN_MULTI
