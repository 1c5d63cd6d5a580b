"""A snapshot's content in chunks, whatever it is packed with (by its name, as ZooKeeper goes: `SnapStream`)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from migrate.errors import ZookeeperFilesMissing
from migrate.model import limits
from migrate.zookeeper.offline import snappy
from migrate.zookeeper.offline.jute import damaged

CHUNK: Final = 1 << 20
UNPACKED_AT_MOST: Final = 50  # times the file: trees of Kafka have 8 to 20
FREE_BYTES: Final = 16 * 2**20


def chunks_of(path: Path, start: int = 0) -> Iterator[bytes]:
    """The uncompressed content; never empty chunks.  `start`: only what follows there, of a file that is not packed.

    Raises ZookeeperFileDamaged (offsets are those of the packed file) and ZookeeperFilesMissing.
    """
    try:
        with path.open("rb") as file:
            if path.suffix == ".gz":
                yield from _within(_gzip(file, str(path)), path)
            elif path.suffix == ".snappy":
                yield from _within(_snappy(file, str(path)), path)
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
    try:
        for block in snappy.blocks(file.read):
            if block:
                yield block
    except snappy.SnappyError as error:
        raise damaged(str(error), name, error.offset) from error
