"""The playbooks of one roll beside the migration: `kind: DirectoryPlaybook` and `kind: ProtocolPlaybook`.

The one says which brokers of a KRaft cluster get which log directories; the other raises inter.broker.protocol.version
before a migration.  Relative paths are relative to the file, as everywhere in a playbook; on real hosts absolute.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from migrate.model.ids import NodeId
from migrate.model.inventory import HealthPolicy, Inventory, Pace, Playbook
from migrate.model.stage import DirectoryPolicy, Stage
from migrate.model.written import Duration, HostPath, Name, Text, lasting
from migrate.playbook.document import Document, Location
from migrate.playbook.fields import Fault, Metadata, Section, refuse
from migrate.playbook.schema import (
    Availability,
    Cluster,
    Lock,
    MigrationPlaybook,
    Rollback,
    Rollout,
    brokers_faults,
    expected_faults,
    id_faults,
)
from migrate.playbook.windows import WindowSection, closed_faults, window_faults

BROKERS: Final = ("spec", "directories", "brokers")


def _log_dir(path: str) -> str:
    if "," in path or path != path.strip() or "\\" in path:
        raise ValueError("log.dirs is a list with commas: a path in it has none, and no space around it")
    return path


LogDir = Annotated[HostPath, AfterValidator(_log_dir)]


class NewDirectories(Section):
    """The directories: `add` for every broker, or a list of its own for one; `[]` leaves a broker as it is."""

    add: list[LogDir] = Field(default_factory=list)
    brokers: dict[Text, list[LogDir]] = Field(default_factory=dict)
    accept_volatile: list[Literal["tmpfs", "ramfs", "overlay"]] = Field(default_factory=list)


class RollPolicies(Section):
    """Policies of the roll; the same as in a MigrationPlaybook."""

    availability: Availability = Availability()
    rollout: Rollout = Rollout()
    health: HealthPolicy = HealthPolicy()
    no_progress_timeout: Annotated[Duration, lasting(10)] = 600.0


class ProtocolPolicies(RollPolicies):
    """The same, with the lock of the migration that follows."""

    lock: Lock = Lock()


class RollSpec(Section):
    """When one roll of all brokers may happen, and under which policies."""

    later: ClassVar[Mapping[str, str]] = {
        "stages": "there is one: all brokers, one at a time",
    }
    cluster: Cluster
    policy: RollPolicies = RollPolicies()
    windows: dict[Name, WindowSection] = Field(default_factory=dict)
    window: Name | None = None
    rollback: Rollback = Rollback()


class DirectorySpec(RollSpec):
    """The whole intent."""

    later: ClassVar[Mapping[str, str]] = {
        **RollSpec.later,
        "controllers": "they keep their one metadata directory",
        "remove": "`kraft-migrate rollback plan` with this playbook takes the directories away again",
    }
    directories: NewDirectories


class ProtocolSpec(RollSpec):
    """The whole intent: the version is always 3.9, the one that a migration begins with."""

    later: ClassVar[Mapping[str, str]] = {
        **RollSpec.later,
        "version": "it is 3.9, the one that a migration begins with",
    }
    policy: ProtocolPolicies = ProtocolPolicies()


class DirectoryPlaybook(Section):
    """Gives the brokers of a KRaft cluster more log directories, one broker at a time."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["DirectoryPlaybook"]
    metadata: Metadata
    spec: DirectorySpec


class ProtocolPlaybook(Section):
    """Raises inter.broker.protocol.version of a ZooKeeper-mode cluster to 3.9, one broker at a time."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["ProtocolPlaybook"]
    metadata: Metadata
    spec: ProtocolSpec


RollPlaybook = DirectoryPlaybook | ProtocolPlaybook


def roll_playbook(document: Document, parsed: RollPlaybook, inventory: Inventory) -> Playbook:
    """The playbook as every part of a run knows one; raises DocumentInvalid with every problem, each with its place.

    The inventory is needed, because `add` is for every broker in it, and a protocol version for a cluster's ZooKeeper.
    """
    spec = parsed.spec
    refuse(document, [*faults_of(spec), *faults_between(spec, inventory)])
    stage = stage_of(spec)
    found = replace(
        shared_playbook(document, parsed, (stage,)),
        inventory=inventory.path,
        stage_windows={stage: spec.window} if spec.window else {},
    )
    if isinstance(spec, ProtocolSpec):
        return replace(found, lock_path=spec.policy.lock.path)
    wanted = _wanted(spec.directories, inventory, document)
    return replace(found, accept_volatile=tuple(spec.directories.accept_volatile), new_directories=wanted)


def stage_of(spec: RollSpec) -> Stage:
    return Stage.DIRECTORIES if isinstance(spec, DirectorySpec) else Stage.PROTOCOL


def shared_playbook(
    document: Document, parsed: RollPlaybook | MigrationPlaybook, stages: tuple[Stage, ...]
) -> Playbook:
    """What all kinds of playbooks say; the rest is left at nothing."""
    spec = parsed.spec
    expect, rollout = spec.cluster.expect, spec.policy.rollout
    return Playbook(
        name=parsed.metadata.name,
        path=str(document.path.absolute()),
        change=parsed.metadata.change or "",
        sha256=document.sha256,
        stages=stages,
        default_policy=DirectoryPolicy.OBSERVE,
        broker_policies={},
        accept_unavailable=tuple(spec.policy.availability.accept_unavailable),
        accepted_differences=(),
        no_progress_seconds=spec.policy.no_progress_timeout,
        soak_seconds=0.0,
        lock_path="",
        expect_cluster_id=expect.cluster_id,
        expect_brokers=tuple(NodeId(number) for number in expect.brokers) if expect.brokers else None,
        inventory=spec.cluster.inventory,
        windows={name: section.window(name) for name, section in spec.windows.items()},
        rollback_window=spec.rollback.window or "",
        health=spec.policy.health,
        pace=Pace(rollout.node_estimate),
    )


def _wanted(section: NewDirectories, inventory: Inventory, document: Document) -> dict[NodeId, tuple[str, ...]]:
    """Broker -> its directories, absolute; brokers that get none are left out."""
    found = {}
    for broker in inventory.brokers:
        paths = section.brokers.get(str(int(broker.id)), section.add)
        if paths:
            found[broker.id] = tuple(document.beside(path) for path in paths)
    return found


# -- rules over several keys ---------------------------------------------------------------------------------------
def faults_of(spec: RollSpec) -> Iterator[Fault]:
    """Of the file alone: no directory twice, ids are ids, something is asked for."""
    if isinstance(spec, DirectorySpec):
        yield from _directory_faults(spec.directories)
    yield from closed_faults(spec)
    yield from window_faults(spec, ("spec",), spec.window)
    yield from window_faults(spec, ("spec", "rollback"), spec.rollback.window)


def _directory_faults(section: NewDirectories) -> Iterator[Fault]:
    lists: list[tuple[Location, list[str]]] = [(("spec", "directories", "add"), list(section.add))]
    lists += [(("spec", "directories", "brokers", text), list(paths)) for text, paths in section.brokers.items()]
    for at, paths in lists:
        seen: set[str] = set()
        for index, path in enumerate(paths):
            if os.path.normpath(path) in seen:
                yield Fault((*at, index), f"the directory {path} appears twice")
            seen.add(os.path.normpath(path))
    yield from id_faults(BROKERS, section.brokers)
    if not section.add and not any(section.brokers.values()):
        yield Fault(
            ("spec", "directories"), "no directory is named", next_step="name them under `add`, or for single brokers"
        )


def faults_between(spec: RollSpec, inventory: Inventory) -> Iterator[Fault]:
    """Against the inventory: brokers that are there, the cluster that is expected."""
    if isinstance(spec, DirectorySpec):
        yield from brokers_faults(BROKERS, spec.directories.brokers, inventory)
    elif not inventory.zookeeper:
        yield Fault(
            ("spec", "cluster", "inventory"),
            "the inventory names no ZooKeeper",
            "a KRaft cluster has metadata.version in the place of inter.broker.protocol.version",
            f"write `zookeeper` into {inventory.path}",
        )
    yield from expected_faults(spec.cluster.expect, inventory)
