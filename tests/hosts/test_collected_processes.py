"""The collector finds a node's process however its file was named, or says that it cannot tell."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from migrate.hosts import collect_disks
from migrate.hosts.manual.probe import REFUSES
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from tests.testing.person import Bench, bench, like_kafka

BROKER = NodeId(0)
PYTHON = Path("/usr/bin/python3")  # one that every user may run


@pytest.fixture
def hosts(tmp_path: Path) -> Bench:
    """A broker's and a controller's host."""
    return bench(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("named", ["from its folder", "by a link"])
def test_a_process_is_found_however_its_file_is_named(hosts: Bench, named: str) -> None:
    """As kafka-server-start.sh was given it: a process that is not found would count as stopped."""
    file = Path(hosts.config)
    link = hosts.root / "server.properties"
    link.symlink_to(file)
    word, folder = (file.name, file.parent) if named == "from its folder" else (str(link), None)
    with like_kafka(word, "--override", "broker.rack=r1", folder=folder) as process:
        hosts.look()
        answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    assert [(one.pid, one.more) for one in answer.processes or ()] == [(process.pid, 2)]


def test_another_nodes_process_is_not_this_ones(hosts: Bench) -> None:
    """A file of the same name elsewhere, or named behind another word."""
    elsewhere = hosts.root / "other"
    elsewhere.mkdir()
    with like_kafka(Path(hosts.config).name, folder=elsewhere), like_kafka("/etc/x.properties", hosts.config):
        hosts.look()
        answer = hosts.desk.answer(BROKER)
    assert not isinstance(answer, Unknown)
    assert answer.processes == ()


@pytest.mark.skipif(os.geteuid() != 0 or not PYTHON.exists(), reason="other users need root and a python3 of theirs")
def test_who_cannot_see_processes_does_not_say_that_there_is_none(hosts: Bench) -> None:
    """Another user's process, started with a relative name: from which folder, only that user sees."""
    source = Path(collect_disks.__file__).read_text()
    words = [str(PYTHON), "-", "--process", hosts.config, "--node", "0", "/"]
    with like_kafka("server.properties", folder=Path("/"), user=1):
        ran = subprocess.run(words, input=source, capture_output=True, text=True, check=True, user=2, cwd="/")
    assert json.loads(ran.stdout)["body"]["told"]["processes"] is None
    (hosts.root / "inbox/answer-0.json").write_text(ran.stdout)
    hosts.network.listening[0] = REFUSES
    state = hosts.services.state(BROKER)
    assert isinstance(state, Unknown)
    assert "nobody told that its process is gone" in state.reason
