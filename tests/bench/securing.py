"""What TLS, logins and ACLs cost the demo: `lab demo --secured` against `lab demo`, in turn, in pairs.

    python -m tests.bench.securing [--pairs N] [--no-load] [--json FILE]

A ratio is the median of the pairs'; which of the two goes first changes from pair to pair, and the machine's load
before each run is told, for other work on it is in every figure.  The stages' seconds are those of the journals; CPU
seconds are those of the demo and of every process under it that it waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.bench.demo import KRAFT_MIGRATE, Pass, run, say, stage_seconds, tail
from tests.bench.races import machine

PROMISE: Final = 1.25
KINDS: Final = {"plain": (), "secured": ("--secured",)}


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo to its end: seconds, also by stage; CPU seconds; the machine's load in the minute before it."""

    seconds: float
    cpu: float
    load: float
    stages: dict[str, float]


Pair = dict[str, Demo]
Runner = Callable[[Sequence[str]], Pass]


def paired(pairs: int, scratch: Path, more: Sequence[str] = (), runner: Runner = run) -> list[Pair]:
    """All pairs; RuntimeError where a demo does not get to its end, for then there is no figure."""
    found: list[Pair] = []
    for number in range(pairs):
        pair: Pair = {}
        for kind in KINDS if number % 2 == 0 else reversed(KINDS):
            pair[kind] = demo(scratch / f"{kind}-{number}", (*KINDS[kind], *more), runner)
            one = pair[kind]
            spent = f"{one.seconds:.1f} s, {one.cpu:.0f} s of CPU, load {one.load:.1f}"
            say(f"pair {number + 1} of {pairs}, {kind}: {spent}")
        found.append(pair)
    return found


def demo(directory: Path, words: Sequence[str], runner: Runner) -> Demo:
    """One of them, in a folder that is taken away afterwards."""
    load = os.getloadavg()[0]
    done = runner([*KRAFT_MIGRATE, "lab", "demo", "--dir", str(directory), *words])
    if done.code:
        runner([*KRAFT_MIGRATE, "lab", "down", "--dir", str(directory)])
        msg = f"the demo {' '.join(words)} ended with {done.code}: {tail(done)}"
        raise RuntimeError(msg)
    stages = stage_seconds(directory, done.seconds)
    shutil.rmtree(directory, ignore_errors=True)
    return Demo(done.seconds, done.cpu, load, stages)


def ratio(pairs: Sequence[Pair]) -> float:
    """Secured to plain: the median of the pairs'."""
    return statistics.median(pair["secured"].seconds / pair["plain"].seconds for pair in pairs)


def by_stage(pairs: Sequence[Pair]) -> list[tuple[str, float, float]]:
    """(stage, seconds plain, seconds secured): the means, in the order of the first plain run."""

    def mean(kind: str, stage: str) -> float:
        return statistics.mean(pair[kind].stages.get(stage, 0.0) for pair in pairs)

    return [(stage, mean("plain", stage), mean("secured", stage)) for stage in pairs[0]["plain"].stages]


def as_markdown(pairs: Sequence[Pair]) -> str:
    """The tables."""
    found = ratio(pairs)
    lines = ["| pair | plain: s, CPU s, load | secured: s, CPU s, load | ratio |", "|---|---|---|---|"]
    for number, pair in enumerate(pairs, start=1):
        told = [f"{one.seconds:.1f}, {one.cpu:.0f}, {one.load:.1f}" for one in (pair["plain"], pair["secured"])]
        lines.append(f"| {number} | {' | '.join(told)} | {pair['secured'].seconds / pair['plain'].seconds:.2f} |")
    verdict = "holds" if found <= PROMISE else "DOES NOT HOLD"
    lines += ["", f"secured / plain: {found:.2f}; promised <= {PROMISE}: {verdict}", ""]
    lines += ["| stage | plain s | secured s |", "|---|---|---|"]
    lines += [f"| {stage} | {plain:.1f} | {secured:.1f} |" for stage, plain, secured in by_stage(pairs)]
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="The secured demo against the plain one.")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--no-load", action="store_true", help="without records written and read all the time")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="securing-") as folder:
        pairs = paired(options.pairs, Path(folder), ("--no-load",) if options.no_load else ())
    sys.stdout.write(f"{machine()}\n\n{as_markdown(pairs)}")
    if options.json:
        options.json.write_text(
            json.dumps([{kind: asdict(one) for kind, one in p.items()} for p in pairs], indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
