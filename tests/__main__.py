"""All tests of the project: `python -m tests`.  Lint, types and import contracts first, then every tier.

First the tests that start nothing, in two processes, then those that start Kafka, ZooKeeper, Spark or hosts, in one.
`python -m tests fast` runs of the former what takes little, with the same checks first;
`python -m tests lint` runs the checks alone. Any other words are handed to pytest
(`python -m tests tests/cli -k plan`, `python -m tests -m kafka`).  The first thing that fails ends it, with its exit
code.  `python -m tests mutants` puts small mistakes into the modules that decide and names those that no test notices
(`python -m tests mutants --help`).  `python -m tests fuzz` damages files that people hand over and names each reader
that does not end typed (`python -m tests fuzz --help`).  `python -m tests features` compares what the tool offers with
the kept list.  The whole takes about half an hour on two cores; its tiers are markers: `slow`, `bench`, `zookeeper`,
`spark`, `kafka`, `explorer`, `hosts` (part of it) and `long` (not part of it).
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
CHECKS = (
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("types", [str(BIN / "mypy")]),
    ("import contracts", [str(BIN / "lint-imports")]),
)
PYTEST = [sys.executable, "-m", "pytest"]
STARTS = "bench or zookeeper or spark or kafka or hosts or explorer"  # processes of their own, or both cores
FAST = f"not (slow or {STARTS} or long)"
ALONE = f"not ({STARTS} or long)"
STARTING = f"({STARTS}) and not long"
PROCESSES = ["-n", "2", "--dist", "worksteal"] if importlib.util.find_spec("xdist") else []


def main(words: list[str]) -> int:
    """Exit code of the first check that fails, else of pytest."""
    if words in (["-h"], ["--help"]):
        print((__doc__ or "").strip())
        print("\npytest's own help: python -m pytest --help")
        return 0
    os.chdir(ROOT)
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
    tiers = [[FAST, *PROCESSES]] if words else [[ALONE, *PROCESSES], [STARTING]]
    return max(subprocess.run([*PYTEST, "-m", *tier], check=False).returncode for tier in tiers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
