"""The tree in memory: read znode by znode, changed as ZooKeeper's DataTree does it, with the digest that it keeps.

Source: `DataTree`, `NodeHashMapImpl`, `DigestCalculator` (version 2), `AdHash` of ZooKeeper 3.9.  Changes that cannot
be made (the znode is not there, or is already there) are passed over: while a snapshot is written the tree goes on, so
a change may be in the snapshot already.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from migrate.zookeeper.layout import Znode
from migrate.zookeeper.offline.jute import JuteReader

Acl = tuple[tuple[int, str, str], ...]

STAT: Final = Struct(">qqqqiiiqq")  # czxid mzxid ctime mtime version cversion aversion ephemeralOwner pzxid
NEW_STAT: Final = bytes(STAT.size)
DIGEST_VERSION: Final = 2
OWN: Final = "/zookeeper/"  # changed by each server for itself, so no part of the digest
OPEN_ACL: Final[Acl] = ((31, "world", "anyone"),)
READ_ACL: Final[Acl] = ((1, "world", "anyone"),)
WRAP: Final = (1 << 64) - 1
# owners that are no sessions (`EphemeralType`): of containers, and of znodes with a time to live (its lower 40 bits;
# in a session's number the bits between hold a part of a clock)
CONTAINER_OWNER: Final = -(1 << 63)
TTL_OWNER: Final = -(1 << 56)
TTL_BITS: Final = 40


class Create(NamedTuple):
    """A znode comes to be.  `parent_cversion` -1: one more than it was.

    `mends`: where the znode is already there the parent is still touched (so ZooKeeper does for one of its requests).
    """

    path: str
    data: bytes | None
    acl: Acl
    owner: int
    parent_cversion: int
    mends: bool


class Delete(NamedTuple):
    path: str


class SetData(NamedTuple):
    """A znode's data changes; `version` is the new one."""

    path: str
    data: bytes | None
    version: int


class SetAcl(NamedTuple):
    """A znode's ACL changes; `version` is the new aversion."""

    path: str
    acl: Acl
    version: int


class CloseSession(NamedTuple):
    """A session ends, and its ephemeral znodes with it; `paths` are those that the transaction names."""

    session: int
    paths: tuple[str, ...]


Change = Create | Delete | SetData | SetAcl | CloseSession


@dataclass(slots=True)
class Node:
    """One znode; `stat` is packed as `STAT`.  `acl` None: the snapshot names an ACL that it does not hold."""

    data: bytes | None
    acl: Acl | None
    stat: bytes

    def znode(self) -> Znode:
        czxid, mzxid, _, _, version, _, _, owner, _ = STAT.unpack(self.stat)
        timed = owner >> TTL_BITS == TTL_OWNER >> TTL_BITS
        return Znode(self.data, version, czxid, mzxid, 0 if timed or owner == CONTAINER_OWNER else owner)


class Tree:
    """All znodes by absolute path; the root is "" (and "/" in changes)."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._digest: int | None = None
        self._owned: dict[int, set[str]] = {}

    @property
    def digest(self) -> int:
        """ZooKeeper's own digest of the tree: summed when first asked for, and kept from then on."""
        if self._digest is None:
            self._digest = 0
            for path, node in self.nodes.items():
                self._count(path, node, 1)
        return self._digest

    def put(self, path: str, node: Node) -> None:
        self.nodes[path] = node
        self._count(path, node, 1)
        owner = STAT.unpack(node.stat)[7]
        if owner:
            self._owned.setdefault(owner, set()).add(path)

    def apply(self, changes: Iterable[Change], zxid: int, time: int) -> None:
        """What one transaction does; `time` in milliseconds."""
        for change in changes:
            match change:
                case Create():
                    self._create(change, zxid, time)
                case Delete(path):
                    self._delete(path, zxid)
                case SetData(path, data, version):
                    node = self.nodes.get(path.rstrip("/"))
                    if node is not None:
                        self._change(path, node, data=data, mzxid=zxid, mtime=time, version=version)
                case SetAcl(path, acl, version):
                    node = self.nodes.get(path.rstrip("/"))
                    if node is not None:
                        node.acl = acl
                        self._change(path, node, aversion=version)
                case CloseSession(session, paths):
                    for path in (*paths, *sorted(self._owned.get(session, ()))):
                        self._delete(path, zxid)
                    self._owned.pop(session, None)

    def _create(self, change: Create, zxid: int, time: int) -> None:
        path = change.path.rstrip("/")
        above = path.rpartition("/")[0]
        parent, there = self.nodes.get(above), self.nodes.get(path)
        if parent is None:
            return
        if there is not None:
            there.acl = change.acl
        if there is None or change.mends:
            now = STAT.unpack(parent.stat)[5]
            cversion = now + 1 if change.parent_cversion == -1 else change.parent_cversion
            if cversion > now:  # only forwards, for the snapshot may already hold a later child's
                self._change(above, parent, cversion=cversion, pzxid=zxid)
        if there is None:
            stat = STAT.pack(zxid, zxid, time, time, 0, 0, 0, change.owner, zxid)
            self.put(path, Node(change.data, change.acl, stat))

    def _delete(self, path: str, zxid: int) -> None:
        path = path.rstrip("/")
        above = path.rpartition("/")[0]
        parent = self.nodes.get(above)
        if parent is None or not path:
            return
        if zxid > STAT.unpack(parent.stat)[8]:
            self._change(above, parent, pzxid=zxid)
        node = self.nodes.pop(path, None)
        if node is not None:
            self._count(path, node, -1)
            owned = self._owned.get(STAT.unpack(node.stat)[7])
            if owned is not None:
                owned.discard(path)

    def _change(self, path: str, node: Node, **fields: object) -> None:
        path = path.rstrip("/")
        self._count(path, node, -1)
        if "data" in fields:
            node.data = fields.pop("data")  # type: ignore[assignment] # the caller's is bytes or None
        if fields:
            stat = dict(zip(FIELDS, STAT.unpack(node.stat), strict=True))
            node.stat = STAT.pack(*(stat | fields).values())
        self._count(path, node, 1)

    def _count(self, path: str, node: Node, sign: int) -> None:
        """Put a znode into the digest, or take it out: a sum of CRC32, so order does not matter."""
        if self._digest is not None and not path.startswith(OWN):
            self._digest = (self._digest + sign * zlib.crc32(content_of(path, node))) & WRAP


def content_of(path: str, node: Node) -> bytes:
    """What ZooKeeper's digest of a znode is made of."""
    stat = node.stat
    return b"".join((path.encode(), node.data or b"", stat[:16], stat[52:], stat[16:52]))


FIELDS: Final = ("czxid", "mzxid", "ctime", "mtime", "version", "cversion", "aversion", "owner", "pzxid")


def new_tree() -> Tree:
    """The tree of an ensemble that has never held anything."""
    tree = Tree()
    for path in ("", "/zookeeper", "/zookeeper/quota"):
        tree.put(path, Node(b"", OPEN_ACL, NEW_STAT))
    tree.put("/zookeeper/config", Node(b"", READ_ACL, STAT.pack(0, 0, 0, 0, 0, 0, -1, 0, 0)))
    return tree


LOG: Final = logging.getLogger("migrate.zookeeper")
OPEN_ACL_NUMBER: Final = -1  # never in the table: the ACL that lets everyone do everything
SAID_EVERY: Final = 200_000  # znodes between two lines of progress
SLASH: Final = ord("/")
LENGTH: Final = Struct(">i")
TAIL: Final = Struct(">q8xq28xqq")  # number of the ACL; of the stat mzxid, ephemeralOwner, pzxid
TAIL_SIZE: Final = TAIL.size


def read_acls(reader: JuteReader) -> dict[int, Acl]:
    return {reader.int64(): reader.acl() for _ in range(reader.count())}


def read_nodes(reader: JuteReader, acls: dict[int, Acl]) -> tuple[Tree, int]:
    """All znodes up to the path "/" behind them, and the newest zxid that any of them names."""
    tree = Tree()
    newest = add_nodes(reader, acls, tree)
    if "" not in tree.nodes:
        raise reader.error("the root is not in the snapshot")
    return tree, newest


def add_nodes(reader: JuteReader, acls: dict[int, Acl], tree: Tree, end: int | None = None) -> int:
    """Add the znodes before the offset `end`, or up to the path "/"; the newest zxid among them."""
    newest = said = 0
    while end is None or reader.offset < end:
        newest = max(newest, _run_of_nodes(reader, acls, tree))
        if end is not None and reader.offset >= end:
            break
        zxid = _one_node(reader, acls, tree)
        if zxid is None and end is None:
            break
        newest = max(newest, zxid or 0)
        if end is None and len(tree.nodes) - said >= SAID_EVERY:
            said = len(tree.nodes)
            LOG.info("snapshot: %d znodes", said)
    return newest


def node_of(data: bytes | None, number: int, stat: bytes, acls: dict[int, Acl]) -> Node:
    return Node(data, OPEN_ACL if number == OPEN_ACL_NUMBER else acls.get(number), stat)


def _one_node(reader: JuteReader, acls: dict[int, Acl], tree: Tree) -> int | None:
    """Add the next znode, whatever it is, and answer its newest zxid; None at the end of the znodes."""
    nodes = tree.nodes
    start = reader.offset
    path = reader.path()
    if path == "/":
        return None
    data = reader.buffer()
    number = reader.int64()
    stat = reader.take(STAT.size)
    if path in nodes:
        raise reader.error("a znode appears twice", start)
    if path and (path.rpartition("/")[0] not in nodes or path.endswith("/")):
        raise reader.error("a znode without its parent", start)
    tree.put(path, node_of(data, number, stat, acls))
    _, mzxid, _, _, _, _, _, _, pzxid = STAT.unpack(stat)
    return int(max(mzxid, pzxid))


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
