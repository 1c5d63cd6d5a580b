"""The ZooKeeper view: everything Kafka keeps there, decoded; and the light read of the takeover's znodes.

Reading again: each answer names the newest transaction (zxid) that its server has made; after a sync that is the newest
of the whole ensemble.  If it is the one of the last view, no znode, ACL or session has changed.  Any other zxid is a
whole read, and whole reads keep a distance, because the ensemble serves a cluster.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from typing import Final, NamedTuple, TypeVar

from migrate.errors import MalformedZnode, NotKafkasTree, ZookeeperDenied
from migrate.model.columns import EntityColumns, PartitionColumns, unswept
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rights import SENSITIVE
from migrate.model.secrets import Digester
from migrate.model.views import (
    ControllerZnode,
    MigrationZnode,
    NoZnode,
    NullZnode,
    PendingWork,
    ZkBroker,
    ZnodeAcl,
    ZnodePart,
    ZookeeperView,
)
from migrate.zookeeper import decode, fields, layout
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.collect import Collected, collect
from migrate.zookeeper.layout import Absent, AclReader, TreeReader, Znode, child, name_of
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.rate_limit import pause

TAKEOVER: Final = (layout.MIGRATION, layout.CONTROLLER, layout.CONTROLLER_EPOCH)
KNOWN_CONFIG_TYPES: Final = frozenset({"topics", "brokers", "clients", "users", "ips", "changes"})
T = TypeVar("T")
U = TypeVar("U")
BROKEN: Final = Unknown("the znode is malformed")
NONE: Final[list[int]] = []  # shared by the many partitions without a reassignment; columns are never changed
Rows = tuple[ZnodePart, str, Iterable[fields.Row]]  # of one znode, by its path as it may be shown
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
    return Takeover(
        _present(found, layout.MIGRATION, decode.migration),
        _present(found, layout.CONTROLLER, decode.controller),
        _present(found, layout.CONTROLLER_EPOCH, decode.controller_epoch),
    )


def _present(znodes: Mapping[str, Znode], path: str, decoded: Callable[[str, Znode], T]) -> T | NoZnode:
    znode = znodes.get(path)
    return NoZnode() if znode is None else decoded(path, znode)


def read_view(client: ZookeeperClient, digester: Digester, secrets: EncoderSecrets | None = None) -> ZookeeperView:
    """Read the whole view, after a sync.

    `secrets` opens the brokers' encoded passwords: without it they are blind spots.  Malformed znodes
    stand in `malformed`, and hide no other (see `whole_or_unknown`).  Raises NotKafkasTree, ZookeeperSessionLost.
    """
    with nullcontext() if client.pace.rate else unswept():  # held back, it may last for an hour
        client.sync()
        try:
            view = view_of(client, client.connect_string, digester, secrets)
        except NotKafkasTree as error:
            near = _clusters_below(client)
            if not near:
                raise
            meant = " or ".join(f"{client.connect_string.rstrip('/')}{path}" for path in near)
            raise NotKafkasTree(f"{error.what}; did you mean {meant}?", where=error.where) from error
        return replace(view, acls=read_acls(client), caller=client.sasl_user)


def _clusters_below(client: TreeReader) -> list[str]:
    """Children of the root that hold a Kafka cluster: chroots that the connect string may have lacked."""
    (names,) = client.children(["/"])
    paths = [] if isinstance(names, Absent) else [f"/{name}" for name in names]
    found = client.children([path + layout.BROKER_IDS for path in paths])
    return [path for path, ids in zip(paths, found, strict=True) if ids is not Absent.MISSING]


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
    reader: TreeReader, connect: str, digester: Digester, secrets: EncoderSecrets | None = None
) -> ZookeeperView:
    found = collect(reader)
    for path in layout.CORE:
        if path not in found.denied and path not in found.znodes and path not in found.names:
            raise NotKafkasTree(f"{path} does not exist", where=connect)
    _require_read(found)
    known = fields.Secrets(digester, secrets)
    brokers = _brokers(found)
    rows = _entities(found, brokers, known)
    partitions, stateless = _partitions(found)
    pending = _pending(found)
    znodes, of_cluster = found.znodes, layout.CLUSTER_ID
    cluster_id = _attempt(
        found, ZnodePart.CLUSTER_ID, lambda: decode.cluster_id(of_cluster, znodes[of_cluster].data), ""
    )
    migration = _takeover(found, layout.MIGRATION, decode.migration)
    controller = _takeover(found, layout.CONTROLLER, decode.controller)
    controller_epoch = _takeover(found, layout.CONTROLLER_EPOCH, decode.controller_epoch)
    shown = ((layout.shown(path, digester), znode.mzxid) for path, znode in znodes.items())
    wanted = set(rows.where)
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
        blind_spots=(*_blind_spots(found, digester), *known.blind),
        znodes=found.count,
        zxid_first=found.zxid_first,
        zxid_last=found.zxid_last,
        malformed=tuple(entry for _, entry in sorted(found.malformed.items())),
        undecodable=tuple(known.undecodable),
        mzxids={path: mzxid for path, mzxid in shown if path in wanted},
        controller_epoch_version=znodes[layout.CONTROLLER_EPOCH].version if layout.CONTROLLER_EPOCH in znodes else -1,
        state_epoch=_state_epoch(found),
        owner_fenced=_owner_fenced(znodes.get(layout.CONTROLLER), znodes.get(layout.CONTROLLER_EPOCH)),
    )


def _require_read(found: Collected) -> None:
    """A path that may not be read is not empty: only users, brokers' configurations and tokens are blind spots.

    A single object (one topic) is a blind spot, too: the others can be told without it.  Raises ZookeeperDenied: READ
    is missing on any other place.
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


def _owner_fenced(owner: Znode | None, epoch: Znode | None) -> bool:
    """Was the epoch written since the claim?  `KafkaZkClient` creates /controller and counts it in one transaction."""
    return owner is not None and epoch is not None and owner.czxid < epoch.mzxid


def _attempt(found: Collected, part: ZnodePart, decoded: Callable[[], T], otherwise: U) -> T | U:
    """The decoded znode, or `otherwise` with the znode added to the malformed ones."""
    try:
        return decoded()
    except MalformedZnode as error:
        found.keep_malformed(error, part)
        return otherwise


def _takeover(found: Collected, path: str, decoded: Callable[[str, Znode], T]) -> T | NoZnode | Unknown:
    return _attempt(found, ZnodePart.TAKEOVER, lambda: _present(found.znodes, path, decoded), BROKEN)


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


def _in_directory(found: Collected, directory: str) -> list[tuple[str, Znode]]:
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


def _entities(found: Collected, brokers: Mapping[NodeId, ZkBroker], secrets: fields.Secrets) -> EntityColumns:
    """All rows: those of a znode, or none of it with the znode added to the malformed ones."""
    rows = EntityColumns()
    for name, topic in sorted(found.topics.items()):
        if topic.id:
            rows.add("topic", name, "topic_id", topic.id, child(layout.TOPICS, name))
    for part, path, new in chain(_configurations(found, secrets), _other_entities(found, secrets.digester)):
        before = len(rows)
        try:
            for row in new:
                rows.add(*row, path)
        except MalformedZnode as error:
            rows.cut(before)
            found.keep_malformed(error, part)
    for entry in brokers.values():
        path = child(layout.BROKER_IDS, str(int(entry.id)))
        if entry.rack is not None:
            rows.add("broker", str(int(entry.id)), "rack", entry.rack, path)
        rows.add("broker", str(int(entry.id)), "endpoints", ",".join(entry.endpoints), path)
    return rows


def _configurations(found: Collected, secrets: fields.Secrets) -> Iterator[Rows]:
    for path, znode in _in_directory(found, layout.TOPIC_CONFIGS):
        yield ZnodePart.CONFIG, path, fields.topic_configs(path, name_of(path), znode.data)
    for path, znode in _in_directory(found, layout.BROKER_CONFIGS):
        yield ZnodePart.BROKER_CONFIG, path, fields.broker_configs(path, name_of(path), znode.data, secrets)
    for directory, kind in ((layout.CLIENT_CONFIGS, "client-id"), (layout.IP_CONFIGS, "ip")):
        for path, znode in _in_directory(found, directory):
            yield ZnodePart.QUOTA, path, fields.quotas(path, {kind: name_of(path)}, znode.data)
    for path, znode in _in_directory(found, layout.USER_CONFIGS):
        yield ZnodePart.SCRAM, path, fields.scrams(path, name_of(path), znode.data, secrets.digester)
        yield ZnodePart.QUOTA, path, fields.quotas(path, {"user": name_of(path)}, znode.data)
    for user in found.names.get(layout.USER_CONFIGS, ()):
        for path, znode in _in_directory(found, layout.user_clients(user)):
            parts = {"user": user, "client-id": name_of(path)}
            yield ZnodePart.QUOTA, path, fields.quotas(path, parts, znode.data)


def _other_entities(found: Collected, digester: Digester) -> Iterator[Rows]:
    for root, pattern in ((layout.LITERAL_ACLS, "LITERAL"), (layout.PREFIXED_ACLS, "PREFIXED")):
        for kind in found.names.get(root, ()):
            for path, znode in _in_directory(found, child(root, kind)):
                yield ZnodePart.ACL, path, fields.acls(path, kind, pattern, name_of(path), znode.data)
    for path, znode in _in_directory(found, layout.TOKENS):
        shown = layout.shown(path, digester)
        yield ZnodePart.TOKEN, shown, fields.token(shown, name_of(path), znode.data, digester)
    yield ZnodePart.PRODUCER_IDS, layout.PRODUCER_IDS, _producer_ids(found)
    yield ZnodePart.FEATURE, layout.FEATURE, _features(found)


def _producer_ids(found: Collected) -> Iterator[fields.Row]:
    block = found.znodes.get(layout.PRODUCER_IDS)
    following = None if block is None else decode.next_producer_id(layout.PRODUCER_IDS, block.data)
    if following is not None:
        yield "producer-ids", "", "next_producer_id", str(following)


def _features(found: Collected) -> Iterator[fields.Row]:
    feature = found.znodes.get(layout.FEATURE)
    if feature is not None:
        for name, level in sorted(decode.feature_levels(layout.FEATURE, feature.data).items()):
            yield "feature", name, "level", str(level)


def _pending(found: Collected) -> PendingWork:
    """Work in progress: reassignments are those of the legacy znode and those that topics carry (KIP-455)."""
    named: dict[str, tuple[str, ...]] = {}
    for path in (layout.REASSIGNMENTS, layout.ELECTIONS):
        if path in found.znodes:
            partitions = partial(decode.partitions_named, path, found.znodes[path].data)
            named[path] = _attempt(found, ZnodePart.PENDING, partitions, ())
    reassigned = set(named.get(layout.REASSIGNMENTS, ()))
    for name, topic in found.topics.items():
        moving = {number for part in (topic.adding, topic.removing) for number, ids in part.items() if ids}
        reassigned.update(f"{name}-{number}" for number in moving)
    return PendingWork(
        deletions=found.names.get(layout.DELETIONS, ()),
        reassignments=tuple(sorted(reassigned)),
        elections=tuple(sorted(named.get(layout.ELECTIONS, ()))),
        log_dir_events=found.names.get(layout.LOG_DIR_EVENTS, ()),
    )


LOG: Final = logging.getLogger("migrate.zookeeper")
REST: Final = 3.0  # times as long as the last whole read took
MOST_REST: Final = 5.0  # seconds


class Rereader:
    """Reads the whole view through one client after the other, and remembers the last one.

    `whole` counts the whole reads.  `monotonic` and `sleep` are the clock's.
    """

    def __init__(
        self,
        digester: Digester,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self.whole = 0
        self._digester = digester
        self._monotonic = monotonic
        self._sleep = sleep
        self._free = monotonic()
        self._last: tuple[int, int, EncoderSecrets | None, ZookeeperView] | None = None

    def read(self, client: ZookeeperClient, secrets: EncoderSecrets | None = None) -> ZookeeperView:
        """The view as the tree is after this call began.  Raises what `read_view` raises."""
        if self._last is not None:
            client.sync()
            *known, view = self._last
            if known == [client.session, client.zxid(), secrets]:
                LOG.debug("nothing has happened in ZooKeeper since the last look")
                return view
            self._last = None
        left = self._free - self._monotonic()
        if client.pace.rate is None and left > 0:  # where the operator says how fast it may be read, that is enough
            self._sleep(left)
        begun = self._monotonic()
        view = read_view(client, self._digester, secrets)
        self.whole += 1
        now = self._monotonic()
        self._free = now + min(REST * (now - begun), MOST_REST)
        # one zxid from the first answer to the last: nothing happened meanwhile, so all of it is of that moment
        if view.zxid_first == view.zxid_last == client.zxid():
            self._last = (client.session, view.zxid_last, secrets, view)
        return view
