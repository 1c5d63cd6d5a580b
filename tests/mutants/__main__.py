"""`python -m tests mutants`: which small mistakes in the modules that decide would no test notice?

Prints each survivor with its place, the old text and the new one; keeps every result in build/mutants.jsonl, and
writes docs/runs/mutants.md.  Runs at the lowest priority.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.modules import GROUPS
from tests.mutants.mutations import Mutant
from tests.mutants.page import PAGE, page, results
from tests.mutants.trial import End, Trials

FAST = "not (zookeeper or spark or kafka or hosts or explorer or long)"
KEPT = Path("build/mutants.jsonl")


def main(words: list[str]) -> int:
    """0: every mistake that was tried was noticed, or has its reason."""
    parser = argparse.ArgumentParser(prog="python -m tests mutants", description=__doc__)
    parser.add_argument("--module", action="append", help="one module or group, such as migrate.steps.gates or steps")
    parser.add_argument("--sample", type=int, help="that many mistakes per module")
    parser.add_argument("--seed", default="0", help="draws another sample")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no mistake after that time")
    parser.add_argument("--tests", nargs="+", help="these tests instead of those that belong to the module")
    parser.add_argument("--resume", action="store_true", help="leave out what a test noticed in an earlier run")
    parser.add_argument("--survivors", action="store_true", help="only what no test noticed in an earlier run")
    parser.add_argument("--match", default="", help="only mistakes whose name has this text")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    asked = parser.parse_args(words)
    if not asked.page:
        os.nice(max(0, 15 - os.nice(0)))
        KEPT.parent.mkdir(exist_ok=True)
        until = time.monotonic() + 60 * asked.minutes if asked.minutes else float("inf")
        for group, (modules, tests) in GROUPS.items():
            chosen = [name for name in modules if not asked.module or {name, group} & set(asked.module)]
            if chosen:
                _run(asked, chosen, asked.tests or tests, until)
    text, unexplained = page(results(KEPT))
    PAGE.write_text(text, encoding="utf-8")
    return 1 if unexplained else 0


def _run(asked: argparse.Namespace, modules: list[str], tests: Sequence[str], until: float) -> None:
    """Try the mistakes of a group in a process of its own."""
    known = results(KEPT)
    noticed = {key for key, (end, _) in known.items() if end.startswith("killed")}
    skipped = noticed if asked.resume or asked.survivors else set()

    def wanted(found: list[Mutant]) -> list[Mutant]:
        left = [mutant for mutant in found if mutant.key not in skipped and asked.match in mutant.key]
        if asked.survivors:
            return [mutant for mutant in left if mutant.key in known]
        if asked.sample is None:
            return left
        drawn = sorted(left, key=lambda mutant: hashlib.sha256(f"{asked.seed} {mutant.key}".encode()).digest())
        return sorted(drawn[: asked.sample], key=lambda mutant: mutant.line)

    def report(mutant: Mutant, end: End, by: str) -> None:
        with KEPT.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps({"key": mutant.key, "end": end, "by": by}) + "\n")
        if not end.startswith("killed"):
            file = mutant.module.replace(".", "/")
            print(f"{file}.py:{mutant.line}: {end} {by}\n  - {mutant.old}\n  + {mutant.new}", flush=True)

    child = os.fork()
    if not child:
        quick = ["-q", "-s", "-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=none", "-m", FAST]
        code = pytest.main([*quick, *tests], plugins=[Trials(modules, wanted, report, until)])
        os._exit(int(code))
    os.waitpid(child, 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
