"""The ZooKeeper view: everything Kafka keeps there, decoded; and the light read of the takeover's znodes."""

from __future__ import annotations

from typing import Final, NamedTuple

from migrate.errors import NotKafkasTree, ZookeeperDenied
from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.ids import NodeId
from migrate.model.secrets import Digester
from migrate.model.views import (
    ControllerZnode,
    MigrationZnode,
    NoZnode,
    NullZnode,
    PendingWork,
    ZkBroker,
    ZookeeperView,
)
from migrate.zookeeper import decode, entities, layout
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.collect import Collected, collect
from migrate.zookeeper.layout import child, name_of
from migrate.zookeeper.password_encoder import PasswordDecoder
from migrate.zookeeper.znode import Absent, TreeReader, Znode

TAKEOVER: Final = (layout.MIGRATION, layout.CONTROLLER, layout.CONTROLLER_EPOCH)
KNOWN_CONFIG_TYPES: Final = frozenset({"topics", "brokers", "clients", "users", "ips", "changes"})
NONE: Final[list[int]] = []  # shared by the many partitions without a reassignment; columns are never changed


class Takeover(NamedTuple):
    """The znodes that say who controls the cluster and how far the dual write is."""

    migration: MigrationZnode | NoZnode | NullZnode
    controller: ControllerZnode | NoZnode
    controller_epoch: int | NoZnode


def read_migration(client: TreeReader) -> Takeover:
    """One request for /migration, /controller and /controller_epoch: light enough for twice a second."""
    found: dict[str, Znode] = {}
    for path, answer in zip(TAKEOVER, client.data(TAKEOVER), strict=True):
        if answer is Absent.DENIED:
            raise ZookeeperDenied("the znode may not be read", where=path)
        if not isinstance(answer, Absent):
            found[path] = answer
    return _takeover(found)


def _takeover(znodes: dict[str, Znode]) -> Takeover:
    migration, controller, epoch = (znodes.get(path) for path in TAKEOVER)
    return Takeover(
        NoZnode() if migration is None else decode.migration(layout.MIGRATION, migration),
        NoZnode() if controller is None else decode.controller(layout.CONTROLLER, controller),
        NoZnode() if epoch is None else decode.controller_epoch(layout.CONTROLLER_EPOCH, epoch.data),
    )


def read_view(client: ZookeeperClient, digester: Digester, secret: str | None = None) -> ZookeeperView:
    """The whole view, as ZooKeeper stands after a sync.

    `secret` is the brokers' password.encoder.secret: without it encoded passwords are blind spots.  Raises
    MalformedZnode, NotKafkasTree, ZookeeperSessionLost.
    """
    client.sync()
    return view_of(client, client.connect_string, digester, secret)


def view_of(reader: TreeReader, connect: str, digester: Digester, secret: str | None = None) -> ZookeeperView:
    """The whole view from any reader of trees."""
    found = collect(reader)
    for path in layout.CORE:
        if path not in found.denied and path not in found.znodes and path not in found.names:
            raise NotKafkasTree(f"{path} does not exist", where=connect)
    if layout.CLUSTER_ID in found.denied:
        raise ZookeeperDenied("the cluster's id may not be read", where=layout.CLUSTER_ID)
    secrets = entities.Secrets(digester, None if secret is None else PasswordDecoder(secret))
    brokers = _brokers(found)
    takeover = _takeover(found.znodes)
    rows, blind = _entities(found, secrets)
    _broker_rows(rows, brokers)
    partitions, stateless = _partitions(found)
    return ZookeeperView(
        connect=connect,
        cluster_id=decode.cluster_id(layout.CLUSTER_ID, found.znodes[layout.CLUSTER_ID].data),
        brokers=brokers,
        controller=takeover.controller,
        controller_epoch=takeover.controller_epoch,
        migration=takeover.migration,
        partitions=partitions,
        entities=rows,
        topics_without_id=tuple(name for name, topic in sorted(found.topics.items()) if not topic.id),
        partitions_without_state=stateless,
        pending=_pending(found),
        blind_spots=(*_blind_spots(found), *blind),
        znodes=found.count,
        zxid_first=found.zxid_first,
        zxid_last=found.zxid_last,
    )


def _blind_spots(found: Collected) -> list[str]:
    blind = [f"{path}: this identity may not read it" for path in sorted(found.denied)]
    blind += [f"{path}: changed in every one of the reads" for path in found.moving]
    for kind in found.names.get(layout.CONFIG, ()):
        if kind not in KNOWN_CONFIG_TYPES:
            blind.append(f"{child(layout.CONFIG, kind)}: a type of configuration that Kafka 3.9 does not keep here")
    for kind in found.names.get(layout.EXTENDED_ACLS, ()):
        if kind != name_of(layout.PREFIXED_ACLS):
            blind.append(f"{child(layout.EXTENDED_ACLS, kind)}: a pattern type that Kafka 3.9 does not know")
    return blind


def _brokers(found: Collected) -> dict[NodeId, ZkBroker]:
    brokers = (decode.broker(path, znode) for path, znode in _in_directory(found, layout.BROKER_IDS))
    return {entry.id: entry for entry in sorted(brokers, key=lambda entry: entry.id)}


def _broker_rows(rows: EntityColumns, brokers: dict[NodeId, ZkBroker]) -> None:
    for entry in brokers.values():
        path = child(layout.BROKER_IDS, str(int(entry.id)))
        if entry.rack is not None:
            rows.add("broker", str(int(entry.id)), "rack", entry.rack, path)
        rows.add("broker", str(int(entry.id)), "endpoints", ",".join(entry.endpoints), path)


def _in_directory(found: Collected, directory: str) -> list[tuple[str, Znode]]:
    """(path, znode) of a directory's children that were readable."""
    paths = [child(directory, name) for name in found.names.get(directory, ())]
    return [(path, found.znodes[path]) for path in paths if path in found.znodes]


def _partitions(found: Collected) -> tuple[PartitionColumns, tuple[str, ...]]:
    columns = PartitionColumns()
    stateless: list[str] = []
    for name, topic in sorted(found.topics.items()):
        states = found.states[name]
        for partition, replicas in sorted(topic.replicas.items()):
            state = states.get(partition, Absent.MISSING)
            if isinstance(state, Absent):
                if state is Absent.MISSING:
                    stateless.append(f"{name}-{partition}")
                state = decode.PartitionState(-1, -1, NONE, 0, -1)
            columns.topic.append(name)
            columns.topic_id.append(topic.id)
            columns.partition.append(partition)
            columns.replicas.append(replicas)
            columns.isr.append(state.isr)
            columns.adding.append(topic.adding.get(partition, NONE))
            columns.removing.append(topic.removing.get(partition, NONE))
            columns.leader.append(state.leader)
            columns.leader_epoch.append(state.leader_epoch)
            columns.recovery_state.append(state.recovery)
            columns.directories.append(NONE)  # type: ignore[arg-type]  # empty: ZooKeeper knows no directories
            columns.revision.append(state.mzxid)
    return columns, tuple(stateless)


def _entities(found: Collected, secrets: entities.Secrets) -> tuple[EntityColumns, list[str]]:
    """Rows of every kind but `broker`, and blind spots."""
    rows = EntityColumns()
    blind: list[str] = []
    for name, topic in sorted(found.topics.items()):
        if topic.id:
            rows.add("topic", name, "topic_id", topic.id, child(layout.TOPICS, name))
    for path, znode in _in_directory(found, layout.TOPIC_CONFIGS):
        entities.add_topic_config(rows, path, name_of(path), znode.data)
    for path, znode in _in_directory(found, layout.BROKER_CONFIGS):
        blind += entities.add_broker_config(rows, path, name_of(path), znode.data, secrets)
    _quotas(rows, found, secrets)
    _acls(rows, found)
    for path, znode in _in_directory(found, layout.TOKENS):
        entities.add_token(rows, path, znode.data, secrets.digester)
    block = found.znodes.get(layout.PRODUCER_IDS)
    following = None if block is None else decode.next_producer_id(layout.PRODUCER_IDS, block.data)
    if following is not None:
        rows.add("producer-ids", "", "next_producer_id", str(following), layout.PRODUCER_IDS)
    feature = found.znodes.get(layout.FEATURE)
    if feature is not None:
        for name, level in sorted(decode.feature_levels(layout.FEATURE, feature.data).items()):
            rows.add("feature", name, "level", str(level), layout.FEATURE)
    return rows, blind


def _quotas(rows: EntityColumns, found: Collected, secrets: entities.Secrets) -> None:
    for path, znode in _in_directory(found, layout.CLIENT_CONFIGS):
        entities.add_quotas(rows, path, {"client-id": name_of(path)}, znode.data)
    for path, znode in _in_directory(found, layout.IP_CONFIGS):
        entities.add_quotas(rows, path, {"ip": name_of(path)}, znode.data)
    for path, znode in _in_directory(found, layout.USER_CONFIGS):
        entities.add_user(rows, path, name_of(path), znode.data, secrets)
    for user in found.names.get(layout.USER_CONFIGS, ()):
        for path, znode in _in_directory(found, layout.user_clients(user)):
            entities.add_quotas(rows, path, {"user": user, "client-id": name_of(path)}, znode.data)


def _acls(rows: EntityColumns, found: Collected) -> None:
    for root, pattern in ((layout.LITERAL_ACLS, "LITERAL"), (layout.PREFIXED_ACLS, "PREFIXED")):
        for kind in found.names.get(root, ()):
            for path, znode in _in_directory(found, child(root, kind)):
                for key in entities.acl_rows(path, kind, pattern, name_of(path), znode.data):
                    rows.add("acl", key, "present", "true", path)


def _pending(found: Collected) -> PendingWork:
    """Work under way: reassignments are those of the legacy znode and those that topics carry (KIP-455)."""
    reassigned: set[str] = set()
    elected: tuple[str, ...] = ()
    legacy, elections = found.znodes.get(layout.REASSIGNMENTS), found.znodes.get(layout.ELECTIONS)
    if legacy is not None:
        reassigned.update(decode.partitions_named(layout.REASSIGNMENTS, legacy.data))
    if elections is not None:
        elected = decode.partitions_named(layout.ELECTIONS, elections.data)
    for name, topic in found.topics.items():
        moving = {number for part in (topic.adding, topic.removing) for number, ids in part.items() if ids}
        reassigned.update(f"{name}-{number}" for number in moving)
    return PendingWork(
        deletions=found.names.get(layout.DELETIONS, ()),
        reassignments=tuple(sorted(reassigned)),
        elections=tuple(sorted(elected)),
        log_dir_events=found.names.get(layout.LOG_DIR_EVENTS, ()),
    )
