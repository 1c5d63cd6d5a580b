"""Which keys change in which stage: our own table, applied to the operators' own files (pure).

Source: Kafka 3.9 operations guide (ZooKeeper to KRaft migration), `KafkaConfig.scala`, `KafkaServer.scala`; each row
was run on real clusters.  Comments, order and untouched bytes of a broker's file are kept; a controller's file is
rendered from a broker's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from migrate.checks.phase import FLAG
from migrate.hosts.config import DEFAULT_LOG_DIR, log_dirs
from migrate.hosts.properties import edit, parse
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
DEFAULT_PROTOCOL_MAP: Final = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
LOG_DIRS: Final = "log.dirs"
PROTOCOL_MAP: Final = "listener.security.protocol.map"

GONE_IN_KRAFT: Final = (  # keys that a KRaft broker refuses or that would mislead its reader
    "broker.id",
    "broker.id.generation.enable",
    "reserved.broker.max.id",
    "inter.broker.protocol.version",
    "control.plane.listener.name",
)
CARRIED_TO_CONTROLLERS: Final = (  # what a controller decides for brokers, or must share with them
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "password.encoder.secret",
    "password.encoder.keyfactory.algorithm",
    "password.encoder.cipher.algorithm",
    "password.encoder.key.length",
    "password.encoder.iterations",
    "delegation.token.secret.key",
    "delegation.token.master.key",
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms",
    "default.replication.factor",
    "num.partitions",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "auto.create.topics.enable",
    "delete.topic.enable",
    "auto.leader.rebalance.enable",
    "leader.imbalance.check.interval.seconds",
    "leader.imbalance.per.broker.percentage",
    "offsets.topic.replication.factor",
    "offsets.topic.num.partitions",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "message.max.bytes",
    "log.retention.ms",
    "log.retention.hours",
    "log.retention.bytes",
    "log.segment.bytes",
    "log.cleanup.policy",
    "compression.type",
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
    "principal.builder.class",
    "broker.session.timeout.ms",
    "broker.heartbeat.interval.ms",
    "num.network.threads",
    "num.io.threads",
)
CARRIED_PREFIXES: Final = ("metadata.", "sasl.", "ssl.", "zookeeper.ssl.", "controller.quorum.")
ZOOKEEPER_CLIENT: Final = (
    "zookeeper.set.acl",
    "zookeeper.session.timeout.ms",
    "zookeeper.connection.timeout.ms",
    "zookeeper.clientCnxnSocket",  # without it zookeeper.ssl.* does not connect
)
NOT_CARRIED: Final = ("metadata.log.dir", "controller.quorum.voters")


def _protocol_map(values: Mapping[str, str], inventory: Inventory) -> str:
    """The map with the controller listener in it; brokers and controllers need both sides."""
    entries = values.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP)
    names = {entry.partition(":")[0].strip().upper() for entry in entries.split(",")}
    if inventory.controller_listener.upper() in names:
        return entries
    return f"{entries},{inventory.controller_listener}:{inventory.controller_access.protocol}"


def migration_mode(raw: bytes, inventory: Inventory) -> bytes:
    """A ZooKeeper-mode broker's file for migration mode (roll 1)."""
    values = parse(raw)
    changes = {
        FLAG: "true",
        "controller.quorum.voters": inventory.voters,
        "controller.listener.names": inventory.controller_listener,
        PROTOCOL_MAP: _protocol_map(values, inventory),
    }
    return edit(raw, {key: value for key, value in changes.items() if values.get(key) != value}, ())


def kraft_mode(raw: bytes, inventory: Inventory, broker: BrokerNode) -> bytes:
    """A migration-mode broker's file for KRaft mode (roll 2)."""
    values = parse(raw)
    changes = {
        "process.roles": "broker",
        "node.id": str(int(broker.id)),
        "controller.quorum.voters": inventory.voters,
        "controller.listener.names": inventory.controller_listener,
        PROTOCOL_MAP: _protocol_map(values, inventory),
    }
    if values.get("authorizer.class.name") == ACL_AUTHORIZER:
        changes["authorizer.class.name"] = STANDARD_AUTHORIZER
    gone = [key for key in values if key in GONE_IN_KRAFT or key.startswith("zookeeper.")]
    return edit(raw, {key: value for key, value in changes.items() if values.get(key) != value}, gone)


def controller(broker: Mapping[str, str], inventory: Inventory, node: ControllerNode) -> bytes:
    """A controller's file, rendered from a broker's values: the flag is in it from the first start on."""
    values = {
        "process.roles": "controller",
        "node.id": str(int(node.id)),
        "controller.quorum.voters": inventory.voters,
        "controller.listener.names": inventory.controller_listener,
        "listeners": f"{inventory.controller_listener}://{node.address}",
        PROTOCOL_MAP: _protocol_map(broker, inventory),
        "log.dirs": node.metadata_directory,
        "metadata.log.dir": node.metadata_directory,
        FLAG: "true",
        "zookeeper.connect": broker.get("zookeeper.connect", inventory.zookeeper),
    }
    if "authorizer.class.name" in broker:
        # without it, what brokers forward in hybrid is checked by nobody
        values["authorizer.class.name"] = STANDARD_AUTHORIZER
    for key in CARRIED_TO_CONTROLLERS:
        if key in broker:
            values[key] = broker[key]
    for key, value in broker.items():
        if key.startswith(CARRIED_PREFIXES) and key not in NOT_CARRIED:
            values.setdefault(key, value)
    for key in ZOOKEEPER_CLIENT:
        if key in broker:
            values[key] = broker[key]
    header = b"# KRaft controller, rendered by kraft-migrate from a broker's file.\n"
    return edit(header, values, ())


def finalized_controller(raw: bytes) -> bytes:
    """A controller's file without the flag and without ZooKeeper: the first start with it is the point of no return."""
    return edit(raw, {}, [key for key in parse(raw) if key.startswith("zookeeper.")])


def with_directories(raw: bytes, directories: Sequence[str]) -> bytes:
    """A KRaft broker's file with more log directories, behind those that it has.

    The first of them holds the metadata log where metadata.log.dir does not say otherwise: it stays the first.
    """
    values = parse(raw)
    known = set(map(os.path.normpath, log_dirs(values)))
    missing = [path for path in directories if os.path.normpath(path) not in known]
    if not missing:
        return raw
    return edit(raw, {LOG_DIRS: ",".join([*_listed(values), *missing])}, ())


def without_directories(raw: bytes, directories: Sequence[str]) -> bytes:
    """The file without them; the others stay as they are spelled."""
    values = parse(raw)
    gone = set(map(os.path.normpath, directories))
    kept = [path for path in _listed(values) if os.path.normpath(path) not in gone]
    return raw if kept == _listed(values) else edit(raw, {LOG_DIRS: ",".join(kept)}, ())


def _listed(values: Mapping[str, str]) -> list[str]:
    """log.dirs as the file spells them."""
    listed = values.get(LOG_DIRS) or values.get("log.dir") or DEFAULT_LOG_DIR
    return [part for part in (entry.strip() for entry in listed.split(",")) if part]
