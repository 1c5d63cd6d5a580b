"""A run behind its gatekeeper, on the cluster in memory: with a playbook, a clock, and somebody who asks it to park."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import MigrateError, RunInterrupted
from migrate.model.history import Event
from migrate.model.inventory import Playbook
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.windows import Window
from migrate.model.world import Need, World
from migrate.plan.build import build
from migrate.report.plan_json import plan_to_json
from migrate.run import journal as journals
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.engine import Engine, Machinery
from migrate.run.gatekeeper import RunGate
from migrate.run.interrupts import ParkRequest
from migrate.run.journal import Journal
from tests.run.test_engine import PLANNED_ON, NoLock
from tests.testing import worlds
from tests.testing.simulated import FakeClock, KillAt, SimulatedCluster, as_asked

EVENING = dt.datetime(2026, 12, 7, 21, tzinfo=dt.UTC).timestamp()  # a Monday
HOUR = 3600.0


@dataclass(slots=True)
class JumpingClock(FakeClock):
    """A clock that can be set: the time of day moves, the time that passed does not.  `slept` is told of sleeps."""

    set_by: float = 0.0
    slept: Callable[[], object] = lambda: None

    def now(self) -> float:
        """The time of day."""
        return self.time + self.set_by

    def sleep(self, seconds: float) -> None:
        """Let them pass, and tell."""
        self.time += seconds
        self.slept()


@dataclass(slots=True)
class Gated:
    """One run, any number of sessions.  `each_look` is called before every look at the cluster."""

    folder: Path
    playbook: Playbook
    cluster: SimulatedCluster = field(default_factory=SimulatedCluster.in_zookeeper_mode)
    clock: JumpingClock = field(default_factory=lambda: JumpingClock(EVENING))
    request: ParkRequest = field(default_factory=ParkRequest)
    until: str = ""
    target: Stage = Stage.SOAK
    node_seconds: float = 0.0
    stops: list[float] = field(default_factory=list)  # seconds of the first stops, instead
    each_look: Callable[[], None] = lambda: None
    plan: Plan | None = None
    said: list[Event] = field(default_factory=list)

    def planned(self) -> Plan:
        """The plan, made once."""
        if self.plan is None:
            world = self.cluster.observe(PLANNED_ON, {})
            self.plan = build(world, self.playbook, target=self.target, only=False, created=self.clock.now())
        return self.plan

    def observe(self, needs: frozenset[Need], facts: Any) -> World:
        """Look at the cluster."""
        self.each_look()
        return as_asked(self.cluster.observe(needs, facts), needs)

    def stop(self, node: Any, timeout: float) -> None:
        """Restarts take their time here."""
        self.clock.time += self.stops.pop(0) if self.stops else self.node_seconds
        self.cluster.stop(node, timeout)

    def concluded(self, step: str) -> bool:
        """Is that step in the journal as concluded?"""
        return step in [event.data["step"] for event in self.named("conclude")]

    def session(self) -> tuple[Event, ...]:
        """One `apply`; the journal's events."""
        plan, path = self.planned(), self.folder / "journal.jsonl"
        begun = Journal.resume(path) if path.exists() else Journal.begin(path, self.clock.now(), {"plan": "p"})
        hands = Hands(
            self.cluster,
            _Slow(self),
            lambda: self.cluster,
            self.cluster.drive,
            not_storing=self.cluster.not_storing,
        )
        effects = JournaledEffects(hands, begun, NoLock(), self.clock, self.folder, KillAt())  # type: ignore[arg-type] # counts points as the real one does
        gate = RunGate(
            plan, self.playbook, self.folder, begun, self.clock, self, self.said.append, self.request, self.until
        )
        machinery = Machinery(
            self, effects, begun, NoLock(), self.clock, self.playbook.patience, self.said.append, gate
        )
        try:
            Engine(plan, machinery).run()
        finally:
            begun.close()
        return begun.events

    @property
    def events(self) -> tuple[Event, ...]:
        """The journal."""
        return journals.read(self.folder / "journal.jsonl").events

    def named(self, name: str) -> list[Event]:
        """The journal's events of that name."""
        return [event for event in self.events if event.name == name]

    def stopped(self) -> list[str]:
        """The nodes that were stopped, in order."""
        return [entry.removeprefix("stop ") for entry in self.cluster.done if entry.startswith("stop")]


class _Slow:
    """The cluster's service control, with stops that take time."""

    def __init__(self, run: Gated) -> None:
        self._run = run

    def __getattr__(self, name: str) -> Any:
        return self._run.stop if name == "stop" else getattr(self._run.cluster, name)


def bound(window: Window, **changes: Any) -> Playbook:
    """The healthy worlds' playbook with that default window."""
    return replace(worlds.playbook(), windows={"default": window}, **changes)


def gated(tmp_path: Path, **changes: object) -> Gated:
    """A run that nothing binds, but for the changes to its playbook."""
    return Gated(tmp_path, replace(worlds.playbook(), **changes))  # type: ignore[arg-type]


def refused(run: Gated, error: type[MigrateError]) -> MigrateError:
    """A session that ends so, and what it said; the journal has it as its last line."""
    before = list(run.cluster.done)
    with pytest.raises(error) as caught:
        run.session()
    last = run.events[-1]
    assert (last.name, last.data["code"]) == ("stop", caught.value.id)
    assert caught.value.next_step
    run.cluster.done[: len(before)] = before
    return caught.value


def parked_behind_broker_0(folder: Path) -> Gated:
    """A run that Ctrl-C parked behind the first broker of the first roll; its plan lies beside its journal."""
    folder.mkdir()
    run = Gated(folder, worlds.playbook())

    def look() -> None:
        if run.stopped() == ["0"]:
            run.request.by = "Ctrl-C"

    run.each_look = look
    with pytest.raises(RunInterrupted):
        run.session()
    (folder / "plan.json").write_text(plan_to_json(run.planned()))
    return run
