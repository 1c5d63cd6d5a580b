"""The decorators of compiled loops: their types are declared, and numba keeps the code in the user's cache.

With its types declared, a loop is compiled when its module is imported: no call waits, no other types are ever
compiled, and whatever fails does so there (`choice.ready` catches it).  Loops make no arrays, they fill those of their
callers: so numba counts no references (`_nrt`), which would cost most of the time of a helper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from migrate.accelerated import choice

# what signatures are made of; read-only arrays (a map of a file) take writable ones, too
BYTES: Final = types.Array(types.uint8, 1, "C", readonly=True)
INTS: Final = types.Array(types.int32, 1, "C", readonly=True)
LONGS: Final = types.Array(types.int64, 1, "C", readonly=True)
ROWS: Final = types.Array(types.uint8, 2, "C", readonly=True)  # fixed-size byte strings, an id a row
PAIRS: Final = types.Array(types.uint64, 2, "C", readonly=True)  # ids of 16 bytes as two numbers a row
OUT_BYTES: Final = types.Array(types.uint8, 1, "C")
OUT_INTS: Final = types.Array(types.int32, 1, "C")
OUT_LONGS: Final = types.Array(types.int64, 1, "C")
OUT_ROWS: Final = types.Array(types.uint8, 2, "C")
OUT_KEYS: Final = types.Array(types.uint64, 1, "C")
OUT_PAIRS: Final = types.Array(types.uint64, 2, "C")
LONG: Final = types.int64
NONE: Final = types.void

_JIT: Final[Any] = numba.njit  # its types do not know all of its options
_CONFIG: Final[Any] = numba.config
_CACHE: Final = choice.usable_cache()
if _CACHE is not None:
    _CONFIG.CACHE_DIR = str(_CACHE)

P = ParamSpec("P")
R = TypeVar("R")


def kernel(result: Any, *arguments: Any, reference: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function for exactly these types; numba refuses all others with TypeError.

    `reference` names the plain Python that does the same (`migrate.<module>.<function>`): a reader looks there for
    what is meant, and a test holds the two equal.  Array bounds are *not* checked: the function does that.
    """

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        function.__doc__ = f"{function.__doc__ or ''}\n\nReference: {reference}."
        made = _JIT(result(*arguments), cache=_CACHE is not None, nogil=True, _nrt=False)(function)
        return cast("Callable[P, R]", made)

    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only kernels call; it becomes a part of each of them, for the types that they have."""
    return cast("Callable[..., Any]", _JIT(inline="never", nogil=True, _nrt=False)(function))


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
