"""Nodes whose processes only people start and stop: by address and collector, never by somebody's word."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import PersonCouldNot, ProcessNotStarted
from migrate.hosts.manual.commands import Proof, check_proof
from migrate.hosts.manual.desk import Instruction
from migrate.hosts.manual.reports import KafkaProcess
from migrate.hosts.manual.witness import ANSWERS, REFUSES
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, MetaProperties, Running, Stopped
from tests.testing.clusters import CLUSTER_ID
from tests.testing.person import Bench, again, bench, like_kafka, once

BROKER, CONTROLLER = NodeId(0), NodeId(3000)


@pytest.fixture
def hosts(tmp_path: Path) -> Bench:
    """Both hosts, looked at once."""
    found = bench(tmp_path)
    found.look()
    return found


@pytest.fixture
def kafka(hosts: Bench) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line is that of a broker with this file."""
    with like_kafka(hosts.config) as process:
        yield process


@pytest.mark.slow
def test_a_running_node_is_known_by_address_and_process(hosts: Bench, kafka: subprocess.Popen[bytes]) -> None:
    """Which file it was started with is proven by the times on its own host."""
    os.utime(hosts.config)
    hosts.look()
    found = hosts.services.state(BROKER)
    assert isinstance(found, Running)
    assert found.pid == kafka.pid
    assert found.config_sha256 is None, "the file changed after the start"


@pytest.mark.slow
def test_a_file_older_than_the_process_is_its_file(hosts: Bench) -> None:
    """As the plan knows the file: its secrets hidden."""
    started = Path(hosts.config).stat().st_ctime + 1
    hosts.look()
    answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    one = replace(answer, processes=(KafkaProcess(7, started, 0),))
    assert one.started_with(hosts.config) == hashlib.sha256(Path(hosts.config).read_bytes()).hexdigest()
    for bad in (
        (KafkaProcess(7, started, 2),),
        (KafkaProcess(7, started - 1, 0),),
        (KafkaProcess(7, started, 0), KafkaProcess(8, started, 0)),
        (),
        None,
    ):
        assert replace(answer, processes=bad).started_with(hosts.config) is None


@pytest.mark.slow
def test_a_node_that_nobody_told_of_runs_with_an_unknown_file(hosts: Bench) -> None:
    """It answers: more is not claimed."""
    assert hosts.services.state(BROKER) == Running(0, 0.0, None)


@pytest.mark.slow
def test_refused_connections_alone_are_no_stop(hosts: Bench) -> None:
    """A process may live without its listener; an unreachable address says nothing at all."""
    hosts.network.listening[0] = "cannot be reached: timed out"
    assert isinstance(hosts.services.state(BROKER), Unknown)
    hosts.network.listening[0] = REFUSES
    (hosts.root / "inbox/answer-0.json").unlink()
    assert isinstance(hosts.services.state(BROKER), Unknown)
    hosts.look()
    assert hosts.services.state(BROKER) == Stopped(), "the collector saw no process"


@pytest.mark.slow
def test_a_stop_is_over_when_it_is_seen(hosts: Bench, kafka: subprocess.Popen[bytes]) -> None:
    """The listener refuses, and the process is gone; saying so is not enough."""
    hosts.look()
    seen: list[str] = []

    def slowly(waiting: Instruction) -> None:
        seen.extend(text for proof in waiting.proofs if (text := hosts.desk.seen(waiting, proof)))
        if hosts.waits == 2:
            hosts.network.listening[0] = REFUSES
            hosts.follow(waiting.folder)
        if hosts.waits == 4:
            kafka.kill()
            kafka.wait()
            hosts.follow(waiting.folder)

    hosts.act = slowly
    hosts.services.stop(BROKER, 330)
    assert hosts.waits == 4
    assert any("runs" in text for text in seen)
    assert hosts.services.state(BROKER) == Stopped()
    hosts.services.stop(BROKER, 330)
    assert len(hosts.desk.all()) == 1, "told to stay down, it is not told again"


@pytest.mark.slow
def test_a_broker_among_others_is_down_when_they_do_not_name_it(hosts: Bench) -> None:
    """Not before, although its process is gone."""
    inventory = hosts.desk.inventory
    other = replace(inventory.brokers[0], id=NodeId(1), address="b1:9092")
    hosts.desk.inventory = replace(inventory, brokers=(*inventory.brokers, other))
    hosts.network.naming[0] = "brokers [1] still name it"

    def stops(waiting: Instruction) -> None:
        hosts.network.listening[0] = REFUSES
        once(hosts, waiting)
        if hosts.waits == 5:
            hosts.network.naming.clear()

    hosts.act = stops
    hosts.services.stop(BROKER, 330)
    assert hosts.waits == 5


@pytest.mark.slow
def test_a_stopped_node_that_answers_again_runs_with_an_unknown_file(hosts: Bench) -> None:
    """Somebody started it: its old answer says nothing of that process."""

    def stops(waiting: Instruction) -> None:
        hosts.network.listening.clear()
        once(hosts, waiting)

    hosts.act = stops
    hosts.services.stop(BROKER, 330)
    hosts.network.listening[0] = ANSWERS
    assert hosts.services.state(BROKER) == Running(0, 0.0, None)
    with pytest.raises(ProcessNotStarted):
        hosts.services.start(BROKER)


def starts_a_broker(hosts: Bench) -> None:
    """Stopped as seen, then started; the look behind it is left to who calls."""
    hosts.network.listening.clear()
    hosts.services.stop(BROKER, 330)
    with like_kafka(hosts.config):
        hosts.services.start(BROKER)


@pytest.mark.slow
def test_a_started_broker_is_looked_at_again_once_it_listens(hosts: Bench) -> None:
    """Its disks change as it starts: what was seen just after the start is of before."""

    def starting(waiting: Instruction) -> None:
        if waiting.effect == "start":
            once(hosts, waiting)
            hosts.network.listening[0] = ANSWERS
            (hosts.root / "d0/meta.properties").write_text(
                f"version=0\nbroker.id=0\ncluster.id={CLUSTER_ID}\ndirectory.id=8bHZOTjB-nvWJU1uWP5PZQ\n"
            )
        else:
            once(hosts, waiting)

    hosts.act = starting
    starts_a_broker(hosts)
    assert [one.effect for one in hosts.desk.all()] == ["stop", "start", "look"]
    disks = hosts.disks.look(BROKER, [str(hosts.root / "d0")], None)
    assert isinstance(disks, BrokerDisks)
    meta = disks.directories[0].meta
    assert isinstance(meta, MetaProperties)
    assert meta.directory_id == "8bHZOTjB-nvWJU1uWP5PZQ"


@pytest.mark.slow
def test_a_run_killed_behind_a_start_looks_again_first(hosts: Bench) -> None:
    """The start is not asked for again, and what is known of its disks is not of before."""

    def killed(waiting: Instruction) -> None:
        once(hosts, waiting)
        if waiting.effect == "start":
            hosts.network.listening[0] = ANSWERS
        if waiting.effect == "look":
            raise KeyboardInterrupt

    hosts.act = killed
    with pytest.raises(KeyboardInterrupt):
        starts_a_broker(hosts)
    (hosts.desk.folder / "003-0-look").rename(hosts.root / "never rendered")
    (hosts.root / "host/003-0-look").rename(hosts.root / "never copied")
    hosts.done.remove("003-0-look")
    hosts.act = lambda waiting: once(hosts, waiting)
    with like_kafka(hosts.config):
        hosts.services.resume()
        hosts.services.resume()
    assert [(one.effect, one.closed) for one in hosts.desk.all()] == [
        (effect, "observed") for effect in ("stop", "start", "look")
    ]


@pytest.mark.slow
def test_a_format_is_over_when_the_directory_shows_the_cluster(hosts: Bench) -> None:
    """By meta.properties, not by what was said."""

    def formats(waiting: Instruction) -> None:
        text = (waiting.folder / "commands.txt").read_text()
        assert f"--cluster-id={CLUSTER_ID}" in text.splitlines()[0]
        meta = hosts.root / "meta"
        meta.mkdir(exist_ok=True)
        wrong = hosts.waits < 3
        cluster = "AAAAAAAAAAAAAAAAAAAAAA" if wrong else CLUSTER_ID
        (meta / "meta.properties").write_text(f"version=1\nnode.id=3000\ncluster.id={cluster}\n")
        copy = hosts.root / "host" / waiting.folder.name
        subprocess.run(["cp", "-rT", str(waiting.folder), str(copy)], check=True)
        again(hosts, waiting)

    hosts.act = formats
    hosts.services.format_storage(CONTROLLER, CLUSTER_ID, "3.9-IV0")
    assert hosts.waits == 3


def stopped(hosts: Bench) -> None:
    """As it was asked for, and seen."""
    hosts.network.listening.clear()
    hosts.services.stop(BROKER, 330)


@pytest.mark.slow
def test_a_process_that_is_seen_behind_a_stop_is_no_stopped_node(hosts: Bench) -> None:
    """Somebody started it, and it does not listen yet: a second one must not be started beside it."""
    stopped(hosts)
    (last,) = hosts.desk.all()
    with like_kafka(hosts.config) as process:
        again(hosts, last)
        found = hosts.services.state(BROKER)
        assert isinstance(found, Unknown)
        assert f"the collector saw process {process.pid}" in found.reason
        with pytest.raises(ProcessNotStarted):
            hosts.services.start(BROKER)
    assert len(hosts.desk.all()) == 1


@pytest.mark.slow
def test_a_started_process_that_is_gone_again_is_stopped_not_starting(hosts: Bench) -> None:
    """The collector looked once more, within the minutes in which a start may take."""
    stopped(hosts)

    def starts(waiting: Instruction) -> None:
        once(hosts, waiting)
        hosts.network.listening[0] = ANSWERS

    with like_kafka(hosts.config) as process:
        hosts.act = starts
        hosts.services.start(BROKER)
        process.kill()
        process.wait()
    hosts.network.listening.clear()
    again(hosts, hosts.desk.all()[-1])
    assert hosts.services.state(BROKER) == Stopped()


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["could-not", ""])
def test_a_start_that_was_refused_or_is_open_leaves_no_earlier_stop_standing(hosts: Bench, closed: str) -> None:
    """Half of it may have been done: whether the node is down is told by the next answer, not by the stop of before."""
    stopped(hosts)

    def refuse(waiting: Instruction) -> None:
        if not closed:
            raise KeyboardInterrupt
        waiting.refuse("the unit is masked")

    hosts.act = refuse
    with pytest.raises((PersonCouldNot, KeyboardInterrupt)):
        hosts.services.start(BROKER)
    assert hosts.desk.last_turn(BROKER) == ""
    assert isinstance(hosts.services.state(BROKER), Unknown)


@pytest.mark.slow
def test_what_is_seen_of_processes_is_said_in_words_of_its_own(hosts: Bench) -> None:
    """None, several, and one with words behind its file are three things."""
    hosts.look()
    answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    proof = Proof("process", hosts.config)
    one = KafkaProcess(7, 1.0, 0)
    assert check_proof(replace(answer, processes=()), proof) == "no process runs with that file"
    assert check_proof(replace(answer, processes=(one, one)), proof) == "2 processes run with that file"
    assert check_proof(replace(answer, processes=(replace(one, more=2),)), proof).startswith(
        "process 7 has words behind"
    )
    assert check_proof(replace(answer, processes=(one,)), proof) == ""
    assert "as Kafka's own user" in check_proof(replace(answer, processes=None), proof)
