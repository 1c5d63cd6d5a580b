"""Disks of a lab, broken in each way and mended: nothing of them is lost, and what the reader of disks says of each."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import LabRefused
from migrate.lab.cluster import Lab
from migrate.lab.supervisor import ProcessSpec, Supervisor, write_spec
from migrate.lab.topology import Shape, plan_topology, save_topology
from migrate.model.ids import NodeId
from migrate.model.views import BrokerDisks, Directory, MetaBroken, MetaMissing, MetaProperties, Running
from tests.lab import faults
from tests.lab.faults import DiskFault
from tests.lab.links import LINKS, LinkRule, read_rules
from tests.testing.clusters import CLUSTER_ID, uuid
from tests.testing.memory_disks import MountRefused, is_mounted, mount_memory, remount_read_only, unmount
from tests.testing.sick_disks import broken_disks
from tests.testing.this_host import disks_here

OLD = uuid(7)
META = f"broker.id=0\ncluster.id={CLUSTER_ID}\ndirectory.id={OLD}\nversion=0\n"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab's folders with one replica on each disk, and processes that only wait."""
    topology = plan_topology(tmp_path / "lab", Shape(brokers=2, directories=2, controllers=1))
    for broker in topology.brokers:
        for path in map(Path, broker.log_dirs):
            (path / "orders-0").mkdir(parents=True)
            (path / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid(1)}\n")
            (path / "meta.properties").write_text(META)
    for name in ("conf", "processes", "logs"):
        topology.folder(name).mkdir(parents=True)
    save_topology(topology)
    for name, node in (("broker-0", 0), ("controller-3000", 3000), (LINKS, None)):
        log = str(topology.log(name))
        argv = ("/bin/sleep", "600")
        write_spec(
            topology.processes, ProcessSpec(name, node, argv, topology.directory, log, log, str(topology.config(name)))
        )
    return Lab(topology, Supervisor(topology.processes))


def seen(lab: Lab, disk: int = 1) -> Directory:
    """What our own reader says of a disk of broker 0."""
    found = disks_here().look(NodeId(0), [str(faults.disk_of(lab, 0, disk))], None)
    assert isinstance(found, BrokerDisks)
    return replace(found.directories[0], free_bytes=-1)  # others write to this host's disk too


FAULTS = [
    pytest.param(fault, marks=needs_root if fault in (DiskFault.READ_ONLY, DiskFault.FULL) else ())
    for fault in DiskFault
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mended_disk_is_what_it_was(lab: Lab, fault: DiskFault) -> None:
    """Files, and our reader's verdict; the other disks were never touched."""
    before, other = seen(lab), seen(lab, 0)
    assert before.healthy
    folder = faults.break_disk(lab, 0, 1, fault)
    assert broken_disks(lab) == (folder,)
    assert seen(lab) != before
    assert seen(lab, 0) == other
    assert faults.repair_disk(lab, 0, 1) == folder
    assert broken_disks(lab) == ()
    after = seen(lab)
    assert (after.healthy, after.meta, after.replicas) == (True, before.meta, before.replicas)
    assert (folder / "orders-0" / "partition.metadata").exists()
    assert not is_mounted(folder)


def test_a_disk_that_is_gone_can_neither_be_read_nor_written(lab: Lab) -> None:
    """A file in its place: no right, not even root's, opens a path below it."""
    folder = faults.break_disk(lab, 0, 1, DiskFault.GONE)
    with pytest.raises(NotADirectoryError):
        (folder / "replication-offset-checkpoint.tmp").write_text("0")
    assert seen(lab).problem


def test_an_emptied_disk_is_healthy_and_has_no_id(lab: Lab) -> None:
    """That is what makes it dangerous."""
    faults.break_disk(lab, 0, 1, DiskFault.EMPTIED)
    found = seen(lab)
    assert found.healthy
    assert (found.meta, len(found.replicas)) == (MetaMissing(), 0)


def test_a_replaced_disk_is_formatted_for_the_same_broker_with_another_id(lab: Lab) -> None:
    """As `kafka-storage format` does: version 1."""
    faults.break_disk(lab, 0, 1, DiskFault.REPLACED)
    meta = seen(lab).meta
    assert isinstance(meta, MetaProperties)
    assert (meta.version, meta.cluster_id, meta.node_id) == (1, CLUSTER_ID, 0)
    assert meta.directory_id not in (None, OLD)
    assert meta.directory_id is not None
    assert not meta.directory_id.reserved


def test_an_unreadable_disk_has_everything_but_a_readable_identity(lab: Lab) -> None:
    """Kafka counts such a directory as failed at its start."""
    faults.break_disk(lab, 0, 1, DiskFault.UNREADABLE)
    found = seen(lab)
    assert isinstance(found.meta, MetaBroken) or found.problem
    assert (faults.disk_of(lab, 0, 1) / "orders-0").is_dir()


@needs_root
@pytest.mark.parametrize("fault", [DiskFault.READ_ONLY, DiskFault.FULL])
def test_nothing_can_be_written_to_a_read_only_or_full_disk_and_everything_read(lab: Lab, fault: DiskFault) -> None:
    """Root cannot either."""
    folder = faults.break_disk(lab, 0, 1, fault)
    try:
        with pytest.raises(OSError, match=r"Read-only|No space"):
            (folder / "new").write_bytes(bytes(8192))
        assert (folder / "meta.properties").read_text() == META
        assert seen(lab).problem
    finally:
        faults.repair_disk(lab, 0, 1)


@needs_root
def test_a_read_only_file_system_can_be_made_writable_again(tmp_path: Path) -> None:
    """As after a host's check of its disk."""
    mount_memory(tmp_path, size_bytes=1 << 20)
    try:
        remount_read_only(tmp_path)
        with pytest.raises(OSError, match="Read-only"):
            (tmp_path / "file").write_text("x")
        remount_read_only(tmp_path, read_only=False)
        (tmp_path / "file").write_text("x")
    finally:
        unmount(tmp_path)
    assert not is_mounted(tmp_path)


def test_what_cannot_be_mounted_leaves_the_disk_whole(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to mount, say."""
    monkeypatch.setenv("PATH", "/nowhere")
    before = seen(lab)
    with pytest.raises(MountRefused):
        faults.break_disk(lab, 0, 1, DiskFault.FULL)
    assert seen(lab).meta == before.meta
    assert broken_disks(lab) == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_new_disk_is_empty_and_the_old_one_waits_for_nobody(lab: Lab, fault: DiskFault) -> None:
    """Nothing of it is deleted before the next one goes the same way; the disk counts as whole."""
    folder = faults.break_disk(lab, 0, 1, fault)
    assert faults.new_disk(lab, 0, 1) == folder
    assert list(folder.iterdir()) == []
    assert not is_mounted(folder)
    assert (folder.with_name("disk1.old") / "meta.properties").read_text() == META
    assert broken_disks(lab) == ()
    (folder / "meta.properties").write_text(META)
    faults.break_disk(lab, 0, 1, fault)
    faults.new_disk(lab, 0, 1)
    assert [path.name for path in folder.with_name("disk1.old").iterdir()] == ["meta.properties"]


def test_a_whole_disk_is_not_replaced(lab: Lab) -> None:
    """Its content would be gone with a slip of the finger."""
    with pytest.raises(LabRefused, match="not broken"):
        faults.new_disk(lab, 0, 1)
    assert seen(lab).healthy


def test_what_is_broken_is_not_broken_twice_and_what_is_whole_is_not_mended(lab: Lab) -> None:
    """The second would lose the first one's folder."""
    faults.break_disk(lab, 0, 1, DiskFault.GONE)
    with pytest.raises(LabRefused, match="broken already"):
        faults.break_disk(lab, 0, 1, DiskFault.EMPTIED)
    with pytest.raises(LabRefused, match="not broken"):
        faults.repair_disk(lab, 0, 0)
    assert faults.set_aside(faults.disk_of(lab, 0, 1)).is_dir()


@pytest.mark.parametrize(("broker", "disk"), [(9, 0), (0, 2), (0, -1)])
def test_what_does_not_exist_is_not_broken(lab: Lab, broker: int, disk: int) -> None:
    """Named with what there is."""
    with pytest.raises(LabRefused):
        faults.break_disk(lab, broker, disk, DiskFault.GONE)


def test_processes_are_killed_and_started_again(lab: Lab) -> None:
    """A broker and a controller by their ids."""
    for name in (faults.broker_name(lab, 0), faults.controller_name(lab, 3000)):
        with pytest.raises(LabRefused, match="does not run"):
            faults.break_process(lab, name)
        faults.repair_process(lab, name)
        assert isinstance(lab.supervisor.state(name), Running)
        with pytest.raises(LabRefused, match="runs"):
            faults.repair_process(lab, name)
        faults.break_process(lab, name)
        assert not isinstance(lab.supervisor.state(name), Running)
    with pytest.raises(LabRefused, match="no controller 7"):
        faults.controller_name(lab, 7)


def test_a_link_is_cut_or_holds_back_by_key(lab: Lab) -> None:
    """One rule a broker; mended, none."""
    faults.break_link(lab, 0)
    faults.break_link(lab, 1, frozenset({73}))
    assert read_rules(lab.topology) == {0: LinkRule(cut=True), 1: LinkRule(hold=frozenset({73}))}
    faults.repair_link(lab, 0)
    assert read_rules(lab.topology) == {1: LinkRule(hold=frozenset({73}))}


def test_a_lab_without_a_proxy_is_refused(tmp_path: Path) -> None:
    """A rule that nobody follows would look like a link that is cut."""
    topology = plan_topology(tmp_path / "lab", Shape(brokers=1, controllers=1))
    with pytest.raises(LabRefused, match="no proxy"):
        faults.break_link(Lab(topology, Supervisor(topology.processes)), 0)
