"""Before a run's first effect: the host programs take every command that a plan gives, forward and back.

A right that is found missing between the stops of two brokers leaves a cluster half rolled in the middle of the night.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrate.errors import HostRightMissing, UnitNotUsable
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.rights import HostRights, denied
from migrate.model.units import Unit, unfit


def require_host_rights(plan: Plan, rights: Mapping[NodeId, HostRights | Unknown]) -> None:
    """Return if no host refuses a command; HostRightMissing names every refusal, and nothing was done.

    A host that does not answer is no refusal: each step looks at it again before it acts there.
    """
    refused = list(denied(rights))
    if refused:
        raise HostRightMissing(
            "; ".join(what for what, _ in refused),
            where=plan.cluster,
            why="the run would stop at the first step that needs it, perhaps between two brokers: nothing was done",
            next_step="; ".join(dict.fromkeys(advice for _, advice in refused)),
        )


def require_units(cluster: str, units: Mapping[NodeId, Unit | Unknown] | Unknown) -> None:
    """Return if a run can stop and start every unit; UnitNotUsable names each that it cannot, and why.

    A unit that cannot be seen is no refusal here: the step that stops it asks again.
    """
    seen = {} if isinstance(units, Unknown) else units
    wrong = [
        (f"{unit.name} of node {int(node)} on {unit.host}: {problem}", advice)
        for node, unit in sorted(seen.items())
        if isinstance(unit, Unit)
        for _, problem, advice in unfit(unit)
    ]
    if wrong:
        raise UnitNotUsable(
            "; ".join(what for what, _ in wrong),
            where=cluster,
            why="the run would stop there, perhaps between two controllers: nothing was done",
            next_step=f"on each of these hosts {'; '.join(dict.fromkeys(advice for _, advice in wrong))}",
        )
