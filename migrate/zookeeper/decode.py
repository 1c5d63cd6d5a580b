"""Znode bytes to typed values (pure): brokers, topics, partitions, the controller's znodes, pending work.

Each function takes the path (for messages) and the data, and answers values or raises MalformedZnode: never less than
what the znode says.  Schemas: `kafka/zk/ZkData.scala` of 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder

from migrate.model.ids import KafkaUuid, NodeId
from migrate.model.views import ControllerZnode, MigrationZnode, NullZnode, ZkBroker
from migrate.zookeeper.fields import INT32, INT64, JsonZnode, refuse
from migrate.zookeeper.layout import Znode, name_of

ENDPOINT: Final = re.compile(r"([^:/]+)://(\[[0-9A-Za-z\-%._:]+\]|[^/\[\]]*):(-?[0-9]{1,5})")
LEADER_RECOVERING: Final = 1
LEADER_DURING_DELETE: Final = -2  # LeaderAndIsr.LeaderDuringDelete; -1 is no leader
KEYS: Final = 5  # of a state as Kafka writes it; `leader_recovery_state` is a sixth, while a leader recovers


class _State(Struct, forbid_unknown_fields=True, gc=False):
    """A partition's state as Kafka writes it: fields and ranges as `_strict_state` wants them."""

    controller_epoch: Annotated[int, Meta(ge=-1, lt=INT32)]
    leader: Annotated[int, Meta(ge=LEADER_DURING_DELETE, lt=INT32)]
    version: Literal[1]
    leader_epoch: Annotated[int, Meta(ge=0, lt=INT32)]
    isr: list[Annotated[int, Meta(ge=0, lt=INT32)]]


_state: Final = Decoder(_State).decode


@dataclass(frozen=True, slots=True)
class TopicZnode:
    """/brokers/topics/T: `id` "" where there is none (written by brokers before 2.8)."""

    id: str
    replicas: Mapping[int, list[int]]
    adding: Mapping[int, list[int]]
    removing: Mapping[int, list[int]]


class PartitionState(NamedTuple):
    """/brokers/topics/T/partitions/P/state, and its mzxid; `controller_epoch` is that of its writer, -1 for none."""

    leader: int
    leader_epoch: int
    isr: list[int]
    recovery: int
    mzxid: int
    controller_epoch: int = -1


def cluster_id(path: str, data: bytes | None) -> str:
    """The cluster's id; the version is a string there."""
    znode = JsonZnode.parse(path, data)
    if znode.text("version") != "1":
        refuse(path, "its version is not known (known: '1')")
    found = znode.text("id")
    if not found:
        refuse(path, "the id is empty")
    return found


def broker(path: str, znode: Znode) -> ZkBroker:
    """A live registration, versions 1 to 5; endpoints sorted, as NAME://host:port."""
    name = name_of(path)
    if not (name.isascii() and name.isdigit()) or len(name) > 10 or int(name) >= INT32:
        refuse(path, "the znode's name is no broker id")
    fields = JsonZnode.parse(path, znode.data)
    if fields.version((1, 2, 3, 4, 5)) == 1:
        endpoints: tuple[str, ...] = (f"PLAINTEXT://{fields.text('host')}:{fields.integer('port')}",)
    else:
        endpoints = fields.texts("endpoints")
    for endpoint in endpoints:
        if not ENDPOINT.fullmatch(endpoint):
            refuse(path, "an endpoint is not NAME://host:port")
    protocols: dict[str, str] = {}  # version 4 and later; the listeners of older ones are named for their protocols
    if fields.has("listener_security_protocol_map"):
        found = fields.object("listener_security_protocol_map")
        protocols = {listener: found.text(listener) for listener, _ in found.items()}
    return ZkBroker(
        id=NodeId(name),
        epoch=znode.czxid,
        endpoints=tuple(sorted(endpoints)),
        rack=fields.text("rack") if fields.has("rack") else None,
        session=znode.ephemeral_owner,
        protocols=protocols,
    )


def topic(path: str, data: bytes | None) -> TopicZnode:
    fields = JsonZnode.parse(path, data)
    fields.version((1, 2, 3))
    if not fields.has("partitions"):
        refuse(path, "the field 'partitions' is missing")
    found = fields.text("topic_id") if fields.has("topic_id") else ""
    if found:
        try:
            KafkaUuid(found)
        except ValueError:
            refuse(path, "topic_id is no Kafka UUID")
    znode = TopicZnode(
        id=found,
        replicas=fields.assignment("partitions"),
        adding=fields.assignment("adding_replicas"),
        removing=fields.assignment("removing_replicas"),
    )
    if not znode.adding.keys() | znode.removing.keys() <= znode.replicas.keys():
        refuse(path, "adding_replicas or removing_replicas name a partition that the topic does not have")
    return znode


def partition_state(path: str, data: bytes | None, mzxid: int) -> PartitionState:
    """A partition's state.

    Most are decoded by type: hundreds of thousands of them are read.  `_strict_state` decodes the others, and says what
    is wrong.
    """
    try:
        found = _state(data or b"")
    except MsgspecError:
        return _strict_state(path, data, mzxid)
    # the type's decoder takes a key twice; with two quotes for each field there is none
    if not data or data.count(b'"') != 2 * KEYS or len({*found.isr}) != len(found.isr):
        return _strict_state(path, data, mzxid)
    return PartitionState(found.leader, found.leader_epoch, found.isr, 0, mzxid, found.controller_epoch)


def _strict_state(path: str, data: bytes | None, mzxid: int) -> PartitionState:
    fields = JsonZnode.parse(path, data)
    fields.version((1,))
    recovery = 0
    if fields.has("leader_recovery_state"):
        recovery = fields.integer("leader_recovery_state", low=0, high=LEADER_RECOVERING + 1)
    writer = fields.integer("controller_epoch") if fields.has("controller_epoch") else -1
    leader = fields.integer("leader", low=LEADER_DURING_DELETE)
    return PartitionState(
        leader, fields.integer("leader_epoch", low=0), fields.node_ids("isr"), recovery, mzxid, writer
    )


def controller(path: str, znode: Znode) -> ControllerZnode:
    """/controller, versions 1 and 2 (2 since 3.4: kraftControllerEpoch, -1 for a ZooKeeper-mode broker)."""
    fields = JsonZnode.parse(path, znode.data)
    version = fields.version((1, 2))
    return ControllerZnode(
        id=fields.integer("brokerid", low=0),
        kraft_epoch=fields.integer("kraftControllerEpoch") if version > 1 else -1,
        ephemeral=znode.ephemeral_owner != 0,
        version=znode.version,
    )


def controller_epoch(path: str, znode: Znode) -> int:
    """/controller_epoch: a number in text."""
    data = znode.data
    if not data or not re.fullmatch(rb"[0-9]{1,10}", data) or int(data) >= INT32:
        refuse(path, "the data is no epoch")
    return int(data)


def migration(path: str, znode: Znode) -> MigrationZnode | NullZnode:
    """/migration, version 0; null or empty data is NullZnode (KAFKA-19480)."""
    if not znode.data:
        return NullZnode(version=znode.version)
    fields = JsonZnode.parse(path, znode.data)
    fields.version((0,))
    return MigrationZnode(
        offset=fields.integer("kraft_metadata_offset", high=INT64),
        epoch=fields.integer("kraft_metadata_epoch"),
        controller_id=fields.integer("kraft_controller_id"),
        controller_epoch=fields.integer("kraft_controller_epoch"),
        version=znode.version,
    )


def feature_levels(path: str, data: bytes | None) -> dict[str, int]:
    """/feature, versions 1 and 2: finalized features and their levels."""
    fields = JsonZnode.parse(path, data)
    fields.version((1, 2))
    fields.integer("status", low=0, high=2)
    features = fields.object("features")
    return {name: features.object(name).integer("max_version_level", low=0) for name, _ in features.items()}


def next_producer_id(path: str, data: bytes | None) -> int | None:
    """The first producer id that no block holds yet; None while no block was ever given out (empty data)."""
    if not data:
        return None
    fields = JsonZnode.parse(path, data)
    fields.version((1,))
    fields.integer("broker")
    fields.integer_text("block_start")
    return fields.integer_text("block_end", high=INT64 - 1) + 1


def partitions_named(path: str, data: bytes | None) -> tuple[str, ...]:
    """topic-partition of each entry of /admin/reassign_partitions or /admin/preferred_replica_election."""
    fields = JsonZnode.parse(path, data)
    fields.version((1,))
    return tuple(f"{entry.text('topic')}-{entry.integer('partition', low=0)}" for entry in fields.objects("partitions"))
