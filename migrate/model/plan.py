"""A plan: what will happen, step by step, bound to the inputs that decided it."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum, StrEnum
from typing import Any, Final

from migrate.model.findings import Finding
from migrate.model.secrets import without_digits
from migrate.model.stage import Stage
from migrate.model.step import Action

PLAN_FORMAT: Final = 3
SHORT: Final = re.compile(r"[0-9a-f]{8}")  # the name of a plan and of its run: `Plan.short`
REVIEWED: Final = ("symbol", "where", "what", "diff", "znode")  # of an action, what its fingerprint is of


class Direction(StrEnum):
    """Forward, or back: the saved plan has this word; with the target it gives the `PlanKind`."""

    FORWARD = "forward"
    BACK = "back"


class PlanKind(Enum):
    """What a plan is for.  What differs between kinds, and is no decision about a cluster, stands in `KINDS`."""

    FORWARD = "forward"
    ROLLBACK = "rollback"
    COPY_AGAIN = "copy again"  # the rollback that ends with a new copy, by a fresh quorum
    DIRECTORIES = "directories"  # more log directories for the brokers of a KRaft cluster
    DIRECTORIES_BACK = "directories back"
    PROTOCOL = "protocol"  # inter.broker.protocol.version of the brokers of a ZooKeeper-mode cluster
    PROTOCOL_BACK = "protocol back"

    @property
    def rolls_back(self) -> bool:
        """Does it undo an earlier plan: by `rollback`'s commands, in its window?"""
        return KINDS[self].command == "rollback"

    @property
    def migrates(self) -> bool:
        """Is it about a migration?"""
        return self in (PlanKind.FORWARD, PlanKind.ROLLBACK, PlanKind.COPY_AGAIN)

    @property
    def has_zookeeper(self) -> bool:
        """Is there a ZooKeeper, to lock in and to roll back to?"""
        return self not in (PlanKind.DIRECTORIES, PlanKind.DIRECTORIES_BACK)

    @property
    def plan_command(self) -> str:
        return f"{KINDS[self].command} plan".strip()

    @property
    def apply_command(self) -> str:
        return f"{KINDS[self].command} apply".strip()


@dataclass(frozen=True, slots=True)
class KindWords:
    """What is said of one kind of plan.

    `command` is the group of its commands; `title` what its run was; `target` where it ends, by the target stage's
    number and label; `heading` of a stage's steps; `ended` what a whole run has done, as far as its claims hold.
    `unconfirmed` and `why` refuse a plan that asks for its fingerprint.
    """

    command: str
    title: str
    target: str
    heading: str
    ended: str
    unconfirmed: str = "the rollback was not confirmed"
    why: str = "it stops the controllers and discards what only they have"


KINDS: Final[Mapping[PlanKind, KindWords]] = {
    PlanKind.FORWARD: KindWords(
        "",
        "Migration of {cluster} to KRaft",
        "stage {number} {label}",
        "Stage {number} {label}",
        "Every step up to stage {label} ended",
        "the plan has the point of no return in it, and was not confirmed",
        "no rollback is possible after it",
    ),
    PlanKind.ROLLBACK: KindWords(
        "rollback",
        "Rollback of {cluster} to ZooKeeper mode",
        "ZooKeeper mode, as before the migration",
        "Back from stage {number} {label}",
        "Every step of the rollback ended",
    ),
    PlanKind.COPY_AGAIN: KindWords(
        "rollback",
        "Rollback of {cluster} to ZooKeeper mode",
        "the copy again, with a fresh quorum",
        "Back from stage {number} {label}",
        "Every step of the rollback ended",
    ),
    PlanKind.DIRECTORIES: KindWords(
        "",
        "Log directories of {cluster}, more of them",
        "every broker with the playbook's log directories",
        "Directories",
        "Every broker's directories were changed",
    ),
    PlanKind.DIRECTORIES_BACK: KindWords(
        "rollback",
        "Log directories of {cluster}, taken away again",
        "every broker without the playbook's log directories",
        "Directories away again",
        "Every broker's directories were changed",
        why="it restarts every broker that has one of the directories",
    ),
    PlanKind.PROTOCOL: KindWords(
        "",
        "inter.broker.protocol.version of {cluster}, raised to 3.9",
        "every broker with inter.broker.protocol.version 3.9",
        "Protocol version",
        "Every broker's protocol version was changed",
    ),
    PlanKind.PROTOCOL_BACK: KindWords(
        "rollback",
        "inter.broker.protocol.version of {cluster}, as before it was raised",
        "every broker with the file from before",
        "Protocol version back",
        "Every broker's protocol version was changed",
        why="it restarts every broker whose protocol version was raised",
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step as the plan keeps it: enough to rebuild it, to show it, and to notice that its inputs changed."""

    id: str
    kind: str
    stage: Stage
    title: str
    params: Mapping[str, str]
    actions: tuple[Action, ...]
    binds: Mapping[str, str]
    expects: Mapping[str, str]
    undo: str
    proof: str
    requires: tuple[str, ...] = ()  # the gates before it

    @property
    def restarts(self) -> bool:
        """Does it start or stop a process?"""
        return any(action.symbol in (">", "!") and not action.znode for action in self.actions)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """Facts about the cluster for the plan's reader: counts by kind, versions, disks.  No part of the fingerprint."""

    detected: str  # the stage and how it was detected
    inventory: Mapping[str, int]  # topics, partitions, replicas, configs, ...
    disks: tuple[Mapping[str, str], ...]  # one row a broker and directory
    availability: tuple[str, ...]  # partitions that must become unavailable, by topic
    blind_spots: tuple[str, ...]
    rollback: tuple[Mapping[str, str], ...]  # one row a stage: procedure, rolls, cost
    fit: str = ""  # `fits`, `will park after 4 steps`, `does not fit`
    schedule: tuple[Mapping[str, str], ...] = ()  # one row a stage: steps, p50, p90, window, when it would end
    parks: tuple[str, ...] = ()  # where it would stop by itself, and why
    parity: tuple[Mapping[str, str], ...] = ()  # one row a key: the brokers' value, and how each controller's compares
    parity_unset: int = 0  # keys that controllers would take and that stand in no file
    order: tuple[Mapping[str, str], ...] = ()  # one row a broker of a roll: why it is there, the leaders that move
    own: tuple[Mapping[str, str], ...] = ()  # one row a node with settings of its own in the inventory: what they are
    problem: str = ""  # what is wrong with the cluster now, as `status` begins; "" for nothing
    remedy: str = ""  # what to do first; no step of the plan comes before it
    readiness: str = ""  # of a rollback: the word and how many reasons forbid it, as `status` has them
    reasons: tuple[str, ...] = ()  # ... each reason with its fix, a line each
    checks: int = 0  # how many checks belong to the cluster's phase; 0 where the verdict does not rest on them


@dataclass(frozen=True, slots=True)
class Plan:
    """The list of steps from one observed state to a target stage."""

    cluster: str
    cluster_id: str
    change: str
    tool_version: str
    created: float
    target: Stage
    playbook: str
    playbook_sha256: str
    inventory: str
    steps: tuple[PlannedStep, ...]
    findings: tuple[Finding, ...]
    summary: PlanSummary
    direction: Direction = Direction.FORWARD
    inventory_sha256: str = ""  # of the inventory and of the files that it names, but for secrets
    again: int = 0  # how often the same plan was carried out, and undone since

    @property
    def kind(self) -> PlanKind:
        back = self.direction is Direction.BACK
        if self.target is Stage.DIRECTORIES:
            return PlanKind.DIRECTORIES_BACK if back else PlanKind.DIRECTORIES
        if self.target is Stage.PROTOCOL:
            return PlanKind.PROTOCOL_BACK if back else PlanKind.PROTOCOL
        if not back:
            return PlanKind.FORWARD
        return PlanKind.COPY_AGAIN if self.target is Stage.COPY else PlanKind.ROLLBACK

    @property
    def plan_again(self) -> str:
        """The command that plans what is left of it."""
        more = {PlanKind.FORWARD: f" --to {self.target.label}", PlanKind.COPY_AGAIN: " --copy-again"}
        return f"kraft-migrate {self.kind.plan_command} {shlex.quote(self.playbook)}{more.get(self.kind, '')}"

    @property
    def words(self) -> KindWords:
        values = {"cluster": self.cluster, "number": int(self.target), "label": self.target.label}
        found = KINDS[self.kind]
        return replace(
            found,
            title=found.title.format(**values),
            target=found.target.format(**values),
            ended=found.ended.format(**values),
        )

    @property
    def needs_confirmation(self) -> bool:
        """Is it applied only with its fingerprint?  With the point of no return in it, or to roll back."""
        return self.irreversible or self.kind.rolls_back

    @property
    def irreversible(self) -> bool:
        return any(not step.stage.reversible for step in self.steps)

    @property
    def ends_migration(self) -> bool:
        """Is nothing of a migration left to do behind it?"""
        return not self.kind.rolls_back and self.target is Stage.CLEANUP

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the canonical JSON of what decides the actions, and of what a reviewer reads of them.

        When it was made, findings and figures are not in it, nor versions and values of znodes: they move from look to
        look.  `content` has them.  Nor are the digits of hidden values: each process has its own.  A changed secret
        is a changed line, and another SHA-256 of its file.
        """
        body: dict[str, Any] = {
            "format": PLAN_FORMAT,
            "tool": self.tool_version,
            "cluster_id": self.cluster_id,
            "target": self.target.label,
            "playbook": self.playbook_sha256,
            "inventory": self.inventory_sha256,
            "steps": [
                {
                    "id": step.id,
                    "kind": step.kind,
                    "params": dict(step.params),
                    "binds": dict(step.binds),
                    "expects": dict(step.expects),
                    "words": [step.title, step.undo, step.proof, *step.requires],
                    "actions": [_reviewed(action) for action in step.actions],
                }
                for step in self.steps
            ],
        }
        # absent in plans forward: those that were saved before keep their fingerprint
        if self.direction is Direction.BACK:
            body["direction"] = self.direction.value
        if self.again:
            body["again"] = self.again
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def body(self) -> dict[str, Any]:
        """All of it as JSON values: the saved file has them, and `content` is their sum."""
        found = {**asdict(self), "created": float(self.created)}
        found["target"], found["direction"] = self.target.label, self.direction.value
        for step, planned in zip(found["steps"], self.steps, strict=True):
            step["stage"] = planned.stage.label
        return found

    @property
    def content(self) -> str:
        """SHA-256 (hex) of all that a reviewer reads: findings, figures and when it was made, too.

        The fingerprint leaves these out, as they move from look to look.
        """
        text = json.dumps(self.body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def short(self) -> str:
        """The fingerprint's first eight digits: the plan's name in folders and messages."""
        return self.fingerprint[:8]


def _reviewed(action: Action) -> dict[str, Any]:
    return {name: getattr(action, name) for name in REVIEWED} | {"diff": [*map(without_digits, action.diff)]}
