"""Before a run's first effect: sudo allows every command that its steps will give on the nodes' hosts.

A right that is found missing between the stops of two brokers leaves a cluster half rolled in the middle of the night.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from migrate.errors import HostRightMissing, UnitNotUsable
from migrate.model.host_rights import HostRights
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.units import STOP_ADVICE, Unit, too_soon

# purposes of `migrate.hosts.host_needs` that only some kinds of steps have; every other one is any step's
ASIDE: Final = frozenset({"set-controller-aside", "set-metadata-aside"})
ONLY_FOR: Final[Mapping[str, frozenset[str]]] = {
    "format its storage": frozenset({"format-controller"}),
    "make the metadata directory": frozenset({"format-controller", "render-controller"}),
    "set its file aside": ASIDE,
    "set its metadata aside": ASIDE,
    "format its new directories": frozenset({"add-directories"}),
    "enable the unit": frozenset({"enable-at-boot"}),
    "disable the unit": frozenset({"disable-at-boot"}),
}


def require_host_rights(plan: Plan, rights: Mapping[NodeId, HostRights | Unknown]) -> None:
    """Return if nothing that the plan needs is refused; HostRightMissing names every refusal, and nothing was done.

    A host that does not answer is no refusal: each step looks at it again before it acts there.
    """
    kinds = frozenset(step.kind for step in plan.steps)
    refused = [
        (f"node {int(node)} on {found.host}: {entry.what}", entry.advice)
        for node, found in sorted(rights.items())
        if isinstance(found, HostRights)
        for entry in found.refused
        if entry.denied and any(_needed(purpose, kinds) for purpose in entry.purposes)
    ]
    if refused:
        raise HostRightMissing(
            "; ".join(what for what, _ in refused),
            where=plan.cluster,
            why="the run would stop at the first step that needs it, perhaps between two brokers: nothing was done",
            next_step="; ".join(dict.fromkeys(advice for _, advice in refused)),
        )


def require_units(cluster: str, units: Mapping[NodeId, Unit | Unknown] | Unknown) -> None:
    """Return if systemd kills no node before its shutdown has ended; UnitNotUsable names every unit that it would.

    A unit that cannot be seen is no refusal here: the step that stops it asks again.
    """
    seen = {} if isinstance(units, Unknown) else units
    wrong = [
        f"{unit.name} of node {int(node)} on {unit.host}: {problem}"
        for node, unit in sorted(seen.items())
        if isinstance(unit, Unit) and (problem := too_soon(unit.patience))
    ]
    if wrong:
        raise UnitNotUsable(
            "; ".join(wrong),
            where=cluster,
            why="the run would stop there, perhaps between two controllers: nothing was done",
            next_step=f"on each of these hosts {STOP_ADVICE}",
        )


def _needed(purpose: str, kinds: frozenset[str]) -> bool:
    return purpose not in ONLY_FOR or bool(ONLY_FOR[purpose] & kinds)
