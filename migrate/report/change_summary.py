"""What a plan adds, changes, restarts and writes, counted from its actions: one line, as Terraform's users know it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from migrate.model.findings import ranges
from migrate.model.plan import Plan, PlanKind, PlannedStep
from migrate.model.secrets import without_digits
from migrate.model.stage import Stage
from migrate.model.step import NO_ZNODE, Action
from migrate.report.wording import moment, plural

SYMBOLS: Final = {
    "+": "create",
    "~": "change",
    "-": "remove",
    ">": "restart",
    "=": "no change",
    "!": "irreversible",
    "?": "not known",
    "<": "undo",
}
SENSITIVE_WORDS: Final = "values are hidden as (sensitive 3f9a12cd): equal digits are equal values, in this plan alone"
FORMATS: Final = ("format-controllers", "format-voters")  # the kinds of the steps that add controllers


def changes(plan: Plan) -> dict[str, int]:
    """The plan's actions counted by what they do; those on znodes apart from those on hosts.

    `others` are changes of no file (requests to the controller).  `irreversible` are those after which no rollback
    exists, restarts too.
    """
    on_hosts = [action.symbol for _, action in actions(plan) if not action.znode]
    on_znodes = [action.symbol for _, action in actions(plan) if action.znode]
    formats = sum(action.symbol == "+" for step, action in actions(plan) if step.kind in FORMATS)
    return {
        "controllers": formats,
        "created": on_hosts.count("+") - formats,
        "changed": len(diffs(plan)),
        "others": sum(action.symbol == "~" and not action.diff and not action.znode for _, action in actions(plan)),
        "removed": on_hosts.count("-"),
        "restarts": len(restarts(plan)),
        "znodes_written": on_znodes.count("+") + on_znodes.count("~"),
        "znodes_deleted": on_znodes.count("-"),
        "irreversible": on_hosts.count("!") + on_znodes.count("!"),
    }


def changes_nothing(plan: Plan) -> bool:
    """Would applying the plan leave everything as it is?"""
    return not any(changes(plan).values())


def changes_line(plan: Plan) -> str:
    """One line, as in `Plan: 3 controllers to add, 9 files to create, ..., 3 IRREVERSIBLE`."""
    number = changes(plan)
    parts = [
        f"{plural(number['controllers'], 'controller')} to add",
        f"{plural(number['created'], 'file')} to create",
        f"{number['changed']:,} to change",
        *([plural(number["others"], "other change")] if number["others"] else []),
        f"{number['removed']:,} to remove",
        plural(number["restarts"], "start or restart", "starts and restarts"),
        f"{plural(number['znodes_written'], 'znode')} to write",
        f"{number['znodes_deleted']:,} to delete",
        f"{number['irreversible']:,} {'IRREVERSIBLE' if number['irreversible'] else 'irreversible'}",
    ]
    return f"Plan: {', '.join(parts)}."


def actions(plan: Plan) -> Iterator[tuple[PlannedStep, Action]]:
    """Every action with its step, in the order in which they would happen."""
    for step in plan.steps:
        for action in step.actions:
            yield step, action


def by_stage(plan: Plan) -> dict[Stage, list[PlannedStep]]:
    """The plan's steps by stage, in the plan's order."""
    found: dict[Stage, list[PlannedStep]] = {}
    for step in plan.steps:
        found.setdefault(step.stage, []).append(step)
    return found


def restarts(plan: Plan) -> list[tuple[PlannedStep, Action]]:
    """Starts and restarts in order; one without a rollback is a restart, too."""
    return [(step, action) for step, action in actions(plan) if action.symbol in (">", "!") and not action.znode]


def diffs(plan: Plan) -> list[tuple[PlannedStep, Action]]:
    """Actions that change a file, each with its difference; a file that is created is no change."""
    return [(step, action) for step, action in actions(plan) if action.symbol == "~" and action.diff]


def znodes(plan: Plan) -> list[tuple[PlannedStep, Action]]:
    """Actions on znodes."""
    return [(step, action) for step, action in actions(plan) if action.znode]


def znode_values(action: Action) -> dict[str, str]:
    """Its version, and its value before and after; a znode that is not there has no version."""
    version = "none" if action.before == NO_ZNODE else action.version
    values = {"version": version, "before": action.before, "after": action.after}
    return {name: "unknown" if value is None else str(value) for name, value in values.items()}


def disks_by_state(plan: Plan) -> list[dict[str, str]]:
    """One row for all directories in one state: the brokers, how many directories and replicas, the least free."""
    found: dict[tuple[str, str], list[Mapping[str, str]]] = {}
    for row in plan.summary.disks:
        found.setdefault((row.get("health", "?"), row.get("meta", "?")), []).append(row)
    return [
        {
            "brokers": _brokers({row["broker"] for row in rows if "broker" in row}),
            "directories": str(len(rows)),
            "health": health,
            "meta": meta,
            "replicas": _total(rows, "replicas"),
            "bytes": _total(rows, "bytes"),
            "least free": min((row.get("free", "") for row in rows), key=_least),
        }
        for (health, meta), rows in found.items()
    ]


def _least(free: str) -> int:
    return int(free) if free.isdecimal() else -1


def _brokers(names: Collection[str]) -> str:
    return ranges(map(int, names)) if all(name.isdecimal() for name in names) else ", ".join(sorted(names))


def _total(rows: Sequence[Mapping[str, str]], name: str) -> str:
    cells = [row.get(name, "") for row in rows]
    return str(sum(map(int, cells))) if all(cell.isdecimal() for cell in cells) else "unknown"


def disparate(plan: Plan) -> list[Mapping[str, str]]:
    """The rows of the parity matrix where a controller's value is not the brokers'."""
    return [
        row
        for row in plan.summary.parity
        if any(value != "equal" for name, value in row.items() if name.startswith("controller "))
    ]


def rollback_by_procedure(plan: Plan) -> list[dict[str, str]]:
    """The rows of the rollback table, with neighbours that are the same as one row of several stages."""
    found: list[dict[str, str]] = []
    for row in map(dict, plan.summary.rollback):
        stage = row.pop("stage", "")
        if found and {name: cell for name, cell in found[-1].items() if name != "stage"} == row:
            found[-1]["stage"] += f", {stage}"
        else:
            found.append({"stage": stage, **row})
    return found


def rollback_words(row: Mapping[str, str]) -> str:
    """One of these rows as a sentence, without what is nothing."""
    time, lost = row.get("time", ""), row.get("lost", "")
    told = [f"about {time}"] if time[:1].isdecimal() else []
    told += [f"lost: {lost}"] if lost not in ("", "-", "nothing") else []
    return f"{row.get('stage', '')}: {'; '.join([row.get('procedure', ''), *told])}"


def sources(plan: Plan) -> dict[str, str]:
    """Name the inputs of the plan, and the sums that bind it to them."""
    hides = any(without_digits(line) != line for _, action in actions(plan) for line in action.diff)
    return {
        "Created": f"{moment(plan.created)} by kraft-migrate {plan.tool_version}",
        "Playbook": f"{plan.playbook} (sha256 {plan.playbook_sha256[:12]})",
        "Inventory": plan.inventory,
        "Fingerprint": plan.fingerprint,
        "Content": plan.content,
        **({"Sensitive": SENSITIVE_WORDS} if hides else {}),
    }


def parity_words(plan: Plan) -> str:
    """What the matrix does not show."""
    return (
        f"{plural(plan.summary.parity_unset, 'further key')} that controllers would take in no file: "
        "Kafka's default holds on every node alike"
    )


def next_command(plan: Plan, path: str) -> str:
    """What applies the plan; one with the point of no return in it must be confirmed by its fingerprint.

    Only the plan itself hands that out, at its end.
    """
    confirm = f" --confirm {plan.fingerprint}" if plan.needs_confirmation else ""
    return f"kraft-migrate {plan.kind.apply_command} {shlex.quote(path)}{confirm}"


def name_asked(plan: Plan) -> str:
    """What `apply` asks for besides its fingerprint; "" where nothing.  The name is typed: no command line has it."""
    if plan.kind.rolls_back or not plan.irreversible:
        return ""
    return "it asks for the cluster's name; where there is no terminal, add --confirm-cluster with the name"


def stage_words(plan: Plan, stage: Stage) -> str:
    """The heading of a stage's steps; a rollback undoes the stages' effects, the last one's first."""
    if plan.kind.migrates and plan.kind.rolls_back and stage <= Stage.ASSESS:
        return "Proof"
    return plan.words.heading.format(number=int(stage), label=stage.label)


def inventory_words(plan: Plan) -> str:
    """What the counts of the metadata promise."""
    return f"Metadata that must be there {'after the copy' if plan.kind is PlanKind.FORWARD else 'in the end'}"
