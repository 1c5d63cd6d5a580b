"""The race of the demo: `lab demo` without load, with its plans, proofs and report, against the barest script.

The script (`tests/bench/floor.py`) takes the same topology, seed and heaps through the same stages and
waits only for what its next change cannot do without.  There is no small form: a lab has one size.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from migrate.java.jars import cached_jars
from tests.bench.comparing import nothing
from tests.bench.demo import KRAFT_MIGRATE, run, tail
from tests.bench.races import Race, Side, Work

PARTITIONS: Final = 137  # of the seeded lab, with 361 replicas


def no_jars() -> str:
    """Why a lab cannot be started here, if it cannot: fetching Kafka would be in the figure."""
    return "" if cached_jars() else "Kafka's jars are not in the cache: `lab up` brings them"


def whole(command: Sequence[str]) -> Side:
    """A migration from nothing to finalized, in the folder named at the command's end."""

    @contextmanager
    def side(folder: Path, _size: int) -> Iterator[Work]:
        done = []

        def timed() -> str:
            place = folder / f"lab-{len(list(folder.iterdir()))}"
            done.append(run([part.replace("DIR", str(place)) for part in command]))
            if done[-1].code:
                raise RuntimeError(f"ended with {done[-1].code}: {tail(done[-1])}")
            return "migrated"

        yield Work(timed, str, cold=True)

    return side


RACES: Final = (
    Race(
        "demo without load",
        PARTITIONS,
        promise=1.4,
        at_most=True,
        around=nothing,
        sides={
            "ours": whole([*KRAFT_MIGRATE, "lab", "demo", "--dir", "DIR", "--no-load"]),
            "peer": whole([sys.executable, "-m", "tests.bench.floor", "DIR"]),
        },
        once="restarts are what it spends its time on, not partitions",
        least=PARTITIONS,
        lacks=no_jars,
        peer="the bare script",
        note="peak is that of the largest process alone",
    ),
)
