"""The load on a real cluster: restarts beneath it, kills of it and of its starter, and damage that the check must see.

One cluster, one time line (`story`): each test is a claim about what was seen on the way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.errors import LoadAlreadyRuns, LoadNotStarted, LoadStillRuns, MigrateError
from migrate.kafka.tls import client_config
from migrate.lab.cluster import Lab
from migrate.lab.load import (
    ACKED,
    client_file,
    find_load,
    histories,
    load_folder,
    printed,
    start_load,
    stop_load,
)
from migrate.lab.load_check import check_load, complaints
from migrate.lab.load_watch import RestartInterval
from migrate.lab.ready import brokers_agree, wait_until
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import Shape
from migrate.model.history import LoadSummary
from migrate.model.ids import NodeId
from migrate.model.inventory import SecretFile
from migrate.model.views import Running, Stopped
from tests.lab.loads import acknowledged

pytestmark = [pytest.mark.kafka, pytest.mark.long]
READ = "records_consumed"

TOPICS = ("safe", "pair", "single")
STARTER = """\
import pathlib, signal, sys
from migrate.lab.cluster import Lab
from migrate.lab.load import find_load, start_load
folder = pathlib.Path(sys.argv[1])
start_load(folder, Lab.open(folder).inventory, sys.argv[2:])
print(find_load(folder).pid, flush=True)
signal.pause()
"""


@dataclass
class Story:
    """What was seen, in order."""

    lab: Lab
    directory: Path
    restarts: list[RestartInterval] = field(default_factory=list)
    refused: list[MigrateError] = field(default_factory=list)
    starter_pid: int = 0
    after_kill: object = None
    resumed_from: int = 0
    killed_load: object = None
    whole: LoadSummary | None = None
    unexplained: LoadSummary | None = None
    damaged: LoadSummary | None = None
    states: list[object] = field(default_factory=list)


def settings(lab: Lab) -> dict[str, str | int | float | bool]:
    """A client's settings."""
    return dict(client_config(lab.topology.bootstrap, lab.inventory.broker_access))


def create_topics(lab: Lab) -> None:
    """Three replicas, two, one."""
    topics = [
        NewTopic("safe", 6, 3, config={"min.insync.replicas": "2"}),
        NewTopic("pair", 3, replica_assignment=[[0, 1], [1, 2], [2, 0]]),
        NewTopic("single", 3, replica_assignment=[[0], [1], [2]]),
    ]
    admin = AdminClient(settings(lab))  # held: its futures end with it
    for created in admin.create_topics(topics).values():
        created.result(30)
    await_whole(lab)


def await_whole(lab: Lab) -> None:
    """Until every broker sees every partition whole."""
    names = [broker.name for broker in lab.topology.brokers]
    wait_until("whole partitions", lambda: brokers_agree(lab.topology), lab.supervisor, names)


def restart(story: Story, *nodes: int) -> None:
    """Stop the brokers in order, start them again, wait until all is whole."""
    begun = time.time()
    for node in nodes:
        story.lab.supervisor.stop(NodeId(node), 60)
    for node in nodes:
        story.lab.supervisor.start(NodeId(node))
    await_whole(story.lab)
    story.restarts += [RestartInterval(node, begun, time.time()) for node in nodes]


def await_more(directory: Path, count: int = 300) -> None:
    """Until that many further records are acknowledged."""
    goal = acknowledged(directory) + count

    def reached() -> str:
        return "" if acknowledged(directory) >= goal else "not yet"

    wait_until("more acknowledgements", reached, Supervisor(load_folder(directory)), ["watch"])


def refuse(story: Story, call: object) -> None:
    """Keep the error of a call that must be refused."""
    assert callable(call)
    with pytest.raises(MigrateError) as raised:
        call()
    story.refused.append(raised.value)


def killed_starter(story: Story) -> None:
    """Another process starts the load and is killed."""
    argv = [sys.executable, "-c", STARTER, str(story.directory), *TOPICS]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        story.starter_pid = int(starter.stdout.readline())
        starter.kill()
    story.after_kill = find_load(story.directory)


def damage(story: Story) -> int:
    """Plant a record twice, one never sent, and cut the first records of a partition off; records cut."""
    producer = Producer(settings(story.lab))
    there = printed(load_folder(story.directory) / "producer-safe-0001.jsonl")
    first = next(entry["value"] for entry in there if entry["name"] == ACKED and entry["partition"] == 0)
    for value in (first.encode(), b"7.1", "seeded\u2028".encode()):
        producer.produce("safe", value, partition=5)
    assert producer.flush(30) == 0
    cut = 7
    admin = AdminClient(settings(story.lab))
    deleted = admin.delete_records([TopicPartition("safe", 1, cut)])
    assert [future.result(30).low_watermark for future in deleted.values()] == [cut]
    return cut


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The whole time line on one cluster of three ZooKeeper-mode brokers."""
    directory = tmp_path_factory.mktemp("load") / "lab"
    lab = Lab.create(directory, Shape(controllers=1))
    story = Story(lab, directory)
    inventory = lab.inventory
    try:
        lab.up()
        create_topics(lab)
        refuse(story, lambda: start_load(directory, inventory, ["no-such-topic"]))
        killed_starter(story)
        refuse(story, lambda: start_load(directory, inventory, TOPICS))
        refuse(story, lambda: check_load(directory, inventory, ()))
        await_more(directory)
        restart(story, 1)
        await_more(directory)
        while isinstance(running := find_load(directory), Running):
            os.kill(running.pid, signal.SIGKILL)
        story.killed_load = running
        story.resumed_from = len(histories(directory))
        start_load(directory, inventory, TOPICS)
        restart(story, 2, 0)
        await_more(directory)
        stop_load(directory)
        stop_load(directory)
        story.states.append(find_load(directory))
        story.whole = check_load(directory, inventory, story.restarts)
        story.unexplained = check_load(directory, inventory, story.restarts[:1])
        damage(story)
        story.damaged = check_load(directory, inventory, story.restarts)
        yield story
    finally:
        stop_load(directory)
        lab.down()


def test_nothing_acknowledged_is_lost_and_nothing_stands_twice(story: Story) -> None:
    """Through restarts of brokers and a kill of the load itself."""
    assert story.whole is not None
    assert complaints(story.whole) == ()
    assert (story.whole.missing, story.whole.missing_single, story.whole.duplicated, story.whole.unexpected) == (
        0,
        0,
        0,
        0,
    )
    assert story.whole.sent >= story.whole.read >= story.whole.acknowledged >= 900


def test_the_load_outlives_its_starter_and_is_found_again(story: Story) -> None:
    """SIGKILL of the starter: the process that it named lives on, and runs once only."""
    assert isinstance(story.after_kill, Running)
    assert story.after_kill.pid == story.starter_pid
    assert isinstance(story.refused[1], LoadAlreadyRuns)
    assert str(story.starter_pid) in str(story.refused[1])


def test_a_running_load_is_not_judged(story: Story) -> None:
    """Its history grows while it is read."""
    assert isinstance(story.refused[2], LoadStillRuns)


def test_a_load_without_topics_says_so(story: Story) -> None:
    """Before anything is started."""
    assert isinstance(story.refused[0], LoadNotStarted)
    assert "no such topics: no-such-topic" in str(story.refused[0])


def test_a_killed_load_goes_on_under_a_new_number(story: Story) -> None:
    """No value is used again."""
    assert isinstance(story.killed_load, Stopped)
    starts = [(topic, number) for topic, number, _ in histories(story.directory)]
    assert starts == [(topic, number) for topic in sorted(TOPICS) for number in (1, 2)]
    assert story.resumed_from == len(TOPICS)
    assert isinstance(story.states[0], Stopped)


def test_every_time_without_leader_has_its_reason(story: Story) -> None:
    """One replica away is RF 1; both replicas of a pair away is the restart of its last leader."""
    assert story.whole is not None
    reasons = {partition: why for _, _, partition, why in story.whole.leaderless}
    assert {reasons[f"single-{number}"] for number in range(3)} == {"RF 1"}
    assert reasons["pair-2"] in {"restart of broker 0", "restart of broker 2"}
    assert "unexplained" not in reasons.values()


def test_an_outage_that_nobody_made_is_a_complaint(story: Story) -> None:
    """The same history without the second restart: the pair's loss of its leader stays unexplained."""
    assert story.unexplained is not None
    assert any("pair-2 had no leader" in one for one in complaints(story.unexplained))


def test_waits_for_acknowledgements_are_seen(story: Story) -> None:
    """A partition with one replica is silent for as long as its broker restarts."""
    assert story.whole is not None
    assert {partition for _, _, partition in story.whole.gaps} >= {"single-0", "single-1", "single-2"}


def test_planted_damage_is_found(story: Story) -> None:
    """Records cut off are missing, one at two offsets is doubled, one never sent is unexpected; others are not ours."""
    assert story.damaged is not None
    assert (story.damaged.missing, story.damaged.duplicated, story.damaged.unexpected) == (7, 1, 1)
    assert len(complaints(story.damaged)) == 3


def test_the_password_is_in_one_file_for_its_owner_alone(story: Story) -> None:
    """Kafka's clients read it there, among the lab's secrets; nothing in the load's own folder has it."""
    reference = story.lab.inventory.broker_access.password
    assert isinstance(reference, SecretFile)
    secret = Path(reference.path).read_bytes().strip()
    for path in load_folder(story.directory).iterdir():
        assert secret not in path.read_bytes(), path
    file = client_file(story.lab.topology)
    assert secret in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_group_read_along(story: Story) -> None:
    """Its lines tell what was read."""
    read = [entry for entry in printed(load_folder(story.directory) / "consumer.jsonl") if entry["name"] == READ]
    assert sum(entry["count"] for entry in read) >= 300
