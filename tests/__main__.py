"""All tests of the project: `python -m tests`.  Lint, types and import contracts first, then every part.

Hosts mostly wait, and run beside the tests that start nothing and the explorer; what they print follows when they have
ended.  Last come the tests that start Kafka, ZooKeeper or Spark, in two processes with each file in one of them.

`python -m tests fast` runs of the first part what takes little, with the same checks first; `python -m tests lint` runs
the checks alone.  `unit`, `explorer`, `hosts` and `clusters` run one part, as CI does side by side.  Two are not part
of a commit's run: `bench`, and `long`, which takes hours and runs before a release; `python -m tests long -k rollback`
runs some of it.  Any other words are handed to pytest (`python -m tests tests/cli -k plan`, `-m kafka`).

The first check that fails ends it, with its exit code; of the tests every part runs, and the first part that fails
gives the exit code.  A part without tests has failed.  Real processes on a busy machine may fail a test that holds:
where one or two tests of hosts or clusters failed, they are run once more, alone, and the end of the output names them
either way.

`python -m tests mutants` puts small mistakes into the modules that decide and names those that no test notices
(`python -m tests mutants --help`).  `python -m tests fuzz` damages files that people hand over and names each reader
that does not end typed (`python -m tests fuzz --help`).  `python -m tests features` compares what the tool offers with
the kept list.  `python -m tests lowest` runs fast tests with the oldest versions that setup.py allows (see
`tests/lowest.py`).  `python -m tests release OUT` makes all files of a release (docs/releasing.md).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
TWO = ("-n", "2", "--dist") if importlib.util.find_spec("xdist") else ()
BY_TEST = (*TWO, "worksteal") if TWO else ()
BY_FILE = (*TWO, "loadfile") if TWO else ()
SLOWEST = "--durations=15"
CLUSTERS = "zookeeper or spark or kafka"
AGAIN = 2  # failed tests of one part that are run once more: more than these are no accident


@dataclass(frozen=True, slots=True)
class Part:
    """Tests that one pytest runs: by their markers, in the files that name one of these."""

    marked: str
    how: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # markers: only files that name one are collected; () for every file
    again: bool = False


PARTS = {
    "hosts": Part("hosts and not (bench or long)", (SLOWEST,), ("hosts",), again=True),
    "unit": Part(f"not ({CLUSTERS} or bench or explorer or hosts or long)", BY_TEST),
    "explorer": Part("explorer and not (hosts or bench or long)", (SLOWEST,), ("explorer",)),
    "clusters": Part(
        f"({CLUSTERS}) and not (bench or explorer or hosts or long)",
        (*BY_FILE, SLOWEST),
        ("zookeeper", "spark", "kafka"),
        again=True,
    ),
}
NOT_OF_A_COMMIT = {
    "bench": Part("bench and not long", (SLOWEST,), ("bench",)),
    "long": Part("long", (SLOWEST,), ("long",)),
}
FAST = f"not (slow or {CLUSTERS} or bench or explorer or hosts or long)"


def main(words: list[str]) -> int:
    """Exit code of the first check that fails, else of pytest."""
    if words in (["-h"], ["--help"]):
        print((__doc__ or "").strip())
        print("\npytest's own help: python -m pytest --help")
        return 0
    os.chdir(ROOT)
    first, *others = words or [""]
    if words == ["lowest"]:
        return lowest.run(FAST)
    if first == "release":
        return release.run(others)
    if first in ("mutants", "fuzz", "features"):
        return subprocess.run([sys.executable, "-m", f"tests.{first}", *others], check=False).returncode
    if words in ([], ["fast"], ["lint"]):
        code = _checks()
        if code or words == ["lint"]:
            return code
    if not words:
        return _all_parts()
    if words == ["fast"]:
        return _pytest(Part(FAST, BY_TEST))
    part = {**PARTS, **NOT_OF_A_COMMIT}.get(first)
    return _run(first, part, others) if part else _call(words)


def _checks() -> int:
    for name, command in CHECKS:
        print(f"== {name}", flush=True)
        code = subprocess.run(command, check=False).returncode
        if code:
            print(f"{name} failed", flush=True)
            return code
    return 0


def naming(markers: tuple[str, ...]) -> list[str]:
    """The test files whose text has one of these markers: collecting all files costs half a minute each time.

    `parts` of `tests/testing/tiers.py` gives the marker `long`.
    """
    marks = re.compile(rf"\bmark\.({'|'.join(markers)})\b" + (r"|\bimport parts\b" if "long" in markers else ""))
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if marks.search(path.read_text(encoding="utf-8"))]


def _call(words: list[str], output: IO[bytes] | None = None) -> int:
    stderr = subprocess.STDOUT if output else None
    return subprocess.run([*PYTEST, *words], check=False, stdout=output, stderr=stderr).returncode


def _pytest(part: Part, words: tuple[str, ...] = (), output: IO[bytes] | None = None) -> int:
    files = naming(part.files) if part.files and not any(word.startswith("tests") for word in words) else []
    return _call(["-m", part.marked, *part.how, *words, *files], output)


def _run(name: str, part: Part, words: list[str] | None = None, output: IO[bytes] | None = None) -> int:
    """A part's exit code.  Of a part that starts real processes, one or two tests that failed are run once more."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as cache:
        code = _pytest(part, ("-o", f"cache_dir={cache}", *(words or ())), output)
        kept = Path(cache, "v", "cache", "lastfailed")
        failed = sorted(json.loads(kept.read_text(encoding="utf-8"))) if kept.is_file() else []
    said = [f"== {name}: {time.monotonic() - began:.0f} s, exit code {code}"]
    if part.again and code == 1 and 0 < len(failed) <= AGAIN:
        _say(f"== {name}: failed tests once more, alone", output)
        code = _call(failed, output)
        said += [f"{one} failed, and {'failed again' if code else 'passed when it was run alone'}" for one in failed]
    _say("\n".join(said), output)
    return code


def _say(text: str, output: IO[bytes] | None) -> None:
    print(text, flush=True) if output is None else output.write(f"{text}\n".encode())


def _all_parts() -> int:
    """The first exit code that is not 0.  An interrupt ends the hosts' pytest with this process's group."""
    others = dict(PARTS)
    hosts = others.pop("hosts")
    clusters = others.pop("clusters")
    with tempfile.TemporaryFile() as output, ThreadPoolExecutor(1) as beside:
        print("== tests; hosts run beside the first ones, and what they print follows", flush=True)
        ended = beside.submit(_run, "hosts", hosts, None, output)
        codes = [_run(*part) for part in others.items()]
        codes.insert(0, ended.result())
        output.seek(0)
        sys.stdout.write(output.read().decode(errors="replace"))
        sys.stdout.flush()
    codes.append(_run("clusters", clusters))
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
