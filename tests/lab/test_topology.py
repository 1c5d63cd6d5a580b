"""A lab's layout: ports, folders, and whose folder it is."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from migrate.errors import LabFolderNotOurs, LabMissing
from migrate.lab.topology import (
    EPHEMERAL,
    HOST,
    Shape,
    claim,
    free_ports,
    is_free,
    load_topology,
    plan_topology,
    save_topology,
)


def test_the_default_lab_has_three_of_everything(tmp_path: Path) -> None:
    """Brokers 0 to 2 with three disks each, controllers 3000 to 3002, a chroot."""
    topology = plan_topology(tmp_path)
    assert [broker.id for broker in topology.brokers] == [0, 1, 2]
    assert [controller.id for controller in topology.controllers] == [3000, 3001, 3002]
    assert {len(broker.log_dirs) for broker in topology.brokers} == {3}
    assert topology.zookeeper.endswith("/kafka")


def test_every_folder_lies_below_the_labs_own_and_none_is_shared(tmp_path: Path) -> None:
    """Deleting DIR deletes the lab, and nothing but the lab."""
    topology = plan_topology(tmp_path)
    folders = [path for broker in topology.brokers for path in broker.log_dirs]
    folders += [controller.metadata_directory for controller in topology.controllers]
    assert len(set(folders)) == len(folders)
    assert all(Path(path).is_relative_to(tmp_path.resolve()) for path in folders)
    for path in (topology.processes, topology.inventory, topology.config("broker-0"), topology.log("broker-0")):
        assert path.is_relative_to(tmp_path.resolve())


def test_each_port_has_one_owner(tmp_path: Path) -> None:
    """Two listeners a broker, one a controller, one of ZooKeeper."""
    ports = plan_topology(tmp_path, Shape(brokers=2, controllers=1)).ports()
    assert sorted(ports.values()) == ["broker-0", "broker-0", "broker-1", "broker-1", "controller-3000", "zookeeper"]


def test_a_lab_with_jmx_has_a_port_for_each_broker(tmp_path: Path) -> None:
    """And keeps it; one without has none, also as older files have it."""
    topology = plan_topology(tmp_path, Shape(jmx=True))
    ports = [broker.jmx_port for broker in topology.brokers]
    assert len(set(ports)) == 3
    assert set(ports) <= set(topology.ports())
    assert len(topology.ports()) == 1 + 3 * 3 + 3
    save_topology(topology)
    assert load_topology(tmp_path) == topology
    plain = plan_topology(tmp_path)
    assert {broker.jmx_port for broker in plain.brokers} == {0}
    assert 0 not in plain.ports()


def test_ports_are_free_and_outside_the_kernels_own_range() -> None:
    """A client's outgoing connection can never take a stopped broker's port."""
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)
    low, high = map(int, EPHEMERAL.read_text().split())
    assert not [port for port in ports if low <= port <= high]


def test_a_port_is_not_given_twice_while_nobody_listens_there_yet() -> None:
    """Two servers of one process, each asked for its ports before either is started."""
    given = [port for _ in range(2000) for port in free_ports(2)]
    assert len(set(given)) == len(given)


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    """That is what tells a taken port before a process is started."""
    with socket.create_server((HOST, 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_a_topology_survives_the_disk(tmp_path: Path) -> None:
    """Chosen once: the next run finds the same ports."""
    topology = plan_topology(tmp_path)
    save_topology(topology)
    assert load_topology(tmp_path) == topology


def test_a_folder_without_a_lab_is_told(tmp_path: Path) -> None:
    """With the command that makes one."""
    with pytest.raises(LabMissing) as caught:
        load_topology(tmp_path / "nothing")
    assert "lab up" in caught.value.next_step


def test_in_the_folder_of_a_lab_that_lab_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default name is looked for below it, and the lab would be left running."""
    save_topology(plan_topology(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabMissing) as caught:
        load_topology(Path("kraft-migrate-lab"))
    assert caught.value.next_step == f"{tmp_path} is a lab: --dir ."


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 3}', '{"format": 2}'])
def test_a_lab_file_that_is_not_ours_is_refused(tmp_path: Path, text: str) -> None:
    """It is never overwritten."""
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(LabFolderNotOurs):
        load_topology(tmp_path)
    assert (tmp_path / "lab.json").read_text() == text


def test_a_lab_that_was_moved_is_refused(tmp_path: Path) -> None:
    """Its files name absolute paths."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    save_topology(plan_topology(old))
    old.rename(new)
    with pytest.raises(LabFolderNotOurs, match="was made in"):
        load_topology(new)


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    """By name of what lies there; nothing is written."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(LabFolderNotOurs) as caught:
        claim(tmp_path)
    assert "thesis.tex" in caught.value.why
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_new_and_empty_folders_may_be_used(tmp_path: Path) -> None:
    """Also one in which a run was killed while it wrote its first file; to ask makes and removes nothing."""
    claim(tmp_path / "new")
    claim(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".lab.json.0123456789ab.new").write_text("{")
    claim(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lab.json.0123456789ab.new"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Said before anything is tried."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LabFolderNotOurs, match="no folder"):
        claim(tmp_path / "file")


@pytest.mark.parametrize("name", ["a,b", "a b", "größe", "a\\b", "a#b", "a%20b"])
def test_a_path_that_kafkas_files_cannot_carry_is_refused(tmp_path: Path, name: str) -> None:
    """log.dirs is split at commas; what would break later is told now."""
    with pytest.raises(LabFolderNotOurs, match="cannot carry"):
        claim(tmp_path / name)


def test_the_lab_file_is_readable_by_a_person(tmp_path: Path) -> None:
    """Indented JSON with names."""
    save_topology(plan_topology(tmp_path))
    text = (tmp_path / "lab.json").read_text()
    assert json.loads(text)["format"] == 3
    assert "\n " in text
