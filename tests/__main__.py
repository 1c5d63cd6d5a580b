"""All tests of the project: `python -m tests`.  Lint, types and import contracts first, then every tier.

First the tests that start nothing, in two processes, then benchmarks and the explorer in one.  Hosts mostly wait, and
run beside these; what they print follows when they have ended.  Last come the tests that start Kafka, ZooKeeper or
Spark, in two processes with each file in one of them.
`python -m tests fast` runs of the first part what takes little, with the same checks first;
`python -m tests lint` runs the checks alone.  Any other words are handed to pytest
(`python -m tests tests/cli -k plan`, `python -m tests -m kafka`).  The first check that fails ends it, with its exit
code; of the tests every part runs, and the first part that fails gives the exit code.  A part without tests has failed.
`python -m tests mutants` puts small mistakes into the modules that decide and names those that no test notices
(`python -m tests mutants --help`).  `python -m tests fuzz` damages files that people hand over and names each reader
that does not end typed (`python -m tests fuzz --help`).  `python -m tests features` compares what the tool offers with
the kept list.  `python -m tests lowest` runs fast tests with the oldest versions that setup.py allows (see
`tests/lowest.py`).  `python -m tests release OUT` makes all files of a release (docs/releasing.md).  The whole takes
half an hour on two cores; its tiers are markers: `slow`, `bench`, `zookeeper`, `spark`, `kafka`, `explorer`, `hosts`
(part of it) and `long` (not part of it).
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from tests import lowest, release

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("types", [str(BIN / "mypy")]),
    ("import contracts", [str(BIN / "lint-imports")]),
)
PYTEST = [sys.executable, "-m", "pytest"]
CLUSTERS = "zookeeper or spark or kafka"  # processes of their own
ALONE = "bench or explorer"  # both cores
FAST = f"not (slow or {CLUSTERS} or {ALONE} or hosts or long)"
PROCESSES = ["-n", "2", "--dist"] if importlib.util.find_spec("xdist") else []
BY_TEST = [*PROCESSES, "worksteal"] if PROCESSES else []
BY_FILE = [*PROCESSES, "loadfile"] if PROCESSES else []
SLOWEST = "--durations=15"
PARTS: tuple[tuple[str, list[str]], ...] = (
    ("hosts and not long", [SLOWEST]),  # beside the next two
    (f"not ({CLUSTERS} or {ALONE} or hosts or long)", BY_TEST),
    (f"({ALONE}) and not (hosts or long)", [SLOWEST]),
    (f"({CLUSTERS}) and not ({ALONE} or hosts or long)", [*BY_FILE, SLOWEST]),
)


def main(words: list[str]) -> int:
    """Exit code of the first check that fails, else of pytest."""
    if words in (["-h"], ["--help"]):
        print((__doc__ or "").strip())
        print("\npytest's own help: python -m pytest --help")
        return 0
    os.chdir(ROOT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every process that a test starts would compile all modules
    if words == ["lowest"]:
        return lowest.run(FAST)
    if words[:1] == ["release"]:
        return release.run(words[1:])
    if words[:1] in (["mutants"], ["fuzz"], ["features"]):
        return subprocess.run([sys.executable, "-m", f"tests.{words[0]}", *words[1:]], check=False).returncode
    if not words or words in (["fast"], ["lint"]):
        for name, command in CHECKS:
            print(f"== {name}", flush=True)
            code = subprocess.run(command, check=False).returncode
            if code:
                print(f"{name} failed", flush=True)
                return code
    if words == ["lint"]:
        return 0
    print("== tests", flush=True)
    if words and words != ["fast"]:
        return subprocess.run([*PYTEST, *words], check=False).returncode
    codes = [_run(FAST, BY_TEST)] if words else _all_parts()
    return next(filter(None, codes), 0)


def _run(marked: str, how: list[str], output: IO[bytes] | None = None) -> int:
    return subprocess.run(
        [*PYTEST, "-m", marked, *how], check=False, stdout=output, stderr=subprocess.STDOUT if output else None
    ).returncode


def _all_parts() -> list[int]:
    """Exit codes of all parts.  Hosts run in a thread: an interrupt ends their pytest with this process's group."""
    hosts, *others, clusters = PARTS
    with tempfile.TemporaryFile() as output, ThreadPoolExecutor(1) as beside:
        print("hosts run beside the next tests; what they print follows", flush=True)
        ended = beside.submit(_run, *hosts, output)
        codes = [_run(*part) for part in others]
        codes.insert(0, ended.result())
        output.seek(0)
        sys.stdout.write(output.read().decode(errors="replace"))
        sys.stdout.flush()
    return [*codes, _run(*clusters)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
