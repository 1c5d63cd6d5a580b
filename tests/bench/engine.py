"""What the engine itself costs: appending to the journal, deciding after a resume, and its share of a whole run.

    python -m tests.bench.engine [--journal FILE] [--json FILE]

| figure | promise |
|---|---|
| one line appended and fsynced | told, for the disk at hand |
| a resumed run's first decision, on a cluster in memory | < 2 s; of the process with its imports, without Spark |
| engine's own share of a real run (`--journal`) | <= 10 %: its time outside waits, effects and comparisons |

Nothing here asserts but the parser of its own figures: machines differ, and a reader judges.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from migrate.model.history import Event
from migrate.run import journal as journals
from migrate.run.journal import Journal

ROOT: Final = Path(__file__).resolve().parents[2]
LINES: Final = 300
FIRST_DECISION: Final = """
import sys, time
began = time.monotonic()
from pathlib import Path
from tests.run.test_engine import plan_for, run
from tests.testing.simulated import KillAt, Killed, SimulatedCluster
class Decided(KillAt):
    def reach(self, label):
        print(json.dumps({"seconds": time.monotonic() - began, "spark": "pyspark" in sys.modules}), flush=True)
        raise Killed
import json
cluster = SimulatedCluster.in_zookeeper_mode()
plan = plan_for(cluster)
folder = Path(sys.argv[1])
try:
    run(cluster, plan, folder, KillAt(40))
except Killed:
    pass
began = time.monotonic() if sys.argv[2] == "engine" else began
try:
    run(cluster, plan, folder, Decided())
except Killed:
    pass
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    name: str
    value: str
    promise: str
    holds: str


def appended(folder: Path) -> Figure:
    """Milliseconds a line, fsynced with its folder."""
    journal = Journal.begin(folder / "journal.jsonl", 0.0, {"plan": "p" * 64})
    taken = []
    for number in range(LINES):
        began = time.perf_counter()
        journal.append(
            float(number), "effect", {"step": "migration-mode/1", "effect": "stop", "node": "1", "detail": ""}
        )
        taken.append(1000 * (time.perf_counter() - began))
    journal.close()
    worst = max(taken)
    return Figure(
        "journal: one line, fsynced", f"median {statistics.median(taken):.2f} ms, worst {worst:.1f} ms", "told", "-"
    )


def first_decision(folder: Path, what: str) -> Figure:
    """Seconds from the start (of the process, or of the engine) to the first effect of a resumed run."""
    (folder / what).mkdir()
    command = [sys.executable, "-c", FIRST_DECISION, str(folder / what), what]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    said = json.loads(ended.stdout)
    holds = "yes" if said["seconds"] < 2 and not said["spark"] else "no"
    return Figure(f"resumed run: first decision ({what})", f"{said['seconds']:.2f} s", "< 2 s, no Spark", holds)


def own_share(events: Sequence[Event]) -> tuple[float, float]:
    """(seconds of the engine's own, seconds of the sessions), by the journal's times.

    Not its own is the time within an effect (between `effect` and `effected`), behind a `waiting` line until the next
    line, and a look whose views are kept (until the line `diff` or `ledger`), for these are Kafka's and Spark's; what
    the checks take within such a look is counted with it.
    """
    own = whole = 0.0
    for before, after in itertools.pairwise(events):
        span = after.time - before.time
        if after.name == "session":  # between two processes nobody ran
            continue
        whole += span
        theirs = before.name in ("effect", "waiting") or after.name in ("diff", "ledger", "waiting")
        if not theirs:
            own += span
    return own, whole


def share(path: Path) -> Figure:
    """Of a journal of a real run."""
    own, whole = own_share(journals.read(path).events)
    part = 100 * own / whole if whole else 0.0
    return Figure(
        "engine's own share of the run",
        f"{own:.1f} s of {whole:.1f} s ({part:.0f} %)",
        "<= 10 %",
        "yes" if part <= 10 else "no",
    )


def main(argv: Sequence[str]) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--journal", type=Path, help="A journal of a real run, for the engine's share.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = [appended(folder), first_decision(folder, "process"), first_decision(folder, "engine")]
    if options.journal is not None:
        figures.append(share(options.journal))
    print("| figure | value | promise | holds |\n|---|---|---|---|")
    for figure in figures:
        print(f"| {figure.name} | {figure.value} | {figure.promise} | {figure.holds} |")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
