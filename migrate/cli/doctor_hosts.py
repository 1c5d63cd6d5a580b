"""`doctor --hosts`: would the host programs take every command that a run gives, and what is missing."""

from __future__ import annotations

import getpass
from collections.abc import Iterator

from migrate.errors import UsageWrong
from migrate.hosts import host_needs, host_setup
from migrate.hosts.executors import LOCAL, SSH, executor_of
from migrate.hosts.host_needs import Tried, find_excess_sudo
from migrate.hosts.host_setup import nodes_of
from migrate.hosts.ssh import SshConnections
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.units import Unit, unfit


def examine(inventory: Inventory) -> list[Tried]:
    """Every need of every node, tried; nothing is changed."""
    executor = executor_of(inventory)
    try:
        return host_needs.examine(inventory, executor.runners)
    finally:
        executor.close()


def too_much(inventory: Inventory) -> list[tuple[int, str]]:
    """(node, what sudo allows on its host beyond need); nothing is run."""
    executor = executor_of(inventory)
    try:
        return [(int(node), text) for node, text in find_excess_sudo(inventory, executor.runners)]
    finally:
        executor.close()


def by_node(inventory: Inventory) -> Iterator[tuple[int, str, list[Tried]]]:
    """Node, host, and what came of each of its needs."""
    found = examine(inventory)
    for node in inventory.nodes:
        yield int(node.id), node.host, [tried for tried in found if tried.need.node == node.id]


def unfit_nodes(inventory: Inventory) -> dict[int, list[tuple[str, str]]]:
    """By node what would stop a run there and what to do, as `assess` and the run itself see it.

    The collector looks at each node's directories, and writes and removes six bytes there; nothing else is changed.
    """
    from migrate.observe.sources import Sources

    sources = Sources(inventory, Unknown("no playbook was given"), None)
    try:
        units, disks = sources.units(), sources.disks(sources.configs())
    finally:
        sources.close()
    found: dict[int, list[tuple[str, str]]] = {int(node.id): [] for node in inventory.nodes}
    for node, unit in {} if isinstance(units, Unknown) else units.items():
        told = [(unit.reason, "")] if isinstance(unit, Unknown) else [(what, to_do) for _, what, to_do in unfit(unit)]
        if isinstance(unit, Unit) and isinstance(unit.access, Unknown):
            told.append((unit.access.reason, ""))
        found[int(node)] += told
    for node, seen in disks.items():
        if isinstance(seen, Unknown):
            found[int(node)].append((seen.reason, ""))
    return found


def setup_script(inventory: Inventory, host: str, *, undo: bool) -> str:
    """The script that root runs on a host, or its reverse.

    Raises:
        UsageWrong: the inventory's executor works no hosts, or has no node there.
        SshMissing, HostDenied: ssh does not say who logs in there.
    """
    if inventory.executor not in (LOCAL, SSH):
        raise UsageWrong(
            f"executor {inventory.executor} works no hosts",
            next_step=f"--host-setup is for executors {LOCAL} and {SSH}",
        )
    if undo:
        return host_setup.undo(inventory, host)
    options = inventory.executor_options
    nodes_of(inventory, host)  # before ssh is asked
    if inventory.executor == LOCAL:
        account = getpass.getuser()
    else:
        account = SshConnections(options.get("ssh_config")).account(host)
    return host_setup.set_up(inventory, host, account, sudo=options.get("sudo", "yes") == "yes")
