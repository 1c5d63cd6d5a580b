"""A whole migration beside a client that creates and deletes a topic about every second, as test suites and Streams do.

The client begins when the cluster is seeded, and ends behind the run: planning, both rolls, soak, finalize and the
proofs at the end all meet its topics.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.lab.cluster import Lab
from migrate.lab.proofs import quiet_clients
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
]
ENOUGH = 20  # topics that were created and deleted in the run, at the least


@dataclass
class TopicChurn:
    """The client; `created` and `deleted` are the times of what the cluster acknowledged."""

    admin: AdminClient
    stop: threading.Event = field(default_factory=threading.Event)
    created: list[float] = field(default_factory=list)
    deleted: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # a broker that restarts makes some requests fail
    left: set[str] = field(default_factory=set)  # topics that may exist

    def run(self) -> None:
        """A new name each time, until it is stopped."""
        number = 0
        while not self.stop.is_set():
            number += 1
            self._create(f"churn-{number}")
            self.stop.wait(0.5)
            self.delete_all()
            self.stop.wait(0.5)

    def _create(self, name: str) -> None:
        self.left.add(name)  # whatever is answered: a request that timed out may have been carried out
        made = self.admin.create_topics([NewTopic(name, 2, 3)], operation_timeout=5, request_timeout=10)
        if self._acknowledged(f"create {name}", made[name]):
            self.created.append(time.time())

    def delete_all(self) -> None:
        """Everything that it has created; what fails is asked for again the next time."""
        for name in sorted(self.left):
            gone = self.admin.delete_topics([name], operation_timeout=5, request_timeout=10)[name]
            if self._acknowledged(f"delete {name}", gone):
                self.deleted.append(time.time())
                self.left.discard(name)

    def _acknowledged(self, what: str, answer: object) -> bool:
        try:
            answer.result(20)  # type: ignore[attr-defined] # a Future, which confluent-kafka leaves without a type
        except KafkaException as error:
            self.refused.append(f"{what}: {error}")
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self.left.discard(what.split()[1])
            return False
        return True


@contextmanager
def topic_churn(lab: Lab) -> Iterator[TopicChurn]:
    """The client in a thread of its own, until the block ends."""
    churn = TopicChurn(AdminClient(quiet_clients(lab.inventory)))
    thread = threading.Thread(target=churn.run)
    thread.start()
    try:
        yield churn
    finally:
        churn.stop.set()
        thread.join(120)


@pytest.mark.long
def test_a_migration_beside_topics_that_come_and_go_each_second_ends_proven(directory: Path) -> None:
    """Exit code 0 and PROVEN, with topics created and deleted from the first step to the last."""
    words = ("lab", "demo", "--dir", str(directory), "--no-load")
    parked = kraft_migrate(*words, "--until", "assess")
    assert parked.returncode == 0, parked.stderr[-3000:]
    with topic_churn(Lab.open(directory)) as churn:
        ended = kraft_migrate(*words, "--keep")
    assert ended.returncode == 0, ended.stderr[-4000:]
    folder = Path(json.loads((directory / "demo.json").read_text())["plan"]).parent
    report = json.loads((folder / "report.json").read_text())
    assert report["verdict"]["word"] == "PROVEN"
    events = journals.read(folder / "journal.jsonl").events
    begun, over = events[0].time, events[-1].time
    for acknowledged in (churn.created, churn.deleted):
        assert sum(begun <= moment <= over for moment in acknowledged) > ENOUGH, churn.refused[-20:]
    churn.delete_all()
    assert not churn.left, churn.refused[-5:]
    counts = f"{len(churn.created)} created, {len(churn.deleted)} deleted, {len(churn.refused)} refused"
    print(f"{counts}, in {over - begun:.0f} s")
