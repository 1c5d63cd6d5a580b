"""A KRaft cluster of 3.9.2 whose files are started on Kafka 4.x: every view answers as before.

A commit runs one release; `KRAFT_MIGRATE_ROTATE=newer-kafka=all` runs both.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from subprocess import CompletedProcess

import pytest

from migrate.java import jmx
from migrate.java.find import find_java
from migrate.java.jars import kafka_jars, line_of
from migrate.java.run import run_tool
from migrate.kafka.connection import Connection
from migrate.kraft.fetch import MetadataReader
from migrate.model.ids import UNASSIGNED, NodeId
from migrate.model.inventory import Access
from migrate.model.new_directories import FEATURE, RELEASES, release_of
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.observe.metadata_logs import read_metadata
from migrate.playbook.load import dump_inventory
from migrate.protocol.messages import INCREMENTAL_ALTER_CONFIGS
from tests.cli.commands import Ended, process
from tests.testing.kraft_cluster import (
    BROKER,
    CONTROLLERS,
    START_SECONDS,
    KraftCluster,
    running,
    seen,
    wait_for,
)
from tests.testing.newer_kafka import KAFKAS, NEWER

pytestmark = [pytest.mark.kafka, pytest.mark.long]
TOPIC, NODE = 2, 4  # types of resources
CORDONED = 1  # the number of the log directory
ELR = "eligible.leader.replicas.version"
PLAYBOOK = """\
apiVersion: kraft-migrate/v1
kind: DirectoryPlaybook
metadata: {name: more}
spec:
  cluster: {inventory: inventory.yaml}
  directories: {add: [%s]}
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What each of the tool's views said at one moment."""

    view: KraftView
    image: KraftView  # from the controllers' files
    status: Ended
    verify: Ended
    plan: Ended


@dataclass
class Story:
    """One cluster: on 3.9.2, its files on a newer Kafka, its metadata.version raised, what is new there used."""

    cluster: KraftCluster
    release: str
    looks: dict[str, Look] = field(default_factory=dict)
    queued: dict[str, int | Unknown] = field(default_factory=dict)
    without: KraftView | None = None  # one of the controllers

    @property
    def address(self) -> str:
        """The broker's."""
        return self.cluster.inventory.brokers[0].address

    def view(self) -> KraftView:
        """Over the wire, from the active controller."""
        with MetadataReader(self.cluster.inventory, Digester()) as reader:
            return seen(reader)

    def look(self, name: str) -> None:
        """Over the wire, from the controllers' files, and by the commands, each in a process of its own."""
        wait_for("every replica in sync and its directory assigned", self.is_settled)
        inventory, playbook = (self.cluster.folder / file for file in ("inventory.yaml", "more.yaml"))
        logs = [self.cluster.data(node) / "__cluster_metadata-0" for node in CONTROLLERS]
        self.looks[name] = Look(
            self.view(),
            read_metadata(logs, Digester()).view,
            process("status", "--inventory", inventory),
            process("directories", "verify", "--inventory", inventory),
            process("plan", playbook),
        )

    def is_settled(self) -> bool:
        """Brokers report the directories of new replicas after they have made them."""
        rows = self.view().partitions
        return rows.isr == rows.replicas and not any(str(UNASSIGNED) in listed for listed in rows.directories)

    def write_files(self) -> None:
        """An inventory without ZooKeeper, and a playbook that adds a directory."""
        folder = self.cluster.folder
        for name in ("state", "new"):
            (folder / name).mkdir()
        alone = replace(
            self.cluster.inventory, zookeeper="", executor="manual", executor_options={"inbox": str(folder / "state")}
        )
        (folder / "inventory.yaml").write_text(dump_inventory(alone))
        (folder / "more.yaml").write_text(PLAYBOOK % (folder / "new"))

    def restart(self) -> None:
        """The same files on the newer jars; the broker's numbers can be read over JMX."""
        for node in (BROKER, *CONTROLLERS):
            self.cluster.stop(node)
        self.cluster.jars = kafka_jars(release=KAFKAS[self.release])
        for node in (*CONTROLLERS, BROKER):
            self.cluster.start(node)
        self.cluster.wait_until_ready()
        for domain in ("", "org.apache."):
            name = f"{domain}kafka.server:type=AssignmentsManager,name=QueuedReplicaToDirAssignments"
            self.queued[name] = jmx.number(self.cluster.jmx or "", name)
        self.queued["asked"] = jmx.number(self.cluster.jmx or "", jmx.QUEUED)

    def tool(self, name: str, *words: str) -> CompletedProcess[str]:
        """One of the newer Kafka's own tools."""
        assert self.cluster.jars is not None
        return run_tool(find_java(), self.cluster.jars.classpath, f"org.apache.kafka.tools.{name}", words, 60)

    def features(self, *words: str) -> None:
        """Raise feature levels; a voter tells the leader what it supports some seconds after its start."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            done = self.tool("FeatureCommand", "--bootstrap-server", self.address, "upgrade", *words)
            if done.returncode == 0:
                return
            said = done.stdout + done.stderr
            assert "not all of the voters support it" in said, said
            assert time.monotonic() < deadline, said

    def unregister(self, node: NodeId) -> None:
        """Take a controller that has stopped out of the metadata, and start it again."""
        self.cluster.stop(node)
        done = self.tool("ClusterTool", "unregister-controller", "--id", str(node), "--bootstrap-server", self.address)
        assert done.returncode == 0, done.stdout + done.stderr
        wait_for("the record", lambda: node not in self.view().controllers)
        self.without = self.view()
        self.cluster.start(node)
        wait_for("the new registration", lambda: node in self.view().controllers)

    def configure(self, kind: int, name: str, key: str, value: str) -> None:
        """Set a dynamic configuration."""
        config = {"name": key, "configOperation": 0, "value": value}
        resource = {"resourceType": kind, "resourceName": name, "configs": [config]}
        with Connection(self.address, Access()) as connection:
            answer = connection.call(INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validateOnly": False})
        assert [entry["errorCode"] for entry in answer["responses"]] == [0], answer

    def records(self) -> Counter[str]:
        """How many of each type are in a controller's log and snapshots, by `metadata dump`."""
        done = process("metadata", "dump", self.cluster.data(CONTROLLERS[0]) / "__cluster_metadata-0")
        assert done.code == 0, done.err
        return Counter(re.findall(r'"type":"(\w+)"', done.out))


@pytest.fixture(scope="module", params=NEWER)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All that happens, with a look behind each part."""
    release = str(request.param)
    with running(tmp_path_factory.mktemp(release), jmx=True) as cluster:
        told = Story(cluster, release)
        told.write_files()
        for name in ("orders", "audit"):
            cluster.create_topic(name)
        told.configure(TOPIC, "orders", "retention.ms", "86400000")
        told.look("before")
        told.restart()
        told.look("started")
        told.features("--feature", f"{FEATURE}={newest_of(release)}")
        told.look("raised")
        told.features("--feature", f"{ELR}=1")
        told.configure(TOPIC, "orders", "min.insync.replicas", "2")
        told.configure(NODE, "", "min.insync.replicas", "2")
        told.configure(NODE, str(BROKER), "cordoned.log.dirs", str(cluster.data(BROKER, CORDONED)))
        cluster.create_topic("later", 9)
        told.look("used")
        if release != "4.3.1":
            told.unregister(CONTROLLERS[-1])
        told.features("--release-version", line_of(release))
        told.look("all at once")
        yield told


def newest_of(release: str) -> int:
    """The highest metadata.version of that release: 4.3-IV0 of 4.3.1."""
    return max(level for level, name in RELEASES.items() if name.startswith(f"{line_of(release)}-"))


def facts(view: KraftView) -> object:
    """What a new software changes nothing in: epochs and registrations rise."""
    rows = view.partitions
    partitions = zip(
        rows.topic, rows.topic_id, rows.partition, rows.replicas, rows.isr, rows.directories, rows.leader, strict=True
    )
    known = view.entities
    entities = zip(known.kind, known.key, known.name, known.value, strict=True)
    brokers = {node: (entry.fenced, entry.log_dirs, entry.endpoints) for node, entry in view.brokers.items()}
    return list(partitions), list(entities), brokers, sorted(view.controllers), view.migration_state


def directories_of(view: KraftView, topic: str) -> set[str]:
    """Those in which the topic's replicas are."""
    rows = zip(view.partitions.topic, view.partitions.directories, strict=True)
    return {entry for name, listed in rows for entry in listed if name == topic}


def without_numbers(text: str) -> str:
    """Offsets, epochs, free bytes and times differ from look to look; hashes of plans have letters, too."""
    return re.sub(r"\b[0-9a-f]{8,}\b|\d+(\.\d+)?", "N", text)


def saved_as(said: str) -> str:
    """Without numbers; a plan with other content is a file of its own beside the first."""
    return without_numbers(said).replace("plan-N.json", "plan.json")


def state(status: Ended) -> str:
    """What `status` says but for a rollback, which no such cluster has."""
    return "\n".join(line for line in status.out.splitlines() if not line.startswith("rollback"))


@pytest.mark.parametrize("moment", ["started", "raised"])
def test_the_metadata_says_the_same(story: Story, moment: str) -> None:
    """Topics, partitions, directories, configurations and registrations, over the wire."""
    before, now = story.looks["before"].view, story.looks[moment].view
    assert facts(now) == facts(before)
    assert now.offset > before.offset


@pytest.mark.parametrize("moment", ["started", "raised"])
def test_every_command_answers_as_before(story: Story, moment: str) -> None:
    """`status`, `directories verify`, and a DirectoryPlaybook's plan."""
    before, now = story.looks["before"], story.looks[moment]
    assert (now.verify.code, now.status.code, now.plan.code) == (0, 0, 2)
    assert without_numbers(now.verify.out) == without_numbers(before.verify.out)
    assert without_numbers(state(now.status)) == without_numbers(state(before.status))
    assert saved_as(now.plan.out) == saved_as(before.plan.out)


@pytest.mark.parametrize("moment", ["before", "started", "raised"])
def test_the_controllers_files_say_the_same(story: Story, moment: str) -> None:
    """The image in the metadata directories has what the active controller answers."""
    image = story.looks[moment].image
    assert image.committed
    assert facts(image) == facts(story.looks[moment].view)
    counted = len(image.brokers), len(image.controllers), len(image.partitions), image.partitions.replica_count()
    assert counted == (1, 3, 8, 8)


def test_new_software_raises_no_feature_and_one_alone_raises_one(story: Story) -> None:
    """Which feature levels there are is what people have asked for; the quorum stays static."""
    levels = {name: dict(look.view.features) for name, look in story.looks.items()}
    newest = newest_of(story.release)
    assert levels["before"] == levels["started"] == {FEATURE: 21}
    assert levels["raised"] == {FEATURE: newest}
    assert levels["used"] == {FEATURE: newest, ELR: 1}
    assert release_of(story.looks["raised"].view) == RELEASES[newest]


def test_what_is_new_there_is_read(story: Story) -> None:
    """Records of eligible leaders and cordoned directories: no new replica is in the one that is cordoned."""
    used, cordoned = story.looks["used"], str(story.cluster.directory_id(BROKER, CORDONED))
    assert story.records()["CLEAR_ELR_RECORD"] == 2
    assert used.view.brokers[BROKER].log_dirs == story.looks["before"].view.brokers[BROKER].log_dirs
    assert cordoned in directories_of(used.view, "orders")
    assert cordoned not in directories_of(used.view, "later")
    assert used.status.code == 0
    assert len(used.image.partitions) == 17


def test_the_queue_of_assignments_is_found_by_either_name(story: Story) -> None:
    """Both releases have both, and the query finds one of them."""
    assert story.queued == dict.fromkeys(story.queued, 0)
    assert len(story.queued) == 3


def test_an_unregistered_controller_is_gone_until_it_registers_again(story: Story) -> None:
    """KIP-1312, from 4.4 on."""
    if story.release == "4.3.1":
        pytest.skip("4.3.1 has no command for it")
    assert story.without is not None
    assert sorted(story.without.controllers) == sorted(CONTROLLERS[:-1])
    assert sorted(story.looks["all at once"].view.controllers) == sorted(CONTROLLERS)
    assert story.records()["UNREGISTER_CONTROLLER_RECORD"] == 1


def test_a_release_version_raises_every_feature_and_makes_the_quorum_dynamic(story: Story) -> None:
    """What docs/after-the-migration.md warns of: seven at once, KAFKA-21426 among them; all is readable still."""
    now = story.looks["all at once"]
    assert dict(now.view.features) == {
        FEATURE: newest_of(story.release),
        ELR: 1,
        "group.version": 1,
        "kraft.version": 1,
        "share.version": 2 if story.release == "4.4.0" else 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert (now.verify.code, now.status.code, now.plan.code) == (0, 0, 2)
    assert facts(now.image) == facts(now.view)
    refused = story.tool(
        "FeatureCommand", "--bootstrap-server", story.address, "downgrade", "--feature", "kraft.version=0"
    )
    assert "Can't downgrade the version of this feature" in refused.stdout + refused.stderr
