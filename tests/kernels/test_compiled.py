"""The decorator of kernels, and where their code is kept."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from migrate.kernels import compiled

SOURCE = '''
from migrate.kernels.compiled import BYTES, LONG, helper, kernel

@helper
def twice(number):
    """2x."""
    return 2 * number

@kernel(LONG, BYTES, reference="builtins.sum")
def total(values):
    """The sum of all, doubled."""
    found = 0
    for value in values:
        found += twice(value)
    return found
'''


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    return tmp_path / "cache" / "kraft-migrate" / "kernels"


def loaded(folder: Path) -> Any:
    """A module with one kernel."""
    path = folder / "some_kernels.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("some_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["some_kernels"] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["some_kernels"]
    return module


def files(folder: Path) -> set[Path]:
    """All in it."""
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_kernel_is_kept_in_the_users_cache_and_never_beside_its_source(cache: Path, tmp_path: Path) -> None:
    """The package may be installed where nobody writes; the second process finds the code."""
    values = np.arange(10, dtype=np.uint8)
    source = tmp_path / "source"
    source.mkdir()
    first = loaded(source).total
    assert first(values) == 90
    kept = files(cache)
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    again = loaded(source).total
    assert again(values) == 90
    assert sum(again.stats.cache_hits.values()) == 1
    assert files(cache) == kept
    assert [path.name for path in files(source)] == ["some_kernels.py"]
    assert not numba.config.CACHE_DIR, "other users of numba keep theirs"
    assert "Reference: builtins.sum." in again.__doc__


def test_a_map_of_a_file_which_is_read_only_is_taken(cache: Path, tmp_path: Path) -> None:
    """And nothing else than bytes is: no other code is ever compiled."""
    total = loaded(tmp_path).total
    assert total(np.frombuffer(b"\x01\x02", np.uint8)) == 6
    with pytest.raises(TypeError):
        total(np.zeros(3))


def test_a_damaged_cache_costs_time_only(cache: Path, tmp_path: Path) -> None:
    """Its code is compiled again."""
    loaded(tmp_path)
    for path in files(cache):
        path.write_bytes(b"torn")
    assert loaded(tmp_path).total(np.ones(3, np.uint8)) == 6


def test_a_cache_that_cannot_be_written_costs_time_only(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder can be made where a file stands."""
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    assert loaded(tmp_path).total(np.ones(3, np.uint8)) == 6


def test_the_caches_folder_changes_with_the_kernels_sources() -> None:
    """Numba looks at one file only; ours looks at the package."""
    name = compiled._contents()
    assert len(name) == 20
    compiled._contents.cache_clear()
    assert compiled._contents() == name
