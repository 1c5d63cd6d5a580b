"""Which configuration keys change in which stage, and what becomes of every other: the one table (data alone).

Steps edit by it, checks and the parity matrix judge by it, playbooks are held to it, and docs/configuration.md is
made of it.  Rows: name, four letters, why, source; each was run on real clusters of Kafka 3.9.2.  The letters are for
a controller's rendered file, a broker's first roll, its second roll and the controllers' finalize: s set, r removed,
e equal to the brokers', k kept, l left out, x refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Rows = tuple[tuple[str, str, str, str], ...]

IBP: Final = "inter.broker.protocol.version"
VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"
VALIDATE: Final = "KafkaConfig.validateValues"
KIP_866: Final = "KIP-866"
SEEN: Final = "seen on 3.9.2"
QUORUM: Final = "ReplicationControlManager"

OWN: Final[Rows] = (  # what makes a node a member of one world or the other
    ("process.roles", "sxsk", "decides whether a node is a KRaft one; a combined node cannot be migrated", KIP_866),
    ("node.id", "sksk", "the broker's old id, or the controller's of the inventory; never renumbered", VALIDATE),
    ("broker.id", "lkrk", "a broker in migration mode needs it in the file; node.id takes its place", "KAFKA-17543"),
    ("broker.id.generation.enable", "lkrk", "KRaft generates no ids", "KAFKA-17042; " + VALIDATE),
    ("reserved.broker.max.id", "lkrk", "bounds generated ids alone", "KAFKA-17042; " + VALIDATE),
    ("zookeeper.metadata.migration.enable", "ssrr", "the flag; a controller without it finalizes", KIP_866),
    (
        "zookeeper.connect",
        "skrr",
        "the cluster that is copied, with its chroot; left behind, an authorizer could go on reading it",
        "KafkaServer.scala; KAFKA-16431",
    ),
    (
        VOTERS,
        "sssk",
        "a static quorum's voters, the same text on every node; with `quorum: dynamic` this row is the next one's",
        KIP_866,
    ),
    (
        BOOTSTRAP,
        "xrrx",
        "where a dynamic quorum is found: all controllers; with `quorum: dynamic` this row is the one before it",
        "KIP-853; " + SEEN,
    ),
    ("controller.listener.names", "sssk", "how the quorum is called; with the flag or KRaft only", VALIDATE),
    ("listeners", "skkk", "a controller has its controller listener alone", VALIDATE),
    ("advertised.listeners", "lkkk", "a controller is called at its voter's address", VALIDATE),
    (
        "listener.security.protocol.map",
        "sssk",
        "gets the controller listener; controllers need the brokers' entries, too",
        "KAFKA-15670; KAFKA-16468",
    ),
    ("control.plane.listener.name", "lkrk", "fatal in KRaft mode", "KAFKA-17788; " + VALIDATE),
    (
        IBP,
        "lkrk",
        "frozen during the migration; in KRaft metadata.version is in its place",
        "KafkaConfig.scala",
    ),
    ("log.dirs", "skkk", "a controller's own metadata directory; a broker's stay as they are", VALIDATE),
    ("log.dir", "lkkk", "a broker's own directories", VALIDATE),
    ("metadata.log.dir", "skkk", "a controller's own metadata directory", VALIDATE),
    ("broker.rack", "lkkk", "a broker's place", "KafkaConfig.scala"),
    (
        "authorizer.class.name",
        "sksk",
        "StandardAuthorizer for AclAuthorizer, which needs ZooKeeper; another stays, or policy.authorizer.kraft",
        SEEN,
    ),
    (
        "early.start.listeners",
        "skkk",
        "beside a class that is not Kafka's: controllers call each other before its policies are there",
        SEEN,
    ),
)

SHARED: Final[Rows] = (  # what controllers must know to call brokers, and to let them in
    ("inter.broker.listener.name", "ekkk", "where controllers call brokers from the copy on", "KAFKA-15670"),
    ("security.inter.broker.protocol", "ekkk", "the same, where no name is given", "KAFKA-15670"),
    ("super.users", "kkkk", "before the copy nobody else is authorized; must have both principals", SEEN),
    ("allow.everyone.if.no.acl.found", "ekkk", "the authorizer's answer where no ACL applies", "StandardAuthorizer"),
    ("principal.builder.class", "ekkk", "who a caller is", "KafkaPrincipalBuilder"),
    ("password.encoder.secret", "ekkk", "decodes dynamic passwords; without it they are copied encoded", "KAFKA-14801"),
    ("password.encoder.old.secret", "ekkk", "while the secret is being replaced", "PasswordEncoder"),
    ("password.encoder.keyfactory.algorithm", "ekkk", "how passwords are encoded", "PasswordEncoder"),
    ("password.encoder.cipher.algorithm", "ekkk", "how passwords are encoded", "PasswordEncoder"),
    ("password.encoder.key.length", "ekkk", "how passwords are encoded", "PasswordEncoder"),
    ("password.encoder.iterations", "ekkk", "how passwords are encoded", "PasswordEncoder"),
    ("delegation.token.secret.key", "ekkk", "without it copied tokens cannot be published", SEEN),
    ("delegation.token.master.key", "ekkk", "the older name of it", "KIP-48"),
    ("delegation.token.max.lifetime.ms", "ekkk", "controllers make the tokens", "DelegationTokenControlManager"),
    ("delegation.token.expiry.time.ms", "ekkk", "controllers make the tokens", "DelegationTokenControlManager"),
    (
        "delegation.token.expiry.check.interval.ms",
        "ekkk",
        "controllers expire the tokens",
        "DelegationTokenControlManager",
    ),
    ("connections.max.reauth.ms", "kkkk", "how long a SASL session holds", "KIP-368"),
    ("sasl.*", "kkkk", "how controllers call brokers and are called", SEEN),
    ("ssl.*", "kkkk", "stores and protocols; a host's own certificate comes by an override", SEEN),
    ("listener.name.*", "kkkk", "to controllers: those of the brokers' listener and of their own alone", SEEN),
    ("security.providers", "kkkk", "what opens stores and logins of ssl.* and sasl.*", "DefaultSslEngineFactory"),
    ("zookeeper.set.acl", "ekrr", "without it what controllers create is writable by everybody", SEEN),
    ("zookeeper.ssl.*", "kkrr", "how ZooKeeper is called", "KIP-515"),
    ("zookeeper.clientCnxnSocket", "ekrr", "without it zookeeper.ssl.* does not connect", "KIP-515"),
    ("zookeeper.session.timeout.ms", "kkrr", "how ZooKeeper is called", "KafkaConfig.scala"),
    ("zookeeper.connection.timeout.ms", "kkrr", "how ZooKeeper is called", "KafkaConfig.scala"),
    ("zookeeper.max.in.flight.requests", "kkrr", "how fast the copy reads", "ZkMigrationClient"),
    ("zookeeper.*", "lkrr", "a KRaft node has nothing of ZooKeeper", "KAFKA-16431"),
    (
        "remote.log.storage.system.enable",
        "ekkk",
        "controllers refuse topics with tiered storage without it",
        "ControllerConfigurationValidator",
    ),
    ("config.providers", "kkkk", "values as ${provider:...} are resolved on the node", "KIP-297"),
    ("config.providers.*", "kkkk", "their settings", "KIP-297"),
)

CONTROLLER_DEFAULTS: Final[Rows] = (  # what controllers decide from the copy on, by their own files
    ("default.replication.factor", "ekkk", "of new topics", QUORUM),
    ("num.partitions", "ekkk", "of new topics", QUORUM),
    ("min.insync.replicas", "ekkk", "what a topic without its own has", "ConfigurationControlManager"),
    ("unclean.leader.election.enable", "ekkk", "what a topic without its own has", QUORUM),
    ("auto.create.topics.enable", "ekkk", "the same on every node", "KafkaConfig.scala"),
    ("delete.topic.enable", "ekkk", "controllers delete topics", "ControllerApis.scala"),
    ("create.topic.policy.class.name", "ekkk", "controllers judge new topics; the class must be there", "KIP-108"),
    ("alter.config.policy.class.name", "ekkk", "controllers judge changes; they see another map", "KAFKA-19026"),
    ("auto.leader.rebalance.enable", "ekkk", "controllers move leaders", QUORUM),
    ("leader.imbalance.check.interval.seconds", "ekkk", "controllers move leaders", QUORUM),
    ("leader.imbalance.per.broker.percentage", "ekkk", "the same on every node", QUORUM),
    ("broker.session.timeout.ms", "ekkk", "when a silent broker is fenced", "BrokerHeartbeatManager"),
    ("broker.heartbeat.interval.ms", "ekkk", "must fit the session's timeout", "BrokerLifecycleManager"),
    ("message.max.bytes", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("compression.type", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("log.cleanup.policy", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("log.retention.ms", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("log.retention.minutes", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("log.retention.hours", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("log.retention.bytes", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("log.segment.bytes", "ekkk", "what a topic without its own has", "ServerTopicConfigSynonyms"),
    ("offsets.topic.replication.factor", "ekkk", "the same on every node", "KafkaConfig.scala"),
    ("offsets.topic.num.partitions", "ekkk", "the same on every node", "KafkaConfig.scala"),
    ("transaction.state.log.replication.factor", "ekkk", "the same on every node", "KafkaConfig.scala"),
    ("transaction.state.log.min.isr", "ekkk", "the same on every node", "KafkaConfig.scala"),
    ("transaction.state.log.num.partitions", "ekkk", "the same on every node", "KafkaConfig.scala"),
    ("controller.quorum.*", "kkkk", "timeouts of the quorum", "KIP-595"),
    ("metadata.*", "kkkk", "the metadata log's own segments and snapshots", "KIP-630"),
    ("num.network.threads", "kkkk", "a controller's own load", "KafkaConfig.scala"),
    ("num.io.threads", "kkkk", "a controller's own load", "KafkaConfig.scala"),
)


ANY: Final = ".*"  # a row's name that ends so is about every key that begins with the rest


class QuorumKind(StrEnum):
    """Where a quorum's voters stand: in each node's file, or in the metadata log, with directory ids (KIP-853)."""

    STATIC = "static"
    DYNAMIC = "dynamic"


SWAPPED: Final = {VOTERS: BOOTSTRAP, BOOTSTRAP: VOTERS}  # in a dynamic quorum each has the other's row


class Moment(StrEnum):
    RENDERED = "controllers, rendered"
    FIRST_ROLL = "brokers, to migration mode"
    SECOND_ROLL = "brokers, to KRaft mode"
    FINALIZE = "controllers, finalize"


class Fate(StrEnum):
    """What becomes of a key.  In a controller's rendered file a broker's key is `equal`, `kept` or `left out`."""

    SET = "set"
    REMOVED = "removed"
    EQUAL = "equal"  # taken from the brokers, and must be theirs
    KEPT = "kept"  # as it stands; in a controller's file: taken from the brokers, and may differ
    LEFT = "left out"
    REFUSED = "refused"  # the node must not have it: a check stops before it starts


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key, or all that begin alike (`zookeeper.*`)."""

    name: str
    rendered: Fate
    first_roll: Fate
    second_roll: Fate
    finalize: Fate
    why: str
    source: str

    def at(self, moment: Moment) -> Fate:
        match moment:
            case Moment.RENDERED:
                return self.rendered
            case Moment.FIRST_ROLL:
                return self.first_roll
            case Moment.SECOND_ROLL:
                return self.second_roll
            case Moment.FINALIZE:
                return self.finalize

    def covers(self, key: str) -> bool:
        return key.startswith(self.name[:-1]) if self.name.endswith(ANY) else key == self.name


LETTERS: Final = {"s": Fate.SET, "r": Fate.REMOVED, "e": Fate.EQUAL, "k": Fate.KEPT, "l": Fate.LEFT, "x": Fate.REFUSED}


def _row(name: str, fates: str, why: str, source: str) -> KeyRow:
    rendered, first, second, finalize = (LETTERS[letter] for letter in fates)
    return KeyRow(name, rendered, first, second, finalize, why, source)


TABLE: Final[tuple[KeyRow, ...]] = tuple(_row(*entry) for entry in (*OWN, *SHARED, *CONTROLLER_DEFAULTS))
EXACT: Final = {row.name: row for row in TABLE if not row.name.endswith(ANY)}
PREFIXED: Final = tuple(sorted((row for row in TABLE if row.name.endswith(ANY)), key=lambda row: -len(row.name)))


def row_of(key: str) -> KeyRow | None:
    """The row that is about a key: its own before any family's, the longest family first; None: the operator's own."""
    return EXACT.get(key) or next((row for row in PREFIXED if row.covers(key)), None)


def fate(key: str, moment: Moment, quorum: QuorumKind = QuorumKind.STATIC) -> Fate:
    """What becomes of a key: what no row names is kept in a node's own file, and left out of a rendered one."""
    row = row_of(SWAPPED.get(key, key) if quorum is QuorumKind.DYNAMIC else key)
    if row is not None:
        return row.at(moment)
    return Fate.LEFT if moment is Moment.RENDERED else Fate.KEPT


def removed(keys: Iterable[str], moment: Moment, quorum: QuorumKind = QuorumKind.STATIC) -> list[str]:
    return [key for key in keys if fate(key, moment, quorum) is Fate.REMOVED]


def taken(keys: Iterable[str]) -> Iterator[str]:
    """Of a broker's keys, those that a controller's file takes: single ones in the table's order, then families'."""
    have = dict.fromkeys(keys)
    wanted = (Fate.EQUAL, Fate.KEPT)
    yield from (row.name for row in TABLE if row.name in have and row.rendered in wanted)
    yield from (key for key in have if key not in EXACT and fate(key, Moment.RENDERED) in wanted)


def override_fault(key: str) -> str | None:
    """Why a playbook may not set that key in the controllers' files; None where it may."""
    row = row_of(key)
    match fate(key, Moment.RENDERED):
        case Fate.SET:
            return "kraft-migrate sets this key itself"
        case Fate.EQUAL:
            return "this key must be the brokers', and is taken from their files"
        case Fate.REFUSED:
            return "a controller must not have this key"
        case Fate.LEFT if row is not None:
            return "this key is a broker's alone"
        case _:
            return None


DEFAULT_ENTITY: Final = "<default>"  # whose configuration or quota is that of all which have none of their own
STORES: Final = frozenset(  # SslConfigs.RECONFIGURABLE_CONFIGS
    {
        *("ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location"),
        *("ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location"),
        *("ssl.truststore.password", "ssl.truststore.type"),
    }
)
AT_START: Final = frozenset(  # DynamicListenerConfig.ReconfigurableConfigs, and stores
    {
        *("advertised.listeners", "listener.security.protocol.map", "listeners", "principal.builder.class"),
        *(
            "sasl.enabled.mechanisms",
            "sasl.jaas.config",
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.min.time.before.relogin",
        ),
        *("sasl.kerberos.principal.to.local.rules", "sasl.kerberos.service.name", "sasl.kerberos.ticket.renew.jitter"),
        *("sasl.kerberos.ticket.renew.window.factor", "sasl.login.refresh.buffer.seconds"),
        *("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor"),
        *("sasl.login.refresh.window.jitter", "sasl.mechanism.inter.broker.protocol", "ssl.cipher.suites"),
        *("ssl.client.auth", "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm"),
        *("ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.provider"),
        *("ssl.secure.random.implementation", "ssl.trustmanager.algorithm"),
        *STORES,
    }
)
AT_ANY_TIME: Final = frozenset(  # of a listener, and changed while it serves
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")  # DynamicBrokerConfig.ListenerConfigRegex


def base_name(name: str) -> str:
    """The key without `listener.name.<listener>.`; a mechanism's name before it stays."""
    found = OF_LISTENER.fullmatch(name)
    return name if found is None else found[1]


def left_out(entity: str, name: str) -> bool:
    """Does Kafka leave out that dynamic configuration of a broker, or of all, in each mode alike?

    Stores and logins without a listener's prefix, and of `<default>` whatever a listener is made from.
    Source: `DynamicBrokerConfig.fromPersistentProps`; for logins `ChannelBuilders.channelBuilderConfigs`.
    """
    if base_name(name) == name and (name in STORES or name.endswith(".sasl.jaas.config")):
        return True
    return entity == DEFAULT_ENTITY and _makes_listeners(name)


def is_at_start(entity: str, name: str) -> bool:
    """Does that dynamic configuration of a broker, or of all, decide about a start of listeners?"""
    return not left_out(entity, name) and _makes_listeners(name)


def _makes_listeners(name: str) -> bool:
    base = base_name(name)
    return name in AT_START if base == name else base not in AT_ANY_TIME
