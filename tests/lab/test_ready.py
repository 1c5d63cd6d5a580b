"""Waiting for processes of the lab."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from migrate.errors import LabNotReady
from migrate.lab import ready
from migrate.lab.ready import ask, brokers_agree, pick_last_lines, port_answers, wait_until, zookeeper_answers
from migrate.lab.supervisor import ProcessSpec, Supervisor, write_spec
from migrate.lab.topology import HOST, Shape, free_ports, plan_topology
from migrate.model.views import MetadataAnswer, Running


@pytest.fixture
def waiting(tmp_path: Path) -> Supervisor:
    """A supervisor with one process that waits for a signal."""
    spec = ProcessSpec(
        name="broker-0",
        node=0,
        argv=(sys.executable, "-S", "-c", "import signal; signal.sigwait({signal.SIGTERM})"),
        directory=str(tmp_path),
        log=str(tmp_path / "log"),
        output=str(tmp_path / "out"),
        config=str(tmp_path / "config"),
    )
    write_spec(tmp_path, spec)
    (tmp_path / "log").write_text("FATAL: no disk\n\tat kafka.Kafka.main(Kafka.scala)\n")
    return Supervisor(tmp_path)


def test_a_stack_trace_is_left_out_of_a_message() -> None:
    """What a person needs is the line above it."""
    lines = ["INFO a", "ERROR b", "\tat x.y(z)", "\t... 3 more", "Caused by: c"]
    assert pick_last_lines(lines) == ["INFO a", "ERROR b", "Caused by: c"]
    assert len(pick_last_lines(["x"] * 100)) == ready.LAST_LINES


def test_a_reached_state_ends_the_wait_at_once(waiting: Supervisor) -> None:
    """Nothing is looked at that need not be."""
    answers = iter([""])
    wait_until("starting", lambda: next(answers), waiting, ["no such process"])
    assert next(answers, "asked once") == "asked once"


@pytest.mark.slow
def test_a_wait_asks_until_the_state_is_reached(waiting: Supervisor) -> None:
    """Missing things are asked for again."""
    waiting.start("broker-0")
    answers = iter(["two missing", "one missing", ""])
    try:
        wait_until("starting", lambda: next(answers), waiting, ["broker-0"])
    finally:
        waiting.stop("broker-0", 20)
    assert next(answers, "all asked") == "all asked"


def test_a_process_that_died_ends_the_wait_with_its_words(waiting: Supervisor) -> None:
    """Long before any time is up."""
    waiting.start("broker-0")
    state = waiting.state("broker-0")
    assert isinstance(state, Running)
    os.kill(state.pid, signal.SIGKILL)
    with pytest.raises(LabNotReady, match="broker-0 died while starting") as caught:
        wait_until("starting", lambda: "not there", waiting, ["broker-0"])
    assert caught.value.why == "FATAL: no disk"


def test_a_wait_that_comes_to_nothing_says_what_is_missing(
    waiting: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for how long it waited."""
    monkeypatch.setattr(ready, "PATIENCE_SECONDS", 0.0)
    waiting.start("broker-0")
    try:
        with pytest.raises(LabNotReady, match="two partitions are not whole"):
            wait_until("starting", lambda: "two partitions are not whole", waiting, ["broker-0"])
    finally:
        waiting.stop("broker-0", 20)


def test_nobody_who_listens_is_told() -> None:
    """As a text that says what is missing; never an exception."""
    port = free_ports(1)[0]
    assert str(port) in port_answers(port)
    assert "does not answer" in zookeeper_answers(port)
    with socket.create_server((HOST, port)):
        assert port_answers(port) == ""


def test_a_broker_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """The first of them is enough to wait on."""
    topology = plan_topology(tmp_path)
    assert str(ask(topology, topology.brokers[1])).startswith("broker-1: ")
    assert brokers_agree(topology).startswith("broker-0: ")


def test_a_kraft_clusters_metadata_log_is_no_replica_that_brokers_must_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A KRaft broker keeps it in a log directory: an empty cluster is up; one with a topic's folder is not."""
    topology = plan_topology(tmp_path, Shape())
    seen = tuple(broker.id for broker in topology.brokers)
    monkeypatch.setattr(ready, "ask", lambda *_: MetadataAnswer((), seen, 0, ()))
    disk = Path(topology.brokers[0].log_dirs[0])
    (disk / "__cluster_metadata-0").mkdir(parents=True)
    assert brokers_agree(topology) == ""
    (disk / "orders-0").mkdir()
    assert "hold replicas" in brokers_agree(topology)
