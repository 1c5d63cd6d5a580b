"""What the status tells of a lab that exists on disk only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrate.java.find import Java
from migrate.java.jars import KafkaJars
from migrate.lab.configure import broker_file, make_secrets, process_specs
from migrate.lab.status import mode_in_words, observe_lab, resident_mb
from migrate.lab.supervisor import Supervisor, write_spec
from migrate.lab.topology import plan_topology


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ({}, "not configured yet"),
        ({"broker.id": "0"}, "ZooKeeper mode"),
        ({"broker.id": "0", "zookeeper.metadata.migration.enable": "true"}, "migration mode"),
        ({"process.roles": "broker"}, "KRaft mode"),
        ({"process.roles": "controller", "zookeeper.metadata.migration.enable": "true"}, "controller, migrating"),
        ({"process.roles": "controller"}, "controller"),
    ],
)
def test_the_mode_is_what_the_file_says(values: dict[str, str], mode: str) -> None:
    """Each stage's keys have a name for people."""
    assert mode_in_words(values, "broker-0") == mode


def test_zookeeper_is_zookeeper() -> None:
    """Whatever its file holds."""
    assert mode_in_words({"clientPort": "1"}, "zookeeper") == "zookeeper"


def test_a_stopped_lab_has_no_numbers_of_a_cluster(tmp_path: Path) -> None:
    """None, not zero: nobody was there to ask."""
    topology = plan_topology(tmp_path)
    for name in ("conf", "processes"):
        topology.folder(name).mkdir()
    passwords = make_secrets(topology)
    for broker in topology.brokers:
        topology.config(broker.name).write_text(broker_file(topology, broker, passwords))
    for spec in process_specs(topology, Java("/java", 17, "PATH"), KafkaJars(("a.jar",), "3.9.2"), {}):
        write_spec(topology.processes, spec)
    status = observe_lab(topology, Supervisor(topology.processes))
    assert (status.brokers, status.partitions, status.not_whole, status.seeded) == (None, None, None, False)
    assert {process.state for process in status.processes} == {"stopped"}
    assert [process.mode for process in status.processes][:2] == ["zookeeper", "ZooKeeper mode"]
    assert status.processes[1].ports == (topology.brokers[0].internal_port, topology.brokers[0].client_port)


def test_memory_is_that_of_the_process() -> None:
    """Ours is more than nothing; a process that is gone has none."""
    assert resident_mb(os.getpid()) > 5
    assert resident_mb(2**22 + 1) == 0
