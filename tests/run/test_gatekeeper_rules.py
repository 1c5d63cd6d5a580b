"""What the gatekeeper asks before one step, rule by rule; whole runs are in `test_gatekeeper`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import (
    ClockJumped,
    MigrateError,
    NoProgress,
    RunInterrupted,
    RunParked,
    WindowClosed,
)
from migrate.model.history import Event
from migrate.model.inventory import HealthPolicy, Pace, Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import Direction, Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.step import Action
from migrate.model.windows import Dated, Window
from migrate.model.world import Need, World
from migrate.run.gatekeeper import RunGate
from migrate.run.interrupts import ParkRequest
from migrate.run.journal import Journal
from tests.run.gated import EVENING, HOUR, Gated, JumpingClock
from tests.steps.looks import unhealthy
from tests.testing import worlds

WELL = worlds.world_at(Stage.PREPARE)
OPEN = Window("default", "UTC", (Dated("2026-12-07T20:00", "2026-12-08T04:00"),), (), 0.0)
SHUT = replace(OPEN, allow=(Dated("2026-12-09T20:00", "2026-12-10T04:00"),))
PLANS: dict[float, Plan] = {}


def planned(soak: float = 0.0) -> Plan:
    """The whole way forward; with a watch behind the canaries where `soak` says so."""
    if soak not in PLANS:
        playbook = replace(worlds.playbook(), canary_soak=soak)
        PLANS[soak] = Gated(Path(), playbook, target=Stage.CLEANUP).planned()
    return PLANS[soak]


@dataclass
class Gate:
    """A gatekeeper over a real journal, on a clock and a cluster that stand as the test sets them."""

    folder: Path
    playbook: Playbook | Unknown = field(default_factory=worlds.playbook)
    plan: Plan = field(default_factory=planned)
    clock: JumpingClock = field(default_factory=lambda: JumpingClock(EVENING))
    looks: list[float] = field(default_factory=list)  # when the cluster was looked at
    sick: set[int] = field(default_factory=set)  # the numbers of the looks that find a replica missing
    at_look: Callable[[int], object] = lambda _: None
    said: list[Event] = field(default_factory=list)
    request: ParkRequest = field(default_factory=ParkRequest)

    def __post_init__(self) -> None:
        """Begin the journal."""
        self.journal = Journal.begin(self.folder / "journal.jsonl", EVENING, {"plan": "p"})
        self.gate = self.session()

    def session(self) -> RunGate:
        """A gatekeeper of a new session."""
        return RunGate(
            self.plan, self.playbook, self.folder, self.journal, self.clock, self, self.said.append, self.request
        )

    def observe(self, needs: frozenset[Need], _: Any) -> World:
        """Look at the cluster."""
        assert Need.LIVE in needs
        self.looks.append(self.clock.now())
        self.at_look(len(self.looks))
        return unhealthy(WELL) if len(self.looks) in self.sick else WELL

    def step(self, name: str) -> PlannedStep:
        """By its id."""
        (found,) = [step for step in self.plan.steps if step.id == name]
        return found

    def before(self, name: str) -> None:
        """That step is about to begin."""
        self.gate.before(self.step(name))

    def write(self, name: str, **data: str) -> None:
        """A line of the journal."""
        self.journal.append(self.clock.now(), name, data)

    def told(self, name: str) -> list[Event]:
        """What was said by that name."""
        return [event for event in self.said if event.name == name]

    def parked(self, name: str, error: type[MigrateError] = RunParked) -> str:
        """Why the run parks before that step."""
        with pytest.raises(error) as caught:
            self.before(name)
        return caught.value.what


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    """Nothing binds it."""
    return Gate(tmp_path)


def bound(folder: Path, window: Window = OPEN, **changes: Any) -> Gate:
    """With that default window."""
    folder.mkdir(exist_ok=True)
    return Gate(folder, replace(worlds.playbook(), windows={"default": window}, **changes))


RESTART, COPY, BACK_UP = "migration-mode/1", "copy/copy", "prepare/back-up-broker-1"
LAST_FINALIZE = "finalize/3-of-3"


# -- the clock -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("back", "stops"), [(60.0, False), (60.5, True), (-HOUR, False)])
def test_a_session_begins_no_more_than_a_minute_before_the_journals_last_line(
    gate: Gate, back: float, stops: bool
) -> None:
    """The last of them, whatever the first one says; later is what it always is."""
    gate.clock.time += 2 * HOUR
    gate.write("note", key="k", value="v")
    gate.clock.time -= back
    if stops:
        assert "is 60 s behind the journal's last line" in gate.parked(BACK_UP, ClockJumped)
    else:
        gate.before(BACK_UP)


@pytest.mark.parametrize("jump", [60.0, -60.0, 60.5, -60.5])
def test_a_clock_may_be_set_by_a_minute_and_no_more(gate: Gate, jump: float) -> None:
    """However long the run has gone on meanwhile, and each time anew."""
    gate.before(BACK_UP)
    for _ in range(2):
        gate.clock.time += 5 * HOUR
        gate.clock.set_by += jump
        if abs(jump) > 60.0:
            assert f"jumped by {jump:+.0f} s" in gate.parked(BACK_UP, ClockJumped)
            break
        gate.before(BACK_UP)


def test_a_clock_that_is_set_while_a_step_looks_stops_it_before_it_acts(gate: Gate) -> None:
    """A look may take a minute."""
    gate.before(BACK_UP)
    gate.clock.set_by = HOUR
    with pytest.raises(ClockJumped):
        gate.gate.still(gate.step(BACK_UP))


# -- requests ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("step", [BACK_UP, RESTART, "finalize/1-of-3", "cleanup/prove-final"])
def test_who_asks_to_park_is_obeyed_before_a_step(gate: Gate, step: str) -> None:
    """By its name."""
    for by in ("Ctrl-C", "SIGHUP"):
        gate.request.by = by
        assert gate.parked(step, RunInterrupted) == f"parked before {step}: {by} asked for it"
    gate.request.by = ""
    gate.before(step)


@pytest.mark.parametrize(
    ("step", "where"), [(COPY, "before hybrid/hybrid"), (LAST_FINALIZE, "before cleanup/release-zookeeper")]
)
def test_what_is_asked_where_the_run_may_not_park_is_noted_once_and_obeyed_later(
    gate: Gate, step: str, where: str
) -> None:
    """Before the step, behind its look, and while it waits; the note names who asked and where it parks."""
    gate.before(step)
    assert gate.said == []
    gate.request.by = "Ctrl-C"
    gate.before(step)
    gate.gate.still(gate.step(step))
    gate.gate.while_waiting(gate.step(step), begun=False)
    (note,) = gate.told("note")
    assert note.data == {
        "key": "postponed",
        "value": f"Ctrl-C asked to park: obeyed {where}, as the run may not park sooner",
    }


def test_at_the_end_of_a_plan_there_is_no_next_step_to_park_before(tmp_path: Path) -> None:
    """The plan ends with the block."""
    plan = planned()
    index = next(index for index, step in enumerate(plan.steps) if step.id == LAST_FINALIZE)
    gate = Gate(tmp_path, plan=replace(plan, steps=plan.steps[: index + 1]))
    gate.request.by = "Ctrl-C"
    gate.before(LAST_FINALIZE)
    assert "obeyed at the plan's end" in gate.told("note")[0].data["value"]


def test_what_is_asked_for_by_until_binds_only_behind_it(gate: Gate) -> None:
    """Also where the plan is past it already; a step that is named is done itself."""
    gate.gate.until = "soak"
    for step in (BACK_UP, RESTART, COPY, "hybrid/hybrid", "soak/soak"):
        gate.before(step)
    assert gate.parked("finalize/1-of-3") == "parked before finalize/1-of-3: --until soak asked for it"
    gate.gate.until = RESTART
    gate.before(RESTART)
    gate.before(COPY)
    assert "--until migration-mode/1 asked for it" in gate.parked("soak/soak")
    assert gate.told("note") == []


# -- while a step waits ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("step", [COPY, "soak/soak"])
def test_a_step_that_changes_nothing_can_be_left_while_it_waits(gate: Gate, step: str) -> None:
    """What continues without the run is said."""
    gate.request.by = "Ctrl-C"
    with pytest.raises(RunInterrupted) as caught:
        gate.gate.while_waiting(gate.step(step), begun=True)
    left = "; the controllers make the copy by themselves, whether it is watched or not" if step == COPY else ""
    told = f"parked {'in' if left else 'before'} {step}: Ctrl-C asked for it{left}"
    assert caught.value.what == told


def test_a_restart_under_way_is_not_left(gate: Gate) -> None:
    """Whoever asks."""
    gate.request.by = "Ctrl-C"
    gate.gate.while_waiting(gate.step(RESTART), begun=True)
    with pytest.raises(RunInterrupted):
        gate.gate.while_waiting(gate.step(RESTART), begun=False)


def test_a_step_that_waits_for_its_gates_asks_the_hour_again(tmp_path: Path) -> None:
    """It may have come to an end meanwhile; so may the look before an act."""
    gate = bound(tmp_path)
    gate.before(BACK_UP)
    gate.clock.time += 8 * HOUR
    with pytest.raises(WindowClosed):
        gate.gate.while_waiting(gate.step(BACK_UP), begun=False)
    with pytest.raises(WindowClosed):
        gate.gate.still(gate.step(BACK_UP))


def test_an_unknown_playbook_asks_for_nothing_that_only_it_could_name(tmp_path: Path) -> None:
    """No window, one look before a restart: other guards say that it is unknown."""
    gate = Gate(tmp_path, Unknown("no playbook"))
    for step in (BACK_UP, RESTART, "migration-mode/0"):
        gate.before(step)
    assert gate.looks == []
    gate.request.by = "Ctrl-C"
    gate.parked(RESTART, RunInterrupted)


# -- windows ---------------------------------------------------------------------------------------------------------
def test_outside_of_its_window_nothing_begins_and_it_is_said_when_to_come_back(tmp_path: Path) -> None:
    """A run that changed something parks, one that did not has done nothing: two exit codes."""
    gate = bound(tmp_path, SHUT)
    with pytest.raises(WindowClosed) as caught:
        gate.before(BACK_UP)
    assert caught.value.next_step == "run the same command again from Wed 2026-12-09 20:00 UTC on"
    gate.write("intend", step="assess/assess")
    gate.parked(BACK_UP, WindowClosed)
    gate.write("intend", step="prepare/back-up-broker-0")
    gate.parked(BACK_UP, RunParked)
    gate.write("session")
    gate.parked(BACK_UP, WindowClosed)
    gate.write("waiting", step="prepare/back-up-broker-0")
    gate.parked(BACK_UP, WindowClosed)
    gate.write("conclude", step="prepare/back-up-broker-0")
    gate.parked(BACK_UP, RunParked)


def test_a_window_that_never_is_long_enough_is_to_be_corrected(tmp_path: Path) -> None:
    """There is no time to come back at."""
    gate = bound(tmp_path, replace(OPEN, allow=(Dated("2026-12-07T20:00", "2026-12-07T21:10"),)))
    gate.before(BACK_UP)
    with pytest.raises(WindowClosed) as caught:
        gate.before(RESTART)
    assert caught.value.next_step == "correct the window or the estimates in the playbook, then plan again"


def test_a_rollback_keeps_only_the_window_that_is_named_for_it(tmp_path: Path) -> None:
    """The way forward keeps its own."""
    for name, stops in (("", False), ("default", True)):
        gate = bound(tmp_path / f"of-{name}", SHUT, rollback_window=name)
        gate.gate.plan = replace(gate.plan, direction=Direction.BACK)
        if stops:
            gate.parked(BACK_UP, WindowClosed)
        else:
            gate.before(BACK_UP)


# -- half rolled -----------------------------------------------------------------------------------------------------
FREEZE = replace(
    OPEN, deny=(Dated("2026-12-08T02:00", "2027-01-05T00:00"),), allow=(Dated("2026-12-07T20:00", "2027-02-01T00:00"),)
)
SLOW = Pace(node_estimate=2 * HOUR, hybrid_max_age=24 * HOUR)


def test_the_first_broker_of_a_roll_is_not_begun_where_the_roll_would_stand_half_done(tmp_path: Path) -> None:
    """Later ones are: to refuse would only make it older; what is before the roll is, too."""
    gate = bound(tmp_path, FREEZE, pace=SLOW)
    gate.before(BACK_UP)
    assert "hybrid longer than hybrid_max_age allows (24 h)" in gate.parked("migration-mode/0", WindowClosed)
    gate.write("intend", step=BACK_UP)
    gate.parked("migration-mode/0", RunParked)
    gate.write("effect", step="migration-mode/0")
    gate.parked("migration-mode/0", RunParked)
    gate.write("intend", step="migration-mode/0")
    gate.before(RESTART)


def test_a_roll_that_fits_begins(tmp_path: Path) -> None:
    """Where nothing comes in between."""
    bound(tmp_path, pace=replace(SLOW, node_estimate=60.0)).before("migration-mode/0")


def test_a_rollback_and_an_unknown_playbook_ask_for_no_age(tmp_path: Path) -> None:
    """A rollback makes it younger."""
    gate = bound(tmp_path, FREEZE, pace=SLOW)
    gate.gate.plan = replace(gate.plan, direction=Direction.BACK)
    gate.before("migration-mode/0")


@pytest.mark.parametrize(("hours", "told"), [(24.0, 0), (24.5, 1)])
def test_a_roll_that_stands_half_done_too_long_is_told_once(tmp_path: Path, hours: float, told: int) -> None:
    """From its first broker on, and no more once it is over; a new session tells it again."""
    gate = Gate(tmp_path, replace(worlds.playbook(), pace=replace(SLOW, hybrid_max_age=24 * HOUR)))
    gate.write("intend", step=BACK_UP)
    gate.clock.time += 10 * HOUR
    gate.write("intend", step="migration-mode/0")
    gate.clock.time += 60.0
    gate.write("intend", step="migration-mode/1")
    gate.clock.time += hours * HOUR - 60.0
    gate.before("soak/soak")
    assert gate.said == []
    for _ in range(2):
        gate.before("hybrid/hybrid")
    notes = gate.told("note")
    assert [note.data["key"] for note in notes] == ["hybrid-age"] * told
    if told:
        assert notes[0].data["value"].startswith("half rolled or hybrid for 24.5 h, longer than 24 h")
    gate.gate = gate.session()
    gate.before("hybrid/hybrid")
    assert len(gate.told("note")) == 2 * told


# -- health ----------------------------------------------------------------------------------------------------------
def healthy(folder: Path, samples: int = 3, **changes: Any) -> Gate:
    """So many looks, ten seconds apart."""
    return Gate(folder, replace(worlds.playbook(), health=HealthPolicy(samples, 10.0), **changes))


def test_before_a_restart_the_cluster_is_well_at_every_look_but_the_steps_own(tmp_path: Path) -> None:
    """The last one is the step's, as long after the one before as these are apart."""
    gate = healthy(tmp_path)
    gate.before(RESTART)
    assert gate.looks == [EVENING, EVENING + 10.0]
    assert gate.clock.now() == EVENING + 20.0


def test_one_look_is_the_steps_own(tmp_path: Path) -> None:
    """Nothing is looked at, and no time passes."""
    gate = healthy(tmp_path, 1)
    gate.before(RESTART)
    assert (gate.looks, gate.clock.now()) == ([], EVENING)


@pytest.mark.parametrize("step", [BACK_UP, "prepare/render-controller-3000", "kraft-mode/assign-2", "soak/soak"])
def test_what_restarts_nothing_asks_for_no_health(tmp_path: Path, step: str) -> None:
    """A sick cluster may be backed up, and watched."""
    gate = healthy(tmp_path)
    gate.before(step)
    assert gate.looks == []


@pytest.mark.parametrize(
    ("actions", "looks"),
    [
        ((Action("~", "file", "w"), Action("!", "controller 3000", "restart")), 2),
        ((Action("!", "/controller", "delete", znode="/controller"),), 0),
        ((Action(">", "lock", "take", znode="lock"), Action(">", "broker 1", "restart")), 2),
    ],
)
def test_a_restart_is_an_action_on_a_process_and_not_on_a_znode(
    tmp_path: Path, actions: tuple[Action, ...], looks: int
) -> None:
    """One of the step's actions is enough."""
    gate = healthy(tmp_path)
    gate.gate.before(replace(gate.step(RESTART), actions=actions))
    assert len(gate.looks) == looks


def test_a_bad_look_begins_the_count_anew(tmp_path: Path) -> None:
    """What is waited for is said."""
    gate = healthy(tmp_path)
    gate.sick = {2}
    gate.before(RESTART)
    assert len(gate.looks) == 4
    assert len(gate.told("waiting")) == 1


def test_a_cluster_that_stays_sick_is_waited_for_as_long_as_the_playbook_says(tmp_path: Path) -> None:
    """Then the wait ends by name."""
    gate = healthy(tmp_path, no_progress_seconds=90.0)
    gate.sick = set(range(10_000))
    gate.parked(RESTART, NoProgress)
    assert 90.0 < gate.clock.now() - EVENING < 100.0


def interrupted(gate: Gate, at: int, number: int) -> None:
    """Ctrl-C at that look."""
    gate.request.by = "Ctrl-C" if number == at else ""


def test_time_that_passed_meanwhile_lets_requests_and_the_hour_speak_again(tmp_path: Path) -> None:
    """A look before a restart may be a minute old."""
    for samples in (2, 3):
        (tmp_path / str(samples)).mkdir()
        gate = healthy(tmp_path / str(samples), samples)
        gate.at_look = partial(interrupted, gate, samples - 1)
        gate.parked(RESTART, RunInterrupted)


def test_a_request_reaches_a_run_that_waits_for_health(tmp_path: Path) -> None:
    """It may wait for hours."""
    gate = healthy(tmp_path)
    gate.sick = set(range(100))
    gate.at_look = lambda number: setattr(gate.request, "by", "SIGTERM") if number == 9 else None
    gate.parked(RESTART, RunInterrupted)
    assert len(gate.looks) == 9
