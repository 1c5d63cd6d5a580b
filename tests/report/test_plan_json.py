"""A saved plan comes back without loss, and a strange one is refused whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate import __version__
from migrate.errors import InputError, MalformedPlan, PlanUnreadable
from migrate.model.findings import Finding, Severity
from migrate.model.plan import Plan, PlannedStep, PlanSummary
from migrate.model.stage import Stage
from migrate.model.step import Action
from migrate.report.plan_json import SCHEMA, plan_from_json, plan_to_json
from tests.report import story

words = st.text(max_size=12)
texts = st.dictionaries(words, words, max_size=3)
numbers = st.integers(-(2**40), 2**40)
actions = st.builds(
    Action,
    symbol=st.sampled_from("+~->=!"),
    where=words,
    what=words,
    diff=st.tuples(words, words),
    znode=words,
    version=st.none() | st.integers(0, 2**31 - 1),
    before=st.none() | words,
    after=st.none() | words,
)
steps = st.builds(
    PlannedStep,
    id=words,
    kind=words,
    stage=st.sampled_from(Stage),
    title=words,
    params=texts,
    actions=st.lists(actions, max_size=2).map(tuple),
    binds=texts,
    expects=texts,
    undo=words,
    proof=words,
    requires=st.lists(words, max_size=2).map(tuple),
)
findings = st.builds(
    Finding,
    code=words,
    severity=st.sampled_from(Severity),
    about=words,
    message=words,
    evidence=words,
    fix=words,
    blocks_from=st.integers(0, 99),
    objects=st.lists(words, max_size=3).map(tuple),
)
summaries = st.builds(
    PlanSummary,
    detected=words,
    inventory=st.dictionaries(words, numbers, max_size=3),
    disks=st.lists(texts, max_size=2).map(tuple),
    availability=st.lists(words, max_size=2).map(tuple),
    blind_spots=st.lists(words, max_size=2).map(tuple),
    rollback=st.lists(texts, max_size=2).map(tuple),
    checks=st.integers(0, 200),
)
plans = st.builds(
    Plan,
    cluster=words,
    cluster_id=words,
    change=words,
    tool_version=words,
    created=st.floats(0, 2.0**40),
    target=st.sampled_from(Stage),
    playbook=words,
    playbook_sha256=words,
    inventory=words,
    steps=st.lists(steps, max_size=3).map(tuple),
    findings=st.lists(findings, max_size=3).map(tuple),
    summary=summaries,
)


@pytest.mark.slow
@given(plans)
@settings(max_examples=60)
def test_a_saved_plan_is_the_same_plan(plan: Plan) -> None:
    """Every field comes back, and with them the fingerprint."""
    text = plan_to_json(plan)

    again = plan_from_json(text)

    assert again == plan
    assert (again.fingerprint, again.content) == (plan.fingerprint, plan.content)


def test_the_file_names_its_schema_and_says_whether_there_is_a_rollback() -> None:
    """A reader of the file need not know our code."""
    whole = json.loads(plan_to_json(story.plan()))

    assert whole["schema"] == SCHEMA
    assert whole["irreversible"] is True
    assert whole["plan"]["target"] == "cleanup"
    assert whole["plan"]["steps"][0]["stage"] == "discover"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"plan"', "{}", '{"schema": "kraft-migrate/plan/v3"}', "[" * 100_000],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    """An input error with an id; never a traceback."""
    with pytest.raises(MalformedPlan) as refused:
        plan_from_json(text)

    assert isinstance(refused.value, InputError)
    assert refused.value.id == "E-REPORT-01"


def _edited(path: str, value: Any) -> str:
    whole = json.loads(plan_to_json(story.plan()))
    place = whole
    *way, last = (int(key) if key.isdecimal() else key for key in path.split("."))
    for key in way:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(whole)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("plan", []),
        ("plan.cluster", 3),
        ("plan.cluster", ...),
        ("plan.surprise", "x"),
        ("plan.target", "the-end"),
        ("plan.target", 10),
        ("plan.created", "yesterday"),
        ("plan.created", True),
        ("plan.steps", {}),
        ("plan.steps.0", "discover"),
        ("plan.steps.0.params", {"broker": 1}),
        ("plan.steps.0.stage", None),
        ("plan.steps.0.shell", "rm"),
        ("plan.steps.1.actions.0.diff", "no list"),
        ("plan.steps.1.actions.0.version", "3"),
        ("plan.steps.1.actions.0.before", 3),
        ("plan.findings.0.severity", "Z"),
        ("plan.findings.0.blocks_from", True),
        ("plan.summary.inventory", {"topics": 1.5}),
        ("plan.summary.disks", [1]),
    ],
)
def test_a_plan_that_was_edited_out_of_shape_is_refused(path: str, value: Any) -> None:
    """Missing and unknown fields, wrong types, unknown stages: nothing is guessed."""
    with pytest.raises(MalformedPlan):
        plan_from_json(_edited(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("plan.steps.0.params", {"broker": "9"}),
        ("plan.steps.1.actions.0.what", "nothing is changed"),
        ("plan.findings", []),
        ("plan.summary.blind_spots", []),
        ("plan.created", 2.0),
    ],
)
def test_a_plan_of_other_content_than_was_saved_is_refused(path: str, value: Any) -> None:
    """It still reads; a reviewer would sign something else than he read."""
    with pytest.raises(PlanUnreadable, match="not the plan that was saved"):
        plan_from_json(_edited(path, value))


def test_a_plan_without_fingerprint_is_refused() -> None:
    """There is nothing to hold it to."""
    for name in ("fingerprint", "content"):
        for value in (7, ...):
            with pytest.raises(MalformedPlan):
                plan_from_json(_edited(name, value))


def test_a_plan_of_another_release_is_not_called_damaged() -> None:
    """Its parts can be others: who upgraded in the middle of a run reads which release ends it."""
    whole = json.loads(plan_to_json(story.plan()))
    whole["plan"]["tool_version"] = "0.2.9"
    whole["plan"]["approvals"] = []
    with pytest.raises(MalformedPlan, match=r"release 0\.2\.9 made this plan, and .* cannot") as refused:
        plan_from_json(json.dumps(whole))
    assert "is ended with release 0.2.9" in refused.value.next_step
    whole["plan"]["tool_version"] = __version__
    with pytest.raises(MalformedPlan, match="cannot be read") as refused:
        plan_from_json(json.dumps(whole))
    assert "damaged or was edited" in refused.value.why
