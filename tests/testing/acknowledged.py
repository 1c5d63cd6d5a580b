"""How long clients wait for an acknowledgement: a producer that writes to every partition, and the gaps between."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from confluent_kafka import KafkaError, Message, Producer

SETTINGS: Mapping[str, Any] = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 0,
    "message.timeout.ms": 600_000,  # late is measured, lost is not meant
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
}


@dataclass(frozen=True, slots=True)
class Restart:
    """One broker's restart: who, whose, and the time of the wall clock in which it is looked for gaps."""

    kind: str
    broker: int
    begins: float
    ends: float


@dataclass(frozen=True, slots=True)
class Downtime:
    """The longest time without an acknowledgement of each partition, in seconds, sorted."""

    restart: Restart
    gaps: tuple[float, ...]

    @property
    def total(self) -> float:
        """Over all partitions."""
        return sum(self.gaps)

    @property
    def longest(self) -> float:
        """Of the worst partition."""
        return self.gaps[-1]

    @property
    def p99(self) -> float:
        """Nearest rank."""
        return self.gaps[max(0, -(-len(self.gaps) * 99 // 100) - 1)]


def downtime(acknowledged: Mapping[int, Sequence[float]], restart: Restart) -> Downtime:
    """The longest gap of each partition that touches the restart (pure); a partition without any is down throughout."""
    return Downtime(restart, tuple(sorted(_longest(times, restart) for times in acknowledged.values())))


def _longest(times: Sequence[float], restart: Restart) -> float:
    before = max((time for time in times if time <= restart.begins), default=restart.begins)
    behind = min((time for time in times if time >= restart.ends), default=restart.ends)
    inside = [time for time in times if restart.begins < time < restart.ends]
    known = [before, *inside, behind]
    return max(later - earlier for earlier, later in itertools.pairwise(known))


@dataclass(slots=True)
class Acknowledged:
    """A producer of its own: so many records a second to each partition, until it is closed."""

    config: Mapping[str, Any]  # of a client: where the brokers are, and who it is
    topic: str
    partitions: int
    rate: float = 20.0
    times: dict[int, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.times = {partition: [] for partition in range(self.partitions)}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(60)

    def _run(self) -> None:
        producer = Producer({**self.config, **SETTINGS})
        turn = 0
        due = time.monotonic()
        while not self._stop.is_set():
            producer.poll(max(0.0, due - time.monotonic()))
            if time.monotonic() < due:
                continue
            due = max(due + 1 / (self.rate * self.partitions), time.monotonic() - 1.0)
            producer.produce(self.topic, b"x" * 100, partition=turn % self.partitions, on_delivery=self._told)
            turn += 1
        producer.flush(30)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        if error is not None or partition is None:
            self.failed.append(str(error))
        else:
            self.times[partition].append(time.time())

    def whole(self) -> bool:
        """Has every partition been acknowledged lately?"""
        now = time.time()
        return all(times and now - times[-1] < 2.0 for times in self.times.values())

    def over(self, restarts: Iterable[Restart]) -> tuple[Downtime, ...]:
        """What each restart cost."""
        known = {partition: tuple(times) for partition, times in self.times.items()}
        return tuple(downtime(known, restart) for restart in restarts)
