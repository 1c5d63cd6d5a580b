"""The judgement of a load: what brokers acknowledged to its producers, against what is in the partitions.

A claim is made for topics with two replicas or more; records of the others are counted apart.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate.errors import LoadNotRead, LoadStillRuns, Retryable
from migrate.java.find import find_java
from migrate.java.run import run_tool
from migrate.kafka.tls import cluster_config
from migrate.lab import load_watch
from migrate.lab.load import ACKED, FAILED, TOOLS, client_file, find_load, histories, load_folder, printed
from migrate.lab.load_watch import UNEXPLAINED, RestartInterval, attribute, fold_samples, read_samples
from migrate.lab.topology import load_topology
from migrate.model.history import LoadSummary
from migrate.model.inventory import Inventory
from migrate.model.views import Running, Stopped

STALL_SECONDS: Final = 60.0
READ_SECONDS: Final = 600.0
USUAL_SECONDS: Final = 1.0  # a partition of which nothing is acknowledged for longer than this has a gap
VALUE: Final = re.compile(r"\d{1,9}\.\d{1,18}")
Gap = tuple[float, float, str]  # start, seconds, topic-partition


@dataclass(slots=True)
class Judgement:
    """What is known of one topic: values that were acknowledged, given up, read; `claimed` may lose nothing."""

    topic: str
    claimed: bool
    acked: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    duplicated: set[str] = field(default_factory=set)
    unexpected: int = 0
    gaps: list[Gap] = field(default_factory=list)
    starts: set[str] = field(default_factory=set)  # prefixes of values that a producer of this load may have sent

    def read_history(self, number: int, entries: Iterable[Mapping[str, Any]]) -> None:
        """Add what one start of the topic's producer printed."""
        self.starts.add(str(number))
        last: dict[int, float] = {}
        ended = 0.0
        for entry in entries:
            ended = max(ended, entry.get("timestamp", 0) / 1000)
            if entry["name"] == ACKED:
                self.acked.add(entry["value"])
                self._gap(last.get(entry["partition"]), ended, entry["partition"])
                last[entry["partition"]] = ended
            elif entry["name"] == FAILED:
                self.failed.add(entry["value"])
        for partition, time in last.items():
            self._gap(time, ended, partition)

    def _gap(self, start: float | None, end: float, partition: int) -> None:
        if start is not None and end - start > USUAL_SECONDS:
            self.gaps.append((start, end - start, f"{self.topic}-{partition}"))

    def saw(self, value: str) -> None:
        """Add one record that was read from a partition; what no producer of ours writes is passed over."""
        if value in self.found:
            self.duplicated.add(value)
        elif VALUE.fullmatch(value):
            known = value.partition(".")[0] in self.starts
            self.found |= {value} if known else set()
            self.unexpected += not known

    @property
    def missing(self) -> int:
        """Acknowledged records that are not there."""
        return len(self.acked - self.found)


def summary_of(judged: Sequence[Judgement], folder: Path, restarts: Sequence[RestartInterval]) -> LoadSummary:
    """The verdict as a value."""
    watch = fold_samples(read_samples(folder / "watch.jsonl"))
    short, samples = load_watch.find_short_intervals(load_watch.read_isr_samples(folder / load_watch.FILE))
    return LoadSummary(
        sent=sum(len(one.acked | one.failed | one.found) for one in judged),
        acknowledged=sum(len(one.acked) for one in judged),
        read=sum(len(one.found) for one in judged),
        missing=sum(one.missing for one in judged if one.claimed),
        duplicated=sum(len(one.duplicated) for one in judged),
        gaps=tuple(sorted(gap for one in judged for gap in one.gaps)),
        leaderless=tuple(
            (one.start, one.end - one.start, one.partition, attribute(one, restarts)) for one in watch.leaderless
        ),
        missing_single=sum(one.missing for one in judged if not one.claimed),
        unexpected=sum(one.unexpected for one in judged),
        blind=tuple((start, end - start, why) for start, end, why in watch.blind),
        short=tuple(
            (one.start, one.end - one.start, one.worst.partition, load_watch.explain_shortage(one, restarts))
            for one in short
        ),
        judged=samples,
    )


def check_load(lab_dir: Path, inventory: Inventory, restarts: Sequence[RestartInterval]) -> LoadSummary:
    """Judge the stopped load of a lab: read what its producers printed, then every partition whole.

    `restarts` are the restarts that we made; they explain partitions without leader.

    Raises:
        LoadStillRuns: the load has to be stopped first.
        LoadHistoryBroken: a file of the load is damaged.
        LoadNotRead: a partition could not be read to its end.
        JavaToolFailed: the consumer that reads it did not end in time.
    """
    state = find_load(lab_dir)
    if not isinstance(state, Stopped):
        why = f"process {state.pid} lives" if isinstance(state, Running) else state.reason
        raise LoadStillRuns("the load is not known to have stopped", where=str(lab_dir), why=why)
    topics = AdminClient(cluster_config(inventory)).list_topics(timeout=STALL_SECONDS).topics
    judged: dict[str, Judgement] = {}
    for topic, number, path in histories(lab_dir):
        factor = len(topics[topic].partitions[0].replicas) if topic in topics else 0
        judged.setdefault(topic, Judgement(topic, claimed=factor != 1)).read_history(number, printed(path))
    for topic, one in judged.items():
        for value in read_values(lab_dir, inventory, topic, len(topics[topic].partitions) if topic in topics else 0):
            one.saw(value)
    return summary_of(tuple(judged.values()), load_folder(lab_dir), restarts)


def read_values(lab_dir: Path, inventory: Inventory, topic: str, partitions: int) -> Iterator[str]:
    """The value of every record of the topic, read by a VerifiableConsumer.

    The ends are taken first, so that the reading is finite.

    Raises:
        LoadNotRead: an end is not known, or fewer records came than there are.
        JavaToolFailed: the consumer did not end in time.
    """
    consumer = Consumer(cluster_config(inventory) | {"group.id": "kraft-migrate-load-check"})
    try:
        left = sum(_records(consumer, topic, partition) for partition in range(partitions))
    finally:
        consumer.close()
    if not left:
        return
    topology = load_topology(lab_dir)
    words = (
        *("--bootstrap-server", topology.bootstrap, "--topic", topic),
        *("--consumer.config", str(client_file(topology))),
        *("--group-id", f"kraft-migrate-load-check-{secrets.token_hex(4)}", "--verbose"),
        *("--max-messages", str(left), "--reset-policy", "earliest"),
    )
    done = run_tool(find_java(), topology.classpath(), f"{TOOLS}.VerifiableConsumer", words, READ_SECONDS)
    for line in done.stdout.split("\n"):  # a value may hold other ends of lines
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("name") == "record_data":
            left -= 1
            yield str(entry["value"])
    if left > 0:
        raise LoadNotRead(f"{left} records were not read", where=topic, why=done.stderr[-500:])


@retry(
    retry=retry_if_exception_type(Retryable), stop=stop_after_delay(STALL_SECONDS), wait=wait_fixed(0.5), reraise=True
)
def _records(consumer: Consumer, name: str, partition: int) -> int:
    """How many one partition has: a new leader answers OFFSET_NOT_AVAILABLE until its followers have fetched."""
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=30)
    except KafkaException as error:
        raise LoadNotRead(f"reading the load failed: {error.args[0]}", where=f"{name}-{partition}") from error
    return int(end - first)


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
