"""The distribution's own Python reads what people and hosts hand over: Debian 12 has 3.11.2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PYTHON = Path("/usr/bin/python3")
SECONDS = 400
TESTS = (
    "tests/hosts/test_remote_files_metadata.py",
    "tests/hosts/manual/test_instructions_metadata.py",
    "tests/model/test_plain_tar.py",
    "tests/model/test_strict_json.py",
)
TELL = "import sys; print(*sys.version_info[:3], sys.implementation.name)"


def test_the_tests_that_are_handed_over_exist() -> None:
    """A run names them by path, and a path that went fails only where the slow tests run."""
    assert [name for name in TESTS if not (ROOT / name).is_file()] == []


@pytest.mark.slow
def test_handed_files_and_metadata_of_hosts_are_read_by_the_distributions_python() -> None:
    """The same tests, run by it with this environment's packages: what a later Python brought would fail there."""
    if not PYTHON.exists():
        pytest.skip(f"there is no {PYTHON}")
    told = subprocess.run([PYTHON, "-c", TELL], capture_output=True, text=True, check=True).stdout.split()
    mine = [*map(str, sys.version_info[:3]), sys.implementation.name]
    if told == mine:
        pytest.skip(f"{PYTHON} is Python {'.'.join(told[:3])}: it runs these tests already")
    if (told[:2], told[3]) != (mine[:2], mine[3]):
        pytest.skip(f"{PYTHON} is Python {'.'.join(told[:3])}: it cannot load this environment's packages")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *packages]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
