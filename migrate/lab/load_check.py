"""The judgement of a load: its history against what stands in the partitions.

Everything is streamed and ids are bits, so memory stays at a few megabytes for hours of load.  A claim is made for
topics with two replicas or more; records of the others are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import LoadHistoryBroken, LoadStillRuns
from migrate.lab import load_isr
from migrate.lab.load import find_load, load_folder
from migrate.lab.load_history import Entry, HistoryHead, Kind, histories, read_entries, read_head
from migrate.lab.load_ids import IdSet
from migrate.lab.load_read import read_values
from migrate.lab.load_watch import UNEXPLAINED, RestartInterval, attribute, fold_samples, read_samples
from migrate.model.history import LoadSummary
from migrate.model.inventory import Inventory
from migrate.model.views import Running, Stopped

USUAL_SECONDS: Final = 1.0  # a partition whose records wait longer than this for an acknowledgement has a gap
Gap = tuple[float, float, str]


@dataclass(slots=True)
class _Waiting:
    """One partition while a history is read: how many records wait, and since when nothing was acknowledged."""

    records: int = 0
    since: float = 0.0


def find_gaps(head: HistoryHead, entries: Iterable[Entry], usual: float = USUAL_SECONDS) -> Iterator[Gap]:
    """(start, seconds, topic-partition) wherever records waited longer than `usual` without one acknowledgement."""
    waiting: dict[tuple[int, int], _Waiting] = {}
    last = 0.0
    for entry in entries:
        last = entry.time
        if entry.kind == Kind.CLOSED:
            continue
        place = waiting.setdefault((entry.topic, entry.partition), _Waiting())
        if entry.kind == Kind.SENT:
            if place.records == 0:
                place.since = entry.time
            place.records += 1
            continue
        place.records -= 1
        if entry.kind == Kind.ACKED:
            if entry.time - place.since > usual:
                yield place.since, entry.time - place.since, _name(head, entry.topic, entry.partition)
            place.since = entry.time
    for (topic, partition), place in waiting.items():
        if place.records > 0 and last - place.since > usual:
            yield place.since, last - place.since, _name(head, topic, partition)


def _name(head: HistoryHead, topic: int, partition: int) -> str:
    return f"{head.topics[topic].name}-{partition}"


@dataclass(slots=True)
class Judgement:
    """Grows while histories and partitions are read; `summary` at the end."""

    tag: bytes = b""
    topics: dict[str, int] = field(default_factory=dict)  # name -> partitions
    gaps: list[Gap] = field(default_factory=list)
    sent: IdSet = field(default_factory=IdSet)
    claimed: IdSet = field(default_factory=IdSet)  # acknowledged, of topics with two replicas or more
    single: IdSet = field(default_factory=IdSet)  # acknowledged, of topics with one
    found: IdSet = field(default_factory=IdSet)
    duplicated: IdSet = field(default_factory=IdSet)
    unexpected: int = 0

    def read_history(self, head: HistoryHead, entries: Iterable[Entry]) -> None:
        """Take in one epoch's history.

        Raises:
            LoadHistoryBroken: it belongs to another load.
        """
        if self.tag and head.tag != self.tag:
            raise LoadHistoryBroken(f"epoch {head.epoch} was written by another load: its tag differs")
        self.tag = head.tag
        for topic in head.topics:
            self.topics[topic.name] = max(topic.partitions, self.topics.get(topic.name, 0))
        self.gaps.extend(find_gaps(head, self._noted(head, entries)))

    def _noted(self, head: HistoryHead, entries: Iterable[Entry]) -> Iterator[Entry]:
        acked = [self.claimed if topic.claimed else self.single for topic in head.topics]
        for entry in entries:
            if entry.kind == Kind.SENT:
                self.sent.add(head.epoch, entry.sequence)
            elif entry.kind == Kind.ACKED:
                acked[entry.topic].add(head.epoch, entry.sequence)
            yield entry

    def saw(self, epoch: int, sequence: int) -> None:
        """Take in one record of this load that stands in a partition."""
        if (epoch, sequence) not in self.sent:
            self.unexpected += 1
        elif not self.found.add(epoch, sequence):
            self.duplicated.add(epoch, sequence)

    def summary(self, watch_file: Path, restarts: Sequence[RestartInterval]) -> LoadSummary:
        """The verdict as a value."""
        watch = fold_samples(read_samples(watch_file))
        short, judged = load_isr.intervals(load_isr.read(watch_file.with_name(load_isr.FILE)))
        return LoadSummary(
            sent=len(self.sent),
            acknowledged=len(self.claimed) + len(self.single),
            read=len(self.found),
            missing=sum(1 for _ in self.claimed.without(self.found)),
            duplicated=len(self.duplicated),
            gaps=tuple(sorted(self.gaps)),
            leaderless=tuple(
                (one.start, one.end - one.start, one.partition, attribute(one, restarts)) for one in watch.leaderless
            ),
            missing_single=sum(1 for _ in self.single.without(self.found)),
            unexpected=self.unexpected,
            blind=tuple((start, end - start, why) for start, end, why in watch.blind),
            short=tuple(
                (one.start, one.end - one.start, one.worst.partition, load_isr.why(one, restarts)) for one in short
            ),
            judged=judged,
        )


def check_load(lab_dir: Path, inventory: Inventory, restarts: Sequence[RestartInterval]) -> LoadSummary:
    """Judge the stopped load of a lab: read its histories, then every partition whole.

    `restarts` are the restarts that we made; they explain partitions without leader.

    Raises:
        LoadStillRuns: the load has to be stopped first.
        LoadHistoryBroken: a file of the load is damaged.
        LoadNotRead: a partition could not be read to its end.
    """
    state = find_load(lab_dir)
    if not isinstance(state, Stopped):
        why = f"process {state.pid} lives" if isinstance(state, Running) else state.reason
        raise LoadStillRuns("the load is not known to have stopped", where=str(lab_dir), why=why)
    folder = load_folder(lab_dir)
    judgement = Judgement()
    for _, path in histories(folder):
        judgement.read_history(read_head(path), read_entries(path))
    for epoch, sequence in read_values(inventory, judgement.topics, judgement.tag):
        judgement.saw(epoch, sequence)
    return judgement.summary(folder / "watch.jsonl", restarts)


def complaints(summary: LoadSummary) -> tuple[str, ...]:
    """What stands against a run, one sentence each; nothing where all promises were kept.

    A load that had nothing acknowledged proves nothing, and is a complaint of its own.
    """
    found: list[str] = []
    if not summary.acknowledged:
        found.append("no record was acknowledged: nothing is proven")
    if summary.missing:
        found.append(f"{summary.missing} acknowledged records are missing")
    if summary.duplicated:
        found.append(f"{summary.duplicated} records stand at two offsets")
    if summary.unexpected:
        found.append(f"{summary.unexpected} records stand there that were never sent")
    found.extend(
        f"{partition} had no leader for {seconds:.2f} s, for no known reason"
        for _, seconds, partition, why in summary.leaderless
        if why == UNEXPLAINED
    )
    return tuple(found)
