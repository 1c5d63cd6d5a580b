"""All benchmarks in one table, in Markdown and in JSON: `tests/bench/run`.

    tests/bench/run [--only NAME|GOAL]... [--small] [--repeat N] [--no-growth | --growth] [--into FOLDER] [--again]
    tests/bench/run --collect | --list

Each race's figures are kept in a file of their own, with the machine and its load as the race began, so that a long
table can be made in pieces: a race whose file is there, with as many rounds, is not run again (`--again` does), and
five times as much can be tried behind the rounds that are kept (`--growth`).  What cannot run here, and what nobody has
measured yet, stands in the table with its reason.  The kept table of the project is `tests/bench/kept`; a run into it
writes the table of docs/performance.md anew.  `--small` keeps nothing there.

Nothing asserts how fast something is.  Exit code 1: a race failed, or the two sides did not find the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from migrate.errors import MigrateError
from migrate.java.find import find_java
from migrate.java.jars import KAFKA_VERSION
from tests.bench.growing import behind
from tests.bench.races import ROOT, Race, Result, cpu_name, known, race, small

KEPT: Final = ROOT / "tests/bench/kept"
PAGE: Final = ROOT / "docs/performance.md"
BEGIN, END = "<!-- table of tests/bench/run: written by it -->", "<!-- end of the table -->"
REPEAT: Final = 5
NOT_TRIED: Final = "not tried"
GOALS: Final = ("P4",)  # what the others measured is gone
OTHER: Final = {"CPU": "clock", "clock": "CPU"}
COLUMNS: Final = (
    "goal",
    "benchmark",
    "N",
    "peer",
    "measured",
    "promise",
    "met",
    "seconds, ours : peer",
    "peak MB, ours : peer",
    "5N: time; peak",
    "rounds, load",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What a race was run on; `load` are the averages of 1, 5 and 15 minutes as it began."""

    cpu: str
    cores: int
    gigabytes: int
    python: str
    java: str
    kafka: str
    load: tuple[float, ...]

    @classmethod
    def here(cls) -> Machine:
        """This one, now."""
        try:
            java = find_java()
            version = re.search(r'^JAVA_VERSION="([^"]+)"', (java.home / "release").read_text(), re.MULTILINE)
            said = version[1] if version else str(java.major)
        except (MigrateError, OSError) as error:
            said = f"none ({error})"
        return cls(
            cpu=cpu_name(),
            cores=os.cpu_count() or 1,
            gigabytes=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
            python=platform.python_version(),
            java=said,
            kafka=KAFKA_VERSION,
            load=tuple(round(one, 1) for one in os.getloadavg()),
        )

    def told(self) -> str:
        """In one line, without the load."""
        return (
            f"{self.cores} cores ({self.cpu}), {self.gigabytes} GB, Python {self.python}, Java {self.java}, "
            f"Kafka {self.kafka}"
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A race's outcome: its figures, or why there are none (`why`)."""

    name: str
    when: str
    machine: Machine
    result: Result | None = None
    why: str = ""
    failed: bool = False
    small: bool = field(default=False)


# -- files -----------------------------------------------------------------------------------------------------------
def file_of(folder: Path, name: str) -> Path:
    """Where that race's figures lie."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".json")


def write(folder: Path, found: Kept) -> None:
    """Keep it; a whole file or none."""
    folder.mkdir(parents=True, exist_ok=True)
    path = file_of(folder, found.name)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(found), indent=1) + "\n")
    partial.rename(path)


def read(path: Path) -> Kept:
    """What is kept there; raises what json and a missing field raise."""
    raw: dict[str, Any] = json.loads(path.read_text())
    machine = Machine(**{**raw["machine"], "load": tuple(raw["machine"]["load"])})
    result = raw["result"] and _result(raw["result"])
    return Kept(**{**raw, "machine": machine, "result": result})


def _result(raw: Mapping[str, Any]) -> Result:
    pairs = {name: tuple(raw[name]) for name in ("ours_growth", "peer_growth", "missed")}
    return Result(**{**raw, **pairs})


def collect(folder: Path, races: Iterable[Race]) -> list[Kept]:
    """What is kept of these races, in their goals' order; what is not is told as not measured."""
    found: list[Kept] = []
    for entry in sorted(races, key=order):
        path = file_of(folder, entry.name)
        found.append(read(path) if path.exists() else Kept(entry.name, "", Machine.here(), why="not measured yet"))
    return found


def order(entry: Race) -> tuple[int, int]:
    """Goals by their number, further races behind them; stable besides."""
    number = int(entry.goal[1:]) if entry.goal in GOALS else 99
    return number, 0


# -- running ---------------------------------------------------------------------------------------------------------
def chosen(wanted: Sequence[str]) -> list[Race]:
    """The races of these names and goals, all without any; ValueError for a word that names none."""
    races = known().values()
    for word in wanted:
        if not any(word in (entry.name, entry.goal) for entry in races):
            raise ValueError(f"no race and no goal {word!r}: --list names them")
    return [entry for entry in races if not wanted or {entry.name, entry.goal} & set(wanted)]


def done(folder: Path, entry: Race, repeat: int) -> bool:
    """Are there figures of it already, of its whole size and of as many rounds?"""
    path = file_of(folder, entry.name)
    if not path.exists():
        return False
    result = read(path).result
    return result is not None and (result.size, result.rounds >= repeat) == (entry.size, True)


def run(entry: Race, *, repeat: int, is_small: bool, grows: bool = True) -> Kept:
    """One race; whatever goes wrong in it is its own line."""
    entry = entry if grows else replace(entry, once=NOT_TRIED)
    machine, when = Machine.here(), time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
    if why := entry.lacks():
        say(f"{entry.name}: SKIPPED, {why}")
        return Kept(entry.name, when, machine, why=f"skipped: {why}", small=is_small)
    say(f"{entry.name} ({machine.load[0]} load)")
    try:
        result = race(entry, repeat, small(entry) if is_small else entry.size)
    except Exception as error:  # noqa: BLE001 - the others are run all the same
        say(f"{entry.name}: FAILED, {error}")
        reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
        return Kept(entry.name, when, machine, why=f"failed: {reason[0]}", failed=True, small=is_small)
    return Kept(entry.name, when, machine, result, small=is_small)


def grow(found: Kept, entry: Race) -> Kept:
    """What is kept with figures of 5N; as it was where they are there already, or are not to be had."""
    if entry.once or found.result is None or found.result.ours_growth[0]:
        return found
    say(f"{entry.name}: five times as much")
    try:
        return replace(found, result=behind(entry, found.result))
    except Exception as error:  # noqa: BLE001 - the others are tried all the same
        say(f"{entry.name}: five times as much FAILED, {error}")
        return replace(found, failed=True)


def say(text: str) -> None:
    """Progress, on stderr."""
    sys.stderr.write(text + "\n")


# -- the table -------------------------------------------------------------------------------------------------------
def as_markdown(outcomes: Sequence[Kept]) -> str:
    """The machines, the table, and the goals that no benchmark has."""
    machines = dict.fromkeys(one.machine.told() for one in outcomes if one.result)
    races = known()
    rows = [_row(one, races.get(one.name)) for one in outcomes]
    bare = [goal for goal in GOALS if goal not in {entry.goal for entry in races.values()}]
    rows += [f"| {goal} | - |" + " |" * 4 + " no benchmark yet |" + " |" * 4 for goal in bare]
    head = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return "\n".join([*(f"{line}.\n" for line in machines), *head, *rows, ""])


def _row(one: Kept, entry: Race | None) -> str:
    goal, peer = ("", "") if entry is None else (entry.goal, entry.peer or entry.note.partition(";")[0])
    if one.result is None:
        size = f"{entry.size:,}" if entry else ""
        cells = [goal, one.name, size, peer, "-", "", one.why, "", "", "", ""]
    else:
        once = NOT_TRIED if entry is None else entry.once or NOT_TRIED
        cells = [goal, one.name, f"{one.result.size:,}", peer, *_figures(one.result, once)]
        cells.append(f"{one.result.rounds}, {one.machine.load[0]:g}")
    return f"| {' | '.join(cells)} |"


def _figures(found: Result, once: str) -> list[str]:
    def grown(sides: tuple[float, float]) -> str:
        return " : ".join(f"x{side:.1f}" if side else "-" for side in sides)

    times, peaks = zip(found.ours_growth, found.peer_growth, strict=True)
    met = "yes" if found.holds else "**no**" + (f" ({'; '.join(found.missed)})" if found.missed else "")
    also, seconds = "", f"{found.ours_seconds:.3g} : {found.peer_seconds:.3g}"
    if found.ratio_also:
        other = OTHER[found.by]
        also = f" ({other} {found.ratio_also:.3g})"
        seconds = f"{found.by} {seconds} ({other} {found.ours_also:.3g} : {found.peer_also:.3g})"
    return [
        f"{found.ratio:.3g}{also}",
        found.promise,
        met,
        seconds,
        f"{found.ours_peak:.0f} : {found.peer_peak:.0f}",
        f"{grown(times)}; {grown(peaks)}" if found.ours_growth[0] else once,
    ]


def with_table(page: str, table: str) -> str:
    """The page with that table between its marks; ValueError where it has none."""
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError("the page has no marks for the table")
    return f"{before}{BEGIN}\n\n{table}\n{END}{after}"


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="tests/bench/run", description="All benchmarks in one table.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME|GOAL", help="this one; repeatable")
    parser.add_argument("--small", action="store_true", help="one round on a hundredth of the size: does it run?")
    parser.add_argument("--repeat", type=int, metavar="N", help=f"rounds of each (default {REPEAT}; 1 with --small)")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="keep the figures there (default tests/bench/kept)")
    five = parser.add_mutually_exclusive_group()
    five.add_argument("--no-growth", action="store_true", help="do not try five times as much: it takes the longest")
    five.add_argument("--growth", action="store_true", help="try only that, behind the rounds that are kept")
    parser.add_argument("--again", action="store_true", help="run also what is kept already")
    five.add_argument("--collect", action="store_true", help="run nothing: the table of what is kept")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table as JSON too")
    options = parser.parse_args(words)
    try:
        races = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        sys.stdout.write("".join(f"{entry.goal or '-':4} {entry.name}\n" for entry in sorted(races, key=order)))
        return 0
    folder = options.into or (None if options.small else KEPT)
    outcomes = table(races, options, folder)
    sys.stdout.write(as_markdown(outcomes))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=1) + "\n")
    if folder == KEPT:
        PAGE.write_text(with_table(PAGE.read_text(), as_markdown(collect(KEPT, known().values()))))
    return 1 if any(one.failed for one in outcomes) else 0


def table(races: Sequence[Race], options: argparse.Namespace, folder: Path | None) -> list[Kept]:
    """The outcomes of what is run now, and of what was kept before."""
    repeat = options.repeat or (1 if options.small else REPEAT)
    ran: list[Kept] = []
    for entry in races:
        there = folder and file_of(folder, entry.name)
        if options.growth and there and there.exists():
            ran.append(grow(read(there), entry))
        elif options.collect or options.growth or (folder and not options.again and done(folder, entry, repeat)):
            continue
        else:
            ran.append(run(entry, repeat=repeat, is_small=options.small, grows=not options.no_growth))
        if folder and not ran[-1].failed:
            write(folder, ran[-1])
    if folder is None:
        return ran
    failed = {one.name: one for one in ran if one.failed}
    return [failed.get(one.name, one) for one in collect(folder, races)]


if __name__ == "__main__":
    sys.exit(main())
