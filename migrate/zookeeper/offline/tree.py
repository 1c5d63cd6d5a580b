"""The tree in memory: what ZooKeeper's DataTree does with each change, and the digest that it keeps of itself.

Source: `DataTree`, `NodeHashMapImpl`, `DigestCalculator` (version 2), `AdHash` of ZooKeeper 3.9.  Changes that cannot
be made (the znode is not there, or is already there) are passed over: while a snapshot is written the tree goes on, so
a change may be in the snapshot already.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from migrate.zookeeper.znode import Znode

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
    """A znode goes."""

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


class Node:
    """One znode; `stat` is packed as `STAT`.  `acl` None: the snapshot names an ACL that it does not hold."""

    __slots__ = ("acl", "data", "stat")

    def __init__(self, data: bytes | None, acl: Acl | None, stat: bytes) -> None:
        self.data = data
        self.acl = acl
        self.stat = stat

    def znode(self) -> Znode:
        """What readers of trees get."""
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
        """Add a znode that is not there yet."""
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
            if change.mends:
                self._touch_parent(above, parent, change.parent_cversion, zxid)
            return
        self._touch_parent(above, parent, change.parent_cversion, zxid)
        stat = STAT.pack(zxid, zxid, time, time, 0, 0, 0, change.owner, zxid)
        self.put(path, Node(change.data, change.acl, stat))

    def _touch_parent(self, path: str, parent: Node, cversion: int, zxid: int) -> None:
        """A child came: only forwards, for the snapshot may already hold a later child's."""
        now = STAT.unpack(parent.stat)[5]
        cversion = now + 1 if cversion == -1 else cversion
        if cversion > now:
            self._change(path, parent, cversion=cversion, pzxid=zxid)

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
        """Set parts of a znode, and keep the digest."""
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
