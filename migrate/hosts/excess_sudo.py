"""What sudo allows on hosts beyond need: asked of it by commands that no run ever gives.  Nothing is run.

`sudo -l` lists rules in a form of its own, with defaults, aliases and wildcards; whether it would let one exact command
through is what counts, and what it answers without doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts.commands import Words
from migrate.hosts.persistent_command import ProgramHolder
from migrate.hosts.runner import Runner
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory

# what a wide rule lets through, and the one line for the host program does not
NEVER_OURS: Final[Mapping[str, Words]] = {
    "every command": ("sh", "-c", "true"),
    "every unit": ("systemctl", "stop", "--", "sshd.service"),
    "reading every file": ("cat", "--", "/etc/shadow"),
    "writing every file": ("tee", "--", "/etc/sudoers"),
    "giving every file away": ("chown", "nobody", "--", "/etc/shadow"),
    "every program of Python's": ("python3", "-c", "pass"),
}
PATTERN: Final = "files beyond a pattern of an earlier release's lines: remove those"
NO_ANSWER: Final = "must have a tty"  # requiretty


def never_ours(config: str) -> Mapping[str, Words]:
    """Those, and what lines with a star let through: in a line's arguments it matches blanks and slashes (pure)."""
    copy = f"if={config}.kraft-migrate-backup-"
    return {
        **NEVER_OURS,
        PATTERN: ("dd", copy, "if=/etc/shadow", "iflag=nofollow,nonblock", "bs=1M", "count=9", "status=none"),
    }


def beyond(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> Iterator[tuple[NodeId, str]]:
    """(node, what sudo allows there beyond need), each host once; one that does not answer says nothing here."""
    seen: set[str] = set()
    for node in inventory.nodes:
        runner = runners.get(node.id)
        if not isinstance(runner, ProgramHolder) or not runner.access.sudo or runner.host in seen:
            continue
        seen.add(runner.host)
        if found := _allowed(runner.holder, never_ours(node.config)):
            yield node.id, found


def _allowed(runner: Runner, asked: Mapping[str, Words]) -> str:
    found = []
    for what, command in asked.items():
        try:
            done = runner.run(("sudo", "-n", "-l", "--", *command))
        except MigrateError:
            return ""
        if NO_ANSWER in done.errors:
            return f"what sudo allows besides is unknown (requiretty): {done.says}"
        if done.code == 0:
            found.append(what)
    return f"sudo allows {', '.join(found)}" if found else ""
