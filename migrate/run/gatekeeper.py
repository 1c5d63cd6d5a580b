"""Asked before every step: may the run go on, by clock, requests, windows and health?

It may only stop at parking points (`migrate.plan.parking`), else it goes on to the next one, in a new session too:
between the stop of the controllers and /controller's deletion the cluster has no controller, whatever the hour.  A
request that comes meanwhile is noted in the journal and obeyed at the next parking point.  A step that is half done is
never asked: to finish it is safer than to leave it.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, Protocol

from migrate.errors import (
    ClockJumped,
    PlanStopped,
    RunInterrupted,
    RunParked,
    WindowClosed,
)
from migrate.model.durations import Durations, Samples, durations_by, measured
from migrate.model.history import Event
from migrate.model.inventory import HealthPolicy, Playbook
from migrate.model.outcome import Readiness, Ready, Refused, Unknown
from migrate.model.plan import Plan, PlannedStep
from migrate.model.ports import Clock, Observer
from migrate.model.windows import local
from migrate.model.world import Need
from migrate.plan.parking import (
    GOES_ON,
    HYBRID_BEGINS,
    block,
    half_rolled_since,
    in_between,
    last_before,
    may_leave_while_waiting,
    may_park_before,
)
from migrate.plan.schedule import (
    NoRoom,
    half_rolled_too_long,
    lay_out,
    room,
    window_for,
    windows_of,
)
from migrate.run.interrupts import ParkRequest
from migrate.run.journal import Journal
from migrate.run.waits import Wait
from migrate.steps import gates

JUMP: Final = 60.0  # seconds by which the clock may differ from the time that passed
HEALTH: Final = frozenset({Need.LIVE, Need.ZOOKEEPER, Need.KRAFT, Need.SERVICES})


class Gatekeeper(Protocol):
    """What the engine asks.  Each method returns where the run may go on, and raises where it parks."""

    def before(self, planned: PlannedStep) -> None:
        """A step that is not begun is about to be looked at."""

    def still(self, planned: PlannedStep) -> None:
        """Its look is over and nothing of it is begun: may it act on that look?"""

    def while_waiting(self, planned: PlannedStep, *, begun: bool) -> None:
        """The step waits: for its gates, or (begun) for its proof."""


@dataclass(slots=True)
class RunGate:
    plan: Plan
    playbook: Playbook | Unknown
    folder: pathlib.Path
    journal: Journal
    clock: Clock
    observer: Observer
    listen: Callable[[Event], None]
    request: ParkRequest = field(default_factory=ParkRequest)
    until: str = ""  # the stage or step after which the run stops
    earlier: Samples = field(default_factory=dict)  # what other runs of this cluster measured
    _aged: bool = False
    _since: tuple[float, float] | None = None
    _postponed: str = ""  # what was asked for where the run may not park, as the journal says it

    # -- what the engine asks ----------------------------------------------------------------------------------------
    def before(self, planned: PlannedStep) -> None:
        """By clock, requests, windows and health, in this order: what is cheap and changes nothing first."""
        index = self._index(planned)
        if not may_park_before(self.plan.steps, index):
            self._postpone(index)
            return
        self._check_clock()
        self._check_requests(planned, index)
        self._check_window(planned, index)
        self._check_age(planned, index)
        if planned.restarts and self._check_health(planned):
            self._check_again(planned, index)

    def still(self, planned: PlannedStep) -> None:
        """What changed while the step looked, a minute perhaps: a request, the hour."""
        self.while_waiting(planned, begun=False)

    def while_waiting(self, planned: PlannedStep, *, begun: bool) -> None:
        index = self._index(planned)
        if begun:
            if may_leave_while_waiting(self.plan.steps, index):
                self._check_requests(planned, index)
        elif may_park_before(self.plan.steps, index):
            self._check_again(planned, index)
        else:
            self._postpone(index)

    def _check_again(self, planned: PlannedStep, index: int) -> None:
        """What changes while time passes: clock, requests, window."""
        self._check_clock()
        self._check_requests(planned, index)
        self._check_window(planned, index)

    # -- clock -------------------------------------------------------------------------------------------------------
    def _check_clock(self) -> None:
        now, passed = self.clock.now(), self.clock.monotonic()
        if self._since is None:
            last = max((event.time for event in self.journal.events), default=now)
            if now < last - JUMP:
                raise ClockJumped(
                    f"this host's clock is {last - now:.0f} s behind the journal's last line",
                    why="windows are decided by it, and one of the two times is wrong",
                )
        else:
            jump = (now - self._since[0]) - (passed - self._since[1])
            if abs(jump) > JUMP:
                raise ClockJumped(
                    f"this host's clock jumped by {jump:+.0f} s during the run",
                    why="windows are decided by it",
                )
        self._since = (now, passed)

    # -- requests ------------------------------------------------------------------------------------------------------
    def _check_requests(self, planned: PlannedStep, index: int) -> None:
        if self.request.by:
            self._park(planned, f"{self.request.by} asked for it", RunInterrupted)
        if self.until and index > last_before(self.plan.steps, self.until):
            later = "run the same command again without --until, or with a later one"
            self._park(planned, f"--until {self.until} asked for it", next_step=later)

    def _postpone(self, index: int) -> None:
        """Note what somebody asks for where the run may not park: it is obeyed at the next parking point."""
        if self.request.by and self._postponed != self.request.by:
            self._postponed = self.request.by
            after = index + len(block(self.plan.steps, index))
            where = f"before {self.plan.steps[after].id}" if after < len(self.plan.steps) else "at the plan's end"
            said = f"{self.request.by} asked to park: obeyed {where}, as the run may not park sooner"
            self._write("note", key="postponed", value=said)

    # -- windows -----------------------------------------------------------------------------------------------------
    def _check_window(self, planned: PlannedStep, index: int) -> None:
        playbook = self.playbook
        window = None if isinstance(playbook, Unknown) else window_for(self.plan, playbook, planned.stage)
        answer = room(window, block(self.plan.steps, index), self._durations(), self.clock.now())
        if isinstance(answer, NoRoom):
            error = RunParked if self._acted() else WindowClosed
            if answer.opens is None or window is None:
                come_back = "correct the window or the estimates in the playbook, then plan again"
            else:
                come_back = f"run the same command again from {local(window, answer.opens)} on"
            self._park(planned, answer.why, error, next_step=come_back)

    def _check_age(self, planned: PlannedStep, index: int) -> None:
        """No roll begins that would have to stand half done for too long; one that does already is told, once."""
        if isinstance(self.playbook, Unknown) or self.plan.kind.rolls_back:
            return
        limit = self.playbook.pace.hybrid_max_age
        steps = self.plan.steps
        began = half_rolled_since(steps, self.journal.events)
        if began is None and planned.kind == HYBRID_BEGINS:
            rest = steps[index:]
            windows = windows_of(self.playbook, [step.stage for step in rest])
            found = half_rolled_too_long(lay_out(rest, windows, self._durations(), self.clock.now()), limit)
            if found is not None:
                self._park(
                    planned,
                    f"the roll would park before {found.before} and remain half rolled or hybrid longer than "
                    f"hybrid_max_age allows ({limit / 3600:g} h): {found.why}",
                    RunParked if self._acted() else WindowClosed,
                    next_step="begin it where a longer row of windows follows, or let the playbook allow more",
                )
        elif began is not None and not self._aged and in_between(steps, index) and self.clock.now() - began > limit:
            self._aged = True
            age = (self.clock.now() - began) / 3600
            self._write(
                "note",
                key="hybrid-age",
                value=f"half rolled or hybrid for {age:.1f} h, longer than {limit / 3600:g} h: continue, or roll back",
            )

    # -- health ------------------------------------------------------------------------------------------------------
    def _check_health(self, planned: PlannedStep) -> bool:
        """So many good looks in a row, less the one that the step's own gate takes; did that take time?"""
        policy = HealthPolicy(1) if isinstance(self.playbook, Unknown) else self.playbook.health
        patience = 600.0 if isinstance(self.playbook, Unknown) else self.playbook.patience(planned.stage)
        wait, good = Wait(planned.id, self.clock, patience, self._write), 0
        while good < policy.samples - 1:
            found: Readiness = gates.replicas_full(self.observer.observe(HEALTH, {}))
            if isinstance(found, Ready):
                good += 1
                if good >= policy.samples - 1:
                    break
                self.clock.sleep(policy.interval)
            else:
                good = 0
                if wait.is_over(found):
                    reason = found.reason if isinstance(found, Refused | Unknown) else str(found)
                    raise PlanStopped(
                        f"the cluster's health does not allow the next restart: {reason}", where=f"step {planned.id}"
                    )
                self._check_requests(planned, self._index(planned))
        if policy.samples > 1:
            self.clock.sleep(policy.interval)  # the step's own look comes as long after the last of these
        return bool(good)

    # -- helpers -----------------------------------------------------------------------------------------------------
    def _index(self, planned: PlannedStep) -> int:
        return next(index for index, step in enumerate(self.plan.steps) if step.id == planned.id)

    def _durations(self) -> Durations:
        return durations_by(self.playbook, self.earlier, measured(self.journal.events))

    def _acted(self) -> bool:
        touched: set[str] = set()
        for event in reversed(self.journal.events):
            if event.name == "session":
                break
            if event.name in ("intend", "conclude"):
                touched.add(str(event.data["step"]))
        return any(step.actions for step in self.plan.steps if step.id in touched)

    def _park(
        self,
        planned: PlannedStep,
        why: str,
        error: type[RunParked | RunInterrupted | WindowClosed] = RunParked,
        *,
        next_step: str = "",
    ) -> NoReturn:
        left = GOES_ON.get(planned.kind)
        told = f"parked before {planned.id}: {why}" if left is None else f"parked in {planned.id}: {why}; {left}"
        raise error(told, next_step=next_step)

    def _write(self, name: str, **data: Any) -> None:
        self.listen(self.journal.append(self.clock.now(), name, data))
