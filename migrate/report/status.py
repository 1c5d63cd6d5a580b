"""What `status` answers: as values, whose JSON programs read, and the same as lines for a person (pure)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Final, final

from typing_extensions import TypedDict

from migrate.model.afterwards import Afterwards
from migrate.model.disk_remedies import DiskTrouble
from migrate.model.findings import Explanation, ranges
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import Reason, RollbackReadiness, reason_lines
from migrate.model.words import span
from migrate.report.wording import duration, hanging, plural, printable

INDENT: Final = " " * 9
SHOWN: Final = 5  # partitions by name
CONTROLLER: Final = "controller"  # `disk_trouble.CONTROLLER`
USES: Final = {
    "used": "somebody still uses it: do not stop its servers",
    "unknown": "whether somebody still uses it is not known: do not stop its servers",
    "unused": "nobody uses it any more: it can be stopped (docs/after-the-migration.md#stop-zookeeper)",
    "stopped": "all of its servers are stopped",
}


# -- values ------------------------------------------------------------------------------------------------------
class WaitingRow(TypedDict):
    """One reason why the migration does not go on.

    `cause` is null where it cannot be determined, and `unknown` says why.
    """

    code: str
    waits_for: str
    driver: str
    nodes: list[int]
    owner: str
    cause: str | None
    unknown: str | None
    evidence: list[str]
    next: str
    by_itself: str


class CostRow(TypedDict):
    """What a rollback would take: `minutes` by the p50; `gap_seconds` without a controller are null where unknown."""

    rolls: int
    restarts: int
    minutes: float
    minutes_p90: float
    gap_seconds: float | None
    basis: str


RollbackAnswer = TypedDict(  # is a rollback possible now; `gone`: nothing opens it again
    "RollbackAnswer",
    {
        "readiness": str,
        "gone": bool,
        "from": str,
        "procedure": str,
        "reasons": list[Reason],
        "cost": CostRow,
    },
)


@final
class NotSeen(TypedDict):
    """In place of a part that could not be seen: why."""

    unknown: str


class Process(TypedDict):
    """A node: `file` is the mode of its configuration, `registered` a broker's mode, or `-`."""

    node: int
    state: str
    pid: int | None
    file: str
    registered: str


@final
class Quorum(TypedDict):
    """The controllers; `voters` is id -> end of its log."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[str, int]


@final
class LedgerCounts(TypedDict):
    """Replicas by broker and state; `copied`: is the metadata in KRaft?"""

    offset: int
    copied: bool
    brokers: dict[str, dict[str, int]]


class ZookeeperUse(TypedDict):
    """Who still uses ZooKeeper: `used`, `unknown`, `unused` or `stopped`, and by what that is known."""

    use: str
    servers: list[str]
    users: list[str]
    unseen: list[str]


class BrokerProtocol(TypedDict):
    """inter.broker.protocol.version as the running broker says it; null where it does not, `unknown` says why."""

    broker: int
    version: str | None
    wanted: str
    unknown: str | None


class NewDirectory(TypedDict):
    """A log directory of a DirectoryPlaybook: `in use`, `in the file, not registered`, `not yet` or `unknown`."""

    broker: str
    path: str
    state: str
    why: str


@final
class Run(TypedDict):
    """The newest run, not carried out whole yet.

    `alive`: a process works on it.  `told` is where it stands, `doing` the lines of its board, `next` its command, or
    "".  `read` is its plan as text where that has the point of no return: its command stands there, and nowhere else.
    """

    plan: str
    back: bool
    alive: bool
    told: str
    doing: list[str]
    next: str
    read: str


@final
class UnreadableRun(TypedDict):
    """Why the newest run's journal proves nothing."""

    unreadable: str


@final
class Moves(TypedDict):
    """Partitions that another tool is reassigning: no broker is restarted meanwhile."""

    partitions: list[str]
    what: str
    owner: str
    next: str


class ProblemRow(TypedDict):
    """What is wrong, and what to do about it; `run` is the one that stopped these nodes, or ""."""

    what: str
    next: str
    run: str


class Parts(TypedDict, total=False):
    """What is not in every answer.

    There is `unknown`, why the stage is unknown, or there are `stage`, `half_done` (a stage, or null) and `how`.
    `next` is the command that comes next, without the program's name: none while there are problems, but for the run
    that one of them is about.  `zookeeper` is there where its use was looked at, `protocols` and `new_directories`
    where the playbook is about them, `rollback` where it migrates, `run` where one is not carried out whole yet,
    `moves` where partitions are being reassigned.
    """

    unknown: str
    stage: str
    half_done: str | None
    how: str
    afterwards: Afterwards
    next: str
    zookeeper: ZookeeperUse
    protocols: list[BrokerProtocol]
    new_directories: list[NewDirectory]
    rollback: RollbackAnswer
    run: Run | UnreadableRun
    moves: Moves


class StatusAnswer(Parts):
    """What `status` answers; `time` is in seconds since the epoch, `disks_unseen` says why, by node.

    `headline` names the problems in one line, as plans and `diff` do; "" where there is none.
    """

    cluster: str
    inventory: str
    time: float
    headline: str
    problems: list[ProblemRow]
    processes: list[Process]
    contradictions: list[str]
    quorum: Quorum | NotSeen
    ledger: LedgerCounts | NotSeen
    unhealthy_partitions: int | None
    waiting: list[WaitingRow]
    disks: list[DiskTrouble]
    disks_unseen: dict[str, str]
    leaderless: list[str]


def waiting_values(found: Iterable[Explanation]) -> list[WaitingRow]:
    """A row each."""
    return [
        {
            "code": entry.code,
            "waits_for": entry.waits_for,
            "driver": entry.driver,
            "nodes": list(entry.nodes),
            "owner": entry.owner,
            "cause": None if isinstance(entry.cause, Unknown) else entry.cause,
            "unknown": entry.cause.reason if isinstance(entry.cause, Unknown) else None,
            "evidence": list(entry.evidence),
            "next": entry.next_step,
            "by_itself": entry.by_itself,
        }
        for entry in found
    ]


def rollback_values(found: RollbackReadiness) -> RollbackAnswer:
    """The answer as values."""
    gap = found.cost.gap_seconds
    return {
        "readiness": found.word.value,
        "gone": found.gone,
        "from": found.origin,
        "procedure": found.procedure,
        "reasons": list(found.reasons),
        "cost": {
            "rolls": found.cost.rolls,
            "restarts": found.cost.restarts,
            "minutes": round(found.cost.p50 / 60, 1),
            "minutes_p90": round(found.cost.p90 / 60, 1),
            "gap_seconds": None if isinstance(gap, Unknown) else round(gap, 1),
            "basis": found.cost.basis,
        },
    }


# -- lines -------------------------------------------------------------------------------------------------------
def as_text(answer: StatusAnswer) -> str:
    """The answer for a person; later lines of what is foreign hang under its first."""
    return "\n".join(hanging(line, INDENT) for line in _lines(answer))


def _lines(answer: StatusAnswer) -> Iterator[str]:
    """What a screen of 24 lines has to show, then the details; the next step stands at the end, too."""
    after = next_step(answer)
    rollback = list(rollback_lines(answer["rollback"])) if "rollback" in answer else []
    if answer["headline"]:
        yield answer["headline"]
    yield f"cluster {answer['cluster']}"
    if "unknown" in answer:
        yield f"stage    unknown: {answer['unknown']}"
    else:
        half = f", {answer['half_done']} half done" if answer["half_done"] else ""
        yield from _labelled("stage", f"{answer['stage']}{half}", answer["how"])
    for new in answer.get("new_directories", ()):
        why = f" ({new['why']})" if new["why"] else ""
        yield f"{INDENT}broker {new['broker']}: {new['path']}: {new['state']}{why}"
    yield from _ledger_lines(answer["ledger"])
    yield from (f"rollback {line}" for line in rollback[:1])
    if after:
        yield f"next     {after}"
    yield from _details(answer)
    yield from (f"rollback {line}" for line in rollback[1:])
    if after:
        yield f"next     {after}"
    if "afterwards" in answer:
        yield f"later    {answer['afterwards'].line}"


def _details(answer: StatusAnswer) -> Iterator[str]:
    if "run" in answer:
        yield from _run_lines(answer["run"])
    yield from _process_lines(answer["processes"])
    yield from answer["contradictions"]
    yield from map(_protocol_line, answer.get("protocols", ()))
    yield _quorum_line(answer)
    if "zookeeper" in answer:
        use = answer["zookeeper"]
        used, unseen = (f"used: {line}" for line in use["users"]), (f"not known: {line}" for line in use["unseen"])
        yield from _labelled("zookeeper", USES[use["use"]], *use["servers"], *used, *unseen)
    unhealthy = answer["unhealthy_partitions"]
    yield f"partitions without full ISR or leader: {'unknown' if unhealthy is None else unhealthy}"
    yield from (f"disk     {line}" for line in _disk_lines(answer))
    if "moves" in answer:
        moves = answer["moves"]
        yield from _labelled("waits", f"for {moves['what']}", f"owner: {moves['owner']}", f"next: {moves['next']}")
    yield from waiting_lines(answer["waiting"])


def _process_lines(rows: Iterable[Process]) -> Iterator[str]:
    """Nodes that are alike in one line: brokers before controllers, and of each what does not run first."""
    found: dict[tuple[bool, bool, str, str, str], list[int]] = {}
    for row in rows:
        key = (row["registered"] == "-", row["state"] == "running", row["state"], row["file"], row["registered"])
        found.setdefault(key, []).append(row["node"])
    named = [(ranges(nodes), key) for key, nodes in sorted(found.items(), key=lambda entry: entry[0][:2])]
    width = max((len(nodes) for nodes, _ in named), default=0) + 1
    yield f"{'node':<{max(width, 8)}} process   file         registered"
    for nodes, (_, _, state, file, registered) in named:
        yield f"{nodes:<{max(width, 8)}} {state:<9} {file:<12} {registered}"


def next_step(answer: StatusAnswer) -> str:
    """What comes next, "" for nothing: no step forward while a problem stands, but the run that has to end it."""
    if answer["problems"] and not goes_on_with_run(answer):
        return f"{answer['problems'][0]['next']}; then give this command again"
    run = answer.get("run")
    if run is not None and "read" in run and run["read"] and not run["alive"]:
        return f"read {run['read']} first: it finalizes, no rollback is possible after it. Its command is at its end"
    return f"kraft-migrate {answer['next']}" if "next" in answer else ""


def goes_on_with_run(answer: StatusAnswer) -> bool:
    """Is the first problem what the newest run left half done?"""
    run = answer.get("run")
    return run is not None and "plan" in run and answer["problems"][0]["run"] == run["plan"]


def _labelled(label: str, first: str, *more: str) -> Iterator[str]:
    """Lines under one label."""
    yield f"{label:<8} {first}"
    yield from (INDENT + line for line in more)


def _protocol_line(row: BrokerProtocol) -> str:
    found = f"unknown: {row['unknown']}" if row["version"] is None else row["version"]
    wanted = "" if row["version"] == row["wanted"] else f" (wanted: {row['wanted']})"
    return f"version  broker {row['broker']}: inter.broker.protocol.version {found}{wanted}"


def _quorum_line(answer: StatusAnswer) -> str:
    """Who leads it; none is not unknown: before controllers have files there is none."""
    quorum = answer["quorum"]
    if "unknown" not in quorum:
        return f"quorum   leader {quorum['leader']}, epoch {quorum['epoch']}, high watermark {quorum['high_watermark']}"
    controllers = [row for row in answer["processes"] if row["registered"] == "-"]
    if controllers and all(row["file"] == "none" and row["state"] != "running" for row in controllers):
        return "quorum   none yet: no controller has a configuration file"
    return f"quorum   unknown: {quorum['unknown']}"


def _ledger_lines(ledger: LedgerCounts | NotSeen) -> Iterator[str]:
    if "unknown" in ledger:
        yield f"ledger   unknown: {ledger['unknown']}"
    elif not ledger["copied"]:
        count = sum(sum(states.values()) for states in ledger["brokers"].values())
        yield f"ledger   {count} replicas in ZooKeeper alone: nothing is copied to KRaft yet"
    else:  # brokers whose replicas are in the same states, together
        groups: dict[tuple[str, ...], list[str]] = {}
        for broker, states in ledger["brokers"].items():
            groups.setdefault(tuple(states), []).append(broker)
        for names, brokers in groups.items():
            totals = {state: sum(ledger["brokers"][broker][state] for broker in brokers) for state in names}
            text = ", ".join(f"{state} {count}" for state, count in totals.items()) or "no replicas"
            yield f"ledger   broker{'s' if len(brokers) > 1 else ''} {ranges(map(int, brokers))}: {text}"


def _disk_lines(answer: StatusAnswer) -> Iterator[str]:
    for row in answer["disks"]:
        node = f"broker {row.broker} ({row.mode})" if row.mode != CONTROLLER else f"{CONTROLLER} {row.broker}"
        yield f"{node} {row.path}: {row.what}"
        yield f"  {row.effect}"
        yield from (f"  do: {words}" for words in row.do)
    for unseen, reason in answer["disks_unseen"].items():
        yield f"node {unseen}: its disks were not seen: {reason}"
    if names := answer["leaderless"]:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield f"without a leader although a replica is online: {', '.join(names[:SHOWN])}{more}"
        yield f"do: kraft-migrate directories rescue --inventory {shlex.quote(answer['inventory'])}, it elects them"


def _run_lines(run: Run | UnreadableRun) -> Iterator[str]:
    if "told" not in run:
        yield f"the journal of the newest run proves nothing: {run['unreadable']}"
        return
    yield f"{run['told']}; {'its process is running' if run['alive'] else 'no process works on it'}"
    yield from run["doing"] if run["alive"] else ()


def waiting_lines(rows: Iterable[WaitingRow]) -> Iterator[str]:
    """What is waited for, why, what shows it, what to do."""
    for row in rows:
        why = f"cannot tell why, because {row['unknown']}" if row["cause"] is None else f"because {row['cause']}"
        yield from _labelled(
            "waits",
            f"{row['code']} for {row['waits_for']}",
            why,
            *(f"seen: {line}" for line in row["evidence"]),
            f"owner: {row['owner']}",
            f"next: {row['next']}",
            f"without action: {row['by_itself']}",
        )


def cost_text(cost: CostRow) -> str:
    """One line: `2 rolls (6 restarts), about 3 min 10 s, 12 s without a controller`."""
    seconds = cost["gap_seconds"]
    gap = f"{duration(seconds)} without a controller" if seconds else "never without a controller"
    if seconds is None:
        gap = "an unknown time without a controller"
    if not cost["restarts"]:
        return f"no broker is restarted, {gap}"
    rolls = f"{plural(cost['rolls'], 'roll')} ({plural(cost['restarts'], 'restart')})"
    return f"{rolls}, about {span(cost['minutes'] * 60, cost['minutes_p90'] * 60)}, {gap}"


def rollback_lines(values: RollbackAnswer) -> Iterator[str]:
    """The plain values for a person; the first line is the word."""
    if values["gone"]:
        yield printable(f"not possible any more: {values['reasons'][0].what}")
        return
    yield printable(f"{values['readiness']}, from: {values['from']}")
    yield printable("once it is ready: " * (values["readiness"] == "NOT READY") + values["procedure"])
    cost = values["cost"]
    if cost["restarts"] or cost["gap_seconds"] != 0:
        yield f"{cost_text(cost)} [{cost['basis']}]"
    yield from map(printable, reason_lines(values["reasons"]))
