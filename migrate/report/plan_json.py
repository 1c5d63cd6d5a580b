"""A plan as JSON and back, without loss.  The saved file is what `apply` reads, so a strange one is refused whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from migrate.errors import MalformedPlan, PlanUnreadable
from migrate.model import strict_json
from migrate.model.findings import Finding, Severity
from migrate.model.plan import PLAN_FORMAT, Direction, Plan, PlannedStep, PlanSummary
from migrate.model.stage import Stage
from migrate.model.step import Action

SCHEMA: Final = f"kraft-migrate/plan/v{PLAN_FORMAT}"
NOT_AS_SAVED: Final = "it is not the plan that was saved"


def plan_to_json(plan: Plan) -> str:
    """Schema, fingerprint, the whole plan, and the sum of all of it; ends with a newline."""
    body = {
        "schema": SCHEMA,
        "fingerprint": plan.fingerprint,
        "irreversible": plan.irreversible,
        "content": plan.content,
        "plan": plan.body,
    }
    return json.dumps(body, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def plan_from_json(text: str) -> Plan:
    """The plan that `plan_to_json` wrote.

    Raises:
        MalformedPlan: it is none.
        PlanUnreadable: it is one, and not as it was saved.
    """
    whole = _envelope(text)
    try:
        plan = _plan_of(_table(whole["plan"]))
        stated, content = _text(whole["fingerprint"]), _text(whole["content"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedPlan(f"the plan cannot be read: {error}", why="it is damaged or was edited") from error
    if stated != plan.fingerprint:
        raise PlanUnreadable(f"{NOT_AS_SAVED}: its fingerprint is {plan.short}, it states {stated[:8]}")
    if content != plan.content:
        raise PlanUnreadable(f"{NOT_AS_SAVED}: its findings, words or figures are others")
    return plan


def _envelope(text: str) -> Mapping[str, Any]:
    try:
        whole = strict_json.loads(text)
    except strict_json.NotStrictJson as error:
        raise MalformedPlan(str(error), why="it is damaged or no plan") from error
    if not isinstance(whole, dict) or whole.get("schema") != SCHEMA:
        raise MalformedPlan(f"the file's schema is not {SCHEMA}", why="it is no plan, or of another version")
    return whole


def _plan_of(raw: Mapping[str, Any]) -> Plan:
    texts = (
        *("cluster", "cluster_id", "change", "tool_version"),
        *("playbook", "playbook_sha256", "inventory", "inventory_sha256"),
    )
    _exactly(raw, Plan)
    return Plan(
        **{name: _text(raw[name]) for name in texts},
        created=_number(raw["created"]),
        target=_stage(raw["target"]),
        steps=tuple(_step_of(_table(step)) for step in _list(raw["steps"])),
        findings=tuple(_finding_of(_table(entry)) for entry in _list(raw["findings"])),
        summary=_summary_of(_table(raw["summary"])),
        direction=Direction(_text(raw["direction"])),
    )


def _step_of(raw: Mapping[str, Any]) -> PlannedStep:
    _exactly(raw, PlannedStep)
    return PlannedStep(
        id=_text(raw["id"]),
        kind=_text(raw["kind"]),
        title=_text(raw["title"]),
        undo=_text(raw["undo"]),
        proof=_text(raw["proof"]),
        params=_texts_by_name(raw["params"]),
        binds=_texts_by_name(raw["binds"]),
        expects=_texts_by_name(raw["expects"]),
        stage=_stage(raw["stage"]),
        actions=tuple(_action_of(_table(entry)) for entry in _list(raw["actions"])),
    )


def _action_of(raw: Mapping[str, Any]) -> Action:
    _exactly(raw, Action)
    return Action(
        **{name: _text(raw[name]) for name in ("symbol", "where", "what", "znode")},
        diff=tuple(map(_text, _list(raw["diff"]))),
    )


def _finding_of(raw: Mapping[str, Any]) -> Finding:
    _exactly(raw, Finding)
    return Finding(
        **{name: _text(raw[name]) for name in ("code", "about", "message", "evidence", "fix")},
        severity=Severity(raw["severity"]),
        blocks_from=_integer(raw["blocks_from"]),
        objects=tuple(map(_text, _list(raw["objects"]))),
    )


def _summary_of(raw: Mapping[str, Any]) -> PlanSummary:
    _exactly(raw, PlanSummary)
    return PlanSummary(
        detected=_text(raw["detected"]),
        inventory={_text(key): _integer(value) for key, value in _table(raw["inventory"]).items()},
        disks=tuple(_texts_by_name(row) for row in _list(raw["disks"])),
        availability=tuple(map(_text, _list(raw["availability"]))),
        blind_spots=tuple(map(_text, _list(raw["blind_spots"]))),
        rollback=tuple(_texts_by_name(row) for row in _list(raw["rollback"])),
        fit=_text(raw["fit"]),
        schedule=tuple(_texts_by_name(row) for row in _list(raw["schedule"])),
        parks=tuple(map(_text, _list(raw["parks"]))),
        approvals=tuple(_texts_by_name(row) for row in _list(raw["approvals"])),
        parity=tuple(_texts_by_name(row) for row in _list(raw["parity"])),
        parity_unset=_integer(raw["parity_unset"]),
        checks=_integer(raw["checks"]),
    )


def _exactly(raw: Mapping[str, Any], cls: type) -> None:
    wanted = {entry.name for entry in fields(cls)}
    if set(raw) != wanted:
        odd = ", ".join(sorted(wanted ^ set(raw)))
        message = f"{cls.__name__} has missing or unknown fields: {odd}"
        raise ValueError(message)


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        message = f"an object belongs here, not {value!r:.60}"
        raise TypeError(message)
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        message = f"a list belongs here, not {value!r:.60}"
        raise TypeError(message)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"a text belongs here, not {value!r:.60}"
        raise TypeError(message)
    return value


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"a whole number belongs here, not {value!r:.60}"
        raise TypeError(message)
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        message = f"a number belongs here, not {value!r:.60}"
        raise TypeError(message)
    return float(value)


def _stage(value: Any) -> Stage:
    try:
        return Stage.from_label(_text(value))
    except KeyError:
        message = f"there is no stage {value!r:.60}"
        raise ValueError(message) from None


def _texts_by_name(value: Any) -> dict[str, str]:
    return {_text(key): _text(entry) for key, entry in _table(value).items()}
