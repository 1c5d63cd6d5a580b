"""What `doctor --hosts` asks for is what a run gives to the host program, and the program answers for itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from migrate.errors import HostProgramMissing, HostUnreachable
from migrate.hosts import host_needs, host_setup, leftovers
from migrate.hosts.commands import HostAccess, Words
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.executors import executor_of
from migrate.hosts.host_needs import (
    PATTERN_RULE,
    SAMPLE_CLUSTER,
    SAMPLE_HASH,
    SAMPLE_RELEASE,
    SAMPLE_TIME,
    find_excess_sudo,
    forbidden_commands,
    needs_of,
)
from migrate.hosts.host_setup import PROGRAM, configuration
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.remote_files import LOCK_SUFFIX, HostLock, RemoteFiles, RemoteMetadata
from migrate.hosts.runner import Completed, Holder, LocalRunner, ProgramHolder
from migrate.hosts.systemd import Service, SystemdServices
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP
from migrate.model.rights import HostRights
from tests.hosts.test_host_setup import HOST, inventory, needs_room
from tests.testing import worlds
from tests.testing.host_program import here, installed
from tests.testing.sudo_room import Room, room


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


def on_one_host(folder: Path) -> tuple[Inventory, Holder]:
    """All nodes on this host, and its program."""
    spread = on_hosts(str(folder))
    inventory = replace(
        spread,
        brokers=tuple(replace(node, host="kafka-1") for node in spread.brokers),
        controllers=tuple(replace(node, host="kafka-1") for node in spread.controllers),
    )
    access = installed(folder / "program", inventory.brokers, inventory.controllers)
    return inventory, here(access)


def of(inventory: Inventory, *directories: str) -> set[Words]:
    """Every command of every node."""
    return {need.command for node in inventory.nodes for need in needs_of(inventory, node, directories)}


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
    inventory, program = on_one_host(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    node, recording = inventory.brokers[0], Recording(program)
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
    inventory, program = on_one_host(tmp_path)
    node, recording = inventory.controllers[0], Recording(program)
    Path(node.config).write_text("node.id=3000\n")
    files = RemoteFiles({node.id: recording})
    services = SystemdServices(
        {node.id: Service(node.id, node.unit, node.config, recording, files)},
        None,  # type: ignore[arg-type]
    )
    services.unit(node.id)
    services.at_boot(node.id, wanted=True)
    services.at_boot(node.id, wanted=False)
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


def test_only_a_cluster_without_zookeeper_has_locks_on_its_hosts(tmp_path: Path) -> None:
    """With ZooKeeper the lock is a znode."""
    inventory, program = on_one_host(tmp_path)
    node, recording = inventory.brokers[0], Recording(program)
    HostLock(program, node.id, f"{node.config}{LOCK_SUFFIX}", "us").release()
    without = of(replace(inventory, zookeeper=""))
    assert {words[0] for words in without - of(inventory)} == {"lock", "try-lock", "read"}
    assert not recording.ran


def test_the_real_program_takes_every_command_of_every_stage(tmp_path: Path) -> None:
    """It is asked in two calls a host, and nothing is changed."""
    inventory, program = on_one_host(tmp_path)
    for node in inventory.brokers:
        Path(node.config).write_text(f"broker.id={node.id}\nlog.dirs=/data/a,/data/b\n")
    before = sorted(tmp_path.rglob("*"))
    found = host_needs.examine(inventory, {node.id: program for node in inventory.nodes})
    assert [tried for tried in found if tried.problem] == []
    asked = {tried.need.command for tried in found}
    assert ("read", "0", "/data/b/meta.properties") in asked
    assert ("format", "3000", SAMPLE_CLUSTER, SAMPLE_RELEASE) in asked
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"programs": {}}, "the host program is of another release"),
        ({"nodes": []}, "its nodes, or a unit, a path or a kafka_home of them, are not those of this one"),
        ({"zookeeper": ["zookeeper.service"]}, "its units of ZooKeeper are not those of this one"),
    ],
)
def test_a_program_of_another_release_or_inventory_is_refused(change: dict[str, object], says: str) -> None:
    """Told once a node, with what installs it again; nothing else is asked."""
    inventory = on_hosts()

    class Other(Good):
        def about(self) -> dict[str, object]:
            return {**super().about(), **change}

    found = host_needs.examine(inventory, {node.id: Other(inventory, node.id) for node in inventory.nodes})
    assert len(found) == len(inventory.nodes)
    assert all(says in tried.problem and tried.denied for tried in found)
    assert f"--host-setup {inventory.nodes[0].host}" in found[0].advice


class Good:
    """A host whose program takes everything; one host for each node."""

    def __init__(self, inventory: Inventory, node: NodeId) -> None:
        self.inventory, self.host = inventory, inventory.node(node).host
        self.asked: list[str] = []

    def about(self) -> dict[str, object]:
        """As it is installed."""
        return configuration(self.inventory, self.host)

    def said(self, words: Sequence[str]) -> str:
        """Why it would refuse these words."""
        del words
        return ""

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """The program's answer."""
        self.asked.append(words[0])
        match words[0]:
            case "about":
                return Completed(0, json.dumps(self.about()).encode(), "")
            case "allowed":
                return Completed(0, json.dumps([self.said(given) for given in json.loads(stdin)]).encode(), "")
        return Completed(1, b"", "kraft-migrate-host: /etc/x: No such file or directory")


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
    found = host_needs.examine(inventory, runners)
    bad = [tried for tried in found if tried.problem]
    assert [tried.need.node for tried in bad] == [first]
    assert "E-HOST-22" in bad[0].problem
    assert not bad[0].denied
    assert {tried.need.node for tried in found} == {node.id for node in inventory.nodes}


def test_nothing_that_acts_is_run_by_asking() -> None:
    """`doctor` may be run on a cluster that works."""
    inventory = on_hosts()
    runners = {node.id: Good(inventory, node.id) for node in inventory.nodes}
    host_needs.examine(inventory, runners)
    assert {verb for runner in runners.values() for verb in runner.asked} == {"about", "allowed", "read"}


def test_an_executor_without_hosts_needs_nothing() -> None:
    """The lab's own."""
    plain = worlds.inventory()
    assert needs_of(plain, plain.brokers[0]) == ()
    assert not executor_of(plain).runners
    assert host_needs.rights_of(plain, {}) == {}


def test_a_plan_is_told_what_is_refused_by_node_and_a_silent_host_is_unknown() -> None:
    """One reason for any number of commands; a host without the program says so in one."""

    class Narrow(Good):
        def said(self, words: Sequence[str]) -> str:
            return "it is no unit of this host" if words[0].startswith("unit-") else ""

    inventory = on_hosts()
    narrow, absent, silent = (node.id for node in inventory.nodes[:3])
    kinds = {narrow: Narrow, absent: Absent, silent: Silent}
    runners = {node.id: kinds.get(node.id, Good)(inventory, node.id) for node in inventory.nodes}
    found = host_needs.rights_of(inventory, runners)
    assert set(found) == {node.id for node in inventory.nodes}
    told, refusing, without = found.pop(silent), found.pop(narrow), found.pop(absent)
    assert isinstance(told, Unknown)
    assert told.reason.startswith(HostUnreachable.id)
    assert isinstance(refusing, HostRights)
    (entry,) = refusing.refused
    assert entry.denied
    assert "more commands): the host program refuses it: it is no unit of this host" in entry.what
    assert isinstance(without, HostRights)
    (entry,) = without.refused
    assert (entry.what, entry.advice, entry.denied) == (
        f"{HostProgramMissing.id} {inventory.node(absent).host}: the host program does not run", "install it", True,
    )  # fmt: skip
    assert all(isinstance(rights, HostRights) and not rights.refused for rights in found.values())


class Sudo(LocalRunner):
    """Answers `sudo -l` by patterns of whole commands, as sudoers has them; runs nothing."""

    def __init__(self, host: str, *allowed: str) -> None:
        self.host = host
        self.allowed = allowed

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Exit code 0 for what is allowed."""
        assert "-l" in words, "nothing may be run"
        command = " ".join(words[words.index("--") + 1 :])
        good = any(fnmatchcase(command, pattern) for pattern in self.allowed)
        return Completed(0 if good else 1, b"", "")


class Dead(Sudo):
    """A host that does not answer."""

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Never."""
        raise HostUnreachable("no route", where=self.host)


def found(*runners: Sudo, sudo: bool = True) -> list[tuple[NodeId, str]]:
    """What is told of nodes on these hosts."""
    inventory = on_hosts()
    nodes = zip((node.id for node in inventory.nodes), runners, strict=False)
    access = HostAccess(sudo=sudo)
    return list(find_excess_sudo(inventory, {node: ProgramHolder(runner, access) for node, runner in nodes}))


def test_the_line_of_the_host_program_allows_nothing_of_it() -> None:
    """With any of its words."""
    assert found(Sudo("b0", PROGRAM, f"{PROGRAM} *")) == []


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("*", ", ".join(forbidden_commands("/x"))),
        ("systemctl *", "every unit"),
        ("cat *", "reading every file"),
        ("tee *", "writing every file"),
    ],
)
def test_a_rule_that_is_too_wide_is_told_by_what_it_allows(rule: str, says: str) -> None:
    """Once a host."""
    assert found(Sudo("b0", rule), Sudo("b0", rule)) == [(on_hosts().nodes[0].id, f"sudo allows {says}")]


def test_a_host_that_does_not_answer_or_has_no_sudo_says_nothing_here() -> None:
    """`doctor --hosts` tells of the first already."""
    assert found(Dead("b0")) == []
    assert found(Sudo("b0", "*"), sudo=False) == []


# -- real sudo ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def real() -> Iterator[Room]:
    """A host that was set up by the script."""
    with room() as made:
        done = made.run_as(0, ("sh", "-s"), host_setup.set_up(inventory(), HOST, "ops").encode())
        assert done.code == 0, done
        yield made


CONFIG = "/etc/kafka/server.properties"
NO_TTY = "sudo: sorry, you must have a tty to run sudo"
STAR = f"/usr/bin/dd if\\={CONFIG}.kraft-migrate-backup-* iflag\\=nofollow\\,nonblock bs\\=1M count\\=9 status\\=none"


@pytest.mark.slow
@needs_room
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", ""),
        ("ops ALL=(ALL) NOPASSWD: ALL", f"sudo allows {', '.join(forbidden_commands(CONFIG))}"),
        (f"ops ALL=(root) NOPASSWD: {STAR}", f"sudo allows {PATTERN_RULE}"),
        ("ops ALL=(root) NOPASSWD: /usr/bin/systemctl", "sudo allows every unit"),
        ("Defaults requiretty", f"what sudo allows besides is unknown (requiretty): {NO_TTY}"),
    ],
)
def test_real_sudo_is_asked_and_answers_of_the_line_as_installed(real: Room, line: str, says: str) -> None:
    """The installed line allows nothing of it; a line that is too wide is told, an earlier release's too."""
    real.must(f"printf '%s\\n' '{line}' >/etc/sudoers.d/more; chmod 440 /etc/sudoers.d/more; visudo -cq")
    node = inventory().nodes[0].id
    try:
        told = list(find_excess_sudo(inventory(), {node: ProgramHolder(real, HostAccess())}))
    finally:
        real.must("rm /etc/sudoers.d/more")
    assert told == ([(node, says)] if says else [])
