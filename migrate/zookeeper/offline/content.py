"""A snapshot's content in chunks, whatever it is packed with (by its name, as ZooKeeper goes: `SnapStream`)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, cast

from migrate.errors import ZookeeperFilesMissing
from migrate.model import limits
from migrate.zookeeper.offline.jute import damaged

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
