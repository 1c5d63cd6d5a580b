"""The decorator of kernels: types are said, the code is kept in the user's cache.

With its types said, a kernel is compiled when its module is imported: no call waits, no other types are ever compiled,
and whatever fails does so there (`choice.ready` catches it).  Kernels make no arrays, they fill those of their callers:
so numba counts no references (`_nrt`), which would cost most of the time of a helper, and the code needs nothing of it.

What is compiled is kept by `migrate.kernels.machine_code`, under `~/.cache/kraft-migrate/kernels`: the package may be
installed where nobody writes.  Later processes do not import this module (`choice.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
from numba import types
from numba.core import compiler
from numba.core.registry import cpu_target

from migrate.kernels import machine_code
from migrate.kernels.machine_code import NUMBER, Argument, ArrayType, Code, Native

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

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        function.__doc__ = f"{function.__doc__ or ''}\n\nReference: {reference}."
        code = machine_code.kept(function.__module__, function.__name__)
        if code is None:
            code = compile_(function, result, arguments)
            machine_code.keep(function.__module__, function.__name__, code)
        return cast("Callable[P, R]", Native(code, machine_code.engine_of(code.machine), function))

    return compiled


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only kernels call; it becomes a part of each of them, for the types that they have."""
    return cast("Callable[..., Any]", _JIT(inline="never", nogil=True, _nrt=False)(function))


def compile_(function: Callable[..., Any], result: Any, arguments: tuple[Any, ...]) -> Code:
    """The code for these types, without what would let numba call it from Python."""
    flags: Any = compiler.Flags()
    flags.nrt, flags.no_cpython_wrapper, flags.no_cfunc_wrapper = False, True, True
    target: Any = cpu_target
    target.target_context.refresh()
    target.typing_context.refresh()
    made: Any = compiler.compile_extra(
        target.typing_context, target.target_context, function, arguments, result, flags, {}
    )
    machine: bytes = made.library._get_compiled_object()  # noqa: SLF001 - what numba's own cache keeps
    return Code(made.fndesc.llvm_func_name, [*map(_told, arguments)], result != NONE, machine)


def _told(kind: Any) -> Argument:
    if isinstance(kind, types.Array):
        return ArrayType(str(kind.dtype), kind.ndim, readonly=not kind.mutable)
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):  # the second one where all fields are alike
        return [_told(one) for one in kind.types]
    if kind == LONG:
        return NUMBER
    message = f"a kernel takes no {kind}"
    raise TypeError(message)
