"""The running load: produces at a steady rate, consumes, watches the metadata.

The producer is idempotent with acks=all and gives up on nothing for long: a record that a restart delays is
acknowledged late, which shows as a gap.  A fatal error of the producer ends its session; the next one has a new epoch,
so that ids stay unique whatever happened.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from migrate.lab import load_watch
from migrate.lab.load_history import HistoryWriter, Kind, LoadTopic, record_value
from migrate.lab.load_watch import SAMPLE_SECONDS, LeaderMemory, Sample, append_lines

LOG: Final = logging.getLogger("migrate.lab.load")
GROUP: Final = "kraft-migrate-load"
FLUSH_SECONDS: Final = 30.0
BEHIND_SECONDS: Final = 1.0  # later than this the missed records are dropped from the schedule, not sent in a burst
MIN_ISR: Final = "min.insync.replicas"
DESCRIBE_SECONDS: Final = 2.0
TICK_SECONDS: Final = 0.02  # below a millisecond poll() returns at once: a loop of such waits would spin
READ_GAP_SECONDS: Final = 2.0
PRODUCER: Final[Mapping[str, str | int | float | bool]] = {
    "enable.idempotence": True,
    "acks": "all",
    # with two, a leader that comes into office between them refuses the second: librdkafka then raises its epoch, and
    # what other partitions had not acknowledged yet is written twice (librdkafka 4953)
    "max.in.flight.requests.per.connection": 1,
    "linger.ms": 200,  # batches of a few records: a request for each would cost the brokers three times as much
    "message.timeout.ms": 1_800_000,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 5_000,
}
CONSUMER: Final[Mapping[str, str | int | float | bool]] = {
    "group.id": GROUP,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "session.timeout.ms": 10_000,
    "fetch.min.bytes": 65_536,
    "fetch.wait.max.ms": 250,
}


@dataclass(slots=True)
class Tally:
    """Totals, written to `status.json`."""

    epoch: int = 0
    sent: int = 0
    acknowledged: int = 0
    failed: int = 0
    read: int = 0
    lag: int = -1
    changed: threading.Event = field(default_factory=threading.Event)

    def data(self) -> dict[str, int]:
        """The numbers; lag -1 is not known."""
        names = ("epoch", "sent", "acknowledged", "failed", "read", "lag")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What the load does: clients' settings (secrets in them), where it writes, its tag, topics, records a second."""

    config: Mapping[str, Any] = field(repr=False)
    folder: Path
    tag: bytes
    topics: tuple[LoadTopic, ...]
    rate: float


class ProducerSession:
    """One producer and its epoch: sends ids in order, round robin over the partitions, until stopped or broken."""

    def __init__(self, config: Mapping[str, Any], writer: HistoryWriter, rate: float, tally: Tally) -> None:
        self._writer = writer
        self._rate = rate
        self._tally = tally
        self._fatal = ""
        self._producer = Producer({**config, **PRODUCER, "error_cb": self._on_error}, logger=LOG)
        tally.epoch = writer.head.epoch

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = str(error)
            LOG.error("the producer of epoch %d is broken: %s", self._writer.head.epoch, error)

    def _places(self) -> Iterator[tuple[int, str, int]]:
        topics = enumerate(self._writer.head.topics)
        return cycle([(index, topic.name, part) for index, topic in topics for part in range(topic.partitions)])

    def _warm_up(self) -> None:
        """Connect before the first record, so that the client's start does not count as a gap."""
        try:
            self._producer.list_topics(timeout=10.0)
        except KafkaException as error:
            LOG.warning("no broker answered the producer yet: %s", error.args[0])

    def run(self, stop: threading.Event) -> None:
        """Send until `stop`; then wait for records in flight, and close the history."""
        self._warm_up()
        begun = time.monotonic()
        for sequence, (index, topic, partition) in zip(count(), self._places(), strict=False):
            due = begun + sequence / self._rate
            while (left := due - time.monotonic()) > 0 and not stop.is_set():
                self._producer.poll(min(max(left, TICK_SECONDS), 0.1))
            if stop.is_set() or self._fatal:
                break
            if left < -BEHIND_SECONDS:
                begun -= left
            self._send(sequence, index, topic, partition, stop)
        if self._fatal:
            # a topic that a starting broker did not know yet is unknown to librdkafka for half a minute, and what waits
            # for it then goes out under another sequence: twice, where it had been written
            self._producer.purge(in_queue=True, in_flight=False)
        left_over = self._producer.flush(FLUSH_SECONDS)
        if left_over:
            LOG.warning("%d records were neither acknowledged nor refused when the load ended", left_over)
        self._writer.close(time.time())

    def _send(self, sequence: int, index: int, topic: str, partition: int, stop: threading.Event) -> None:
        head = self._writer.head

        def note(kind: Kind, offset: int = -1) -> None:
            self._writer.write(index, partition, sequence, kind, time.time(), offset)

        note(Kind.SENT)
        self._tally.sent += 1

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                offset = message.offset()
                note(Kind.ACKED, -1 if offset is None else offset)
                self._tally.acknowledged += 1
            else:
                note(Kind.FAILED)
                self._tally.failed += 1

        value = record_value(head.tag, head.epoch, sequence)
        while not stop.is_set() and not self._fatal:
            try:
                self._producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
            except BufferError:  # the queue is full: a leader is away for long
                self._producer.poll(0.1)
            except KafkaException as error:
                self._fatal = str(error)
                LOG.error("the producer of epoch %d refuses records: %s", head.epoch, error)  # noqa: TRY400 - known
            else:
                return


def produce(plan: LoadPlan, tally: Tally, stop: threading.Event) -> None:
    """Sessions one after the other until `stop`."""
    while not stop.is_set():
        writer = HistoryWriter(plan.folder, plan.tag, plan.topics)
        ProducerSession(plan.config, writer, plan.rate, tally).run(stop)
        stop.wait(0.5)


def read_along(plan: LoadPlan, tally: Tally, stop: threading.Event) -> None:
    """A consumer group that reads what is produced; a line a second with its lag, and one for every gap."""
    consumer = Consumer({**plan.config, **CONSUMER}, logger=LOG)
    consumer.subscribe([topic.name for topic in plan.topics])
    last_line = last_read = time.monotonic()
    with append_lines(plan.folder / "consumer.jsonl") as log:
        while not stop.is_set():
            good = sum(1 for message in consumer.consume(1000, 0.25) if message.error() is None)
            now = time.monotonic()
            if good:
                if now - last_read > READ_GAP_SECONDS and tally.read:
                    _write_line(log, {"time": time.time(), "gap": round(now - last_read, 3)})
                tally.read += good
                last_read = now
            if now - last_line >= 1.0:
                tally.lag = _lag(consumer)
                _write_line(log, {"time": time.time(), "read": tally.read, "lag": tally.lag})
                last_line = now
    consumer.close()


def _lag(consumer: Consumer) -> int:
    """Records between the group's position and the end, as last heard; -1 where no end is known yet."""
    total = 0
    try:
        for place in consumer.position(consumer.assignment()):
            _, end = consumer.get_watermark_offsets(TopicPartition(place.topic, place.partition), cached=True)
            if end < 0:
                return -1
            total += max(0, end - max(0, place.offset))
    except KafkaException:
        return -1
    return total


def watch(plan: LoadPlan, stop: threading.Event) -> None:
    """Sample which partitions have no leader, or a short ISR, every `SAMPLE_SECONDS`, all topics of the cluster."""
    admin = AdminClient(dict(plan.config), logger=LOG)
    memory, least = LeaderMemory(), dict[str, int]()
    with append_lines(plan.folder / "watch.jsonl") as log, append_lines(plan.folder / load_watch.FILE) as in_sync:
        while not stop.is_set():
            begun = time.monotonic()
            answer = _asked(admin)
            log.write(_sample(answer, memory).line())
            log.flush()
            if not isinstance(answer, str):
                _learn(admin, answer.topics, least)
                in_sync.write(load_watch.judge_isr(time.time(), least, _isrs(answer.topics)).line())
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


def _write_line(log: Any, data: Mapping[str, Any]) -> None:
    log.write(json.dumps(data, separators=(",", ":")) + "\n")
    log.flush()
