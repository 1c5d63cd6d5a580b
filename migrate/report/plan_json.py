"""A plan as JSON and back, without loss.  The saved file is what `apply` reads, so a strange one is refused whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

from typing_extensions import TypedDict

from migrate import __version__
from migrate.errors import MalformedPlan, PlanUnreadable
from migrate.model import strict_json
from migrate.model.codec import NotDecodable, decode
from migrate.model.plan import Plan

SCHEMA: Final = "kraft-migrate/plan/v3"  # of PLAN_FORMAT
NOT_AS_SAVED: Final = "it is not the plan that was saved"


class PlanAnswer(TypedDict):
    """What `plan` and `rollback plan` answer: the plan, and the sum of all of it as `content`."""

    schema: Literal["kraft-migrate/plan/v3"]
    fingerprint: str
    irreversible: bool
    content: str
    plan: Plan


def plan_values(plan: Plan) -> PlanAnswer:
    """Schema, fingerprint, the whole plan, and the sum of all of it."""
    return {
        "schema": SCHEMA,
        "fingerprint": plan.fingerprint,
        "irreversible": plan.irreversible,
        "content": plan.content,
        "plan": cast("Plan", plan.body),  # its fields as JSON values
    }


def plan_to_json(plan: Plan) -> str:
    """The same as a file; ends with a newline."""
    return json.dumps(plan_values(plan), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def plan_from_json(text: str) -> Plan:
    """The plan that `plan_to_json` wrote.

    Raises:
        MalformedPlan: it is none.
        PlanUnreadable: it is one, and not as it was saved.
    """
    whole = _envelope(text)
    try:
        plan: Plan = decode(Plan, whole["plan"], "plan", plain=True)
        stated, content = (decode(str, whole[name], name) for name in ("fingerprint", "content"))
    except (KeyError, NotDecodable) as error:
        raise _unreadable(whole, error) from error
    if stated != plan.fingerprint:
        raise PlanUnreadable(f"{NOT_AS_SAVED}: its fingerprint is {plan.short}, it states {stated[:8]}")
    if content != plan.content:
        raise PlanUnreadable(f"{NOT_AS_SAVED}: its findings, words or figures are others")
    return plan


def _unreadable(whole: Mapping[str, Any], error: Exception) -> MalformedPlan:
    """What another release saved can have other parts, and is no more damaged for it."""
    made_by = whole["plan"].get("tool_version") if isinstance(whole.get("plan"), dict) else None
    if isinstance(made_by, str) and made_by != __version__:
        return MalformedPlan(
            f"release {made_by[:20]} made this plan, and release {__version__} cannot read it",
            why="plans of two releases can have other parts",
            next_step=f"a run that has begun is ended with release {made_by[:20]}; else make the plan again with "
            "`kraft-migrate plan`",
        )
    return MalformedPlan(f"the plan cannot be read: {error}", why="it is damaged or was edited")


def _envelope(text: str) -> Mapping[str, Any]:
    try:
        whole = strict_json.loads(text)
    except strict_json.NotStrictJson as error:
        raise MalformedPlan(str(error), why="it is damaged or no plan") from error
    if not isinstance(whole, dict) or whole.get("schema") != SCHEMA:
        raise MalformedPlan(f"the file's schema is not {SCHEMA}", why="it is no plan, or of another version")
    return whole
