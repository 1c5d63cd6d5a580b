"""ZooKeeper's files written by hand, in the form of any version: small, and with whatever is to be wrong in them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrate.zookeeper.offline.tree import STAT

OPEN = -1  # number of the ACL that everybody has
EPOCH = 1 << 32


def i32(number: int) -> bytes:
    """Four bytes."""
    return struct.pack(">i", number)


def i64(number: int) -> bytes:
    """Eight bytes."""
    return struct.pack(">q", number)


def buffer(data: bytes | str | None) -> bytes:
    """Bytes behind their length."""
    if data is None:
        return i32(-1)
    raw = data.encode() if isinstance(data, str) else data
    return i32(len(raw)) + raw


def acl(*entries: tuple[int, str, str]) -> bytes:
    """A vector of ACL entries."""
    return i32(len(entries)) + b"".join(i32(perms) + buffer(scheme) + buffer(name) for perms, scheme, name in entries)


EVERYBODY = acl((31, "world", "anyone"))


@dataclass(frozen=True)
class Kept:
    """A znode in a snapshot."""

    data: bytes | None = b""
    zxid: int = 1
    owner: int = 0
    acl: int = OPEN
    cversion: int = 0

    def bytes(self) -> bytes:
        """As a snapshot has it."""
        stat = STAT.pack(self.zxid, self.zxid, 0, 0, 0, self.cversion, 0, self.owner, self.zxid)
        return buffer(self.data) + i64(self.acl) + stat


def sealed(content: bytes) -> bytes:
    """The content with its seal."""
    return content + i64(zlib.adler32(content)) + buffer("/")


def snapshot(
    znodes: Mapping[str, Kept],
    *,
    acls: Mapping[int, bytes] | None = None,
    sessions: Sequence[int] = (),
    digest: tuple[int, int, int] | None = None,
    last: int | None = None,
) -> bytes:
    """A snapshot; the root comes by itself.  `digest` is (zxid, version, value), `last` the last processed zxid."""
    content = b"ZKSN" + i32(2) + i64(-1)
    content += i32(len(sessions)) + b"".join(i64(session) + i32(30_000) for session in sessions)
    table = acls or {}
    content += i32(len(table)) + b"".join(i64(number) + entries for number, entries in table.items())
    for path, znode in {"": Kept(zxid=0), **znodes}.items():
        content += buffer(path) + znode.bytes()
    content = sealed(content + buffer("/"))
    if digest is not None:
        content = sealed(content + i64(digest[0]) + i32(digest[1]) + i64(digest[2]))
    return content if last is None else sealed(content + i64(last))


@dataclass(frozen=True)
class Txn:
    """A transaction: its type, its record, and whose it is."""

    kind: int
    record: bytes = b""
    session: int = 7
    digest: bytes = b""


def create(path: str, data: bytes | None = b"", *, ephemeral: bool = False, cversion: int = 1, kind: int = 1) -> Txn:
    """A create, or with kind 15 a create2."""
    return Txn(kind, buffer(path) + buffer(data) + EVERYBODY + bytes([ephemeral]) + i32(cversion))


def delete(path: str) -> Txn:
    """A delete."""
    return Txn(2, buffer(path))


def set_data(path: str, data: bytes | None, version: int = 1) -> Txn:
    """A setData."""
    return Txn(5, buffer(path) + buffer(data) + i32(version))


def multi(*txns: Txn) -> Txn:
    """Several as one."""
    return Txn(14, i32(len(txns)) + b"".join(i32(txn.kind) + buffer(txn.record) for txn in txns))


ERROR = Txn(-1, i32(-101))
SESSION = Txn(-10, i32(30_000))


def close_session(*paths: str, named: bool = True, session: int = 7) -> Txn:
    """A closeSession; `named` False: as servers before 3.6 write it."""
    record = i32(len(paths)) + b"".join(map(buffer, paths)) if named else b""
    return Txn(-11, record, session)


def entry(zxid: int, txn: Txn, *, time: int = 1000) -> bytes:
    """One log entry."""
    body = i64(txn.session) + i32(1) + i64(zxid) + i64(time) + i32(txn.kind) + txn.record + txn.digest
    return i64(zlib.adler32(body)) + buffer(body) + b"B"


def log(zxid: int, txns: Sequence[Txn], *, padding: int = 64) -> bytes:
    """A log whose first transaction is `zxid`."""
    entries = b"".join(entry(number, txn) for number, txn in enumerate(txns, start=zxid))
    return b"ZKLG" + i32(2) + i64(0) + entries + bytes(padding)


def data_dir(folder: Path, **files: bytes) -> Path:
    """A dataDir with these files in its version-2; `snapshot_5` is snapshot.5."""
    place = folder / "version-2"
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (place / name.replace("_", ".")).write_bytes(content)
    return folder
