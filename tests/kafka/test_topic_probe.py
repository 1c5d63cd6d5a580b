"""The probe of a topic: what comes back is fine, what does not is not, and a silent one says nothing.

librdkafka brings brokers of its own for such tests (`test.mock.num.brokers`): they speak Kafka's protocol, in the
client's process.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from migrate.errors import ProbeSilent
from migrate.kafka import topic_probe
from migrate.kafka.topic_probe import Tally, TopicProbe
from migrate.model.inventory import ErrorBudget
from migrate.model.outcome import NotYet, Ready, Unknown
from migrate.run.budget import within_budget

WAIT = 30.0


@dataclass
class Brokers:
    """Three brokers that live as long as `owner`, and how to reach them."""

    owner: Producer | None
    bootstrap: str

    def config(self) -> dict[str, Any]:
        """What a client needs."""
        return {"bootstrap.servers": self.bootstrap}

    def end(self) -> None:
        """All of them go."""
        self.owner = None


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Three brokers with a topic of four partitions, the broker's default there."""
    owner = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 3})
    known = owner.list_topics("probe", timeout=10)
    found = Brokers(owner, ",".join(f"{broker.host}:{broker.port}" for broker in known.brokers.values()))
    del owner
    yield found
    found.end()


def seen(history: Path) -> tuple[int, int]:
    """Records that were fine, and those that failed."""
    lines = [json.loads(line) for line in history.read_text().splitlines()] if history.exists() else []
    return sum(line["ok"] for line in lines), sum(line["failed"] for line in lines)


def until(done: Any) -> None:
    """Wait for a state."""
    pause, deadline = threading.Event(), time.monotonic() + WAIT
    while not done():
        assert time.monotonic() < deadline
        pause.wait(0.05)


def test_records_that_come_back_are_told_once_a_second(brokers: Brokers, tmp_path: Path) -> None:
    """On every partition; the budget reads what is written."""
    history = tmp_path / "runs" / "probe.jsonl"
    probe = TopicProbe(brokers.config(), "probe", history)
    probe.start()
    try:
        until(lambda: seen(history)[0] >= 8)
        assert seen(history)[1] == 0
        assert within_budget(ErrorBudget(str(history), 0.001, 60.0), time.time()) == Ready()
    finally:
        probe.close()
    assert not any(thread is probe._thread for thread in threading.enumerate())
    after = seen(history)
    assert after == seen(history)


def test_brokers_that_go_are_failures_and_spend_the_budget(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client would see an error; the next restart waits."""
    monkeypatch.setattr(topic_probe, "PATIENCE", 0.5)
    history = tmp_path / "probe.jsonl"
    probe = TopicProbe(brokers.config(), "probe", history)
    probe.start()
    try:
        until(lambda: seen(history)[0] > 0)
        brokers.end()
        until(lambda: seen(history)[1] > 0)
        found = within_budget(ErrorBudget(str(history), 0.0, 60.0), time.time())
        assert isinstance(found, NotYet)
        assert "failed within 60 s; nothing is restarted meanwhile" in found.next_step
    finally:
        probe.close()


def test_a_cluster_that_does_not_answer_is_told_before_anything_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the topic that was meant, and what the client said."""
    monkeypatch.setattr(topic_probe, "PATIENCE", 0.5)
    probe = TopicProbe({"bootstrap.servers": "127.0.0.1:1"}, "probe", tmp_path / "p", ready=1.0)
    with pytest.raises(ProbeSilent) as told:
        probe.start()
    assert "policy.probes.topic probe" in str(told.value.where)
    assert "does not answer" in told.value.what
    assert not (tmp_path / "p").exists()


def test_a_topic_that_cannot_be_used_is_told(brokers: Brokers, tmp_path: Path) -> None:
    """A name that no topic can have."""
    probe = TopicProbe(brokers.config(), "no topic/at all", tmp_path / "p", ready=2.0)
    with pytest.raises(ProbeSilent):
        probe.start()


def test_a_silent_probe_is_unknown_and_never_fine(tmp_path: Path) -> None:
    """One that ended long ago, too."""
    history = tmp_path / "p"
    history.write_text('{"time": 1.0, "ok": 100, "failed": 0}\n')
    assert isinstance(within_budget(ErrorBudget(str(history), 0.1, 60.0), time.time()), Unknown)


def test_a_record_counts_once_whatever_comes_first() -> None:
    """Its acknowledgement or itself; late is failed, and stays so."""
    tally = Tally()
    tally.ack(1, 0.0)
    tally.back(1)
    tally.back(2)
    tally.ack(2, 0.0)
    tally.ack(3, 0.0)
    tally.give_up(5.0)
    assert (tally.ok, tally.failed) == (2, 0)
    tally.give_up(11.0)
    tally.back(3)
    assert (tally.ok, tally.failed) == (2, 1)
