"""Files are read the same with and without the optional part."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.agreeing import both_sides

SIZE = 3_000
COMMANDS = {
    "compare": ["metadata", "compare", "{folder}", "--zookeeper-files", "{folder}", "--output", "json"],
    "assess": ["assess", "--zookeeper-files", "{folder}", "--output", "json"],
}
READ = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
if {always}:
    from migrate.accelerated import packed_snapshot, topic_scan
    packed_snapshot.LEAST = topic_scan.LEAST = 0
from migrate.cli.main import main
sys.argv = ["kraft-migrate", *{command!r}]
try:
    main()
finally:
    print("numba" in sys.modules and sys.modules["numba"] is not None, file=sys.stderr)
"""


def answer(folder: Path, command: str, *missing: str, always: bool = False) -> tuple[int, Any, bool]:
    """Exit code, page, and whether compiled loops were loaded, in a process without these modules."""
    words = [word.format(folder=folder) for word in COMMANDS[command]]
    script = READ.format(missing=missing, always=always, command=words)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    page = json.loads(done.stdout)["result"]
    return done.returncode, page, done.stderr.split()[-1] == "True"


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_the_same_without_numba_and_without_the_folder(command: str, tmp_path: Path) -> None:
    """The optional part never changes an answer."""
    with both_sides(tmp_path, SIZE):
        code, page, compiled = answer(tmp_path, command, always=True)
        assert compiled, "what the others are compared with"
        for missing in (("numba",), ("numpy", "numba", "llvmlite"), ("numba", "llvmlite", "migrate.accelerated")):
            assert answer(tmp_path, command, *missing) == (code, page, False)
