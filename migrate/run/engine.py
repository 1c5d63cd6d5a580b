"""The engine: observe, check, intend, do, verify, conclude - for one step after the other.

After a kill, an intent without a conclusion is observed (done, half done, not begun, unknown), never simply redone.
What cannot be seen is looked for again for a while, then refused by name; what is seen to be wrong is refused at once.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

from migrate.checks import processes
from migrate.checks.problems import headline, problems
from migrate.errors import JournalUnwritable, MigrateError, PlanIsStale, PlanStopped
from migrate.model import strict_json
from migrate.model.durations import CANARIES
from migrate.model.history import Event, concluded
from migrate.model.ids import NodeId
from migrate.model.outcome import (
    AlreadyDone,
    Awaited,
    Failed,
    NotYet,
    Outcome,
    Readiness,
    Ready,
    Refused,
    Unknown,
    Verified,
)
from migrate.model.plan import Plan, PlannedStep
from migrate.model.ports import Clock, Effects, Lock, Observer
from migrate.model.stage import Stage
from migrate.model.step import HalfDone, NotBegun, Progress, Step
from migrate.model.views import KeptFiles, Quorum, Running
from migrate.model.world import BROKER, NOT_ASKED, Need, World
from migrate.observe.world import SLOW
from migrate.run import guards, repairs, snapshots
from migrate.run import journal as journals
from migrate.run.gatekeeper import Gatekeeper
from migrate.run.journal import Journal, Writer
from migrate.run.waits import Wait
from migrate.steps.churn import PASSING
from migrate.steps.look import CLOCK, HELD

BEGINS = "kraft-mode"  # the stage behind whose last step the soak begins


def reading(clock: Clock) -> dict[str, str | float]:
    return {"boot": clock.boot(), "at": round(clock.monotonic(), 3)}


def since_last_roll(events: Iterable[Event], clock: Clock) -> float | None:
    """Seconds since the last step of the second roll was concluded; None where this journal has no session yet.

    Where another run rolled the brokers, this journal proves dual write only since its own first session.
    """
    known = list(_readings(events))
    if not known:
        return None
    begin = max((number for number, (rolled, _, _) in enumerate(known) if rolled), default=0)
    here = clock.boot()
    ours = [at for _, boot, at in known[begin:] if boot == here]
    return max(0.0, clock.monotonic() - ours[0]) if ours else 0.0


def _readings(events: Iterable[Event]) -> Iterator[tuple[bool, str, float]]:
    """(is the end of a step of the second roll, boot, reading) of the events that carry one."""
    for event in events:
        rolled = event.name == "conclude" and event.data.get("stage") == BEGINS
        if (rolled or event.name == "session") and {"boot", "at"} <= event.data.keys():
            yield rolled, str(event.data["boot"]), float(event.data["at"])


class StepEffects(Effects, Protocol):
    """Effects that know which step they are part of, and where a test wants the process to die."""

    step: str

    def crash_point(self, label: str) -> None: ...
    def copies_of(self, node: NodeId, path: str) -> KeptFiles | Unknown: ...
    def keep_here(self, node: NodeId, path: str, content: bytes) -> Path: ...


@dataclass(frozen=True, slots=True)
class Machinery:
    observer: Observer
    effects: StepEffects
    journal: Journal
    lock: Lock
    clock: Clock
    patience: Callable[[Stage], float]  # seconds without progress that end a wait of that stage
    listen: Callable[[Event], None]
    gatekeeper: Gatekeeper


class Engine:
    """Carries out a plan; `run` returns when every step is concluded, and raises where it had to stop."""

    def __init__(self, plan: Plan, machinery: Machinery) -> None:
        self._plan = plan
        self._with = machinery
        self._done: set[str] = set()
        self._broker = ""  # that the step at hand is about
        self._passing: dict[str, frozenset[str]] = {}  # by gate: objects that were there in every look of the wait
        self._unbroken = machinery.clock.monotonic()  # since when the proof at hand has found nothing wrong

    def run(self) -> None:
        """All steps that are not concluded yet.

        Raises PlanStopped, PlanIsStale, PredictionFailed, NoProgress, lock errors; the journal says why.
        """
        events = self._with.journal.events
        self._done, begun = set(concluded(events)), journals.begun(events)
        resumed = any(event.name == "session" for event in events)
        self._write("session", pid=os.getpid(), host=socket.gethostname(), resumed=resumed, **reading(self._with.clock))
        try:
            self._steps(begun)
        except MigrateError as error:
            if self._with.journal.events[-1].name != "stop" and not isinstance(error, JournalUnwritable):
                self._write("stop", reason=str(error), code=error.id)
            raise
        self._write("end", target=self._plan.target.label, back=self._plan.kind.rolls_back)

    def _steps(self, begun: frozenset[str]) -> None:
        stage = ""
        for planned in self._plan.steps:
            if planned.id in self._done:
                continue
            if planned.stage.label != stage:
                stage = planned.stage.label
                self._write("stage", stage=stage)
            self._one(planned, guards.own_step(planned), begun=planned.id in begun)

    def _one(self, planned: PlannedStep, step: Step, *, begun: bool) -> None:
        self._with.effects.step, self._broker = planned.id, planned.params.get(BROKER, "")
        world, progress, readiness = self._wait_until_ready(planned, step, begun=begun)
        match readiness:
            case Ready():
                if isinstance(progress, NotBegun):
                    guards.check_binds(self._plan, planned, world)
                guards.check_files(self._plan, planned, world)
                self._with.lock.still_ours()
                snapshots.write(self._write, planned, world)
                self._write("intend", step=planned.id, stage=planned.stage.label, title=planned.title)
                step.do(world, self._with.effects)
            case AlreadyDone():
                pass
            case _:
                self._stop(planned, readiness)
        self._prove(planned, step)

    def _wait_until_ready(self, planned: PlannedStep, step: Step, *, begun: bool) -> tuple[World, Progress, Readiness]:
        """Look until the answer is one to act on: guards first, then how far the step got, then its own gates."""
        now = guards.Situation(self._plan, planned, frozenset(self._done), step.needs)
        needs = step.needs | guards.needs(planned) if step.needs else step.needs
        waiting, gatekeeper, asked = self._wait(planned, needs, step), self._with.gatekeeper, not begun
        if asked:
            gatekeeper.before(planned)
        if needs & SLOW:
            world = self._observe(guards.alone(now))
            self._files_there(planned, world)
            readiness = self._held(now, world)
            if isinstance(readiness, Refused):
                return world, NotBegun(), readiness

        def judge(world: World) -> tuple[Progress, Readiness]:
            progress = step.progress(world) if begun else NotBegun()
            readiness = self._held(now, world) if step.needs else Ready()
            return progress, _gate(step, world, progress) if isinstance(readiness, Ready) else readiness

        waits = False
        progress: Progress = NotBegun()
        while True:
            if waits and self._still_waits(waiting, step, needs, lambda world: judge(world)[1]):
                if isinstance(progress, NotBegun):
                    gatekeeper.while_waiting(planned, begun=False)
                continue
            world = self._with_repairs(planned, step, self._observe(needs))
            progress, readiness = judge(world)
            if isinstance(progress, NotBegun) and not asked:  # killed between its intent and its first effect
                asked = True
                gatekeeper.before(planned)
                continue
            self._keep_passing(readiness)
            waits = isinstance(readiness, NotYet | Awaited)
            if waits and not begun:  # of a step that has begun, what it stopped itself is none
                waiting.problem = headline([entry for entry in problems(world) if not entry.passes])
            if waiting.is_over(readiness):
                if isinstance(progress, NotBegun) and isinstance(readiness, Ready):
                    gatekeeper.still(planned)
                return world, progress, readiness
            if isinstance(progress, NotBegun):
                gatekeeper.while_waiting(planned, begun=False)

    def _held(self, now: guards.Situation, world: World) -> Readiness:
        """The guards' answer; where the plan is stale, it names what is down, which not every step looks at."""
        try:
            return guards.hold(now, world)
        except PlanIsStale:
            if world.services == NOT_ASKED:
                services = self._observe(frozenset({Need.SERVICES})).services
                return guards.hold(now, replace(world, services=services))
            raise

    def _with_repairs(self, planned: PlannedStep, step: Step, world: World) -> World:
        """The same world, where a person repaired the file of a node that did not start; the journal says it first.

        Raises PlanIsStale where what was changed is no repair, or a file is gone.
        """
        left = self._files_there(planned, world)
        wanted = repairs.planned_files(self._plan, planned, left)
        before = repairs.started(self._with.journal.events, planned.id)
        for entry in repairs.due(wanted, step, world, before):
            seen = self._observe(step.needs | repairs.needs(self._plan))
            found = repairs.judge(self._plan, planned, step, seen, entry, self._with.clock.now())
            if found is not None:
                self._write("note", key=found.key, value=found.value)
                world = replace(world, facts=self._facts())
        return world

    def _files_there(self, planned: PlannedStep, world: World) -> Mapping[str, str]:
        """What the steps so far have left of each file; PlanIsStale where one is gone, with what puts it back."""
        left = guards.left_by(guards.Situation(self._plan, planned, frozenset(self._done), frozenset()))
        for node, wanted in repairs.gone(self._plan, planned, left, world):
            files = {one: world.inventory.node(one).config for one in (world.inventory.brokers[0].id, node)}
            kept = {one: self._with.effects.copies_of(one, path) for one, path in files.items()}
            keep = partial(self._with.effects.keep_here, node, files[node])
            raise repairs.is_gone(self._plan, planned, world, node, wanted, kept, keep)
        return left

    def _still_waits(
        self, waiting: Wait, step: Step, needs: frozenset[Need], judge: Callable[[World], Readiness | Outcome]
    ) -> bool:
        """Does a narrow look say that the wait goes on?  It decides nothing else: a full look does."""
        narrow = step.waits_for & needs
        if not narrow or narrow == needs or waiting.wants_full_look:
            return False
        return waiting.goes_on(judge(self._observe(narrow)))

    def _prove(self, planned: PlannedStep, step: Step) -> None:
        self._with.effects.crash_point(f"proof:{planned.id}")
        waiting, broken = self._wait(planned, step.proof_needs, step), True
        faults = Faults(planned, self._write, journals.notes(self._with.journal.events))
        lives: dict[int, int] = {}
        while True:
            if self._still_waits(waiting, step, step.proof_needs, step.verify):
                self._with.gatekeeper.while_waiting(planned, begun=True)
                continue
            if broken:
                self._unbroken = self._with.clock.monotonic()
            world = self._observe(step.proof_needs)
            outcome = step.verify(world)
            for node, pid in _pids(step, world):
                if lives.setdefault(node, pid) != pid:
                    lives[node] = pid
                    waiting.went_down(processes.ends_again(world.inventory, node))
            self._keep_passing(outcome)
            broken = not faults.look(world, outcome)
            anew = broken and planned.kind in CANARIES and isinstance(outcome, Verified)  # restarted just before
            if not anew and waiting.is_over(outcome):
                break
            self._with.gatekeeper.while_waiting(planned, begun=True)
        snapshots.write(self._write, planned, world)
        if not isinstance(outcome, Verified | AlreadyDone):
            self._files_there(planned, world)
            self._stop(planned, outcome)
        if waiting.was_down:  # perhaps until somebody repaired its file
            world = self._with_repairs(planned, step, world)
        if planned.expects:
            needed = snapshots.needed_for(planned)
            guards.check_expectations(planned, world if needed <= step.proof_needs else self._observe(needed))
        self._conclude(planned, outcome, reason="")
        self._done.add(planned.id)

    def _keep_passing(self, found: Readiness | Outcome) -> None:
        """Keep what a gate waits for, for its next look; any other answer begins anew."""
        if isinstance(found, NotYet) and found.gate:
            self._passing[found.gate] = found.objects
        else:
            self._passing.clear()

    def _wait(self, planned: PlannedStep, needs: frozenset[Need], step: Step) -> Wait:
        patience, dear = self._with.patience(planned.stage), not needs <= step.waits_for
        return Wait(planned.id, self._with.clock, patience, self._write, dear=dear)

    def _stop(self, planned: PlannedStep, outcome: Outcome | Readiness) -> NoReturn:
        reason = _reason(outcome)
        self._conclude(planned, outcome, reason=reason)
        codes = list(outcome.codes) if isinstance(outcome, Refused) else []
        self._write("stop", reason=reason, code=",".join(codes))
        next_step = outcome.next_step if isinstance(outcome, Failed) else ""
        told = f" ({', '.join(codes)})" if codes else ""
        raise PlanStopped(
            f"{type(outcome).__name__.lower()}: {reason}{told}", where=f"step {planned.id}", next_step=next_step
        )

    def _conclude(self, planned: PlannedStep, outcome: Readiness | Outcome, *, reason: str) -> None:
        said = outcome if isinstance(outcome, Verified) else Verified()
        evidence = [outcome.how] if isinstance(outcome, AlreadyDone) else [*said.evidence]
        evidence += repairs.told(journals.notes(self._with.journal.events), planned.id)
        data = {
            "step": planned.id,
            "stage": planned.stage.label,
            "kind": planned.kind,
            "outcome": type(outcome).__name__,
        }
        self._write(
            "conclude", **data, reason=reason, evidence=evidence, left=[*said.left], **reading(self._with.clock)
        )

    def _observe(self, needs: Any) -> World:
        return self._with.observer.observe(needs, self._facts())

    def _facts(self) -> Mapping[str, str]:
        events = self._with.journal.events
        found = journals.notes(events)
        found |= {BROKER: self._broker} if self._broker else {}
        elapsed = since_last_roll(events, self._with.clock)
        if elapsed is not None:
            found["soak_elapsed"] = f"{elapsed:.1f}"
        found |= {PASSING + gate: "\n".join(sorted(objects)) for gate, objects in self._passing.items()}
        found[HELD] = f"{self._with.clock.monotonic() - self._unbroken:.1f}"
        return found

    def _write(self, name: str, **data: Any) -> None:
        self._with.listen(self._with.journal.append(self._with.clock.now(), name, data))


def _gate(step: Step, world: World, progress: Progress) -> Readiness:
    """What a step asks for: everything at its beginning, what its own half has left afterwards."""
    match progress:
        case NotBegun():
            return step.check(world)
        case HalfDone():
            return step.resume(world)
        case found:
            return found


def _pids(step: Step, world: World) -> Iterator[tuple[int, int]]:
    """The processes that run of the nodes that a step starts."""
    states = {} if isinstance(world.services, Unknown) else world.services
    for node in step.starts(world):
        if isinstance(state := states.get(NodeId(node)), Running):
            yield node, state.pid


def _reason(outcome: object) -> str:
    match outcome:
        case Refused(reason=reason) | Unknown(reason=reason) | Failed(reason=reason):
            return reason
        case _:
            return str(outcome)


FAULT: Final = "fault"  # the event
SOAKS: Final = frozenset({*CANARIES, "soak"})
BEGAN, ENDED, HAPPENED = "began", "ended", "happened"


class Faults:
    """The faults of one step's proof, written as they begin, end or happen; any other step than a soak has none.

    A fault is a look in which something does not hold.  A restart or a failover may come and go between two looks: it
    is seen by what it leaves behind, a new incarnation or leader epoch.  A canary's time begins anew behind each; the
    last soak lasts for days, so there each is named and must be over at its end.
    """

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
