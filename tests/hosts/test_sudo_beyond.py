"""Rights of sudo that no run needs are told; the ones that are needed are not."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from migrate.errors import HostUnreachable
from migrate.hosts.host_needs import needs_of, sudoers
from migrate.hosts.runner import Completed, LocalRunner
from migrate.hosts.sudo_beyond import NEVER_OURS, beyond
from tests.hosts.test_host_needs import on_hosts


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


def test_the_lines_that_we_print_allow_nothing_of_it() -> None:
    """Exactly those, with their stars."""
    inventory = on_hosts()
    lines = [line.split("NOPASSWD: ", 1)[1].replace("\\", "") for line in sudoers(needs_of(inventory), {}, "tool")]
    assert lines
    assert list(beyond(inventory, {node.id: Sudo(node.host, *lines) for node in inventory.nodes})) == []


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
    """Once a host, for each user that commands are given as."""
    inventory = on_hosts()
    one_host = {node.id: Sudo("all", rule) for node in inventory.nodes}
    users = {need.privilege.user for need in needs_of(inventory)}
    found = list(beyond(inventory, one_host))
    assert {text for _, text in found} == {f"sudo as {user} allows {says}" for user in users}
    assert {node for node, _ in found} == {inventory.nodes[0].id}


def test_a_host_that_does_not_answer_says_nothing_here() -> None:
    """`doctor --hosts` tells of the first already."""

    class Dead(LocalRunner):
        def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 30) -> Completed:
            raise HostUnreachable("no route", where="b1")

    inventory = on_hosts()
    assert list(beyond(inventory, {node.id: Dead() for node in inventory.nodes})) == []
