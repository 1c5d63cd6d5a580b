"""Which partitions had fewer replicas in their ISR than min.insync.replicas, when, and why.

The watcher writes one line of JSON a sample (`isr.jsonl`), from the same answers as `watch.jsonl`.  A topic whose
min.insync.replicas is not known yet is not judged, and a sample says how many partitions were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from migrate.lab.load_watch import BLIND_SECONDS, UNEXPLAINED, RestartInterval, read_lines

FILE: Final = "isr.jsonl"


@dataclass(frozen=True, slots=True)
class Short:
    """A partition below its min.insync.replicas: its replicas, how many were in the ISR, how many must be."""

    partition: str
    replicas: tuple[int, ...]
    in_sync: int
    least: int


@dataclass(frozen=True, slots=True)
class IsrSample:
    """One look, `time` in seconds since the epoch: how many partitions were judged, and those that were short."""

    time: float
    judged: int
    short: tuple[Short, ...] = ()

    def line(self) -> str:
        """The line as it is written."""
        short = [[one.partition, list(one.replicas), one.in_sync, one.least] for one in self.short]
        told = {"time": round(self.time, 3), "judged": self.judged, **({"short": short} if short else {})}
        return json.dumps(told, separators=(",", ":")) + "\n"

    @classmethod
    def parse(cls, line: str) -> IsrSample:
        """Read such a line; ValueError, KeyError or TypeError for anything else."""
        told = dict(json.loads(line))
        short = tuple(
            Short(str(name), tuple(map(int, replicas)), int(in_sync), int(least))
            for name, replicas, in_sync, least in told.get("short", ())
        )
        return cls(float(told["time"]), int(told["judged"]), short)


@dataclass(frozen=True, slots=True)
class ShortInterval:
    """From the first sample in which a partition was short to the first in which it was not; the fewest in sync."""

    start: float
    end: float
    worst: Short


def judge(time: float, least: Mapping[str, int], partitions: Iterable[tuple[str, Sequence[int], int]]) -> IsrSample:
    """One answer's partitions (topic-partition, replicas, how many in the ISR) against min.insync.replicas by topic."""
    judged, short = 0, []
    for name, replicas, in_sync in partitions:
        needed = least.get(name.rpartition("-")[0])
        if needed is None:
            continue
        judged += 1
        if in_sync < needed:
            short.append(Short(name, tuple(replicas), in_sync, needed))
    return IsrSample(time, judged, tuple(short))


def read(path: Path) -> Iterator[IsrSample]:
    """The samples in order; as `read_lines`."""
    return read_lines(path, IsrSample.parse)


def intervals(samples: Iterable[IsrSample]) -> tuple[tuple[ShortInterval, ...], int]:
    """Times in which partitions were short, and how many samples judged any.  One that judged none ends nothing."""
    now: dict[str, ShortInterval] = {}
    done: list[ShortInterval] = []
    judged = 0
    for sample in samples:
        if not sample.judged:
            continue
        judged += 1
        seen = {one.partition: one for one in sample.short}
        done.extend(replace(now.pop(name), end=sample.time) for name in [name for name in now if name not in seen])
        for name, one in seen.items():
            before = now.get(name, ShortInterval(sample.time, sample.time, one))
            worst = min(before.worst, one, key=lambda entry: entry.in_sync)
            now[name] = ShortInterval(before.start, sample.time, worst)
    done.extend(now.values())
    return tuple(sorted(done, key=lambda one: (one.start, one.worst.partition))), judged


def why(interval: ShortInterval, restarts: Sequence[RestartInterval]) -> str:
    """`needs every replica; restart of broker N` where a restart must have done it, else `unexplained`.

    A partition that can spare one replica has no excuse in the restart of one broker.
    """
    short = interval.worst
    if len(short.replicas) - 1 >= short.least:
        return UNEXPLAINED
    for restart in restarts:
        within = restart.start - BLIND_SECONDS <= interval.start and interval.end <= restart.end + BLIND_SECONDS
        if restart.node in short.replicas and within:
            return f"needs every replica; restart of broker {restart.node}"
    return UNEXPLAINED
