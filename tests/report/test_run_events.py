"""A journal folded: any order, any cut, any damage to its data that a version may bring."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.model.history import Event
from migrate.report.run_events import Story, node_order, stage_spans, tell
from migrate.report.run_pages import run_html
from migrate.report.run_report import build
from migrate.report.run_values import StepRecord
from tests.report import pages, story

JOURNAL = story.journal()
NAMES = sorted({event.name for event in JOURNAL} | {"stop", "weather"})
STEPS = tuple(StepRecord(step.id, step.stage.label, step.title) for step in story.plan().steps)


def _tell(*events: tuple[str, Mapping[str, object]]) -> Story:
    return tell(STEPS, [Event(at, story.START + at, name, data) for at, (name, data) in enumerate(events)])


@pytest.mark.slow
@given(st.integers(0, len(JOURNAL)))
@settings(max_examples=40)
def test_a_journal_cut_anywhere_has_a_whole_report(length: int) -> None:
    """Killed at any instant, `report` answers: never with an error."""
    report = build(story.plan(), JOURNAL[:length])

    assert pages.read(run_html(report)).faults == []
    assert sum(step.passed for step in report.steps) == sum(event.name == "conclude" for event in JOURNAL[:length])


@pytest.mark.slow
@given(st.lists(st.sampled_from(JOURNAL), max_size=30))
@settings(max_examples=40)
def test_no_order_of_events_breaks_the_report(events: list[Event]) -> None:
    """A journal is chained, so that this cannot happen; the report holds all the same."""
    ordered = [Event(at, story.START + at, event.name, event.data) for at, event in enumerate(events)]

    assert pages.read(run_html(build(story.plan(), ordered))).faults == []


@pytest.mark.parametrize("name", NAMES)
def test_an_event_without_data_breaks_nothing(name: str) -> None:
    """Fields that another version left out are empty words, not errors."""
    report = build(story.plan(), [Event(0, story.START, name, {})])

    assert pages.read(run_html(report)).faults == []


def test_a_start_without_a_stop_is_a_first_start() -> None:
    """And counts from the moment that it was done."""
    told = _tell(
        ("effect", {"step": "s", "effect": "start", "node": "3001"}),
        ("effected", {"step": "s", "effect": "start", "node": "3001"}),
    )

    (restart,) = told.restarts
    assert (restart.stopped, restart.started, restart.proven) == (None, story.START + 1, None)


def test_two_stops_before_a_start_are_one_restart_from_the_first_on() -> None:
    """The node was down the whole time."""
    stop = {"step": "s", "effect": "stop", "node": "1"}
    told = _tell(("effect", stop), ("effect", stop), ("effected", {**stop, "effect": "start"}))

    assert [(entry.stopped, entry.started) for entry in told.restarts] == [(story.START, story.START + 2)]


def test_only_a_conclusion_that_passed_proves_a_restart() -> None:
    """Refused, failed and unknown leave it unproven."""
    start = {"step": STEPS[0].id, "effect": "start", "node": "1"}
    for outcome, proven in (
        ("Failed", None),
        ("Unknown", None),
        ("Verified", story.START + 1),
        ("AlreadyDone", story.START + 1),
    ):
        told = _tell(("effected", start), ("conclude", {"step": STEPS[0].id, "outcome": outcome}))

        assert told.restarts[0].proven == proven


def test_a_conclusion_without_an_intent_begins_where_it_ends() -> None:
    """A step that was found done was never begun."""
    told = _tell(("conclude", {"step": STEPS[0].id, "outcome": "AlreadyDone", "evidence": ["seen"]}))
    step = told.steps[STEPS[0].id]

    assert step.begin == step.end == story.START
    assert step.passed
    assert step.attempts == 0


def test_one_text_is_one_piece_of_evidence() -> None:
    """Not one for each of its letters."""
    told = _tell(("conclude", {"step": STEPS[0].id, "outcome": "Verified", "evidence": "seen"}))

    assert told.steps[STEPS[0].id].evidence == ("seen",)


def test_a_wait_that_moves_is_one_wait_and_another_is_another() -> None:
    """Told apart by what is waited for."""
    first, second = {"step": "s", "what": "a", "owner": "x"}, {"step": "s", "what": "b", "owner": "y"}
    told = _tell(("waiting", first), ("waiting", first), ("waiting", second), ("intend", {"step": "s"}))

    assert [(wait.what, wait.end - wait.begin) for wait in told.waits] == [("a", 2.0), ("b", 1.0)]


@pytest.mark.parametrize(
    ("last", "ended", "stopped"), [("end", True, ""), ("stop", False, "why"), ("intend", False, "")]
)
def test_the_last_word_decides_how_a_run_stands(last: str, ended: bool, stopped: str) -> None:
    """An end or a stop that something follows is taken back; a note follows nothing."""
    events = [("stop", {"reason": "older"}), ("end", {}), ("session", {}), (last, {"reason": "why"}), ("note", {})]

    told = _tell(*events)

    assert (told.ended, told.stopped) == (ended, stopped)


def test_a_session_ends_with_the_last_event_before_the_next() -> None:
    """So the time without an engine is known."""
    told = _tell(("session", {"pid": 1}), ("note", {}), ("session", {"pid": 2, "resumed": True}), ("end", {}))

    assert [(one.begin - story.START, one.last - story.START, one.resumed) for one in told.sessions] == [
        (0, 1, False),
        (2, 3, True),
    ]


def test_nodes_are_ordered_as_numbers() -> None:
    """Broker 10 comes after broker 2; the ensemble before all."""
    assert sorted(["10", "2", "zookeeper", "1"], key=node_order) == ["zookeeper", "1", "2", "10"]


def test_stages_stand_in_the_order_in_which_they_began() -> None:
    """A stage of which nothing began has no span."""
    steps = [
        StepRecord("b", "copy", "", begin=5.0, end=6.0, outcome="Verified"),
        StepRecord("a", "prepare", "", begin=1.0, end=2.0, outcome="Verified"),
        StepRecord("c", "soak", ""),
    ]

    assert [(span.stage, span.begin, span.end) for span in stage_spans(steps)] == [
        ("prepare", 1.0, 2.0),
        ("copy", 5.0, 6.0),
    ]
