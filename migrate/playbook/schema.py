"""`kind: MigrationPlaybook`: which stages, under which policies.

A stage may only be narrowed: nothing here switches a check or a gate off.  Keys that are reserved for later are
refused by name, because a promise that is read and not kept is worse than one that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from migrate.model.stage import Stage
from migrate.playbook.approvals import ApprovalSection, ApprovalsSection
from migrate.playbook.fields import (
    SECONDS,
    ClusterId,
    Day,
    Duration,
    DurationText,
    FilePath,
    Metadata,
    Name,
    NodeNumber,
    Section,
    Text,
    TopicPattern,
    Whole,
)
from migrate.playbook.windows import WindowSection

INVENTORY_HAS_IT: Final = "it stands in the inventory that `inventory` names"
KAFKAS_OWN: Final = ("admin", "brokers", "cluster", "config", "controller", "controller_epoch", "migration")
StageName = Literal[
    "discover",
    "assess",
    "prepare",
    "controllers",
    "migration-mode",
    "copy",
    "hybrid",
    "kraft-mode",
    "soak",
    "finalize",
    "cleanup",
]
Policy = Literal["observe", "drive"]
DifferenceClass = Literal["ONLY_ZK", "ONLY_KRAFT", "DIFFERS"]
BUDGET: Final = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)%/([1-9]\d{0,5})([smhd])")


def _lock_path(path: str) -> str:
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or any(not part or part in (".", "..") for part in parts[1:]):
        raise ValueError("a znode's path is expected, such as /kraft-migrate/lock; it lies inside the chroot")
    if parts[1] in (
        "brokers",
        "config",
        "admin",
        "controller",
        "controller_epoch",
        "migration",
        "kafka-acl",
        "cluster",
    ):
        raise ValueError("this path belongs to Kafka: choose one of your own, such as /kraft-migrate/lock")
    return path


def budget_of(text: str) -> tuple[float, float]:
    """`0.1%/5m` as (share, seconds); ValueError for anything else."""
    match = BUDGET.fullmatch(text)
    if match is None or not 0 < float(match[1]) <= 100:
        raise ValueError("a share of failed requests in a time is expected, such as 0.1%/5m")
    return float(match[1]) / 100, float(int(match[2]) * SECONDS[match[3]])


def _budget(text: str) -> str:
    budget_of(text)
    return text


class Expect(Section):
    """What the cluster must be; anything else stops."""

    later: ClassVar[Mapping[str, str]] = {"kafka": "brokers do not tell their release over the protocol"}
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
    quorum: Literal["static"] = "static"
    overrides: dict[Text, Text] = Field(default_factory=dict)  # keys of every controller's rendered file
    overrides_of: dict[Text, dict[Text, Text]] = Field(default_factory=dict)  # of one controller's, by its id


class Directories(Section):
    """May we send AssignReplicasToDirs (`drive`), or do we watch the brokers do it (`observe`)?"""

    default: Policy = "observe"
    brokers: dict[Text, Policy] = Field(default_factory=dict)
    accept_volatile: list[Literal["tmpfs", "ramfs", "overlay"]] = Field(default_factory=list)  # B-DIR-09
    moves: Literal["refuse", "wait"] = "refuse"  # where replicas move between directories before a roll: B-DIR-12
    assignments_per_request: Annotated[Whole, Field(ge=1, le=2250)] = 2250  # drive; Kafka's own bound


class Availability(Section):
    """Topics that may become unavailable while one of their brokers restarts, as patterns of whole names."""

    accept_unavailable: list[TopicPattern] = Field(default_factory=list)


class Lock(Section):
    """The lock's znode, inside the chroot."""

    path: Annotated[Text, AfterValidator(_lock_path)] = "/kraft-migrate/lock"


class Backup(Section):
    """What is kept before anything changes; both are always made."""

    later: ClassVar[Mapping[str, str]] = {"max_age": "backups are made in `prepare`, in the same run"}
    zookeeper: Literal["required"] = "required"
    configs: Literal["required"] = "required"


class Rollout(Section):
    """How brokers are rolled: always one at a time, and the first failure stops."""

    later: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("order", "canary_soak", "batches"), "the plan shows the order; `control hold-after` parks behind a stage"
    )
    max_fail: Annotated[Whole, Field(le=0)] = 0
    node_estimate: Annotated[Duration, Field(ge=1)] = 900.0  # a node's p90, until this run has measured one
    restore_preferred_leaders: bool = False  # behind each roll, by ElectLeaders PREFERRED
    elections_per_request: Annotated[Whole, Field(ge=1, le=5000)] = 500  # partitions; each batch is proven first


class MigrationRollout(Rollout):
    """How brokers are rolled: one at a time, in the inventory's order or a canary first and then rack by rack."""

    later: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("batches",), "`control pause` holds a run before its next broker, `control hold-after` behind its stage"
    )
    order: Literal["inventory", "canary-first"] = "inventory"
    canary_soak: Annotated[Duration, Field(ge=0)] = 0.0  # watched behind the first broker of each roll


class Health(Section):
    """Before each restart: `samples` looks in a row, `interval` apart, find no partition without its full ISR."""

    later: ClassVar[Mapping[str, str]] = {
        "unhealthy_limit": "a wait ends when nothing advances: no_progress_timeout",
    }
    samples: Annotated[Whole, Field(ge=1, le=1000)] = 3
    interval: Annotated[Duration, Field(ge=1, le=600)] = 5.0
    max_urp: Annotated[Whole, Field(le=0)] = 0  # there is no other value
    max_offline: Annotated[Whole, Field(le=0)] = 0  # there is no other value


class Probes(Section):
    """An error budget: the share of a probe's requests that may fail; where it is spent, nothing more is restarted.

    With `topic` the run itself writes to that topic and reads back; without, `history` is the file of a probe of yours.
    """

    topic: Annotated[Text, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")] | None = None
    history: FilePath | None = None
    error_budget: Annotated[Text, AfterValidator(_budget)]

    @model_validator(mode="after")
    def _some_probe(self) -> Self:
        if self.topic is None and self.history is None:
            raise ValueError("no probe: name a topic that the run probes, or the history that a probe of yours writes")
        return self


class Policies(Section):
    """Policies over all stages."""

    directories: Directories = Directories()
    availability: Availability = Availability()
    rollout: MigrationRollout = MigrationRollout()
    backup: Backup = Backup()
    lock: Lock = Lock()
    health: Health = Health()
    probes: Probes | None = None
    enable_units: bool = True
    remove_copies: bool = False
    hybrid_max_age: Annotated[Duration, Field(ge=60)] = 86400.0  # half rolled or hybrid; KAFKA-19622
    no_progress_timeout: Annotated[Duration, Field(ge=10)] = 600.0


class Diff(Section):
    """Which differences between ZooKeeper and KRaft are excused, by name."""

    fail_on: Annotated[list[DifferenceClass], Field(min_length=3, max_length=3)] | None = (
        None  # there is no other value
    )
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
        "retries": "only what may be retried is retried, by itself",
    }
    name: StageName
    needs: list[StageName] | None = None
    window: Name | None = None
    approval: ApprovalSection | None = None
    fail_on: Annotated[list[Literal["blocker"]], Field(min_length=1, max_length=1)] | None = None
    no_progress_timeout: Annotated[Duration, Field(ge=10)] | None = None
    diff: Diff | None = None
    duration: Duration | None = None
    keep_zookeeper: DurationText | None = None

    @property
    def stage(self) -> Stage:
        """The stage that is meant."""
        return Stage.from_label(self.name)


STAGE_KEYS: Final[Mapping[str, Stage]] = {
    "fail_on": Stage.ASSESS,
    "diff": Stage.HYBRID,
    "duration": Stage.SOAK,
    "keep_zookeeper": Stage.CLEANUP,
}


class Rollback(Section):
    """The way back: no window binds it unless one is named here, because an emergency keeps no hours."""

    later: ClassVar[Mapping[str, str]] = {
        "allow_from": "every stage before finalize has its way back; `rollback plan` shows it",
        "rehearsed_within": "rehearse with `lab demo --rollback-from STAGE`",
    }
    window: Name | None = None
    approval: ApprovalSection | None = None


class Spec(Section):
    """The whole intent."""

    later: ClassVar[Mapping[str, str]] = {
        "reports": "reports lie in the run's folder, which the inventory names as `runs`",
        "notifications": "wrap the command: its exit code says how it ended",
        "hooks": "wrap the command: its exit code says how it ended",
    }
    cluster: Cluster
    controllers: Controllers | None = None
    policy: Policies = Policies()
    windows: dict[Name, WindowSection] = Field(default_factory=dict)
    approvals: ApprovalsSection = ApprovalsSection()
    rollback: Rollback = Rollback()
    stages: Annotated[list[StageSection], Field(min_length=1)] = Field(
        default_factory=lambda: [StageSection(name="assess")]
    )


class MigrationPlaybook(Section):
    """Takes a ZooKeeper-mode cluster to KRaft, in stages."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["MigrationPlaybook"]
    metadata: Metadata
    spec: Spec


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


class AcceptedDifferences(Section):
    """Differences between ZooKeeper and KRaft that are excused by name."""

    api_version: Annotated[Literal["kraft-migrate/v1"], Field(alias="apiVersion")]
    kind: Literal["AcceptedDifferences"]
    metadata: Metadata
    spec: AcceptedSpec
