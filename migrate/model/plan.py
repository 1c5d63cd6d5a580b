"""A plan: what will happen, step by step, bound to the inputs that decided it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from migrate.model.findings import Finding
from migrate.model.stage import Stage
from migrate.model.step import Action

PLAN_FORMAT: Final = 2


class Direction(StrEnum):
    """Forward to KRaft, or back to ZooKeeper mode."""

    FORWARD = "forward"
    BACK = "back"


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
    approvals: tuple[Mapping[str, str], ...] = ()  # one row a stage that asks for them
    parity: tuple[Mapping[str, str], ...] = ()  # one row a key: the brokers' value, and how each controller's compares
    parity_unset: int = 0  # keys that controllers would take and that stand in no file
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

    @property
    def back(self) -> bool:
        """Is it the way back to ZooKeeper mode?"""
        return self.direction is Direction.BACK

    @property
    def of_directories(self) -> bool:
        """Is it about the log directories of a KRaft cluster, there or back?"""
        return self.target is Stage.DIRECTORIES

    @property
    def needs_confirmation(self) -> bool:
        """Is it applied only with its fingerprint?  With the point of no return in it, or the way back."""
        return self.irreversible or self.back

    @property
    def irreversible(self) -> bool:
        """Does it contain the point of no return?"""
        return any(not step.stage.reversible for step in self.steps)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the canonical JSON of what decides the actions, and of what a reviewer reads of them.

        When it was made, findings and figures are not in it: they move from look to look.  `content` has them.
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
                    "words": [step.title, step.undo, step.proof],
                    "actions": [asdict(action) for action in step.actions],
                }
                for step in self.steps
            ],
        }
        if self.back:  # absent in plans forward: those that were saved before keep their fingerprint
            body["direction"] = self.direction.value
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

        The fingerprint leaves these out, as they move from look to look; an approval names both.
        """
        text = json.dumps(self.body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def short(self) -> str:
        """The fingerprint's first eight digits: the plan's name in folders and messages."""
        return self.fingerprint[:8]
