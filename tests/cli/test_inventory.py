"""`inventory init`: a file from a running ZooKeeper, never over another, readable by nobody else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import dead_port, kraft_migrate
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import load_tree, running_server

ANSIBLE = Path(__file__).parents[1] / "data" / "ansible"
NOWHERE = ("inventory", "init", "--zookeeper", "127.0.0.1:1")


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server with a captured cluster below a chroot."""
    with running_server(tmp_path_factory.mktemp("zookeeper")) as server:
        with server.client() as root:
            root.kazoo.ensure_path("/some/where")
        with server.client("/some/where") as client:
            load_tree(client, golden("zk-before"))
            yield f"{server.address}/some/where"


@pytest.mark.zookeeper
def test_a_running_cluster_gives_a_file_with_its_gaps(connect: str, tmp_path: Path) -> None:
    """To stdout or to a file of mode 0600; a second time is refused."""
    path = tmp_path / "inventory.yaml"
    shown = kraft_migrate("inventory", "init", "--zookeeper", connect)
    assert shown.code == 0
    assert f'zookeeper: "{connect}"' in shown.out
    written = kraft_migrate("inventory", "init", "--zookeeper", connect, "--output", path)
    assert written.code == 0
    assert path.read_text() == shown.out
    assert path.stat().st_mode & 0o777 == 0o600
    again = kraft_migrate("inventory", "init", "--zookeeper", connect, "--output", path)
    assert again.code == 64
    refused = kraft_migrate("assess", "--inventory", path)
    assert refused.code == 1
    assert "is not filled in" in refused.err


def test_a_dead_port_is_told(tmp_path: Path) -> None:
    """Nothing is written."""
    path = tmp_path / "inventory.yaml"
    answer = kraft_migrate("inventory", "init", "--zookeeper", f"127.0.0.1:{dead_port()}", "--output", path)
    assert answer.code == 1
    assert not path.exists()


@pytest.mark.zookeeper
def test_hosts_of_ansible_are_filled_in_and_the_rest_is_told(connect: str, tmp_path: Path) -> None:
    """Broker 2 of this cluster has no host there, web-1 is no broker; both stand in the file and in the answer."""
    hosts = {f"k{number}": {"broker_id": number, "kafka_unit": "kafka"} for number in (0, 1)}
    listing = tmp_path / "hosts.json"
    listing.write_text(json.dumps({"_meta": {"hostvars": hosts}, "web": {"hosts": ["web-1"]}}))
    path = tmp_path / "inventory.yaml"
    answer = kraft_migrate(
        "inventory", "init", "--zookeeper", connect, "--executor", "ssh", "--from-ansible", listing, "--out", path
    )
    assert answer.code == 0
    for note in ("broker 2 has no host", "hosts that match no broker: web-1"):
        assert f"Ansible: {note}" in answer.out
        assert f"# Ansible: {note}" in path.read_text()
    assert 'host: "k0"' in path.read_text()
    assert 'unit: "kafka.service"' in path.read_text()
    assert "its host; Ansible has no host for broker 2" in path.read_text()


def test_a_group_alone_is_refused() -> None:
    """It is one of an Ansible inventory."""
    answer = kraft_migrate(*NOWHERE, "--ansible-group", "kafka")
    assert answer.code == 64
    assert "--from-ansible" in answer.err


@pytest.mark.parametrize("content", [None, "", '{"all": {"hosts": {"kafka-1": {}}}}', "{\x1b[31m"])
def test_what_is_no_listing_is_told_before_a_connection(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file, an empty one without Ansible here, a static inventory in JSON, and no JSON."""
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "hosts.json"
    if content is not None:
        path.write_text(content)
    answer = kraft_migrate(*NOWHERE, "--from-ansible", path)
    assert answer.code == 1
    assert "E-ANS-01" in answer.err
    assert "ansible-inventory -i INVENTORY --list > hosts.json" in answer.err
    assert "\x1b" not in answer.err


def _fake_ansible(folder: Path, script: str) -> None:
    program = folder / "ansible-inventory"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_another_inventory_is_given_to_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its whole path, as one word; then ZooKeeper is asked."""
    said = tmp_path / "said"
    _fake_ansible(tmp_path, f'printf "%s\\n" "$@" > {said}; cat {ANSIBLE}/hosts.json')
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(shutil.which('cat') or '').parent}")
    path = tmp_path / "-my hosts.ini"
    path.write_text("[kafka]\nkafka-1 broker_id=1\n")
    answer = kraft_migrate("inventory", "init", "--zookeeper", f"127.0.0.1:{dead_port()}", "--from-ansible", path)
    assert answer.code == 1
    assert "E-ANS" not in answer.err
    assert said.read_text().splitlines() == ["-i", str(path), "--list"]


def test_what_ansible_complains_of_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last words, without what a terminal would obey."""
    _fake_ansible(tmp_path, 'printf "no vault secrets \\033[31mfound" >&2; exit 4')
    monkeypatch.setenv("PATH", f"{tmp_path}")
    path = tmp_path / "hosts.yml"
    path.write_text("all: {}\n")
    answer = kraft_migrate(*NOWHERE, "--from-ansible", path)
    assert answer.code == 1
    assert "ended with code 4" in answer.err
    assert "no vault secrets ?[31mfound" in answer.err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ansible-inventory") is None, reason="ansible-core is not installed")
def test_the_real_ansible_reads_a_file_of_its_own() -> None:
    """A YAML inventory with groups and variables; the connection is what fails."""
    port = dead_port()
    words = ("inventory", "init", "--zookeeper", f"127.0.0.1:{port}", "--from-ansible", ANSIBLE / "hosts.yml")
    answer = kraft_migrate(*words, "--ansible-group", "kafka_broker")
    assert answer.code == 1
    assert "E-ANS" not in answer.err
    unknown = kraft_migrate(*words, "--ansible-group", "kafka_brokers")
    assert "its groups: all, kafka_broker, staging, web" in unknown.err
