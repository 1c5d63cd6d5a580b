"""Kernel or reference: the kernel where the input is large, numba is here and nobody has said otherwise.

Loading a kernel's code takes a fifth of a second, and compiling it for the first time ever some seconds; what is small
is done by its reference long before that.  So a kernel is loaded here only, when it pays: as machine code that was kept
(`migrate.kernels.machine_code`), or by importing its module, which compiles it.
"""

from __future__ import annotations

import importlib
import logging
import os
import time
from typing import Any, Final

LOG: Final = logging.getLogger("migrate.kernels")
VARIABLE: Final = "KRAFT_MIGRATE_KERNELS"
OFF: Final = ("off", "no", "0", "false")
KEPT: Final = 4  # a kernel whose machine code is kept pays for inputs that are so many times smaller

_told: set[str] = set()
_failed: dict[str, str] = {}
_loaded: dict[str, Any] = {}
_not_kept: set[str] = set()


def use_references() -> None:
    """From now on, in this process and in those that it starts, references do all the work."""
    os.environ[VARIABLE] = OFF[0]


def ready(name: str, size: int, least: int, warm: int | None = None) -> bool:
    """May `migrate.kernels.<name>` be imported and used for an input of `size` (rows, bytes) now?

    False where the input is smaller than `least` (a quarter of it, where its machine code is kept; `warm`, once the
    kernel is loaded), where `KRAFT_MIGRATE_KERNELS=off` (or `--no-kernels`) asks for the references, and where numba or
    the kernel cannot be loaded: the latter two are logged, once each.
    """
    off = os.environ.get(VARIABLE, "").strip().lower() in OFF
    if warm is not None and _failed.get(name) == "":
        if size < warm:
            return False
    elif size < least and (off or size < least // KEPT or not _load_kept(name)):
        return False
    if off:
        return _tell(f"{name}: the reference is used, as {VARIABLE}=off asks")
    if name not in _failed:
        _load(name)
    if reason := _failed[name]:
        return _tell(f"{name}: the reference is used, for the kernel cannot be loaded: {reason}")
    return True


def kernels(name: str) -> Any:
    """The kernels of `migrate.kernels.<name>`, as attributes: for who was told that it is ready, and for tests."""
    if name not in _loaded:
        _loaded[name] = _from_kept_code(name) or importlib.import_module(f"{__package__}.{name}")
    return _loaded[name]


def _from_kept_code(name: str) -> Any:
    """None where numba is to compile it."""
    from migrate.kernels import machine_code  # noqa: PLC0415 - llvmlite and numpy

    return machine_code.load(name)


def _load_kept(name: str) -> bool:
    """Is it loaded, or was its code kept by an earlier process, and is loaded now?  Nothing is compiled."""
    if name in _failed or name in _not_kept:
        return _failed.get(name) == ""
    try:
        found = _from_kept_code(name)
    except Exception as error:  # noqa: BLE001 - as in `_load`, which tells it where the kernel is needed
        LOG.debug("%s: not loaded from kept code: %s", name, error)
        found = None
    if found is None:
        _not_kept.add(name)
        return False
    _loaded[name], _failed[name] = found, ""
    return True


def _load(name: str) -> None:
    """Take its code from the cache, or import it, which compiles it; a failure is kept, and never raised."""
    start = time.monotonic()
    try:
        _loaded[name] = _from_kept_code(name) or importlib.import_module(f"{__package__}.{name}")
    except Exception as error:  # noqa: BLE001 - numba raises anything; the reference does the same work
        _failed[name] = f"{type(error).__name__}: {error}"
        return
    _failed[name] = ""
    LOG.debug("%s: loaded in %.1f s", name, time.monotonic() - start)


def _tell(line: str) -> bool:
    """Log it, once; False."""
    if line not in _told:
        _told.add(line)
        LOG.info(line)
    return False
