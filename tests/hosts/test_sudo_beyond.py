"""Rights of sudo that no run needs are told; the ones that are needed are not."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from migrate.errors import HostUnreachable
from migrate.hosts.commands import HostAccess
from migrate.hosts.held_command import LocalHolder, ProgramHolder
from migrate.hosts.host_setup import PROGRAM
from migrate.hosts.runner import Completed
from migrate.hosts.sudo_beyond import NEVER_OURS, beyond
from migrate.model.ids import NodeId
from tests.hosts.test_host_needs import on_hosts


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
        ("*", ", ".join(NEVER_OURS)),
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
