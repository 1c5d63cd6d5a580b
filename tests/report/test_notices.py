"""Each notification follows from an event of the journal, or from what lasts; both are those of real runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from migrate.errors import NoProgress, RunInterrupted, WindowClosed
from migrate.model.history import Event
from migrate.model.inventory import Hook, Recipient
from migrate.model.notifications import LASTING, Happening, Notice
from migrate.model.plan import Direction, Plan
from migrate.model.stage import Stage
from migrate.plan.parking import HYBRID_BEGINS, HYBRID_ENDS
from migrate.report.notices import Notices, RunState
from tests.run.gated import EVENING, HOUR, Gated, bound, gated, parked_behind_broker_0, refused
from tests.run.test_gatekeeper import NIGHTS
from tests.run.test_waits_in_runs import never_well
from tests.testing import worlds

ALL = frozenset(Happening) - {*LASTING, Happening.TEST}


def everything(**longer_than: float) -> Recipient:
    """Somebody who wants to hear all."""
    named = {Happening(name.replace("_", "-")): seconds for name, seconds in longer_than.items()}
    return Recipient("all", Hook(("/bin/true",), 1.0), ALL, named)


def told(plan: Plan, events: Iterable[Event], before: Iterable[Event] = ()) -> list[Notice]:
    """All that these events tell."""
    notices = Notices.of(RunState(plan), (everything(),), "host-1", before)
    return [notice for event in events for _, notice in notices.hear(event)]


def test_a_whole_run_tells_its_beginning_the_point_of_no_return_and_its_end(tmp_path: Path) -> None:
    """The point once, before the first controller loses the flag: at the line of its intent."""
    run = Gated(tmp_path, worlds.playbook(), target=Stage.CLEANUP)
    events = run.session()
    found = told(run.planned(), events)
    assert [notice.event for notice in found] == [Happening.BEGINS, Happening.POINT_OF_NO_RETURN, Happening.ENDED]
    point = events[found[1].n]
    assert (point.name, point.data["step"]) == ("intend", "finalize/1-of-3")
    assert found[1].stage == "finalize"
    assert not any(
        event.name == "effect" and event.data["step"] == "finalize/1-of-3" for event in events[: point.number]
    )
    assert [notice.time for notice in found] == [events[notice.n].time for notice in found]
    assert {(notice.run, notice.cluster, notice.host) for notice in found} == {
        (run.planned().short, run.planned().cluster, "host-1")
    }


def test_a_closed_window_and_ctrl_c_park(tmp_path: Path) -> None:
    """Whether something was done in this session or not."""
    closed = Gated(tmp_path, bound(NIGHTS))
    closed.clock.time = EVENING + 12 * HOUR
    refused(closed, WindowClosed)
    pressed = parked_behind_broker_0(tmp_path / "pressed")
    for run, error in ((closed, WindowClosed), (pressed, RunInterrupted)):
        _, parked = told(run.planned(), run.events)
        assert (parked.event, parked.code) == (Happening.PARKED, error.id)


def test_a_wait_without_progress_stops(tmp_path: Path) -> None:
    """With its code and its reason."""
    run = Gated(tmp_path, worlds.playbook(), target=Stage.MIGRATION_MODE)
    run.cluster.bend = partial(never_well, run.cluster)
    refused(run, NoProgress)
    _, stopped = told(run.planned(), run.events)
    assert (stopped.event, stopped.code) == (Happening.STOPPED, NoProgress.id)
    assert "no progress for" in stopped.text


def test_a_session_that_goes_on_tells_only_its_own(tmp_path: Path) -> None:
    """What an earlier one told is not told again."""
    run = parked_behind_broker_0(tmp_path / "run")
    before = run.events
    run.each_look = lambda: None
    run.request.by = ""
    run.session()
    begins, ended = told(run.planned(), run.events[len(before) :], before)
    assert (begins.event, ended.event) == (Happening.BEGINS, Happening.ENDED)
    assert "the run resumes" in begins.text


def test_what_anybody_could_write_is_spelled_out(tmp_path: Path) -> None:
    """A reason with what a terminal would act on, and a name that no ASCII has."""
    run = gated(tmp_path)
    events = [
        Event(0, 1.0, "session", {"resumed": False}),
        Event(1, 2.0, "stop", {"reason": "bad \x1b[1m\u202e name", "code": "E-RUN-04"}),
    ]
    _, stopped = told(run.planned(), events)
    assert stopped.event is Happening.STOPPED
    assert stopped.text.isprintable()
    assert stopped.body.isascii()


# -- what lasts --------------------------------------------------------------------------------------------------
def waiting(number: int, time: float, what: str, step: str) -> Event:
    """A wait's line."""
    return Event(number, time, "waiting", {"step": step, "what": what, "owner": "o", "next": "n", "progress": ""})


def test_a_wait_is_told_once_when_it_lasts_and_anew_with_the_next_one(tmp_path: Path) -> None:
    """It counts from when the step began to wait, whatever it waits for by now."""
    plan = gated(tmp_path).planned()
    step = plan.steps[1].id
    notices = Notices.of(RunState(plan), (everything(waits_longer_than=60.0),), "h", ())
    for event in (
        Event(0, 0.0, "session", {"resumed": False}),
        waiting(1, 10.0, "broker 1", step),
        waiting(2, 50.0, "3 partitions", step),
    ):
        list(notices.hear(event))
    assert list(notices.late(70.0)) == []
    ((_, late),) = notices.late(71.0)
    assert (late.event, late.seconds, late.step, late.n) == (Happening.WAITS, 61.0, step, 2)
    assert "3 partitions" in late.text
    assert list(notices.late(7000.0)) == []
    list(notices.hear(Event(3, 80.0, "conclude", {"step": step, "stage": "x", "outcome": "Verified"})))
    assert list(notices.late(8000.0)) == []
    list(notices.hear(waiting(4, 8000.0, "broker 1", plan.steps[2].id)))
    assert len(list(notices.late(8061.0))) == 1
    list(notices.hear(Event(5, 8062.0, "stop", {"reason": "r", "code": NoProgress.id})))
    assert list(notices.late(99999.0)) == []


def test_the_time_half_rolled_counts_over_sessions_until_the_last_broker_is_in_kraft_mode(tmp_path: Path) -> None:
    """From the first broker's intent to the end of the second roll."""
    run = Gated(tmp_path, worlds.playbook(), node_seconds=HOUR)
    events = run.session()
    plan = run.planned()
    rolled = {kind: [step.id for step in plan.steps if step.kind == kind] for kind in (HYBRID_BEGINS, HYBRID_ENDS)}
    first = next(e for e in events if e.name == "intend" and e.data["step"] == rolled[HYBRID_BEGINS][0])
    last = next(e for e in events if e.name == "conclude" and e.data["step"] == rolled[HYBRID_ENDS][-1])
    notices = Notices.of(RunState(plan), (everything(half_rolled_longer_than=HOUR),), "h", ())
    found = []
    for event in events:
        list(notices.hear(event))
        assert (notices.run.half_rolled is not None) is (first.number <= event.number < last.number), event
        found += [notice for _, notice in notices.late(event.time)]
    (late,) = found
    assert late.event is Happening.HALF_ROLLED
    assert late.seconds is not None
    assert late.seconds > HOUR
    parked = [event for event in events if event.number < last.number]
    later = Notices.of(RunState(plan), (everything(half_rolled_longer_than=HOUR),), "h", parked)
    assert later.run.half_rolled == first.time


def test_nobody_is_told_of_what_lasts_where_no_session_acts(tmp_path: Path) -> None:
    """Before the first, and behind the end."""
    run = parked_behind_broker_0(tmp_path / "run")
    notices = Notices.of(RunState(run.planned()), (everything(half_rolled_longer_than=1.0),), "h", run.events)
    assert notices.run.half_rolled is not None
    assert list(notices.late(run.clock.now() + 99999)) == []


def test_a_plan_of_a_later_stage_counts_from_the_runs_before_it(tmp_path: Path) -> None:
    """Each stage in a window of its own: the cluster was hybrid all the time; a rollback counts on, to its end."""
    run = Gated(tmp_path, worlds.playbook(), target=Stage.CLEANUP)
    whole, session = run.planned(), Event(0, 100.0, "session", {"resumed": False})
    steps = tuple(step for step in whole.steps if step.stage is Stage.KRAFT_MODE)
    done = [
        Event(number, 110.0, "conclude", {"step": step.id, "stage": "kraft-mode", "outcome": "Verified"})
        for number, step in enumerate(steps, start=1)
    ]
    ended = Event(99, 120.0, "end", {"target": "x"})
    later = replace(whole, steps=steps, target=Stage.KRAFT_MODE)
    back = replace(whole, steps=steps, target=Stage.ASSESS, direction=Direction.BACK)
    again = replace(back, target=Stage.COPY)
    for plan, events, expected in (
        (later, [session], 7.0),
        (later, [session, *done], None),
        (back, [session, *done], 7.0),
        (back, [session, *done, ended], None),
        (again, [session, *done, ended], 7.0),
    ):
        assert Notices.of(RunState(plan, 7.0), (), "h", events).run.half_rolled == expected
    notices = Notices.of(RunState(later, 7.0), (everything(half_rolled_longer_than=HOUR),), "h", ())
    list(notices.hear(session))
    ((_, late),) = notices.late(8.0 + HOUR)
    assert late.seconds == HOUR + 1


def test_a_step_that_is_refused_or_fails_is_named(tmp_path: Path) -> None:
    """The journal concludes it before the stop; a later session begins without it."""
    plan = gated(tmp_path).planned()
    step = plan.steps[7]
    failed = {"step": step.id, "stage": step.stage.label, "outcome": "Refused", "reason": "r"}
    events = [
        Event(0, 1.0, "session", {"resumed": False}),
        Event(1, 2.0, "conclude", failed),
        Event(2, 3.0, "stop", {"reason": "r", "code": "B-QRM-03"}),
        Event(3, 4.0, "session", {"resumed": True}),
    ]
    _, stopped, resumed = told(plan, events)
    assert (stopped.step, stopped.stage, stopped.code) == (step.id, step.stage.label, "B-QRM-03")
    assert resumed.step == ""
