"""What sudo allows on hosts beyond need: asked of it by commands that no run ever gives.  Nothing is run.

`sudo -l` lists rules in a form of its own, with defaults, aliases and wildcards; whether it would let one exact command
through is what counts, and what it answers without doubt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts.commands import Words
from migrate.hosts.held_command import ProgramHolder
from migrate.hosts.runner import Runner
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory

# what a wide rule lets through, and no line of ours: everything, any unit, any file read, any file written
NEVER_OURS: Final[Mapping[str, Words]] = {
    "every command": ("sh", "-c", "true"),
    "every unit": ("systemctl", "stop", "--", "sshd.service"),
    "reading every file": ("cat", "--", "/etc/shadow"),
    "writing every file": ("tee", "--", "/etc/sudoers"),
}


def beyond(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> Iterator[tuple[NodeId, str]]:
    """(node, what sudo allows there beyond need), each host once; one that does not answer says nothing here."""
    seen: set[str] = set()
    for node in inventory.nodes:
        runner = runners.get(node.id)
        if not isinstance(runner, ProgramHolder) or not runner.access.sudo or runner.host in seen:
            continue
        seen.add(runner.host)
        if found := _allowed(runner.holder):
            yield node.id, f"sudo allows {found}"


def _allowed(runner: Runner) -> str:
    found = []
    for what, command in NEVER_OURS.items():
        try:
            if runner.run(("sudo", "-n", "-l", "--", *command)).code == 0:
                found.append(what)
        except MigrateError:
            return ""
    return ", ".join(found)
