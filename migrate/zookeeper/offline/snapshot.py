"""A ZooKeeper snapshot: sessions, ACLs, every znode, and the seals behind them.

Layout (`FileSnap`, `SerializeUtils`, `DataTree.serialize`, `SnapStream`): header; sessions; ACL table; znodes, parents
before children, ended by the path "/"; a seal (Adler32 of all before it).  From 3.6 on the digest of the tree at the
end of the writing follows, from 3.9 on the zxid then, each with a seal of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from migrate.zookeeper.offline.content import chunks_of
from migrate.zookeeper.offline.jute import JuteReader
from migrate.zookeeper.offline.nodes import read_acls, read_nodes
from migrate.zookeeper.offline.tree import Acl, Tree

LOG: Final = logging.getLogger("migrate.zookeeper")
MAGIC: Final = b"ZKSN"
VERSION: Final = 2
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


class Nodes(NamedTuple):
    """The tree of a file's znodes and the newest zxid in it; where they end, and the sum (Adler32) up to there."""

    tree: Tree
    newest: int
    end: int
    summed: int


# reads the znodes of a file that is not packed, from that offset on; None: they are to be read one by one
NodesReader = Callable[[Path, int, dict[int, Acl]], Nodes | None]


def read_snapshot(path: Path, zxid: int, reader_of_nodes: NodesReader | None = None) -> Snapshot:
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
    acls = read_acls(reader)
    kept = None if packed or reader_of_nodes is None else reader_of_nodes(path, reader.offset, acls)
    tree: Tree
    if kept is not None:
        tree, newest = kept.tree, kept.newest
        reader = JuteReader(chunks_of(path, kept.end), str(path), kept.end, kept.summed)
    else:
        tree, newest = read_nodes(reader, acls)
    _seal(reader)
    has_digest, has_last = _trailer(reader)
    digest = _digest(reader) if has_digest else None
    last = _last(reader) if has_last else None
    if reader.remainder(0):
        raise reader.error("bytes follow the snapshot")
    stated = [number for number in (last, digest and digest.zxid) if number]
    return Snapshot(path, zxid, tree, sessions, max([newest, *stated]), zxid in stated, digest)


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
