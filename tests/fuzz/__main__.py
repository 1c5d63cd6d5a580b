"""`python -m tests fuzz`: damaged files put to every reader of files that people hand over, for a time.

Names each kind of bad outcome once, with the command that stores its input into the corpus.
"""

from __future__ import annotations

import argparse
import os
import random  # noqa: TID251 - seeded: the same inputs for the same words
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.drawn import drawn, in_order
from tests.fuzz.readers import READERS
from tests.fuzz.trial import Bench, Reader


def main(words: list[str]) -> int:
    """0: every input ended as it must."""
    parser = argparse.ArgumentParser(prog="python -m tests fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of all readers together")
    parser.add_argument("--reader", action="append", choices=[reader.name for reader in READERS])
    parser.add_argument("--seed", default=str(int(time.time())), help="draws the same inputs again")
    asked = parser.parse_args(words)
    os.nice(10)
    chosen = [reader for reader in READERS if not asked.reader or reader.name in asked.reader]
    share = 60 * asked.minutes / len(chosen)
    bad = Counter[str]()
    tried = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for reader in chosen:
            bench = Bench(reader, Path(folder) / reader.name)
            bad += _try(reader, bench, time.monotonic() + share, asked.seed)
            tried += bench.tried
    print(f"seed {asked.seed}: {tried} inputs, {bad.total()} bad outcomes of {len(bad)} kinds", flush=True)
    return 1 if bad else 0


def _try(reader: Reader, bench: Bench, until: float, seed: str) -> Counter[str]:
    """Half of the time in order, the rest drawn."""
    chance = random.Random(f"{seed} {reader.name}")
    half = time.monotonic() + (until - time.monotonic()) / 2
    found = Counter[str]()

    def put(raw: bytes) -> None:
        bad = bench.trial(raw)
        if bad is not None:
            name = f"{reader.name}: {bad.kind} {bad.place}"
            if not found[name]:
                print(f"{name}\n{bad.said[-600:]}\n  {bench.kept(raw)}", flush=True)
            found[name] += 1

    for raw in in_order(bench, 20_000):
        put(raw)
        if time.monotonic() > half:
            break
    while time.monotonic() < until:
        put(drawn(bench, chance.randrange))
    print(f"{reader.name}: {bench.tried} inputs, {found.total()} bad outcomes of {len(found)} kinds", flush=True)
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
