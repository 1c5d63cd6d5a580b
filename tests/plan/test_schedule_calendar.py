"""A plan's schedule, as its reader sees it in text, HTML and JSON; no part of the fingerprint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from migrate.errors import WindowNeverOpens
from migrate.model.durations import Durations
from migrate.model.inventory import Pace
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.windows import Dated, Weekly, Window
from migrate.plan.build import build
from migrate.plan.schedule import scheduled
from migrate.report.plan_json import plan_from_json, plan_to_json
from migrate.report.plan_text import plan_html, plan_text
from tests.run.gated import EVENING, HOUR
from tests.steps.looks import whole
from tests.testing import worlds

NIGHTS = Window("default", "Europe/Berlin", (Weekly((0, 1, 2, 3), 21 * 60, 5 * 60),), (), 2700.0)


def made(created: float = EVENING, **changes: Any) -> tuple[Plan, Plan]:
    """The plan of the healthy world up to the soak, without and with its schedule."""
    playbook = replace(worlds.playbook(), **{"windows": {"default": NIGHTS}, **changes})
    plan = build(whole(Stage.ASSESS), playbook, target=Stage.SOAK, only=False, created=created)
    return plan, scheduled(plan, playbook, Durations(playbook.pace.node_estimate))


def test_the_schedule_is_no_part_of_the_fingerprint() -> None:
    """What moves by itself decides no action."""
    plain, full = made()
    assert plain.fingerprint == full.fingerprint
    assert full.summary.schedule


def test_a_plan_that_fits_says_when_it_would_end() -> None:
    """In the window's own zone, with p50, p90 and where they come from."""
    _, plan = made()
    assert plan.summary.fit == "fits"
    (roll,) = [row for row in plan.summary.schedule if row["stage"] == "kraft-mode"]
    assert (roll["p50"], roll["window"]) == ("19 min", "default: Mon-Thu 21:00-05:00 Europe/Berlin")
    assert "the playbook's node_estimate" in roll["by"]
    assert roll["ends"].endswith("CET")
    text = plan_text(plan)
    assert "Time and windows, if it began when it was made: fits" in text
    assert "reserve 45 min" in text


def test_all_ends_are_told_in_one_time_zone() -> None:
    """Stages that no window binds among them: an end in another zone reads as if it came before the one above it."""
    _, full = made()
    assert {row["window"] for row in full.summary.schedule} > {"any time"}
    assert len({row["ends"].rpartition(" ")[2] for row in full.summary.schedule}) == 1


@pytest.mark.slow
def test_a_plan_that_is_too_long_says_after_how_many_steps_it_parks() -> None:
    """Two hours a node: some tonight, the rest tomorrow."""
    _, plan = made(pace=Pace(node_estimate=2 * HOUR))
    assert plan.summary.fit.startswith("will park after ")
    assert any(entry.startswith("parks after") and "Tue 2026-12-08 21:00 CET" in entry for entry in plan.summary.parks)
    assert plan.summary.fit in plan_text(plan)
    assert plan.summary.fit in plan_html(plan)


def test_a_node_that_fits_no_window_is_said() -> None:
    """Before anybody waits for it at night."""
    _, plan = made(pace=Pace(node_estimate=8 * HOUR))
    assert plan.summary.fit == "does not fit"
    assert "window default never stays open that long: 8 h at most" in " ".join(plan.summary.parks)
    assert "does not fit" in plan_html(plan)


@pytest.mark.slow
def test_a_reserve_that_is_shorter_than_the_rollback_is_a_warning_with_both_numbers() -> None:
    """Two rolls of three brokers at 15 minutes do not fit 45; at one minute they do."""
    (said,) = [entry for entry in made()[1].summary.parks if entry.startswith("warning: ")]
    assert said == (
        "warning: window default keeps 45 min for a rollback (reserve), the longest from its stages takes about "
        "36 min to 1 h 30 min (6 restarts, the playbook's node_estimate)"
    )
    assert said.removeprefix("warning: ").split(",")[0] in " ".join(plan_text(made()[1]).split())
    assert not any(entry.startswith("warning: ") for entry in made(pace=Pace(node_estimate=60.0))[1].summary.parks)


@pytest.mark.slow
def test_a_roll_that_would_stand_half_done_too_long_is_said() -> None:
    """The freeze begins after tonight."""
    freeze = replace(NIGHTS, deny=(Dated("2026-12-08T05:00", "2027-01-05T00:00"),))
    playbook = replace(worlds.playbook(), windows={"default": freeze}, pace=Pace(node_estimate=2 * HOUR))
    plan = build(whole(Stage.ASSESS), playbook, target=Stage.SOAK, only=False, created=EVENING)
    parks = scheduled(plan, playbook, Durations(2 * HOUR)).summary.parks
    assert any("hybrid_max_age allows (1 d): the first roll does not begin" in entry for entry in parks)


def test_a_window_that_never_opens_any_more_is_refused() -> None:
    """No plan that nobody could ever apply."""
    over = replace(NIGHTS, allow=(Dated("2020-01-01T00:00", "2020-01-02T00:00"),))
    with pytest.raises(WindowNeverOpens, match="does not open any more"):
        made(windows={"default": over})


@pytest.mark.slow
def test_the_schedule_survives_the_saved_file_and_older_files_are_read() -> None:
    """The saved plan is what `apply` reads."""
    plain, full = made()
    assert plan_from_json(plan_to_json(full)) == full
    old = plan_to_json(plain)
    for name in ("fit", "schedule", "parks"):
        assert f'"{name}"' in old
    assert plan_from_json(old) == plain
