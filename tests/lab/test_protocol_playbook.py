"""A real ZooKeeper-mode cluster at 3.8 gets inter.broker.protocol.version 3.9, its old files back, and 3.9 again."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.playbook.load import shipped
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate

pytestmark = [pytest.mark.kafka, pytest.mark.long]
CHANGES, BLOCKED = 2, 3  # exit codes
KILLED = (-9, 137)
RECORDS, SECONDS = 300, 60.0
LINE = b"inter.broker.protocol.version="


@dataclass
class Story:
    """What each command said, each broker's file at each moment, and how many records were read then, by topic."""

    lab: Lab
    said: dict[str, CompletedProcess[str]] = field(default_factory=dict)
    files: dict[str, dict[int, bytes]] = field(default_factory=dict)
    read: dict[str, dict[str, int]] = field(default_factory=dict)
    plans: dict[str, Path] = field(default_factory=dict)

    def look(self, name: str) -> None:
        """Keep the files, write a topic in a transaction, and read it and all those before it."""
        brokers = self.lab.topology.brokers
        self.files[name] = {one.id: self.lab.topology.config(one.name).read_bytes() for one in brokers}
        settings = settings_for(self.lab.topology)
        topic = f"moment-{len(self.read)}"
        admin = AdminClient(settings)  # its futures end with it
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result()
        producer = Producer({**settings, "transactional.id": topic})
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce(topic, str(number))
        producer.commit_transaction()
        topics = [f"moment-{number}" for number in range(len(self.read) + 1)]
        self.read[name] = {topic: _records(settings, topic) for topic in topics}

    def act(self, name: str, playbook: Path, *, back: bool = False, crash: str = "") -> None:
        """Plan, and apply what was planned; killed at `crash` first, where that is given."""
        group = ("rollback",) if back else ()
        self.said[f"{name}, planned"] = kraft_migrate(*group, "plan", str(playbook))
        runs = Path(self.lab.inventory.runs)
        plan = max(runs.glob("*/plan.json"), key=lambda found: found.stat().st_mtime)
        self.plans[name] = plan
        confirm = ("--confirm", json.loads(plan.read_text(encoding="utf-8"))["fingerprint"]) if back else ()
        if crash:
            self.said[f"{name}, killed"] = kraft_migrate(*group, "apply", str(plan), *confirm, crash=crash)
        self.said[name] = kraft_migrate(*group, "apply", str(plan), *confirm)
        self.look(name)

    def restarts(self, name: str) -> list[tuple[str, str]]:
        """What that plan's run stopped and started, in order."""
        events = journals.read(self.plans[name].parent / "journal.jsonl").events
        acts = [(event.data["effect"], event.data["node"]) for event in events if event.name == "effected"]
        return [act for act in acts if act[0] in ("stop", "start")]


def _records(settings: dict[str, str], topic: str) -> int:
    """As a reader of committed records finds them; its group's offsets are committed, too."""
    consumer = Consumer(
        {**settings, "group.id": topic, "isolation.level": "read_committed", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(3)])
    found, deadline = 0, time.monotonic() + SECONDS
    while found < RECORDS and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        found += message is not None and message.error() is None
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Started at 3.8; there, killed between the file and the start; back; there again; the migration's plan."""
    folder = tmp_path_factory.mktemp("protocol") / "lab"
    assert kraft_migrate("lab", "up", "--dir", str(folder)).returncode == 0
    told = Story(Lab.open(folder))
    try:
        assert kraft_migrate("lab", "seed", "--dir", str(folder)).returncode == 0
        told.lab.stop_nodes()
        for broker in told.lab.topology.brokers:
            path = told.lab.topology.config(broker.name)
            path.write_bytes(path.read_bytes().replace(LINE + b"3.9", LINE + b"3.8"))
        told.lab.up()
        playbook = Path(shutil.copy(shipped("lab-protocol.yaml"), folder))
        told.look("before")
        told.said["blocked"] = kraft_migrate("plan", str(told.lab.playbook_path))
        told.act("there", playbook, crash="after:write-config:1")
        told.said["assess"] = kraft_migrate("assess", str(told.lab.playbook_path), "-o", "json")
        told.act("back", playbook, back=True)
        told.act("again", playbook)
        told.said["migration"] = kraft_migrate("plan", str(told.lab.playbook_path))
        yield told
    finally:
        told.lab.down()


def test_at_an_earlier_version_the_migration_is_blocked_and_names_the_way(story: Story) -> None:
    """B-VER-02, and the playbook that raises it."""
    assert story.said["blocked"].returncode == BLOCKED
    assert "B-VER-02" in story.said["blocked"].stdout
    assert "ProtocolPlaybook" in story.said["blocked"].stdout


def test_one_key_of_each_file_is_changed_and_each_broker_restarted_once(story: Story) -> None:
    """Killed on the way, too."""
    assert story.said["there, planned"].returncode == CHANGES, story.said["there, planned"].stderr
    assert story.said["there, killed"].returncode in KILLED
    assert story.said["there"].returncode == 0, story.said["there"].stderr[-3000:]
    for broker, raw in story.files["before"].items():
        assert story.files["there"][broker] == raw.replace(LINE + b"3.8", LINE + b"3.9")
    restarts = story.restarts("there")
    assert restarts == [(effect, node) for _, node in restarts[::2] for effect in ("stop", "start")]
    assert sorted(node for effect, node in restarts if effect == "stop") == ["0", "1", "2"]


def test_afterwards_nothing_is_found_of_the_version(story: Story) -> None:
    """Neither B-VER-02 nor B-VER-04."""
    codes = {entry["code"] for entry in json.loads(story.said["assess"].stdout)["findings"]}
    assert "I-VER-01" in codes
    assert not {"B-VER-02", "B-VER-03", "B-VER-04"} & codes


def test_the_rollback_restores_each_file_to_the_byte(story: Story) -> None:
    """Brokers of 3.9.2 start with the earlier version again, and each says so itself."""
    assert story.said["back"].returncode == 0, story.said["back"].stderr[-3000:]
    assert story.files["back"] == story.files["before"]
    assert "broker 0: 3.8, broker 1: 3.8, broker 2: 3.8" in story.said["back"].stdout + story.said["back"].stderr


def test_after_it_the_version_is_raised_again_and_the_migration_can_be_planned(story: Story) -> None:
    """By another plan than the first one."""
    assert story.said["again"].returncode == 0, story.said["again"].stderr[-3000:]
    assert story.plans["again"] != story.plans["there"]
    assert story.files["again"] == story.files["there"]
    assert story.said["migration"].returncode == CHANGES, story.said["migration"].stdout[-3000:]


def test_what_was_written_at_either_version_is_read_at_the_other(story: Story) -> None:
    """Transactions and offsets of groups, from before, between and after."""
    assert [len(topics) for topics in story.read.values()] == [1, 2, 3, 4]
    assert all(found == RECORDS for topics in story.read.values() for found in topics.values())
