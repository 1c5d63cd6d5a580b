"""A ZooKeeper snapshot: sessions, ACLs, every znode, and the seals behind them.

Layout (`FileSnap`, `SerializeUtils`, `DataTree.serialize`, `SnapStream`): header; sessions; ACL table; znodes, parents
before children, ended by the path "/"; a seal (Adler32 of all before it).  From 3.6 on the digest of the tree at the
end of the writing follows, from 3.9 on the zxid then, each with a seal of its own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from migrate.zookeeper.offline.content import chunks_of
from migrate.zookeeper.offline.jute import JuteReader
from migrate.zookeeper.offline.tree import OPEN_ACL, STAT, Acl, Node, Tree

LOG: Final = logging.getLogger("migrate.zookeeper")
MAGIC: Final = b"ZKSN"
VERSION: Final = 2
OPEN_ACL_NUMBER: Final = -1  # never in the table: the ACL that lets everyone do everything
SAID_EVERY: Final = 200_000  # znodes between two lines of progress
SLASH: Final = ord("/")
LENGTH: Final = Struct(">i")
TAIL: Final = Struct(">q8xq28xqq")  # number of the ACL; of the stat mzxid, ephemeralOwner, pzxid
TAIL_SIZE: Final = TAIL.size
SEAL: Final = 8 + 4 + 1
DIGEST: Final = 8 + 4 + 8
LAST: Final = 8
# bytes behind the first seal -> (a digest follows, a zxid follows): either can be switched off
TRAILERS: Final = {
    0: (False, False),
    DIGEST + SEAL: (True, False),
    LAST + SEAL: (False, True),
    DIGEST + SEAL + LAST + SEAL: (True, True),
}


@dataclass(frozen=True, slots=True)
class Digest:
    """The tree's digest as ZooKeeper stated it, after the transaction `zxid`."""

    zxid: int
    version: int
    value: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as it was read.

    `zxid` is that of its name: everything up to there is in it.  `reached` is the newest transaction that it shows a
    trace of: up to there it is fuzzy.  `settled`: it says itself that nothing came while it was written.
    """

    path: Path
    zxid: int
    tree: Tree
    sessions: int
    reached: int
    settled: bool
    digest: Digest | None


def read_snapshot(path: Path, zxid: int) -> Snapshot:
    """The whole snapshot; `zxid` is the one in its name.

    Raises:
        ZookeeperFileDamaged: it is cut short, changed, or no snapshot.
        ZookeeperFilesMissing: it cannot be read.
    """
    packed = path.suffix in (".gz", ".snappy")
    reader = JuteReader(chunks_of(path), f"{path} (uncompressed)" if packed else str(path))
    if reader.take(4) != MAGIC:
        raise reader.error("the file does not begin as ZooKeeper's snapshots do", 0)
    version = reader.int32()
    if version != VERSION:
        raise reader.error(f"snapshots of version {version} are not known", 4)
    reader.int64()  # the database's id: nobody compares it
    sessions = reader.count()
    for _ in range(sessions):
        reader.take(8 + 4)
    tree, newest = _nodes(reader, _acls(reader))
    _seal(reader)
    has_digest, has_last = _trailer(reader)
    digest = _digest(reader) if has_digest else None
    last = _last(reader) if has_last else None
    if reader.remainder(0):
        raise reader.error("bytes follow the snapshot")
    stated = [number for number in (last, digest and digest.zxid) if number]
    return Snapshot(path, zxid, tree, sessions, max([newest, *stated]), zxid in stated, digest)


def _acls(reader: JuteReader) -> dict[int, Acl]:
    return {reader.int64(): reader.acl() for _ in range(reader.count())}


def _nodes(reader: JuteReader, acls: dict[int, Acl]) -> tuple[Tree, int]:
    """All znodes, and the newest zxid that any of them names."""
    tree = Tree()
    nodes = tree.nodes
    newest = said = 0
    while True:
        newest = max(newest, _run_of_nodes(reader, acls, tree))
        if len(nodes) - said >= SAID_EVERY:
            said = len(nodes)
            LOG.info("snapshot: %d znodes", said)
        start = reader.offset
        path = reader.path()
        if path == "/":
            break
        data = reader.buffer()
        number = reader.int64()
        stat = reader.take(STAT.size)
        if path in nodes:
            raise reader.error("a znode stands twice", start)
        if path and (path.rpartition("/")[0] not in nodes or path.endswith("/")):
            raise reader.error("a znode without its parent", start)
        tree.put(path, Node(data, OPEN_ACL if number == OPEN_ACL_NUMBER else acls.get(number), stat))
        _, mzxid, _, _, _, _, _, _, pzxid = STAT.unpack(stat)
        newest = max(newest, mzxid, pzxid)
    if "" not in nodes:
        raise reader.error("the root is not in the snapshot")
    return tree, newest


def _run_of_nodes(reader: JuteReader, acls: dict[int, Acl], tree: Tree) -> int:
    """Add the plain znodes that lie whole in the reader's window; the newest zxid among them.

    Stops before whatever is not plain (the end, an owner, anything odd): field by field, it is known what that is.
    """
    raw, at = reader.window()
    last, nodes, newest = len(raw) - TAIL_SIZE, tree.nodes, 0
    length_at, tail_at, new = LENGTH.unpack_from, TAIL.unpack_from, Node.__new__
    table = {OPEN_ACL_NUMBER: OPEN_ACL, **acls}
    above: str | None = None
    try:
        while at + 4 <= last:
            (length,) = length_at(raw, at)
            start = at + 4
            end = start + length
            if length < 2 or end + 4 > last or raw[start] != SLASH or raw[end - 1] == SLASH:
                break
            (size,) = length_at(raw, end)
            tail = end + 4 + size if size > 0 else end + 4
            if size < -1 or tail > last:
                break
            number, mzxid, owner, pzxid = tail_at(raw, tail)
            path = raw[start:end].decode()
            parent = path.rpartition("/")[0]
            if owner or path in nodes or (parent != above and parent not in nodes):
                break
            above = parent
            at = tail + TAIL_SIZE
            nodes[path] = node = new(Node)  # Node() twice as fast: there are millions
            node.data = None if size < 0 else raw[end + 4 : tail]
            node.acl = table.get(number)
            node.stat = raw[tail + 8 : at]
            newest = mzxid if mzxid > newest else newest  # noqa: FURB136 - max() costs as much as a field
            newest = pzxid if pzxid > newest else newest  # noqa: FURB136
    except UnicodeDecodeError:
        LOG.debug("a path is not UTF-8")
    reader.advance(at)
    return newest


def _seal(reader: JuteReader) -> None:
    summed, start = reader.checksum(), reader.offset
    if reader.int64() != summed:
        raise reader.error("the checksum (Adler32) is not that of the content", start)
    start = reader.offset
    if reader.buffer() != b"/":
        raise reader.error("the seal does not end as it must", start)


def _trailer(reader: JuteReader) -> tuple[bool, bool]:
    left = reader.remainder(max(TRAILERS))
    if left not in TRAILERS:
        raise reader.error(f"{left} bytes follow the seal; ZooKeeper writes {', '.join(map(str, sorted(TRAILERS)))}")
    return TRAILERS[left]


def _digest(reader: JuteReader) -> Digest:
    digest = Digest(reader.int64(), reader.int32(), reader.int64())
    _seal(reader)
    return digest


def _last(reader: JuteReader) -> int:
    last = reader.int64()
    _seal(reader)
    return last
