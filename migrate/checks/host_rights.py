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
        "A run is refused before its first effect (E-HOST-27) where a host refuses a command that a run gives; taken "
        "away later, it stops at that step, perhaps with some brokers rolled and the others not.",
        "The host program is not installed there, is of another release or another inventory, or sudo does not allow "
        "it; or a unit is not there.",
        "`kraft-migrate doctor --hosts --inventory FILE` asks every host, `--host-setup HOST` prints the script that "
        "installs the host program on one; then plan again.",
        "migrate.hosts.host_needs: every command that a run gives to the host program",
    ),
    sees=host_rights,
    when=ALWAYS,
)
def refused_commands(seen: dict[NodeId, HostRights], world: World) -> Result:
    """Each reason of each node, once."""
    for node, rights in seen.items():
        for entry in rights.refused:
            yield Hit(f"node {int(node)} on {rights.host}", entry.what, fix=entry.advice)
