"""The znodes of a snapshot, read one by one into a tree: what is right, also where a kernel has done the most of it."""

from __future__ import annotations

import logging
from struct import Struct
from typing import Final

from migrate.zookeeper.offline.jute import JuteReader
from migrate.zookeeper.offline.tree import OPEN_ACL, STAT, Acl, Node, Tree

LOG: Final = logging.getLogger("migrate.zookeeper")
OPEN_ACL_NUMBER: Final = -1  # never in the table: the ACL that lets everyone do everything
SAID_EVERY: Final = 200_000  # znodes between two lines of progress
SLASH: Final = ord("/")
LENGTH: Final = Struct(">i")
TAIL: Final = Struct(">q8xq28xqq")  # number of the ACL; of the stat mzxid, ephemeralOwner, pzxid
TAIL_SIZE: Final = TAIL.size


def read_acls(reader: JuteReader) -> dict[int, Acl]:
    """The table of ACLs, by number."""
    return {reader.int64(): reader.acl() for _ in range(reader.count())}


def read_nodes(reader: JuteReader, acls: dict[int, Acl]) -> tuple[Tree, int]:
    """All znodes up to the path "/" behind them, and the newest zxid that any of them names."""
    tree = Tree()
    newest = said = 0
    while True:
        newest = max(newest, _run_of_nodes(reader, acls, tree))
        if len(tree.nodes) - said >= SAID_EVERY:
            said = len(tree.nodes)
            LOG.info("snapshot: %d znodes", said)
        zxid = _one_node(reader, acls, tree)
        if zxid is None:
            break
        newest = max(newest, zxid)
    if "" not in tree.nodes:
        raise reader.error("the root is not in the snapshot")
    return tree, newest


def add_nodes(reader: JuteReader, acls: dict[int, Acl], tree: Tree, end: int) -> int:
    """Add the znodes before the offset `end`; the newest zxid among them."""
    newest = 0
    while reader.offset < end:
        newest = max(newest, _run_of_nodes(reader, acls, tree))
        if reader.offset < end:
            newest = max(newest, _one_node(reader, acls, tree) or 0)
    return newest


def node_of(data: bytes | None, number: int, stat: bytes, acls: dict[int, Acl]) -> Node:
    """A znode as the snapshot has it."""
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
        raise reader.error("a znode stands twice", start)
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
