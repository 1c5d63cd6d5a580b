"""A probe of what clients feel: records written to one topic of the operator's, and read back, all the time.

A record is fine when it was acknowledged by the whole ISR of its partition and came back; it failed when it was given
up after PATIENCE, or did not come back within PATIENCE of its acknowledgement.  Partitions take turns: with one led by
each broker every broker is probed.  Once a second a line `{"time": ..., "ok": N, "failed": N}` is appended to the
history, as `migrate.run.budget` reads it.
"""

from __future__ import annotations

import itertools
import json
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from migrate.errors import ProbeSilent
from migrate.model.requirements import require

LOG: Final = logging.getLogger("migrate.kafka")
EVERY: Final = 0.1  # seconds between two records
REPORT: Final = 1.0  # seconds between two lines of the history
PATIENCE: Final = 10.0  # seconds: what a client with a short delivery.timeout.ms would wait
READY: Final = 30.0  # seconds until the first record must have come back
NO_GROUP: Final = "kraft-migrate-probe"  # a name that librdkafka asks for: nothing is committed under it


@dataclass(slots=True)
class Tally:
    """The records in flight: when each was `acknowledged`, by number, until it was read or failed."""

    ok: int = 0
    failed: int = 0
    acknowledged: dict[int, float] = field(default_factory=dict)
    early: set[int] = field(default_factory=set)  # read before the acknowledgement was heard of

    def ack(self, number: int, now: float) -> None:
        if number in self.early:
            self.early.discard(number)
            self.ok += 1
        else:
            self.acknowledged[number] = now

    def back(self, number: int) -> None:
        if self.acknowledged.pop(number, None) is None:
            self.early.add(number)
        else:
            self.ok += 1

    def give_up(self, now: float) -> None:
        late = [number for number, when in self.acknowledged.items() if now - when > PATIENCE]
        for number in late:
            del self.acknowledged[number]
        self.failed += len(late)


class TopicProbe:
    """One probe; `start` returns when the first record was read back, `close` ends it."""

    def __init__(self, config: Mapping[str, Any], topic: str, history: Path, *, ready: float = READY) -> None:
        self._config, self._topic, self._history, self._ready = dict(config), topic, history, ready
        self._tag = secrets.token_hex(8).encode()
        self._tally, self._end = Tally(), threading.Event()
        self._said = ""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start; ProbeSilent where the topic is missing or no record was read back within READY, PackageMissing."""
        require("confluent_kafka")
        from confluent_kafka import Consumer, KafkaException, Producer  # noqa: PLC0415 - only who probes loads it

        told = {"log_level": 0, "error_cb": self._heard}  # a broker that restarts is no news, and the budget counts
        producer = Producer({**self._config, "acks": "all", "message.timeout.ms": int(PATIENCE * 1000), **told})
        reading = {"group.id": NO_GROUP, "enable.auto.commit": False, "auto.offset.reset": "latest"}
        consumer = Consumer({**self._config, **reading, **told})
        try:
            partitions = self._assign(consumer)
        except KafkaException as error:
            consumer.close()
            raise self._silent(f"the cluster does not answer: {error.args[0]}") from error
        except ProbeSilent:
            consumer.close()
            raise
        self._history.parent.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, args=(producer, consumer, partitions), daemon=True)
        self._thread.start()
        deadline = time.monotonic() + self._ready
        while not self._tally.ok:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.close()
                raise self._silent(f"no record came back within {self._ready:.0f} s")
            self._end.wait(EVERY)

    def close(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join(2 * PATIENCE)

    def _assign(self, consumer: Any) -> int:
        """Every partition of the topic, from its present end on."""
        from confluent_kafka import TopicPartition  # noqa: PLC0415 - as above

        known = consumer.list_topics(self._topic, timeout=PATIENCE).topics[self._topic]  # a consumer makes no topic
        if known.error is not None or not known.partitions:
            raise self._silent(f"the topic cannot be used: {known.error or 'it has no partition'}")
        ends = []
        for number in known.partitions:
            _, end = consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=PATIENCE)
            ends.append(TopicPartition(self._topic, number, end))
        consumer.assign(ends)
        return len(ends)

    def _run(self, producer: Any, consumer: Any, partitions: int) -> None:
        reported, due, tally = (0, 0), time.monotonic() + REPORT, self._tally
        try:
            with self._history.open("a", encoding="ascii") as history:
                for number in itertools.count():
                    if self._end.is_set():
                        return
                    self._send(producer, number, number % partitions)
                    producer.poll(0)
                    for message in consumer.consume(100, EVERY):
                        if message.error() is None and message.key() == self._tag:
                            tally.back(int(message.value()))
                    now = time.monotonic()
                    tally.give_up(now)
                    if now >= due:
                        self._report(history, reported)
                        reported, due = (tally.ok, tally.failed), now + REPORT
        except Exception:  # a probe that ends is silent, and a silent one holds the next restart
            LOG.exception("the probe of topic %s ended", self._topic)
        finally:
            producer.purge()
            consumer.close()

    def _send(self, producer: Any, number: int, partition: int) -> None:
        def delivered(error: Any, _message: Any) -> None:
            if error is None:
                self._tally.ack(number, time.monotonic())
            else:
                self._said = str(error)
                self._tally.failed += 1

        try:
            producer.produce(self._topic, str(number).encode(), self._tag, partition=partition, on_delivery=delivered)
        except BufferError:
            self._tally.failed += 1

    def _report(self, history: Any, before: tuple[int, int]) -> None:
        new = (self._tally.ok - before[0], self._tally.failed - before[1])
        if new == (0, 0):
            return  # nothing is known yet: silence says so
        history.write(json.dumps({"time": time.time(), "ok": new[0], "failed": new[1]}) + "\n")
        history.flush()

    def _heard(self, error: Any) -> None:
        self._said = str(error)

    def _silent(self, what: str) -> ProbeSilent:
        return ProbeSilent(what, where=f"policy.probes.topic {self._topic}", why=self._said)
