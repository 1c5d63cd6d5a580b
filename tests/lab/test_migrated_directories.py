"""A cluster that came from ZooKeeper gets more directories afterwards, and gives them back: both runs killed once.

The whole migration first, ZooKeeper stopped; its inventory still names the ensemble, which nobody asks any more.
All of it over SSH: the directories are looked at, and the lock is held, on the brokers' hosts.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from migrate.hosts.properties import parse
from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.lab.topology import Shape
from migrate.model.views import Stopped
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.load import load_playbook
from migrate.run import locks
from migrate.run.locks import HOST_SUFFIX
from tests.lab.kraft_lab import PLAYBOOK, TOPIC, Spread, spread
from tests.lab.test_directory_playbook import CHANGES, KILLED, SECONDS, Story

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine"),
]
NEW = "disk2"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Story, Spread]]:
    """Migrated, then there and back."""
    lab = Lab.create(tmp_path_factory.mktemp("migrated") / "lab", Shape(directories=2, ssh=True))
    told = Story(lab)
    folder = Path(lab.topology.directory)
    try:
        told.run("migrated", "lab", "demo", "--dir", str(folder), "--executor", "ssh", "--no-load", "--keep")
        assert told.said["migrated"].returncode == 0, told.said["migrated"].stderr[-3000:]
        assert isinstance(lab.supervisor.state("zookeeper"), Stopped)
        for broker in lab.topology.brokers:
            (folder / "data" / broker.name / NEW).mkdir()
        playbook = folder / "more-disks.yaml"
        text = PLAYBOOK.read_text()
        playbook.write_text("\n".join(_without_old(line) for line in text.splitlines()))
        told.keep("before")
        _there(told, str(playbook))
        found = _spread(told, str(playbook))
        _back(told, str(playbook))
        yield told, found
    finally:
        lab.down()


def _without_old(line: str) -> str:
    """`disk1` is a log directory already."""
    before, _, after = line.partition("/disk1, ")
    return before.rpartition("[")[0] + "[" + after if after else line


def _there(told: Story, playbook: str) -> None:
    told.run("planned", "plan", playbook)
    plan = told.plan()["path"]
    told.run("killed", "apply", plan, crash="before:format-directories:1")
    told.run("there", "apply", plan)
    told.run("verify", "directories", "verify", "--inventory", str(told.lab.inventory_path))
    told.run("status", "status", "--inventory", str(told.lab.inventory_path), "--output", "json")
    told.keep("there")


def _spread(told: Story, playbook: str) -> Spread:
    sources = Sources(told.lab.inventory, load_playbook(playbook), None)
    try:
        return spread(told.lab, ClusterObserver(sources), load_playbook(playbook).new_directories)
    finally:
        sources.close()


def _back(told: Story, playbook: str) -> None:
    admin = AdminClient(settings_for(told.lab.topology))
    for future in admin.delete_topics([TOPIC.name], operation_timeout=30).values():
        future.result()
    data, deadline = Path(told.lab.topology.directory, "data"), time.monotonic() + SECONDS
    while list(data.glob(f"broker-*/{NEW}/{TOPIC.name}*")):
        assert time.monotonic() < deadline, "the topic's folders do not go"
    told.run("back, planned", "rollback", "plan", playbook)
    plan = told.plan()
    words = ("rollback", "apply", plan["path"], "--confirm", plan["fingerprint"])
    told.run("back, killed", *words, crash="after:set-aside:1")
    told.run("back", *words)
    told.keep("back")


def test_the_plan_is_made_without_zookeeper(story: tuple[Story, Spread]) -> None:
    """And says that all of a lab's directories are one disk: of each broker, with the one that is new."""
    told = story[0]
    assert told.said["planned"].returncode == CHANGES, told.said["planned"].stderr
    assert "W-DIR-25" in told.said["planned"].stdout
    plans = [json.loads(path.read_text())["plan"] for path in Path(told.lab.inventory.runs).glob("*/plan.json")]
    found = [entry["message"] for plan in plans for entry in plan["findings"] if entry["code"] == "W-DIR-25"]
    assert len([message for message in found if message.endswith(f"/{NEW}")]) == len(told.lab.topology.brokers)


def test_killed_it_goes_on_and_every_replica_is_verified(story: tuple[Story, Spread]) -> None:
    """By the command, and by `status`."""
    told = story[0]
    assert told.said["killed"].returncode in KILLED
    assert told.said["there"].returncode == 0, told.said["there"].stderr[-3000:]
    assert told.said["verify"].returncode == 0, told.said["verify"].stdout
    ledger = json.loads(told.said["status"].stdout)["ledger"]["brokers"]
    assert {state for row in ledger.values() for state in row} == {"VERIFIED"}


def test_the_lock_stood_on_every_brokers_host_and_is_free(story: tuple[Story, Spread]) -> None:
    """Beside each configuration, with the line of the last run; killed runs have left nothing held."""
    lab = story[0].lab
    for broker in lab.topology.brokers:
        file = Path(f"{lab.topology.config(broker.name)}{HOST_SUFFIX}")
        assert set(json.loads(file.read_text().splitlines()[0])) == {"pid", "host", "token"}
        owner = locks.file_owner(file)
        assert owner is not None
        assert not owner.held


def test_the_old_directories_keep_their_ids_and_versions(story: tuple[Story, Spread]) -> None:
    """Those of the time with ZooKeeper are of version 0 for ever; the new ones are as Kafka's tool formats them."""
    told = story[0]
    assert set(told.ids["before"].items()) < set(told.ids["there"].items())
    assert len(told.ids["there"]) == len(told.ids["before"]) + 3 == 9
    for path in told.ids["there"]:
        kept = min(Path(path).glob("meta.properties*"))  # aside by now, where it was new
        assert parse(kept.read_bytes())["version"] == ("1" if Path(path).name == NEW else "0")


def test_new_replicas_lie_in_them(story: tuple[Story, Spread]) -> None:
    """And are VERIFIED there."""
    found = story[1]
    assert not found.against
    assert found.in_new > 0


def test_back_the_files_are_as_before(story: tuple[Story, Spread]) -> None:
    """Killed between the rename and the start; the rollback of the migration itself is gone, this one is not."""
    told = story[0]
    assert told.said["back, planned"].returncode == CHANGES, told.said["back, planned"].stderr
    assert told.said["back, killed"].returncode in KILLED
    assert told.said["back"].returncode == 0, told.said["back"].stderr[-3000:]
    assert told.ids["back"] == told.ids["before"]
    assert {node: parse(raw)["log.dirs"] for node, raw in told.files["back"].items()} == {
        node: parse(raw)["log.dirs"] for node, raw in told.files["before"].items()
    }
