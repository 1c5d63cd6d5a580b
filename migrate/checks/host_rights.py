"""OPS: what a run needs to be allowed on the nodes' hosts, before it finds out between a stop and a start."""

from __future__ import annotations

from migrate.checks.registry import ALWAYS, Hit, Result, check
from migrate.checks.sight import host_rights
from migrate.model.findings import CodeDoc
from migrate.model.host_rights import HostRights
from migrate.model.ids import NodeId
from migrate.model.world import World


@check(
    CodeDoc(
        "W-OPS-05",
        "a command that a run needs is not allowed on its host",
        "A run is refused before its first effect (E-HOST-27) where sudo does not allow a command that its steps need; "
        "taken away later, it stops at that step, perhaps with some brokers rolled and the others not.",
        "sudo does not know the command for this account, a unit or a file is not there, or the host does not answer.",
        "`kraft-migrate doctor --hosts --inventory FILE` tries every command, `--sudoers` prints what sudo needs; then "
        "plan again.",
        "migrate.hosts.host_needs: the table of commands that the executor uses",
    ),
    sees=host_rights,
    when=ALWAYS,
)
def refused_commands(seen: dict[NodeId, HostRights], world: World) -> Result:
    """Each reason of each node, once."""
    for node, rights in seen.items():
        for entry in rights.refused:
            yield Hit(f"node {int(node)} on {rights.host}", entry.what, fix=entry.advice)
