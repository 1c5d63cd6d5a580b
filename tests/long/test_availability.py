"""Downtime a partition, per restart of a broker: our rolls against bare rolling restarts of the same Kafka, in one run.

Three rolls of one cluster under load, with RF 3 and min.insync.replicas=2: *bare* stops and starts one broker after the
other as soon as its port answers; ours are the first roll and the second, with a canary.
With KRAFT_MIGRATE_KEEP_RUNS=1 the figures are kept in docs/runs/availability.md.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.kafka.tls import cluster_config
from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.launch import STOP_SECONDS
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from tests.lab.commands import kraft_migrate
from tests.testing.acknowledged import Acknowledged, Downtime, Restart

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]
REPORT = Path(__file__).parents[2] / "docs" / "runs" / "availability.md"
TOPIC, PARTITIONS = "measured", 12
DURABLE = {"min.insync.replicas": "2"}
SOAK = 10
BEHIND = 2.0  # seconds behind a restart that still count as it
POLICY = f"""\
  policy:
    rollout:
      order: canary-first
      canary_soak: {SOAK}s
"""
HEAD = """\
# Downtime per restart
Apache Kafka 3.9.2, three brokers and three controllers on one host of two cores; a topic of 12 partitions, RF 3,
`min.insync.replicas=2`, with an idempotent producer, acks=all, 20 records per second and partition. *Gap*: the longest
time without an acknowledgement, for each partition and restart; without restarts it is 0.05 s. *bare* stops and starts
one broker after the other as soon as its port answers; *migration-mode* and *kraft-mode* are the first and second roll
of this tool, with a canary. Written by `tests/long/test_availability.py`.

| roll | broker | longest gap | p99 | sum over 12 partitions |
| --- | --- | --- | --- | --- |
"""


@dataclass
class Run:
    """The lab and who writes to it."""

    lab: Lab
    writer: Acknowledged
    load: float

    def planned(self, *words: str) -> Path:
        """A saved plan's folder."""
        ended = kraft_migrate(*words, "--output", "json")
        assert ended.returncode == 2, ended.stderr
        return Path(self.lab.inventory.runs) / str(json.loads(ended.stdout)["fingerprint"])[:8]

    def applied(self, stage: str) -> tuple[Event, ...]:
        """To that stage; the journal."""
        folder = self.planned("plan", str(self.lab.playbook_path), "--to", stage)
        ended = kraft_migrate("apply", str(folder / "plan.json"))
        assert ended.returncode == 0, ended.stderr[-4000:]
        return journals.read(folder / "journal.jsonl").events


def clients(lab: Lab) -> dict[str, Any]:
    """How the lab's clients come in."""
    return dict(cluster_config(lab.inventory))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A cluster in ZooKeeper mode, written to."""
    lab = Lab.create(tmp_path_factory.mktemp("availability") / "lab")
    try:
        lab.up()
        text = lab.playbook_path.read_text()
        assert text.count("  policy:\n") == 1
        lab.playbook_path.write_text(text.replace("  policy:\n", POLICY))
        admin = AdminClient(clients(lab))
        measured = NewTopic(TOPIC, PARTITIONS, 3, config=DURABLE)
        for future in admin.create_topics([measured], request_timeout=150).values():
            future.result(180)
        until("topics", lambda: ready.brokers_agree(lab.topology) == "")
        with Acknowledged(clients(lab), TOPIC, PARTITIONS) as writer:
            until("writes", writer.whole)
            yield Run(lab, writer, os.getloadavg()[0])
            assert writer.failed == []
    finally:
        lab.down()


def until(what: str, reached: Any) -> None:
    """Ask until it is so."""
    deadline = time.monotonic() + 180
    while not reached():
        assert time.monotonic() < deadline, what
        SystemClock().sleep(0.2)


def bare(run: Run) -> list[Restart]:
    """Stop and start, one after the other, by no more than the port."""
    found = []
    for broker in run.lab.topology.brokers:
        began = time.time()
        run.lab.supervisor.stop(broker.name, STOP_SECONDS)
        run.lab.supervisor.start(broker.name)
        port = int(run.lab.inventory.node(NodeId(broker.id)).address.rsplit(":", 1)[1])
        until("port", lambda port=port: ready.port_answers(port) == "")
        found.append(Restart("bare", int(broker.id), began, time.time() + BEHIND))
    until("whole again", lambda: ready.brokers_agree(run.lab.topology) == "")
    until("writes", run.writer.whole)
    return found


def ours(events: tuple[Event, ...], stage: str) -> list[Restart]:
    """From the stop to the proof, by the journal."""
    stops = {
        event.data["step"]: event
        for event in events
        if event.name == "effect" and event.data["effect"] == "stop" and str(event.data["step"]).startswith(f"{stage}/")
    }
    ends = {event.data["step"]: event.time for event in events if event.name == "conclude"}
    return [Restart(stage, int(event.data["node"]), event.time, ends[step] + BEHIND) for step, event in stops.items()]


def concluded(events: tuple[Event, ...], step: str) -> str:
    """The evidence of a step."""
    return " ".join(next(e for e in events if e.name == "conclude" and e.data["step"] == step).data["evidence"])


def canary_was_watched(events: tuple[Event, ...], stage: str) -> None:
    """Behind the first broker of the roll; the next one was stopped no sooner."""
    steps = [str(e.data["step"]) for e in events if e.name == "conclude"]
    canary = next(step for step in steps if step.startswith(f"{stage}/canary-"))
    assert "without a fault" in concluded(events, canary)
    said = [e for e in events if e.name == "waiting" and e.data["step"] == canary and e.data["owner"] == "the clock"]
    assert said
    assert "left of" in said[-1].data["what"]
    began = next(e.time for e in events if e.name == "conclude" and e.data["step"] == canary.replace("canary-", ""))
    ended = next(e.time for e in events if e.name == "conclude" and e.data["step"] == canary)
    assert ended - began >= SOAK


def test_our_rolls_cost_a_partition_no_more_than_bare_ones(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """With a canary in them."""
    plain = bare(run)
    before = run.writer.over(plain)
    first = run.applied("copy")
    canary_was_watched(first, "migration-mode")
    second = run.applied("kraft-mode")
    canary_was_watched(second, "kraft-mode")
    rows = [*before, *run.writer.over(ours(first, "migration-mode")), *run.writer.over(ours(second, "kraft-mode"))]
    with capsys.disabled():
        print(f"\n{text(rows, run.load)}")
    if os.environ.get("KRAFT_MIGRATE_KEEP_RUNS"):
        REPORT.write_text(text(rows, run.load), encoding="utf-8")
    for roll in ("migration-mode", "kraft-mode"):
        assert cost(rows, roll) <= cost(rows, "bare")


def cost(rows: list[Downtime], kind: str) -> float:
    """The mean over its restarts of the sum over the partitions."""
    found = [row.total for row in rows if row.restart.kind == kind]
    return sum(found) / len(found)


def text(rows: list[Downtime], load: float) -> str:
    """The page."""
    lines = [
        f"| {row.restart.kind} | {row.restart.broker} | {row.longest:.2f} s | {row.p99:.2f} s | {row.total:.2f} s |\n"
        for row in rows
    ]
    means = ", ".join(f"{kind} {cost(rows, kind):.2f} s" for kind in ("bare", "migration-mode", "kraft-mode"))
    return f"{HEAD}{''.join(lines)}\nMean of the sums: {means}. The machine's load as it began was {load:.0f}.\n"
