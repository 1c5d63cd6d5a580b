"""Bytes of an array where they stand: several at once, and without numba's look at negative indexes.

Nothing is checked here: who calls has made sure that the bytes lie inside the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from migrate.kernels.compiled import helper


def _loading(bits: Any, *, swapped: bool) -> Any:
    """The code of a load of so many bits, from big-endian bytes where `swapped`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        integer = ir.IntType(bits)
        place = builder.gep(array.data, [arguments[1]], source_etype=ir.IntType(8))
        found = builder.load(builder.bitcast(place, integer.as_pointer()), align=1, typ=integer)
        return builder.bswap(found) if swapped else found

    return code


def _byte(_context: Any, array: Any, _at: Any) -> Any:
    """One byte."""
    return types.uint8(array, types.int64), _loading(8, swapped=False)


def _word(_context: Any, array: Any, _at: Any) -> Any:
    """Eight bytes as they lie in memory: to be compared."""
    return types.uint64(array, types.int64), _loading(64, swapped=False)


def _i32(_context: Any, array: Any, _at: Any) -> Any:
    """A signed big-endian number of 32 bits."""
    return types.int32(array, types.int64), _loading(32, swapped=True)


def _i64(_context: Any, array: Any, _at: Any) -> Any:
    """A signed big-endian number of 64 bits."""
    return types.int64(array, types.int64), _loading(64, swapped=True)


byte: Any = intrinsic(_byte)
word: Any = intrinsic(_word)
i32: Any = intrinsic(_i32)
i64: Any = intrinsic(_i64)


@helper
def same(one: Any, at: Any, other: Any, where: Any, count: Any) -> Any:
    """Are so many bytes at these two places the same?"""
    index = np.int64(0)
    while index + 8 <= count:
        if word(one, at + index) != word(other, where + index):
            return False
        index += 8
    while index < count:
        if byte(one, at + index) != byte(other, where + index):
            return False
        index += 1
    return True


@helper
def says(raw: Any, at: Any, end: Any, content: Any) -> Any:
    """Do these bytes stand there, before `end`?"""
    return at + len(content) <= end and same(raw, at, content, np.int64(0), np.int64(len(content)))
