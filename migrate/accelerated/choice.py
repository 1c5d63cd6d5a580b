"""Compiled or plain: compiled where the input is large, numba can be imported and nobody asked for plain Python.

Loading a module of compiled loops takes a third of a second, and compiling it for the first time ever some seconds;
plain Python reads what is small long before that.  So a module is imported here alone, when it pays.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import logging
import os
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

from migrate.model.trusted import cache_directory, distrust_of

LOG: Final = logging.getLogger("migrate.accelerated")
VARIABLE: Final = "KRAFT_MIGRATE_KERNELS"
OFF: Final = ("off", "no", "0", "false")
COMPILED: Final = 4  # what is compiled already pays for inputs that are so many times smaller

_asked: Counter[str] = Counter()  # by module, the size of all inputs
_logged: set[str] = set()
_failed: dict[str, str] = {}  # by module, why it cannot be loaded; "": it is loaded


def ready(name: str, size: int, least: int) -> bool:
    """May `migrate.accelerated.<name>` be used for an input of `size` (rows, bytes) now?

    False where all inputs that this process has asked for are smaller than `least` together (a quarter of it, where
    the code is compiled already; an executor of Spark's reads cluster after cluster), where `KRAFT_MIGRATE_KERNELS=off`
    (or `--no-kernels`) asks for plain Python, and where numba or the module cannot be loaded: the latter two are
    logged, once each.
    """
    _asked[name] += size
    if _failed.get(name) != "" and _asked[name] < (least // COMPILED if _is_compiled(name) else least):
        return False
    if os.environ.get(VARIABLE, "").strip().lower() in OFF:
        return _log(f"{name}: plain Python is used, as {VARIABLE}=off asks")
    if name not in _failed:
        _load(name)
    if reason := _failed[name]:
        return _log(f"{name}: plain Python is used, for the compiled loops cannot be loaded: {reason}")
    return True


def kernels(name: str) -> Any:
    """The module `migrate.accelerated.<name>`, once it is ready."""
    return importlib.import_module(f"{__package__}.{name}")


def _load(name: str) -> None:
    """Import it, which compiles it where no earlier process did; a failure is kept, and never raised."""
    start = time.monotonic()
    try:
        kernels(name)
    except Exception as error:  # noqa: BLE001 - numba raises anything; plain Python does the same work
        _failed[name] = f"{type(error).__name__}: {error}"
        return
    _failed[name] = ""
    LOG.debug("%s: loaded in %.1f s", name, time.monotonic() - start)


def _log(line: str) -> bool:
    """Log it, once; False."""
    if line not in _logged:
        _logged.add(line)
        LOG.info(line)
    return False


# -- numba's cache ---------------------------------------------------------------------------------------------------
def cache_folder() -> Path:
    """Where numba keeps what it compiled of these sources.

    Numba notices a change of the module that it compiled, of its own version and of the processor; not one of the
    modules that this one imports.  So the folder's name changes with all sources.

    Raises:
        PackageNotFoundError: numba is not installed.
        OSError: this package lies in an archive, as on Spark's executors: its sources are not seen.
    """
    if not Path(__file__).is_file():
        raise OSError("the package is in an archive")
    base = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(base) if base else cache_directory() / "kernels") / _sources()


@cache
def _sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    digest.update(repr([importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")]).encode())
    return digest.hexdigest()[:20]


def usable_cache() -> Path | None:
    """The cache's folder, made where it is not there; None where it cannot be used, or others could have written it.

    Numba runs what it finds there.
    """
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        why = distrust_of(folder, *folder.rglob("*"))
    except OSError as error:
        why = str(error)
    if why:
        LOG.info("compiled loops are not kept, and none that were kept are used: %s", why)
        return None
    return folder


def _is_compiled(name: str) -> bool:
    """Has an earlier process compiled that module?"""
    try:
        return any(cache_folder().glob(f"*/{name}.*.nbi"))
    except (OSError, importlib.metadata.PackageNotFoundError):
        return False
