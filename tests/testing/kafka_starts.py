"""What Kafka's own start code says of an ensemble of directories: starts or not, and which directories failed.

KRaft mode asks `KafkaRaftServer.initializeLogDirs` itself; the ZooKeeper modes do what `KafkaServer.startup` does with
the same classes (it cannot be called without a ZooKeeper); after both comes the real `LogManager`'s constructor.
`python -m tests.testing.kafka_starts` writes tests/data/disks/starts-by-kafka.json anew.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from tests.testing.ensembles import CLUSTER, ENSEMBLES, MODES, NODE, Ensemble
from tests.testing.kafka_jvm import first_cause, kafka_jvm

CAPTURED = Path(__file__).parents[1] / "data" / "disks" / "starts-by-kafka.json"


@dataclass(frozen=True, slots=True)
class KafkaSays:
    """`said` is the message of the exception that ended the start, "" for none; `failed` are names of directories."""

    starts: bool
    failed: tuple[str, ...]
    said: str


class _Halt:
    """`Exit.halt` must not end the JVM that all ensembles share: it is followed by an exception anyway."""

    halted = False

    def execute(self, _status: int, _message: str | None) -> None:
        """Kafka wants to die here."""
        self.halted = True

    class Java:
        """Py4J's way to name the interface."""

        implements = ["org.apache.kafka.common.utils.Exit$Procedure"]  # noqa: RUF012 - Py4J asks for a list


class KafkaStarts:
    """Kafka's start code in one JVM."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm
        self._halt = _Halt()
        self._jvm.org.apache.kafka.common.utils.Exit.setHaltProcedure(self._halt)

    def start(self, mode: str, log_dirs: list[str], metadata_dir: str, base: Path) -> KafkaSays:
        """Start on directories that are Kafka's own from now on: it writes into them."""
        properties = self._jvm.org.apache.kafka.metadata.properties
        loader = properties.MetaPropertiesEnsemble.Loader().addLogDirs(log_dirs)
        if mode != "zookeeper":
            loader = loader.addMetadataLogDir(metadata_dir)
        first = loader.load()
        failed = set(first.errorLogDirs())
        config = self._config(mode, log_dirs, metadata_dir)
        channel = self._jvm.org.apache.kafka.storage.internals.log.LogDirFailureChannel(10)
        self._halt.halted = False
        said = ""
        try:
            if mode == "kraft":
                log = self._jvm.org.slf4j.LoggerFactory.getLogger("start")
                self._jvm.kafka.server.KafkaRaftServer.initializeLogDirs(config, log, "")
            else:
                self._as_kafka_server(first, config, mode, channel, failed)
            self._log_manager(config, failed, channel)
        except Py4JJavaError as error:
            said = "halt" if self._halt.halted else first_cause(error)
        failed |= {path for path in log_dirs if channel.hasOfflineLogDir(str(Path(path)))}
        names = tuple(sorted(str(Path(path).relative_to(base)) for path in failed))
        return KafkaSays(not said, names, said.replace(str(base), "").split("\n")[0])

    def loaded(self, log_dirs: list[str]) -> dict[str, tuple[int, str | None, int | None, str | None] | None]:
        """Version, cluster.id, node id and directory.id of each; None for what Kafka counts as failed."""
        ensemble = self._jvm.org.apache.kafka.metadata.properties.MetaPropertiesEnsemble
        found = ensemble.Loader().addLogDirs(log_dirs).load()
        values: dict[str, tuple[int, str | None, int | None, str | None] | None] = dict.fromkeys(found.errorLogDirs())
        for path, meta in dict(found.logDirProps()).items():
            node, directory = meta.nodeId(), meta.directoryId()
            values[path] = (
                meta.version().number(),
                meta.clusterId().orElse(None),
                node.getAsInt() if node.isPresent() else None,
                directory.get().toString() if directory.isPresent() else None,
            )
        return values

    def _as_kafka_server(self, first: Any, config: Any, mode: str, channel: Any, failed: set[str]) -> None:
        """The lines of KafkaServer.startup between `load metadata` and `start log manager`."""
        flags = self._jvm.java.util.EnumSet
        flag = self._jvm.java.lang.Class.forName(
            "org.apache.kafka.metadata.properties.MetaPropertiesEnsemble$VerificationFlag"
        )
        optional, whole = self._jvm.java.util.Optional, self._jvm.java.util.OptionalInt
        constants = {str(one): one for one in flag.getEnumConstants()}
        wanted = flags.noneOf(flag) if mode == "migration" else flags.of(constants["REQUIRE_V0"])
        first.verify(optional.of(CLUSTER), whole.of(NODE), wanted)
        ensemble = self._jvm.org.apache.kafka.metadata.properties.MetaPropertiesEnsemble
        copier = ensemble.Copier(first)
        entries = first.nonFailedDirectoryProps()
        while entries.hasNext():
            entry = entries.next()
            builder = self._jvm.org.apache.kafka.metadata.properties.MetaProperties.Builder(entry.getValue())
            builder.setClusterId(CLUSTER).setNodeId(NODE)
            if not builder.directoryId().isPresent() and mode == "migration":
                builder.setDirectoryId(copier.generateValidDirectoryId())
            copier.setLogDirProps(entry.getKey(), builder.build())
            with contextlib.suppress(OSError):  # its pre-write handler: Files.createDirectories
                Path(entry.getKey()).mkdir(parents=True, exist_ok=True)
        copier.emptyLogDirs().clear()
        while True:
            try:
                copier.writeLogDirChanges()
                break
            except Py4JJavaError as error:
                if not re.search("IO|NotDirectory|File", first_cause(error)):
                    raise
        after = copier.copy()
        failed |= set(after.errorLogDirs())
        for path in after.errorLogDirs():
            channel.maybeAddOfflineLogDir(path, "write", None)
        after.verify(optional.of(CLUSTER), whole.of(NODE), wanted)

    def _log_manager(self, config: Any, failed: set[str], channel: Any) -> None:
        jvm = self._jvm
        buffer = jvm.scala.collection.mutable.ArrayBuffer()
        for path in sorted(failed):
            buffer.append(path)
        scheduler = jvm.org.apache.kafka.server.util.KafkaScheduler(1)
        system = jvm.org.apache.kafka.common.utils.Time.SYSTEM
        jvm.kafka.log.LogManager.apply(config, buffer.toSeq(), None, scheduler, system, None, channel, True)

    def _config(self, mode: str, log_dirs: list[str], metadata_dir: str) -> Any:
        values = {"log.dirs": ",".join(log_dirs), "metadata.log.dir": metadata_dir}
        values |= {"controller.quorum.voters": "3000@localhost:9093", "controller.listener.names": "CONTROLLER"}
        if mode == "kraft":
            values |= {"process.roles": "broker", "node.id": str(NODE), "listeners": "PLAINTEXT://localhost:9092"}
        else:
            values |= {"broker.id": str(NODE), "zookeeper.connect": "localhost:2181"}
            values |= {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
            values["zookeeper.metadata.migration.enable"] = str(mode == "migration").lower()
            values["inter.broker.protocol.version"] = "3.9"
        if mode == "zookeeper":
            del values["controller.quorum.voters"], values["controller.listener.names"]
            del values["listener.security.protocol.map"]
        found = self._jvm.java.util.HashMap()
        for key, value in values.items():
            found.put(key, value)
        return self._jvm.kafka.server.KafkaConfig(found)


@contextlib.contextmanager
def kafka_starts() -> Iterator[KafkaStarts]:
    """The JVM for as many starts as one likes."""
    with kafka_jvm(callbacks=True) as gateway:
        yield KafkaStarts(gateway)


def says(kafka: KafkaStarts, ensemble: Ensemble, mode: str, base: Path) -> KafkaSays:
    """Kafka's answer for an ensemble created again below `base` (which must not be there)."""
    log_dirs, metadata_dir = ensemble.make(base)
    return kafka.start(mode, log_dirs, metadata_dir, base)


def captured() -> dict[tuple[str, str], KafkaSays]:
    """What Kafka said once, by ensemble and mode."""
    rows = json.loads(CAPTURED.read_text(encoding="utf-8"))
    return {(row["ensemble"], row["mode"]): KafkaSays(row["starts"], tuple(row["failed"]), row["said"]) for row in rows}


def capture() -> None:
    """Write the file anew."""
    rows = []
    with kafka_starts() as kafka, tempfile.TemporaryDirectory() as folder:
        for number, ensemble in enumerate(ENSEMBLES):
            for mode in MODES:
                answer = says(kafka, ensemble, mode, Path(folder) / f"{number}-{mode}")
                rows.append({"ensemble": ensemble.name, "mode": mode, **asdict(answer)})
    lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    CAPTURED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    capture()
