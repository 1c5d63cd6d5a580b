"""`kind: DirectoryPlaybook`: which brokers of a KRaft cluster get which log directories, and when it may happen.

Relative paths are relative to the file, as everywhere in a playbook; on real hosts they are absolute.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from migrate.model.approvals import ApprovalPolicy
from migrate.model.ids import NodeId
from migrate.model.inventory import HealthPolicy, Inventory, Pace, Playbook
from migrate.model.stage import DirectoryPolicy, Stage
from migrate.playbook.document import Document
from migrate.playbook.fields import Duration, Fault, FilePath, Location, Metadata, Name, Section, Text, refuse
from migrate.playbook.notifications import load_notifications
from migrate.playbook.schema import (
    HOOKS,
    Availability,
    Cluster,
    Health,
    MigrationPlaybook,
    Probes,
    Rollback,
    Rollout,
    brokers_faults,
    error_budget,
    expected_faults,
    id_faults,
)
from migrate.playbook.windows_approvals import (
    ApprovalSection,
    ApprovalsSection,
    WindowSection,
    approval_faults,
    approval_policy,
    closed_faults,
    key_faults,
    window_faults,
)

LABEL: Final = Stage.DIRECTORIES.label
BROKERS: Final = ("spec", "directories", "brokers")


def _log_dir(path: str) -> str:
    if "," in path or path != path.strip() or "\\" in path:
        raise ValueError("log.dirs is a list with commas: a path in it has none, and no space around it")
    return path


LogDir = Annotated[FilePath, AfterValidator(_log_dir)]


class NewDirectories(Section):
    """The directories: `add` for every broker, or a list of its own for one; `[]` leaves a broker as it is."""

    add: list[LogDir] = Field(default_factory=list)
    brokers: dict[Text, list[LogDir]] = Field(default_factory=dict)
    accept_volatile: list[Literal["tmpfs", "ramfs", "overlay"]] = Field(default_factory=list)


class DirectoryPolicies(Section):
    """Policies of the roll; the same as in a MigrationPlaybook."""

    availability: Availability = Availability()
    rollout: Rollout = Rollout()
    health: Health = Health()
    probes: Probes | None = None
    no_progress_timeout: Annotated[Duration, Field(ge=10)] = 600.0


class DirectorySpec(Section):
    """The whole intent."""

    later: ClassVar[Mapping[str, str]] = {
        "controllers": "they keep their one metadata directory",
        "stages": "there is one: all brokers, one at a time",
        "hooks": HOOKS,
        "remove": "`kraft-migrate rollback plan` with this playbook takes the directories away again",
    }
    cluster: Cluster
    directories: NewDirectories
    policy: DirectoryPolicies = DirectoryPolicies()
    windows: dict[Name, WindowSection] = Field(default_factory=dict)
    window: Name | None = None
    approvals: ApprovalsSection = ApprovalsSection()
    approval: ApprovalSection | None = None
    rollback: Rollback = Rollback()
    notifications: FilePath | None = None


class DirectoryPlaybook(Section):
    """Gives the brokers of a KRaft cluster more log directories, one broker at a time."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["DirectoryPlaybook"]
    metadata: Metadata
    spec: DirectorySpec


def directory_playbook(document: Document, parsed: DirectoryPlaybook, inventory: Inventory) -> Playbook:
    """The playbook as every part of a run knows one; raises DocumentInvalid with every problem, each with its place.

    The inventory is needed, because `add` is for every broker in it.
    """
    spec = parsed.spec
    refuse(document, [*faults_of(spec, document.path.absolute().parent), *faults_between(spec, inventory)])
    return replace(
        shared_playbook(document, parsed, (Stage.DIRECTORIES,), directory_approvals(spec)),
        inventory=inventory.path,
        stage_windows={Stage.DIRECTORIES: spec.window} if spec.window else {},
        accept_volatile=tuple(spec.directories.accept_volatile),
        new_directories=_wanted(spec.directories, inventory, document.path.absolute().parent),
    )


def shared_playbook(
    document: Document,
    parsed: DirectoryPlaybook | MigrationPlaybook,
    stages: tuple[Stage, ...],
    approvals: ApprovalPolicy,
) -> Playbook:
    """What both kinds of playbooks say; the rest is left at nothing."""
    spec, near = parsed.spec, document.path.absolute().parent
    expect, rollout = spec.cluster.expect, spec.policy.rollout
    return Playbook(
        name=parsed.metadata.name,
        path=str(document.path.absolute()),
        change=parsed.metadata.change or "",
        owner=parsed.metadata.owner or "",
        sha256=document.sha256,
        stages=stages,
        default_policy=DirectoryPolicy.OBSERVE,
        broker_policies={},
        accept_unavailable=tuple(spec.policy.availability.accept_unavailable),
        accepted_differences=(),
        no_progress_seconds=spec.policy.no_progress_timeout,
        soak_seconds=0.0,
        keep_zookeeper="",
        lock_path="",
        expect_cluster_id=expect.cluster_id,
        expect_brokers=tuple(NodeId(number) for number in expect.brokers) if expect.brokers else None,
        inventory=os.path.normpath(near / spec.cluster.inventory),
        windows={name: section.window(name, near) for name, section in spec.windows.items()},
        rollback_window=spec.rollback.window or "",
        approvals=approvals,
        health=HealthPolicy(spec.policy.health.samples, spec.policy.health.interval),
        budget=error_budget(spec.policy.probes, near),
        pace=Pace(rollout.node_estimate),
        restore_leaders=rollout.restore_preferred_leaders,
        elections_per_request=rollout.elections_per_request,
        notifications=load_notifications(near / spec.notifications) if spec.notifications else (),
    )


def _wanted(section: NewDirectories, inventory: Inventory, near: Path) -> dict[NodeId, tuple[str, ...]]:
    """Broker -> its directories, absolute; brokers that get none are left out."""
    found = {}
    for broker in inventory.brokers:
        paths = section.brokers.get(str(int(broker.id)), section.add)
        if paths:
            found[broker.id] = tuple(os.path.normpath(near / path) for path in paths)
    return found


def directory_approvals(spec: DirectorySpec) -> ApprovalPolicy:
    return approval_policy({LABEL: spec.approval, "rollback": spec.rollback.approval}, spec.approvals)


# -- rules over several keys ---------------------------------------------------------------------------------------
def faults_of(spec: DirectorySpec, near: Path) -> Iterator[Fault]:
    """Of the file alone: no directory twice, ids are ids, something is asked for."""
    section = spec.directories
    lists: list[tuple[Location, list[str]]] = [(("spec", "directories", "add"), list(section.add))]
    lists += [(("spec", "directories", "brokers", text), list(paths)) for text, paths in section.brokers.items()]
    for at, paths in lists:
        seen: set[str] = set()
        for index, path in enumerate(paths):
            if os.path.normpath(path) in seen:
                yield Fault((*at, index), f"the directory {path} appears twice")
            seen.add(os.path.normpath(path))
    yield from id_faults(BROKERS, section.brokers)
    yield from closed_faults(spec, near)
    yield from window_faults(spec, ("spec",), spec.window)
    yield from approval_faults(spec, ("spec",), spec.approval)
    yield from window_faults(spec, ("spec", "rollback"), spec.rollback.window)
    yield from approval_faults(spec, ("spec", "rollback"), spec.rollback.approval)
    yield from key_faults(spec)
    if not section.add and not any(section.brokers.values()):
        yield Fault(
            ("spec", "directories"), "no directory is named", next_step="name them under `add`, or for single brokers"
        )


def faults_between(spec: DirectorySpec, inventory: Inventory) -> Iterator[Fault]:
    """Against the inventory: brokers that are there, the cluster that is expected."""
    yield from brokers_faults(BROKERS, spec.directories.brokers, inventory)
    yield from expected_faults(spec.cluster.expect, inventory)
