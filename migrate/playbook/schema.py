"""`kind: MigrationPlaybook`: which stages, under which policies.

A stage may only be narrowed: nothing here switches a check or a gate off.  Keys that are reserved for later are
refused by name, because a promise that is read and not kept is worse than one that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from migrate.hosts.properties import is_secret
from migrate.model.config_keys import override_fault, row_of
from migrate.model.ids import NodeId
from migrate.model.inventory import (
    AcceptedDifference,
    HealthPolicy,
    Inventory,
    KraftAuthorizer,
    Pace,
    Playbook,
    RollOrder,
)
from migrate.model.stage import MIGRATION, DirectoryPolicy, Stage
from migrate.model.written import (
    ClusterId,
    Day,
    Duration,
    FilePath,
    Flag,
    Name,
    NodeNumber,
    Text,
    TopicPattern,
    lasting,
    one_of,
    whole,
)
from migrate.playbook.document import Document, Location
from migrate.playbook.fields import Fault, Metadata, Section, WholeFile
from migrate.playbook.windows import WindowSection, closed_faults, window_faults

INVENTORY_HAS_IT: Final = "it is in the inventory that `inventory` names"
OF_KAFKA: Final = ("admin", "brokers", "cluster", "config", "controller", "controller_epoch", "kafka-acl", "migration")
StageName = Annotated[str, one_of(*(stage.label for stage in MIGRATION))]
Policy = Literal["observe", "drive"]


def _lock_path(path: str) -> str:
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or any(not part or part in (".", "..") for part in parts[1:]):
        raise ValueError("a znode's path is expected, such as /kraft-migrate/lock; it is inside the chroot")
    if parts[1] in OF_KAFKA:
        raise ValueError("this path belongs to Kafka: choose one of your own, such as /kraft-migrate/lock")
    return path


class Expect(Section):
    """What the cluster must be; anything else stops."""

    later: ClassVar[Mapping[str, str]] = {"kafka": "brokers do not report their release over the protocol"}
    cluster_id: ClusterId | None = None
    brokers: Annotated[list[NodeNumber], Field(min_length=1)] | None = None


class Cluster(Section):
    """Which cluster: the inventory, and what must be found there."""

    later: ClassVar[Mapping[str, str]] = dict.fromkeys(("zookeeper", "bootstrap", "admin"), INVENTORY_HAS_IT)
    inventory: FilePath
    expect: Expect = Expect()


class Controllers(Section):
    """The quorum as it was planned; it must be the inventory's."""

    later: ClassVar[Mapping[str, str]] = {"metadata_log_dir": INVENTORY_HAS_IT}
    ids: Annotated[list[NodeNumber], Field(min_length=1)]
    overrides: dict[Text, Text] = Field(default_factory=dict)  # keys of every controller's rendered file
    overrides_of: dict[Text, dict[Text, Text]] = Field(default_factory=dict)  # of one controller's, by its id


class Directories(Section):
    """May we send AssignReplicasToDirs (`drive`), or do we watch the brokers do it (`observe`)?"""

    default: Policy = "observe"
    brokers: dict[Text, Policy] = Field(default_factory=dict)
    accept_volatile: list[Literal["tmpfs", "ramfs", "overlay"]] = Field(default_factory=list)  # B-DIR-09
    moves: Literal["refuse", "wait"] = "refuse"  # where replicas move between directories before a roll: B-DIR-12
    assignments_per_request: Annotated[int, whole(1, 2250)] = 2250  # drive; Kafka's own bound


class Availability(Section):
    """Topics that may become unavailable while one of their brokers restarts, as patterns of whole names."""

    accept_unavailable: list[TopicPattern] = Field(default_factory=list)


class Lock(Section):
    """The lock's znode, inside the chroot."""

    path: Annotated[Text, AfterValidator(_lock_path)] = "/kraft-migrate/lock"


class Rollout(Section):
    """How brokers are rolled: always one at a time, and the first failure stops."""

    later: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("order", "canary_soak", "batches"), "the plan shows the order; `apply --until` parks after a stage"
    )
    node_estimate: Annotated[Duration, lasting(1)] = 900.0  # a node's p90, until the cluster's runs have measured one


class MigrationRollout(Rollout):
    """How brokers are rolled: one at a time, in the inventory's order or a canary first and then rack by rack."""

    later: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("batches",), "Ctrl-C parks a run before its next broker, `apply --until` after a step or stage"
    )
    order: Literal["inventory", "canary-first"] = "inventory"
    canary_soak: Annotated[Duration, lasting(0)] = 0.0  # watched behind the first broker of each roll


class KraftClass(Section):
    """The class that decides about rights in KRaft mode, in place of the brokers', and its own keys."""

    name: Annotated[Text, Field(alias="class")]
    properties: dict[Text, Text] = Field(default_factory=dict)


class Authorizer(Section):
    """Whose decisions count from when: controllers have the class from their start, brokers from the second roll."""

    kraft: KraftClass


class Policies(Section):
    """Policies over all stages."""

    directories: Directories = Directories()
    availability: Availability = Availability()
    rollout: MigrationRollout = MigrationRollout()
    lock: Lock = Lock()
    health: HealthPolicy = HealthPolicy()
    own_classes: list[Text] = Field(default_factory=list)  # B-CFG-37
    authorizer: Authorizer | None = None
    remove_copies: Flag = False
    hybrid_max_age: Annotated[Duration, lasting(60)] = 86400.0  # half rolled or hybrid; KAFKA-19622
    no_progress_timeout: Annotated[Duration, lasting(10)] = 600.0


class Diff(Section):
    """Which differences between ZooKeeper and KRaft are excused, by name."""

    accept: FilePath | None = None


class StageSection(Section):
    """One stage.  Which keys only one stage takes is in `STAGE_KEYS`."""

    later: ClassVar[Mapping[str, str]] = {
        "on_failure": "the first failure always stops the run",
        "pause_when": "the first failure always stops the run",
        "rollout": "brokers always restart one at a time",
        "verify_every": "run `apply` or `status` again; nothing runs in between",
        "when": "plan a single stage with --stage",
        "timeout": "waits end when nothing advances: no_progress_timeout",
        "retries": "what may be retried is retried without it",
    }
    name: StageName
    window: Name | None = None
    no_progress_timeout: Annotated[Duration, lasting(10)] | None = None
    diff: Diff | None = None
    duration: Duration | None = None

    @property
    def stage(self) -> Stage:
        return Stage.from_label(self.name)


STAGE_KEYS: Final[Mapping[str, Stage]] = {
    "diff": Stage.HYBRID,
    "duration": Stage.SOAK,
}


class Rollback(Section):
    """The rollback: no window binds it unless one is named here, because an emergency keeps no hours."""

    later: ClassVar[Mapping[str, str]] = {
        "allow_from": "every stage before finalize can be rolled back; `rollback plan` shows it",
        "rehearsed_within": "rehearse with `lab demo --rollback-from STAGE`",
    }
    window: Name | None = None


class Spec(Section):
    """The whole intent."""

    later: ClassVar[Mapping[str, str]] = {
        "reports": "reports are in the run's folder, which the inventory names as `runs`",
    }
    cluster: Cluster
    controllers: Controllers | None = None
    policy: Policies = Policies()
    windows: dict[Name, WindowSection] = Field(default_factory=dict)
    rollback: Rollback = Rollback()
    stages: Annotated[list[StageSection], Field(min_length=1)] = Field(
        default_factory=lambda: [StageSection(name="assess")]
    )

    def faults(self) -> Iterator[Fault]:
        """Rules over several keys: the order of stages, their keys and windows, overrides, ids."""
        for index, (before, section) in enumerate(zip([None, *self.stages], self.stages, strict=False)):
            yield from _stage_faults(index, before, section)
        yield from closed_faults(self.windows)
        for index, stage in enumerate(self.stages):
            at: Location = ("spec", "stages", index)
            if stage.stage is Stage.COPY and stage.window:
                yield Fault(
                    (*at, "window"),
                    "stage copy takes no window",
                    "it starts with the registration of the last broker, and the same run waits for it",
                    "put it on migration-mode",
                )
            yield from window_faults(self.windows, at, stage.window)
        yield from window_faults(self.windows, ("spec", "rollback"), self.rollback.window)
        yield from override_faults(self.controllers)
        if self.policy.authorizer is not None:
            own = self.policy.authorizer.kraft.properties
            yield from _own_faults(("spec", "policy", "authorizer", "kraft", "properties"), own, _class_fault)
        yield from id_faults(BROKERS, self.policy.directories.brokers)
        for where, ids in (
            (("spec", "cluster", "expect", "brokers"), self.cluster.expect.brokers or []),
            (("spec", "controllers", "ids"), self.controllers.ids if self.controllers else []),
        ):
            for index, number in enumerate(ids):
                if number in ids[:index]:
                    yield Fault((*where, index), f"node id {number} appears twice")

    def faults_between(self, inventory: Inventory) -> Iterator[Fault]:
        """What does not agree with the inventory: its ZooKeeper, brokers, cluster and controllers."""
        yield from zookeeper_faults(
            inventory, "a MigrationPlaybook takes a cluster away from it", ", or use a DirectoryPlaybook"
        )
        yield from brokers_faults(BROKERS, self.policy.directories.brokers, inventory)
        yield from expected_faults(self.cluster.expect, inventory)
        controllers = {int(node.id) for node in inventory.controllers}
        if self.controllers is not None and set(self.controllers.ids) != controllers:
            yield Fault(
                ("spec", "controllers", "ids"),
                f"the controllers' ids {sorted(self.controllers.ids)} are not those of the inventory",
                f"{inventory.path} has {sorted(controllers)}; ids are chosen once and never changed",
                "write the inventory's, or take the key out",
            )


class MigrationPlaybook(WholeFile):
    """Takes a ZooKeeper-mode cluster to KRaft, in stages."""

    kind: Literal["MigrationPlaybook"]
    spec: Spec

    def playbook(self, document: Document, load_accepted: Callable[[str], tuple[AcceptedDifference, ...]]) -> Playbook:
        """The playbook as every part of a run knows one; `load_accepted` reads the acceptances that it names."""
        policy, directories, rollout = self.spec.policy, self.spec.policy.directories, self.spec.policy.rollout
        stages = {section.stage: section for section in self.spec.stages}
        accepted = [section.diff.accept for section in stages.values() if section.diff and section.diff.accept]
        return Playbook(
            **shared(document, self.metadata, self.spec),
            stages=tuple(stages),
            default_policy=DirectoryPolicy[directories.default.upper()],
            broker_policies={NodeId(text): DirectoryPolicy[mode.upper()] for text, mode in directories.brokers.items()},
            accept_volatile=tuple(directories.accept_volatile),
            own_classes=tuple(policy.own_classes),
            kraft_authorizer=None
            if policy.authorizer is None
            else KraftAuthorizer(policy.authorizer.kraft.name, policy.authorizer.kraft.properties),
            wait_for_moves=directories.moves == "wait",
            assignments_per_request=directories.assignments_per_request,
            accepted_differences=load_accepted(accepted[0]) if accepted else (),
            stage_patience={
                stage: section.no_progress_timeout
                for stage, section in stages.items()
                if section.no_progress_timeout is not None
            },
            soak_seconds=next((one.duration for one in stages.values() if one.duration is not None), DEFAULT_SOAK),
            lock_path=policy.lock.path,
            stage_windows={stage: section.window for stage, section in stages.items() if section.window is not None},
            pace=Pace(rollout.node_estimate, policy.hybrid_max_age),
            roll_order=RollOrder(rollout.order),
            canary_soak=rollout.canary_soak,
            remove_copies=policy.remove_copies,
            controller_overrides=overrides_by_controller(self.spec.controllers),
        )


class Selector(Section):
    """One field of one object, by exact names."""

    kind: Text
    name: Text
    field: Text


class Acceptance(Section):
    """One difference or warning that is excused, why, and until when."""

    rule: Annotated[
        Text, Field(pattern=r"^(ONLY_ZK|ONLY_KRAFT|DIFFERS|W-[A-Z]{3}-[0-9]{2})$")
    ]  # a blocker cannot be accepted
    selector: Selector
    reason: Text
    ticket: Text
    expires: Day


class AcceptedSpec(Section):
    """The acceptances of a file."""

    accept: list[Acceptance]


class AcceptedDifferences(WholeFile):
    """Differences between ZooKeeper and KRaft that are accepted by name."""

    kind: Literal["AcceptedDifferences"]
    spec: AcceptedSpec


class RollPolicies(Section):
    """Policies of the roll; the same as in a MigrationPlaybook."""

    availability: Availability = Availability()
    rollout: Rollout = Rollout()
    health: HealthPolicy = HealthPolicy()
    no_progress_timeout: Annotated[Duration, lasting(10)] = 600.0


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

    def faults(self) -> Iterator[Fault]:
        """Rules over several keys of the file."""
        yield from closed_faults(self.windows)
        yield from window_faults(self.windows, ("spec",), self.window)
        yield from window_faults(self.windows, ("spec", "rollback"), self.rollback.window)

    def playbook(self, document: Document, metadata: Metadata, stage: Stage) -> Playbook:
        """What both kinds say; the rest is left at nothing."""
        return Playbook(
            **shared(document, metadata, self),
            stages=(stage,),
            default_policy=DirectoryPolicy.OBSERVE,
            broker_policies={},
            accepted_differences=(),
            soak_seconds=0.0,
            lock_path="",
            pace=Pace(self.policy.rollout.node_estimate),
            stage_windows={stage: self.window} if self.window else {},
        )


BROKERS: Final = ("spec", "policy", "directories", "brokers")
DEFAULT_SOAK: Final = 7 * 86400.0


def shared(document: Document, metadata: Metadata, spec: Spec | RollSpec) -> dict[str, Any]:
    """What all kinds of playbooks say."""
    expect = spec.cluster.expect
    return {
        "name": metadata.name,
        "path": str(document.path.absolute()),
        "change": metadata.change or "",
        "sha256": document.sha256,
        "accept_unavailable": tuple(spec.policy.availability.accept_unavailable),
        "no_progress_seconds": spec.policy.no_progress_timeout,
        "expect_cluster_id": expect.cluster_id,
        "expect_brokers": tuple(expect.brokers) if expect.brokers else None,
        "inventory": spec.cluster.inventory,
        "windows": {name: section.window(name) for name, section in spec.windows.items()},
        "rollback_window": spec.rollback.window or "",
        "health": spec.policy.health,
    }


def _stage_faults(index: int, before: StageSection | None, section: StageSection) -> Iterator[Fault]:
    at = ("spec", "stages", index)
    if before is not None and section.stage != before.stage + 1:
        expected = Stage(before.stage + 1).label if before.stage < Stage.CLEANUP else "no further stage"
        yield Fault(
            (*at, "name"),
            f"stage {section.name} is there twice"
            if section.stage == before.stage
            else f"stage {section.name} cannot follow {before.name}",
            f"after {before.name} comes {expected}: stages may start late or end early, but none is skipped or moved",
        )
    for key, stage in STAGE_KEYS.items():
        if getattr(section, key) is not None and section.stage is not stage:
            yield Fault((*at, key), f"stage {section.name} takes no `{key}`", f"it belongs to stage {stage.label}")


def zookeeper_faults(inventory: Inventory, why: str, instead: str = "") -> Iterator[Fault]:
    if not inventory.zookeeper:
        how = f"write `zookeeper` into {inventory.path}{instead}"
        yield Fault(("spec", "cluster", "inventory"), "the inventory names no ZooKeeper", why, how)


def id_faults(at: Location, ids: Iterable[str]) -> Iterator[Fault]:
    """Keys that are no broker ids."""
    for text in ids:
        if not text.isascii() or not text.isdigit() or (text[0] == "0" and text != "0") or int(text[:11]) >= 2**31:
            yield Fault((*at, text), f"{text!r} is no broker id")


def brokers_faults(at: Location, ids: Iterable[str], inventory: Inventory) -> Iterator[Fault]:
    """Ids of brokers that the inventory has not; what is no id is reported by `id_faults`."""
    for text in ids:
        if text.isascii() and text.isdigit() and int(text[:11]) not in _brokers(inventory):
            yield Fault((*at, text), f"broker {text} is not in the inventory", _has(inventory))


def expected_faults(expect: Expect, inventory: Inventory) -> Iterator[Fault]:
    if expect.brokers is not None and set(expect.brokers) != _brokers(inventory):
        told = f"expected are the brokers {sorted(expect.brokers)}"
        yield Fault(("spec", "cluster", "expect", "brokers"), told, _has(inventory))
    if expect.cluster_id and inventory.expect_cluster_id and expect.cluster_id != inventory.expect_cluster_id:
        yield Fault(
            ("spec", "cluster", "expect", "cluster_id"),
            f"expected is cluster {expect.cluster_id}",
            f"{inventory.path} expects {inventory.expect_cluster_id}",
        )


def _brokers(inventory: Inventory) -> set[int]:
    return {int(node.id) for node in inventory.brokers}


def _has(inventory: Inventory) -> str:
    return f"{inventory.path} has {sorted(_brokers(inventory))}"


KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
AT: Final[Location] = ("spec", "controllers")
EXAMPLE: Final = "${file:/etc/kafka/controller.secrets:password}"


def overrides_by_controller(section: Controllers | None) -> dict[NodeId, Mapping[str, str]]:
    """Each controller's overrides: those of all, and its own on top."""
    if section is None:
        return {}
    own = {int(text): values for text, values in section.overrides_of.items()}
    found = {NodeId(number): {**section.overrides, **own.get(number, {})} for number in section.ids}
    return {node: values for node, values in found.items() if values}


def override_faults(section: Controllers | None) -> Iterator[Fault]:
    """Keys that are not the operator's to set, secrets in clear text, and controllers that there are none of."""
    if section is None:
        return
    yield from _own_faults((*AT, "overrides"), section.overrides)
    known = {str(number) for number in section.ids}
    for text, values in section.overrides_of.items():
        here = (*AT, "overrides_of", text)
        if text not in known:
            yield Fault(here, f"{text!r} is none of the controllers", f"`ids` has {sorted(section.ids)}")
        yield from _own_faults(here, values)


def _class_fault(key: str) -> str | None:
    return None if row_of(key) is None else "this key is Kafka's, and what becomes of it is known"


def _own_faults(
    at: Location, values: Mapping[str, str], fault_of: Callable[[str], str | None] = override_fault
) -> Iterator[Fault]:
    for key, value in values.items():
        why = fault_of(key)
        if not KEY.fullmatch(key):
            yield Fault((*at, key), "this is no configuration key of Kafka's")
        elif why is not None:
            hint = "take it out; `docs/configuration.md` shows what becomes of every key"
            yield Fault((*at, key), f"{key} cannot be overridden", why, hint)
        elif is_secret(key, value):
            hint = f"write a reference that the controller resolves by its config.providers, such as {EXAMPLE}"
            yield Fault(
                (*at, key), f"{key} holds a secret", "a playbook is read by many, and kept with every run", hint
            )
