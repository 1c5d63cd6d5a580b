"""Sets of record ids as bitmaps: a bit an id, so that hours of load are judged in a few megabytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_GROWTH: Final = 4096  # bytes


class IdSet:
    """Ids (epoch, sequence); sequences of an epoch are dense from 0, so one bitmap an epoch holds them."""

    def __init__(self) -> None:
        self._bits: dict[int, bytearray] = {}

    def add(self, epoch: int, sequence: int) -> bool:
        """Put an id in; False if it was there."""
        bits = self._bits.setdefault(epoch, bytearray())
        index, mask = sequence >> 3, 1 << (sequence & 7)
        if index >= len(bits):
            bits.extend(bytes(max(_GROWTH, index + 1 - len(bits))))
        if bits[index] & mask:
            return False
        bits[index] |= mask
        return True

    def __contains__(self, key: tuple[int, int]) -> bool:
        epoch, sequence = key
        bits = self._bits.get(epoch, b"")
        index = sequence >> 3
        return index < len(bits) and bool(bits[index] & (1 << (sequence & 7)))

    def __len__(self) -> int:
        return sum(int.from_bytes(bits, "little").bit_count() for bits in self._bits.values())

    def without(self, other: IdSet) -> Iterator[tuple[int, int]]:
        """The ids of this set that the other lacks, in order."""
        for epoch, bits in sorted(self._bits.items()):
            theirs = other._bits.get(epoch, b"")
            for index, byte in enumerate(bits):
                left = byte & ~(theirs[index] if index < len(theirs) else 0)
                while left:
                    lowest = left & -left
                    yield epoch, (index << 3) + lowest.bit_length() - 1
                    left ^= lowest
