"""Kernels are compiled once, kept as machine code, and take nothing but what they were compiled for."""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import types

from migrate.kernels import choice, compiled, machine_code, row_print_columns
from migrate.kernels.metadata_columns import Columns
from tests.bench.checkpoints import write

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
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
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


def compiling(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are compiled from now on."""
    found: list[str] = []
    real = compiled.compile_

    def counted(function: Any, *arguments: Any) -> Any:
        found.append(function.__name__)
        return real(function, *arguments)

    monkeypatch.setattr(compiled, "compile_", counted)
    return found


def test_a_kernel_is_kept_in_the_users_cache_and_never_beside_its_source(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package may be installed where nobody writes; the second process finds the code."""
    made = compiling(monkeypatch)
    values = np.arange(10, dtype=np.uint8)
    source = tmp_path / "source"
    source.mkdir()
    first = loaded(source).total
    assert first(values) == 90
    kept = files(cache)
    assert {path.suffix for path in kept} == {".o", ".json"}
    again = loaded(source).total
    assert again(values) == 90
    assert made == ["total"]
    assert files(cache) == kept
    assert [path.name for path in files(source) if path.suffix != ".pyc"] == ["some_kernels.py"]  # Python's own
    assert "Reference: builtins.sum." in again.__doc__


def test_kept_code_needs_no_numba(cache: Path, tmp_path: Path) -> None:
    """A process that finds the code loads neither numba nor the kernel's module."""
    source = tmp_path / "some_kernels.py"
    loaded(tmp_path)
    script = f"""
import sys
sys.modules["numba"] = None
from pathlib import Path
from migrate.kernels import machine_code
import numpy as np
(name,) = machine_code.names_in(Path({str(source)!r}))
code = machine_code.kept("some_kernels", name)
print(machine_code.Native(code, machine_code.engine_of(code.machine))(np.arange(10, dtype=np.uint8)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "90\n", done.stderr


@pytest.mark.slow
def test_the_products_kernels_are_all_found_and_loaded_without_numba(tmp_path: Path) -> None:
    """Compiled here at the latest; the next process imports nothing for them."""
    names = ("metadata", "znodes", "znode_digests")
    for name in names:
        assert choice.ready(name, 1, 0)
        choice.kernels(name)
    script = f"""
import sys
from migrate.kernels import choice
print([choice.ready(name, 1, 0) for name in {names!r}], "numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == f"{[True] * len(names)} False\n", done.stderr


def test_a_map_of_a_file_which_is_read_only_is_taken(cache: Path, tmp_path: Path) -> None:
    """And nothing else than bytes is: whatever is no such array is refused before any code sees it."""
    total = loaded(tmp_path).total
    assert total(np.frombuffer(b"\x01\x02", np.uint8)) == 6
    whole = np.zeros(8, np.uint8)
    for wrong in (np.zeros(3), whole[::2], whole.reshape(2, 4), [1, 2], b"ab", None):
        with pytest.raises(TypeError):
            total(wrong)
    with pytest.raises(TypeError):
        total()
    with pytest.raises(TypeError):
        total(whole, whole)


def test_what_a_kernel_writes_to_must_be_writable(tmp_path: Path) -> None:
    """And in a tuple each array is looked at."""
    decode = choice.kernels("metadata").decode
    path = tmp_path / "one.checkpoint"
    write(path, 10)
    shapes = {"rows": (9, 32), "members": (9,)}
    columns = [np.zeros(shapes.get(name, (9, 32)), np.int32) for name in Columns._fields]
    for one in columns:
        one.flags.writeable = False
    with pytest.raises(TypeError):
        decode(np.frombuffer(path.read_bytes(), np.uint8), 1, Columns(*columns))


@pytest.mark.slow
def test_a_damaged_cache_costs_time_only(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is not whole, or is not told of, is compiled again and never run."""
    loaded(tmp_path)
    made = compiling(monkeypatch)
    for path in sorted(files(cache)):
        whole = path.read_bytes()
        for damaged in (b"torn", b"", whole[:-1], bytes([whole[0] ^ 1]) + whole[1:]):
            path.write_bytes(damaged)
            assert loaded(tmp_path).total(np.ones(3, np.uint8)) == 6
    assert len(made) == 8
    told = next(path for path in files(cache) if path.suffix == ".json")
    told.write_text(json.dumps({"symbol": "x"}))
    assert loaded(tmp_path).total(np.ones(3, np.uint8)) == 6
    assert len(made) == 9


def test_a_cache_that_cannot_be_written_costs_time_only(cache: Path, tmp_path: Path) -> None:
    """No folder can be made where a file stands."""
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    assert loaded(tmp_path).total(np.ones(3, np.uint8)) == 6


def test_the_caches_folder_changes_with_sources_compilers_and_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled for another is never loaded."""
    name = machine_code._made_of()
    assert len(name) == 20
    machine_code._made_of.cache_clear()
    assert machine_code._made_of() == name
    for place, value in (("llvm.get_host_cpu_name", lambda: "another"), ("importlib.metadata.version", lambda _: "0")):
        with monkeypatch.context() as patch:
            patch.setattr(f"migrate.kernels.machine_code.{place}", value)
            machine_code._made_of.cache_clear()
            assert machine_code._made_of() != name
    machine_code._made_of.cache_clear()


def test_a_tuple_of_tuples_is_kept_as_it_was_and_passed_member_by_member(cache: Path) -> None:
    """Lists of equal arrays are numba's NamedUniTuple: rows of partitions hold four of them."""
    assert not cache.exists()
    numbas: Any = types
    lists = numbas.NamedUniTuple(compiled.INTS, 2, row_print_columns.Lists)
    rows = numbas.NamedTuple((compiled.INTS, lists), collections.namedtuple("Rows", "topic replicas"))  # noqa: PYI024
    told = compiled._told(rows)
    ints = machine_code.ArrayType("int32", 1, readonly=True)
    assert told == [ints, [ints, ints]]
    code = machine_code.Code("symbol", [told, machine_code.NUMBER], returns=False, machine=b"code")
    machine_code.keep("some.module", "some", code)
    assert machine_code.kept("some.module", "some") == code
    one, two = np.arange(3, dtype=np.int32), np.arange(5, dtype=np.int32)
    values = machine_code._values((one, (two, one)), told)
    assert values == [*machine_code._flat(one, ints), *machine_code._flat(two, ints), *machine_code._flat(one, ints)]
    with pytest.raises(TypeError, match="is taken, not"):
        machine_code._values((one, two), told)


@pytest.mark.parametrize("which", ["", ".o", ".json"])
@pytest.mark.parametrize("spoil", ["writable by others", "of another user"])
def test_machine_code_that_another_user_could_have_written_is_not_loaded(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, spoil: str
) -> None:
    """By its folder or by one of its two files; whole as it is, the kernel is compiled anew and gives the same."""
    if spoil == "of another user" and os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    loaded(tmp_path)
    (module,) = {path.name.partition(".total")[0] for path in files(cache)}
    found = [path for path in files(cache) if path.suffix == which] if which else [machine_code.folder()]
    assert machine_code.kept(module, "total") is not None
    for path in found:
        if spoil == "of another user":
            os.chown(path, 65534, 65534)
        else:
            path.chmod(path.stat().st_mode | stat.S_IWOTH)
    assert len(found) == 1
    assert machine_code.kept(module, "total") is None
    made = compiling(monkeypatch)
    assert loaded(tmp_path).total(np.ones(3, np.uint8)) == 6
    assert made == ["total"]
