"""The figures: what they show, not how they look."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.ledger import ReplicaState
from migrate.report.heat_map import css_class
from migrate.report.markup import environment
from migrate.report.run_figures import (
    BETWEEN_TICKS,
    MOST_MOMENTS,
    Bar,
    Stack,
    axis,
    brokers,
    chosen,
    gates,
    heat_maps,
    legend,
    overview,
    time_scale,
    timeline,
)
from migrate.report.run_pages import run_html
from migrate.report.run_report import build
from migrate.report.run_values import Cell, DiffMoment, LedgerMoment, RunReport
from tests.report import pages, story


def _whole() -> RunReport:
    return build(story.plan(), story.journal(), story.load(), story.extra())


def _bars(report: RunReport, class_: str) -> list[Bar]:
    on = axis(report)
    drawn = (bar for _, bars in timeline(report, on.scale) for bar in bars)
    return [bar for bar in (*on.behind, *drawn) if bar.class_ == class_]


def _heights(stacks: Iterable[Stack], state: str) -> list[float]:
    return [share for one in stacks for class_, share in one.parts if class_ == css_class(state)]


# -- time line ---------------------------------------------------------------------------------------------------
def test_the_time_line_shows_every_stage_and_every_restart() -> None:
    """A bar a stage, a bar a time that a process was down, and one a time that it was being proven."""
    report = _whole()
    page = pages.read(run_html(report))

    assert page.faults == []
    wanted = {"bar-stage": 8, "bar-final": 2, "bar-down": 10, "bar-unseen": 1, "bar-proof": 12, "bar-gap": 2}
    wanted["tick-start"] = 3
    assert {class_: len(_bars(report, class_)) for class_ in wanted} == wanted
    drawn = [values["class"] for tag, values in page.elements if tag == "i" and "style" in values]
    assert {class_: drawn.count(class_) for class_ in wanted} == wanted
    for words in ("migration-mode", "broker 1", "controller 3003", "resumed", "no rollback", "load: gaps"):
        assert words in page.words


def test_the_time_without_engine_is_shown() -> None:
    """From the last word before the kill to the session that resumed."""
    (band,) = _bars(_whole(), "idle")

    assert band.width > 5


def test_an_open_stage_reaches_to_the_last_event() -> None:
    """And is said to be open."""
    (bar,) = _bars(build(story.plan(), story.journal(until="kraft-mode/roll-to-kraft/3")), "bar-stage open")

    assert bar.x + bar.width == pytest.approx(100)
    assert bar.words.endswith(", open")


def test_a_week_of_soak_is_cut_out_and_labelled() -> None:
    """The window before and the window after stay legible."""
    events = story.journal()
    at = next(at for at, event in enumerate(events) if event.name == "intend" and "soak" in event.data["step"])
    later = [dataclasses.replace(event, time=event.time + 7 * 86_400) for event in events[at + 1 :]]
    report = build(story.plan(), [*events[: at + 1], *later])

    (cut,) = _bars(report, "cut")
    assert cut.words == "7 d"
    assert min(bar.width for bar in _bars(report, "bar-final")) > 0.2


def test_nothing_begun_is_no_figure() -> None:
    """An empty frame would say something."""
    report = build(story.plan(), [])
    assert timeline(report, axis(report).scale) == []
    assert 'class="timed"' not in run_html(report)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=40))
def test_the_axis_keeps_the_order_of_times(times: list[float]) -> None:
    """Later is never further left, and everything stays on the page."""
    scale = time_scale(times)
    places = [scale.x(time) for time in sorted(times)]

    assert all(one <= two + 1e-6 for one, two in itertools.pairwise(places))
    assert all(-0.01 <= place <= 100.01 for place in places)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=12))
def test_ticks_stand_apart(times: list[float]) -> None:
    """Words under the axis do not run into each other."""
    scale = time_scale(times)

    for segment in scale.segments:
        inside = [scale.x(tick) for tick in scale.ticks() if segment.begin <= tick <= segment.end and not segment.cut]
        if segment.width >= BETWEEN_TICKS:
            assert all(two - one > 0.85 * BETWEEN_TICKS for one, two in itertools.pairwise(inside))


def test_times_outside_the_axis_stand_at_its_ends() -> None:
    """A load's gap from before the run does not leave the page."""
    scale = time_scale([10.0, 20.0])

    assert (scale.x(0), scale.x(15), scale.x(99)) == (0, 50, 100)
    assert time_scale([]).x(5) == 100


# -- ledger ------------------------------------------------------------------------------------------------------
def test_the_ledger_fills_up_from_the_floor() -> None:
    """VERIFIED stands at the bottom and grows with each broker of the second roll."""
    report = _whole()
    found = overview(report, axis(report).scale)
    heights = _heights(found, "VERIFIED")

    assert heights == sorted(heights)
    assert len(_heights(found, "MIGRATING")) == 7
    assert max(heights) == max(_heights(found, "MIGRATING")) == 100
    assert all(one.parts[0][0] == css_class("VERIFIED") for one in found if len(one.parts) > 1)


def test_every_directory_is_a_square_before_the_second_roll_at_half_of_it_and_at_the_end() -> None:
    """A row per broker; the squares turn from MIGRATING to VERIFIED broker by broker."""
    found = heat_maps(_whole())
    assert [words.partition(",")[0] for words, _ in found] == ["first seen", "half of the second roll", "at the end"]
    letters = [["".join(one.letter for one in row.squares) for row in drawn.rows] for _, drawn in found]
    assert {letter for row in letters[0] for letter in row} == {"m"}
    assert {row[0] for row in letters[1]} == {"m", "V"}
    assert {letter for row in letters[2] for letter in row} == {"V"}
    assert heat_maps(dataclasses.replace(_whole(), ledgers=())) == []


def test_the_ledger_stands_on_the_time_lines_own_axis() -> None:
    """Its steps begin where the time line has their times, each lasts until the next, and a gate is where it was."""
    report = _whole()
    scale = axis(report).scale
    found = overview(report, scale)
    assert [one.x for one in found] == [scale.x(ledger.time) for ledger in report.ledgers]
    assert [one.x + one.width for one in found[:-1]] == pytest.approx([one.x for one in found[1:]])
    drawn = [values for _, values in pages.read(run_html(report)).elements if values.get("class") == "mark-gate"]
    assert [values["style"] for values in drawn] == [f"left:{scale.x(time):.2f}%" for time, _ in gates(report)]


def test_a_gate_names_what_was_proven_before_the_next_broker_was_stopped() -> None:
    """One between two brokers of the second roll; a stop that an engine's end interrupted is the same broker's."""
    assert [tip for _, tip in gates(_whole())] == [
        "gate before broker 2: broker 1 proven at 21:01:00, 108 of 324 replicas VERIFIED",
        "gate before broker 3: broker 2 proven at 21:01:23, 216 of 324 replicas VERIFIED",
    ]


def test_every_broker_and_directory_has_a_panel_with_words() -> None:
    """Colour is never the only carrier."""
    groups = brokers(_whole())

    assert [group.broker for group in groups] == ["1", "2", "3"]
    assert all(len(group.panels) == 3 and group.whole for group in groups)
    assert {panel.words for group in groups for panel in group.panels} == {"all 36 replicas VERIFIED"}
    assert legend(_whole()) == ("VERIFIED", "MIGRATING")


def test_replicas_without_directory_have_a_panel_of_their_own() -> None:
    """NOT ON DISK belongs to no path, and must be seen."""
    cells = (Cell("1", "d", "/d", {"VERIFIED": 3}), Cell("1", "", "", {"NOT ON DISK": 2}))
    report = dataclasses.replace(_whole(), ledgers=(LedgerMoment(0.0, "s", 5, "pure", cells),))

    (group,) = brokers(report)

    assert not group.whole
    assert group.words == "3 of 5 VERIFIED, 2 NOT ON DISK"
    assert [panel.verified for panel in group.panels] == [False, True]


def test_directories_without_an_id_have_no_panel_once_they_have_one() -> None:
    """Their replicas stand in the overview; a panel of all of them together would dwarf the others."""
    first = LedgerMoment(0.0, "s", -1, "pure", (Cell("1", "", "", {"MIGRATING": 120}),))
    cells = tuple(Cell("1", name, f"/{name}", {"MIGRATING": 40}) for name in "abc")
    report = dataclasses.replace(_whole(), ledgers=(first, LedgerMoment(1.0, "s", 5, "pure", cells)))

    (group,) = brokers(report)

    assert [panel.path for panel in group.panels] == ["/a", "/b", "/c"]
    assert {height for panel in group.panels for height in _heights(panel.stacks, "MIGRATING")} == {100}
    assert len(_heights(overview(report, axis(report).scale), "MIGRATING")) == 2


def test_a_state_of_another_version_is_not_whole() -> None:
    """It is told by its own name, and never left out of the sum."""
    cells = (Cell("1", "d", "/d", {"VERIFIED": 3, "NEWER": 2}),)
    (group,) = brokers(dataclasses.replace(_whole(), ledgers=(LedgerMoment(0.0, "s", 5, "pure", cells),)))

    assert (group.whole, group.words) == (False, "3 of 5 VERIFIED, 2 NEWER")


def test_a_directory_that_vanished_is_not_whole() -> None:
    """Its last bar is missing, and the words say so."""
    first = LedgerMoment(
        0.0, "s", 5, "pure", (Cell("1", "a", "/a", {"VERIFIED": 3}), Cell("1", "b", "/b", {"LOST": 1}))
    )
    last = LedgerMoment(1.0, "s", 6, "pure", (Cell("1", "a", "/a", {"VERIFIED": 3}),))
    (group,) = brokers(dataclasses.replace(_whole(), ledgers=(first, last)))

    assert [panel.words for panel in group.panels] == ["all 3 replicas VERIFIED", "no replicas"]
    assert not group.panels[1].verified


def test_every_state_has_a_colour_of_its_own() -> None:
    """In the style sheet, and no two the same."""
    css = environment().get_template("style.css.jinja").render()
    colours = [re.search(rf"\.{css_class(state)} {{ background: var\((--[a-z]+)\)", css) for state in ReplicaState]

    assert all(colours)
    assert len({found[1] for found in colours if found}) == len(ReplicaState)
    assert css_class("<b>") == "s-unknown"


@pytest.mark.slow
@given(st.integers(1, 200), st.integers(0, 10))
def test_many_ledgers_are_thinned_to_the_first_the_last_and_the_changes(number: int, period: int) -> None:
    """At most 32 bars."""
    moments = [
        LedgerMoment(float(at), "s", at, "pure", (Cell("1", "d", "/d", {"VERIFIED": at // period if period else 1}),))
        for at in range(number)
    ]
    picked = chosen(moments)

    assert len(picked) <= MOST_MOMENTS
    assert picked[0] is moments[0]
    assert picked[-1] is moments[-1]
    assert picked == sorted(picked, key=lambda moment: moment.time)


# -- comparison --------------------------------------------------------------------------------------------------
def test_an_unexcused_difference_has_the_loud_colour() -> None:
    """Everything else is quiet, zeros most of all."""
    counts = {"topic": {"EQUAL": 70, "DIFFERS": 2}, "acl": {"EQUAL": 5, "ONLY_ZK": 1, "EXPECTED": 3}}
    report = dataclasses.replace(_whole(), diffs=(DiffMoment(0.0, "s", 5, 0, counts, 3, {}, ()),))
    page = pages.read(run_html(report))
    tiles = [values["class"].split()[1] for tag, values in page.elements if "tile-" in values.get("class", "")]

    assert tiles.count("tile-bad") == 4  # two, and their sums
    assert tiles.count("tile-equal") == 3
    assert tiles.count("tile-expected") == 2
    assert "75" in page.words.split()
