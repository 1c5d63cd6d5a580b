"""The board of a run: what it does, waits for and does next, from plan and journal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrate.model.history import Event
from migrate.model.plan import Direction
from migrate.model.stage import Stage
from migrate.report.run_board import board, lines
from tests.plan.test_schedule import NIGHTS
from tests.run.gated import EVENING, Gated, parked_behind_broker_0


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Gated:
    """A run that parked behind broker 0 of the first roll; its plan lies beside its journal."""
    return parked_behind_broker_0(tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.slow
def test_the_board_says_how_far_a_run_is_and_how_it_ended(parked: Gated) -> None:
    """Steps that are done, of all; the reason of a stop."""
    found = board(parked.planned(), parked.events)
    assert found.done == len({event.data["step"] for event in parked.events if event.name == "conclude"})
    assert found.steps == len(parked.planned().steps)
    assert found.state.startswith("stopped: ")
    assert "parked before migration-mode/1: Ctrl-C asked for it" in found.state


def test_while_a_broker_restarts_the_board_says_so(parked: Gated) -> None:
    """Cut anywhere inside the step, the board shows it in progress, with what was done before."""
    events = parked.events
    begin = next(n for n, e in enumerate(events) if e.name == "intend" and e.data["step"] == "migration-mode/0")
    found = board(parked.planned(), events[: begin + 2])
    assert found.state == "running"
    (now,) = [line for line in lines(found, events[begin].time + 65.0) if line.startswith("now")]
    assert now.endswith("[migration-mode/0], for 1 min 05 s")
    assert any(line.startswith("then     ") for line in lines(found, 0.0))


def test_a_wait_says_what_for_since_when_who_owns_it_and_what_to_do(parked: Gated) -> None:
    """The first time that the same was waited for counts."""
    data = {"step": "migration-mode/1", "what": "full ISRs", "owner": "the brokers", "next": "look", "progress": "1"}
    later = {**data, "progress": "2"}
    events = (*parked.events[:-1], Event(90, 100.0, "waiting", data), Event(91, 110.0, "waiting", later))
    found = board(parked.planned(), events)
    text = lines(found, 130.0)
    for wanted in ("waits    for full ISRs, for 30 s", "owner    the brokers", "if it lasts  look"):
        assert wanted in text


def test_the_board_begins_with_what_is_wrong_while_it_waits(parked: Gated) -> None:
    """The line of `status`; it goes with the wait."""
    line = "1 PROBLEM: broker 1 is stopped on b1"
    data = {"step": "migration-mode/1", "what": "broker 1 to run again", "owner": "b1", "next": "start it"}
    events = (*parked.events[:-1], Event(90, 100.0, "waiting", {**data, "progress": "", "problem": line}))
    assert lines(board(parked.planned(), events), 130.0)[0] == line
    after = (*events, Event(91, 101.0, "conclude", {"step": "migration-mode/1", "outcome": "Verified"}))
    assert line not in lines(board(parked.planned(), after), 130.0)


def test_the_board_of_a_rollback_says_where_to(parked: Gated) -> None:
    """A stage's name says nothing of it."""
    plan = replace(parked.planned(), target=Stage.ASSESS, direction=Direction.BACK)
    assert " to ZooKeeper mode, as before the migration: " in lines(board(plan, parked.events), 130.0)[0]
    assert " to stage soak: " in lines(board(parked.planned(), parked.events), 130.0)[0]


def said(events: Sequence[Event], run: Gated, now: float, label: str) -> str:
    """The board's line of that label."""
    found = board(run.planned(), events, replace(run.playbook, windows={"default": NIGHTS}))
    return next((line for line in lines(found, now) if line.startswith(label)), "")


def test_the_board_says_what_is_done_of_the_step_each_since_its_own_beginning(parked: Gated) -> None:
    """Checked, acted on, verified: the proof's seconds do not count from the step's beginning."""
    events = parked.events
    names = [(e.name, e.data.get("step")) for e in events]
    begin, end = names.index(("intend", "migration-mode/0")), names.index(("conclude", "migration-mode/0"))
    stop = next(n for n in range(begin, end) if events[n].name == "effect" and events[n].data["effect"] == "stop")
    proof = max(n for n in range(begin, end) if events[n].name == "effected")
    assert said(events[:begin], parked, events[begin - 1].time + 7, "now").endswith(
        "[migration-mode/0]: checking whether it may begin, for 7 s"
    )
    assert said(events[: stop + 1], parked, events[stop].time + 20, "now").endswith(
        "[migration-mode/0]: stop 0, for 20 s"
    )
    assert said(events[: proof + 1], parked, events[proof].time + 12, "now").endswith(
        "[migration-mode/0]: verifying, for 12 s"
    )


def test_the_board_says_how_long_it_takes_and_when_the_window_ends(parked: Gated) -> None:
    """The time so far, an estimate of the rest, and the end of the change window in its own zone."""
    events = parked.events
    begin = next(n for n, e in enumerate(events) if e.name == "intend" and e.data["step"] == "migration-mode/0")
    now = next(e.time for e in events if e.name == "session") + 225.0
    assert re.fullmatch(
        r"time     3 min 45 s so far; about .+ left \(p50 to p90, \d+ steps measured\)",
        said(events[:begin], parked, now, "time"),
    )
    assert said(events[:begin], parked, EVENING + 600, "window") == (
        "window   nights: open until Tue 2026-12-08 05:00 UTC, for 7 h 50 min"
    )
    assert "; it opens Mon 2026-12-07 21:00 UTC" in said(events[:begin], parked, EVENING - 7200, "window")
    assert re.fullmatch("time     .* in all", said(events, parked, now + 9e6, "time"))


def test_after_a_resume_nothing_is_counted_from_the_killed_process(parked: Gated) -> None:
    """Killed while a broker was stopped, continued the next morning."""
    events = parked.events
    stop = next(n for n, e in enumerate(events) if e.name == "effect" and e.data["effect"] == "stop")
    wait = {"step": events[stop].data["step"], "what": "w", "owner": "o", "next": "n", "progress": ""}
    morning = events[stop].time + 40_000.0
    session = Event(stop + 2, morning, "session", {"resumed": True})
    for killed in (events[: stop + 1], (*events[: stop + 1], Event(stop + 1, events[stop].time, "waiting", wait))):
        resumed = (*killed, session)
        assert said(resumed, parked, morning + 5, "now").endswith(": looking how far it got, for 5 s")
        assert said(resumed, parked, morning + 5, "time").startswith("time     5 s so far")
        assert said(resumed, parked, morning + 5, "waits") == ""
        later = (*resumed, Event(stop + 3, morning + 6, "waiting", wait))
        assert said(later, parked, morning + 8, "waits") == "waits    for w, for 2 s"


def test_every_prefix_of_a_journal_has_a_board(parked: Gated) -> None:
    """Whoever looks while it is written sees something true."""
    events = parked.events
    counts = [board(parked.planned(), events[:number]).done for number in range(len(events) + 1)]
    assert counts == sorted(counts)
    assert board(parked.planned(), ()).state == "not begun"
