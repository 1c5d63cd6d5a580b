"""The ZooKeeper view: everything Kafka keeps there, decoded; and the light read of the takeover's znodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from migrate.errors import MalformedZnode, NotKafkasTree, ZookeeperDenied
from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rights import SENSITIVE
from migrate.model.secrets import Digester
from migrate.model.unswept import unswept
from migrate.model.views import (
    ControllerZnode,
    MigrationZnode,
    NoZnode,
    NullZnode,
    PendingWork,
    ZkBroker,
    ZookeeperView,
)
from migrate.model.znodes import ZnodeAcl, ZnodePart
from migrate.zookeeper import decode, fields, layout
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.collect import Collected, collect
from migrate.zookeeper.layout import child, name_of
from migrate.zookeeper.password_encoder import EncoderSecrets, PasswordDecoder
from migrate.zookeeper.znode import Absent, AclReader, TreeReader, Znode

TAKEOVER: Final = (layout.MIGRATION, layout.CONTROLLER, layout.CONTROLLER_EPOCH)
KNOWN_CONFIG_TYPES: Final = frozenset({"topics", "brokers", "clients", "users", "ips", "changes"})
T = TypeVar("T")
U = TypeVar("U")
BROKEN: Final = Unknown("the znode is malformed")
NONE: Final[list[int]] = []  # shared by the many partitions without a reassignment; columns are never changed
NO_STATE: Final = decode.PartitionState(-1, -1, NONE, 0, -1)


class Takeover(NamedTuple):
    """The znodes that say who controls the cluster and how far the dual write is."""

    migration: MigrationZnode | NoZnode | NullZnode
    controller: ControllerZnode | NoZnode
    controller_epoch: int | NoZnode


def read_migration(client: TreeReader) -> Takeover:
    """One request for /migration, /controller and /controller_epoch: cheap enough for twice a second."""
    found: dict[str, Znode] = {}
    for path, answer in zip(TAKEOVER, client.data(TAKEOVER), strict=True):
        if answer is Absent.DENIED:
            raise ZookeeperDenied("the znode may not be read", where=path)
        if not isinstance(answer, Absent):
            found[path] = answer
    return takeover_of(found)


def takeover_of(znodes: dict[str, Znode]) -> Takeover:
    """What these znodes, by path, say of it.  Raises MalformedZnode."""
    return Takeover(_migration(znodes), _controller(znodes), _controller_epoch(znodes))


def _migration(znodes: dict[str, Znode]) -> MigrationZnode | NoZnode | NullZnode:
    znode = znodes.get(layout.MIGRATION)
    return NoZnode() if znode is None else decode.migration(layout.MIGRATION, znode)


def _controller(znodes: dict[str, Znode]) -> ControllerZnode | NoZnode:
    znode = znodes.get(layout.CONTROLLER)
    return NoZnode() if znode is None else decode.controller(layout.CONTROLLER, znode)


def _controller_epoch(znodes: dict[str, Znode]) -> int | NoZnode:
    znode = znodes.get(layout.CONTROLLER_EPOCH)
    return NoZnode() if znode is None else decode.controller_epoch(layout.CONTROLLER_EPOCH, znode.data)


def read_view(client: ZookeeperClient, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
    """Read the whole view, after a sync.

    `secrets` opens the brokers' encoded passwords: without it they are blind spots.  Malformed znodes
    stand in `malformed`, and hide no other (see `whole_or_unknown`).  Raises NotKafkasTree, ZookeeperSessionLost.
    """
    with nullcontext() if client.pace.rate else unswept():  # held back, it may last for an hour
        client.sync()
        view = view_from(collect(client), client.connect_string, digester, secrets)
        return replace(view, acls=read_acls(client))


def read_acls(client: AclReader) -> dict[str, tuple[ZnodeAcl, ...]] | Unknown:
    """The ACLs of the znodes that KRaft controllers write; Unknown where this identity may not see one."""
    found: dict[str, tuple[ZnodeAcl, ...]] = {}
    for path, answer in zip(layout.CONTROLLERS_WRITE, client.acls(layout.CONTROLLERS_WRITE), strict=True):
        if answer is Absent.DENIED:
            return Unknown(f"{path}: its ACL is not known to this identity, or not in the files")
        if not isinstance(answer, Absent):
            found[path] = tuple(ZnodeAcl(*entry) for entry in answer)
    return found


def view_of(
    reader: TreeReader,
    connect: str,
    digester: Digester,
    secrets: EncoderSecrets | None = None,
) -> ZookeeperView:
    """The whole view from any reader of trees."""
    return view_from(collect(reader), connect, digester, secrets)


def view_from(
    found: Collected,
    connect: str,
    digester: Digester,
    secrets: EncoderSecrets | None = None,
) -> ZookeeperView:
    """The view of what was read."""
    for path in layout.CORE:
        if path not in found.denied and path not in found.znodes and path not in found.names:
            raise NotKafkasTree(f"{path} does not exist", where=connect)
    _require_read(found)
    decoder = None if secrets is None else PasswordDecoder(secrets.secret, secrets.old)
    known = fields.Secrets(digester, decoder)
    brokers = _brokers(found)
    rows, blind = _entities(found, known)
    _broker_rows(rows, brokers)
    partitions, stateless = _partitions(found)
    pending = _pending(found)
    znodes, takeover = found.znodes, ZnodePart.TAKEOVER
    cluster_id = _attempt(found, ZnodePart.CLUSTER_ID, lambda: _cluster_id(found), "")
    migration = _attempt(found, takeover, lambda: _migration(znodes), BROKEN)
    controller = _attempt(found, takeover, lambda: _controller(znodes), BROKEN)
    controller_epoch = _attempt(found, takeover, lambda: _controller_epoch(znodes), BROKEN)
    return ZookeeperView(
        connect=connect,
        cluster_id=cluster_id,
        brokers=brokers,
        controller=controller,
        controller_epoch=controller_epoch,
        migration=migration,
        partitions=partitions,
        entities=rows,
        topics_without_id=tuple(name for name, topic in sorted(found.topics.items()) if not topic.id),
        partitions_without_state=stateless,
        pending=pending,
        blind_spots=(*_blind_spots(found, digester), *blind),
        znodes=found.count,
        zxid_first=found.zxid_first,
        zxid_last=found.zxid_last,
        malformed=tuple(entry for _, entry in sorted(found.malformed.items())),
        undecodable=tuple(known.undecodable),
        mzxids=_mzxids(found, set(rows.where), digester),
        controller_epoch_version=znodes[layout.CONTROLLER_EPOCH].version if layout.CONTROLLER_EPOCH in znodes else -1,
        state_epoch=_state_epoch(found),
    )


def _require_read(found: Collected) -> None:
    """A path that may not be read is not empty: only users, brokers' configurations and tokens are blind spots.

    A single object (one topic) is a blind spot, too: the others can be told without it.

    Raises:
        ZookeeperDenied: READ is missing on any other place.
    """
    closed = sorted(found.denied.intersection(layout.PLACES).difference(SENSITIVE))
    if closed:
        more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
        raise ZookeeperDenied(
            f"this identity may not read it{more}: it needs READ",
            where=closed[0],
            why="what is not read would count as not there",
        )


def _state_epoch(found: Collected) -> int:
    """The highest controller epoch that a partition's state was written with; -1 where there is none."""
    states = [*chain.from_iterable(states.values() for states in found.states.values())]
    if {*map(type, states)} != {decode.PartitionState}:
        states = [state for state in states if not isinstance(state, Absent)]
    return max(map(attrgetter("controller_epoch"), states), default=-1)


def _attempt(found: Collected, part: ZnodePart, decoded: Callable[[], T], otherwise: U) -> T | U:
    """The decoded znode, or `otherwise` with the znode added to the malformed ones."""
    try:
        return decoded()
    except MalformedZnode as error:
        found.keep_malformed(error, part)
        return otherwise


def _add(found: Collected, part: ZnodePart, rows: EntityColumns, add: Callable[[], None]) -> None:
    """Add a znode's rows: all of them, or none with the znode added to the malformed ones."""
    before = len(rows)
    try:
        add()
    except MalformedZnode as error:
        rows.cut(before)
        found.keep_malformed(error, part)


def _cluster_id(found: Collected) -> str:
    return decode.cluster_id(layout.CLUSTER_ID, found.znodes[layout.CLUSTER_ID].data)


def _mzxids(found: Collected, wanted: set[str], digester: Digester) -> dict[str, int]:
    """By the paths that rows show."""
    shown = ((layout.shown(path, digester), znode.mzxid) for path, znode in found.znodes.items())
    return {path: mzxid for path, mzxid in shown if path in wanted}


def _blind_spots(found: Collected, digester: Digester) -> list[str]:
    blind = [f"{layout.shown(path, digester)}: this identity may not read it" for path in sorted(found.denied)]
    blind += [f"{layout.shown(path, digester)}: changed in every one of the reads" for path in found.moving]
    for kind in found.names.get(layout.CONFIG, ()):
        if kind not in KNOWN_CONFIG_TYPES:
            blind.append(f"{child(layout.CONFIG, kind)}: a type of configuration that Kafka 3.9 does not keep here")
    for kind in found.names.get(layout.EXTENDED_ACLS, ()):
        if kind != name_of(layout.PREFIXED_ACLS):
            blind.append(f"{child(layout.EXTENDED_ACLS, kind)}: a pattern type that Kafka 3.9 does not know")
    return blind


def _brokers(found: Collected) -> dict[NodeId, ZkBroker]:
    brokers: list[ZkBroker] = []
    for path, znode in _in_directory(found, layout.BROKER_IDS):
        try:
            brokers.append(decode.broker(path, znode))
        except MalformedZnode as error:
            found.keep_malformed(error, ZnodePart.BROKER)
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


def _by_number(some: Mapping[int, list[int]], numbers: Sequence[int]) -> list[list[int]]:
    return [some.get(number, NONE) for number in numbers] if some else [NONE] * len(numbers)


def _partitions(found: Collected) -> tuple[PartitionColumns, tuple[str, ...]]:
    columns = PartitionColumns()
    stateless: list[str] = []
    for name, topic in sorted(found.topics.items()):
        numbers = sorted(topic.replicas)
        answers = [*map(found.states[name].get, numbers, repeat(Absent.MISSING))]
        plain = {*map(type, answers)} == {decode.PartitionState}
        if not plain and Absent.MISSING in answers:
            stateless += [
                f"{name}-{number}" for number, it in zip(numbers, answers, strict=True) if it is Absent.MISSING
            ]
        states = answers if plain else [NO_STATE if isinstance(answer, Absent) else answer for answer in answers]
        leaders, epochs, isrs, recoveries, mzxids, _ = zip(*states, strict=True) if states else [()] * 6
        columns.topic.extend([name] * len(numbers))
        columns.topic_id.extend([topic.id] * len(numbers))
        columns.partition.extend(numbers)
        columns.replicas.extend(map(topic.replicas.__getitem__, numbers))
        columns.isr.extend(isrs)
        columns.adding.extend(_by_number(topic.adding, numbers))
        columns.removing.extend(_by_number(topic.removing, numbers))
        columns.leader.extend(leaders)
        columns.leader_epoch.extend(epochs)
        columns.recovery_state.extend(recoveries)
        columns.directories.extend([NONE] * len(numbers))  # type: ignore[list-item]  # empty: ZooKeeper knows none
        columns.revision.extend(mzxids)
    return columns, tuple(stateless)


def _entities(found: Collected, secrets: fields.Secrets) -> tuple[EntityColumns, list[str]]:
    """Rows of every kind but `broker`, and blind spots."""
    rows = EntityColumns()
    blind: list[str] = []
    ids = {name: topic.id for name, topic in found.topics.items()}
    for name, topic_id in sorted(ids.items()):
        if topic_id:
            rows.add("topic", name, "topic_id", topic_id, child(layout.TOPICS, name))
    for path, znode in _in_directory(found, layout.TOPIC_CONFIGS):
        _add(found, ZnodePart.CONFIG, rows, partial(fields.add_topic_config, rows, path, name_of(path), znode.data))
    for path, znode in _in_directory(found, layout.BROKER_CONFIGS):
        add = partial(_broker_config, rows, path, znode.data, secrets, blind)
        _add(found, ZnodePart.BROKER_CONFIG, rows, add)
    _quotas(rows, found, secrets)
    _acls(rows, found)
    for path, znode in _in_directory(found, layout.TOKENS):
        shown = layout.shown(path, secrets.digester)
        _add(found, ZnodePart.TOKEN, rows, partial(fields.add_token, rows, shown, znode.data, secrets.digester))
    _add(found, ZnodePart.PRODUCER_IDS, rows, partial(_producer_ids, rows, found))
    _add(found, ZnodePart.FEATURE, rows, partial(_features, rows, found))
    return rows, blind


def _broker_config(
    rows: EntityColumns, path: str, data: bytes | None, secrets: fields.Secrets, blind: list[str]
) -> None:
    blind += fields.add_broker_config(rows, path, name_of(path), data, secrets)


def _producer_ids(rows: EntityColumns, found: Collected) -> None:
    block = found.znodes.get(layout.PRODUCER_IDS)
    following = None if block is None else decode.next_producer_id(layout.PRODUCER_IDS, block.data)
    if following is not None:
        rows.add("producer-ids", "", "next_producer_id", str(following), layout.PRODUCER_IDS)


def _features(rows: EntityColumns, found: Collected) -> None:
    feature = found.znodes.get(layout.FEATURE)
    if feature is not None:
        for name, level in sorted(decode.feature_levels(layout.FEATURE, feature.data).items()):
            rows.add("feature", name, "level", str(level), layout.FEATURE)


def _quotas(rows: EntityColumns, found: Collected, secrets: fields.Secrets) -> None:
    quota = ZnodePart.QUOTA
    for directory, kind in ((layout.CLIENT_CONFIGS, "client-id"), (layout.IP_CONFIGS, "ip")):
        for path, znode in _in_directory(found, directory):
            _add(found, quota, rows, partial(fields.add_quotas, rows, path, {kind: name_of(path)}, znode.data))
    for path, znode in _in_directory(found, layout.USER_CONFIGS):
        name, data = name_of(path), znode.data
        _add(found, ZnodePart.SCRAM, rows, partial(fields.add_scram, rows, path, name, data, secrets))
        _add(found, quota, rows, partial(fields.add_user_quotas, rows, path, name, data))
    for user in found.names.get(layout.USER_CONFIGS, ()):
        for path, znode in _in_directory(found, layout.user_clients(user)):
            parts = {"user": user, "client-id": name_of(path)}
            _add(found, quota, rows, partial(fields.add_quotas, rows, path, parts, znode.data))


def _acls(rows: EntityColumns, found: Collected) -> None:
    for root, pattern in ((layout.LITERAL_ACLS, "LITERAL"), (layout.PREFIXED_ACLS, "PREFIXED")):
        for kind in found.names.get(root, ()):
            for path, znode in _in_directory(found, child(root, kind)):
                _add(found, ZnodePart.ACL, rows, partial(_resource_acls, rows, path, kind, pattern, znode.data))


def _resource_acls(rows: EntityColumns, path: str, kind: str, pattern: str, data: bytes | None) -> None:
    for key in fields.acl_rows(path, kind, pattern, name_of(path), data):
        rows.add("acl", key, "present", "true", path)


def _pending(found: Collected) -> PendingWork:
    """Work under way: reassignments are those of the legacy znode and those that topics carry (KIP-455)."""
    reassigned: set[str] = set()
    elected: tuple[str, ...] = ()
    legacy, elections = found.znodes.get(layout.REASSIGNMENTS), found.znodes.get(layout.ELECTIONS)
    if legacy is not None:
        named = partial(decode.partitions_named, layout.REASSIGNMENTS, legacy.data)
        reassigned.update(_attempt(found, ZnodePart.PENDING, named, ()))
    if elections is not None:
        named = partial(decode.partitions_named, layout.ELECTIONS, elections.data)
        elected = _attempt(found, ZnodePart.PENDING, named, ())
    for name, topic in found.topics.items():
        moving = {number for part in (topic.adding, topic.removing) for number, ids in part.items() if ids}
        reassigned.update(f"{name}-{number}" for number in moving)
    return PendingWork(
        deletions=found.names.get(layout.DELETIONS, ()),
        reassignments=tuple(sorted(reassigned)),
        elections=tuple(sorted(elected)),
        log_dir_events=found.names.get(layout.LOG_DIR_EVENTS, ()),
    )
