"""`status`: where the migration is, what it waits for, broken disks, and the command that comes next."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import click

from migrate.cli.answers import give_answer
from migrate.cli.options import cluster_options, load_target, observing, output_option
from migrate.cli.screen import say_text
from migrate.cli.status_answer import (
    BrokerProtocol,
    LedgerCounts,
    Moves,
    NewDirectory,
    NotSeen,
    Parts,
    Process,
    Quorum,
    Run,
    RunLeft,
    StatusAnswer,
    UnreadableRun,
    ZookeeperUse,
)
from migrate.errors import JournalDamaged, MigrateError
from migrate.model import rescue
from migrate.model.afterwards import after_the_migration
from migrate.model.broker_modes import node_mode, positions
from migrate.model.detect import Detected, detect
from migrate.model.disk_remedies import DiskTrouble, disk_troubles
from migrate.model.facts import migration_state
from migrate.model.findings import NO_CLUES, Clues
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.ledger import count_states
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, NoFile, Running
from migrate.model.world import Need, World
from migrate.report.change_summary import next_command
from migrate.report.status_text import (
    RollbackAnswer,
    WaitingRow,
    rollback_lines,
    rollback_values,
    waiting_lines,
    waiting_values,
)
from migrate.report.wording import hanging

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
USES: Final = {
    "used": "somebody still uses it: do not stop its servers",
    "unknown": "whether somebody still uses it is not known: do not stop its servers",
    "unused": "nobody uses it any more: it can be stopped (docs/after-the-migration.md#stop-zookeeper)",
    "stopped": "all of its servers are stopped",
}
FOR_EVER: Final = "S-STUCK-04"  # a copy that no controller will ever note: no stage can be planned over it
OUT_OF_IT: Final = "rollback plan PLAYBOOK --copy-again"


@click.command()
@cluster_options
@output_option
def status(playbook: pathlib.Path | None, inventory: pathlib.Path | None, output: str) -> int:
    """Show how far the migration is, and the next command.

    Exit code 0 at every stage, and where the stage is unknown: the answer says which.
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
    if output == "json":
        give_answer(answer)
    else:
        say_text(as_text(answer))
    return 0


def named(answer: StatusAnswer, playbook: pathlib.Path | None) -> StatusAnswer:
    """The answer with the playbook's own path in each next command, where one was given."""
    if playbook is None:
        return answer
    path = shlex.quote(str(playbook))
    rows: list[WaitingRow] = [{**row, "next": row["next"].replace("PLAYBOOK", path)} for row in answer["waiting"]]
    said: StatusAnswer = {**answer, "waiting": rows}
    if "afterwards" in said:
        later = said["afterwards"]
        said["afterwards"] = replace(later, command=later.command.replace("PLAYBOOK", path))
    if "next" in said:
        said["next"] = said["next"].replace("PLAYBOOK", path)
    return said


def describe(world: World, clues: Clues | None = None) -> StatusAnswer:
    """The answer but for the rollback and the newest run."""
    from migrate.checks import stuck

    here = detect(world)
    stage: Parts = {"unknown": here.reason} if isinstance(here, Unknown) else _stage(here)
    protocols: Parts = {"protocols": _protocols(world)} if _of_protocol(world) else {}
    waits = waiting_values(stuck.explain(world, NO_CLUES if clues is None else clues))
    restarts = [one.contradiction for one in positions(world) if one.contradiction]
    moves = _moves(world)
    if "moves" in moves:  # a broker that restarts in the middle of one delays it, and may take its partitions away
        waits = [{**row, "next": _after_moves(row["next"])} for row in waits]
        restarts = [f"{text}, once the reassignments have ended" for text in restarts]
    if "next" in stage and any(row["code"] == FOR_EVER for row in waits):
        stage["next"] = OUT_OF_IT
    return {
        "cluster": world.inventory.name,
        "inventory": world.inventory.path,
        "time": time.time(),
        **stage,
        "processes": _processes(world),
        "contradictions": restarts,
        **moves,
        **_down(world),
        "quorum": _quorum(world),
        **_zookeeper_use(world),
        "ledger": _ledger(world),
        "unhealthy_partitions": _unhealthy(world),
        **protocols,
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


def _down(world: World) -> Parts:
    """What to type for brokers that are down; {} where none is known to be."""
    from migrate.checks import processes

    typed = processes.start(world.inventory, processes.ended(world, world.inventory.brokers))
    return {"down": typed} if typed else {}


def _moves(world: World) -> Parts:
    """The partitions that another tool is reassigning; {} where none is."""
    from migrate.steps import churn

    found = churn.reassigned(world)
    if not found:
        return {}
    wait = churn.reassignments(found)
    return {"moves": {"partitions": list(found), "what": wait.what, "owner": wait.owner, "next": wait.next_step}}


BROKERS_RESTART: Final = re.compile(r"\brestart (?:that |the |those |these |every )?brokers?\b", re.IGNORECASE)


def _after_moves(text: str) -> str:
    return f"once the reassignments have ended: {text}" if BROKERS_RESTART.search(text) else text


def _move_lines(found: Moves | None) -> Iterator[str]:
    if found is not None:
        yield f"waits    for {found['what']}"
        yield f"         owner: {found['owner']}"
        yield f"         next: {found['next']}"


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


def _use_lines(found: ZookeeperUse | None) -> Iterator[str]:
    if found is None:
        return
    yield f"zookeeper {USES[found['use']]}"
    yield from (f"         {line}" for line in found["servers"])
    yield from (f"         used: {line}" for line in found["users"])
    yield from (f"         not known: {line}" for line in found["unseen"])


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
        rows.append(
            {
                "node": int(node.id),
                "state": type(state).__name__.lower(),
                "pid": state.pid if isinstance(state, Running) else None,
                "file": _file(file),
                "registered": "-"  # only brokers are registered, in a mode
                if node in world.inventory.controllers
                else facts.observed(world, (f"registered:{int(node.id)}",)).popitem()[1],
            }
        )
    return rows


def _file(file: ConfigFile | NoFile | Unknown) -> str:
    if isinstance(file, ConfigFile):
        return node_mode(file.values)
    return "none" if isinstance(file, NoFile) else "unknown"


def _of_protocol(world: World) -> bool:
    return isinstance(world.playbook, Playbook) and world.playbook.of_protocol


def _protocols(world: World) -> list[BrokerProtocol]:
    from migrate.checks.releases import PROTOCOL
    from migrate.steps.protocol import said_by

    said = {int(node.id): said_by(world, int(node.id)) for node in world.inventory.brokers}
    return [
        {
            "broker": broker,
            "version": None if isinstance(found, Unknown) else found,
            "wanted": PROTOCOL,
            "unknown": found.reason if isinstance(found, Unknown) else None,
        }
        for broker, found in said.items()
    ]


def _protocol_line(row: BrokerProtocol) -> str:
    found = f"unknown: {row['unknown']}" if row["version"] is None else row["version"]
    wanted = "" if row["version"] == row["wanted"] else f" (wanted: {row['wanted']})"
    return f"version  broker {row['broker']}: inter.broker.protocol.version {found}{wanted}"


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


def _quorum_line(answer: StatusAnswer) -> str:
    """Who leads it; none is not unknown: before controllers have files there is none."""
    quorum = answer["quorum"]
    if "unknown" not in quorum:
        return f"quorum   leader {quorum['leader']}, epoch {quorum['epoch']}, high watermark {quorum['high_watermark']}"
    controllers = [row for row in answer["processes"] if row["registered"] == "-"]
    if controllers and all(row["file"] == "none" and row["state"] != "running" for row in controllers):
        return "quorum   none yet: no controller has a configuration file"
    return f"quorum   unknown: {quorum['unknown']}"


def _unhealthy(world: World) -> int | None:
    if isinstance(world.live, Unknown):
        return None
    answers = [answer for answer in world.live.metadata.values() if not isinstance(answer, Unknown)]
    return max((len(answer.unhealthy) for answer in answers), default=None)


def as_text(answer: StatusAnswer) -> str:
    """The same for a person."""
    lines = [f"cluster {answer['cluster']}"]
    if "unknown" in answer:
        lines.append(f"stage    unknown: {answer['unknown']}")
    else:
        half = f", {answer['half_done']} half done" if answer["half_done"] else ""
        lines += [f"stage    {answer['stage']}{half}", f"         {answer['how']}"]
    lines += [f"         {line}" for line in directory_lines(answer.get("new_directories", ()))]
    lines.append("node     process   file         registered")
    lines += [
        f"{row['node']:<8} {row['state']:<9} {row['file']:<12} {row['registered']}" for row in answer["processes"]
    ]
    lines += answer["contradictions"]
    lines += map(_protocol_line, answer.get("protocols", ()))
    lines.append(_quorum_line(answer))
    lines += _use_lines(answer.get("zookeeper"))
    ledger = answer["ledger"]
    if "unknown" in ledger:
        lines.append(f"ledger   unknown: {ledger['unknown']}")
    elif not ledger["copied"]:
        count = sum(sum(states.values()) for states in ledger["brokers"].values())
        lines.append(f"ledger   {count} replicas in ZooKeeper alone: nothing is copied to KRaft yet")
    else:
        for broker, states in ledger["brokers"].items():
            text = ", ".join(f"{state} {count}" for state, count in states.items()) or "no replicas"
            lines.append(f"ledger   broker {broker}: {text}")
    unhealthy = answer["unhealthy_partitions"]
    lines.append(f"partitions without full ISR or leader: {'unknown' if unhealthy is None else unhealthy}")
    lines += _disk_lines(answer["disks"])
    lines += _unseen_disk_lines(answer["disks_unseen"])
    lines += leaderless_lines(answer["leaderless"], answer["inventory"])
    lines += _run_lines(answer.get("run"))
    lines += _move_lines(answer.get("moves"))
    lines += waiting_lines(answer["waiting"])
    if "rollback" in answer:
        lines += [f"rollback {line}" for line in rollback_lines(answer["rollback"])]
    if "next" in answer:
        first = f"start what is down ({answer['down']}), then " if "down" in answer and not answer.get("run") else ""
        first = "fix the disk as described above, then " if answer["disks"] else first
        lines.append(f"next     {first}kraft-migrate {answer['next']}")
    if "afterwards" in answer:
        lines.append(f"later    {answer['afterwards'].line}")
    return "\n".join(hanging(line, " " * 9) for line in lines)


RUN_ROLLS_IT: Final = ("S-STUCK-30", "S-STUCK-31")  # a broker that is not rolled yet, or was stopped to be rolled
PROGRAM: Final = "kraft-migrate"
FIRST: Final = frozenset({"prepare", "controllers"})  # what a run has left that stopped before it changed the cluster
LOOK_AGAIN: Final = "status PLAYBOOK"  # while a run goes on


def unended(runs: pathlib.Path, playbook: Playbook | None = None) -> RunLeft | UnreadableRun | None:
    """The newest run of the folder, where its plan is not carried out yet; None where there is none to resume.

    A plan that cannot be read gives nothing here: `apply` says what is wrong with it.
    """
    from migrate.cli.planning import load_plan
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
        return _told(plan, events, folder, runs, playbook if ours else None)
    except (OSError, MigrateError, KeyError, ValueError):
        return None


def _told(
    plan: Plan, events: Sequence[Event], folder: pathlib.Path, runs: pathlib.Path, playbook: Playbook | None
) -> RunLeft | None:
    """The same of its plan and journal; KeyError or ValueError where they are none of a run's."""
    from migrate.report import run_board
    from migrate.run import locks

    done = {
        event.data["step"] for event in events if event.name == "conclude" and event.data["outcome"] in run_board.WELL
    }
    left = [step for step in plan.steps if step.id not in done]
    if not left:
        return None
    lock = locks.file_owner(runs / "lock")
    told, *doing = run_board.lines(run_board.board(plan, events, playbook), time.time())
    return {
        "plan": plan.short,
        "back": plan.kind.rolls_back,
        "alive": lock is not None and lock.held,
        "told": told,
        "doing": doing,
        "next": _command(plan, folder / "plan.json"),
        "stages": [step.stage.label for step in left],
        "nodes": [int(step.params["broker"]) for step in left if step.stage is Stage.MIGRATION_MODE],
    }


def _command(plan: Plan, path: pathlib.Path) -> str:
    near = os.path.relpath(path)
    where = str(path) if near.startswith(os.pardir) else near
    return next_command(plan, where, read=False).removeprefix(f"{PROGRAM} ")


def with_run(answer: StatusAnswer, run: RunLeft | UnreadableRun | None) -> StatusAnswer:
    """The answer with the run in it, and with the run's own command as the next one where that is what comes next.

    Where no step left is of the stage that comes next, the cluster went on without that run: it is shown, and no more.
    """
    if run is None:
        return answer
    if "unreadable" in run:
        return {**answer, "run": run}
    after = answer.get("next", "")
    coming = {after.rpartition("--stage ")[2]} if "--stage " in after else FIRST
    told: Run = {
        "plan": run["plan"],
        "back": run["back"],
        "alive": run["alive"],
        "told": run["told"],
        "doing": run["doing"],
        "next": run["next"],
    }
    if not after or not (run["back"] or coming & set(run["stages"])):
        return {**answer, "run": {**told, "next": ""}}
    waiting = [_goes_on(row, run) for row in answer["waiting"]]
    return {**answer, "run": told, "next": LOOK_AGAIN if run["alive"] else run["next"], "waiting": waiting}


def _goes_on(row: WaitingRow, run: RunLeft) -> WaitingRow:
    """A broker that the run has yet to roll is nobody's to roll or to start by hand."""
    if row["code"] not in RUN_ROLLS_IT or not set(row["nodes"]) <= set(run["nodes"]):
        return row
    return {**row, "owner": f"run {run['plan']}", "next": f"`{PROGRAM} {run['next']}` continues it."}


def _run_lines(run: Run | UnreadableRun | None) -> list[str]:
    if run is None:
        return []
    if "told" not in run:
        return [f"the journal of the newest run proves nothing: {run['unreadable']}"]
    lives = "its process is running" if run["alive"] else "no process works on it"
    return [f"{run['told']}; {lives}", *(run["doing"] if run["alive"] else ())]


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
    later: dict[NodeId, int | Unknown] = {}
    for node in brokers:
        if isinstance(world.kraft, Unknown) or isinstance(world.ledger, Unknown):
            later[node] = Unknown("the second look did not see it")
        else:
            later[node] = len(reports.unreported(world, world.kraft).get(int(node), ()))
    sources = observer.sources
    return replace(clues, reports=look(sources.inventory, sources.services, later, reports.telling))


SHOWN: Final = 5  # partitions by name
CONTROLLER: Final = "controller"  # `disk_trouble.CONTROLLER`


def _disk_lines(rows: Sequence[DiskTrouble]) -> Iterator[str]:
    for row in rows:
        node = f"broker {row.broker} ({row.mode})" if row.mode != CONTROLLER else f"{CONTROLLER} {row.broker}"
        yield f"disk     {node} {row.path}: {row.what}"
        yield f"disk       {row.effect}"
        for words in row.do:
            yield f"disk       do: {words}"


def unseen_disks(world: World) -> dict[str, str]:
    """Node -> why nothing is known of its disks: that is not the same as nothing to tell."""
    if isinstance(world.disks, Unknown):
        return {}
    return {str(int(node)): found.reason for node, found in world.disks.items() if isinstance(found, Unknown)}


def _unseen_disk_lines(reasons: Mapping[str, str]) -> Iterator[str]:
    for node, reason in reasons.items():
        yield f"disk     node {node}: its disks were not seen: {reason}"


def leaderless_partitions(world: World) -> list[str]:
    """Partitions without a leader that ElectLeaders brings back: where a replaced disk held the only replica."""
    if isinstance(world.kraft, Unknown):
        return []
    return [f"{row.topic}-{row.partition}" for row in rescue.leaderless(world.kraft)]


def leaderless_lines(names: Sequence[str], inventory: str = "INVENTORY") -> Iterator[str]:
    """The same for a person."""
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield f"disk     without a leader although a replica is online: {', '.join(names[:SHOWN])}{more}"
        command = f"kraft-migrate directories rescue --inventory {shlex.quote(inventory)}"
        yield f"disk       do: {command}, it elects them"


def directory_stage(world: World) -> Parts:
    """Progress of the roll, by the brokers' files and registrations (no journal is asked)."""
    rows = list(_directory_rows(world))
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


def _directory_rows(world: World) -> Iterator[NewDirectory]:
    assert isinstance(world.playbook, Playbook)
    for broker, paths in world.playbook.new_directories.items():
        for path in paths:
            state, why = _directory_state(world, broker, path)
            yield {"broker": str(int(broker)), "path": path, "state": state, "why": why}


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


def directory_lines(rows: Sequence[NewDirectory]) -> list[str]:
    """The same for a person; [] without a DirectoryPlaybook."""
    return [
        f"broker {row['broker']}: {row['path']}: {row['state']}" + (f" ({row['why']})" if row["why"] else "")
        for row in rows
    ]
