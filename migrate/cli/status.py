"""`status`: where the migration stands, in under a second; needs neither Spark nor Java."""

from __future__ import annotations

import json
import pathlib
import shlex
import time
from collections.abc import Mapping
from typing import Any, Final

import click

from migrate.cli import status_directories, status_disks, status_run, status_stuck
from migrate.cli.options import cluster_options, load_target, observing, output_option
from migrate.cli.screen import say_page
from migrate.report.wording import hanging

NEXT: Final = {
    "assess": "plan PLAYBOOK",
    "controllers": "plan PLAYBOOK --stage migration-mode",
    "copy": "plan PLAYBOOK --stage hybrid",
    "hybrid": "plan PLAYBOOK --stage kraft-mode",
    "kraft-mode": "plan PLAYBOOK --stage soak",
    "soak": "plan PLAYBOOK --stage finalize",
    "finalize": "plan PLAYBOOK --stage cleanup",
}
DONE: Final = "cleanup"  # nothing comes after it
FOR_EVER: Final = "S-STUCK-04"  # a copy that no controller will ever note: no stage can be planned over it
OUT_OF_IT: Final = "rollback plan PLAYBOOK --copy-again"


@click.command()
@cluster_options
@output_option
@click.option("--watch", is_flag=True, help="Go on looking until Ctrl-C: a table on a terminal.")
def status(playbook: pathlib.Path | None, inventory: pathlib.Path | None, output: str, watch: bool) -> int:
    """Where the migration stands, and what comes next.

    Exit code 0 at every stage, and where the stage is unknown: the answer says which.
    """
    from migrate.cli.watch import RunFile
    from migrate.cli.watch import watch as go_on
    from migrate.model.inventory import Playbook
    from migrate.model.world import Need
    from migrate.run.clock import SystemClock
    from migrate.run.proven import by_journals
    from migrate.run.way_back_facts import WAY_BACK

    found, loaded = load_target(playbook, inventory)
    of_directories = isinstance(loaded, Playbook) and loaded.of_directories
    needs = WAY_BACK | {Need.LEDGER} | ({Need.NEW_DIRECTORIES} if of_directories else set())
    with observing(found, loaded) as observer:

        def look() -> dict[str, Any]:
            world = observer.observe(needs, by_journals(found))
            if of_directories:  # no migration is under way, and no ZooKeeper to go back to
                seen = {key: value for key, value in describe(world).items() if key != "unknown"}
                return named({**seen, **status_directories.stage(world)}, playbook)
            seen = describe(world, status_stuck.clues_for(observer, world))
            answer = {**seen, "rollback": rollback_readiness(world)}
            return named(status_run.with_run(answer, status_run.unended(pathlib.Path(found.runs))), playbook)

        if watch:
            go_on(look, as_text, RunFile(pathlib.Path(found.runs)), SystemClock(), output=output)
        answer = look()
        say_page(json.dumps(answer, indent=1) if output == "json" else as_text(answer))
        return 0


def named(answer: dict[str, Any], playbook: pathlib.Path | None) -> dict[str, Any]:
    """The answer with the playbook's own path in each next command, where one was given."""
    if playbook is None:
        return answer
    path = shlex.quote(str(playbook))
    waiting = [{**row, "next": row["next"].replace("PLAYBOOK", path)} for row in answer.get("waiting", ())]
    said = {**answer, "waiting": waiting} if "waiting" in answer else answer
    return {**said, "next": said["next"].replace("PLAYBOOK", path)} if "next" in said else said


def describe(world: Any, clues: Any = None) -> dict[str, Any]:
    """The answer as plain values (schema version 1)."""
    from migrate.model.broker_modes import positions
    from migrate.model.detect import detect
    from migrate.model.outcome import Unknown

    here = detect(world)
    stage = {"unknown": here.reason} if isinstance(here, Unknown) else _stage(here)
    waiting = status_stuck.waiting(world, clues)
    if "next" in stage and any(row["code"] == FOR_EVER for row in waiting):
        stage = {**stage, "next": OUT_OF_IT}
    return {
        "schema": 1,
        "cluster": world.inventory.name,
        "inventory": world.inventory.path,
        "time": time.time(),
        **stage,
        "processes": _processes(world),
        "contradictions": [one.contradiction for one in positions(world) if one.contradiction],
        "quorum": _quorum(world),
        "ledger": _ledger(world),
        "unhealthy_partitions": _unhealthy(world),
        "waiting": waiting,
        "disks": status_disks.as_values(world),
        "disks_unseen": status_disks.unseen(world),
        "leaderless": status_disks.leaderless(world),
    }


def rollback_readiness(world: Any) -> dict[str, Any]:
    """Is the way back open, now; backups and journals are looked at as well."""
    from migrate.checks.way_back import way_back
    from migrate.report.way_back_text import as_values
    from migrate.run.way_back_facts import way_back_facts

    return as_values(way_back(world, way_back_facts(world)))


def _stage(here: Any) -> dict[str, Any]:
    told = {
        "stage": here.stage.label,
        "half_done": None if here.half is None else here.half.label,
        "how": here.how,
    }
    if here.stage.label == DONE:
        return told
    return {
        **told,
        "next": NEXT.get(here.stage.label, "plan") if here.half is None else f"plan PLAYBOOK --stage {here.half.label}",
    }


def _processes(world: Any) -> list[dict[str, Any]]:
    from migrate.model.outcome import Unknown
    from migrate.model.views import Running
    from migrate.steps import facts

    unseen = Unknown("not looked at")
    rows: list[dict[str, Any]] = []
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


def _file(file: Any) -> str:
    from migrate.model.broker_modes import node_mode
    from migrate.model.views import ConfigFile, NoFile

    if isinstance(file, ConfigFile):
        return node_mode(file.values)
    return "none" if isinstance(file, NoFile) else "unknown"


def _quorum(world: Any) -> Mapping[str, Any]:
    from migrate.model.outcome import Unknown

    quorum = world.live if isinstance(world.live, Unknown) else world.live.quorum
    if isinstance(quorum, Unknown):
        return {"unknown": quorum.reason}
    return {
        "leader": int(quorum.leader),
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": {str(int(voter.id)): voter.log_end_offset for voter in quorum.voters},
    }


def _ledger(world: Any) -> Mapping[str, Any]:
    from migrate.model.ledger import count_states
    from migrate.model.outcome import Unknown
    from migrate.observe.ledgers import stands

    if isinstance(world.ledger, Unknown):
        return {"unknown": world.ledger.reason}
    brokers = {str(int(node.id)): count_states(world.ledger.of(node.id)) for node in world.inventory.brokers}
    return {"offset": world.ledger.offset, "copied": stands(world)[0], "brokers": brokers}


def _quorum_line(answer: Mapping[str, Any]) -> str:
    """Who leads it; none is not unknown: before controllers have files there is none."""
    quorum = answer["quorum"]
    if "unknown" not in quorum:
        return f"quorum   leader {quorum['leader']}, epoch {quorum['epoch']}, high watermark {quorum['high_watermark']}"
    controllers = [row for row in answer["processes"] if row["registered"] == "-"]
    if controllers and all(row["file"] == "none" and row["state"] != "running" for row in controllers):
        return "quorum   none yet: no controller has a configuration file"
    return f"quorum   unknown: {quorum['unknown']}"


def _unhealthy(world: Any) -> int | None:
    from migrate.model.outcome import Unknown

    if isinstance(world.live, Unknown):
        return None
    answers = [answer for answer in world.live.metadata.values() if not isinstance(answer, Unknown)]
    return max((len(answer.unhealthy) for answer in answers), default=None)


def as_text(answer: Mapping[str, Any]) -> str:
    """The same for a person."""
    lines = [f"cluster {answer['cluster']}"]
    if "unknown" in answer:
        lines.append(f"stage    unknown: {answer['unknown']}")
    else:
        half = f", {answer['half_done']} half done" if answer["half_done"] else ""
        lines += [f"stage    {answer['stage']}{half}", f"         {answer['how']}"]
    lines += [f"         {line}" for line in status_directories.lines(answer.get("new_directories", ()))]
    lines.append("node     process   file         registered")
    lines += [
        f"{row['node']:<8} {row['state']:<9} {row['file']:<12} {row['registered']}" for row in answer["processes"]
    ]
    lines += answer.get("contradictions", ())
    lines.append(_quorum_line(answer))
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
    lines += status_disks.as_lines(answer.get("disks", ()))
    lines += status_disks.unseen_lines(answer.get("disks_unseen", {}))
    lines += status_disks.leaderless_lines(answer.get("leaderless", ()), answer["inventory"])
    lines += status_run.as_lines(answer.get("run"))
    lines += status_stuck.lines(answer["waiting"])
    if "rollback" in answer:
        from migrate.report import way_back_text

        lines += [f"rollback {line}" for line in way_back_text.lines(answer["rollback"])]
    if "next" in answer:
        first = "mend the disk as is said above, then " if answer.get("disks") else ""
        lines.append(f"next     {first}kraft-migrate {answer['next']}")
    return "\n".join(hanging(line, " " * 9) for line in lines)
