"""What the demo and the quick commands cost, measured in one run on one machine, printed as Markdown and as JSON.

    python -m tests.bench.demo [--rounds N] [--quick] [--json FILE]

| figure | promise |
|---|---|
| demo without load / floor | <= 1.4, median of the rounds, interleaved |
| `--help` | < 0.3 s |
| `status` | < 1 s, importing neither pyspark nor pyarrow |
| our process with the Spark driver | <= 1.2 GB resident, peak during the demo |

Nothing here asserts: machines differ, and a reader judges.  A part that cannot be measured says so in its place.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from migrate.run import journal as journals

ROOT: Final = Path(__file__).resolve().parents[2]
KRAFT_MIGRATE: Final = (sys.executable, "-m", "migrate")
REPEATS: Final = 7
HEAVY: Final = ("pyspark", "pyarrow")
# processes of the cluster and the load: children of the demo, and not part of it
NOT_OURS: Final = ("kafka.Kafka", "QuorumPeerMain", "StorageTool", "migrate.lab.load")
SAMPLE_SECONDS: Final = 0.2
GIGABYTE: Final = 1e9
PROBE: Final = """\
import json, sys
from migrate.cli.main import cli
code = cli.main(sys.argv[1:], standalone_mode=False)
print("\\n" + json.dumps([name for name in %r if name in sys.modules]))
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; `value` "" where it could not be measured, and `note` says why."""

    name: str
    value: str
    promise: str
    holds: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of a command; `peak` in resident bytes, of it and those of its children that are ours."""

    seconds: float
    cpu: float
    code: int
    peak: int
    output: str


# -- processes ---------------------------------------------------------------------------------------------------
def children(root: int) -> Iterator[int]:
    """A process and all below it, without the cluster's."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
        if any(name in command for name in NOT_OURS):
            continue
        yield pid
        waiting += parents.get(pid, [])


def resident(root: int) -> int:
    """Resident bytes of a process and its children that are ours."""
    total = 0
    for pid in children(root):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
    return total


def run(argv: Sequence[str]) -> Pass:
    """Run a command to its end, sampling its memory."""
    begun, spent = time.monotonic(), cpu_of_children()
    peak = 0
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
            while True:
                try:
                    process.wait(SAMPLE_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    peak = max(peak, resident(process.pid))
        seconds = time.monotonic() - begun
        output.seek(0)
        return Pass(seconds, cpu_of_children() - spent, process.returncode, peak, output.read())


def cpu_of_children() -> float:
    """CPU seconds of all children that ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def say(text: str) -> None:
    """Progress, on stderr."""
    sys.stderr.write(text + "\n")


# -- figures -----------------------------------------------------------------------------------------------------
def quick(name: str, arguments: Sequence[str], promise: float, *, probe: Sequence[str] = ()) -> Figure:
    """The median time of a command that answers at once; with `probe`, which heavy modules it imports."""
    passes = [run([*KRAFT_MIGRATE, *arguments]) for _ in range(REPEATS)]
    median = statistics.median(one.seconds for one in passes)
    cpu = statistics.median(one.cpu for one in passes)
    notes = [f"median of {REPEATS}, {min(one.seconds for one in passes):.2f} at best, {cpu:.2f} of them on the CPU"]
    holds = median < promise
    if any(one.code for one in passes):
        notes.append(f"exit codes {sorted({one.code for one in passes})}")
        holds = False
    if probe:
        found = json.loads(run([sys.executable, "-c", PROBE % (HEAVY,), *probe]).output.splitlines()[-1])
        notes.append(f"imports {', '.join(found)}" if found else f"imports none of {', '.join(HEAVY)}")
        holds = holds and not found
    return Figure(name, f"{median:.2f} s", f"< {promise} s", "yes" if holds else "NO", "; ".join(notes))


def compared(rounds: int, scratch: Path) -> list[Figure]:
    """Demo against floor, interleaved."""
    floors: list[dict[str, float]] = []
    demos: list[Pass] = []
    stages: dict[str, float] = {}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: floor")
        floor = run([sys.executable, "-m", "tests.bench.floor", str(scratch / f"floor-{number}")])
        if floor.code:
            return [unmeasured(f"the floor failed: {tail(floor)}")]
        floors.append(json.loads(floor.output.splitlines()[-1]))
        shutil.rmtree(scratch / f"floor-{number}")
        say(f"round {number + 1} of {rounds}: demo (the floor took {floors[-1]['total']:.1f} s)")
        directory = scratch / f"demo-{number}"
        demos.append(run([*KRAFT_MIGRATE, "lab", "demo", "--dir", str(directory), "--no-load"]))
        if demos[-1].code:
            run([*KRAFT_MIGRATE, "lab", "down", "--dir", str(directory)])
            return [unmeasured(f"the demo ended with {demos[-1].code}: {tail(demos[-1])}")]
        stages = stage_seconds(directory, demos[-1].seconds)
        shutil.rmtree(directory)
    floor_median = statistics.median(one["total"] for one in floors)
    demo_median = statistics.median(one.seconds for one in demos)
    ratio, peak = demo_median / floor_median, max(one.peak for one in demos)
    note = f"demo {demo_median:.1f} s, floor {floor_median:.1f} s, {rounds} rounds"
    return [
        Figure("demo without load / floor", f"{ratio:.2f}", "<= 1.4", "yes" if ratio <= 1.4 else "NO", note),
        Figure(
            "our process with the Spark driver",
            f"{peak / GIGABYTE:.2f} GB",
            "<= 1.2 GB",
            "yes" if peak <= 1.2 * GIGABYTE else "NO",
            f"peak of resident bytes, sampled every {SAMPLE_SECONDS} s, shared pages counted in each process",
        ),
        Figure("where the floor's time went", by_stage(floors[-1]), "", "", "the last round, seconds"),
        Figure("where the demo's time went", by_stage(stages), "", "", "the last round, seconds, by its journal"),
    ]


def stage_seconds(directory: Path, total: float) -> dict[str, float]:
    """The demo's seconds by stage, as its journal dates them; what lies before and after it as `around`."""
    journal = max(directory.glob("runs/*/journal.jsonl"), key=lambda path: path.stat().st_mtime, default=None)
    if journal is None:
        return {"total": total}
    events = [event for event in journals.read(journal).events if event.name in {"run", "stage", "end"}]
    names = [str(event.data.get("stage", "begin")) for event in events[:-1]]
    found = {name: after.time - one.time for name, one, after in zip(names, events, events[1:], strict=False)}
    return found | {"around": total - sum(found.values()), "total": total}


def by_stage(seconds: dict[str, float]) -> str:
    """`up 5, seed 12, ...`."""
    return ", ".join(f"{name} {took:.0f}" for name, took in seconds.items())


def unmeasured(why: str) -> Figure:
    """A line that says that nothing was measured."""
    return Figure("demo without load / floor", "", "<= 1.4", "not measured", why)


def tail(done: Pass) -> str:
    """The last line of what a command said."""
    return next(reversed(done.output.strip().splitlines()), "it said nothing")


def status_figure(scratch: Path) -> Figure:
    """`status` against a living cluster."""
    directory = scratch / "status"
    up = run([*KRAFT_MIGRATE, "lab", "up", "--dir", str(directory)])
    try:
        if up.code:
            return Figure("status", "", "< 1.0 s", "not measured", f"lab up ended with {up.code}: {tail(up)}")
        arguments = ("status", "--inventory", str(directory / "inventory.yaml"))
        return quick("status", arguments, 1.0, probe=arguments)
    finally:
        run([*KRAFT_MIGRATE, "lab", "down", "--dir", str(directory)])


def as_markdown(figures: Sequence[Figure]) -> str:
    """The table."""
    rows = [f"| {one.name} | {one.value or '-'} | {one.promise} | {one.holds} | {one.note} |" for one in figures]
    return "\n".join(["| figure | measured | promise | holds | how |", "|---|---|---|---|---|", *rows, ""])


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description="Measure what the project promises.")
    parser.add_argument("--rounds", type=int, default=1, help="floor and demo, this often in turn")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--quick", action="store_true", help="only what needs no whole migration")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        scratch = Path(folder)
        figures = [quick("--help", ("--help",), 0.3), status_figure(scratch)]
        if not options.quick:
            figures += compared(options.rounds, scratch)
    sys.stdout.write(as_markdown(figures))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in figures], indent=1) + "\n")


if __name__ == "__main__":
    main()
