"""The four views: ZooKeeper, KRaft, Disks, Live - and the configuration files, which are evidence beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from migrate.model.columns import EntityColumns, PartitionColumns, ReplicaColumns
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState


class ZnodePart(StrEnum):
    """What of Kafka's a malformed znode, or a part of one, would have told."""

    CLUSTER_ID = "the cluster's id"
    TAKEOVER = "who controls the cluster"
    BROKER = "a broker's registration"
    TOPIC = "a topic"
    STATE = "a partition's state"
    CONFIG = "a configuration"
    BROKER_CONFIG = "a broker's configuration"
    QUOTA = "quotas"
    SCRAM = "SCRAM credentials"
    ACL = "ACLs"
    TOKEN = "a delegation token"  # noqa: S105 - no password
    PRODUCER_IDS = "the next block of producer ids"
    FEATURE = "finalized features"
    PENDING = "administrative work in progress"


@dataclass(frozen=True, slots=True)
class ZnodeAcl:
    """One entry of a znode's ACL; `permissions` are ZooKeeper's bits, 31 is all of them."""

    permissions: int
    scheme: str
    identity: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """A znode that is there and is not what Kafka writes: what it would have told is unknown, never absent."""

    path: str
    problem: str
    part: ZnodePart


@dataclass(frozen=True, slots=True)
class ZookeeperSession:
    """A session that a ZooKeeper server has: where it comes from, and its id."""

    host: str
    session: int


# -- ZooKeeper ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ZkBroker:
    """A live registration in /brokers/ids; `epoch` is the znode's czxid, `endpoints` are NAME://host:port."""

    id: NodeId
    epoch: int
    endpoints: tuple[str, ...]
    rack: str | None
    session: int
    protocols: Mapping[str, str] = field(default_factory=dict, compare=False)  # listener -> security protocol


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """/controller: who holds it.  `kraft_epoch` is -1 for a ZooKeeper-mode broker; `ephemeral` tells them apart too."""

    id: int
    kraft_epoch: int
    ephemeral: bool
    version: int


@dataclass(frozen=True, slots=True)
class MigrationZnode:
    """/migration: the dual write's own position, as a metadata offset."""

    offset: int
    epoch: int  # of the metadata record at `offset`
    controller_id: int
    controller_epoch: int  # of the controller that claimed it
    version: int

    def __str__(self) -> str:
        return f"copied up to metadata offset {self.offset}" if self.copied else "it waits for the copy"

    @property
    def copied(self) -> bool:
        """Does it remember a copy?  One that waits for the copy has offset -1 or 0."""
        return self.offset > 0

    def sync_pending(self, epoch: int) -> bool:
        """Has the leader of that epoch taken over dual write, and not yet written anything of its own epoch?

        The driver is in SYNC_KRAFT_TO_ZK then: in DUAL_WRITE the leader's own NoOp records move the znode at once.
        """
        return self.copied and self.epoch < epoch <= self.controller_epoch


@dataclass(frozen=True, slots=True)
class NoZnode:
    """The znode does not exist (known, not unknown)."""


@dataclass(frozen=True, slots=True)
class NullZnode:
    """The znode exists with null data (KAFKA-19480)."""

    version: int

    def __str__(self) -> str:
        return "with null data"


@dataclass(frozen=True, slots=True)
class PendingWork:
    """Administrative work in progress: names of topics, partitions or notifications."""

    deletions: tuple[str, ...] = ()
    reassignments: tuple[str, ...] = ()
    elections: tuple[str, ...] = ()
    log_dir_events: tuple[str, ...] = ()


CLIENTS_NOT_ASKED: Final = Unknown("the servers were not asked for their sessions")
ACLS_UNREAD: Final = Unknown("ACLs were not read")
CALLER_NOT_ASKED: Final = Unknown("ZooKeeper was not asked as whom it knows us")


@dataclass(frozen=True, slots=True)
class ZookeeperView:
    """What ZooKeeper said between `zxid_first` and `zxid_last`; what changed meanwhile was read again.

    A view with `malformed` parts has everything else; a malformed znode of the takeover is Unknown, a malformed
    cluster id is "".  Nobody but checks of single objects may use such a view: see `PartlyRead`.
    """

    connect: str
    cluster_id: str
    brokers: Mapping[NodeId, ZkBroker]
    controller: ControllerZnode | NoZnode | Unknown
    controller_epoch: int | NoZnode | Unknown
    migration: MigrationZnode | NoZnode | NullZnode | Unknown
    partitions: PartitionColumns
    entities: EntityColumns
    topics_without_id: tuple[str, ...]
    partitions_without_state: tuple[str, ...]
    pending: PendingWork
    blind_spots: tuple[str, ...] = ()
    znodes: int = 0
    zxid_first: int = 0
    zxid_last: int = 0
    malformed: tuple[Malformed, ...] = ()
    undecodable: tuple[str, ...] = ()  # encoded passwords that the given password.encoder.secret does not open
    acls: Mapping[str, tuple[ZnodeAcl, ...]] | Unknown = ACLS_UNREAD  # of the znodes that controllers write
    clients: tuple[ZookeeperSession, ...] | Unknown = CLIENTS_NOT_ASKED
    mzxids: Mapping[str, int] = field(default_factory=dict)  # znode -> mzxid, of the znodes that entities came from
    controller_epoch_version: int = -1  # of the znode /controller_epoch; -1 where it is not known
    state_epoch: int = -1  # the highest controller epoch that a partition's state was written with
    owner_fenced: bool = False  # /controller_epoch was written since the claim to /controller, which writes both
    caller: str | Unknown = CALLER_NOT_ASKED  # as whom it knows our login by SASL; "" for none

    @property
    def kraft_owns(self) -> bool:
        """Is /controller a KRaft controller's?  It makes the znode persistent; a broker's goes with its session."""
        return isinstance(self.controller, ControllerZnode) and not self.controller.ephemeral

    @property
    def copy_note(self) -> MigrationZnode | None:
        """/migration, where it remembers a copy."""
        return self.migration if isinstance(self.migration, MigrationZnode) and self.migration.copied else None

    @property
    def epoch_below(self) -> tuple[int, int] | None:
        """/controller_epoch and the epoch of the KRaft controller that owns /controller, where the former is lower."""
        owner, epoch = self.controller, self.controller_epoch
        if isinstance(owner, ControllerZnode) and isinstance(epoch, int) and owner.kraft_epoch > epoch:
            return epoch, owner.kraft_epoch
        return None


@dataclass(frozen=True, slots=True)
class PartlyRead(Unknown):
    """A tree with malformed znodes: Unknown to everything that would take the rest for the whole.

    `view` has what is readable, for findings about single objects; what it lacks proves nothing.
    """

    view: ZookeeperView


def whole_or_unknown(view: ZookeeperView) -> ZookeeperView | PartlyRead:
    if not view.malformed:
        return view
    first, more = view.malformed[0], len(view.malformed) - 1
    rest = f", and {more} more" if more else ""
    return PartlyRead(f"malformed znodes (B-ZKN-16): {first.path}: {first.problem}{rest}", view)


# -- KRaft -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration in the metadata (RegisterBrokerRecord and its changes); `epoch`: its record's offset.

    `log_dirs` are those that are online; `at_start` those with which it registered, a directory that died since among
    them: of a registration that came with a snapshot, those that were online when that was taken.
    """

    id: NodeId
    epoch: int
    incarnation: str
    migrating: bool
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: frozenset[DirectoryId]
    endpoints: tuple[str, ...]
    rack: str | None = None
    at_start: frozenset[DirectoryId] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """RegisterControllerRecord: `migration_ready` is the flag with which that controller was started."""

    id: NodeId
    incarnation: str
    migration_ready: bool


@dataclass(frozen=True, slots=True)
class KraftView:
    """The metadata image at one offset.

    `offset` is the last offset applied (-1: nothing), `high_watermark` the exclusive end of what is committed or
    Unknown for files of one directory alone ("tail unproven": no gate accepts that).  `waiting` counts what has been
    read of a transaction that is still open and therefore not in the image: a long copy is one transaction.
    """

    cluster_id: str
    offset: int
    epoch: int
    high_watermark: int | Unknown
    source: str
    migration_state: ZkMigrationState
    features: Mapping[str, int]
    brokers: Mapping[NodeId, Registration]
    controllers: Mapping[NodeId, ControllerRegistration]
    partitions: PartitionColumns
    entities: EntityColumns
    waiting: int = field(default=0, compare=False)
    kraft_version: int = 0  # Raft's own (KRaftVersionRecord); `features` may say another one, which means nothing

    @property
    def committed(self) -> bool:
        return not isinstance(self.high_watermark, Unknown) and self.offset < self.high_watermark


# -- Disks -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class MetaProperties:
    """meta.properties as Kafka reads it: `version` 0 or 1; ids None where the file has none."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: DirectoryId | None


@dataclass(frozen=True, slots=True)
class MetaMissing:
    """The directory has no meta.properties."""


@dataclass(frozen=True, slots=True)
class MetaBroken:
    """meta.properties is there and cannot be trusted: `reason` says why."""

    reason: str


NOT_THERE: Final = "does not exist"  # a directory's problem


@dataclass(frozen=True, slots=True)
class Directory:
    """One log directory on a broker's disk.  `problem` is "" for a healthy one (readable, writable, fsync works).

    `unproven` says why nobody tried whether it stores a block, "" where that was tried: such a directory is neither
    healthy nor broken, and what was read in it stands.  `metadata_log_bytes` counts the segments of the metadata log:
    -1 where there is none, or where its size was not seen.
    """

    path: str
    problem: str
    meta: MetaProperties | MetaMissing | MetaBroken
    replicas: ReplicaColumns
    holds_metadata_log: bool
    oddities: tuple[str, ...] = ()
    mount: str = ""
    filesystem: str = ""
    free_bytes: int = -1
    unproven: str = ""
    metadata_log_bytes: int = -1

    @property
    def healthy(self) -> bool:
        """Is it known that a broker could use it now?"""
        return not self.problem and not self.unproven

    @property
    def health(self) -> str:
        """`healthy`, what is wrong with it, or why that is not known."""
        return self.problem or (f"unknown: {self.unproven}" if self.unproven else "healthy")

    @property
    def unread(self) -> bool:
        """Could nothing in it be read?  Its file and its replicas may well be there."""
        return not self.healthy and isinstance(self.meta, MetaMissing)

    @property
    def meta_words(self) -> str:
        """`V0`, `missing`, `broken: ...`, or ? where the directory could not be read."""
        match self.meta:
            case MetaProperties(version=version):
                return f"V{version}"
            case MetaBroken(reason=reason):
                return f"broken: {reason}"
        return "?" if self.unread else "missing"

    @property
    def id(self) -> DirectoryId | None:
        return self.meta.directory_id if isinstance(self.meta, MetaProperties) else None


@dataclass(frozen=True, slots=True)
class BrokerDisks:
    """All log.dirs of a broker, in the order of its file, and metadata.log.dir where it lies apart."""

    broker: NodeId
    directories: tuple[Directory, ...]
    metadata_directory: Directory | None = None

    @property
    def unproven(self) -> str:
        """The log directories whose health is not known, with the first one's reason; "" where each was tried."""
        found = [entry for entry in self.directories if entry.unproven]
        return f"{', '.join(entry.path for entry in found)}: {found[0].unproven}" if found else ""

    def metadata_place(self, values: Mapping[str, str]) -> str:
        """By the broker's file: metadata.log.dir, the first of log.dirs unless set (`KafkaConfig.metadataLogDir`)."""
        return values.get("metadata.log.dir", "").strip() or self.directories[0].path


# -- Live --------------------------------------------------------------------------------------------------------
def majority(voters: int) -> int:
    """How many of so many voters elect a leader and commit a record: more than half of them."""
    return voters // 2 + 1


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter of the quorum as the leader sees it; offsets are log end offsets (exclusive).

    The leader remembers the offset of a voter that is gone: `caught_up_ms` says how long ago, by the leader's clock,
    the voter had everything (0 for the leader itself, -1 where the leader does not tell).  `directory` is the directory
    id under which it votes: "" in a static quorum, which has none.
    """

    id: NodeId
    log_end_offset: int
    caught_up_ms: int = 0
    directory: str = ""


@dataclass(frozen=True, slots=True)
class Quorum:
    """DescribeQuorum, answered by the leader itself.

    One id may stand there several times, with different directory ids: as a voter that is gone, and as an observer.
    Observers are controllers without a vote, and all KRaft brokers.
    """

    leader: NodeId
    leader_epoch: int
    high_watermark: int
    voters: tuple[Voter, ...]
    observers: tuple[Voter, ...] = ()

    def instead_of(self, voter: Voter) -> Voter | None:
        """The observer that is this voter's process under another directory id, and has fetched later than the voter.

        A directory id that no longer runs stays among the observers for minutes: it has fetched earlier.
        """
        others = [
            other
            for other in self.observers
            if other.id == voter.id and voter.directory not in ("", other.directory) and other.caught_up_ms >= 0
        ]
        found = min(others, key=lambda other: other.caught_up_ms, default=None)
        return None if found is None or 0 <= voter.caught_up_ms <= found.caught_up_ms else found


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What one process says of itself (ApiVersions)."""

    migration_flag: bool  # the tag ZkMigrationReady: absent is False
    finalized_features: Mapping[str, int]
    apis: Mapping[int, int] = field(default_factory=dict, compare=False)  # key -> highest version of its release


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """A partition that is not whole in some broker's Metadata answer."""

    topic: str
    partition: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """One broker's Metadata answer, folded: whom it names, whom it sees, what is not whole."""

    controller_ids: tuple[int, ...]  # in repeated answers: a broker in KRaft mode names a random one
    brokers: tuple[int, ...]
    partitions: int
    unhealthy: tuple[PartitionHealth, ...]


STORAGE_ERROR: Final = 56


@dataclass(frozen=True, slots=True)
class LogDirAnswer:
    """One directory in a broker's DescribeLogDirs answer; `error` 0 is healthy, 56 is KAFKA_STORAGE_ERROR."""

    path: str
    error: int
    replicas: int
    future_replicas: tuple[str, ...]

    @property
    def error_name(self) -> str:
        """As Kafka names it (`Errors`)."""
        return f"KAFKA_STORAGE_ERROR ({self.error})" if self.error == STORAGE_ERROR else f"error {self.error}"


@dataclass(frozen=True, slots=True)
class LiveView:
    """Who answers where, and what they say.  Each part is known or Unknown by itself."""

    quorum: Quorum | Unknown
    controllers: Mapping[NodeId, NodeAnswer | Unknown]
    brokers: Mapping[NodeId, NodeAnswer | Unknown]
    metadata: Mapping[NodeId, MetadataAnswer | Unknown]
    log_dirs: Mapping[NodeId, tuple[LogDirAnswer, ...] | Unknown]


# -- configuration files -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A node's properties file: `values` parsed (secrets included: never print them), `sha256` of its bytes."""

    node: NodeId
    path: str
    raw: bytes = field(repr=False)
    sha256: str
    values: Mapping[str, str] = field(repr=False)
    subjects: Mapping[str, str | Unknown] = field(default_factory=dict)  # keystore's path -> its certificate's subject
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)  # key -> this run's digest; none of a bundle
    target: str = ""  # where `path` is a link that its host allows: the file that it leads to

    @property
    def shown(self) -> str:
        """Its path for people; of a link both names."""
        return f"{self.path} -> {self.target}" if self.target else self.path


@dataclass(frozen=True, slots=True)
class NoFile:
    """The file does not exist (known, not unknown): a planned controller's, before it is rendered."""

    path: str


@dataclass(frozen=True, slots=True)
class HostFile:
    path: str
    raw: bytes = field(repr=False)
    sha256: str


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """A node's files that a rollback needs: copies kept beside its configuration, and each meta.properties as it is."""

    configs: tuple[HostFile, ...]
    metas: tuple[HostFile, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """The process lives; `config_sha256` is the file it was started with, where the executor knows it."""

    pid: int
    started_at: float
    config_sha256: str | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """No such process; `exit_code` where the executor saw it end, `config_sha256` is the file its last one had.

    `since` is when it ended, in seconds since the epoch, where its host knows that.
    """

    exit_code: int | None = None
    config_sha256: str | None = field(default=None, compare=False)
    since: float | None = field(default=None, compare=False)


ServiceState = Running | Stopped | Unknown
