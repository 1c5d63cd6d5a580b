"""The matrix that a plan shows: of files that lie there, and of those that it would render."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.checks.parity import Cell
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.plan.build import build
from migrate.plan.parity import rows_of
from migrate.report.plan_html import plan_html
from migrate.report.plan_json import plan_from_json, plan_to_json
from migrate.report.plan_text import plan_text
from tests.testing.worlds import playbook, with_values, world_at


@pytest.mark.parametrize(
    "stage", [Stage.ASSESS, Stage.PREPARE, Stage.HYBRID, Stage.SOAK], ids=lambda stage: stage.label
)
def test_what_the_tool_renders_is_on_par_at_every_stage(stage: Stage) -> None:
    """Whether the files are there or only planned."""
    rows = rows_of(world_at(stage))
    assert {cell for row in rows for cell in row.controllers.values()} == {Cell.EQUAL}
    assert {row.key for row in rows} >= {"super.users", "password.encoder.secret", "inter.broker.listener.name"}
    assert {node for row in rows for node in row.controllers} == {3000, 3001, 3002}


def test_a_controllers_file_that_lies_there_is_compared_as_it_is() -> None:
    """Not as it would be rendered."""
    rows = {row.key: row for row in rows_of(with_values(world_at(Stage.PREPARE), 3001, super__users="User:x"))}
    assert rows["super.users"].controllers == {3000: Cell.EQUAL, 3001: Cell.DIFFERS, 3002: Cell.EQUAL}


def test_overrides_are_in_the_matrix() -> None:
    """They are the reason why a row may differ."""
    own = replace(playbook(), controller_overrides={NodeId(3002): {"num.io.threads": "9"}})
    rows = {row.key: row for row in rows_of(replace(world_at(Stage.ASSESS), playbook=own))}
    assert rows["num.io.threads"].controllers == {3000: Cell.ABSENT, 3001: Cell.ABSENT, 3002: Cell.ONLY_HERE}


def test_what_cannot_be_seen_has_no_row_and_no_column() -> None:
    """An unreadable file is no equal one."""
    whole = world_at(Stage.PREPARE)
    assert rows_of(replace(whole, configs=Unknown("no way there"))) == ()
    assert not isinstance(whole.configs, Unknown)
    dark = replace(whole, configs={**whole.configs, NodeId(3000): Unknown("permission denied")})
    assert {node for row in rows_of(dark) for node in row.controllers} == {3001, 3002}
    none = replace(whole, configs=dict.fromkeys(whole.configs, Unknown("permission denied")))
    assert rows_of(none) == ()


def test_the_plan_shows_it_in_every_format_and_keeps_it() -> None:
    """Terminal, page, file."""
    plan = build(world_at(Stage.ASSESS), playbook(), target=Stage.PREPARE, only=False, created=0.0)
    assert plan_from_json(plan_to_json(plan)).summary == plan.summary
    text, page = plan_text(plan), plan_html(plan)
    assert "Parity of the controllers' files with the brokers'" in text
    assert "min.insync.replicas" in text.partition("Parity of")[2]
    assert 'id="parity"' in page
    assert 'href="#parity"' in page
    for shown in (text, page, plan_to_json(plan)):
        assert "a-secret-of-the-lab" not in shown
