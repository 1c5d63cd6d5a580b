"""The judgement of a load: its history against what stands in the partitions.

Everything is streamed and ids are bits, so memory stays at a few megabytes for hours of load.  A claim is made for
topics with two replicas or more; records of the others are counted apart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate.errors import LoadHistoryBroken, LoadNotRead, LoadStillRuns, Retryable
from migrate.kafka.tls import cluster_config
from migrate.lab import load_watch
from migrate.lab.load import find_load, load_folder
from migrate.lab.load_history import Entry, HistoryHead, Kind, histories, read_entries, read_head, record_id
from migrate.lab.load_watch import UNEXPLAINED, RestartInterval, attribute, fold_samples, read_samples
from migrate.model.history import LoadSummary
from migrate.model.inventory import Inventory
from migrate.model.views import Running, Stopped

LOG: Final = logging.getLogger("migrate.lab.load")
STALL_SECONDS: Final = 60.0
BATCH: Final = 2000
WAIT_SECONDS: Final = 0.25  # consume() waits as long for a batch that does not fill
_FROM_THE_FIRST: Final = -2  # OFFSET_BEGINNING


def read_values(inventory: Inventory, topics: Mapping[str, int], tag: bytes) -> Iterator[tuple[int, int]]:
    """(epoch, sequence) of every record of the load in the topics' partitions (name -> number of partitions).

    The ends are taken first, so that the reading is finite.  Records of others are passed over.

    Raises:
        LoadNotRead: an end is not known, or nothing came for a minute.
    """
    if not topics:
        return
    settings: dict[str, Any] = cluster_config(inventory) | {
        "group.id": "kraft-migrate-load-check",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": 16384,
    }
    consumer = Consumer(settings, logger=LOG)
    try:
        pending = _ends(consumer, topics)
        total = sum(end - start for start, end in pending.values())
        LOG.info("reading %d partitions whole: %d offsets", len(pending), total)
        pending = {place: bounds for place, bounds in pending.items() if bounds[1] > bounds[0]}
        consumer.assign([TopicPartition(*place, _FROM_THE_FIRST) for place in pending])
        heard = time.monotonic()
        while pending:
            messages = consumer.consume(BATCH, WAIT_SECONDS)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > STALL_SECONDS:
                name, partition = next(iter(pending))
                raise LoadNotRead(
                    f"nothing came for {STALL_SECONDS:g} s; {len(pending)} partitions are not read to their end",
                    where=f"{name}-{partition}",
                )
            found = (_take(message, pending, tag) for message in messages)
            yield from (one for one in found if one is not None)
    except KafkaException as error:
        raise LoadNotRead(f"reading the load failed: {error.args[0]}") from error
    finally:
        consumer.close()


def _ends(consumer: Consumer, topics: Mapping[str, int]) -> dict[tuple[str, int], tuple[int, int]]:
    """First and end offset of each partition."""
    return {
        (name, partition): _bounds(consumer, name, partition)
        for name, count in topics.items()
        for partition in range(count)
    }


@retry(
    retry=retry_if_exception_type(Retryable), stop=stop_after_delay(STALL_SECONDS), wait=wait_fixed(0.5), reraise=True
)
def _bounds(consumer: Consumer, name: str, partition: int) -> tuple[int, int]:
    """The offsets of one partition: a new leader answers OFFSET_NOT_AVAILABLE until its followers have fetched."""
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=30)
    except KafkaException as error:
        raise LoadNotRead(f"reading the load failed: {error.args[0]}", where=f"{name}-{partition}") from error
    return first, end


def _take(message: Message, pending: dict[tuple[str, int], tuple[int, int]], tag: bytes) -> tuple[int, int] | None:
    """The id in a message, None for another's; a partition that is read to its end leaves `pending`."""
    place = (str(message.topic()), int(message.partition() or 0))
    error = message.error()
    offset = int(message.offset() or 0)
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
            raise KafkaException(error)
        if place in pending and offset >= pending[place][1]:
            del pending[place]
        return None
    if place in pending and offset + 1 >= pending[place][1]:
        del pending[place]
    return record_id(message.value(), tag)


_GROWTH: Final = 4096  # bytes


class IdSet:
    """Ids (epoch, sequence); sequences of an epoch are dense from 0, so one bitmap an epoch holds them."""

    def __init__(self) -> None:
        self._bits: dict[int, bytearray] = {}

    def add(self, epoch: int, sequence: int) -> bool:
        """Put an id in; False if it was there."""
        bits = self._bits.setdefault(epoch, bytearray())
        index, mask = sequence >> 3, 1 << (sequence & 7)
        if index >= len(bits):
            bits.extend(bytes(max(_GROWTH, index + 1 - len(bits))))
        if bits[index] & mask:
            return False
        bits[index] |= mask
        return True

    def __contains__(self, key: tuple[int, int]) -> bool:
        epoch, sequence = key
        bits = self._bits.get(epoch, b"")
        index = sequence >> 3
        return index < len(bits) and bool(bits[index] & (1 << (sequence & 7)))

    def __len__(self) -> int:
        return sum(int.from_bytes(bits, "little").bit_count() for bits in self._bits.values())

    def without(self, other: IdSet) -> Iterator[tuple[int, int]]:
        """The ids of this set that the other lacks, in order."""
        for epoch, bits in sorted(self._bits.items()):
            theirs = other._bits.get(epoch, b"")
            for index, byte in enumerate(bits):
                left = byte & ~(theirs[index] if index < len(theirs) else 0)
                while left:
                    lowest = left & -left
                    yield epoch, (index << 3) + lowest.bit_length() - 1
                    left ^= lowest


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
        """Add one epoch's history.

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
        """Add one record of this load that was read from a partition."""
        if (epoch, sequence) not in self.sent:
            self.unexpected += 1
        elif not self.found.add(epoch, sequence):
            self.duplicated.add(epoch, sequence)

    def summary(self, watch_file: Path, restarts: Sequence[RestartInterval]) -> LoadSummary:
        """The verdict as a value."""
        watch = fold_samples(read_samples(watch_file))
        short, judged = load_watch.find_short_intervals(
            load_watch.read_isr_samples(watch_file.with_name(load_watch.FILE))
        )
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
                (one.start, one.end - one.start, one.worst.partition, load_watch.explain_shortage(one, restarts))
                for one in short
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
    """Complaints about a run, one sentence each; empty where the load's guarantees were kept.

    A load that had nothing acknowledged proves nothing, and is a complaint of its own.
    """
    found: list[str] = []
    if not summary.acknowledged:
        found.append("no record was acknowledged: nothing is proven")
    if summary.missing:
        found.append(f"{summary.missing} acknowledged records are missing")
    if summary.duplicated:
        found.append(f"{summary.duplicated} records are at two offsets")
    if summary.unexpected:
        found.append(f"{summary.unexpected} records were never sent")
    found.extend(
        f"{partition} had no leader for {seconds:.2f} s, for no known reason"
        for _, seconds, partition, why in summary.leaderless
        if why == UNEXPLAINED
    )
    return tuple(found)
