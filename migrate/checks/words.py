"""The words that people ask about besides codes: states of replicas, stages, exit codes, families of codes, terms.

`explain` answers them; docs/exit-codes.md, the headings of docs/findings.md, the stages of docs/index.md and the terms
of docs/glossary.md are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.ledger import ReplicaState
from migrate.model.stage import Stage

AREAS: Final[Mapping[str, str]] = {
    "VER": "Versions",
    "CFG": "Configuration files",
    "ZKN": "ZooKeeper",
    "DIR": "Log directories",
    "SEC": "Security",
    "NET": "Network",
    "HLT": "Availability",
    "QRM": "Quorum",
    "MIG": "Migration",
    "RBK": "Rollback",
    "OPS": "Operations",
}
KINDS: Final[Mapping[str, str]] = {
    "B": "findings that block",
    "W": "findings that warn",
    "I": "findings that inform",
    "S": "causes of a wait",
    "E": "errors",
    "X": "differences that Kafka itself makes",
}


@dataclass(frozen=True, slots=True)
class ExitDoc:
    """An exit code: the constant's name, what it means, and what to do."""

    name: str
    meaning: str
    next_step: str


EXIT_DOCS: Final[Mapping[int, ExitDoc]] = {
    0: ExitDoc("EXIT_OK", "done, or nothing to do", "continue"),
    1: ExitDoc(
        "EXIT_ERROR",
        (
            "an error: the message has an id, the place, the reason and the next step; `assess`, `plan`, `fleet "
            "assess`: INCOMPLETE, no blocker was found, and a check that can block could not be made; `playbook lint`, "
            "`doctor`: a problem was found; `lab demo`: something does not hold"
        ),
        "follow the message, or let the tool see what the report names; the same command resumes",
    ),
    2: ExitDoc(
        "EXIT_CHANGES",
        (
            "`plan`, `rollback plan`: changes are pending; `diff`, `fleet diff`: something differs; `directories "
            "verify`: something is not VERIFIED and should be; `directories show`: a directory is not known to be "
            "healthy; `backup create`: some znodes could not be read; `directories rescue` and `backup restore` "
            "without confirmation: there is something to do"
        ),
        "read the report",
    ),
    3: ExitDoc(
        "EXIT_BLOCKED",
        (
            "`assess`, `fleet assess`, `plan`: findings block the stage; `status`: there is a problem; "
            "`rollback plan`: NOT READY; `apply`, `rollback apply`, `lab demo`: a gate or a proof stopped the run; "
            "`directories inspect`: Kafka would not start; `directories rescue`: a directory's id is not proven; "
            "`backup restore`: a controller runs"
        ),
        "remove what the message names; plan again, or run the same `apply` again",
    ),
    4: ExitDoc(
        "EXIT_WAITING",
        (
            "`apply`, `rollback apply`: it waits for a confirmation, or `apply` for a window; "
            "nothing of that stage has begun"
        ),
        (
            "read the plan, then give `--confirm` with its fingerprint and the cluster's name; run it again when the "
            "window is open"
        ),
    ),
    5: ExitDoc(
        "EXIT_PARKED",
        (
            "`apply`, `rollback apply`, `lab demo`: parked at a safe point (the window's end, `--until`), or a wait "
            "made no progress; the cluster stays as it is; `directories rescue`: sent, and not proven yet"
        ),
        "read the message, run the same command again",
    ),
    6: ExitDoc(
        "EXIT_STALE",
        (
            "`apply`, `rollback apply`, `lab demo`: the saved plan no longer fits the cluster; `backup restore`: the "
            "tree changed since it was shown; the message says what changed"
        ),
        "plan again",
    ),
    7: ExitDoc(
        "EXIT_LOCKED",
        (
            "`apply`, `rollback apply`, `directories assign`, `directories rescue`, `backup restore`, `lab up`, "
            "`lab down`, `lab demo`: another run holds the lock; the message names its owner; `unlock`: the owner is "
            "running"
        ),
        "wait until it ends",
    ),
    10: ExitDoc(
        "EXIT_LOCK_LOST",
        (
            "`apply`, `rollback apply`, `lab demo`, `directories assign`, `directories rescue`, `backup restore`: it "
            "had the lock and lost it (it was paused, or its ZooKeeper session ended); it did nothing after that"
        ),
        "find out who holds it now; the same command resumes",
    ),
    64: ExitDoc("EXIT_USAGE", "the command line is wrong (2 means something else here)", "`--help`"),
    130: ExitDoc(
        "EXIT_INTERRUPTED",
        (
            "Ctrl-C or SIGTERM: `apply` and `rollback apply` park at the next safe point, a second one stops them at "
            "once; the journal is complete"
        ),
        "run the same command again",
    ),
}

STATES: Final[Mapping[ReplicaState, tuple[str, str]]] = {
    ReplicaState.VERIFIED: (
        "metadata, registration and disk name the same directory",
        "nothing: it is as it must be in KRaft mode",
    ),
    ReplicaState.MIGRATING: (
        (
            "the metadata has no directory of this replica yet, which is as it must be from the copy until its "
            "broker's second restart"
        ),
        "continue with the second roll; after it, `kraft-migrate directories verify` names those that are left",
    ),
    ReplicaState.UNASSIGNED: (
        "the controller placed this replica, and the broker has not said yet in which directory it is",
        "wait for the broker's report; `kraft-migrate status` says what a report waits for",
    ),
    ReplicaState.LOST: (
        "the broker said that this replica's directory is gone",
        "look at the broker's disks: `kraft-migrate directories show`",
    ),
    ReplicaState.MISMATCH: (
        "the metadata names another directory than the one that has the replica, or the lists of replicas differ",
        "`kraft-migrate directories verify` names each one with its remedy",
    ),
    ReplicaState.MOVING: (
        "the replica is being moved between two directories of its broker",
        "wait until the move has ended; none may be in progress in the second roll",
    ),
    ReplicaState.NOT_REGISTERED: (
        "the replica is in a directory that its broker has not registered",
        "`kraft-migrate directories show` has the directory; restart the broker once its disk is healthy",
    ),
    ReplicaState.NOT_ON_DISK: (
        (
            "the metadata gives the replica to this broker, and no healthy directory of the broker has it: its disk is "
            "dead, or the folder is missing"
        ),
        "`kraft-migrate directories show` names directories that are not healthy; docs/directories.md has the repair",
    ),
    ReplicaState.TWO_COPIES: (
        "two directories of the broker have the same replica; Kafka does not start with both",
        "`kraft-migrate directories verify` names both; move one of them away while the broker is stopped",
    ),
    ReplicaState.UNKNOWN: (
        "a view that is needed could not be seen; never read as good",
        "let the tool see what `kraft-migrate directories verify` names",
    ),
}

STAGES: Final[Mapping[Stage, str]] = {
    Stage.DISCOVER: "finds out where the cluster is; nothing changes",
    Stage.ASSESS: "every check; nothing changes",
    Stage.PREPARE: "backups, and the controllers' files",
    Stage.CONTROLLERS: "the quorum of KRaft controllers starts and waits",
    Stage.MIGRATION_MODE: "first roll: each broker restarts and registers with the controllers",
    Stage.COPY: "Kafka copies ZooKeeper's metadata; from here on both are written",
    Stage.HYBRID: "ZooKeeper and KRaft are compared, field by field; both are written (dual write)",
    Stage.KRAFT_MODE: "second roll: each broker restarts as a KRaft broker",
    Stage.SOAK: "days of watching, both still written",
    Stage.FINALIZE: "the controllers restart without the migration flag; ZooKeeper is not written any more",
    Stage.CLEANUP: "the lock in ZooKeeper is given back; the cluster is proven by its own metadata and disks",
    Stage.DIRECTORIES: "a plan of its own: a KRaft cluster gets more log directories",
    Stage.PROTOCOL: "a plan of its own: brokers get the inter.broker.protocol.version that a migration begins with",
}

TERMS: Final[Mapping[str, str]] = {
    "inventory": "the file that describes the cluster: ZooKeeper, nodes, their files and listeners, access to hosts",
    "playbook": "the file that says what to change: how far, and when",
    "plan, fingerprint": "the steps, in order, stored as `runs/PLAN/plan.json`; the fingerprint is a SHA-256 over "
    "it, and its first eight characters are PLAN",
    "run, journal": "a plan that is applied; `journal.jsonl` in its folder records each step, wait and proof",
    "park": "stop where the cluster may stay as it is; the same command resumes",
    "roll": "a restart of every broker, one after the other: the first into migration mode, the second into KRaft mode",
    "the flag": "`zookeeper.metadata.migration.enable=true` in a node's file",
    "migration mode": "a broker that works by ZooKeeper and is registered with the controllers, too",
    "restart": "a restart is of one process; a roll restarts every broker, one after the other",
    "KRaft mode, ZooKeeper mode": "a broker that works by the controllers alone; by ZooKeeper alone",
    "dual write": "the controllers write each change to KRaft and to ZooKeeper: from the copy until finalize",
    "ledger": "one row per replica: the directory in the metadata, the broker's registration, the disk",
    "ISR": "in-sync replicas; full: all replicas are in sync",
    "fenced": "a broker that is registered and sends no heartbeat: it is down, or does not reach the controllers",
    "under-replicated": "a partition whose ISR lacks a replica: a broker is down, or one catches up",
    "READY, READY WITH WARNINGS": "the plan can be applied; what warns is read first",
    "BLOCKED, INCOMPLETE": "nothing may begin: something is in the way, or a check that can block could not be made",
    "READY WITH WORK, NOT READY": "of a rollback: possible, with the work that `needs` names; or barred, by what "
    "`blocked by` names",
    "blind spot, unknown": "what could not be observed; never taken as healthy",
    "finding, code": "the result of a check: `B` blocks, `W` warns, `I` informs; `kraft-migrate explain CODE`",
    "gate, proof": "what must hold before a step, and after it",
    "accepted difference": "a difference, or a finding, that the operator accepts by name and until a date",
    "blocker, warning, info": "severity of a finding",
    "broker, controller, node": "as Kafka uses them; a node is either",
    "change window": "when the playbook allows changes",
    "check": "a rule that looks at the cluster and gives findings",
    "claim": "one sentence of a run's report, with its answer and evidence",
    "comparison, difference": "ZooKeeper against KRaft, field by field",
    "credentials, permission": "who one is; what one may do",
    "directory": "one of a broker's log directories",
    "evidence": "what a proof saw",
    "half rolled": "some brokers are in the mode of the first or second roll, others not yet",
    "in progress": "begun and not ended",
    "pending": "not begun",
    "per broker, per host, per line": "rate or distribution",
    "stage, step": "a stage is one of the eleven of a migration; a step is one change in it",
    "point of no return": "behind it no rollback is possible: in stage finalize, where a controller starts without the "
    "flag",
    "prerequisite": "what must be there before",
    "remedy": "what to do about a finding or an error",
    "request": "what an operator asks of a run: to park",
    "resume": "continue an interrupted run",
    "rollback": "return to ZooKeeper mode",
    "stuck": "makes no progress",
    "unreachable": "does not answer",
    "verify": "look and compare",
}


@dataclass(frozen=True, slots=True)
class WordDoc:
    """What is said of a word; `codes` are those of a family."""

    code: str
    kind: str
    title: str
    next_step: str
    codes: tuple[str, ...] = ()
    blocks: str = ""  # as every code answers: no stage


def all_words() -> dict[str, WordDoc]:
    """Every word but families, by itself in lower case; `3` and `EXIT_BLOCKED` are the same exit code."""
    found: dict[str, WordDoc] = {}
    for terms, meaning in TERMS.items():
        for term in terms.split(", "):
            found[key(term)] = WordDoc(term, "term", meaning, "")
    for number, entry in EXIT_DOCS.items():
        doc = WordDoc(f"exit code {number}", "exit code", entry.meaning, entry.next_step)
        found |= dict.fromkeys((str(number), f"exit {number}", f"exit code {number}", key(entry.name)), doc)
    for stage, meaning in STAGES.items():
        back = "a rollback is possible" if stage.reversible else "no rollback is possible: point of no return"
        found[key(stage.label)] = WordDoc(stage.label, "stage", meaning, back)
    for state, (meaning, remedy) in STATES.items():
        found[key(state)] = WordDoc(str(state), "state of a replica", meaning, remedy)
    return found


def key(word: str) -> str:
    """How a word is compared: `EXIT_BLOCKED`, `not-on-disk` and `NOT ON DISK` as they are said."""
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


def family(word: str, codes: Mapping[str, str]) -> WordDoc | None:
    """The family of codes that begin like that, such as `B-DIR`, `DIR` or `E-RUN`; None for none.  `codes`: titles."""
    wanted = word.strip().upper().strip("-*")
    members = tuple(code for code in codes if code.rpartition("-")[0] == wanted or code.split("-")[1:2] == [wanted])
    if not members or not wanted:
        return None
    kind, _, area = wanted.rpartition("-")
    what = KINDS.get(kind, "codes")
    title = f"{what} about {AREAS[area].lower()}" if area in AREAS else what
    return WordDoc(wanted, "family", title, "", tuple(f"{code} {codes[code]}" for code in members))
