"""One real lab: interrupted, adopted, seeded, looked at, stopped, started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from migrate.errors import LabNotReady, PortTaken
from migrate.kafka.connection import Connection
from migrate.lab import seed_data as data
from migrate.lab.cluster import Lab
from migrate.lab.configure import KEYSTORE, TOKENS, secret_path
from migrate.lab.seed import Seeded, settings_for
from migrate.lab.status import LabStatus
from migrate.lab.tokens import compared
from migrate.lab.topology import HOST
from migrate.model.inventory import Access
from migrate.model.views import Running
from tests.testing.kafka_schemas import KafkaApi

pytestmark = pytest.mark.kafka


@dataclass
class Story:
    """What was seen, in order; the tests judge it."""

    lab: Lab
    interrupted: int = 0
    pids_after_interrupt: dict[str, int] = field(default_factory=dict)
    pids_after_up: dict[str, int] = field(default_factory=dict)
    adopted: list[str] = field(default_factory=list)
    seeds: list[Seeded] = field(default_factory=list)
    port_taken: PortTaken | None = None
    up: LabStatus | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    down: LabStatus | None = None
    pids_after_down: dict[str, int] = field(default_factory=dict)
    again: dict[str, Any] = field(default_factory=dict)
    died: LabNotReady | None = None


def pids(lab: Lab) -> dict[str, int]:
    """Processes that run, by name."""
    states = {name: lab.supervisor.state(name) for name in lab.supervisor.specs()}
    return {name: state.pid for name, state in states.items() if isinstance(state, Running)}


def interrupt_up(directory: Path) -> int:
    """Ctrl-C for `lab up` while the brokers start; its exit code."""
    argv = [sys.executable, "-m", "migrate", "lab", "up", "--dir", str(directory)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True) as command:
        assert command.stderr is not None
        for line in command.stderr:
            if "starting broker-0" in line:
                os.killpg(command.pid, signal.SIGINT)
                break
        command.stderr.read()
        return command.wait(60)


def take_port(lab: Lab) -> PortTaken | None:
    """What `up` says while somebody else has ZooKeeper's port."""
    with socket.create_server((HOST, lab.topology.zookeeper_port)):
        with pytest.raises(PortTaken) as caught:
            lab.up()
        return caught.value


def watermarks(lab: Lab) -> dict[str, int]:
    """Records by topic."""
    consumer = Consumer({**settings_for(lab.topology), "group.id": "count", "log_level": 3})
    try:
        return {
            topic.name: sum(
                end_of(consumer, TopicPartition(topic.name, partition)) for partition in range(topic.partitions)
            )
            for topic in data.TOPICS
        }
    finally:
        consumer.close()


def end_of(consumer: Consumer, place: TopicPartition) -> int:
    """The end offset; a leader that has just started, or that another follows, is asked again."""
    deadline, pause = time.monotonic() + 60, threading.Event()
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, 30)[1])
        except KafkaException:  # NOT_LEADER_FOR_PARTITION too, which librdkafka does not call retriable
            if time.monotonic() > deadline:
                raise
        pause.wait(0.2)


def groups_of(admin: AdminClient) -> set[str]:
    """Consumer groups; a broker that has just become a coordinator lists none of its own until it has loaded them."""
    deadline, pause = time.monotonic() + 60, threading.Event()
    while True:
        found = admin.list_consumer_groups().result(30)
        groups = {group.group_id for group in found.valid}
        if (set(data.GROUPS) <= groups and not found.errors) or time.monotonic() > deadline:
            return groups
        pause.wait(0.2)


def look(lab: Lab) -> dict[str, Any]:
    """Everything the seed put there, as the cluster tells it."""
    admin = AdminClient({**settings_for(lab.topology), "log_level": 3})
    listed = admin.list_topics(timeout=30).topics
    topics = {
        name: (len(topic.partitions), len(next(iter(topic.partitions.values())).replicas))
        for name, topic in listed.items()
    }
    everything = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type] # any name: the stubs ask for a str, the class takes None
        ResourcePatternType.ANY,
        None,  # type: ignore[arg-type] # any principal
        None,  # type: ignore[arg-type] # any host
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    resources = [
        ConfigResource(ConfigResource.Type.TOPIC, "events-03"),
        ConfigResource(ConfigResource.Type.BROKER, "1"),
    ]
    resources.append(ConfigResource(ConfigResource.Type.BROKER, "0"))
    configs = {
        f"{resource.restype.name} {resource.name}": admin.describe_configs([resource])[resource].result(30)
        for resource in resources  # librdkafka takes one broker a call
    }
    users = admin.describe_user_scram_credentials()
    assert isinstance(users, Future), "one of all users, where none is named"
    with Connection(f"{HOST}:{lab.topology.brokers[0].internal_port}", Access()) as connection:
        quotas = connection.call(KafkaApi("DescribeClientQuotas"), {"components": [], "strict": False})
    return {
        "topics": topics,
        "acls": admin.describe_acls(everything).result(30),
        "configs": configs,
        "scram": {
            (name, info.mechanism.name, info.iterations)
            for name, user in users.result(30).items()
            for info in user.scram_credential_infos
        },
        "quotas": {
            (tuple((part["entityType"], part["entityName"]) for part in entry["entity"]), value["key"], value["value"])
            for entry in quotas["entries"]
            for value in entry["values"]
        },
        "groups": groups_of(admin),
        "records": watermarks(lab),
        "tokens": compared(lab.topology, 0),
    }


def settings_of(lab: Lab, user: str) -> dict[str, Any]:
    """confluent-kafka's settings for an ordinary user."""
    password = secret_path(lab.topology, user).read_text().strip()
    return {**settings_for(lab.topology), "sasl.username": user, "sasl.password": password, "log_level": 0}


def read_as(lab: Lab, user: str, topic: str, group: str) -> bool:
    """Does a record come when that user reads?"""
    consumer = Consumer({**settings_of(lab, user), "group.id": group, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return any(
            message is not None and message.error() is None for message in (consumer.poll(0.3) for _ in range(99))
        )
    finally:
        consumer.close()


def describe_as(lab: Lab, user: str, topic: str) -> str:
    """Kafka's name of the refusal when that user asks for a topic; "" where it is shown."""
    error = AdminClient(settings_of(lab, user)).list_topics(topic, timeout=30).topics[topic].error
    return "" if error is None else str(error.name())


def kill_while_starting(lab: Lab) -> LabNotReady:
    """What `up` says when a broker dies of its file."""
    config = lab.topology.config("broker-1")
    text = config.read_text()
    config.write_text(text.replace("broker.id=1", "broker.id=none"))
    with pytest.raises(LabNotReady) as caught:
        lab.up()
    config.write_text(text)
    return caught.value


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The whole time line."""
    root = tmp_path_factory.mktemp("cluster")
    lab = Lab.create(root / "lab")
    story = Story(lab)
    try:
        story.port_taken = take_port(lab)
        story.died = kill_while_starting(lab)
        lab.down()
        story.interrupted = interrupt_up(root / "lab")
        story.pids_after_interrupt = pids(lab)
        lab.up(story.adopted.append)
        story.pids_after_up = pids(lab)
        story.seeds = [lab.seed(), lab.seed()]
        story.up = lab.status()
        story.facts = look(lab)
        story.facts["alice"] = read_as(lab, "alice", "orders.v1_eu-west", "orders-readers")
        story.facts["refused"] = describe_as(lab, "alice", "payments"), describe_as(lab, "carol", "events-00")
        lab.down()
        story.down = lab.status()
        story.pids_after_down = pids(lab)
        lab.up()
        story.again = look(lab)
        yield story
    finally:
        lab.down()


def test_a_taken_port_is_named_before_anything_starts(story: Story) -> None:
    """With the process that needs it."""
    assert story.port_taken is not None
    assert str(story.lab.topology.zookeeper_port) in str(story.port_taken)
    assert "zookeeper" in story.port_taken.why


def test_a_broker_that_dies_is_told_with_the_end_of_its_log(story: Story) -> None:
    """Its own words say why."""
    assert story.died is not None
    assert "broker-1 died" in str(story.died)
    assert "broker.id" in story.died.why


def test_ctrl_c_leaves_what_the_next_run_adopts(story: Story) -> None:
    """Exit 130; the processes live on, and are the same afterwards."""
    assert story.interrupted == 130
    assert {"zookeeper", "broker-0"} <= set(story.pids_after_interrupt)
    assert story.pids_after_interrupt.items() <= story.pids_after_up.items()
    assert any("running already" in line and "broker-0" in line for line in story.adopted)
    assert set(story.pids_after_up) == {"zookeeper", "broker-0", "broker-1", "broker-2"}


def test_a_seed_is_done_once(story: Story) -> None:
    """The second call finds the first one's work."""
    assert story.seeds[0] == story.seeds[1]
    assert story.facts["records"]["events-00"] == 6 * data.RECORDS_PER_PARTITION


def test_every_topic_is_there_in_its_shape(story: Story) -> None:
    """Partitions and replicas as asked; Kafka's own topics beside them."""
    for topic in data.TOPICS:
        assert story.facts["topics"][topic.name] == (topic.partitions, topic.replication)
    assert {"__consumer_offsets", "__transaction_state"} <= set(story.facts["topics"])


def test_dynamic_configurations_are_in_force(story: Story) -> None:
    """Of a topic, of one broker, of all; the password's value is never told."""
    configs = story.facts["configs"]
    assert configs["TOPIC events-03"]["max.message.bytes"].value == "2000000"
    assert configs["BROKER 1"]["log.cleaner.backoff.ms"].value == "14000"
    assert configs["BROKER 0"]["message.max.bytes"].value == "1300000"
    password = configs["BROKER 0"][data.PASSWORD_CONFIG[1]]
    assert password.is_sensitive
    assert password.value is None


def test_quotas_of_every_kind_are_there(story: Story) -> None:
    """As AlterClientQuotas was asked to."""
    for quota in data.QUOTAS:
        for key, value in quota.limits.items():
            entity = tuple(sorted(quota.entity))
            assert (entity, key, value) in {(tuple(sorted(e)), k, v) for e, k, v in story.facts["quotas"]}


def test_scram_users_acls_and_groups_are_there(story: Story) -> None:
    """Each as asked."""
    expected = {(user, mechanism.replace("-", "_"), iterations) for user, mechanism, iterations in data.SCRAM_USERS}
    assert story.facts["scram"] == expected
    assert len(story.facts["acls"]) == len(data.ACLS)
    assert set(data.GROUPS) <= story.facts["groups"]


def test_delegation_tokens_are_there_and_after_a_stop_the_same(story: Story) -> None:
    """As many as the seed names, each as it was when it was made; none is made twice."""
    assert [seed.tokens for seed in story.seeds] == [len(data.TOKENS)] * 2
    assert story.facts["tokens"] == story.again["tokens"] == (len(data.TOKENS), "")


def test_acls_let_in_and_keep_out(story: Story) -> None:
    """Alice reads what her ACL names, and nothing else."""
    assert story.facts["alice"]
    assert story.facts["refused"] == ("TOPIC_AUTHORIZATION_FAILED",) * 2


def test_the_status_says_what_runs_and_that_all_is_whole(story: Story) -> None:
    """Controllers wait for their stage."""
    assert story.up is not None
    states = {process.name: (process.state, process.mode) for process in story.up.processes}
    assert states["broker-2"] == ("running", "ZooKeeper mode")
    assert states["controller-3000"] == ("stopped", "not configured yet")
    assert story.up.brokers == (0, 1, 2)
    assert story.up.not_whole == 0
    assert story.up.seeded
    assert not [process.name for process in story.up.processes if process.restart_due]


def test_down_stops_everything_and_deletes_nothing(story: Story) -> None:
    """No process is left; data and files are."""
    assert story.down is not None
    assert {process.state for process in story.down.processes} == {"stopped"}
    assert story.down.brokers is None
    assert story.pids_after_down == {}
    assert list(Path(story.lab.topology.brokers[0].log_dirs[0]).glob("events-*"))


def test_every_file_lies_in_the_labs_folder(story: Story) -> None:
    """Open files of a broker included: nothing is written elsewhere."""
    arguments = " ".join(" ".join(spec.argv) for spec in story.lab.supervisor.specs().values())
    assert story.lab.topology.directory in arguments
    assert story.lab.topology.folder("jars.txt").exists()
    assert story.lab.topology.folder("logs", "broker-0.log").exists()


def test_a_lab_that_was_stopped_holds_the_same_cluster(story: Story) -> None:
    """Started again: same topics, records, quotas, users, ACLs."""
    for part in ("topics", "records", "quotas", "scram", "groups"):
        assert story.again[part] == story.facts[part]
    assert len(story.again["acls"]) == len(story.facts["acls"])


def test_no_secret_reaches_a_log(story: Story) -> None:
    """Neither the users' passwords nor the encoder's secret nor the dynamic keystore password."""
    logs = "".join(path.read_text(errors="replace") for path in story.lab.topology.folder("logs").iterdir())
    for name in ("admin", "alice", "encoder", KEYSTORE, TOKENS):
        assert secret_path(story.lab.topology, name).read_text().strip() not in logs
