"""Do ZooKeeper and KRaft agree, and if not, on which topics: before anything is set field by field.

The comparison is given these topics alone, with all that is no partition (`migrate.observe.fleet`).  A gate never asks
here: it proves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain, compress
from operator import itemgetter
from typing import Any, Final

from migrate.diff import typed_rows
from migrate.diff.expected import TOPIC_KINDS, rule_for
from migrate.diff.typed_rows import EntityRow
from migrate.errors import MalformedZnode
from migrate.kraft.files import ONE_DIRECTORY, MetadataFiles, load
from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.difference import Difference, DifferenceClass
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, ZookeeperView
from migrate.zookeeper.offline.files import OfflineTree

SETS: Final = frozenset({"isr", "adding", "removing"})
COMPARED: Final = (
    *("topic_id", "partition", "replicas", "leader", "leader_epoch", "recovery_state"),
    *sorted(SETS),
)
FIELDS: Final = 8  # of a partition, that the comparison compares (`migrate.diff.tables.PARTITION_FIELDS`)
EntityKey = tuple[str, str, str]  # kind, key, name
Entity = tuple[str, str, str, str]  # and its value


@dataclass(frozen=True, slots=True)
class Agreement:
    """Which topics differ in their partitions, or stand on one side alone, and which other objects do.

    What a rule of `migrate.diff.expected` excuses stands apart: `deleting` are topics, `excused` objects.  `partitions`
    are those of the topics that agree.
    """

    topics: tuple[str, ...]
    others: tuple[Difference, ...]
    deleting: tuple[str, ...]
    excused: tuple[Difference, ...]
    partitions: int

    @property
    def equal(self) -> bool:
        """Is there no difference but those that a rule excuses?"""
        return not self.topics and not self.others

    @property
    def differing(self) -> tuple[str, ...]:
        """All topics that are not the same on both sides."""
        return *self.topics, *self.deleting


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides of one cluster, as whole views."""

    zookeeper: ZookeeperView
    kraft: KraftView

    def agreement(self) -> Agreement:
        """What they agree on.  Raises MalformedZnode: a tree that was read in part is not compared."""
        refuse_malformed(self.zookeeper)
        return agreement(self.zookeeper, self.kraft)

    def views(self, topics: Collection[str] | None) -> tuple[ZookeeperView, KraftView]:
        """Both sides with the partitions of these topics; None: of all."""
        if topics is None:
            return self.zookeeper, self.kraft
        return (
            replace(self.zookeeper, partitions=of_topics(self.zookeeper.partitions, set(topics))),
            replace(self.kraft, partitions=of_topics(self.kraft.partitions, set(topics))),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TopicRows:
    """A topic's rows of a view, by partition; equal where all is equal that the comparison compares."""

    columns: PartitionColumns
    rows: list[int]

    def __hash__(self) -> int:
        return hash(tuple(self.column("topic_id")))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicRows):
            return NotImplemented
        pairs = ((name in SETS, self.column(name), other.column(name)) for name in COMPARED)
        return all(one == two or (is_set and [*map(set, one)] == [*map(set, two)]) for is_set, one, two in pairs)

    def column(self, name: str) -> list[Any]:
        column = getattr(self.columns, name)
        return [column[row] for row in self.rows]


def topic_rows(columns: PartitionColumns) -> dict[str, TopicRows]:
    """The rows of each topic; views hold them by topic and partition."""
    found: dict[str, TopicRows] = {}
    for row, name in enumerate(columns.topic):
        if name not in found:
            found[name] = TopicRows(columns, [])
        found[name].rows.append(row)
    return found


def read_sides(tree: OfflineTree, files: MetadataFiles, digester: Digester) -> Sides:
    """Both sides of files.  Raises what `OfflineTree.view` and `migrate.kraft.files.load` raise."""
    return Sides(tree.view(digester), load(files, digester).view("", ONE_DIRECTORY, str(files.path)))


def refuse_malformed(view: ZookeeperView) -> None:
    """Raise MalformedZnode where a znode of the view is malformed."""
    for part in view.malformed:
        raise MalformedZnode(part.problem, where=part.path, why="a tree that was read in part is not compared")


def agreement(zookeeper: ZookeeperView, kraft: KraftView) -> Agreement:
    """Which topics and other objects differ (pure)."""
    blind, deletions = typed_rows.blind_configs(zookeeper.blind_spots), zookeeper.pending.deletions
    ours, theirs = topic_rows(zookeeper.partitions), topic_rows(kraft.partitions)
    topics = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    gone = {name for name in topics if name in deletions and name not in theirs}
    left = entity_rows(zookeeper.entities, typed_rows.of_zookeeper(zookeeper), blind)
    right = entity_rows(kraft.entities, typed_rows.of_kraft(kraft), blind)
    pairs = ((key, left.get(key), right.get(key)) for key in left.keys() | right.keys())
    differing = [
        _row(*pair, deletions) for pair in sorted((pair for pair in pairs if pair[1] != pair[2]), key=itemgetter(0))
    ]
    return Agreement(
        topics=tuple(name for name in topics if name not in gone),
        others=tuple(row for row in differing if not row.rule),
        deleting=tuple(sorted(gone)),
        excused=tuple(row for row in differing if row.rule),
        partitions=sum(len(theirs[name].rows) for name in theirs.keys() - set(topics)),
    )


def _row(key: EntityKey, zookeeper: str | None, kraft: str | None, deletions: Collection[str]) -> Difference:
    kind, name, field = key
    side = DifferenceClass.ONLY_KRAFT if zookeeper is None else DifferenceClass.ONLY_ZK
    cls = DifferenceClass.DIFFERS if None not in {zookeeper, kraft} else side
    row = Difference(kind, name, field, cls, zookeeper, kraft)
    rule = rule_for(row, deleting=kind in TOPIC_KINDS and name in deletions)
    return replace(row, rule=rule, cls=DifferenceClass.EXPECTED) if rule else row


def entity_rows(
    columns: EntityColumns, typed: Iterable[EntityRow], blind: Collection[tuple[str, str]]
) -> dict[EntityKey, str]:
    """As the comparison takes them: typed rows stand for their kinds, what one side cannot decode is left out."""
    made = tuple(typed)
    kinds = {"broker", *(row[0] for row in made)}
    found = zip(columns.kind, columns.key, columns.name, columns.value, strict=True)
    rows = chain((row for row in found if row[0] not in kinds), made)
    return {
        (kind, key, name): value
        for kind, key, name, value in rows
        if not blind or kind != "broker-config" or (key, name) not in blind
    }


def apart(zookeeper: EntityColumns, kraft: EntityColumns) -> tuple[EntityColumns, EntityColumns, Counter[str]]:
    """Both without what both say of topics, and how much of it there was by kind (pure).

    Those rows are as many as topics, and compared as they are: no typed rows stand for them.
    """
    ours, theirs = _rows(zookeeper), _rows(kraft)
    same = {row for row in ours.keys() & theirs.keys() if row[0] in TOPIC_KINDS}
    return _without(ours, same), _without(theirs, same), Counter(row[0] for row in same)


def _rows(columns: EntityColumns) -> dict[Entity, str]:
    """Each row once, with where it stands."""
    where = columns.where or [""] * len(columns)
    rows = zip(columns.kind, columns.key, columns.name, columns.value, strict=True)
    return dict(zip(rows, where, strict=True))


def _without(rows: Mapping[Entity, str], same: Collection[Entity]) -> EntityColumns:
    left = EntityColumns()
    for row, where in rows.items():
        if row not in same:
            left.add(*row, where)
    return left


def of_topics(columns: PartitionColumns, wanted: Collection[str]) -> PartitionColumns:
    keep = [topic in wanted for topic in columns.topic]
    names = (entry.name for entry in fields(PartitionColumns))
    return PartitionColumns(**{name: list(compress(getattr(columns, name), keep)) for name in names})
