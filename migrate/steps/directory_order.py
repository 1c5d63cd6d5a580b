"""Which directories stood in the metadata log before a broker's KRaft registration: noted, and proven in every run.

Offsets tell the order: the look before the broker's stop stands at one, and the record of its KRaft registration has
its own (a registration's broker epoch is that record's offset).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.world import World
from migrate.steps import churn

NOTE = re.compile(r"(\d+) of (\d+) at metadata offset (\d+)")
UNREPORTED = (ReplicaState.MIGRATING, ReplicaState.UNASSIGNED)


@dataclass(frozen=True, slots=True)
class Before:
    """What the last look before the stop saw: `assigned` of `replicas` had their directory, at that offset."""

    assigned: int
    replicas: int
    offset: int


def key(broker: int) -> str:
    """The note's key."""
    return f"assigned-before:{broker}"


def note(broker: int, world: World, effects: Effects, *, driven: bool) -> None:
    """Keep what the metadata says now, while the broker's registration is still that of its ZooKeeper life.

    Under policy drive the gate lets topics pass that clients are creating or deleting: they are not counted.
    """
    if isinstance(world.ledger, Unknown) or isinstance(world.kraft, Unknown):
        return
    registration = world.kraft.brokers.get(NodeId(broker))
    if registration is None or not registration.migrating:
        return  # it is in KRaft mode already: what it reported itself is no proof of an order
    rows = [row for row in world.ledger.of(broker) if not (driven and churn.comes_and_goes(world, row))]
    assigned = sum(row.state is ReplicaState.VERIFIED for row in rows)
    effects.note(key(broker), f"{assigned} of {len(rows)} at metadata offset {world.ledger.offset}")


def noted(broker: int, world: World) -> Before | None:
    """The note, read back; None where this run has none."""
    found = NOTE.fullmatch(world.facts.get(key(broker), ""))
    return None if found is None else Before(*map(int, found.groups()))


def kept(broker: int, world: World, *, driven: bool) -> Readiness:
    """The broker registered behind what was noted; under policy drive all its directories stood there by then."""
    before = noted(broker, world)
    if before is None:
        return Ready()
    if isinstance(world.kraft, Unknown):
        return world.kraft
    registration = world.kraft.brokers.get(NodeId(broker))
    if registration is not None and registration.epoch <= before.offset:
        return Refused(
            f"broker {broker} registered in KRaft mode at offset {registration.epoch}, before its directories were "
            f"seen in the log (offset {before.offset})"
        )
    if driven and before.assigned < before.replicas:
        missing = before.replicas - before.assigned
        return Refused(f"{missing} of {before.replicas} directories of broker {broker} were not in the log before it")
    return Ready()


def evidence(broker: int, world: World) -> tuple[str, ...]:
    """One line: what was there before, and what came after it: by the broker's own reports, unless others sent it."""
    before = noted(broker, world)
    if before is None or isinstance(world.kraft, Unknown) or isinstance(world.ledger, Unknown):
        return ()
    registration = world.kraft.brokers.get(NodeId(broker))
    if registration is None:
        return ()
    left = len(world.ledger.of(broker)) - before.assigned
    rest = "none was left" if left <= 0 else f"the other {left} came after it"
    return (
        (
            f"{before.assigned} of {before.replicas} directories of broker {broker} were in the log at offset "
            f"{before.offset}, before its KRaft registration at offset {registration.epoch}; {rest}"
        ),
    )
