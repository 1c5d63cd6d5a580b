"""Stopped labs in archives (the whole way with a real cluster: test_cluster)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrate.errors import LabMissing, LabRuns
from migrate.hosts.supervisor import ProcessSpec, Supervisor, write_spec
from migrate.lab import cluster
from migrate.lab.configure import make_secrets, write_inventory
from migrate.lab.topology import Topology, plan_topology, save_topology


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
    archive = cluster.save_stage(lab, "hybrid")
    assert archive.stat().st_mode & 0o777 == 0o600
    lab.folder("data", "log").write_text("stage two")
    lab.folder("data", "later").write_text("x")
    lab.folder("seeded.json").write_text("{}")
    cluster.restore_stage(lab, "hybrid")
    cluster.restore_stage(lab, "hybrid")
    assert lab.folder("data", "log").read_text() == "stage one"
    assert not lab.folder("data", "later").exists()
    assert not lab.folder("seeded.json").exists()
    assert lab.folder("runs", "journal").read_text() == "one"


def test_a_running_lab_is_neither_saved_nor_restored(lab: Topology) -> None:
    """Files under a living broker are no state of a cluster."""
    cluster.save_stage(lab, "before")
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
            cluster.save_stage(lab, "now")
        assert caught.value.why == "broker-0"
        with pytest.raises(LabRuns):
            cluster.restore_stage(lab, "before")
    finally:
        supervisor.stop("broker-0", 20)


def test_what_was_never_saved_is_told(lab: Topology) -> None:
    """With the archive's path; the lab stays as it is."""
    with pytest.raises(LabMissing) as caught:
        cluster.restore_stage(lab, "finalized")
    assert caught.value.where.endswith("saved/finalized.tar")
    assert lab.folder("data", "log").exists()


@pytest.mark.parametrize("stage", ["", "../x", "a/b", "A"])
def test_a_stages_name_is_a_plain_word(lab: Topology, stage: str) -> None:
    """It becomes a file's name."""
    with pytest.raises(ValueError, match="no name"):
        cluster.save_stage(lab, stage)
