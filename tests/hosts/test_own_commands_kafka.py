"""Real Kafka of another user under an operator's scripts, worked through the host program as in a run."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.java.run import java_argv
from migrate.lab.topology import free_ports
from migrate.model.inventory import BrokerNode
from migrate.model.launch import STOP_SECONDS
from migrate.model.views import Running, Stopped
from tests.testing.estates import NODE, USER, loop, script, services_of, wait_for
from tests.testing.kraft_cluster import CLUSTER_ID, LOG4J

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root"),
]
FILE = """process.roles=broker,controller
node.id=7
controller.quorum.voters=7@127.0.0.1:{quorum}
controller.listener.names=CTL
listeners=PLAIN://127.0.0.1:{port},CTL://127.0.0.1:{quorum}
listener.security.protocol.map=CTL:PLAINTEXT,PLAIN:PLAINTEXT
inter.broker.listener.name=PLAIN
log.cleaner.dedupe.buffer.size=4194304
log.dirs={folder}/data
"""
STARTED, ENDED = "Kafka Server started", "shut down completed"


@pytest.fixture
def folder() -> Iterator[Path]:
    """With Kafka's jars, its storage tool, and a disk of Kafka's user."""
    made = Path(tempfile.mkdtemp(prefix="kraft-migrate-estate-", dir="/tmp")).resolve()
    try:
        made.chmod(0o755)
        for name in ("kafka/libs", "kafka/bin", "data", "etc"):
            (made / name).mkdir(parents=True)
        for jar in kafka_jars().classpath:
            shutil.copy(jar, made / "kafka/libs")
        os.chown(made / "data", 65534, 65534)
        (made / "log4j.properties").write_text(LOG4J)
        words = f'-Xmx128m -cp "{made}/kafka/libs/*" kafka.tools.StorageTool "$@"'
        script(made / "kafka/bin/kafka-storage.sh", f'#!/bin/sh\nexec "${{JAVA_HOME:?}}/bin/java" {words}\n')
        yield made
    finally:
        shutil.rmtree(made)


def test_kafka_under_another_supervisor_is_worked_as_a_unit_is(folder: Path) -> None:
    """Its storage formatted as its user; started with a proven file; killed, it is back; stopped, it has shut down."""
    config, (port, quorum) = folder / "etc/server.properties", free_ports(2)
    config.write_text(FILE.format(folder=folder, port=port, quorum=quorum))
    jar_path, java = (f"{folder}/kafka/libs/*",), replace(find_java(), path=str(find_java().home / "bin/java"))
    logging = f"-Dlog4j.configuration=file:{folder}/log4j.properties"
    command = java_argv(java, jar_path, "kafka.Kafka", (str(config),), ("-Xmx256m", logging))
    log = folder / "kafka.log"

    def said(what: str) -> int:
        return log.read_text(errors="replace").count(what) if log.exists() else 0

    with loop(folder, command) as made:
        own = replace(made, java_home=str(java.home))
        node = BrokerNode(NODE, "kafka-7", f"127.0.0.1:{port}", str(config), service=own)
        services = services_of(folder, node, str(folder / "kafka"))
        services.format_storage(NODE, CLUSTER_ID, "3.9")
        assert (folder / "data/meta.properties").stat().st_uid == 65534
        services.start(NODE)
        wait_for("Kafka", lambda: said(STARTED) == 1, 90)
        first = services.state(NODE)
        assert isinstance(first, Running)
        assert first.config_sha256 is not None
        assert Path(f"/proc/{first.pid}").owner() == USER
        os.kill(first.pid, signal.SIGKILL)
        wait_for("Kafka again", lambda: said(STARTED) == 2, 90)
        second = services.state(NODE)
        assert isinstance(second, Running)
        assert second.pid != first.pid
        services.stop(NODE, STOP_SECONDS)
        assert isinstance(services.state(NODE), Stopped)
        assert said(ENDED) >= 1, log.read_text(errors="replace")[-2000:]
