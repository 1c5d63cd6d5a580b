"""The load's producer against librdkafka's own small broker: what ends its session, and what is given up then."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from migrate.lab import load_client
from migrate.lab.load_client import PRODUCER, ProducerSession, Tally
from migrate.lab.load_history import HistoryWriter, Kind, LoadTopic, histories, read_entries

UNKNOWN_TOPIC = -188
MOCK = {"test.mock.num.brokers": 1}


def session(folder: Path, patience: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Tally, list[str]]:
    """One that ends by itself: its producer takes so many records, then it says that it does not know the topic.

    Its totals, and what its history tells of records.
    """

    class Forgetful(Producer):
        def produce(self, *args: Any, **words: Any) -> None:
            if len(taken) == patience:
                raise KafkaException(KafkaError(UNKNOWN_TOPIC))
            taken.append(args)
            super().produce(*args, **words)

    taken: list[tuple[Any, ...]] = []
    monkeypatch.setattr(load_client, "Producer", lambda config, **words: Forgetful(config | MOCK, **words))
    writer, tally = HistoryWriter(folder, b"the tag!", (LoadTopic("orders", 2, 3),)), Tally()
    ProducerSession({}, writer, 200.0, tally).run(threading.Event())
    ((_, path),) = histories(folder)
    return tally, [Kind(entry.kind).name for entry in read_entries(path) if entry.kind != Kind.CLOSED]


def test_a_topic_that_a_starting_broker_does_not_know_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has not gone out by then is given up, not sent later under another sequence: nothing goes out twice."""
    monkeypatch.setattr(load_client, "PRODUCER", {**PRODUCER, "linger.ms": 60_000})  # nothing has gone out
    tally, told = session(tmp_path, 40, monkeypatch)
    assert (tally.sent, tally.acknowledged, tally.failed) == (41, 0, 40)
    assert Counter(told) == {"SENT": 41, "FAILED": 40}


def test_one_request_a_broker_is_under_way() -> None:
    """With two, a leader's change between them makes librdkafka write other partitions' records twice."""
    assert PRODUCER["max.in.flight.requests.per.connection"] == 1
    assert PRODUCER["enable.idempotence"] is True
