"""A real move between two directories of a broker (AlterReplicaLogDirs), as slow as its throttle makes it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from migrate.kafka.connection import Connection
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from tests.testing.kafka_schemas import KafkaApi

THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
MEGABYTES = 6
SLOW = 20_000  # bytes a second: minutes, unless somebody lets it go
ALTER_REPLICA_LOG_DIRS = KafkaApi("AlterReplicaLogDirs")


def throttled(admin: AdminClient, broker: int, value: str | None) -> None:
    """Set or take away the throttle of a broker's moves."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(THROTTLE, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    deadline = time.monotonic() + 30
    while value is not None and told_by(admin, broker) != value:  # a move that begins before has no throttle
        assert time.monotonic() < deadline, "the broker does not take the throttle"


def told_by(admin: AdminClient, broker: int) -> str | None:
    """The throttle as the broker itself has it now."""
    for future in admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))]).values():
        entry = future.result(30).get(THROTTLE)
        return None if entry is None else str(entry.value)
    return None


def filled(lab: Lab, admin: AdminClient, topic: str) -> None:
    """A topic of one partition with a few megabytes that nobody can compress."""
    for future in admin.create_topics([NewTopic(topic, 1, 2)]).values():
        future.result(30)
    producer = Producer({**settings_for(lab.topology), "acks": "all", "log_level": 2})
    for _ in range(MEGABYTES * 10):
        producer.produce(topic, os.urandom(100_000), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0


def home_of(lab: Lab, topic: str) -> tuple[int, Path, Path]:
    """The lowest broker with a replica, the directory it lies in, and another one; once both replicas lie somewhere."""
    deadline = time.monotonic() + 30
    while True:
        homes = [
            (broker, path)
            for broker in lab.topology.brokers
            for path in map(Path, broker.log_dirs)
            if (path / f"{topic}-0").is_dir()
        ]
        if len(homes) == 2:
            broker, path = min(homes, key=lambda home: home[0].id)
            return broker.id, path, next(Path(entry) for entry in broker.log_dirs if Path(entry) != path)
        assert time.monotonic() < deadline


@dataclass(frozen=True, slots=True)
class Move:
    """A replica on its way from `source` to `target`, and what takes its throttle away."""

    broker: int
    source: Path
    target: Path
    let_go: Callable[[], None]


@contextmanager
def a_slow_move(lab: Lab, topic: str) -> Iterator[Move]:
    """A replica on its way from one directory to another, for minutes: until it is let go, which can be done once."""
    admin = AdminClient({**settings_for(lab.topology), "log_level": 3})
    filled(lab, admin, topic)
    broker, source, target = home_of(lab, topic)
    throttled(admin, broker, str(SLOW))
    node = next(entry for entry in lab.inventory.brokers if entry.id == broker)
    body = {"dirs": [{"path": str(target), "topics": [{"name": topic, "partitions": [0]}]}]}
    with Connection(node.address, lab.inventory.broker_access) as connection:
        found = connection.call(ALTER_REPLICA_LOG_DIRS, body, seconds=30)
    assert [part["errorCode"] for entry in found["results"] for part in entry["partitions"]] == [0]
    deadline = time.monotonic() + 30
    while not list(target.glob(f"{topic}-0.*-future")):
        assert time.monotonic() < deadline, "no future copy"
    let_go = cache(lambda: throttled(admin, broker, None))
    try:
        yield Move(broker, source, target, let_go)
    finally:
        let_go()
