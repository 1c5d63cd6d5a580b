"""One node's unit as systemd and its host tell it: the look that every refusal of a unit rests on."""

from __future__ import annotations

from dataclasses import replace

from migrate.errors import MigrateError, UnitNotUsable
from migrate.hosts import commands
from migrate.hosts.runner import Runner
from migrate.hosts.systemd import SystemdServices
from migrate.hosts.unit_access import access_of
from migrate.hosts.unit_faults import faults_of, reload_due, restarts_halted, user_of
from migrate.model import strict_json
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.units import Unit

Node = BrokerNode | ControllerNode


def unit_of(services: SystemdServices, runner: Runner, inventory: Inventory, node: Node) -> Unit | Unknown:
    """Whether a run can stop and start it, and whether its user has access to what it needs; nothing is changed."""
    try:
        shown, unit = services.properties(node.id), services.unit(node.id)
        neighbours = [int(other.id) for other in inventory.nodes if other.host == node.host and other.id != node.id]
        return replace(
            unit,
            reload_due=reload_due(shown),
            faults=tuple(faults_of(shown, node.config, neighbours)),
            user=user_of(shown),
            restarts_halted=restarts_halted(shown),
            access=_access(runner, node),
        )
    except UnitNotUsable as error:  # not there, or masked: what it says of itself
        return Unit(node.host, node.unit, None, "", Unknown(error.what), faults=(error.what,))
    except MigrateError as error:
        return Unknown(f"{error.id} {error}")


def _access(runner: Runner, node: Node) -> tuple[tuple[str, str], ...] | Unknown:
    done = runner.run(commands.facts(node.id))
    if done.code:
        return Unknown(f"{runner.host} did not look as the unit's user: {done.says or done.code}")
    try:
        return tuple(access_of(strict_json.loads(done.output, surrogates=True), node))
    except (ValueError, TypeError) as error:
        return Unknown(f"{runner.host} gave no answer that can be read: {error}")
