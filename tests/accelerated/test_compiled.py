"""Loops are compiled once, kept in the user's cache, and take nothing but what they were compiled for."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from migrate.accelerated import choice
from migrate.accelerated.metadata_columns import Columns
from tests.bench.checkpoints import write

SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
import numpy as np
import migrate.accelerated
from migrate.accelerated import choice
migrate.accelerated.__path__.append({folder!r})
if not choice.ready("trial", 1, 0):
    sys.exit(1)
total = choice.kernels("trial").total
print(total(np.arange(10, dtype=np.uint8)), "kept" if total.stats.cache_hits else "compiled")
"""
SOURCE = '''
from migrate.accelerated.compiled import BYTES, LONG, helper, kernel

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
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    return tmp_path / "cache" / "kraft-migrate" / "kernels"


def run(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """A new process with a compiled loop of its own."""
    source = tmp_path / "sources" / "trial.py"
    source.parent.mkdir(exist_ok=True)
    if not source.exists():
        source.write_text(SOURCE)
    script = SCRIPT.format(folder=str(source.parent))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def total(tmp_path: Path) -> tuple[str, str, str]:
    """What such a process has from its loop, how it came by the code, and what it logs."""
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    found, how = done.stdout.split()
    return found, how, done.stderr


def files(folder: Path) -> set[Path]:
    """All in it."""
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_compiled_code_is_kept_in_the_users_cache_and_never_beside_its_source(cache: Path, tmp_path: Path) -> None:
    """The package may be installed where nobody writes; the second process finds the code."""
    assert total(tmp_path)[:2] == ("90", "compiled")
    kept = files(cache)
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}
    assert total(tmp_path)[:2] == ("90", "kept")
    assert files(cache) == kept
    assert [path.name for path in files(tmp_path / "sources") if path.suffix != ".pyc"] == ["trial.py"]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["", ".nbi", ".nbc"])
@pytest.mark.parametrize("spoil", ["writable by others", "of another user"])
def test_machine_code_that_another_user_could_have_written_is_not_loaded(
    cache: Path, tmp_path: Path, which: str, spoil: str
) -> None:
    """By its folder or by one of its two files; whole as it is, it is compiled anew and gives the same."""
    if spoil == "of another user" and os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    total(tmp_path)
    found = [path for path in files(cache) if path.suffix == which] if which else [choice.cache_folder()]
    assert len(found) == 1
    for path in found:
        if spoil == "of another user":
            os.chown(path, 65534, 65534)
        else:
            path.chmod(path.stat().st_mode | stat.S_IWOTH)
    doubled, how, logged = total(tmp_path)
    assert (doubled, how) == ("90", "compiled")
    assert f"none that were kept are used: {found[0]}: its" in logged.replace(": it belongs", ": its")


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_time_only(cache: Path, tmp_path: Path) -> None:
    """No folder can be made where a file stands."""
    cache.parent.mkdir(parents=True)
    cache.write_text("a file")
    assert total(tmp_path)[:2] == ("90", "compiled")


@pytest.mark.slow
def test_a_damaged_cache_is_left_to_plain_python(cache: Path, tmp_path: Path) -> None:
    """Numba writes each file whole; one that is not is never run, and the log says so."""
    total(tmp_path)
    for path in sorted(files(cache)):
        path.write_bytes(b"torn")
    assert "plain Python is used, for the compiled loops cannot be loaded: Unpickling" in run(tmp_path).stderr


@pytest.mark.slow
def test_a_loop_takes_nothing_but_what_it_was_compiled_for(tmp_path: Path) -> None:
    """A wrong array would be read as if it were right; in a tuple each one is looked at."""
    assert choice.ready("metadata", 1, 0)
    decode = choice.kernels("metadata").decode
    path = tmp_path / "one.checkpoint"
    write(path, 10)
    raw = np.frombuffer(path.read_bytes(), np.uint8)
    columns = [np.zeros((9, 32), np.int32) for _ in Columns._fields]
    for wrong in (raw[::2], raw.reshape(1, -1), np.zeros(3), [1, 2], None):
        with pytest.raises(TypeError):
            decode(wrong, 1, Columns(*columns))
    with pytest.raises(TypeError):
        decode(raw, 1, Columns(*columns))
