"""What a log entry says: the changes of one transaction, decoded.

Source: `SerializeUtils.deserializeTxn`, `DataTree.processTxn`, zookeeper.jute (module txn).  A transaction that failed,
and one that only opens a session, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from migrate.zookeeper.offline.jute import JuteReader
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
from migrate.zookeeper.offline.txnlog import TXN_HEADER, Entry

CREATE: Final = 1
DELETE: Final = 2
SET_DATA: Final = 5
SET_ACL: Final = 7
CHECK: Final = 13
MULTI: Final = 14
CREATE2: Final = 15
RECONFIG: Final = 16
CREATE_CONTAINER: Final = 19
DELETE_CONTAINER: Final = 20
CREATE_TTL: Final = 21
CREATE_SESSION: Final = -10
CLOSE_SESSION: Final = -11
ERROR: Final = -1

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
    changes: Changes
    if kind == MULTI:
        changes = _multi(reader, session)
    elif kind in DECODERS and kind != CHECK:
        changes = DECODERS[kind](reader, session)
    else:
        raise reader.error(f"transactions of type {kind} are not known")
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
    if any(kind == ERROR for kind, _, _ in parts):
        return ()
    changes: list[Change] = []
    for kind, data, offset in parts:
        part = JuteReader.of(data, reader.file, offset)
        if kind not in IN_MULTI:
            raise part.error(f"operations of type {kind} are not known in a multi")
        changes += DECODERS[kind](part, session)
        if part.left:
            raise part.error("an operation of a multi holds more bytes than it needs")
    return tuple(changes)


def _create(reader: JuteReader, session: int) -> Changes:
    return (_created(reader, session, mends=True),)


def _create2(reader: JuteReader, session: int) -> Changes:
    return (_created(reader, session, mends=False),)


def _created(reader: JuteReader, session: int, *, mends: bool) -> Create:
    path, data, acl = reader.path(), reader.buffer(), reader.acl()
    owner = session if reader.flag() else 0
    parent_cversion = reader.int32() if reader.left else -1  # absent in what servers before 3.4 wrote
    return Create(path, data, acl, owner, parent_cversion, mends)


def _create_container(reader: JuteReader, _session: int) -> Changes:
    return (Create(reader.path(), reader.buffer(), reader.acl(), CONTAINER_OWNER, reader.int32(), mends=False),)


def _create_ttl(reader: JuteReader, _session: int) -> Changes:
    path, data, acl, parent_cversion = reader.path(), reader.buffer(), reader.acl(), reader.int32()
    start = reader.offset
    lifetime = reader.int64()
    if not 0 < lifetime < 1 << TTL_BITS:
        raise reader.error(f"a time to live is {lifetime} ms", start)
    return (Create(path, data, acl, TTL_OWNER | lifetime, parent_cversion, mends=False),)


def _delete(reader: JuteReader, _session: int) -> Changes:
    return (Delete(reader.path()),)


def _set_data(reader: JuteReader, _session: int) -> Changes:
    return (SetData(reader.path(), reader.buffer(), reader.int32()),)


def _set_acl(reader: JuteReader, _session: int) -> Changes:
    return (SetAcl(reader.path(), reader.acl(), reader.int32()),)


def _check(reader: JuteReader, _session: int) -> Changes:
    reader.path()
    reader.int32()
    return ()


def _number(reader: JuteReader, _session: int) -> Changes:
    """An error's code, or a session's timeout."""
    reader.int32()
    return ()


def _close_session(reader: JuteReader, session: int) -> Changes:
    """From 3.6 on the ephemeral znodes may be named (zookeeper.closeSessionTxn.enabled); a digest alone is no list.

    As a list the digest's version would be the number of paths, for which 8 bytes do not suffice.
    """
    if reader.left == 0 or (reader.left == DIGEST and reader.peek32() == DIGEST_VERSION):
        return (CloseSession(session, ()),)
    return (CloseSession(session, tuple(reader.path() for _ in range(reader.count()))),)


DECODERS: Final[dict[int, Callable[[JuteReader, int], Changes]]] = {
    CREATE: _create,
    CREATE2: _create2,
    CREATE_CONTAINER: _create_container,
    CREATE_TTL: _create_ttl,
    DELETE: _delete,
    DELETE_CONTAINER: _delete,
    SET_DATA: _set_data,
    RECONFIG: _set_data,
    SET_ACL: _set_acl,
    CHECK: _check,
    CREATE_SESSION: _number,
    CLOSE_SESSION: _close_session,
    ERROR: _number,
}
IN_MULTI: Final = frozenset({CREATE, CREATE2, CREATE_CONTAINER, CREATE_TTL, DELETE, DELETE_CONTAINER, SET_DATA, CHECK})
