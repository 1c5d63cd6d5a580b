"""Which partitions had no leader, or fewer in-sync replicas than required, when, and why: from samples of metadata.

The watcher writes one line of JSON per sample (`watch.jsonl`, `isr.jsonl`, from the same answers); intervals are
computed from the samples afterwards.  A time without samples is *blind*: it is listed as such, and never read as a
time with leaders.  A topic whose min.insync.replicas is not known yet is not judged; a sample counts those partitions.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from migrate.errors import LoadHistoryBroken
from migrate.kafka.tls import cluster_config
from migrate.lab.topology import load_topology

T = TypeVar("T")
SAMPLE_SECONDS: Final = 0.25
BLIND_SECONDS: Final = 2.0  # two good samples further apart than this leave the time between them unseen
UNEXPLAINED: Final = "unexplained"
RF_1: Final = "RF 1"
NOT_AVAILABLE: Final = frozenset({5})  # LEADER_NOT_AVAILABLE; other codes (9: a replica is down) have a leader


@dataclass(frozen=True, slots=True)
class Leaderless:
    """A partition that a sample shows without leader: its replicas and the last leader that was seen (-1: none)."""

    partition: str
    replicas: tuple[int, ...]
    last_leader: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the metadata, `time` in seconds since the epoch; `problem` says why nothing was seen."""

    time: float
    partitions: int
    leaderless: tuple[Leaderless, ...] = ()
    problem: str = ""

    def line(self) -> str:
        data: dict[str, Any] = {"time": round(self.time, 3), "partitions": self.partitions}
        if self.leaderless:
            data["leaderless"] = [[one.partition, list(one.replicas), one.last_leader] for one in self.leaderless]
        if self.problem:
            data["problem"] = self.problem
        return json.dumps(data, separators=(",", ":")) + "\n"

    @classmethod
    def parse(cls, line: str) -> Sample:
        """Read such a line; ValueError, KeyError or TypeError for anything else."""
        data = dict(json.loads(line))
        leaderless = tuple(
            Leaderless(str(name), tuple(map(int, replicas)), int(leader))
            for name, replicas, leader in data.get("leaderless", ())
        )
        return cls(float(data["time"]), int(data["partitions"]), leaderless, str(data.get("problem", "")))


@dataclass(frozen=True, slots=True)
class RestartInterval:
    """A restart by the run: from the stop request until the node was back (seconds since the epoch)."""

    node: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class LeaderlessInterval:
    """From the first sample without leader to the first with one."""

    partition: str
    start: float
    end: float
    replicas: tuple[int, ...]
    last_leader: int


@dataclass(frozen=True, slots=True)
class WatchResult:
    """The samples' result: intervals without leader, and (start, end, why) of blind times."""

    leaderless: tuple[LeaderlessInterval, ...]
    blind: tuple[tuple[float, float, str], ...]
    samples: int


@dataclass(slots=True)
class LeaderMemory:
    """The last leader seen of each partition, so that a leaderless one can name it."""

    leaders: dict[str, int] = field(default_factory=dict)

    def sample(self, time: float, partitions: Iterable[tuple[str, int, Sequence[int], int]]) -> Sample:
        """Fold one answer: (topic-partition, leader, replicas, error code) each."""
        count = 0
        leaderless: list[Leaderless] = []
        for name, leader, replicas, error in partitions:
            count += 1
            if leader < 0 or error in NOT_AVAILABLE:
                leaderless.append(Leaderless(name, tuple(replicas), self.leaders.get(name, -1)))
            else:
                self.leaders[name] = leader
        if count == 0:  # a broker that has just started in ZooKeeper mode knows nothing yet
            return Sample(time, 0, problem="an answer without partitions")
        return Sample(time, count, tuple(leaderless))


def append_lines(path: Path) -> TextIO:
    """Open a file of lines to append to it; a torn last line, left by a kill, is cut off first."""
    if path.exists():
        with path.open("rb+") as handle:
            raw = handle.read()
            handle.truncate(raw.rfind(b"\n") + 1)
    return path.open("a", encoding="utf-8")


def read_samples(path: Path) -> Iterator[Sample]:
    """The samples in order; as `read_lines`."""
    return read_lines(path, Sample.parse)


def read_lines(path: Path, parse: Callable[[str], T]) -> Iterator[T]:
    """A value a line, in order.  A torn last line is left out, any other bad one is LoadHistoryBroken."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if not line.endswith("\n"):
                return
            try:
                yield parse(line)
            except (ValueError, KeyError, TypeError) as error:
                raise LoadHistoryBroken(f"line {number} is no sample: {error!r}", where=str(path)) from error


def fold_samples(samples: Iterable[Sample]) -> WatchResult:
    """Intervals from samples.  An interval lasts through samples that saw nothing, and ends at the last good one."""
    open_now: dict[str, LeaderlessInterval] = {}
    done: list[LeaderlessInterval] = []
    blind: list[tuple[float, float, str]] = []
    count, last, last_good, problem = 0, 0.0, -1.0, ""
    for sample in samples:
        count, last = count + 1, sample.time
        if sample.problem:
            problem = problem or sample.problem
            if last_good < 0:
                last_good = sample.time
            continue
        if last_good >= 0 and sample.time - last_good > BLIND_SECONDS:
            blind.append((last_good, sample.time, problem or "no samples: the load did not run"))
        seen = {one.partition: one for one in sample.leaderless}
        ended = [name for name in open_now if name not in seen]
        done.extend(replace(open_now.pop(name), end=sample.time) for name in ended)
        for name, one in seen.items():
            begun = open_now.get(name)
            start = begun.start if begun else sample.time
            leader = begun.last_leader if begun and begun.last_leader >= 0 else one.last_leader
            open_now[name] = LeaderlessInterval(name, start, sample.time, one.replicas, leader)
        last_good, problem = sample.time, ""
    if problem and last - last_good > BLIND_SECONDS:
        blind.append((last_good, last, problem))
    done.extend(open_now.values())
    return WatchResult(tuple(sorted(done, key=lambda one: (one.start, one.partition))), tuple(blind), count)


def attribute(interval: LeaderlessInterval, restarts: Sequence[RestartInterval], slack: float = BLIND_SECONDS) -> str:
    """Why a partition had no leader: `RF 1`, `restart of broker N`, or `unexplained`.

    A restart explains it only if the node holds a replica and the whole interval is within the restart, give or take
    `slack` seconds (the samples' distance and the cluster's own reaction).  The last leader's restart comes first.
    """
    if len(interval.replicas) == 1:
        return RF_1
    during = [
        restart
        for restart in restarts
        if restart.node in interval.replicas
        and restart.start - slack <= interval.start
        and interval.end <= restart.end + slack
    ]
    during.sort(key=lambda restart: (restart.node != interval.last_leader, restart.start))
    return f"restart of broker {during[0].node}" if during else UNEXPLAINED


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


def judge_isr(time: float, least: Mapping[str, int], partitions: Iterable[tuple[str, Sequence[int], int]]) -> IsrSample:
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


def read_isr_samples(path: Path) -> Iterator[IsrSample]:
    """The samples in order; as `read_lines`."""
    return read_lines(path, IsrSample.parse)


def find_short_intervals(samples: Iterable[IsrSample]) -> tuple[tuple[ShortInterval, ...], int]:
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


def explain_shortage(interval: ShortInterval, restarts: Sequence[RestartInterval]) -> str:
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


# -- the process -------------------------------------------------------------------------------------------------
LOG: Final = logging.getLogger("migrate.lab.load")
MIN_ISR: Final = "min.insync.replicas"
DESCRIBE_SECONDS: Final = 2.0


def watch(config: Mapping[str, Any], folder: Path, stop: threading.Event) -> None:
    """Sample which partitions have no leader, or a short ISR, every `SAMPLE_SECONDS`, all topics of the cluster."""
    admin = AdminClient(dict(config), logger=LOG)
    memory, least = LeaderMemory(), dict[str, int]()
    with append_lines(folder / "watch.jsonl") as log, append_lines(folder / FILE) as in_sync:
        while not stop.is_set():
            begun = time.monotonic()
            answer = _asked(admin)
            log.write(_sample(answer, memory).line())
            log.flush()
            if not isinstance(answer, str):
                _learn(admin, answer.topics, least)
                in_sync.write(judge_isr(time.time(), least, _isrs(answer.topics)).line())
                in_sync.flush()
            stop.wait(max(0.0, SAMPLE_SECONDS - (time.monotonic() - begun)))


def _asked(admin: AdminClient) -> Any:
    """Return the answer, or why there is none."""
    try:
        return admin.list_topics(timeout=1.0)
    except KafkaException as error:
        return str(error.args[0])


def _sample(answer: Any, memory: LeaderMemory) -> Sample:
    if isinstance(answer, str):
        return Sample(time.time(), 0, problem=answer)
    partitions = (
        (
            f"{name}-{partition.id}",
            partition.leader,
            partition.replicas,
            partition.error.code() if partition.error else 0,
        )
        for name, topic in answer.topics.items()
        for partition in topic.partitions.values()
    )
    return memory.sample(time.time(), partitions)


def _isrs(topics: Mapping[str, Any]) -> Iterator[tuple[str, list[int], int]]:
    """Partitions that have a leader: without one there is no ISR to speak of."""
    for name, topic in topics.items():
        for partition in topic.partitions.values():
            if partition.leader >= 0:
                yield f"{name}-{partition.id}", partition.replicas, len(partition.isrs)


def _learn(admin: AdminClient, topics: Mapping[str, Any], least: dict[str, int]) -> None:
    """Request min.insync.replicas of new topics; a topic without an answer is not judged, and requested again."""
    new = [name for name in topics if name not in least]
    if not new:
        return
    asked = admin.describe_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, name) for name in new], request_timeout=DESCRIBE_SECONDS
    )
    for resource, future in asked.items():
        try:
            least[resource.name] = int(future.result(DESCRIBE_SECONDS)[MIN_ISR].value)
        except (KafkaException, TimeoutError, ValueError, KeyError) as error:
            LOG.debug("min.insync.replicas of %s is not known yet: %s", resource.name, error)


def main(directory: str) -> None:
    """Watch the cluster of the lab in that folder until SIGTERM or SIGINT."""
    from migrate.lab.configure import clients_inventory  # noqa: PLC0415 - the judgement needs none of it

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    inventory = clients_inventory(load_topology(Path(directory)))
    watch(cluster_config(inventory), Path(directory) / "load", stop)


if __name__ == "__main__":
    main(sys.argv[1])
