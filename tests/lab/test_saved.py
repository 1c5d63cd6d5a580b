"""Stopped labs in archives (the whole way with a real cluster: test_cluster)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrate.errors import LabFolderNotOurs, LabMissing, LabRuns
from migrate.hosts.process_spec import ProcessSpec, write_spec
from migrate.hosts.supervisor import Supervisor
from migrate.lab import saved
from migrate.lab.inventory import make_secrets, write_inventory
from migrate.lab.saved import relocated
from migrate.lab.topology import Topology, load_topology, plan_topology, save_topology
from migrate.playbook.load import load_inventory


@pytest.fixture
def lab(tmp_path: Path) -> Topology:
    """A lab's files without processes."""
    topology = plan_topology(tmp_path / "lab")
    for name in ("conf", "data", "processes", "runs"):
        topology.folder(name).mkdir(parents=True)
    save_topology(topology)
    make_secrets(topology)
    write_inventory(topology)
    topology.folder("data", "log").write_text("stage one")
    topology.folder("runs", "journal").write_text("one")
    topology.config("zookeeper").write_text(f"clientPort={topology.zookeeper_port}\n")
    first = topology.brokers[0]
    topology.config("broker-0").write_text(
        f"listeners=INTERNAL://127.0.0.1:{first.internal_port}\nlog.dirs={','.join(first.log_dirs)}\n"
    )
    return topology


def test_a_restored_lab_is_as_it_was_saved(lab: Topology) -> None:
    """What came later is gone; the archive can be used again."""
    archive = saved.save(lab, "hybrid")
    assert archive.stat().st_mode & 0o777 == 0o600
    lab.folder("data", "log").write_text("stage two")
    lab.folder("data", "later").write_text("x")
    lab.folder("seeded.json").write_text("{}")
    saved.restore(lab, "hybrid")
    saved.restore(lab, "hybrid")
    assert lab.folder("data", "log").read_text() == "stage one"
    assert not lab.folder("data", "later").exists()
    assert not lab.folder("seeded.json").exists()
    assert lab.folder("runs", "journal").read_text() == "one"


def test_a_lab_restored_elsewhere_names_its_own_folder_and_ports(lab: Topology, tmp_path: Path) -> None:
    """Both may then run at once; plans and journals, which name the old paths, stay behind."""
    archive = saved.save(lab, "hybrid")
    other = saved.restore_elsewhere(archive, tmp_path / "other")
    assert load_topology(tmp_path / "other") == other
    assert not set(other.ports()) & set(lab.ports())
    text = "".join(path.read_text() for path in other.folder("conf").iterdir())
    assert lab.directory not in text
    assert str(other.brokers[0].internal_port) in text
    assert f"clientPort={other.zookeeper_port}" in text
    assert load_inventory(other.inventory).brokers[0].address.endswith(str(other.brokers[0].client_port))
    assert not other.folder("runs").exists()
    assert other.folder("data", "log").read_text() == "stage one"


def test_a_running_lab_is_neither_saved_nor_restored(lab: Topology) -> None:
    """Files under a living broker are no state of a cluster."""
    saved.save(lab, "before")
    supervisor = Supervisor(lab.processes)
    spec = ProcessSpec(
        name="broker-0",
        node=0,
        argv=(sys.executable, "-S", "-c", "import signal; signal.sigwait({signal.SIGTERM})"),
        directory=lab.directory,
        log=str(lab.folder("x.log")),
        output=str(lab.folder("x.out")),
        config=str(lab.config("broker-0")),
    )
    write_spec(lab.processes, spec)
    supervisor.start("broker-0")
    try:
        with pytest.raises(LabRuns, match="the lab runs") as caught:
            saved.save(lab, "now")
        assert caught.value.why == "broker-0"
        with pytest.raises(LabRuns):
            saved.restore(lab, "before")
    finally:
        supervisor.stop("broker-0", 20)


def test_what_was_never_saved_is_told(lab: Topology) -> None:
    """With the archive's path; the lab stays as it is."""
    with pytest.raises(LabMissing) as caught:
        saved.restore(lab, "finalized")
    assert caught.value.where.endswith("saved/finalized.tar")
    assert lab.folder("data", "log").exists()


def test_a_folder_in_use_takes_no_lab(lab: Topology, tmp_path: Path) -> None:
    """As with `lab up`."""
    archive = saved.save(lab, "hybrid")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    with pytest.raises(LabFolderNotOurs):
        saved.restore_elsewhere(archive, tmp_path / "full")


@pytest.mark.parametrize("stage", ["", "../x", "a/b", "A"])
def test_a_stages_name_is_a_plain_word(lab: Topology, stage: str) -> None:
    """It becomes a file's name."""
    with pytest.raises(ValueError, match="no name"):
        saved.save(lab, stage)


def test_only_the_labs_own_ports_and_folder_are_changed() -> None:
    """A number that looks like a port stays."""
    text = "clientPort=100\nvoters=3000@127.0.0.1:200,3001@127.0.0.1:300\nsize=100\nlog.dirs=/old/d0,/older/d1\n"
    assert relocated(text, "/old", "/new", {100: 101, 200: 201}) == (
        "clientPort=101\nvoters=3000@127.0.0.1:201,3001@127.0.0.1:300\nsize=100\nlog.dirs=/new/d0,/older/d1\n"
    )
