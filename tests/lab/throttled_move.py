"""A throttled move between brokers, as people make it: every look names it with its owner, and no broker is restarted.

Before the first roll, where ZooKeeper has what is added and removed, and in dual write, where the metadata has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from migrate.lab.seed import settings_for
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate
from tests.lab.test_other_hands import acted, planned

if TYPE_CHECKING:
    from tests.lab.test_stuck import Cluster

MEGABYTES: Final = 40  # one goes by in each window of the quota, which is 11 s, whatever the throttle
PATIENCE: Final = "no_progress_timeout: 3m"
SLOW: Final = 1000  # bytes a second
NAMED: Final = "1 partition to end its reassignment: {}-0"
OWNER: Final = "whoever moves those replicas (kafka-reassign-partitions, Cruise Control)"


def throttled_move(cluster: Cluster, topic: str, tool: Callable[[str], None]) -> None:
    """`tool` runs a command of Kafka's.  A run waits for the end of the move, and goes on when it was cancelled."""
    lab = cluster.lab
    begin(cluster, topic)
    is_waited_for(cluster, topic, tool, "migration-mode")
    for stage in ("migration-mode", "copy", "hybrid"):
        plan = planned(lab, stage, changes=2 if stage == "migration-mode" else 0)
        ended = kraft_migrate("apply", str(plan))
        assert ended.returncode == 0, ended.stderr
    is_waited_for(cluster, topic, tool, "kraft-mode")


def begin(cluster: Cluster, topic: str) -> None:
    """Partition 0 has enough to move for longer than any look takes."""
    producer = Producer(settings_for(cluster.lab.topology))
    for _ in range(MEGABYTES):
        producer.produce(topic, bytes(900_000), partition=0)
        producer.flush()


def is_waited_for(cluster: Cluster, topic: str, tool: Callable[[str], None], stage: str) -> Path:
    """A move that begins behind the plan of a stage; the run has little patience, as a test has."""
    playbook = cluster.lab.playbook_path
    text = playbook.read_text()
    assert PATIENCE in text
    playbook.write_text(text.replace(PATIENCE, "no_progress_timeout: 10s"))
    plan = planned(cluster.lab, stage)
    with moving(cluster, topic, tool):
        is_named(cluster, topic)
        waits(plan, topic)
    playbook.write_text(text)
    return plan


@contextmanager
def moving(cluster: Cluster, topic: str, tool: Callable[[str], None]) -> Iterator[None]:
    """One replica of partition 0 is on its way to the broker that has none; cancelled at the end."""
    here = AdminClient(settings_for(cluster.lab.topology)).list_topics(topic).topics[topic].partitions[0].replicas
    [other] = {broker.id for broker in cluster.lab.topology.brokers} - set(here)
    file = Path(cluster.lab.topology.folder("move.json"))
    move = {"topic": topic, "partition": 0, "replicas": [here[0], other]}
    file.write_text(json.dumps({"version": 1, "partitions": [move]}))
    words = f"kafka-reassign-partitions --bootstrap-server HOST:PORT --reassignment-json-file {file}"
    tool(f"{words} --execute --throttle {SLOW}")
    try:
        yield
    finally:
        tool(f"{words} --cancel")
        cluster.until(lambda found: "moves" not in found and not found["unhealthy_partitions"])


def is_named(cluster: Cluster, topic: str) -> None:
    """By `status`, and no restart of a broker beside it that does not wait for it."""
    found = cluster.until(lambda found: "moves" in found)
    assert found["moves"]["partitions"] == [f"{topic}-0"]
    assert (found["moves"]["what"], found["moves"]["owner"]) == (NAMED.format(topic), OWNER)
    text = cluster.text()
    assert f"for {NAMED.format(topic)} owner: {OWNER}" in text
    advice = [text for row in found["waiting"] for text in [row["next"]]] + found["contradictions"]
    assert all("restart" not in text.lower() or "once the reassignments have ended" in text for text in advice)


def waits(plan: Path, topic: str) -> None:
    """A run stops no broker, names the move and its owner when its patience ends, and says that none be restarted."""
    ended = kraft_migrate("apply", str(plan))
    said = " ".join(ended.stderr.split())
    assert ended.returncode == 5, said
    assert f"while waiting for {NAMED.format(topic)}" in said
    assert f"{OWNER} did not move" in said
    assert "let it end, or cancel it; keep such tools stopped until finalize, and restart no broker for it" in said
    assert acted(plan, "stop", "effect") == []
    events = journals.read(plan.parent / "journal.jsonl").events
    advice = [
        str(one.data["next"]) for one in events if one.name == "waiting"
    ]  # of looks that see no reassignment, too
    assert all("restart" not in text.replace("restart no broker", "") for text in advice), advice
