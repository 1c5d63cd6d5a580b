"""Where the cluster is and what is wanted: the values that playbook, inventory and fleet files become.

A `section` is written so in a file: its keys, their forms and their defaults are declared there alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from migrate.errors import Defect, MigrateError
from migrate.model.config_keys import BOOTSTRAP, VOTERS, QuorumKind
from migrate.model.ids import NodeId
from migrate.model.patterns import compiled
from migrate.model.stage import ACTING, DirectoryPolicy, Stage
from migrate.model.windows import Window
from migrate.model.written import (
    PRINCIPAL,
    Address,
    CommandWord,
    Duration,
    FilePath,
    Flag,
    Form,
    Host,
    HostPath,
    MetadataPath,
    NodeNumber,
    Text,
    TokenEndpoint,
    UnitName,
    UserName,
    VariableName,
    lasting,
    one_of,
    section,
    sized,
    whole,
)


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A secret by reference: a file of mode 0600 whose content (stripped) is the secret.  Never inline."""

    path: str


@dataclass(frozen=True, slots=True)
class SecretVariable:
    """A secret by reference: the value (stripped) of an environment variable."""

    name: str


@dataclass(frozen=True, slots=True)
class SecretCommand:
    """A secret by reference: what a command writes to its standard output (stripped)."""

    argv: tuple[str, ...]


@section()
@dataclass(frozen=True, slots=True)
class SecretReference:
    """A secret by one of: `file` of mode 0600 with nothing else, `env` variable, `command` that prints it."""

    file: FilePath | None = None
    env: VariableName | None = None
    command: Annotated[tuple[CommandWord, ...], sized(min_length=1)] | None = None  # no shell: a list of words

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.file, self.env, self.command)) != 1:
            raise ValueError("exactly one of file, env and command is expected")
        if self.command is not None and not self.command[0].startswith("/"):
            raise ValueError("the command's first word is the absolute path of a program")

    @property
    def secret(self) -> SecretFile | SecretVariable | SecretCommand:
        if self.file is not None:
            return SecretFile(self.file)
        return SecretVariable(self.env) if self.env is not None else SecretCommand(self.command or ())


REFERRED: Final = Form(  # a file has a `SecretReference`, which becomes the secret
    lambda core, source, handler: core.no_info_after_validator_function(
        lambda found: found.secret,
        handler.generate_schema(SecretReference),
        serialization=core.plain_serializer_function_ser_schema(lambda value: value, return_schema=handler(source)),
    )
)
Secret = Annotated[SecretFile | SecretVariable | SecretCommand, REFERRED]


@section(kind="type")
@dataclass(frozen=True, slots=True)
class Store:
    """A file with certificates, or with a key and its certificates."""

    path: FilePath
    kind: Annotated[str, one_of("PEM", "PKCS12", "JKS")]
    password: Secret | None = None  # PEM: of the private key in it


@section()
@dataclass(frozen=True, slots=True)
class Kerberos:
    """Who we are by Kerberos: from a keytab, or by the tickets of a cache; without both by the default cache's."""

    principal: Annotated[Text, PRINCIPAL]
    keytab: FilePath = ""
    ccache: Text = ""  # such as FILE:/run/migrate.ccache
    service: Text = ""  # the first part of the nodes' principals; "": kafka, or zookeeper

    def __post_init__(self) -> None:
        if self.keytab and self.ccache:
            raise ValueError("one of keytab and ccache is expected")


@section()
@dataclass(frozen=True, slots=True)
class OAuth:
    """A login by OAUTHBEARER: a token that somebody else renews, or a client's credentials for an endpoint that does.

    `endpoint` may be http, as Kafka's own may: then the client's secret goes over the network in clear (W-SEC-23).
    """

    token: Secret | None = None
    endpoint: TokenEndpoint | None = None
    client_id: Text = ""
    client_secret: Secret | None = None
    scope: Text = ""
    truststore: Store | None = None  # of the endpoint's certificate; None: the host's authorities

    def __post_init__(self) -> None:
        """Refuse what is neither; ValueError."""
        credentials = (self.endpoint, self.client_id, self.client_secret)
        if any(credentials) is (self.token is not None) or (self.token is None and not all(credentials)):
            raise ValueError("either token is expected, or all of endpoint, client_id and client_secret")


@section()
@dataclass(frozen=True, slots=True)
class Access:
    """How to connect to a listener.  Host names are always verified; without a truststore the host's are used."""

    protocol: Annotated[str, one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")] = "PLAINTEXT"
    mechanism: Annotated[str, one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER")] = ""
    username: Text = ""
    password: Secret | None = None
    truststore: Store | None = None
    keystore: Store | None = None
    kerberos: Kerberos | None = None  # of GSSAPI
    oauth: OAuth | None = None  # of OAUTHBEARER; `username` is then what the token's claim of that purpose says

    @property
    def is_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def user(self) -> str:
        """As whom it logs in, "" for nobody: a user, or a principal of Kerberos."""
        return self.username if self.kerberos is None else self.kerberos.principal


@dataclass(frozen=True, slots=True)
class ZookeeperLogin:
    """How ZooKeeper lets us in: a SASL identity (DIGEST-MD5 or Kerberos), TLS, both or neither."""

    username: str = ""
    password: Secret | None = None
    tls: bool = False
    truststore: Store | None = None
    keystore: Store | None = None
    kerberos: Kerberos | None = None


@dataclass(frozen=True, slots=True)
class AddedProperties:
    """Kafka properties that are merged into nodes' own files: values may be secrets, and are never shown."""

    path: str  # of the file that they were read from; "": they stand in the inventory
    values: Mapping[str, str] = field(repr=False)


Command = Annotated[tuple[CommandWord, ...], sized(min_length=1, max_length=64)]  # no shell: a list of words


@section()
@dataclass(frozen=True, slots=True)
class OwnCommands:
    """How a node is started and stopped that is no unit of systemd: by commands that root runs on its host.

    The exit code of `status` says whether the node runs: 0 that it does, 3 that it does not, others neither; the host's
    processes must agree.  `timeout` is how many seconds a stop may take: later the process is killed, or the stop
    command gives up.
    """

    user: UserName  # whose process it is
    start: Command
    stop: Command
    status: Command
    timeout: Annotated[Duration, lasting(1, 86400)]
    java_home: HostPath = ""  # for kafka-storage.sh; "": java is on the PATH

    def typed(self, verb: str) -> str:
        """What a person types to `start`, `stop` or `restart` the node."""
        words = {"start": (self.start,), "stop": (self.stop,), "restart": (self.stop, self.start)}[verb]
        return " && ".join(map(shlex.join, words))


@section()
@dataclass(frozen=True, slots=True)
class OwnExecutor:
    """How one node's host is worked, in place of what `spec.executor` says."""

    kind: Annotated[str, one_of("local", "ssh")] = ""
    host_program: HostPath = ""
    sudo: Flag | None = None


@section()
@dataclass(frozen=True, slots=True)
class BrokerDefaults:
    """What is the same for all brokers, but for those that say otherwise."""

    config: HostPath = ""
    unit: UnitName = ""


@section()
@dataclass(frozen=True, slots=True)
class ControllerDefaults:
    """The same for controllers."""

    config: HostPath = ""
    metadata_directory: MetadataPath = ""
    unit: UnitName = ""


@section()
@dataclass(frozen=True, slots=True)
class BrokerNode:
    """One broker; `address` is host:port of the listener that its access opens."""

    id: NodeNumber
    host: Host
    address: Address
    config: HostPath = ""  # "": a reader of files takes the defaults', and refuses a node without any
    rack: Text | None = None
    jmx: Address | None = None  # where it offers JMX without a password; read only where a broker reports nothing
    unit: UnitName = ""  # of systemd, where an executor works units
    service: OwnCommands | None = None  # in place of a unit
    kafka_home: HostPath = ""  # these three: "" and None mean that it is as the other nodes are
    access: Access | None = None
    executor: OwnExecutor | None = None

    @property
    def supervised_name(self) -> str:
        """The name of what is started and stopped on its host."""
        return self.unit or f"broker {int(self.id)}"


@section()
@dataclass(frozen=True, slots=True)
class ControllerNode:
    """One controller, planned or running; `address` is host:port of its controller listener."""

    id: NodeNumber
    host: Host
    address: Address
    config: HostPath = ""  # "" as for a broker, here and in metadata_directory
    metadata_directory: MetadataPath = ""
    unit: UnitName = ""
    jmx: Address | None = None  # the port that it will have: no other one of the host may be the same
    service: OwnCommands | None = None  # in place of a unit
    kafka_home: HostPath = ""  # these three: as for a broker
    access: Access | None = None
    executor: OwnExecutor | None = None

    @property
    def supervised_name(self) -> str:
        """The name of what is started and stopped on its host."""
        return self.unit or f"controller {int(self.id)}"


def by_hand(node: BrokerNode | ControllerNode, verb: str) -> str:
    """What a person types on the node's host to `start`, `stop` or `restart` it; "" where that is not known."""
    if node.service is not None:
        return node.service.typed(verb)
    return f"systemctl {verb} {shlex.quote(node.unit)}" if node.unit else ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything that is needed to find and to act on one cluster; `zookeeper` is "" for one that never had any."""

    name: str
    path: str
    zookeeper: str
    brokers: tuple[BrokerNode, ...]
    controllers: tuple[ControllerNode, ...]
    controller_listener: str
    broker_access: Access  # of brokers without their own: a node is reached by `access_of`
    controller_access: Access
    password_encoder_secret: Secret | None
    executor: str  # local, ssh or manual: see `migrate.hosts.executors`
    executor_options: Mapping[str, str] = field(default_factory=dict)
    expect_cluster_id: str | None = None
    runs: str = "runs"
    zookeeper_rate: int | None = None  # operations a second that we may ask of ZooKeeper; None: no limit
    password_encoder_old_secret: Secret | None = None  # while the brokers' secret is being replaced
    zookeeper_login: ZookeeperLogin = field(default_factory=ZookeeperLogin)
    broker_properties: AddedProperties | None = None  # what brokers get at their first restart, beyond our own keys
    broker_principal: str = ""  # User:NAME, as whom brokers call where nothing else says it, a token's claims for one
    controller_principal: str = ""
    controller_properties: AddedProperties | None = None  # what rendered controllers get beyond what brokers have
    quorum: QuorumKind = QuorumKind.STATIC
    sha256: str = field(default="", compare=False)  # of its file and of the files that it names, but for secrets

    def __post_init__(self) -> None:
        """Refuse a rate that no file may name: bundles hold inventories, too.  ValueError."""
        if self.zookeeper_rate is not None and self.zookeeper_rate < 1:
            message = f"zookeeper_rate {self.zookeeper_rate} is less than 1"
            raise ValueError(message)

    @property
    def voters(self) -> str:
        return ",".join(f"{node.id}@{node.address}" for node in self.controllers)

    @property
    def quorum_key(self) -> tuple[str, str]:
        """The key by which every node finds the quorum, and its value: the same text in each file."""
        if self.quorum is QuorumKind.DYNAMIC:  # all of them: Kafka 3.9 asks no others when its leader is gone
            return BOOTSTRAP, ",".join(node.address for node in self.controllers)
        return VOTERS, self.voters

    @property
    def nodes(self) -> tuple[BrokerNode | ControllerNode, ...]:
        return (*self.brokers, *self.controllers)

    def node(self, node_id: int) -> BrokerNode | ControllerNode:
        """The node with that id; KeyError if there is none."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def access_of(self, node: BrokerNode | ControllerNode) -> Access:
        """What opens the listener at that node's address."""
        if node.access is not None:
            return node.access
        return self.controller_access if isinstance(node, ControllerNode) else self.broker_access

    @property
    def cluster_access(self) -> tuple[tuple[BrokerNode, ...], Access]:
        """The brokers that most have one access in common, and that one: for a client, which can have one alone."""
        by_access: dict[Access, list[BrokerNode]] = {}
        for broker in self.brokers:
            by_access.setdefault(self.access_of(broker), []).append(broker)
        found = max(by_access, key=lambda access: len(by_access[access]), default=self.broker_access)
        return tuple(by_access.get(found, ())), found

    def executor_of(self, node: BrokerNode | ControllerNode) -> str:
        """The kind of executor that works that node's host."""
        return (node.executor and node.executor.kind) or self.executor

    def options_of(self, node: BrokerNode | ControllerNode) -> Mapping[str, str]:
        """The executor's options as they are for that node: its own, else those of all."""
        own: dict[str, str] = {"kafka_home": node.kafka_home} if node.kafka_home else {}
        if node.executor is not None and node.executor.host_program:
            own["host_program"] = node.executor.host_program
        if node.executor is not None and node.executor.sudo is not None:
            own["sudo"] = "yes" if node.executor.sudo else "no"
        return {**self.executor_options, **own}

    def kafka_home_of(self, node: BrokerNode | ControllerNode) -> str:
        """Where Kafka is on that node's host; "" where the inventory does not say."""
        return self.options_of(node).get("kafka_home", "")


class RollOrder(StrEnum):
    INVENTORY = "inventory"
    CANARY_FIRST = "canary-first"  # the fewest leaders, then rack by rack, ZooKeeper's controller last


@section(later={"unhealthy_limit": "a wait ends when nothing advances: no_progress_timeout"})
@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """Before each restart: `samples` looks in a row, `interval` apart, find no partition without its full ISR."""

    samples: Annotated[int, whole(1, 1000)] = 3
    interval: Annotated[Duration, lasting(1, 600)] = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may be expected, or allowed, to take, in seconds."""

    node_estimate: float = 900.0  # a node, before a run here has measured one
    hybrid_max_age: float = 86400.0  # from the first broker in migration mode to the last one in KRaft mode


@dataclass(frozen=True, slots=True)
class KraftAuthorizer:
    """Which class decides about rights in KRaft mode, in place of the brokers', and its own keys."""

    name: str
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Playbook:
    """Intent: which stages, under which policies.  A stage may only be narrowed, never weakened."""

    name: str
    path: str
    change: str
    sha256: str
    stages: tuple[Stage, ...]
    default_policy: DirectoryPolicy
    broker_policies: Mapping[NodeId, DirectoryPolicy]
    accept_unavailable: tuple[str, ...]  # patterns of topic names, matched whole (`migrate.model.patterns`)
    accepted_differences: tuple[AcceptedDifference, ...]
    no_progress_seconds: float
    soak_seconds: float
    lock_path: str
    expect_cluster_id: str | None
    expect_brokers: tuple[NodeId, ...] | None
    inventory: str = ""  # path of the inventory it names
    windows: Mapping[str, Window] = field(default_factory=dict)
    stage_windows: Mapping[Stage, str] = field(default_factory=dict)  # stages that name a window of their own
    rollback_window: str = ""  # empty: a rollback keeps no hours
    health: HealthPolicy = field(default_factory=HealthPolicy)
    pace: Pace = field(default_factory=Pace)
    roll_order: RollOrder = RollOrder.INVENTORY
    canary_soak: float = 0.0  # seconds behind the first broker of a roll; 0: none
    accept_volatile: tuple[str, ...] = ()  # types of file systems that may hold log directories although they vanish
    own_classes: tuple[str, ...] = ()  # not Kafka's, of which the operator says that they work in KRaft mode
    kraft_authorizer: KraftAuthorizer | None = None  # from the second roll on; of controllers from the start
    wait_for_moves: bool = False  # before a roll: for moves between directories to end, instead of refusing
    assignments_per_request: int = 2250  # policy drive: replicas in one AssignReplicasToDirs
    new_directories: Mapping[NodeId, tuple[str, ...]] = field(default_factory=dict)  # of a DirectoryPlaybook, absolute
    controller_overrides: Mapping[NodeId, Mapping[str, str]] = field(default_factory=dict)  # keys of rendered files
    remove_copies: bool = False  # from the nodes' hosts, at the cleanup?
    stage_patience: Mapping[Stage, float] = field(default_factory=dict)  # stages that name a no_progress_timeout

    def __post_init__(self) -> None:
        """Refuse a pattern that cannot be read; one in a bundle was not seen by the playbook's reader."""
        for pattern in self.accept_unavailable:
            compiled(pattern)

    @property
    def of_directories(self) -> bool:
        """Is it a DirectoryPlaybook's: a KRaft cluster gets more log directories?"""
        return Stage.DIRECTORIES in self.stages

    @property
    def of_protocol(self) -> bool:
        """Is it a ProtocolPlaybook's: inter.broker.protocol.version is raised before a migration?"""
        return Stage.PROTOCOL in self.stages

    def patience(self, stage: Stage) -> float:
        """Seconds without progress after which a wait of that stage ends: its own, else the policy's."""
        return self.stage_patience.get(stage, self.no_progress_seconds)

    def policy(self, broker: int) -> DirectoryPolicy:
        return self.broker_policies.get(NodeId(broker), self.default_policy)

    def window_of(self, stage: Stage) -> Window | None:
        """The window that binds a stage; None where none does.

        A window called `default` binds every stage that acts, unless the stage names another one; a stage that only
        looks is bound where it names one.
        """
        name = self.stage_windows.get(stage, "default" if stage in ACTING else "")
        return self.windows.get(name)


@dataclass(frozen=True, slots=True)
class AcceptedDifference:
    """A difference excused by name, with reason, ticket and a last day (ISO date)."""

    rule: str
    kind: str
    name: str
    field: str
    reason: str
    ticket: str
    expires: str


class Target(StrEnum):
    """What a fleet's file names a cluster by; each stands for the same option of `assess` or `diff`."""

    INVENTORY = "inventory"
    ZOOKEEPER = "zookeeper"
    BUNDLE = "bundle"


URI: Final = "://"  # what a path has not


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of a fleet."""

    name: str
    target: Target
    where: str  # an absolute path, the URI of a bundle in an object store, or ZooKeeper's connect string


@dataclass(frozen=True, slots=True)
class Fleet:
    """The clusters of one file, in its order; their names are unique."""

    name: str
    path: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class NotRead:
    """A cluster that gave no answer: the error's fields.  It is never counted as well."""

    id: str
    what: str
    where: str
    why: str
    next_step: str
    exit_code: int

    @classmethod
    def of(cls, error: Exception) -> NotRead:
        """An error as the answer of its cluster: what is no error of ours is a defect."""
        if not isinstance(error, MigrateError):
            error = Defect(f"{type(error).__name__}: {error}")
        return cls(error.id, error.what, error.where, error.why, error.next_step, error.exit_code)
