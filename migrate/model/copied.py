"""What ZooKeeper held just before Kafka's copy, held against what the copy put into the metadata (pure).

After the copy the migration driver runs SYNC_KRAFT_TO_ZK (`KRaftMigrationZkWriter.handleSnapshot`): it deletes from
ZooKeeper, or rewrites there, whatever the metadata lacks.  A comparison of both sides afterwards cannot see what the
copy dropped.  Leaders, ISRs and registrations are left out: they change while the last broker is restarted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.difference import Difference, DifferenceClass
from migrate.model.outcome import Unknown
from migrate.model.views import ZookeeperView

ORPHAN: Final = "W-ZKN-21"  # the finding that names such a configuration before the copy
DELETING: Final = "X-TOPIC-01"
NOT_COPIED: Final = frozenset({"broker", "feature"})  # the driver reads neither registrations nor /feature
EntityKey = tuple[str, str, str]  # kind, key, name


class Assignment(NamedTuple):
    """One partition's part that only a reassignment changes."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """The metadata at one offset: that of the copy's end, or a later one.

    `records` counts the records of the copy's transaction by type, as Kafka names types (TOPIC_RECORD); it is empty
    where that transaction was not read.
    """

    offset: int
    partitions: PartitionColumns
    entities: EntityColumns
    records: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KeptTree:
    """A backup of ZooKeeper that a run took before the last broker of the first roll was restarted."""

    path: str
    sha256: str
    run: str
    concluded: Mapping[str, object] | None = None  # event of a run that found nothing lost by it


@dataclass(frozen=True, slots=True)
class NoLook:
    """No look at ZooKeeper from before the copy is kept: nothing can be held against the copy."""

    reason: str


@dataclass(frozen=True, slots=True)
class CopyCheck:
    """The look at `zxid` held against the metadata at `offset`.

    `at_end`: that offset is the copy's end.  `counts` is kind -> (keys in the look, keys of them in the metadata).
    `lost` is what the metadata lacks or has otherwise, `known` the same with the rule that explains it.  `records` and
    `driver` count the copy's records by type: as read from the log, and by the active controller's own words.
    """

    zxid: int
    source: str
    offset: int
    at_end: bool
    counts: Mapping[str, tuple[int, int]]
    lost: tuple[Difference, ...]
    known: tuple[Difference, ...]
    records: Mapping[str, int]
    driver: Mapping[str, int] | Unknown
    blind: tuple[str, ...] = ()

    @property
    def miscounted(self) -> tuple[str, ...]:
        """Record types of which the log holds fewer than the controller counted, each with both numbers.

        It may hold more: NoOp records and changes of registrations are written between those of the copy.
        """
        if isinstance(self.driver, Unknown) or not self.records:
            return ()
        return tuple(
            f"{name}: the controller counted {number}, the log has {self.records.get(name, 0)}"
            for name, number in sorted(self.driver.items())
            if number > self.records.get(name, 0)
        )


def orphaned(view: ZookeeperView) -> frozenset[str]:
    """Topics that have a configuration in ZooKeeper and do not exist.

    The copy reads configurations of existing topics alone (`ZkTopicMigrationClient.iterateTopics`); those of brokers,
    users, client ids and ips are read whether or not anything has that name (`ZkConfigMigrationClient`).
    """
    topics = {*view.partitions.topic, *view.topics_without_id}
    rows = zip(view.entities.kind, view.entities.key, strict=True)
    configured = set()
    for kind, key in rows:
        if kind == "topic":
            topics.add(key)
        elif kind == "topic-config":
            configured.add(key)
    return frozenset(configured - topics)


def lacking(look: ZookeeperView, end: CopyEnd, blind: frozenset[tuple[str, str]]) -> list[Difference]:
    """What the metadata lacks of the look, or has otherwise; EXPECTED with the rule, where a rule explains it.

    `blind` are broker configurations (broker, name) that could not be decoded.  What the metadata alone has was made
    since the look, and is no loss.
    """
    gone, deleting = orphaned(look), frozenset(look.pending.deletions)
    rows = [*_entities(look.entities, end.entities, blind), *_assignments(look.partitions, end.partitions)]
    return [_explained(row, gone, deleting) for row in rows]


def still_lacking(rows: list[Difference], now: CopyEnd) -> list[Difference]:
    """Those of the rows that the metadata of now does not have as the look had them: the others were made again."""
    entities = _rows(now.entities)
    table = _table(now.partitions)
    return [row for row in rows if not _present(row, entities, table)]


def counted(look: ZookeeperView, end: CopyEnd) -> dict[str, tuple[int, int]]:
    """By kind: keys in the look, and how many of them are in the metadata."""
    before, after = _keys(look.entities, look.partitions), _keys(end.entities, end.partitions)
    return {kind: (len(keys), len(keys & after.get(kind, set()))) for kind, keys in sorted(before.items())}


def _keys(entities: EntityColumns, partitions: PartitionColumns) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind, key in zip(entities.kind, entities.key, strict=True):
        if kind not in NOT_COPIED:
            found.setdefault(kind, set()).add(key)
    rows = zip(partitions.topic, partitions.partition, strict=True)
    if len(partitions):
        found["partition"] = {f"{topic}-{number}" for topic, number in rows}
    return found


def _rows(columns: EntityColumns) -> dict[EntityKey, str]:
    rows = zip(columns.kind, columns.key, columns.name, columns.value, strict=True)
    return {(kind, key, name): value for kind, key, name, value in rows if kind not in NOT_COPIED}


def _entities(before: EntityColumns, after: EntityColumns, blind: frozenset[tuple[str, str]]) -> Iterator[Difference]:
    there = _rows(after)
    for (kind, key, name), value in _rows(before).items():
        now = there.get((kind, key, name))
        if now == value or (kind == "broker-config" and (key, name) in blind):
            continue
        if kind == "producer-ids" and now is not None and int(now) >= int(value):
            continue  # a broker took another block of ids since
        cls = DifferenceClass.ONLY_ZK if now is None else DifferenceClass.DIFFERS
        yield Difference(kind, key, name, cls, value, now)


def _table(columns: PartitionColumns) -> dict[tuple[str, int], Assignment]:
    keys = zip(columns.topic, columns.partition, strict=True)
    values = map(Assignment, columns.replicas, columns.adding, columns.removing, columns.leader_epoch)
    return dict(zip(keys, values, strict=True))


def _assignments(before: PartitionColumns, after: PartitionColumns) -> Iterator[Difference]:
    """A topic that is gone altogether is one row of its own kind: its partitions are not listed again."""
    there, topics = _table(after), {*after.topic}
    for (topic, number), was in _table(before).items():
        if topic not in topics:
            continue
        key, now = f"{topic}-{number}", there.get((topic, number))
        if now is None:
            yield Difference("partition", key, "", DifferenceClass.ONLY_ZK, f"replicas {_ids(was.replicas)}", None)
            continue
        for name in ("replicas", "adding", "removing"):
            one, other = getattr(was, name), getattr(now, name)
            if one != other and (name == "replicas" or set(one) != set(other)):
                yield Difference("partition", key, name, DifferenceClass.DIFFERS, _ids(one), _ids(other))
        if now.leader_epoch < was.leader_epoch:  # it goes forward only
            epochs = str(was.leader_epoch), str(now.leader_epoch)
            yield Difference("partition", key, "leader_epoch", DifferenceClass.DIFFERS, *epochs)


def _ids(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def _present(row: Difference, entities: Mapping[EntityKey, str], table: Mapping[tuple[str, int], Assignment]) -> bool:
    if row.kind != "partition":
        return entities.get((row.kind, row.key, row.field)) == row.zookeeper
    topic, _, number = row.key.rpartition("-")
    now = table.get((topic, int(number)))
    if now is None:
        return False
    if row.field == "leader_epoch":
        return now.leader_epoch >= int(row.zookeeper or 0)
    return _ids(getattr(now, row.field or "replicas")) == (row.zookeeper or "").removeprefix("replicas ")


def _explained(row: Difference, gone: frozenset[str], deleting: frozenset[str]) -> Difference:
    topic = row.key.rpartition("-")[0] if row.kind == "partition" else row.key
    of_topic = row.kind in ("topic", "topic-config", "partition") and row.cls is DifferenceClass.ONLY_ZK
    if of_topic and topic in deleting:
        return replace(row, cls=DifferenceClass.EXPECTED, rule=DELETING)
    if of_topic and row.kind == "topic-config" and topic in gone:
        return replace(row, cls=DifferenceClass.EXPECTED, rule=ORPHAN)
    return row


def names_of(rows: tuple[Difference, ...], most: int = 5) -> str:
    fields: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        fields.setdefault((row.kind, row.key), []).append(row.field)
    told = [
        f"{kind} {key}"
        + (f" ({', '.join(filter(None, names[:3]))}{', ...' if len(names) > 3 else ''})" if any(names) else "")
        for (kind, key), names in fields.items()
    ]
    more = f" and {len(told) - most} more" if len(told) > most else ""
    return "; ".join(told[:most]) + more


def by_rule(rows: tuple[Difference, ...]) -> dict[str, tuple[Difference, ...]]:
    rules = Counter(row.rule for row in rows)
    return {rule: tuple(row for row in rows if row.rule == rule) for rule in sorted(rules)}
