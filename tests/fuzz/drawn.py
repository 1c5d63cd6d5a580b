"""Inputs of a reader: every one of a kind in order, or one drawn."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.damage import (
    HEADERS,
    Choose,
    bytes_damaged,
    damaged_parts,
    every_edit,
    tar_damaged,
    tar_with,
    with_edit,
)
from tests.fuzz.trial import Bench


def drawn(bench: Bench, choose: Choose) -> bytes:
    """A damaged file: parts with their sums right or as they were, tar headers, or any bytes."""
    reader = bench.reader
    kind = choose(10)
    if kind == 0:
        return bytes_damaged(choose, bench.seed)
    if kind == 1 and reader.packed(bench.parts) != bench.seed:  # what lies inside the compressed file
        return reader.wrapped(bytes_damaged(choose, reader.packed(bench.parts)))
    if kind in (2, 3) and reader.tar is not None:
        return reader.wrapped(tar_damaged(choose, reader.tar(bench.parts)))
    parts = damaged_parts(choose, bench.parts)
    if choose(4) == 0:
        parts = damaged_parts(choose, parts)
    return bench.file_of(parts, sealed=choose(8) > 0)


def in_order(bench: Bench, most: int) -> Iterator[bytes]:
    """Every tar header, and every edit of every value where there are at most so many; else that many, spread."""
    reader = bench.reader
    if reader.tar is not None:
        members = reader.tar(bench.parts)
        for fields in HEADERS:
            yield reader.wrapped(tar_with(members, min(1, len(members) - 1), fields))
    edits = every_edit(bench.parts)
    stride = -(-len(edits) // most) if edits else 1
    stride += stride > 1 and stride % 2 == 0  # an even stride would meet the same edits of each place
    for edit in edits[::stride]:
        yield bench.file_of(with_edit(bench.parts, edit))
