"""What `doctor --hosts` asks for is what a run does: no command is run that the table does not tell."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import HostUnreachable
from migrate.hosts import commands, host_needs
from migrate.hosts.commands import Privilege
from migrate.hosts.executors import executor_of
from migrate.hosts.host_needs import SAMPLE, HostNeed, sudoers
from migrate.hosts.remote_disks import RemoteDisks
from migrate.hosts.remote_files import HostFiles, RemoteFiles
from migrate.hosts.remote_metadata import RemoteMetadata
from migrate.hosts.runner import Completed, LocalRunner
from migrate.model.host_rights import HostRights
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP
from tests.kraft.logs import captured_log
from tests.observe.test_metadata_files import controller
from tests.testing import worlds

OPTIONS = {
    "kafka_home": "/opt/kafka",
    "services_as": "root",
    "files_as": "root",
    "disks_as": "kafka",
    "format_as": "kafka",
}


def on_hosts(folder: str = "/etc/kafka") -> Inventory:
    """The plain inventory with units on hosts."""
    found = worlds.inventory()
    return replace(
        found,
        executor="ssh",
        executor_options=OPTIONS,
        brokers=tuple(
            replace(node, unit=f"kafka-{node.id}.service", config=f"{folder}/{node.id}.properties")
            for node in found.brokers
        ),
        controllers=tuple(
            replace(node, unit=f"kraft-{node.id}.service", config=f"{folder}/{node.id}.properties")
            for node in found.controllers
        ),
    )


class Recording(LocalRunner):
    """Runs what is asked on this host, and remembers it without sudo's words."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Remembered, then run."""
        self.ran.append(tuple(words))
        return super().run(words, stdin=stdin, seconds=seconds)


def test_every_command_of_a_files_life_is_in_the_table(tmp_path: Path) -> None:
    """Reading, writing anew and over, copies beside, setting aside: all of it could be allowed by name."""
    inventory = on_hosts(str(tmp_path))
    node = inventory.brokers[0]
    told = {need.command for need in host_needs.needs_of(inventory) if need.node == node.id}
    runner = Recording()
    files = RemoteFiles({node.id: HostFiles(runner)})
    for path in (node.config, f"{node.config}.kraft-migrate-backup", f"{node.config}.kraft-migrate-backup-{SAMPLE}"):
        files.write(node.id, path, b"a=1\n")
        files.write(node.id, path, b"a=2\n")
        assert files.exists(node.id, path)
        assert files.read(node.id, path) == b"a=2\n"
    files.names(node.id, str(tmp_path))
    files.rename(node.id, node.config, f"{node.config}.kraft-migrate-set-aside-{SAMPLE}")
    context = {words for words in runner.ran if words[0] == "chcon" or "%C" in words}
    assert set(runner.ran) - context <= told
    assert context <= told


def test_every_command_that_reads_a_controllers_log_is_in_the_table(tmp_path: Path) -> None:
    """It is needed first when no controller leads: what sudo is told of is what is run, word by word."""
    inventory = on_hosts()
    node = replace(inventory.controllers[0], metadata_directory=str(tmp_path / "metadata"))
    inventory = replace(inventory, controllers=(node, *inventory.controllers[1:]))
    told = {need.command for need in host_needs.needs_of(inventory) if need.node == node.id}
    runner = Recording()
    reads = RemoteMetadata({node.id: runner}, Privilege())
    with reads.folders({node.id: node.metadata_directory}) as nothing:  # no folder, then a log
        assert not list(nothing[node.id].iterdir())
    controller(tmp_path, int(node.id), captured_log()).rename(node.metadata_directory)
    with reads.folders({node.id: node.metadata_directory}) as found:
        assert list(found[node.id].iterdir())
    RemoteDisks({node.id: runner}, Privilege()).look(node.id, [node.metadata_directory], None)
    assert {words[0] for words in runner.ran} == {"stat", "find", "tar", "python3"}
    assert set(runner.ran) <= told


def test_a_host_that_does_not_answer_is_told_once_and_hides_no_other() -> None:
    """The others are asked all the same."""

    class Dead(LocalRunner):
        def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
            raise HostUnreachable("no route", where="b1")

    class Fine(LocalRunner):
        def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
            return Completed(0, b"LoadState=loaded\nActiveState=active\nTimeoutStopUSec=10min\n", "")

    inventory = on_hosts()
    first = inventory.brokers[0].id
    found = host_needs.examine(inventory, {node.id: Dead() if node.id == first else Fine() for node in inventory.nodes})
    bad = [tried for tried in found if tried.problem]
    assert [tried.need.node for tried in bad] == [first]
    assert "E-HOST-22" in bad[0].problem
    assert {tried.need.node for tried in found} == {node.id for node in inventory.nodes}


def test_what_acts_is_asked_of_sudo_and_never_run() -> None:
    """`doctor` may be run on a cluster that works."""
    asked: list[tuple[str, ...]] = []

    class Sudo(LocalRunner):
        def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
            asked.append(tuple(words))
            return Completed(1, b"", "sudo: a password is required")

    inventory = on_hosts()
    found = host_needs.examine(inventory, {node.id: Sudo() for node in inventory.nodes})
    acting = [tried for tried in found if tried.need.acts]
    assert acting
    assert all("a password is required" in tried.problem for tried in acting)
    run = [words for words in asked if "-l" not in words]
    programs = {words[words.index("--") + 1] for words in run}
    assert programs == {"systemctl", "journalctl", "find", "stat", "python3"}
    assert all({"show", "list-dependencies"} & {*words} for words in run if "systemctl" in words)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("LoadState=not-found\nActiveState=inactive\n", "not-found"),
        ("LoadState=loaded\nActiveState=active\nTimeoutStopUSec=1min 30s\nSendSIGKILL=yes\n", "kills it 90 s after"),
        ("LoadState=loaded\nActiveState=active\nTimeoutStopUSec=5min\n", "TimeoutStopSec=330"),
        ("LoadState=loaded\nActiveState=active\n", "not known"),
        ("what", "not understood"),
    ],
)
def test_a_unit_that_cannot_be_used_is_told_beforehand(answer: str, says: str) -> None:
    """Not in the night."""

    class Show(LocalRunner):
        def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
            return Completed(0, answer.encode(), "")

    inventory = on_hosts()
    found = host_needs.examine(inventory, {node.id: Show() for node in inventory.nodes})
    units = [tried for tried in found if tried.need.purpose == "see the unit"]
    assert all(says in tried.problem for tried in units)
    assert len(units) == len(inventory.nodes)


def test_the_lines_for_sudo_are_understood_by_its_own_checker(tmp_path: Path) -> None:
    """By visudo where it is; the lines name programs by their places, and stars stand only for times and hashes."""
    needs = host_needs.needs_of(on_hosts())
    programs = {need.command[0]: f"/usr/bin/{need.command[0]}" for need in needs if "/" not in need.command[0]}
    lines = sudoers(needs, programs, "ops")
    assert lines
    assert all(line.startswith(("ops ALL=(root) NOPASSWD: /", "ops ALL=(kafka) NOPASSWD: /")) for line in lines)
    assert not [line for line in lines if SAMPLE in line]
    assert all(line.count("*") - line.count("\\*") <= 2 for line in lines)
    (tmp_path / "sudoers").write_text("\n".join(lines) + "\n")
    try:
        done = subprocess.run(["visudo", "-cf", str(tmp_path / "sudoers")], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no visudo on this machine")
    assert done.returncode == 0, done.stdout + done.stderr


def test_odd_characters_of_a_word_are_escaped_for_sudo() -> None:
    """A comma would end the command there."""
    need = HostNeed(NodeId(1), "h", "x", Privilege("root"), ("cat", "/a b,c:d=e*[f]"), True)
    assert sudoers([need], {"cat": "/bin/cat"}, "ops") == [
        "ops ALL=(root) NOPASSWD: /bin/cat /a\\ b\\,c\\:d\\=e\\*\\[f\\]"
    ]


def test_an_executor_without_hosts_needs_nothing() -> None:
    """The lab's own."""
    assert host_needs.needs_of(worlds.inventory()) == ()
    assert not executor_of(worlds.inventory()).runners


class Sudo(LocalRunner):
    """A host on which sudo allows nothing, and every look is answered."""

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """No."""
        return Completed(1, b"", "sudo: a password is required\n") if words[0] == "sudo" else Completed(0, b"", "")


class Silent(LocalRunner):
    """A host that does not answer."""

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
        """Never."""
        raise HostUnreachable("no route", where="host")


def test_a_plan_is_told_what_is_refused_by_node_and_a_silent_host_is_unknown() -> None:
    """In one reason where forty commands have the same; a silent host says nothing of its rights."""
    inventory = on_hosts()
    silent = inventory.controllers[0].id
    runners = {node.id: Silent() if node.id == silent else Sudo() for node in inventory.nodes}
    found = host_needs.rights_of(inventory, runners)
    assert set(found) == {node.id for node in inventory.nodes}
    told = found.pop(silent)
    assert isinstance(told, Unknown)
    assert told.reason.startswith(HostUnreachable.id)
    for rights in found.values():
        assert isinstance(rights, HostRights)
        assert rights.tried > 20
        assert len(rights.refused) == 2  # to be asked of, and to be run
        for refused in rights.refused:
            assert "sudo: a password is required" in refused.what
            assert "more commands" in refused.what
            assert "doctor --sudoers" in refused.advice
    assert host_needs.rights_of(worlds.inventory(), {}) == {}


@pytest.mark.parametrize("lines", [3, LOG_LINES, LOG_LINES_DEEP])
def test_the_log_is_read_by_a_command_that_sudo_was_told_of(lines: int) -> None:
    """Word by word: a rule for another number of lines would not let it pass."""
    inventory = on_hosts()
    needed = {need.command for need in host_needs.needs_of(inventory)}
    assert all(commands.unit_log(node.unit, lines) in needed for node in inventory.nodes)
