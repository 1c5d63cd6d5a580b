"""The host program answers for itself, and one of this release and inventory takes every command of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import HostProgramMissing, HostUnreachable
from migrate.hosts import leftovers
from migrate.hosts.about import rights_of
from migrate.hosts.commands import HostAccess, Words
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.executors import executor_of
from migrate.hosts.host_setup import configuration
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.remote_files import LOCK_SUFFIX, HostLock, RemoteFiles, RemoteMetadata
from migrate.hosts.runner import Completed, Holder
from migrate.hosts.systemd import Service, SystemdServices
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP
from migrate.model.rights import HostRights
from tests.testing import worlds
from tests.testing.host_program import here, installed
from tests.testing.run_commands import SAMPLE_CLUSTER, SAMPLE_HASH, SAMPLE_RELEASE, SAMPLE_TIME, commands_of, refusals


def on_hosts(folder: str = "/etc/kafka") -> Inventory:
    """The plain inventory with units on hosts."""
    found = worlds.inventory()
    return replace(
        found,
        executor="ssh",
        executor_options={"kafka_home": "/opt/kafka"},
        brokers=tuple(
            replace(node, unit=f"node-{node.id}.service", config=f"{folder}/{node.id}.properties")
            for node in found.brokers
        ),
        controllers=tuple(
            replace(
                node,
                unit=f"node-{node.id}.service",
                config=f"{folder}/{node.id}.properties",
                metadata_directory=f"{folder}/{node.id}-metadata",
            )
            for node in found.controllers
        ),
    )


def on_one_host(folder: Path) -> tuple[Inventory, HostAccess]:
    """All nodes on this host, and how its program is called."""
    spread = on_hosts(str(folder))
    inventory = replace(
        spread,
        brokers=tuple(replace(node, host="kafka-1") for node in spread.brokers),
        controllers=tuple(replace(node, host="kafka-1") for node in spread.controllers),
    )
    access = installed(folder / "program", inventory.brokers, inventory.controllers)
    return inventory, access


def of(inventory: Inventory, *directories: str) -> set[Words]:
    """Every command of every node."""
    return {words for node in inventory.nodes for words in commands_of(inventory, node, directories)}


class Recording:
    """Remembers what is given to the program, as a need would name it: no run writes the same content."""

    host = "kafka-1"

    def __init__(self, program: Holder) -> None:
        self.program = program
        self.ran: list[Words] = []

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Remembered, then run."""
        self.ran.append(nameless(tuple(words)))
        return self.program.run(words, stdin=stdin, seconds=seconds)


def nameless(words: Words) -> Words:
    """Without the sum of a content."""
    return words[: {"write": 3, "keep": 4}.get(words[0], len(words))]


@pytest.mark.slow
def test_every_command_of_a_files_life_is_asked_for(tmp_path: Path) -> None:
    """Reading, writing anew and over, copies beside, setting aside, of a configuration and of a disk's identity."""
    inventory, access = on_one_host(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    node, recording = inventory.brokers[0], Recording(here(access))
    files = RemoteFiles({node.id: recording})
    for path in (node.config, f"{disk}/meta.properties"):
        files.write(node.id, path, b"a=1\n")
        files.write(node.id, path, b"a=2\n")
        assert files.exists(node.id, path)
        for copy in (f"{path}{BACKUP_SUFFIX}", f"{path}{BACKUP_SUFFIX}-{SAMPLE_HASH}"):
            files.keep(node.id, {path: (copy, b"a=2\n")})
            assert files.read_all(node.id, [path, copy]) == {path: b"a=2\n", copy: b"a=2\n"}
        files.rename(node.id, path, f"{path}{ASIDE_SUFFIX}-{SAMPLE_TIME}")
    files.names(node.id, str(tmp_path))
    files.names(node.id, str(disk))
    disks = CollectorDisks({node.id: recording})
    disks.look(node.id, [str(disk)], None)
    disks.told(node.id, [str(disk)])
    assert len(set(recording.ran)) > 15
    assert set(recording.ran) <= {nameless(words) for words in of(inventory, str(disk))}


@pytest.mark.slow
def test_every_command_of_a_unit_and_of_a_controllers_metadata_is_asked_for(tmp_path: Path) -> None:
    """Each is first given when a node is down or no controller leads."""
    inventory, access = on_one_host(tmp_path)
    node, recording = inventory.controllers[0], Recording(here(access))
    Path(node.config).write_text("node.id=3000\n")
    files = RemoteFiles({node.id: recording})
    services = SystemdServices(
        {node.id: Service(node.id, node.unit, node.config, recording, files)},
        None,  # type: ignore[arg-type]
    )
    services.unit(node.id)
    for lines in (LOG_LINES, LOG_LINES_DEEP):
        services.last_words(node.id, lines)
    files.make_directory(node.id, node.metadata_directory)
    metadata = RemoteMetadata({node.id: recording})
    places = {node.id: node.metadata_directory}
    metadata.state(places)
    (Path(node.metadata_directory) / "__cluster_metadata-0").mkdir()
    (Path(node.metadata_directory) / "meta.properties").touch()
    with metadata.folders(places) as found:
        assert list(found[node.id].iterdir())
    new = leftovers.choose_aside_folder(files, node.id, node.metadata_directory, SAMPLE_TIME)
    leftovers.set_metadata_aside(files, node.id, node.metadata_directory, new, lambda _entry: None)
    leftovers.set_metadata_aside(files, node.id, node.metadata_directory, new, lambda _entry: None)  # as after a kill
    assert not leftovers.holds_metadata(files, node.id, node.metadata_directory)
    assert set(recording.ran) <= {nameless(words) for words in of(inventory)}
    told = {words[0] for words in of(inventory)}
    assert told >= {"unit-start", "unit-stop", "clock", "process", "sockets", "format"}


@pytest.mark.slow
def test_only_a_cluster_without_zookeeper_has_locks_on_its_hosts(tmp_path: Path) -> None:
    """With ZooKeeper the lock is a znode."""
    inventory, access = on_one_host(tmp_path)
    node, recording = inventory.brokers[0], Recording(here(access))
    HostLock(here(access), node.id, f"{node.config}{LOCK_SUFFIX}", "us").release()
    without = of(replace(inventory, zookeeper=""))
    assert {words[0] for words in without - of(inventory)} == {"lock", "try-lock", "read"}
    assert not recording.ran


@pytest.mark.slow
def test_the_real_program_takes_every_command_of_every_stage(tmp_path: Path) -> None:
    """One that says that it is of this release and inventory; asking changes nothing."""
    inventory, access = on_one_host(tmp_path)
    for node in inventory.brokers:
        Path(node.config).write_text(f"broker.id={node.id}\nlog.dirs=/data/a,/data/b\n")
    before = sorted(tmp_path.rglob("*"))
    found = rights_of(inventory, {node.id: here(access) for node in inventory.nodes})
    assert found == {node.id: HostRights("kafka-1") for node in inventory.nodes}
    asked = sorted(of(inventory, "/data/a", "/data/b") | of(replace(inventory, zookeeper="")))
    assert ("format", "3000", SAMPLE_CLUSTER, SAMPLE_RELEASE) in asked
    refused = zip(asked, refusals(access.program, asked), strict=True)
    assert [(words, why) for words, why in refused if why] == []
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"programs": {}}, "the host program is of another release"),
        ({"nodes": []}, "its nodes, or a unit, a path or a kafka_home of them, are not those of this one"),
        ({"refuses": None}, "the host program does not say what it would refuse"),
    ],
)
def test_a_program_of_another_release_or_inventory_is_refused(change: dict[str, object], says: str) -> None:
    """Told once a node, with what installs it again; nothing else is asked."""
    inventory = on_hosts()

    class Other(Good):
        def about(self) -> dict[str, object]:
            return {**super().about(), **change}

    found = rights_of(inventory, {node.id: Other(inventory, node.id) for node in inventory.nodes})
    assert len(found) == len(inventory.nodes)
    for rights in found.values():
        assert isinstance(rights, HostRights)
        (entry,) = rights.refused
        assert says in entry.what
        assert f"--host-setup {rights.host}" in entry.advice


class Good:
    """A host whose program takes everything; one host for each node."""

    def __init__(self, inventory: Inventory, node: NodeId) -> None:
        self.inventory, self.host = inventory, inventory.node(node).host
        self.asked: list[str] = []

    def about(self) -> dict[str, object]:
        """As it is installed."""
        return {**configuration(self.inventory, self.host), "refuses": {}}

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """The program's answer."""
        self.asked.append(words[0])
        return Completed(0, json.dumps(self.about()).encode(), "")


class Silent(Good):
    """A host that does not answer."""

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Never."""
        raise HostUnreachable("no route", where=self.host)


class Absent(Good):
    """A host without the program."""

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Sudo does not find it."""
        raise HostProgramMissing("the host program does not run", where=self.host, next_step="install it")


def test_a_host_that_does_not_answer_is_told_once_and_hides_no_other() -> None:
    """The others are asked all the same."""
    inventory = on_hosts()
    first = inventory.brokers[0].id
    runners = {node.id: (Silent if node.id == first else Good)(inventory, node.id) for node in inventory.nodes}
    found = rights_of(inventory, runners)
    silent = {node: told for node, told in found.items() if isinstance(told, Unknown)}
    assert set(silent) == {first}
    assert "E-HOST-22" in silent[first].reason
    assert set(found) == {node.id for node in inventory.nodes}


def test_nothing_that_acts_is_run_by_asking() -> None:
    """`doctor` may be run on a cluster that works."""
    inventory = on_hosts()
    runners = {node.id: Good(inventory, node.id) for node in inventory.nodes}
    rights_of(inventory, runners)
    assert [runner.asked for runner in runners.values()] == [["about"]] * len(runners)


def test_where_people_work_the_hosts_nothing_is_asked_of_them(tmp_path: Path) -> None:
    """There is no host program to ask."""
    manual = replace(worlds.inventory(), executor="manual", executor_options={"inbox": str(tmp_path)})
    assert not executor_of(manual).runners
    assert rights_of(manual, {}) == {}


def test_a_plan_is_told_what_is_refused_by_node_and_a_silent_host_is_unknown() -> None:
    """The program's own words; a host without the program says so."""

    class Narrow(Good):
        def about(self) -> dict[str, object]:
            refuses = {str(int(node.id)): "/opt/stop: it is not root's" for node in self.inventory.nodes}
            return {**super().about(), "refuses": refuses}

    inventory = on_hosts()
    narrow, absent, silent = (node.id for node in inventory.nodes[:3])
    kinds = {narrow: Narrow, absent: Absent, silent: Silent}
    runners = {node.id: kinds.get(node.id, Good)(inventory, node.id) for node in inventory.nodes}
    found = rights_of(inventory, runners)
    assert set(found) == {node.id for node in inventory.nodes}
    told, refusing, without = found.pop(silent), found.pop(narrow), found.pop(absent)
    assert isinstance(told, Unknown)
    assert told.reason.startswith(HostUnreachable.id)
    assert isinstance(refusing, HostRights)
    (entry,) = refusing.refused
    assert entry.what == "the host program refuses it: /opt/stop: it is not root's"
    assert isinstance(without, HostRights)
    (entry,) = without.refused
    said = f"{HostProgramMissing.id} {inventory.node(absent).host}: the host program does not run"
    assert (entry.what, entry.advice) == (said, "install it")
    assert all(isinstance(rights, HostRights) and not rights.refused for rights in found.values())
