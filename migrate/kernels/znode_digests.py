"""ZooKeeper's digest of its tree over the bytes of a snapshot: a sum of CRC-32s, so order does not matter."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from migrate.kernels.bytes_at import byte, word
from migrate.kernels.compiled import BYTES, LONG, helper, kernel
from migrate.kernels.znodes import parts

Array = np.ndarray[Any, np.dtype[Any]]


def _crc_tables() -> np.ndarray[Any, Any]:
    tables = np.zeros((8, 256), np.uint32)
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        tables[0, value] = crc
    for row in range(1, 8):
        before = tables[row - 1]
        tables[row] = before >> 8 ^ tables[0][before & 0xFF]
    return tables


CRC: Final = _crc_tables()


@helper
def crc32(crc: Any, raw: Any, at: Any, end: Any) -> Any:
    """CRC-32 (that of zlib), eight bytes at a time."""
    low_byte = np.uint64(255)
    while at + 8 <= end:
        eight = word(raw, at) ^ np.uint64(crc)
        crc = (
            CRC[7, eight & low_byte]
            ^ CRC[6, eight >> np.uint64(8) & low_byte]
            ^ CRC[5, eight >> np.uint64(16) & low_byte]
            ^ CRC[4, eight >> np.uint64(24) & low_byte]
            ^ CRC[3, eight >> np.uint64(32) & low_byte]
            ^ CRC[2, eight >> np.uint64(40) & low_byte]
            ^ CRC[1, eight >> np.uint64(48) & low_byte]
            ^ CRC[0, eight >> np.uint64(56)]
        )
        at += 8
    while at < end:
        crc = CRC[0, np.uint64(crc ^ np.uint32(byte(raw, at))) & low_byte] ^ (crc >> np.uint32(8))
        at += 1
    return np.uint32(crc)


@kernel(LONG, *(BYTES, LONG, LONG), reference="migrate.zookeeper.offline.tree.Tree.digest")
def digest(raw: Any, at: Any, end: Any) -> Any:
    """The sum of the digests (`DigestCalculator`, version 2) of whole znodes of which `scan` made sure."""
    total = np.int64(0)
    while at < end:
        path, data, following = parts(raw, at, end)
        stat = data + 8
        crc = crc32(np.uint32(0xFFFFFFFF), raw, at + 4, path)
        crc = crc32(crc, raw, path + 4, data)
        crc = crc32(crc, raw, stat, stat + 16)
        crc = crc32(crc, raw, stat + 52, stat + 60)
        crc = crc32(crc, raw, stat + 16, stat + 52)
        total += np.int64(crc ^ np.uint32(0xFFFFFFFF))
        at = following
    return total
