"""The lists of what the next release changes, held to the definitions of 3.9.2, 4.3.1 and 4.4.0; and real starts."""

from __future__ import annotations

import contextlib
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)
from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError

from migrate.checks.next_release import next_release
from migrate.java.find import find_java
from migrate.java.jars import KafkaJars, kafka_jars
from migrate.java.run import java_argv
from migrate.lab.topology import free_ports
from tests.testing.kafka_jvm import first_cause, kafka_jvm
from tests.testing.kraft_cluster import CLUSTER_ID, LOG4J, wait_for
from tests.testing.newer_kafka import KAFKAS

pytestmark = [pytest.mark.kafka, pytest.mark.long]  # two further releases of Kafka are fetched

LINES = {"4.3.1": "4.3", "4.4.0": "4.4"}
NODE = {"process.roles": "broker", "node.id": "0", "controller.listener.names": "CTL"}
# keys of JmxReporter's own, which are in no definition
OUTSIDE = {"metrics.jmx.whitelist", "metrics.jmx.blacklist"}
UNTOLD_DEFAULTS = {
    "group.consumer.assignors": "the same classes by their short names",
    "group.coordinator.new.enable": "gone, and 3.9 decides by the rebalance protocols",
    "group.share.partition.max.record.locks": "3.9 has no share groups for production",
    "listeners": "the same, as a list",
    "log.dir": "the same, as a list",
    "metric.reporters": "W-VER-22",
    "remote.log.manager.copier.thread.pool.size": "-1 stood for remote.log.manager.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size": "-1 stood for remote.log.manager.thread.pool.size",
    "sasl.oauthbearer.expected.audience": "none, as a list",
}
LOW = -(2**31)
UNTOLD_LIMITS = {
    "node.id": "a KRaft node has one",
    "group.share.max.size": "3.9 has no share groups for production",
    "group.share.record.lock.duration.ms": "3.9 has no share groups for production",
}


@dataclass(frozen=True)
class Key:
    """What a definition says of a key, as texts."""

    default: str
    validator: str

    @property
    def least(self) -> int:
        """The smallest number that it takes; LOW where none is stated."""
        begin = self.validator.removeprefix("[").partition(",...")[0]
        return int(begin) if ",..." in self.validator and begin.lstrip("-").isdecimal() else LOW


@dataclass(frozen=True)
class Kafka:
    """One release's classes."""

    jvm: Any
    line: str
    server: Mapping[str, Key]
    topic: Mapping[str, Key]

    def refusal(self, key: str, value: str) -> str:
        """What its definition of nodes' files says of a value; "" where it takes it."""
        given = self.jvm.java.util.HashMap()
        for name, text in {**NODE, key: value}.items():
            given.put(name, text)
        return self._said(self.jvm.kafka.server.KafkaConfig.configDef(), given)

    def topic_refusal(self, key: str, value: str) -> str:
        """The same of a topic's configuration."""
        given = self.jvm.java.util.HashMap()
        given.put(key, value)
        return self._said(self.jvm.org.apache.kafka.storage.internals.log.LogConfig.configDefCopy(), given)

    def _said(self, definition: Any, given: Any) -> str:
        try:
            definition.parse(given)
        except Py4JJavaError as error:
            return first_cause(error)
        return ""


def defined(definition: Any) -> dict[str, Key]:
    """The keys of a ConfigDef."""
    found = {}
    for name, key in dict(definition.configKeys()).items():
        default, validator = get_field(key, "defaultValue"), get_field(key, "validator")
        text = ",".join(map(str, default)) if hasattr(default, "__iter__") and not isinstance(default, str) else default
        plain = str(text).lower() if isinstance(text, bool) else str(text)
        found[name] = Key(plain, "" if validator is None else validator.toString())
    return found


@contextlib.contextmanager
def classes_of(jars: KafkaJars | None, line: str) -> Iterator[Kafka]:
    """A JVM with that release."""
    with kafka_jvm(jars=jars) as gateway:
        jvm = gateway.jvm
        topics = jvm.org.apache.kafka.storage.internals.log.LogConfig.configDefCopy()
        yield Kafka(jvm, line, defined(jvm.kafka.server.KafkaConfig.configDef()), defined(topics))


@pytest.fixture(scope="module")
def old() -> Iterator[Kafka]:
    """What is migrated."""
    with classes_of(None, "3.9") as found:
        yield found


@pytest.fixture(scope="module", params=list(LINES))
def new(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """What comes after it."""
    with classes_of(kafka_jars(release=KAFKAS[request.param]), LINES[request.param]) as found:
        yield found


def listed(kafka: Kafka) -> Mapping[str, Mapping[str, Any]]:
    """What this tool says of it."""
    return next_release(kafka.line)


def test_urls_that_no_property_allows_are_refused_by_the_new_release_alone(old: Kafka, new: Kafka) -> None:
    """W-VER-21: a node with one does not start, and its tools fail."""
    for key, wanted in listed(new)["allowed"].items():
        for kafka, refuses in ((old, False), (new, True)):
            system = kafka.jvm.java.lang.System
            secured = kafka.jvm.org.apache.kafka.common.security.oauthbearer.internals.secured
            reader = secured.ConfigurationUtils(kafka.jvm.java.util.HashMap({key: "https://idp.example.com/x"}))
            if refuses:
                with pytest.raises(Py4JJavaError) as caught:
                    reader.validateUrl(key)
                assert wanted in first_cause(caught.value)
            else:
                reader.validateUrl(key)
            system.setProperty(wanted, "https://idp.example.com/x")
            reader.validateUrl(key)
            system.clearProperty(wanted)


def test_the_keys_that_are_gone_are_the_listed_ones(old: Kafka, new: Kafka) -> None:
    """Every one, of files and of topics, and no other."""
    assert old.server.keys() - new.server.keys() == listed(new)["removed"].keys() - OUTSIDE
    assert old.topic.keys() - new.topic.keys() == listed(new)["topic_removed"].keys()
    taken = [
        set(map(str, kafka.jvm.org.apache.kafka.common.metrics.JmxReporter.RECONFIGURABLE_CONFIGS))
        for kafka in (old, new)
    ]
    assert taken[0] - taken[1] == OUTSIDE
    named = [text for part in ("removed", "topic_removed") for text in listed(new)[part].values() if text]
    in_place = {part for text in named for part in text.split(" and ")}
    assert in_place <= {*new.server, *new.topic, *taken[1]}


def test_the_smallest_numbers_are_the_listed_ones(old: Kafka, new: Kafka) -> None:
    """3.9 takes less; one less than the listed number is refused."""
    for theirs, known, wanted in (
        (new.server, old.server, listed(new)["least"]),
        (new.topic, old.topic, listed(new)["topic_least"]),
    ):
        higher = {name: key.least for name, key in theirs.items() if name in known and key.least > known[name].least}
        assert {name: least for name, least in higher.items() if name not in UNTOLD_LIMITS} == dict(wanted)
    for name, least in listed(new)["least"].items():
        below = least - 1 if least > 1 else -1  # 3.9 takes -1 for thread pools, and 0 for none of them
        refusals = [kafka.refusal(name, str(value)) for kafka, value in ((old, below), (new, below), (new, least))]
        assert [bool(said) for said in refusals] == [False, True, False], name
    for name, least in listed(new)["topic_least"].items():
        assert old.topic_refusal(name, str(least - 1)) == ""
        assert f"Value must be at least {least}" in new.topic_refusal(name, str(least - 1))


def test_an_empty_entry_is_refused_in_the_listed_lists(old: Kafka, new: Kafka) -> None:
    """And in no other that 3.9 takes it in."""
    refused = set()
    for name in old.server.keys() & new.server.keys():
        if not old.refusal(name, "CTL,") and "must not be empty" in new.refusal(name, "CTL,"):
            refused.add(name)
    assert refused == listed(new)["lists"].keys()


def test_the_defaults_that_changed_are_the_listed_ones(old: Kafka, new: Kafka) -> None:
    """But for those with a reason."""
    changed = {
        name: [old.server[name].default, new.server[name].default]
        for name in old.server.keys() & new.server.keys()
        if old.server[name].default != new.server[name].default and "java.lang.Object" not in new.server[name].default
    }
    assert {name: pair for name, pair in changed.items() if name not in UNTOLD_DEFAULTS} == listed(new)["defaults"]


def test_a_node_has_the_jmx_reporter_only_where_it_is_named(old: Kafka, new: Kafka) -> None:
    """W-VER-22."""

    def reporters(kafka: Kafka, named: str) -> list[str]:
        given = kafka.jvm.java.util.Properties()
        own = {"controller.quorum.voters": "3000@c:1", "listeners": "PLAINTEXT://b:2", "metric.reporters": named}
        for key, value in {**NODE, **own}.items():
            given.setProperty(key, value)
        config = kafka.jvm.kafka.server.KafkaConfig.fromProps(given, False)
        made = kafka.jvm.org.apache.kafka.clients.CommonClientConfigs.metricsReporters("0", config)
        return [str(one.getClass().getName()) for one in made]

    ((_, (added, decides)),) = listed(new)["lost"].items()
    assert (reporters(old, ""), reporters(new, "")) == ([added], [])
    assert reporters(old, added) == reporters(new, added) == [added]
    assert old.server[decides].default == "true"


@pytest.mark.parametrize("release", list(LINES))
def test_brokers_need_java_17(release: str) -> None:
    """By the version of the class files, as the page about Kafka 4 says: 61 is Java 17's."""
    jars = kafka_jars(release=KAFKAS[release])
    (core,) = (path for path in jars.classpath if Path(path).name == f"kafka_2.13-{release}.jar")
    with zipfile.ZipFile(core) as archive:
        head = archive.read("kafka/Kafka.class")[:8]
    assert int.from_bytes(head[6:8], "big") == 61


# -- real starts -----------------------------------------------------------------------------------------------------
CONTROLLER, BROKER = 3000, 0
LOG4J2 = """\
Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout:
        pattern: '[%d] %p %m (%c)%n'
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        ref: out
"""
DIRECTORIES = {CONTROLLER: ["ABCDEFGHIJKLMNOPQRSTUg"], BROKER: ["KTrqWH4lRM-UvsdWOyCZfw", "dK02AL0ITg6j5LTzzYxpMw"]}
IGNORED = (
    "log.message.format.version=3.0\noffsets.commit.required.acks=-1\nzookeeper.connect=zk:1\n"
    "delegation.token.master.key=canary\nmetrics.jmx.blacklist=nothing\n"
)


class Pair:
    """A controller and a broker with two directories; each start may be of another release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip((CONTROLLER, BROKER), free_ports(2), strict=True))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        (folder / "log4j.properties").write_text(LOG4J)
        (folder / "log4j2.yaml").write_text(LOG4J2)
        for node, ids in DIRECTORIES.items():
            for index, text in enumerate(ids):
                place = folder / f"{node}-{index}"
                place.mkdir()
                meta = f"version=1\nnode.id={node}\ncluster.id={CLUSTER_ID}\ndirectory.id={text}\n"
                (place / "meta.properties").write_text(meta)
        self.write(CONTROLLER, "process.roles=controller\n")

    def write(self, node: int, more: str) -> None:
        """The node's file: what both need, and `more`."""
        name = "CTL" if node == CONTROLLER else "PLAINTEXT"
        directories = ",".join(str(self.folder / f"{node}-{index}") for index in range(len(DIRECTORIES[node])))
        (self.folder / f"{node}.properties").write_text(
            f"controller.quorum.voters={CONTROLLER}@127.0.0.1:{self.ports[CONTROLLER]}\n"
            f"controller.listener.names=CTL\nnode.id={node}\nlisteners={name}://127.0.0.1:{self.ports[node]}\n"
            "listener.security.protocol.map=CTL:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
            f"log.cleaner.dedupe.buffer.size=4194304\nlog.dirs={directories}\n{more}"
        )

    def log(self, node: int) -> str:
        """All that the node's processes wrote."""
        return (self.folder / f"{node}.log").read_text(errors="replace")

    def start(self, node: int, jars: KafkaJars) -> subprocess.Popen[bytes]:
        """One process."""
        old = jars.version.startswith("3.")
        logging = f"log4j.configuration=file:{self.folder}/log4j.properties"
        options = ("-Xmx256m", f"-D{logging}" if old else f"-Dlog4j2.configurationFile={self.folder}/log4j2.yaml")
        argv = java_argv(find_java(), jars.classpath, "kafka.Kafka", (f"{self.folder}/{node}.properties",), options)
        with (self.folder / f"{node}.log").open("wb") as log:
            self.processes[node] = subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.folder)
        return self.processes[node]

    def stop(self) -> None:
        """Both, the broker first."""
        for node in sorted(self.processes):
            process = self.processes.pop(node)
            process.terminate()
            process.wait(60)

    def address(self) -> dict[str, Any]:
        """For a client."""
        return {"bootstrap.servers": f"127.0.0.1:{self.ports[BROKER]}", "log_level": 0}

    def wait(self) -> None:
        """Until the broker is unfenced."""

        def answers() -> bool:
            assert self.processes[BROKER].poll() is None, self.log(BROKER)[-3000:]
            return "Kafka Server started" in self.log(BROKER)

        wait_for("the broker", answers)

    def topic(self, name: str, config: dict[str, str]) -> None:
        """One partition."""
        admin = AdminClient(self.address())
        (made,) = admin.create_topics([NewTopic(name, 1, 1, config=config)]).values()
        made.result(30)

    def produced(self, topic: str, ahead: float) -> str:
        """What became of a record with a timestamp so many seconds ahead."""
        said: list[str] = []
        client = Producer({**self.address(), "message.timeout.ms": 20000})
        stamp = int((time.time() + ahead) * 1000)
        client.produce(topic, b"x", timestamp=stamp, callback=lambda error, _: said.append(str(error)))
        client.flush(30)
        return said[0]


@pytest.mark.slow
def test_what_is_called_fatal_is_fatal_and_what_is_called_ignored_is_ignored(tmp_path: Path) -> None:
    """A pair of 3.9.2 with topics, started again as 4.3.1 with files that 3.9.2 takes."""
    old, new = kafka_jars(), kafka_jars(release=KAFKAS["4.3.1"])
    pair = Pair(tmp_path)
    try:
        pair.write(BROKER, "process.roles=broker\n" + IGNORED)
        pair.start(CONTROLLER, old)
        pair.start(BROKER, old)
        pair.wait()
        pair.topic("plain", {"message.format.version": "3.0"})
        assert pair.produced("plain", 7200) == "None"
        pair.stop()

        pair.start(CONTROLLER, new)
        fatal = {
            "log.segment.bytes=16384\n": "configuration log.segment.bytes: Value must be at least 1048576",
            "remote.log.manager.copier.thread.pool.size=-1\n": "thread.pool.size: Value must be at least 1",
            f"log.dirs={tmp_path}/0-0,{tmp_path}/0-1,\n": "'log.dirs' values must not be empty",
            "": 'Missing required configuration "process.roles"',
        }
        for text, said in fatal.items():
            pair.write(BROKER, f"process.roles=broker\n{text}" if text else "broker.id=0\n")
            assert pair.start(BROKER, new).wait(60) != 0
            assert said in pair.log(BROKER)

        pair.write(BROKER, "process.roles=broker\n" + IGNORED)
        pair.start(BROKER, new)
        pair.wait()
        assert not [line for line in IGNORED.split() if line.partition("=")[0] in pair.log(BROKER)]
        assert pair.produced("plain", 0) == "None"
        assert "INVALID_TIMESTAMP" in pair.produced("plain", 7200)
        pair.stop()

        pair.start(CONTROLLER, old)
        pair.start(BROKER, old)
        pair.wait()
        pair.topic("small", {"segment.bytes": "16384"})
        pair.stop()
        pair.start(CONTROLLER, new)
        assert pair.start(BROKER, new).wait(60) != 0
        assert "Error starting LogManager" in pair.log(BROKER)
        assert "Invalid value 16384 for configuration segment.bytes" in pair.log(BROKER)
    finally:
        for process in pair.processes.values():
            process.kill()
            process.wait()
