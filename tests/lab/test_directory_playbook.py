"""A real KRaft cluster with one log directory per broker gets three each, killed on the way, and gives them back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from confluent_kafka.admin import AdminClient

from migrate.hosts.properties import parse
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.model.history import Event
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate
from tests.lab.kraft_lab import TOPIC

pytestmark = [pytest.mark.kafka, pytest.mark.long]
CHANGES, BLOCKED, NOT_CONFIRMED = 2, 3, 4  # exit codes
KILLED = (-9, 137)
SECONDS = 240.0


@dataclass
class Story:
    """What was done, in order, and what each command said."""

    lab: Lab
    said: dict[str, CompletedProcess[str]] = field(default_factory=dict)
    files: dict[str, dict[int, bytes]] = field(default_factory=dict)
    ids: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(self, name: str, *words: str, crash: str = "") -> CompletedProcess[str]:
        """One command of it."""
        found = self.said[name] = kraft_migrate(*words, crash=crash)
        return found

    def keep(self, name: str) -> None:
        """The brokers' files, and every directory's id, as they are now."""
        brokers = self.lab.topology.brokers
        self.files[name] = {one.id: self.lab.topology.config(one.name).read_bytes() for one in brokers}
        metas = sorted(Path(self.lab.topology.directory, "data").glob("broker-*/disk*/meta.properties"))
        self.ids[name] = {str(path.parent): parse(path.read_bytes())["directory.id"] for path in metas}

    def plan(self) -> dict[str, str]:
        """The newest saved plan: its file and its fingerprint."""
        path = max(Path(self.lab.inventory.runs).glob("*/plan.json"), key=lambda found: found.stat().st_mtime)
        return {"path": str(path), "fingerprint": json.loads(path.read_text(encoding="utf-8"))["fingerprint"]}

    def events(self, plan: str) -> tuple[Event, ...]:
        """That plan's journal."""
        return journals.read(Path(plan).parent / "journal.jsonl").events


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """There, killed between the file and its formats; refused; back, killed between the rename and the start."""
    folder = tmp_path_factory.mktemp("directories") / "lab"
    module = "tests.lab.kraft_lab"
    first = kraft_migrate(str(folder), crash="before:format-directories:1", module=module)
    told = Story(Lab.open(folder), {"demo, killed": first})
    try:
        told.said["demo"] = kraft_migrate(str(folder), module=module)
        told.keep("there")
        _back(told, str(told.lab.playbook_path))
        yield told
    finally:
        told.lab.down()


def _back(told: Story, playbook: str) -> None:
    told.run("there", "plan", playbook)
    told.run("verify", "directories", "verify", "--inventory", str(told.lab.inventory_path))
    told.run("refused", "rollback", "plan", playbook)
    admin = AdminClient(settings_for(told.lab.topology))
    for future in admin.delete_topics([TOPIC.name], operation_timeout=30).values():
        future.result()
    data, deadline = Path(told.lab.topology.directory, "data"), time.monotonic() + SECONDS
    while list(data.glob(f"broker-*/disk[12]/{TOPIC.name}*")):
        assert time.monotonic() < deadline, "the topic's folders do not go"
    told.run("back, planned", "rollback", "plan", playbook)
    plan = told.plan()
    words = ("rollback", "apply", plan["path"])
    told.run("not confirmed", *words)
    told.run("back, killed", *words, "--confirm", plan["fingerprint"], crash="after:set-aside:1")
    told.run("back", *words, "--confirm", plan["fingerprint"])
    told.keep("back")
    told.run("again", "plan", playbook)


def test_killed_between_the_file_and_its_formats_the_same_command_goes_on(story: Story) -> None:
    """Broker 1 was down, with two bare directories in its file: a KRaft broker does not start so."""
    assert story.said["demo, killed"].returncode in KILLED
    assert story.said["demo"].returncode == 0, story.said["demo"].stderr[-3000:]
    assert "PROVEN: Every broker's directories were changed" in story.said["demo"].stderr + story.said["demo"].stdout


def test_the_killed_step_stopped_and_started_its_broker_once(story: Story) -> None:
    """By the journal: nothing was done twice."""
    saved = sorted(Path(story.lab.inventory.runs).glob("*/journal.jsonl"), key=lambda path: path.stat().st_mtime)
    events = story.events(str(saved[0]))
    assert [event.data["resumed"] for event in events if event.name == "session"] == [False, True]
    acts = [(e.data["effect"], e.data["node"]) for e in events if e.name == "effected"]
    restarts = [act for act in acts if act[0] in ("stop", "start")]
    assert restarts == [(effect, node) for node in "012" for effect in ("stop", "start")]
    assert [act for act in acts if act[0] == "format-directories"] == [("format-directories", node) for node in "012"]


def test_every_directory_has_an_id_of_its_own_and_the_metadata_log_stays(story: Story) -> None:
    """Three a broker; `__cluster_metadata-0` in the first alone."""
    assert len(story.ids["there"]) == 9
    assert len(set(story.ids["there"].values())) == 9
    for broker in story.lab.topology.brokers:
        values = parse(story.files["there"][broker.id])
        assert values["log.dirs"].split(",")[0] == broker.log_dirs[0]
        assert len(values["log.dirs"].split(",")) == 3
    logs = Path(story.lab.topology.directory, "data").glob("broker-*/disk*/__cluster_metadata-0")
    assert {path.parent.name for path in logs} == {"disk0"}


def test_every_replica_is_verified_and_a_second_plan_changes_nothing(story: Story) -> None:
    """By the command, at one offset."""
    assert story.said["verify"].returncode == 0, story.said["verify"].stdout
    assert story.said["there"].returncode == 0, story.said["there"].stdout[-2000:]


def test_with_replicas_in_them_the_directories_stay(story: Story) -> None:
    """Named, with what moves them."""
    said = story.said["refused"]
    assert said.returncode == BLOCKED
    assert f"{TOPIC.name}-" in said.stderr
    assert "kafka-reassign-partitions.sh" in said.stderr


def test_the_rollback_asks_for_its_fingerprint_and_survives_a_kill(story: Story) -> None:
    """As every rollback."""
    assert story.said["back, planned"].returncode == CHANGES, story.said["back, planned"].stderr
    assert story.said["not confirmed"].returncode == NOT_CONFIRMED
    assert story.said["back, killed"].returncode in KILLED
    assert story.said["back"].returncode == 0, story.said["back"].stderr[-3000:]


def test_back_is_as_before_and_nothing_was_deleted(story: Story) -> None:
    """One directory each, the same id as ever; the ids of the others are kept beside."""
    data = Path(story.lab.topology.directory, "data")
    for broker in story.lab.topology.brokers:
        assert parse(story.files["back"][broker.id])["log.dirs"] == broker.log_dirs[0]
    assert set(story.ids["back"].items()) < set(story.ids["there"].items())
    assert len(story.ids["back"]) == 3
    kept = {parse(path.read_bytes())["directory.id"] for path in data.glob("broker-*/disk[12]/meta.properties.*")}
    assert kept == set(story.ids["there"].values()) - set(story.ids["back"].values())


def test_afterwards_it_could_begin_again(story: Story) -> None:
    """What the rollback left in the directories is nobody's."""
    assert story.said["again"].returncode == CHANGES, story.said["again"].stderr
