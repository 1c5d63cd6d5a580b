"""What was amiss while a soak lasted, with its time: of a canary's soak and of the last one, by one rule.

A fault is a look in which something does not hold.  A restart or a failover may come and go between two looks: it is
told by what it leaves behind, a new incarnation or leader epoch, also where nobody looked for a while.  A canary's time
begins anew behind each; the last soak lasts for days, so there each is named and must be over at its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from migrate.model import strict_json
from migrate.model.outcome import Failed, NotYet, Outcome, Refused, Unknown
from migrate.model.plan import PlannedStep
from migrate.model.views import Quorum
from migrate.model.world import World
from migrate.plan.schedule import CANARIES
from migrate.steps.canary import CLOCK

FAULT: Final = "fault"  # the event
SOAKS: Final = frozenset({*CANARIES, "soak"})
BEGAN, ENDED, HAPPENED = "began", "ended", "happened"


class Writer(Protocol):
    """Appends an event."""

    def __call__(self, name: str, **data: Any) -> None:
        """Write it."""


class Faults:
    """The faults of one step's proof, written as they begin, end or happen; any other step than a soak has none."""

    def __init__(self, planned: PlannedStep, write: Writer, notes: Mapping[str, str]) -> None:
        self._step, self._write, self._soaks = planned.id, write, planned.kind in SOAKS
        self._key = f"marks:{planned.id}"
        self._marks: dict[str, str] = strict_json.mapping(notes.get(self._key, "{}"))
        self._amiss = ""
        self._passing = False  # did the last look find what may be a topic in creation or deletion?

    def look(self, world: World, outcome: Outcome) -> bool:
        """Does everything hold in this look, and has nothing been restarted since the last one?"""
        amiss = _amiss(outcome)
        if not self._soaks:
            return not amiss
        passing = isinstance(outcome, NotYet) and bool(outcome.gate)
        told = "" if passing and not self._passing else amiss  # what clients make and delete is gone in the next look
        self._passing = passing
        if told and not self._amiss:
            self._tell(BEGAN, told)
        elif self._amiss and not told:
            self._tell(ENDED, self._amiss)
        self._amiss = told
        return not (self._moved(world) or amiss)

    def _moved(self, world: World) -> bool:
        found = marks(world)
        moved = {name: mark for name, mark in found.items() if self._marks.get(name, mark) != mark}
        for name, mark in moved.items():
            self._tell(HAPPENED, f"{name}: {self._marks[name]}, now {mark}")
        if found.items() - self._marks.items():
            self._marks.update(found)
            self._write("note", key=self._key, value=json.dumps(self._marks, sort_keys=True))
        return bool(moved)

    def _tell(self, state: str, what: str) -> None:
        self._write(FAULT, step=self._step, state=state, what=what)


def _amiss(outcome: Outcome) -> str:
    """What does not hold; "" where a look found nothing, and only time is waited for."""
    match outcome:
        case NotYet(what=what, owner=owner):
            return "" if owner == CLOCK else what
        case Refused(reason=reason) | Unknown(reason=reason) | Failed(reason=reason):
            return reason
        case _:
            return ""


def marks(world: World) -> dict[str, str]:
    """What a restart or a failover changes for good, by what it is of; what cannot be seen has no mark."""
    found: dict[str, str] = {}
    if not isinstance(world.live, Unknown) and isinstance(world.live.quorum, Quorum):
        quorum = world.live.quorum
        found["active controller"] = f"{int(quorum.leader)} in epoch {quorum.leader_epoch}"
    if not isinstance(world.kraft, Unknown):
        found |= {f"start of broker {int(node)}": one.incarnation for node, one in world.kraft.brokers.items()}
        found |= {f"start of controller {int(node)}": one.incarnation for node, one in world.kraft.controllers.items()}
    return found
