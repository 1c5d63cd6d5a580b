"""The decorator of kernels: types are said, code is kept in the user's cache.

With its types said, a kernel is compiled when its module is imported, or read from the cache: no call waits, no other
types are ever compiled, and whatever fails does so there (`choice.ready` catches it).  Kernels make no arrays, they
fill those of their callers: so numba counts no references (`_nrt`), which would cost most of the time of a helper.

The cache lies under `~/.cache/kraft-migrate/kernels`, for the package may be installed where nobody writes; its folder
is named by the contents of this package, because numba looks at the file of a function only, not at the functions which
that calls.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
from numba import types

from migrate.model.user_cache import cache_directory

LOG: Final = logging.getLogger("migrate.kernels")

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

P = ParamSpec("P")
R = TypeVar("R")


def kernel(result: Any, *arguments: Any, reference: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function for exactly these types.

    `reference` names the plain Python that does the same (`migrate.<module>.<function>`): a reader looks there for
    what is meant, and a test holds the two equal.  Array bounds are *not* checked: the kernel does that.
    """
    signature = result(*arguments)

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        function.__doc__ = f"{function.__doc__ or ''}\n\nReference: {reference}."
        try:
            with _kept():
                return cast("Callable[P, R]", _JIT([signature], cache=True, nogil=True, _nrt=False)(function))
        except Exception as error:  # noqa: BLE001 - a damaged or unwritable cache costs time, nothing else
            LOG.debug("%s is compiled without the cache: %s", function.__name__, error)
            return cast("Callable[P, R]", _JIT([signature], nogil=True, _nrt=False)(function))

    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only kernels call; it becomes a part of each of them, for the types that they have."""
    return cast("Callable[..., Any]", _JIT(inline="never", nogil=True, _nrt=False)(function))


@contextmanager
def _kept() -> Iterator[None]:
    """Numba's cache is ours meanwhile, unless the user chose one (NUMBA_CACHE_DIR)."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    if not before:
        settings.CACHE_DIR = str(cache_directory() / "kernels" / _contents())
    try:
        yield
    finally:
        settings.CACHE_DIR = before


@cache
def _contents() -> str:
    """Changes with this package's sources."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]
