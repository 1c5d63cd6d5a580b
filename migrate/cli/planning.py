"""Making, saving and loading plans: shared by `plan`, `apply` and the lab's demo."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

from migrate.checks.problems import headline, problems
from migrate.checks.rollback.readiness import rollback_readiness
from migrate.cli import assessing
from migrate.cli.answers import give_answer
from migrate.cli.assessing import PLANNED_ON, lasting_findings
from migrate.cli.given import FIRST_NAME, load_plan
from migrate.cli.options import stage_named
from migrate.cli.screen import page_width, say, say_lines, say_text
from migrate.errors import (
    InputError,
    JournalDamaged,
    MigrateError,
    PlanExists,
    PlanIsStale,
    UsageWrong,
)
from migrate.hosts.files import create_file
from migrate.model.history import concluded
from migrate.model.inventory import Inventory, Playbook
from migrate.model.plan import Plan, PlanSummary
from migrate.model.ports import Observer
from migrate.model.rollback_readiness import RollbackReadiness, Weight
from migrate.model.stage import Stage
from migrate.model.world import Need, World
from migrate.plan import directories, protocol, rollback
from migrate.plan.build import build
from migrate.plan.schedule import scheduled
from migrate.report.plan_json import plan_to_json, plan_values
from migrate.report.plan_text import plan_html, plan_lines, plan_text
from migrate.run import journal as journals
from migrate.run import locks
from migrate.run.carry_out import folder_of, gone_back
from migrate.run.clock import SystemClock
from migrate.run.past_runs import ROLLBACK_NEEDS, by_journals, durations_of, rollback_facts


def target_stage(playbook: Playbook, name: str | None) -> Stage:
    """The stage of that name, or the playbook's last; UsageWrong for a name that is none, or not in the playbook."""
    if name is None:
        return max(playbook.stages)
    stage = stage_named(name)
    if stage not in playbook.stages:
        raise UsageWrong(
            f"stage {name} is not in the playbook",
            where=playbook.path,
            next_step=f"add `- name: {name}` at its place under spec.stages, and give the same command again",
        )
    return stage


def make_plan(
    observer: Observer, playbook: Playbook, *, target: Stage, only: bool, created: float, live: bool = True
) -> Plan:
    """Observe, and plan; whether a rollback is possible now comes first among the plan's rollbacks.

    What is wrong is said of a cluster that is seen `live`: a bundle has what was so at another time.
    """
    if playbook.of_directories:
        return make_directory_plan(observer, playbook, created=created)
    if playbook.of_protocol:
        return make_protocol_plan(observer, playbook, created=created)
    world = _seen(observer, PLANNED_ON | ROLLBACK_NEEDS)
    facts = rollback_facts(world)
    with _problems_first(world):
        plan = build(world, playbook, target=target, only=only, created=created)
        plan = scheduled(_with_rollback_now(plan, rollback_readiness(world, facts)), playbook, facts.durations)
    found = lasting_findings(observer, plan.findings, SystemClock())
    plan = _anew(replace(plan, findings=found), world)
    return replace(plan, summary=_with_problems(observer, world, plan.summary)) if live else plan


def _with_rollback_now(plan: Plan, now: RollbackReadiness) -> Plan:
    if now.gone:
        gone = {"stage": "now", "procedure": f"not possible any more: {now.reasons[0].what}", "restarts": "-"}
        return replace(plan, summary=replace(plan.summary, rollback=(gone,)))
    row = {
        "stage": f"now ({now.origin})",
        "procedure": now.line if now.of(Weight.BAR) else f"{now.word}: {now.procedure}",
        "rolls": str(now.cost.rolls),
        "restarts": str(now.cost.restarts),
        "controller_gap": now.cost.gap,
    }
    return replace(plan, summary=replace(plan.summary, rollback=(row, *plan.summary.rollback)))


def tell_of_run(inventory: Inventory) -> None:
    """Say first that a run is in progress: what is planned beside it is stale soon."""
    runs = pathlib.Path(inventory.runs)
    found = locks.file_owner(runs / "lock")
    if found is not None and found.held:
        say(f"{locks.said_of(found.text, runs)}; what is planned now is stale when it goes on", err=True)


def _seen(observer: Observer, needs: frozenset[Need]) -> World:
    """A look, with what journals prove, so that a plan names the place as `status` does."""
    world = observer.observe(needs, {})
    return replace(world, facts=by_journals(world.inventory))


def make_directory_plan(observer: Observer, playbook: Playbook, *, created: float, back: bool = False) -> Plan:
    """Observe, and plan a KRaft cluster's directories, or their rollback; raises NothingToPlan, DirectoriesRefused."""
    world = observer.observe(directories.PLANNED_ON | {Need.HOST_RIGHTS}, {})
    plan = directories.build(world, playbook, created=created, back=back)
    return _anew(scheduled(plan, playbook, durations_of(world)), world)


def make_protocol_plan(observer: Observer, playbook: Playbook, *, created: float, back: bool = False) -> Plan:
    """Observe, and plan the raise of the brokers' protocol version, or its rollback; raises NothingToPlan."""
    world = observer.observe(protocol.PLANNED_ON | {Need.HOST_RIGHTS}, {})
    plan = scheduled(protocol.build(world, playbook, created=created, back=back), playbook, durations_of(world))
    return _anew(replace(plan, findings=lasting_findings(observer, plan.findings, SystemClock())), world)


def make_rollback_plan(
    observer: Observer,
    playbook: Playbook,
    *,
    created: float,
    copy_again: bool = False,
    discard_differences: bool = False,
) -> Plan:
    """Observe, and plan the rollback, or the way out of a stuck copy.

    With `discard_differences` it names every difference between ZooKeeper and the metadata, and gives them up.
    Raises RollbackImpossible, NothingToPlan, RestoreRefused.
    """
    if playbook.of_directories:
        return make_directory_plan(observer, playbook, created=created, back=True)
    if playbook.of_protocol:
        return make_protocol_plan(observer, playbook, created=created, back=True)
    world = _seen(observer, rollback.PLANNED_ON | {Need.HOST_RIGHTS})
    with _problems_first(world):
        plan = rollback.build(
            world, playbook, created=created, copy_again=copy_again, discard_differences=discard_differences
        )
    discarded = rollback.discarded_of(world) if discard_differences else ()
    facts = replace(rollback_facts(world), discarded=discarded)
    found = rollback_readiness(world, facts)
    summary = rollback.with_readiness(_with_problems(observer, world, plan.summary), plan, found)
    return _anew(scheduled(replace(plan, summary=summary), playbook, facts.durations), world)


@contextmanager
def _problems_first(world: World) -> Iterator[None]:
    """What is wrong with the cluster is said before the error that no plan can be made, and before a step forward."""
    try:
        yield
    except MigrateError as error:
        if found := problems(world):
            say_text(headline(found), err=True)
            if "kraft-migrate plan " in error.next_step:
                error.next_step = f"{found[0].remedy}; then {error.next_step}"
        raise


def _with_problems(observer: Observer, world: World, summary: PlanSummary) -> PlanSummary:
    """The same, with what is wrong first; what may end by itself counts where a second look sees it, too."""
    found = problems(world)
    if any(entry.passes for entry in found):
        SystemClock().sleep(assessing.SECONDS_BETWEEN)
        found = problems(replace(world, live=observer.observe(frozenset({Need.LIVE}), {}).live))
    return replace(summary, problem=headline(found), remedy=found[0].remedy if found else "")


def _anew(plan: Plan, world: World) -> Plan:
    """The plan under a name of its own, where the same one was carried out and is undone: its journal calls it done."""
    while _undone(plan, world):
        plan = replace(plan, again=plan.again + 1)
    return plan


def _undone(plan: Plan, world: World) -> bool:
    journal = folder_of(world.inventory, plan).journal
    if not journal.exists():
        return False
    try:
        events = journals.read(journal).events
        done = concluded(events)
        if not plan.kind.migrates:  # each step that changes a file is planned where the file lacks the change
            return any(step.id in done and step.expects for step in plan.steps)
        if plan.kind.rolls_back:  # planned once more from the same place: what it had undone was done again
            return journals.is_complete(events)
        gone_back(plan, done, world)
    except PlanIsStale:
        return True
    except JournalDamaged:  # `apply` refuses it, and says why
        return False
    return False


def save_plan(inventory: Inventory, plan: Plan) -> pathlib.Path:
    """Write the plan (JSON), and its report (text, HTML), into the run's folder; the JSON's path.

    A plan that is there is never replaced: a run, or whoever approved it, may refer to it.  The same steps with other
    findings or figures are `plan-2.json` and so on; where only the time differs, the file that is there is the answer.

    Raises:
        FileNotReplaced: one cannot be written.
    """
    folder = folder_of(inventory, plan).path
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = (FIRST_NAME if number == 1 else f"plan-{number}.json" for number in count(1))
    path = next(folder / name for name in names if _saved_as(folder / name, plan))
    for suffix, page in ((".html", plan_html), (".txt", plan_text)):
        create_file(str(path.with_suffix(suffix)), page(plan, str(path)).encode())
    return path


def save_copy(path: pathlib.Path, plan: Plan, saved: str) -> None:
    """Write the plan where a person asked for it; `saved` says where it is besides.

    Raises:
        PlanExists: another file is there.
        FileNotReplaced: it cannot be written.
    """
    if not _saved_as(path, plan):
        raise PlanExists("there is another file", where=str(path), why=f"it stays as it is; {saved}")


def require_no_other(path: pathlib.Path) -> None:
    """Return if a plan may be saved there, or one is there: whether it is another one is known when this one is made.

    Raises:
        PlanExists: what is there is no plan.
    """
    if path.exists():
        try:
            load_plan(path)
        except InputError as error:
            raise PlanExists(
                "there is another file", where=str(path), why="it is no plan, and stays as it is"
            ) from error


def keep(inventory: Inventory, plan: Plan, out: pathlib.Path | None) -> str:
    """Save the plan, there as well if that is wanted; its path."""
    path = save_plan(inventory, plan)
    if path.name != FIRST_NAME:
        first = path.with_name(FIRST_NAME)
        say(f"{first} stays as it is: it has the same steps, and other findings or figures than {path}", err=True)
    if out is not None:
        save_copy(out, plan, f"the plan is saved as {path}")
    return str(path)


def show(plan: Plan, saved: str, output: str, *, full: bool) -> None:
    """Print the plan for a person, or answer it for a program."""
    if output == "json":
        give_answer(plan_values(plan))
    else:
        say_lines(plan_lines(plan, saved, page_width(), full=full))


def _saved_as(path: pathlib.Path, plan: Plan) -> bool:
    """Is the plan in that file now?  It is written where there is none; the time at which it was made may differ."""
    if create_file(str(path), plan_to_json(plan).encode()):
        return True
    try:
        return replace(load_plan(path), created=plan.created) == plan
    except InputError:
        return False
