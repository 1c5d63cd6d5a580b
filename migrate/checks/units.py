"""OPS: the systemd units of the nodes: how long a stop may take, and whether a host's boot brings the node back."""

from __future__ import annotations

import shlex
from typing import Final

from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import inventory, units
from migrate.hosts.commands import unit_enable
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.units import STOP_ADVICE, STOP_SECONDS, Unit, too_soon
from migrate.model.world import World

Units = dict[NodeId, Unit]
HAND: Final[dict[str, str]] = {  # states that `systemctl enable` does not repair, or repairs so that nobody can undo it
    "linked": "install the unit file in /etc/systemd/system instead of linking it, then enable it",
    "linked-runtime": "install the unit file in /etc/systemd/system: this link is gone after a boot; then enable it",
    "masked": "`systemctl unmask` it, then enable it",
    "masked-runtime": "`systemctl unmask --runtime` it, then enable it",
    "transient": "write a unit file: a transient unit is gone after a boot",
    "static": "give the unit file an [Install] section with WantedBy=multi-user.target, daemon-reload, then enable it",
}


@check(
    CodeDoc(
        "B-OPS-06",
        "systemd would kill a node before its shutdown has ended",
        f"A run waits {STOP_SECONDS:.0f} s for a stop and never kills. A broker that systemd kills recovers its "
        "logs, and its partitions are without a leader for longer. A unit that is refused after other controllers "
        "were stopped leaves a quorum without a leader.",
        "TimeoutStopSec= of the unit or of a drop-in is too small (systemd's own default is 90 s), or systemd does not "
        "tell it.",
        f"On each host named: {STOP_ADVICE}.",
        "systemd.service(5); migrate.model.units.STOP_SECONDS",
    ),
    sees=units,
    blocks_from=Stage.PREPARE,
    when=ALWAYS,
    proof=True,
)
def stops_in_time(seen: Units, world: World) -> Result:
    """Every unit, of brokers and controllers."""
    for node, unit in seen.items():
        if problem := too_soon(unit.patience):
            yield Hit(f"node {int(node)} on {unit.host}", f"{unit.name}: {problem}")


@check(
    CodeDoc(
        "W-OPS-07",
        "a node's unit does not start at boot",
        "After a power cut the node stays down. Brokers of a finalized cluster cannot start without its controllers. "
        "The report of a run says PROVEN only where every controller and every broker starts at boot.",
        "The unit was never enabled: units of controllers are new. Or it is linked, masked, static or transient.",
        "On each host named: `systemctl enable -- UNIT`. A run does it by itself, unless the playbook's "
        "policy.enable_units is false: controllers once they lead, brokers at the cleanup.",
        "systemctl(1): is-enabled; states as systemd 252 gives them",
    ),
    sees=units,
    when=ALWAYS,
)
def starts_at_boot(seen: Units, world: World) -> Result:
    """By `is-enabled`, and by what default.target pulls in."""
    ours = not isinstance(world.playbook, Unknown) and world.playbook.enable_units
    for node, unit in seen.items():
        about = f"node {int(node)} on {unit.host}"
        if isinstance(unit.starts_at_boot, Unknown):
            yield Blind(f"whether {about} starts at boot", f"{unit.name}: {unit.starts_at_boot.reason}")
        elif not unit.starts_at_boot:
            fix = HAND.get(unit.word, f"on {unit.host}: {shlex.join(unit_enable(unit.name))}")
            fix += " (a run of this playbook does it)" if ours and unit.may_be_enabled else ""
            yield Hit(about, f"{unit.name} is {unit.word}: a boot of the host does not start it", fix=fix)


@check(
    CodeDoc(
        "I-OPS-08",
        "nobody sees whether the nodes start at boot",
        "People work these hosts. After a power cut a node whose unit is not enabled stays down, and the report of a "
        "run says that this was not checked.",
        "The executor `manual` reads no state of systemd.",
        "On each host: `systemctl is-enabled -- UNIT` must say `enabled`; if not, `systemctl enable -- UNIT`. "
        "Controllers once they lead, brokers after the migration is finalized.",
        "systemctl(1): is-enabled",
    ),
    sees=inventory,
    when=ALWAYS,
)
def nobody_sees_the_boot(seen: Inventory, world: World) -> Result:
    """Of the executor `manual`."""
    if seen.executor == "manual":
        units = ", ".join(f"{node.unit or 'its unit'} of node {int(node.id)} on {node.host}" for node in seen.nodes)
        yield Hit("the nodes' hosts", f"whether a boot starts them is not seen: {units}")
