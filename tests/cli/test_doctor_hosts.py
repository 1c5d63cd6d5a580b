"""`doctor --hosts` through the real SSH client: what is missing is told once, with what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate import checks
from migrate.cli.assessing import PLANNED_ON
from migrate.lab.supervisor import ProcessSpec, write_spec
from migrate.model.findings import Finding, Severity
from migrate.model.launch import OF_UNITS
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import Need
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.inventory import dump_inventory
from migrate.playbook.load import load_inventory
from tests.cli.commands import kraft_migrate as run
from tests.testing import worlds
from tests.testing.host_program import installed
from tests.testing.ssh_server import SshServer, ssh_server

needs_ssh = pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")
HOST = "kafka-1"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    """A host with the units of the plain inventory."""
    with ssh_server(tmp_path / "ssh") as (found, _connections):
        (tmp_path / "state").mkdir()
        yield found


def inventory(folder: Path, server: SshServer) -> Path:
    """All nodes on that host; each with a file and a unit."""
    plain = worlds.inventory()
    names = {node.id: f"node-{int(node.id)}" for node in plain.nodes}
    for node, name in names.items():
        (folder / f"{name}.properties").write_text("a=1\n")
        place = str(folder / name)
        spec = ProcessSpec(name, int(node), ("true",), str(folder), place, place, f"{place}.properties")
        write_spec(folder / "state", spec)
    here = replace(
        plain,
        path=str(folder / "inventory.yaml"),
        executor="ssh",
        executor_options={
            "kafka_home": str(folder),
            "ssh_config": str(server.config),
            "sudo": "no",
            "host_program": f"{folder}/program/host",
        },
        brokers=tuple(
            replace(node, host=HOST, unit=f"{names[node.id]}.service", config=f"{folder}/{names[node.id]}.properties")
            for node in plain.brokers
        ),
        controllers=tuple(
            replace(
                node,
                host=HOST,
                unit=f"{names[node.id]}.service",
                config=f"{folder}/{names[node.id]}.properties",
                metadata_directory=f"{folder}/{names[node.id]}-metadata",
            )
            for node in plain.controllers
        ),
    )
    installed(folder / "program", here.brokers, here.controllers, state=folder / "state", kafka_home=folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "kafka-storage.sh").touch(mode=0o755)
    path = folder / "inventory.yaml"
    path.write_text(dump_inventory(here))
    return path


@pytest.mark.slow
@needs_ssh
def test_a_host_that_has_all_is_good_and_one_that_is_down_is_named(tmp_path: Path, server: SshServer) -> None:
    """Asked through the operator's own configuration."""
    path = inventory(tmp_path, server)
    answer = json.loads(run("doctor", "--inventory", str(path), "--hosts", "--output", "json").out)
    nodes = {item["name"]: item for item in answer["items"] if item["name"].startswith("node ")}
    assert len(nodes) == len(worlds.inventory().nodes)
    assert all(item["health"] == "ok" for item in nodes.values()), nodes
    server.stop()
    text = run("doctor", "--inventory", str(path), "--hosts")
    assert text.code == 1
    assert "E-HOST-22" in text.out
    assert "missing: " in text.out


@pytest.mark.slow
@needs_ssh
def test_doctor_says_what_assess_says_of_a_host_and_a_run_would_be_stopped_by(
    tmp_path: Path, server: SshServer
) -> None:
    """One function decides, of a unit that is not there as of tools that are not where the inventory says."""
    path = inventory(tmp_path, server)
    (tmp_path / "state" / "node-1.process.json").unlink()
    (tmp_path / "bin" / "kafka-storage.sh").unlink()
    found = [entry for entry in seen(path, Need.UNITS) if entry.code in OF_UNITS and entry.severity is Severity.BLOCKER]
    assert {entry.code for entry in found} == {"B-OPS-09", "B-OPS-12"}
    told = run("doctor", "--inventory", str(path), "--hosts")
    assert told.code == 1
    text = " ".join(told.out.split())
    assert "node-1.service: systemd says" in " ".join(entry.message for entry in found)
    assert "systemd says that this unit is not-found" in text
    assert text.count("kafka-storage.sh is not there for user") == len(worlds.inventory().controllers)


@pytest.mark.slow
@needs_ssh
def test_a_host_without_the_program_is_told_with_what_installs_it(tmp_path: Path, server: SshServer) -> None:
    """By `doctor --hosts` and by a plan's findings: once a node, and no file is blamed."""
    path = inventory(tmp_path, server)
    (tmp_path / "program" / "host").unlink()
    text = run("doctor", "--inventory", str(path), "--hosts")
    assert text.code == 1
    assert text.out.count("E-HOST-28") == len(worlds.inventory().nodes)
    assert f"kraft-migrate doctor --inventory FILE --host-setup {HOST}" in text.out
    told = rights_told(path)
    assert len(told) == len(worlds.inventory().nodes)
    assert all("E-HOST-28" in entry.message for entry in told)


@pytest.mark.slow
@needs_ssh
def test_what_assess_and_plan_look_at_says_what_is_refused_and_what_was_not_tried(
    tmp_path: Path, server: SshServer
) -> None:
    """Through the same client: a program of another inventory, then a host that is down."""
    path = inventory(tmp_path, server)
    assert Need.HOST_RIGHTS in PLANNED_ON
    assert rights_told(path) == []
    path.write_text(path.read_text().replace("unit: node-1.service", "unit: another.service"))
    other = rights_told(path)
    assert {"are not those of this one" in entry.message for entry in other} == {True}
    assert all("doctor --inventory FILE --host-setup kafka-1" in entry.fix for entry in other)
    server.stop()
    unseen = rights_told(path)
    assert {entry.severity for entry in unseen} == {Severity.BLIND_SPOT}
    assert len(unseen) == len(worlds.inventory().nodes)
    assert all("E-HOST-22" in entry.evidence for entry in unseen)


def rights_told(path: Path) -> list[Finding]:
    """What is said of the rights on the hosts."""
    return [entry for entry in seen(path, Need.HOST_RIGHTS) if entry.code == "W-OPS-05"]


def seen(path: Path, need: Need) -> list[Finding]:
    """What a look at one part finds."""
    observer = ClusterObserver(Sources(load_inventory(path), Unknown("none"), None))
    try:
        world = observer.observe(frozenset({need}), {})
    finally:
        observer.close()
    return list(checks.run(world, target=Stage.PREPARE))


@pytest.mark.slow
def test_hosts_without_an_inventory_is_a_usage_error() -> None:
    """Told which option is missing."""
    found = run("doctor", "--hosts")
    assert found.code == 64
    assert "--inventory" in found.err
