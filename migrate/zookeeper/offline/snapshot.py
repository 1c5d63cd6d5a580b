"""A ZooKeeper snapshot: sessions, ACLs, every znode, and the seals behind them.

Layout (`FileSnap`, `SerializeUtils`, `DataTree.serialize`, `SnapStream`): header; sessions; ACL table; znodes, parents
before children, ended by the path "/"; a seal (Adler32 of all before it).  From 3.6 on the digest of the tree at the
end of the writing follows, from 3.9 on the zxid then, each with a seal of its own.  How it is packed follows from its
name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

from migrate.errors import ZookeeperFilesMissing
from migrate.model import limits
from migrate.zookeeper.offline.jute import JuteReader, damaged
from migrate.zookeeper.offline.tree import Acl, Tree, read_acls, read_nodes

CHUNK: Final = 1 << 20
UNPACKED_AT_MOST: Final = 50  # times the file: trees of Kafka have 8 to 20
FREE_BYTES: Final = 16 * 2**20
SNAPPY_HEAD: Final = b"\x82SNAPPY\x00" + b"\0\0\0\1" * 2  # its version, and the oldest that can read it
LARGEST_BLOCK: Final = 16 << 20


def chunks_of(path: Path, start: int = 0) -> Iterator[bytes]:
    """The uncompressed content; never empty chunks.  `start`: only what follows there, of a file that is not packed.

    Raises ZookeeperFileDamaged (offsets are those of the packed file) and ZookeeperFilesMissing.
    """
    try:
        with path.open("rb") as file:
            if path.suffix == ".gz":
                yield from _within(_gzip(file, str(path)), path)
            elif path.suffix == ".snappy":
                yield from _within(filter(None, _snappy(file, str(path))), path)
            else:
                file.seek(start)
                while chunk := file.read(CHUNK):
                    yield chunk
    except OSError as error:
        raise ZookeeperFilesMissing(f"the file cannot be read ({error.strerror})", where=str(path)) from error


def _within(chunks: Iterator[bytes], path: Path) -> Iterator[bytes]:
    """What a file of that size can hold: a znode takes more when it is unpacked, but not any number of times."""
    left = most = min(limits.most("snapshot"), FREE_BYTES + UNPACKED_AT_MOST * path.stat().st_size)
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise damaged(f"it holds more than {most} bytes, which no snapshot of its size does", str(path), 0)
        yield chunk


def _gzip(file: IO[bytes], name: str) -> Iterator[bytes]:
    unpack = zlib.decompressobj(wbits=31)
    packed = file.read(CHUNK)
    while not unpack.eof:
        try:
            chunk = unpack.decompress(packed, CHUNK)
        except zlib.error as error:
            raise damaged("the gzip stream is damaged", name, file.tell() - len(packed)) from error
        if chunk:
            yield chunk
        packed = unpack.unconsumed_tail
        if not packed and not unpack.eof:
            packed = file.read(CHUNK)
            if not packed and not chunk:
                raise damaged("the gzip stream is cut short", name, file.tell())
    if unpack.unused_data or file.read(1):
        raise damaged("bytes follow the gzip stream", name, file.tell() - len(unpack.unused_data))


def _snappy(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The blocks of snappy-java's `SnappyOutputStream`, each behind its length; 32 KiB by default."""
    head = file.read(len(SNAPPY_HEAD))
    if head != SNAPPY_HEAD:
        known = head[:-8] == SNAPPY_HEAD[:-8]
        what = "an unknown version of snappy-java's format" if known else "the file does not begin as snappy-java's do"
        raise damaged(what, name, 0)
    while prefix := file.read(4):
        start, size = file.tell(), int.from_bytes(prefix, "big")
        if len(prefix) < 4 or not 0 < size <= LARGEST_BLOCK:
            raise damaged("the length of a block is wrong or cut short", name, start - len(prefix))
        block = file.read(size)
        if len(block) < size:
            raise damaged(f"the file ends {size - len(block)} bytes before a block does", name, file.tell())
        try:
            yield unpacked(block)
        except ValueError as error:
            raise damaged(str(error), name, start) from error


def unpacked(block: bytes) -> bytes:
    """One Snappy block's content.  Raises ValueError: it is damaged, or larger than any that is written.

    pyarrow checks the content against the size that the block names (github.com/google/snappy,
    format_description.txt), and must be given that size.
    """
    import pyarrow as pa  # noqa: PLC0415 - loads slowly, and few files are packed so

    size = 0
    for at, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            break
    else:
        raise ValueError("the size of a block is cut short")
    if size > LARGEST_BLOCK:
        raise ValueError("a block names a size larger than any is")
    try:
        return cast("bytes", pa.Codec("snappy").decompress(block, size, asbytes=True))
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError("a block is not Snappy") from error


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
    _check_seal(reader)
    left = reader.remainder(max(TRAILERS))
    if left not in TRAILERS:
        raise reader.error(f"{left} bytes follow the seal; ZooKeeper writes {', '.join(map(str, sorted(TRAILERS)))}")
    has_digest, has_last = TRAILERS[left]
    digest = last = None
    if has_digest:
        digest = Digest(reader.int64(), reader.int32(), reader.int64())
        _check_seal(reader)
    if has_last:
        last = reader.int64()
        _check_seal(reader)
    if reader.remainder(0):
        raise reader.error("bytes follow the snapshot")
    stated = [number for number in (last, digest and digest.zxid) if number]
    return Snapshot(path, zxid, tree, sessions, max([newest, *stated]), zxid in stated, digest)


def _check_seal(reader: JuteReader) -> None:
    summed, start = reader.checksum(), reader.offset
    if reader.int64() != summed:
        raise reader.error("the checksum (Adler32) is not that of the content", start)
    start = reader.offset
    if reader.buffer() != b"/":
        raise reader.error("the seal does not end as it must", start)
