"""Ours against what somebody would write by hand: the same work in turn, each time in a process of its own.

    python -m tests.bench.races [--rounds N] [--only NAME] [--quick] [--json FILE]

Both sides must find the same, or there is no figure.  A ratio is the median of the rounds; the peak is that of the
resident bytes while the work ran, over what was there before.  `5N` is one more run each with five times as much.
Nothing here asserts how fast it is: machines differ, and a reader judges.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.resident import cpu_of_all, watched

ROOT: Final = Path(__file__).resolve().parents[2]
SIDES: Final = ("ours", "peer")
GROWN: Final = 5
MEGABYTE: Final = 1e6
BY: Final[dict[Callable[[], float], str]] = {time.perf_counter: "clock", cpu_of_all: "CPU"}


@dataclass(frozen=True, slots=True)
class Work:
    """What is timed, and what is told of its result afterwards: equal for both sides.

    `others` are processes whose memory counts too.  `clock` is CPU time where one thread computes and waits for nobody:
    other programs on the machine then count less.  `cold`: the work is a process of its own, whose peak is told.
    `tree`: the peak is what this process and all below it hold, with what was there before.
    """

    timed: Callable[[], Any]
    answer: Callable[[Any], str]
    others: Sequence[int] = ()
    clock: Callable[[], float] = time.perf_counter
    cold: bool = False
    tree: bool = False


Side = Callable[[Path, int], AbstractContextManager[Work]]


@dataclass(frozen=True, slots=True)
class Race:
    """Two sides and what they are run on.  `size` counts partitions.

    `around` makes what both need (files, a server) in the folder, for as long as the block runs.  `promise` is about
    ours / peer (`at_most`), or about peer / ours (not `at_most`); `seconds` promises a time of ours instead.  Further
    promises, 0 for none: `memory` is our peak / the peer's at most, `megabytes` our peak at most, `growth` our time at
    5N / at N at most.  `goal` is its number among the goals of docs/performance.md ("P1" ... "P12"), `peer` the other
    side's short name, `lacks` says why the race cannot be run on this machine, "" where it can.
    """

    name: str
    size: int
    at_most: bool
    around: Callable[[Path, int], AbstractContextManager[None]]
    sides: Mapping[str, Side]
    promise: float = 0.0
    seconds: float = 0.0
    once: str = ""  # why five times as much is not tried
    note: str = ""
    goal: str = ""
    peer: str = ""
    memory: float = 0.0
    megabytes: float = 0.0
    growth: float = 0.0
    growing: Sequence[str] = SIDES  # the sides that 5N is tried with: a peer that keeps all may not fit
    lacks: Callable[[], str] = str
    least: int = 100  # the size at which it is only seen whether it runs is a hundredth, or this


@dataclass(frozen=True, slots=True)
class Run:
    """One side, once."""

    seconds: float
    peak: int  # bytes over what was resident before
    answer: str
    also: float = 0.0  # the same by the clock where `seconds` are of the CPU, of the CPU where they are by the clock
    by: str = ""  # as Result's


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table; megabytes and seconds are medians of the rounds, growth is 5N / N (0: not tried)."""

    name: str
    size: int
    rounds: int
    ratio: float
    promise: str
    holds: bool
    ours_seconds: float
    peer_seconds: float
    ours_peak: float
    peer_peak: float
    ours_growth: tuple[float, float]  # of time, of the peak
    peer_growth: tuple[float, float]
    note: str
    goal: str = ""
    peer: str = ""
    missed: tuple[str, ...] = ()  # further promises that do not hold
    by: str = ""  # what `seconds` are of: "CPU", "clock", or "" for a figure of the peer's own
    ours_also: float = 0.0  # medians of the other one of the two
    peer_also: float = 0.0
    ratio_also: float = 0.0


# -- one run ---------------------------------------------------------------------------------------------------------
def measured(work: Work) -> Run:
    """Do the work once, here."""
    pids = (os.getpid(), *work.others)
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # forget the peak so far
    before = sum(memory(pid, "VmRSS") for pid in pids)
    other = cpu_of_all if work.clock is time.perf_counter else time.perf_counter
    with watched(os.getpid()) if work.tree else nullcontext() as held:
        begun, also = work.clock(), other()
        found = work.timed()
        seconds, also = work.clock() - begun, other() - also
    peak = sum(memory(pid, "VmHWM") for pid in pids) - before
    if work.cold:
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if held is not None:
        peak = held.peak
    return Run(seconds, max(peak, 0), work.answer(found), also, BY.get(work.clock, ""))


def memory(pid: int | str, name: str) -> int:
    """Resident bytes of a process, now (VmRSS) or at most (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def in_its_own_process(name: str, side: str, folder: Path, size: int) -> Run:
    """The same in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.races", "--one", name, side, str(folder), str(size)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(f"{name}, {side}: {done.stderr}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def here(name: str, side: str, folder: Path, size: int) -> Run:
    """In this process."""
    with known()[name].sides[side](folder, size) as work:
        return measured(work)


# -- races -----------------------------------------------------------------------------------------------------------
def known() -> dict[str, Race]:
    """All races by name."""
    from tests.bench import comparing, demonstrating, hosts, large_live, listing

    every = (*large_live.RACES, *comparing.RACES, *listing.RACES, *hosts.RACES, *demonstrating.RACES)
    return {race.name: race for race in every}


Runner = Callable[[str, str, Path, int], Run]


def race(entry: Race, rounds: int, size: int, run: Runner | None = None) -> Result:
    """All rounds of one race, the sides in turn; RuntimeError where they did not find the same."""
    from tests.bench.growing import agreed, five_times

    run = run or in_its_own_process
    runs: dict[str, list[Run]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="race-") as scratch:
        folder = Path(scratch)
        with entry.around(folder, size):
            for number in range(rounds):
                for side in SIDES if number % 2 == 0 else reversed(SIDES):
                    runs[side].append(run(entry.name, side, folder, size))
                    told = runs[side][-1]
                    spent = f"{told.seconds:.2f} s {told.by} ({told.also:.2f}), {told.peak / MEGABYTE:.0f} MB"
                    sys.stderr.write(f"  round {number + 1}, {side}: {spent}\n")
        grown = five_times(entry, folder, size, run) if not entry.once else {}
    for found in zip(*runs.values(), strict=True):
        agreed(entry, found)
    return result(entry, size, runs, grown)


def result(entry: Race, size: int, runs: Mapping[str, Sequence[Run]], grown: Mapping[str, Run]) -> Result:
    """The figures of a race's runs."""
    from tests.bench.growing import with_growth

    pairs = list(zip(runs["ours"], runs["peer"], strict=True))
    ratio = statistics.median(share(entry, ours.seconds, peer.seconds) for ours, peer in pairs)
    seconds = {side: statistics.median(one.seconds for one in found) for side, found in runs.items()}
    peaks = {side: statistics.median(one.peak for one in found) for side, found in runs.items()}

    promise, holds = kept(entry, ratio, seconds["ours"])
    found = Result(
        name=entry.name,
        size=size,
        rounds=len(pairs),
        ratio=ratio,
        promise=promise,
        holds=holds,
        ours_seconds=seconds["ours"],
        peer_seconds=seconds["peer"],
        ours_peak=peaks["ours"] / MEGABYTE,
        peer_peak=peaks["peer"] / MEGABYTE,
        ours_growth=(0.0, 0.0),
        peer_growth=(0.0, 0.0),
        note=entry.note,
        goal=entry.goal,
        peer=entry.peer,
        **_also(entry, runs),
    )
    return with_growth(entry, found, grown)


def share(entry: Race, ours: float, peer: float) -> float:
    """As the promise is about it."""
    return ours / peer if entry.at_most else peer / ours


def _also(entry: Race, runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """The same figures by the clock where the race is decided by the CPU's seconds, and the other way round."""
    (by, *others) = {one.by for found in runs.values() for one in found}
    if others or not by or not all(one.also for found in runs.values() for one in found):
        return {}
    pairs = zip(runs["ours"], runs["peer"], strict=True)
    return {
        "by": by,
        "ours_also": statistics.median(one.also for one in runs["ours"]),
        "peer_also": statistics.median(one.also for one in runs["peer"]),
        "ratio_also": statistics.median(share(entry, ours.also, peer.also) for ours, peer in pairs),
    }


def further(entry: Race, peaks: Mapping[str, float], growth: float) -> tuple[str, ...]:
    """The promises about memory and growth that do not hold; growth that was not tried (0) breaks none."""
    share = peaks["ours"] / max(peaks["peer"], 1.0)
    peak = peaks["ours"] / MEGABYTE
    found = (
        (entry.memory and share > entry.memory, f"memory {share:.2f} of the peer's, not {entry.memory:g}"),
        (entry.megabytes and peak > entry.megabytes, f"{peak:.0f} MB, not {entry.megabytes:g}"),
        (entry.growth and growth > entry.growth, f"x{growth:.1f} for 5N, not {entry.growth:g}"),
    )
    return tuple(words for broken, words in found if broken)


def kept(entry: Race, ratio: float, seconds: float) -> tuple[str, bool]:
    """What is promised, and whether it holds."""
    if entry.seconds:
        return f"ours <= {entry.seconds:g} s", seconds <= entry.seconds
    if entry.at_most:
        return f"ours / peer <= {entry.promise:g}", ratio <= entry.promise
    return f"peer / ours >= {entry.promise:g}", ratio >= entry.promise


# -- the table -------------------------------------------------------------------------------------------------------
def cpu_name() -> str:
    """The processor's own name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def machine() -> str:
    """What the figures were measured on."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} CPUs ({cpu_name()}), {total:.0f} GB, Python {platform.python_version()}, load {load:.1f}"


def as_markdown(results: Sequence[Result]) -> str:
    """The table."""
    head = (
        "| race | partitions | ratio | promise | holds | seconds, ours : peer | peak MB, ours : peer | 5N: time; peak |"
    )
    return "\n".join([head, "|---" * 8 + "|", *map(_row, results), ""])


def _row(one: Result) -> str:
    def grown(sides: tuple[float, float]) -> str:
        return " : ".join(f"x{side:.1f}" if side else "-" for side in sides)

    times = (one.ours_growth[0], one.peer_growth[0])
    peaks = (one.ours_growth[1], one.peer_growth[1])
    return (
        f"| {one.name} | {one.size:,} | {one.ratio:.2f} | {one.promise} | {'yes' if one.holds else 'NO'} "
        f"| {one.ours_seconds:.2f} : {one.peer_seconds:.2f} | {one.ours_peak:.0f} : {one.peer_peak:.0f} "
        f"| {grown(times)}; {grown(peaks)} |"
    )


def main() -> None:
    """Run the races and print the table; with `--one`, one side of one of them."""
    parser = argparse.ArgumentParser(description="Commands of ours against what somebody would write by hand.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", help="this race alone; repeatable")
    parser.add_argument("--quick", action="store_true", help="one round on a hundredth of the size: does it run?")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--one", nargs=4, metavar=("RACE", "SIDE", "FOLDER", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, side, folder, size = options.one
        sys.stdout.write(json.dumps(asdict(here(name, side, Path(folder), int(size)))) + "\n")
        return
    results = []
    for name, entry in known().items():
        if not options.only or name in options.only:
            sys.stderr.write(f"{name}\n")
            results.append(
                race(entry, 1 if options.quick else options.rounds, small(entry) if options.quick else entry.size)
            )
    sys.stdout.write(f"{machine()}\n\n{as_markdown(results)}")
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in results], indent=1) + "\n")


def small(entry: Race) -> int:
    """The size at which it is only seen whether it runs."""
    return max(entry.least, entry.size // 100)


if __name__ == "__main__":
    main()
