"""Rights of sudo that no run needs are told; the ones that are needed are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import pytest

from migrate.errors import HostUnreachable
from migrate.hosts import host_script
from migrate.hosts.commands import HostAccess
from migrate.hosts.excess_sudo import PATTERN, beyond, never_ours
from migrate.hosts.host_setup import PROGRAM
from migrate.hosts.persistent_command import LocalHolder, ProgramHolder
from migrate.hosts.runner import Completed
from migrate.model.ids import NodeId
from tests.hosts.test_host_needs import on_hosts
from tests.hosts.test_host_script import HOST, inventory, needs_room
from tests.testing.sudo_room import Room, room


class Sudo(LocalHolder):
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
    return list(beyond(inventory, {node: ProgramHolder(runner, access) for node, runner in nodes}))


def test_the_line_of_the_host_program_allows_nothing_of_it() -> None:
    """With any of its words."""
    assert found(Sudo("b0", PROGRAM, f"{PROGRAM} *")) == []


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("*", ", ".join(never_ours("/x"))),
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
        done = made.run_as(0, ("sh", "-s"), host_script.set_up(inventory(), HOST, "ops").encode())
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
        ("ops ALL=(ALL) NOPASSWD: ALL", f"sudo allows {', '.join(never_ours(CONFIG))}"),
        (f"ops ALL=(root) NOPASSWD: {STAR}", f"sudo allows {PATTERN}"),
        ("ops ALL=(root) NOPASSWD: /usr/bin/systemctl", "sudo allows every unit"),
        ("Defaults requiretty", f"what sudo allows besides is unknown (requiretty): {NO_TTY}"),
    ],
)
def test_real_sudo_is_asked_and_answers_of_the_line_as_installed(real: Room, line: str, says: str) -> None:
    """The installed line allows nothing of it; a line that is too wide is told, an earlier release's too."""
    real.must(f"printf '%s\\n' '{line}' >/etc/sudoers.d/more; chmod 440 /etc/sudoers.d/more; visudo -cq")
    node = inventory().nodes[0].id
    try:
        told = list(beyond(inventory(), {node: ProgramHolder(real, HostAccess())}))
    finally:
        real.must("rm /etc/sudoers.d/more")
    assert told == ([(node, says)] if says else [])
