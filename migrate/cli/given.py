"""What a command is given: a playbook, an inventory, a run's id, its folder or its plan, whichever is at hand.

`apply`, `report`, and what `cluster_options` gives its argument to find here what they need of it.  A plan to carry out
is never chosen among several: they are named, and a person chooses.
"""

from __future__ import annotations

import pathlib
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click

from migrate.cli.screen import say
from migrate.errors import InputError, JournalDamaged, MalformedPlan, PlanUnreadable, UsageWrong
from migrate.hosts.files import read_within
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.plan import SHORT, Plan
from migrate.model.stage import MIGRATION
from migrate.model.trusted import distrust_at
from migrate.model.words import plural
from migrate.playbook.document import INVENTORY, PLAYBOOK, SAVED_PLAN, read_kind, refuse_other
from migrate.playbook.load import load_inventory, load_playbook_with_inventory
from migrate.report.plan_json import plan_from_json
from migrate.report.plan_verdict import judge, may_begin
from migrate.run import journal as journals
from migrate.run.carry_out import folder_of

FIRST_NAME: Final = "plan.json"
JOURNAL: Final = "journal.jsonl"
ADDRESS: Final = re.compile(r"[\w.\[\]-]+:[0-9]{1,5}(/[\w/-]*)?(,.*)?")
BELOW: Final = ("", "*/", "*/*/")  # where folders of runs are looked for, from the present one
MOST_NAMED: Final = 5
LOOKED_AT: Final = 50
ZOOKEEPER_PORTS: Final = (":2181", ":2182", ":2281")
BESIDE: Final = {".txt": "the plan as text", ".html": "the plan's page", ".jsonl": "the journal of a run"}


def runs_below(pattern: str) -> list[pathlib.Path]:
    """What matches the pattern in folders of runs below the present folder, the newest first."""
    found = [path for above in BELOW for path in pathlib.Path().glob(f"{above}runs/{pattern}")]
    return sorted(found, key=lambda path: -path.stat().st_mtime)


def cluster_given(
    given: pathlib.Path | None, inventory: pathlib.Path | None
) -> tuple[pathlib.Path | None, pathlib.Path | None]:
    """The playbook's file and the inventory's, as the command line gives them or as a plan names them."""
    if given is None:
        if inventory is not None and read_kind(inventory) == PLAYBOOK:
            raise UsageWrong(
                "this is a playbook, not an inventory",
                where=str(inventory),
                next_step=f"{_command()} {shlex.quote(str(inventory))}",
            )
        return None, inventory
    plan = _plan_file(given)
    if plan is not None:
        return pathlib.Path(load_plan(plan).playbook), inventory
    if inventory is None and read_kind(given) == INVENTORY:
        return None, given
    if ADDRESS.fullmatch(str(given)) and not given.exists():
        zookeeper = given if str(given).partition("/")[0].endswith(ZOOKEEPER_PORTS) else "HOST:2181/CHROOT"
        raise UsageWrong(
            "this is an address, not a file",
            where=str(given),
            why="a cluster is named by a playbook, an inventory or a run; `assess` takes ZooKeeper's address as well, "
            "as `zookeeper.connect` of a broker's file says it",
            next_step=f"kraft-migrate assess --zookeeper {zookeeper}; `kraft-migrate inventory init` writes an "
            "inventory",
        )
    if not given.exists() and inventory is None:
        _refuse_misplaced(given)
    return given, inventory


def _refuse_misplaced(given: pathlib.Path) -> None:
    """UsageWrong for a broker's id, a stage, or a plan of another folder, where the file of a cluster belongs."""
    named = next((shlex.quote(str(path)) for path in playbooks_in(pathlib.Path())), "PLAYBOOK")
    if str(given).isdecimal():
        raise UsageWrong(
            "this is a broker's id, and no command looks at one alone",
            where=str(given),
            next_step=f"{_command()} {named}",
        )
    if str(given) in [stage.label for stage in MIGRATION]:
        raise UsageWrong("this is a stage", where=str(given), next_step=f"kraft-migrate plan {named} --stage {given}")
    if given.name == FIRST_NAME:
        raise PlanUnreadable("the plan cannot be read: No such file or directory", where=str(given), **_plans_here())


def playbook_given(given: pathlib.Path) -> pathlib.Path:
    """The playbook's file; of an inventory the one by which its plans were made, where that is one."""
    playbook, inventory = cluster_given(given, None)
    if playbook is not None:
        return playbook
    assert inventory is not None
    known = load_inventory(inventory)
    found = sorted({plan.playbook for _, plan in _plans(known) if plan.inventory_sha256 == known.sha256})
    if len(found) == 1:
        return pathlib.Path(found[0])
    beside = playbooks_in(inventory.parent)
    raise UsageWrong(
        "this is an inventory, and a playbook is needed",
        where=str(given),
        why=f"its plans were made by {', '.join(found)}" if found else "no plan was made by it as it is now",
        next_step=f"{_command()} {shlex.quote(str(beside[0])) if beside else 'PLAYBOOK'}",
    )


def playbooks_in(folder: pathlib.Path) -> list[pathlib.Path]:
    """The playbooks in that folder, and those of its folders: what may have been meant."""
    found = [path for pattern in ("*.yaml", "*/*.yaml") for path in sorted(folder.glob(pattern))[:LOOKED_AT]]
    named = [path for path in found if read_kind(path) == PLAYBOOK]
    return ([path for path in named if path.name == "playbook.yaml"] or named)[:MOST_NAMED]


def _command() -> str:
    """The command as it was given: `kraft-migrate status`."""
    context = click.get_current_context(silent=True)
    return "kraft-migrate" if context is None else context.command_path


def plan_given(given: pathlib.Path | None, *, back: bool) -> pathlib.Path:
    """The plan's file; of a playbook or an inventory the only plan of it that is not carried out.

    Raises:
        UsageWrong: there is none, or more than one; they are named.
        PlanUnreadable: no such file is there; those that are there are named.
    """
    if given is None:
        _refuse_plan_as_fingerprint()
        raise UsageWrong("name a plan, its run, or its playbook", **_plans_here(back))
    plan = _plan_file(given)
    if plan is not None:
        return plan
    if not given.exists():
        raise PlanUnreadable(
            "the plan cannot be read: No such file or directory", where=str(given), **_plans_here(back)
        )
    if given.name != FIRST_NAME and given.suffix in BESIDE and given.is_file():
        meant = given.with_suffix(".json") if given.with_suffix(".json").exists() else given.with_name(FIRST_NAME)
        if meant.exists():
            raise UsageWrong(
                f"this is {BESIDE[given.suffix]}, not the plan itself",
                where=str(given),
                next_step=f"{_command()} {shlex.quote(str(meant))}",
            )
    kind = read_kind(given)
    if kind not in (PLAYBOOK, INVENTORY):
        return given
    inventory, playbook = loaded_given(given)
    command = f"kraft-migrate {'rollback ' * back}"
    left = [
        _Left(path, found)
        for path, found in _plans(inventory)
        if found.kind.rolls_back is back
        and found.inventory_sha256 == inventory.sha256
        and (isinstance(playbook, Unknown) or found.playbook_sha256 == playbook.sha256)
        and not _ended(path)
    ]
    if len(left) == 1:
        say(f"plan {left[0]}", err=True)
        return left[0].path
    what = f"this is {kind.name}, not a saved plan, and "
    if left:
        listed = "; ".join(map(str, left[:MOST_NAMED])) + f"; and {len(left) - MOST_NAMED} more" * (
            len(left) > MOST_NAMED
        )
        raise UsageWrong(
            f"{what}{plural(len(left), 'plan')} of it {'is' if len(left) == 1 else 'are'} not carried out",
            where=str(given),
            why=listed,
            next_step=_one_of(left, command),
        )
    named = shlex.quote(str(given)) if kind == PLAYBOOK else "PLAYBOOK"
    raise UsageWrong(
        f"{what}no plan of it as it is now is left to carry out",
        where=str(given),
        why=f"plans are in {inventory.runs}",
        next_step=f"{command}plan {named}",
    )


def _refuse_plan_as_fingerprint() -> None:
    """UsageWrong for `--confirm plan.json`."""
    context = click.get_current_context(silent=True)
    said = str(context.params.get("confirm") or "") if context is not None else ""
    if said.endswith(".json") or "/" in said:
        raise UsageWrong(
            "--confirm takes the fingerprint of a plan, and this is its file",
            where=said,
            next_step=f"{_command()} {shlex.quote(said)} --confirm FINGERPRINT: the plan's text ends with it",
        )


def _one_of(left: Sequence[_Left], command: str) -> str:
    begun = [one for one in left if one.begun]
    if len(begun) == 1:
        return f"{command}apply {shlex.quote(str(begun[0].path))} continues the run that was begun"
    if any(may_begin(one.plan) for one in left):
        return f"{command}apply, with the one of them that you have read"
    return f"none of them can begin: mend what blocks them (`kraft-migrate status`), then {command}plan again"


def run_given(given: pathlib.Path) -> pathlib.Path:
    """The run's folder; of a playbook or an inventory that of its newest run.

    Raises:
        UsageWrong: there is none.
    """
    path = _plan_file(given)
    if path is not None:
        if given.is_dir():  # a copy elsewhere as well
            return given
        plan = load_plan(path)
        return path.parent if path.parent.name == plan.short else folder_of(load_inventory(plan.inventory), plan).path
    kind = read_kind(given)
    if kind in (PLAYBOOK, INVENTORY):
        inventory, _ = loaded_given(given)
        found = sorted(pathlib.Path(inventory.runs).glob(f"*/{JOURNAL}"), key=lambda run: -run.stat().st_mtime)
        if found:
            say(f"run {found[0].parent.name}: {found[0].parent}", err=True)
            return found[0].parent
        raise UsageWrong(
            f"no run of {kind.name} like this is there",
            where=str(given),
            why=f"its runs are in {inventory.runs}",
            next_step="`kraft-migrate apply` begins one",
        )
    named = [run.parent for run in runs_below(f"*/{JOURNAL}")]
    raise UsageWrong(
        "no run is there",
        where=str(given),
        why="it is not a run's folder or id, a plan, a playbook or an inventory",
        next_step=f"name one of {_listed(named)}" if named else "name the folder RUNS/PLAN that `apply` wrote",
    )


def _listed(paths: Sequence[pathlib.Path], between: str = ", ") -> str:
    """The first of them, as a shell takes them."""
    return between.join(shlex.quote(str(path)) for path in paths[:MOST_NAMED])


def _plans_here(back: bool | None = None) -> dict[str, str]:
    """What an error says of the plans below the present folder: of rollbacks, of the others, or of both."""
    found = [path for path in runs_below(f"*/{FIRST_NAME}") if back is None or _leads_back(path) in (back, None)]
    kind = " of a rollback" if back else ""
    if not found:
        named = next((shlex.quote(str(path)) for path in playbooks_in(pathlib.Path())), "PLAYBOOK")
        make = f"make one: kraft-migrate {'rollback ' if back else ''}plan {named}"
        return {"why": f"no plan{kind} is below this folder", "next_step": make}
    return {
        "why": f"plans{kind} below this folder, the newest first: {_listed(found)}",
        "next_step": f"name one of them: {_command()} {_listed(found[:1])}",
    }


def _leads_back(plan: pathlib.Path) -> bool | None:
    """Is that the plan of a rollback?  None where it cannot be read."""
    try:
        return load_plan(plan).kind.rolls_back
    except InputError:
        return None


@dataclass(frozen=True, slots=True)
class _Left:
    path: pathlib.Path
    plan: Plan

    @property
    def begun(self) -> bool:
        return (self.path.parent / JOURNAL).exists()

    def __str__(self) -> str:
        begun = "begun" if self.begun else "not begun"
        stopped = "" if may_begin(self.plan) else f", {judge(self.plan).word}"
        return f"{self.path} (up to {self.plan.target.label}, {begun}{stopped})"


def _plan_file(given: pathlib.Path) -> pathlib.Path | None:
    """The plan that a run's folder, its id or the plan's own name names; None for what is none of these.

    Raises:
        UsageWrong: more than one run below the present folder has that id, or a folder is none of a run.
    """
    if given.is_dir():
        if any((given / name).exists() for name in (FIRST_NAME, JOURNAL)):
            return given / FIRST_NAME
        inside = [run.parent for run in sorted(given.glob(f"*/{FIRST_NAME}"))] or playbooks_in(given)
        raise UsageWrong(
            "this is a folder, and none of a run",
            where=str(given),
            next_step=f"did you mean {_listed(inside, ' or ')}?"
            if inside
            else "name a playbook, an inventory, a run or its plan",
        )
    if given.exists() or not SHORT.fullmatch(str(given)):
        return given if given.exists() and given.suffix == ".json" and read_kind(given) in (None, SAVED_PLAN) else None
    found = {path.resolve(): path for path in runs_below(f"{given}/{FIRST_NAME}")}
    if len(found) > 1:
        listed = ", ".join(map(str, found.values()))
        raise UsageWrong("more than one run has that id", where=str(given), why=listed, next_step="name its folder")
    if not found:
        known = [path.parent.name for path in runs_below(f"*/{FIRST_NAME}")][:MOST_NAMED]
        raise UsageWrong(
            "no run of that id is below this folder",
            where=str(given),
            why=f"there are {', '.join(known)}" if known else "",
            next_step="name its folder or its plan",
        )
    return next(iter(found.values()))


def loaded_given(given: pathlib.Path) -> tuple[Inventory, Playbook | Unknown]:
    """Those of a playbook's or an inventory's file."""
    if read_kind(given) == INVENTORY:
        return load_inventory(given), Unknown("an inventory was given")
    playbook, inventory = load_playbook_with_inventory(given)
    return inventory, playbook


def _plans(inventory: Inventory) -> Iterator[tuple[pathlib.Path, Plan]]:
    """Every plan in the inventory's folder of runs that can be read."""
    for path in sorted(pathlib.Path(inventory.runs).glob(f"*/{FIRST_NAME}")):
        try:
            yield path, load_plan(path)
        except InputError:
            continue


def _ended(plan: pathlib.Path) -> bool:
    """Is it carried out?  A damaged journal is none that says so: `apply` refuses it, and says why."""
    journal = plan.parent / JOURNAL
    try:
        return journal.exists() and journals.is_complete(journals.read(journal).events)
    except JournalDamaged:
        return False


def load_plan(path: pathlib.Path) -> Plan:
    """A saved plan, or that of a run's folder.

    PlanUnreadable where it is none, was changed by hand, or could have been written by others.
    """
    path = path / FIRST_NAME if path.is_dir() else path
    refuse_other(MalformedPlan, SAVED_PLAN, path)
    try:
        if problem := distrust_at(path):
            raise PlanUnreadable(f"it cannot be trusted: {problem}", where=str(path), next_step="chmod go-w, or chown")
        text = read_within(path, "plan").decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PlanUnreadable(f"the plan cannot be read: {why}", where=str(path)) from error
    try:
        return plan_from_json(text)
    except (MalformedPlan, PlanUnreadable) as error:
        raise type(error)(error.what, where=str(path), why=error.why, next_step=error.next_step) from error
