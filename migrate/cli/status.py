"""`status`: where the migration is, what it waits for, broken disks, and the command that comes next."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.answers import give_answer
from migrate.cli.errors import EXIT_BLOCKED, EXIT_OK
from migrate.cli.options import cluster_options, load_target, observing, output_option
from migrate.cli.screen import say_text
from migrate.errors import JournalDamaged, MigrateError
from migrate.model import rescue
from migrate.model.afterwards import after_the_migration
from migrate.model.broker_modes import node_mode, positions
from migrate.model.detect import Detected, detect
from migrate.model.disk_remedies import disk_troubles
from migrate.model.facts import migration_state
from migrate.model.findings import NO_CLUES, Clues
from migrate.model.history import Event, concluded
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.ledger import count_states
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, NoFile, Running
from migrate.model.world import Need, World
from migrate.report.change_summary import next_command
from migrate.report.status import (
    BrokerProtocol,
    LedgerCounts,
    NewDirectory,
    NotSeen,
    Parts,
    ProblemRow,
    Process,
    Quorum,
    RollbackAnswer,
    Run,
    StatusAnswer,
    UnreadableRun,
    WaitingRow,
    ZookeeperUse,
    as_text,
    goes_on_with_run,
    rollback_values,
    waiting_values,
)

if TYPE_CHECKING:
    from migrate.observe.world import ClusterObserver


NEXT: Final = {
    "assess": "plan PLAYBOOK",
    "controllers": "plan PLAYBOOK --stage migration-mode",
    "copy": "plan PLAYBOOK --stage hybrid",
    "hybrid": "plan PLAYBOOK --stage kraft-mode",
    "kraft-mode": "plan PLAYBOOK --stage soak",
    "soak": "plan PLAYBOOK --stage finalize",
    "finalize": "plan PLAYBOOK --stage cleanup",
}


@click.command()
@cluster_options
@output_option
def status(playbook: pathlib.Path | None, inventory: pathlib.Path | None, output: str) -> int:
    """Show how far the migration is, and the next command.

    Where something is wrong the first line says it, and the next step is its remedy.
    PLAYBOOK may also be an inventory, or a run's id, its folder or its plan.

    Exit code 0: nothing is wrong, at whatever stage; 3: there is a problem.
    """
    from migrate.checks.zookeeper_use import with_ensemble
    from migrate.run.past_runs import ROLLBACK_NEEDS, by_journals

    found, loaded = load_target(playbook, inventory)
    of_directories = isinstance(loaded, Playbook) and loaded.of_directories
    needs = ROLLBACK_NEEDS | {Need.LEDGER} | ({Need.NEW_DIRECTORIES} if of_directories else set())
    needs |= {Need.PROTOCOLS} if isinstance(loaded, Playbook) and loaded.of_protocol else set()
    with observing(found, loaded) as observer:
        world = observer.observe(needs, by_journals(found))
        if of_directories:  # no migration is in progress, and no ZooKeeper to go back to
            seen = describe(world)
            seen.pop("unknown", None)
            answer: StatusAnswer = {**seen, **directory_stage(world)}
        else:
            world = with_ensemble(observer, world, world.facts)
            seen = describe(world, clues_for(observer, world))
            run = unended(pathlib.Path(found.runs), loaded if isinstance(loaded, Playbook) else None)
            answer = with_run({**seen, "rollback": rollback_readiness(world)}, run)
    answer = named(answer, playbook)
    if answer["problems"] and not goes_on_with_run(answer):
        answer.pop("next", None)
    if output == "json":
        give_answer(answer)
    else:
        say_text(as_text(answer))
    return EXIT_BLOCKED if answer["problems"] else EXIT_OK


def named(answer: StatusAnswer, playbook: pathlib.Path | None) -> StatusAnswer:
    """The answer with the playbook's own path in each next command, where one was given."""
    if playbook is None:
        return answer
    path = shlex.quote(str(playbook))
    rows: list[WaitingRow] = [{**row, "next": row["next"].replace("PLAYBOOK", path)} for row in answer["waiting"]]
    troubles: list[ProblemRow] = [{**row, "next": row["next"].replace("PLAYBOOK", path)} for row in answer["problems"]]
    said: StatusAnswer = {**answer, "waiting": rows, "problems": troubles}
    if "afterwards" in said:
        later = said["afterwards"]
        said["afterwards"] = replace(later, command=later.command.replace("PLAYBOOK", path))
    if "next" in said:
        said["next"] = said["next"].replace("PLAYBOOK", path)
    return said


def describe(world: World, clues: Clues | None = None) -> StatusAnswer:
    """The answer but for the rollback and the newest run."""
    from migrate.checks import stuck
    from migrate.checks.problems import headline, problems
    from migrate.checks.processes import DISK_COMMANDS

    here = detect(world)
    stage: Parts = {"unknown": here.reason} if isinstance(here, Unknown) else _stage(here)
    waits = waiting_values(stuck.explain(world, NO_CLUES if clues is None else clues))
    restarts = [one.contradiction for one in positions(world) if one.contradiction]
    moves = _moves(world)
    if "moves" in moves:  # a broker that restarts in the middle of one delays it, and may take its partitions away
        for row in waits:
            if BROKERS_RESTART.search(row["next"]):
                row["next"] = f"once the reassignments have ended: {row['next']}"
        restarts = [f"{text}, once the reassignments have ended" for text in restarts]
    here_below = "the lines `disk` have the commands"
    wrong = [replace(one, remedy=one.remedy.replace(DISK_COMMANDS, here_below)) for one in problems(world)]
    return {
        "cluster": world.inventory.name,
        "inventory": world.inventory.path,
        "time": time.time(),
        "headline": headline(wrong),
        "problems": [{"what": entry.what, "next": entry.remedy, "run": entry.run} for entry in wrong],
        **stage,
        "processes": _processes(world),
        "contradictions": restarts,
        **moves,
        "quorum": _quorum(world),
        **_zookeeper_use(world),
        "ledger": _ledger(world),
        "unhealthy_partitions": _unhealthy(world),
        **_protocols(world),
        "waiting": waits,
        "disks": list(disk_troubles(world)),
        "disks_unseen": unseen_disks(world),
        "leaderless": leaderless_partitions(world),
    }


def rollback_readiness(world: World) -> RollbackAnswer:
    """Is a rollback possible now?  Backups and journals are read as well."""
    from migrate.checks.rollback import readiness
    from migrate.run.past_runs import rollback_facts

    return rollback_values(readiness.rollback_readiness(world, rollback_facts(world)))


def _moves(world: World) -> Parts:
    """The partitions that another tool is reassigning; {} where none is."""
    from migrate.steps import churn

    found = churn.reassigned(world)
    if not found:
        return {}
    wait = churn.reassignments(found)
    return {"moves": {"partitions": list(found), "what": wait.what, "owner": wait.owner, "next": wait.next_step}}


BROKERS_RESTART: Final = re.compile(r"\brestart (?:that |the |those |these |every )?brokers?\b", re.IGNORECASE)


def _zookeeper_use(world: World) -> Parts:
    """Who still uses ZooKeeper; {} where nobody asked."""
    from migrate.checks.zookeeper_use import use_of

    found, servers = use_of(world), world.ensemble
    if found is None:
        return {}
    told: ZookeeperUse = {
        "use": found.use.value,
        "servers": [] if isinstance(servers, Unknown) else [server.line for server in servers.servers],
        "users": [f"{hit.about}: {hit.message}" for hit in found.users],
        "unseen": [f"{blind.about}: {blind.reason}" for blind in found.unseen],
    }
    return {"zookeeper": told}


def _stage(here: Detected) -> Parts:
    told: Parts = {
        "stage": here.stage.label,
        "half_done": None if here.half is None else here.half.label,
        "how": here.how,
    }
    if here.half is None and here.stage >= Stage.FINALIZE:
        told["afterwards"] = after_the_migration("PLAYBOOK")
    if here.stage is not Stage.CLEANUP:  # a run proves its end, and nothing comes after it
        after = NEXT.get(here.stage.label, "plan")
        told["next"] = after if here.half is None else f"plan PLAYBOOK --stage {here.half.label}"
    return told


def _processes(world: World) -> list[Process]:
    from migrate.steps import facts

    unseen = Unknown("not looked at")
    rows: list[Process] = []
    for node in world.inventory.nodes:
        state = unseen if isinstance(world.services, Unknown) else world.services.get(node.id, unseen)
        file = facts.config(world, node.id)
        without = "none" if isinstance(file, NoFile) else "unknown"
        registered = "-"  # only brokers are registered, in a mode
        if node not in world.inventory.controllers:
            registered = facts.observed(world, (f"registered:{int(node.id)}",)).popitem()[1]
        rows.append(
            {
                "node": int(node.id),
                "state": type(state).__name__.lower(),
                "pid": state.pid if isinstance(state, Running) else None,
                "file": node_mode(file.values) if isinstance(file, ConfigFile) else without,
                "registered": registered,
            }
        )
    return rows


def _protocols(world: World) -> Parts:
    """What each broker says of its protocol version; {} where the playbook is not about that."""
    from migrate.checks.releases import PROTOCOL
    from migrate.steps.protocol import said_by

    if not isinstance(world.playbook, Playbook) or not world.playbook.of_protocol:
        return {}
    rows: list[BrokerProtocol] = []
    for node in world.inventory.brokers:
        found = said_by(world, int(node.id))
        version, unknown = (None, found.reason) if isinstance(found, Unknown) else (found, None)
        rows.append({"broker": int(node.id), "version": version, "wanted": PROTOCOL, "unknown": unknown})
    return {"protocols": rows}


def _quorum(world: World) -> Quorum | NotSeen:
    quorum = world.live if isinstance(world.live, Unknown) else world.live.quorum
    if isinstance(quorum, Unknown):
        return {"unknown": quorum.reason}
    return {
        "leader": int(quorum.leader),
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": {str(int(voter.id)): voter.log_end_offset for voter in quorum.voters},
    }


def _ledger(world: World) -> LedgerCounts | NotSeen:
    if isinstance(world.ledger, Unknown):
        return {"unknown": world.ledger.reason}
    brokers = {str(int(node.id)): count_states(world.ledger.of(node.id)) for node in world.inventory.brokers}
    return {"offset": world.ledger.offset, "copied": migration_state(world)[0], "brokers": brokers}


def _unhealthy(world: World) -> int | None:
    if isinstance(world.live, Unknown):
        return None
    answers = [answer for answer in world.live.metadata.values() if not isinstance(answer, Unknown)]
    return max((len(answer.unhealthy) for answer in answers), default=None)


RUN_ROLLS_IT: Final = ("S-STUCK-30", "S-STUCK-31")  # a broker that is not rolled yet, or was stopped to be rolled
PROGRAM: Final = "kraft-migrate"
FIRST: Final = frozenset({"prepare", "controllers"})  # what a run has left that stopped before it changed the cluster
LOOK_AGAIN: Final = "status PLAYBOOK"  # while a run goes on


@dataclass(frozen=True, slots=True)
class RunLeft:
    """A run, the stages of its steps left, and the brokers that it has yet to take through the first roll."""

    run: Run
    stages: frozenset[str]
    nodes: frozenset[int]


def unended(runs: pathlib.Path, playbook: Playbook | None = None) -> RunLeft | UnreadableRun | None:
    """The newest run of the folder, where its plan is not carried out yet; None where there is none to resume.

    A plan that cannot be read gives nothing here: `apply` says what is wrong with it.
    """
    from migrate.cli.given import load_plan
    from migrate.run import journal as journals

    found = [(path.stat().st_mtime, path) for path in runs.glob("*/journal.jsonl")]
    if not found:
        return None
    folder = max(found)[1].parent
    try:
        events = journals.read(folder / "journal.jsonl").events
    except JournalDamaged as error:
        return {"unreadable": f"{error.id}: {error.what} ({error.where})"}
    except OSError:
        return None
    try:
        plan = load_plan(folder / "plan.json")
        ours = playbook is not None and plan.playbook_sha256 == playbook.sha256
        return _left(plan, events, folder, runs, playbook if ours else None)
    except (OSError, MigrateError, KeyError, ValueError):
        return None


def _left(
    plan: Plan, events: tuple[Event, ...], folder: pathlib.Path, runs: pathlib.Path, playbook: Playbook | None
) -> RunLeft | None:
    """The same of its plan and journal; KeyError or ValueError where they are none of a run's."""
    from migrate.report import run_board
    from migrate.run import locks
    from migrate.run.past_runs import samples_of

    done = concluded(events)
    left = [step for step in plan.steps if step.id not in done]
    if not left:
        return None
    lock = locks.file_owner(runs / "lock")
    earlier = {} if playbook is None else samples_of(runs, plan.cluster, but=folder)  # for the time that is left
    alive = lock is not None and lock.held
    board = run_board.board(plan, events, playbook, earlier)
    if not alive and board.over is None:
        board = replace(board, state="interrupted")
    told, *doing = run_board.lines(board, time.time())
    run: Run = {
        "plan": plan.short,
        "back": plan.kind.rolls_back,
        "alive": alive,
        "told": told,
        "doing": doing,
        "next": _command(plan, near(folder / "plan.json")),
        "read": near(folder / "plan.txt") if plan.irreversible else "",
    }
    rolled = (int(step.params["broker"]) for step in left if step.stage is Stage.MIGRATION_MODE)
    return RunLeft(run, frozenset(step.stage.label for step in left), frozenset(rolled))


def near(path: pathlib.Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith(os.pardir) else near


def _command(plan: Plan, path: str) -> str:
    return "" if plan.irreversible else next_command(plan, path).removeprefix(f"{PROGRAM} ")


def with_run(answer: StatusAnswer, left: RunLeft | UnreadableRun | None) -> StatusAnswer:
    """The answer with the run in it, and with the run's own command as the next one where that is what comes next.

    Where no step left is of the stage that comes next, the cluster went on without that run: it is shown, and no more.
    """
    if left is None:
        return answer
    if not isinstance(left, RunLeft):
        return {**answer, "run": left}
    run, after = left.run, answer.get("next", "")
    coming = {after.rpartition("--stage ")[2]} if "--stage " in after else FIRST
    holds = any(row["run"] == run["plan"] for row in answer["problems"])
    if not holds and (not after or not (run["back"] or coming & left.stages)):
        return {**answer, "run": {**run, "next": "", "read": ""}}
    waiting = [_goes_on(row, left) for row in answer["waiting"]]
    found: StatusAnswer = {
        **answer,
        "run": run,
        "waiting": waiting,
        "next": LOOK_AGAIN if run["alive"] else run["next"],
    }
    if not found["next"]:
        del found["next"]
    return found


def _goes_on(row: WaitingRow, left: RunLeft) -> WaitingRow:
    """A broker that the run has yet to roll is nobody's to roll or to start by hand."""
    if row["code"] not in RUN_ROLLS_IT or not left.nodes.issuperset(row["nodes"]):
        return row
    owner, after = f"run {left.run['plan']}", left.run["next"]
    told = f"`{PROGRAM} {after}`" if after else owner
    return {**row, "owner": owner, "next": f"{told} continues it."}


AGAIN_SECONDS: Final = 1.5  # a refused first request is sent again after 0.2 s


def clues_for(observer: ClusterObserver, world: World) -> Clues:
    """Asks addresses and reads logs, where an explanation would be firmer with them; else nothing is done."""
    from migrate.checks import stuck
    from migrate.observe.clues import gather

    wanted = stuck.wanted(world)
    clues = gather(wanted, observer.sources.services, stuck.telling)
    return _with_reports(observer, clues, wanted.reporters) if wanted.reporters else clues


def _with_reports(observer: ClusterObserver, clues: Clues, brokers: tuple[NodeId, ...]) -> Clues:
    """Looks a second time: what a broker has reported by then was no stall."""
    from migrate.checks.stuck import reports
    from migrate.observe.clues import reports as look
    from migrate.run.clock import SystemClock

    SystemClock().sleep(AGAIN_SECONDS)
    world = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LEDGER}), {})
    later: dict[NodeId, int | Unknown] = dict.fromkeys(brokers, Unknown("the second look did not see it"))
    if not isinstance(world.kraft, Unknown) and not isinstance(world.ledger, Unknown):
        left = reports.unreported(world, world.kraft)
        later = {node: len(left.get(int(node), ())) for node in brokers}
    sources = observer.sources
    return replace(clues, reports=look(sources.inventory, sources.services, later, reports.telling))


def unseen_disks(world: World) -> dict[str, str]:
    """Node -> why nothing is known of its disks: that is not the same as nothing to tell."""
    if isinstance(world.disks, Unknown):
        return {}
    return {str(int(node)): found.reason for node, found in world.disks.items() if isinstance(found, Unknown)}


def leaderless_partitions(world: World) -> list[str]:
    """Partitions without a leader that ElectLeaders brings back: where a replaced disk held the only replica."""
    if isinstance(world.kraft, Unknown):
        return []
    return [f"{row.topic}-{row.partition}" for row in rescue.leaderless(world.kraft)]


def directory_stage(world: World) -> Parts:
    """Progress of the roll, by the brokers' files and registrations (no journal is asked)."""
    assert isinstance(world.playbook, Playbook)
    rows: list[NewDirectory] = []
    for broker, paths in world.playbook.new_directories.items():
        for path in paths:
            state, why = _directory_state(world, broker, path)
            rows.append({"broker": str(int(broker)), "path": path, "state": state, "why": why})
    there = sum(row["state"] == "in use" for row in rows)
    unknown = [row for row in rows if row["state"] == "unknown"]
    how = f"{there} of {len(rows)} directories of the playbook are in use, by files and registrations"
    said: Parts = {
        "stage": "directories",
        "half_done": "directories" if 0 < there < len(rows) else None,
        "how": how + (f"; {len(unknown)} cannot be seen" if unknown else ""),
        "new_directories": rows,
    }
    if there != len(rows):
        said["next"] = "plan PLAYBOOK"
    return said


def _directory_state(world: World, broker: NodeId, path: str) -> tuple[str, str]:
    """`in use`, `in the file, not registered`, `not yet` or `unknown`, and why."""
    from migrate.steps.directories import gates

    here = gates.listed(world, int(broker))
    if isinstance(here, Unknown):
        return "unknown", here.reason
    if os.path.normpath(path) not in here:
        return "not yet", ""
    found = gates.entries(world, int(broker), (path,))
    if isinstance(found, Unknown):
        return "unknown", found.reason
    if isinstance(world.kraft, Unknown):
        return "unknown", world.kraft.reason
    registration = world.kraft.brokers.get(broker)
    directory = found[0].directory
    if registration is None or directory.id is None or directory.id not in registration.log_dirs:
        return "in the file, not registered", directory.problem or f"directory.id {directory.id}"
    return "in use", f"directory.id {directory.id}"
