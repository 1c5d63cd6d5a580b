"""`kind: MigrationPlaybook`: which stages, under which policies.

A stage may only be narrowed: nothing here switches a check or a gate off.  Keys that are reserved for later are
refused by name, because a promise that is read and not kept is worse than one that is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from migrate.model.stage import Stage
from migrate.playbook.fields import (
    ClusterId,
    Day,
    Duration,
    DurationText,
    FilePath,
    Metadata,
    NodeNumber,
    Section,
    Text,
    TopicPattern,
    Whole,
)

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


class Directories(Section):
    """May we send AssignReplicasToDirs (`drive`), or do we watch the brokers do it (`observe`)?"""

    default: Policy = "observe"
    brokers: dict[Text, Policy] = Field(default_factory=dict)


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
        ("order", "canary_soak", "batches"), "the plan shows the order; apply a single stage to pause after it"
    )
    max_fail: Annotated[Whole, Field(le=0)] = 0


class Policies(Section):
    """Policies over all stages."""

    later: ClassVar[Mapping[str, str]] = {
        "health": "every restart already waits for full in-sync replica sets",
        "probes": "the lab's load shows what clients see",
        "hybrid_max_age": "apply the stages after hybrid in the same window",
    }
    directories: Directories = Directories()
    availability: Availability = Availability()
    rollout: Rollout = Rollout()
    backup: Backup = Backup()
    lock: Lock = Lock()
    no_progress_timeout: Annotated[Duration, Field(ge=10)] = 600.0


class Diff(Section):
    """Which differences between ZooKeeper and KRaft are excused, by name."""

    fail_on: Annotated[list[DifferenceClass], Field(min_length=3, max_length=3)] | None = (
        None  # there is no other value
    )
    accept: FilePath | None = None


class StageSection(Section):
    """One stage.  Which keys a stage takes is in `STAGE_KEYS`."""

    later: ClassVar[Mapping[str, str]] = {
        "window": "start `apply` inside the window; it parks between stages",
        "approval": "plans with finalize ask for --confirm FINGERPRINT",
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
    "no_progress_timeout": Stage.COPY,
    "diff": Stage.HYBRID,
    "duration": Stage.SOAK,
    "keep_zookeeper": Stage.CLEANUP,
}


class Spec(Section):
    """The whole intent."""

    later: ClassVar[Mapping[str, str]] = {
        "windows": "start `apply` inside the window; it parks between stages",
        "rollback": "the plan shows the way back of each stage",
        "reports": "reports lie in the run's folder, which the inventory names as `runs`",
        "notifications": "wrap the command: its exit code says how it ended",
        "hooks": "wrap the command: its exit code says how it ended",
    }
    cluster: Cluster
    controllers: Controllers | None = None
    policy: Policies = Policies()
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
