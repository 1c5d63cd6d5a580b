"""Kernels as machine code: kept as object files, loaded by llvmlite alone, called through ctypes.

Importing numba, and giving it what it needs before it can run code that it compiled long ago, costs half a second and
80 MB; the code itself is some ten kilobytes that need nothing of it.  So numba is imported where a kernel is compiled,
once for each version of the sources, of numba and of llvmlite, and for each kind of processor; all later processes take
the code from here.

What a kernel is given is checked against its types, as numba would: a wrong array would be read as if it were right.
A file that is not whole, or was made by others, is compiled anew (its sum stands beside it).
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple, TypeAlias

import llvmlite.binding as llvm
import numpy as np

from migrate.model import strict_json
from migrate.model.trusted import distrust_of
from migrate.model.user_cache import cache_directory

LOG: Final = logging.getLogger("migrate.kernels")
OBJECT: Final = ".o"
TEXT: Final = ".json"
NUMBER: Final = "number"


class ArrayType(NamedTuple):
    """An array as a kernel takes it: contiguous, of that type and that many dimensions."""

    dtype: str
    dimensions: int
    readonly: bool


# "number" is an int64; a list is a tuple of arrays, or of such tuples
Argument: TypeAlias = "str | ArrayType | list[Argument]"


class Code(NamedTuple):
    """One compiled function."""

    symbol: str
    arguments: list[Argument]
    returns: bool  # an int64; else nothing
    machine: bytes


class Native:
    """A kernel that can be called."""

    def __init__(self, code: Code, engine: Any, about: Callable[..., Any] | None = None) -> None:
        self.code = code
        self.__doc__ = None if about is None else about.__doc__
        self.__name__ = "" if about is None else about.__name__
        self._engine = engine  # the code lives as long as this does
        address = engine.get_function_address(code.symbol)
        if not address:
            message = f"{code.symbol} is not in its object file"
            raise ImportError(message)
        self._kinds: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
        for kind in code.arguments:
            self._kinds += _places(kind)
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *self._kinds)(address)

    def __call__(self, *given: Any) -> Any:
        """The kernel's number, or None.  Raises TypeError for an argument of another type."""
        if len(given) != len(self.code.arguments):
            message = f"{len(given)} arguments for {len(self.code.arguments)}"
            raise TypeError(message)
        values: list[int] = []
        for one, kind in zip(given, self.code.arguments, strict=True):
            values += _values(one, kind)
        found, error = ctypes.c_int64(0), ctypes.c_void_p(None)
        status = self._call(ctypes.addressof(found), ctypes.addressof(error), *values)
        if status:
            message = f"the kernel ended with status {status}"
            raise RuntimeError(message)
        return found.value if self.code.returns else None


def _places(kind: Argument) -> list[Any]:
    """As numba passes it: an array as meminfo, parent, items, bytes an item, data, shape, strides; so a tuple's."""
    if isinstance(kind, list):
        return [place for one in kind for place in _places(one)]
    if not isinstance(kind, ArrayType):
        return [ctypes.c_int64]
    longs = [ctypes.c_int64] * (2 * kind.dimensions)
    return [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, *longs]


def _values(given: Any, kind: Argument) -> list[int]:
    """What stands in these places.  Raises TypeError."""
    if isinstance(kind, list):
        return [value for part, of in zip(given, kind, strict=True) for value in _values(part, of)]
    return _flat(given, kind) if isinstance(kind, ArrayType) else [int(given)]


def _flat(array: Any, kind: ArrayType) -> list[int]:
    """An array in these places.  Raises TypeError."""
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != np.dtype(kind.dtype)
        or array.ndim != kind.dimensions
        or not (array.flags.c_contiguous and array.flags.aligned)
        or not (kind.readonly or array.flags.writeable)
    ):
        message = f"an array of {kind} is taken, not {getattr(array, 'dtype', type(array))}"
        raise TypeError(message)
    return [0, 0, array.size, array.itemsize, array.ctypes.data, *array.shape, *array.strides]


# -- object files ----------------------------------------------------------------------------------------------------
def engine_of(machine: bytes) -> Any:
    """The code of an object file, ready to be called."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine))
    engine.finalize_object()
    return engine


def keep(module: str, name: str, code: Code) -> None:
    """For the next process; a folder that cannot be written costs time only."""
    place = folder() / f"{module}.{name}"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        told = {
            "symbol": code.symbol,
            "arguments": code.arguments,
            "returns": code.returns,
            "sum": hashlib.sha256(code.machine).hexdigest(),
        }
        for suffix, raw in ((OBJECT, code.machine), (TEXT, json.dumps(told).encode())):
            made = place.with_name(f"{place.name}{suffix}.{os.getpid()}")
            made.write_bytes(raw)
            made.replace(place.with_name(place.name + suffix))
    except OSError as error:
        LOG.debug("%s is not kept: %s", name, error)


def kept(module: str, name: str) -> Code | None:
    """One function's code; None where there is none that is whole, or where others could have put it there."""
    place = folder() / f"{module}.{name}"
    try:
        text, object_file = place.with_name(place.name + TEXT), place.with_name(place.name + OBJECT)
        if why := distrust_of(place.parent, text, object_file):
            LOG.info("machine code is not used: %s", why)
            return None
        told = strict_json.mapping(text.read_text())
        machine = object_file.read_bytes()
        arguments = [*map(_argument, told["arguments"])]
        if hashlib.sha256(machine).hexdigest() != told["sum"]:
            return None
        return Code(str(told["symbol"]), arguments, bool(told["returns"]), machine)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _argument(told: Any) -> Argument:
    if told == NUMBER:
        return NUMBER
    if isinstance(told[0], str) and isinstance(told[1], int):
        return ArrayType(str(told[0]), int(told[1]), bool(told[2]))
    return [_argument(one) for one in told]


def names_in(source: Path) -> Iterator[str]:
    """The kernels that a module defines, by its text."""
    waiting = False
    for line in source.read_text().splitlines():
        waiting |= line.startswith("@kernel(")
        if waiting and line.startswith("def "):
            yield line[4:].partition("(")[0]
            waiting = False


def load(module: str) -> SimpleNamespace | None:
    """The kernels of `migrate.kernels.<module>` from their object files; None: numba is to compile one of them."""
    source = Path(__file__).with_name(f"{module}.py")
    names = [*names_in(source)] if source.exists() else []
    found = {name: kept(f"{__package__}.{module}", name) for name in names}
    if not names or None in found.values():
        return None
    codes: Sequence[tuple[str, Code]] = [(name, code) for name, code in found.items() if code is not None]
    return SimpleNamespace(**{name: Native(code, engine_of(code.machine)) for name, code in codes})


def folder() -> Path:
    """Where the code of these sources for this processor lies."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(base) if base else cache_directory() / "kernels") / _made_of()


@cache
def _made_of() -> str:
    """Changes with this package's sources, with what compiles them, and with the processor."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    versions = [importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    digest.update(repr((versions, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())).encode())
    return digest.hexdigest()[:20]
