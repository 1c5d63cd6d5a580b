"""Kafka's own loader on planted replica folders: `LogManager` of Kafka 3.9 in a JVM, without a cluster.

Each folder carries a file that no loader knows, so that it is found again under whatever name it has then.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from migrate.model.loader import Fate
from tests.testing.ensembles import CLUSTER
from tests.testing.kafka_jvm import first_cause, kafka_jvm

BROKER = 1
UNIQUE = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Planted:
    """A folder to make: `metadata` is what partition.metadata holds, None for no file."""

    directory: int
    folder: str
    metadata: str | None
    size: int = 0

    @property
    def mark(self) -> str:
        """The file that knows it again."""
        return f"mark-{self.directory}-{self.folder}"

    def make(self, directory: Path) -> None:
        """Make it there."""
        folder = directory / self.folder
        folder.mkdir()
        (folder / self.mark).write_bytes(b"")
        if self.metadata is not None:
            (folder / "partition.metadata").write_text(self.metadata)


def metadata_of(topic_id: str) -> str:
    """partition.metadata as Kafka writes it."""
    return f"version: 0\ntopic_id: {topic_id}\n"


def became(planted: Planted, directories: Sequence[Path]) -> Fate | str:
    """What became of a folder, by its new name; the name itself where it says nothing."""
    for directory in directories:
        for folder in directory.iterdir():
            if not (folder / planted.mark).exists():
                continue
            if folder.name == planted.folder:
                kinds = {"future": Fate.FUTURE, "delete": Fate.DELETED, "stray": Fate.SET_ASIDE}
                return kinds.get(planted.folder.rpartition("-")[2], "loaded") if "." in planted.folder else "loaded"
            if folder.name.endswith("-stray"):
                return Fate.STRAY
            if folder.name.endswith("-delete"):
                return Fate.REPLACED
            was_future = re.fullmatch(r"(.+)\.\w+-future", planted.folder)
            return Fate.PROMOTED if was_future and was_future[1] == folder.name else folder.name
    return "gone"


class _IsStray:
    """`UnifiedLog => Boolean` of BrokerMetadataPublisher, in terms of Kafka's own rule."""

    def __init__(self, jvm: Any, image: Any) -> None:
        self._jvm = jvm
        self._image = image

    def apply(self, log: Any) -> bool:
        """LogManager.isStrayKraftReplica."""
        return bool(self._jvm.kafka.log.LogManager.isStrayKraftReplica(BROKER, self._image, log))

    class Java:
        """Py4J's way to name the interface."""

        implements = ["scala.Function1"]  # noqa: RUF012 - Py4J asks for a list


class KafkaLoader:
    """Kafka's loader in one JVM."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm

    def load(self, directories: Sequence[Path], ids: Sequence[str], topics: Mapping[str, Mapping[int, str]]) -> str:
        """Load as a KRaft broker at its start; what it throws, "" for nothing.

        `topics` is topic id -> partition -> the directory id that the metadata names; all belong to this broker.
        """
        for directory, id_ in zip(directories, ids, strict=True):
            (directory / "meta.properties").write_text(
                f"version=0\nbroker.id={BROKER}\ncluster.id={CLUSTER}\ndirectory.id={id_}\n"
            )
        jvm = self._jvm
        image = self._image(topics)
        scheduler = jvm.org.apache.kafka.server.util.KafkaScheduler(1)
        scheduler.startup()
        channel = jvm.org.apache.kafka.storage.internals.log.LogDirFailureChannel(10)
        none = jvm.scala.collection.mutable.ArrayBuffer().toSeq()
        clock = jvm.org.apache.kafka.common.utils.Time.SYSTEM
        config, stats = self._config(directories), jvm.kafka.server.BrokerTopicStats(False)
        manager = jvm.kafka.log.LogManager.apply(config, none, None, scheduler, clock, stats, channel, True)
        try:
            manager.startup(jvm.scala.collection.mutable.HashSet(), _IsStray(jvm, image))
            manager.recoverAbandonedFutureLogs(BROKER, image)
        except Py4JJavaError as error:
            return first_cause(error)
        finally:
            with contextlib.suppress(Py4JJavaError):
                manager.shutdown(-1)
            scheduler.shutdown()
        failed = [str(path) for path in directories if channel.hasOfflineLogDir(str(path))]
        return f"failed directories: {failed}" if failed else ""

    def _image(self, topics: Mapping[str, Mapping[int, str]]) -> Any:
        jvm, uuid = self._jvm, self._jvm.org.apache.kafka.common.Uuid.fromString
        records = jvm.org.apache.kafka.common.metadata
        delta = jvm.org.apache.kafka.image.TopicsDelta(jvm.org.apache.kafka.image.TopicsImage.EMPTY)
        for number, (topic_id, partitions) in enumerate(topics.items()):
            delta.replay(records.TopicRecord().setName(f"name-{number}").setTopicId(uuid(topic_id)))
            for partition, directory in partitions.items():
                record = records.PartitionRecord().setTopicId(uuid(topic_id)).setPartitionId(partition)
                record.setReplicas([BROKER, 9]).setIsr([BROKER, 9]).setLeader(BROKER)
                record.setDirectories([uuid(directory), uuid("AAAAAAAAAAAAAAAAAAAAAA")])
                delta.replay(record)
        return delta.apply()

    def _config(self, directories: Sequence[Path]) -> Any:
        found = self._jvm.java.util.HashMap()
        values = {
            "process.roles": "broker",
            "node.id": str(BROKER),
            "listeners": "PLAINTEXT://localhost:9092",
            "controller.quorum.voters": "3000@localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(map(str, directories)),
            "log.cleaner.enable": "false",
        }
        for key, value in values.items():
            found.put(key, value)
        return self._jvm.kafka.server.KafkaConfig(found)


@contextlib.contextmanager
def kafka_loader() -> Iterator[KafkaLoader]:
    """The JVM for as many loads as one likes."""
    with kafka_jvm(callbacks=True) as gateway:
        yield KafkaLoader(gateway)
