"""A real KRaft cluster for tests: three controllers, one broker with three log directories and a SASL listener.

Started once a session, by the first test that asks for it.  What it is for: the requests of the controller listener,
the metadata log over the wire, an election, a dead node.  Stages of a migration are the lab's.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate.errors import MigrateError
from migrate.java.find import find_java
from migrate.java.jars import KafkaJars, kafka_jars
from migrate.java.run import java_argv
from migrate.kafka.connection import Connection
from migrate.kafka.controller import ActiveController
from migrate.kafka.live import metadata
from migrate.kraft.fetch import MetadataReader
from migrate.lab.configure import jmx_options
from migrate.lab.topology import free_ports
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, SecretFile
from migrate.model.views import KraftView
from migrate.protocol.messages import METADATA
from tests.testing.tiers import NOTES

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
BROKER = NodeId(7)
CONTROLLERS = (NodeId(3000), NodeId(3001), NodeId(3002))
PASSWORD = "canary-tool-password"
START_SECONDS = 90.0
LOG4J2 = """\
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d{ISO8601}] %p %m (%c)%n
"""
LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d{ISO8601}] %p %m (%c)%n
log4j.logger.kafka.server.KafkaConfig=WARN
"""


def wait_for(what: str, ready: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    """Poll a state of the world until it holds."""
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        threading.Event().wait(0.05)


def seen(reader: MetadataReader) -> KraftView:
    """The metadata; an election on a busy machine is waited for."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return reader.view()
        except MigrateError:
            assert time.monotonic() < deadline
            threading.Event().wait(0.5)


@dataclass
class KraftCluster:
    """Processes and where they are reached."""

    folder: Path
    ports: dict[NodeId, int]
    sasl_port: int
    processes: dict[NodeId, subprocess.Popen[bytes]] = field(default_factory=dict)
    jars: KafkaJars | None = None  # 3.9.2's unless others are given
    jmx_port: int = 0  # where the broker offers JMX; 0: nowhere
    session_ms: int = 9000  # Kafka's own default: how long the controllers believe in a broker that is silent

    @property
    def inventory(self) -> Inventory:
        """Brokers by their clear listener."""
        return self.inventory_with(f"127.0.0.1:{self.ports[BROKER]}", Access())

    @property
    def sasl_inventory(self) -> Inventory:
        """Brokers by their SASL listener."""
        access = Access("SASL_PLAINTEXT", "PLAIN", "tool", SecretFile(str(self.folder / "password")))
        return self.inventory_with(f"127.0.0.1:{self.sasl_port}", access)

    def inventory_with(self, address: str, access: Access, expect: str | None = CLUSTER_ID) -> Inventory:
        """An inventory of this cluster."""
        return Inventory(
            name="real",
            path="",
            zookeeper="127.0.0.1:1",
            brokers=(BrokerNode(BROKER, "localhost", address, str(self.config(BROKER)), jmx=self.jmx),),
            controllers=tuple(
                ControllerNode(
                    node, "localhost", f"127.0.0.1:{self.ports[node]}", str(self.config(node)), str(self.data(node))
                )
                for node in CONTROLLERS
            ),
            controller_listener="CTL",
            broker_access=access,
            controller_access=Access(),
            password_encoder_secret=None,
            executor="none",
            expect_cluster_id=expect,
        )

    @property
    def jmx(self) -> str | None:
        """The address of the broker's JMX."""
        return f"127.0.0.1:{self.jmx_port}" if self.jmx_port else None

    def config(self, node: NodeId) -> Path:
        """The node's properties file."""
        return self.folder / f"{node}.properties"

    def data(self, node: NodeId, index: int = 0) -> Path:
        """A data directory of a node."""
        return self.folder / f"{node}-d{index}"

    def directory_id(self, node: NodeId, index: int = 0) -> DirectoryId:
        """The id given to it."""
        return DirectoryId.from_bytes((node * 1000 + index + 500).to_bytes(16, "big"))

    # -- processes -----------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Files of all nodes, as `kafka-storage format` leaves them."""
        voters = ",".join(f"{node}@127.0.0.1:{self.ports[node]}" for node in CONTROLLERS)
        common = f"controller.quorum.voters={voters}\ncontroller.listener.names=CTL\n"
        (self.folder / "log4j.properties").write_text(LOG4J)
        (self.folder / "log4j2.properties").write_text(LOG4J2)
        (self.folder / "password").write_text(PASSWORD + "\n")
        (self.folder / "password").chmod(0o600)
        for node in CONTROLLERS:
            self._format(node, 1)
            self.config(node).write_text(
                f"{common}process.roles=controller\nnode.id={node}\nlisteners=CTL://127.0.0.1:{self.ports[node]}\n"
                f"listener.security.protocol.map=CTL:PLAINTEXT\nlog.dirs={self.data(node)}\n"
                "metadata.log.max.record.bytes.between.snapshots=2000\n"
                "controller.quorum.fetch.timeout.ms=2000\ncontroller.quorum.election.timeout.ms=1000\n"
                f"broker.session.timeout.ms={self.session_ms}\n"
                "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
                "super.users=User:ANONYMOUS;User:tool\n"
            )
        self._format(BROKER, 3)
        jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_tool="{PASSWORD}" user_none="x";'
        self.config(BROKER).write_text(
            f"{common}process.roles=broker\nnode.id={BROKER}\n"
            f"listeners=INTERNAL://127.0.0.1:{self.ports[BROKER]},CLIENT://127.0.0.1:{self.sasl_port}\n"
            "listener.security.protocol.map=CTL:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT\n"
            "inter.broker.listener.name=INTERNAL\nlistener.name.client.sasl.enabled.mechanisms=PLAIN\n"
            f"listener.name.client.plain.sasl.jaas.config={jaas}\n"
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
            "super.users=User:ANONYMOUS;User:tool\n"
            f"log.dirs={','.join(str(self.data(BROKER, index)) for index in range(3))}\n"
            "broker.heartbeat.interval.ms=250\nlog.cleaner.dedupe.buffer.size=4194304\n"
        )

    def _format(self, node: NodeId, directories: int) -> None:
        for index in range(directories):
            self.data(node, index).mkdir()
            (self.data(node, index) / "meta.properties").write_text(
                f"version=1\nnode.id={node}\ncluster.id={CLUSTER_ID}\ndirectory.id={self.directory_id(node, index)}\n"
            )

    def start(self, node: NodeId, *options: str) -> None:
        """Start a node's process."""
        logging = (
            f"-Dlog4j.configuration=file:{self.folder / 'log4j.properties'}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",  # from Kafka 4.0 on
        )
        options = (*options, *jmx_options(self.jmx_port)) if node == BROKER and self.jmx_port else options
        jars, words = self.jars or kafka_jars(), (str(self.config(node)),)
        argv = java_argv(find_java(), jars.classpath, "kafka.Kafka", words, ("-Xmx256m", *logging, *options))
        with (self.folder / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.folder)

    def kill(self, node: NodeId) -> None:
        """SIGKILL."""
        process = self.processes.pop(node)
        process.kill()
        process.wait()

    def stop(self, node: NodeId) -> None:
        """SIGTERM, and wait: a broker hands its leaders over first."""
        process = self.processes.pop(node)
        process.terminate()
        process.wait(START_SECONDS)

    def signal(self, node: NodeId, number: signal.Signals) -> None:
        """Pause or resume a process."""
        self.processes[node].send_signal(number)

    def end(self) -> None:
        """SIGKILL all: nothing of it is needed any more."""
        for node in list(self.processes):
            self.kill(node)

    def dead(self) -> list[NodeId]:
        """Nodes whose process has ended and that no test has stopped."""
        return [node for node, process in self.processes.items() if process.poll() is not None]

    def last_words(self, node: NodeId) -> str:
        """How a node's process ended, and the end of its log."""
        lines = (self.folder / f"{node}.log").read_text(errors="replace").splitlines()[-25:]
        return "\n".join((f"the process of node {node} ended with {self.processes[node].poll()}:", *lines))

    def revive(self) -> list[str]:
        """Start again what has died since the last test, and wait; how each had ended, for the end of pytest's output.

        A test that needs a cluster shall not fail for what became of it in another test's time.
        """
        told = [self.last_words(node) for node in self.dead()]
        for node in self.dead():
            self.start(node)
        self.wait_until_ready()
        return told

    # -- states --------------------------------------------------------------------------------------------------
    def wait_until_ready(self) -> None:
        """A leader, all voters caught up, the broker answering."""
        wait_for("a quorum of three", self._quorum_is_whole)
        wait_for("the broker", self._broker_answers)

    def _none_is_dead(self) -> None:
        assert not self.dead(), "\n".join(map(self.last_words, self.dead()))

    def _quorum_is_whole(self) -> bool:
        self._none_is_dead()
        try:
            quorum = ActiveController(self.inventory).quorum()
        except MigrateError:
            return False
        return quorum.high_watermark > 0 and all(voter.log_end_offset > 0 for voter in quorum.voters)

    def _broker_answers(self) -> bool:
        """Unfenced: it names itself among the living."""
        self._none_is_dead()
        try:
            with Connection(self.inventory.brokers[0].address, Access()) as connection:
                return metadata(connection).brokers == (BROKER,)
        except MigrateError:
            return False

    def create_topic(self, name: str, partitions: int = 4) -> None:
        """A topic, there when this returns."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.inventory.brokers[0].address})
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(timeout=START_SECONDS)
        wait_for(f"topic {name} with leaders", lambda: self._whole(name))

    def _whole(self, topic: str) -> bool:
        with Connection(self.inventory.brokers[0].address, Access()) as connection:
            found = connection.call(METADATA, {"topics": [{"name": topic}], "allowAutoTopicCreation": False})
        (only,) = found["topics"]
        return only["errorCode"] == 0 and all(entry["leaderId"] >= 0 for entry in only["partitions"])


@contextlib.contextmanager
def running(folder: Path, session_ms: int = 9000, *, jmx: bool = False) -> Iterator[KraftCluster]:
    """A cluster, ready; ended afterwards."""
    nodes = (*CONTROLLERS, BROKER)
    *ports, sasl_port, jmx_port = free_ports(len(nodes) + 2)
    cluster = KraftCluster(
        folder, dict(zip(nodes, ports, strict=True)), sasl_port, jmx_port=jmx_port if jmx else 0, session_ms=session_ms
    )
    cluster.prepare()
    try:
        for node in (*CONTROLLERS, BROKER):
            cluster.start(node)
        cluster.wait_until_ready()
        yield cluster
    finally:
        cluster.end()


@pytest.fixture(scope="session")
def kraft_cluster_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    """The session's cluster; a test that stops a node starts it again."""
    with running(tmp_path_factory.mktemp("kraft")) as cluster:
        yield cluster


@pytest.fixture
def kraft_cluster(kraft_cluster_of_session: KraftCluster, request: pytest.FixtureRequest) -> KraftCluster:
    """The session's cluster, whole."""
    NOTES.extend(f"before {request.node.nodeid}: {told}" for told in kraft_cluster_of_session.revive())
    return kraft_cluster_of_session
