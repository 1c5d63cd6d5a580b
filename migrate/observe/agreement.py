"""Do ZooKeeper and KRaft agree, and if not, on which topics: from fingerprints, before anything is set field by field.

Fingerprints (`migrate.model.fingerprints`) say which topics need the comparison; it is given those alone, with all that
is no partition, and its report is the one that the whole views would have given.  A gate never asks here: it proves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import chain, compress
from typing import Final

from migrate.diff import typed_rows
from migrate.diff.typed_rows import EntityRow
from migrate.errors import MalformedZnode
from migrate.kraft.files import MetadataFiles
from migrate.kraft.topic_prints import TopicPrints, topic_prints
from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.difference import DifferenceClass, DiffReport
from migrate.model.fingerprints import Fingerprint, topic_fingerprints
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, ZookeeperView
from migrate.zookeeper.offline.reader import OfflineTree, head_of_files
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.plain_topics import NO_TOPICS, PlainTopics

FIELDS: Final = 8  # of a partition, that the comparison compares (`migrate.diff.tables.PARTITION_FIELDS`)
EntityKey = tuple[str, str, str]  # kind, key, name


@dataclass(frozen=True, slots=True)
class Side:
    """What is known of one side without its partitions' rows: fingerprints by topic, and everything else."""

    prints: Mapping[str, Fingerprint]
    entities: Mapping[EntityKey, str]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Which topics differ in their partitions, or stand on one side alone; which other objects do (nothing excused).

    `partitions` are those of the topics that agree.
    """

    topics: tuple[str, ...]
    entities: tuple[EntityKey, ...]
    partitions: int

    @property
    def equal(self) -> bool:
        """Is there no difference at all, not even one that a rule would excuse?"""
        return not self.topics and not self.entities


@dataclass(frozen=True, slots=True)
class OfflineSides:
    """ZooKeeper's files and one metadata directory: `zookeeper` has no partitions of `plain`."""

    zookeeper: ZookeeperView
    plain: PlainTopics
    kraft: TopicPrints

    def agreement(self) -> Agreement:
        """What they agree on.  Raises MalformedZnode: a tree that was read in part is not compared."""
        for part in self.zookeeper.malformed:
            raise MalformedZnode(part.problem, where=part.path, why="a tree that was read in part is not compared")
        counts = self.kraft.counts
        prints = topic_fingerprints(self.zookeeper.partitions) | dict(self.plain.fingerprints())
        image = self.kraft.view()
        ours = Side(prints, _rows(self.zookeeper.entities, typed_rows.of_zookeeper(self.zookeeper)))
        theirs = Side(self.kraft.prints, _rows(self.kraft.entities, typed_rows.of_kraft(image)))
        return agreement(ours, theirs, counts)

    def views(self, topics: Collection[str]) -> tuple[ZookeeperView, KraftView]:
        """Both sides with the partitions of these topics, and perhaps some others', for the comparison of rows."""
        wanted = set(topics)
        mine = [number for number, name in enumerate(self.plain.names) if name in wanted]
        some = self.plain.merged_with(self.zookeeper.partitions, mine)
        kraft = self.kraft.view(wanted)
        return (
            replace(self.zookeeper, partitions=_of_topics(some, wanted)),
            replace(kraft, partitions=_of_topics(kraft.partitions, wanted)),
        )


def read_offline(
    tree: OfflineTree, files: MetadataFiles, digester: Digester, secrets: EncoderSecrets | None = None
) -> OfflineSides | None:
    """Both sides of files; None where the metadata is too small or too odd for fingerprints: compare whole views then.

    Raises what `view_of_files` raises.
    """
    kraft = topic_prints(files, digester)
    if kraft is None:
        return None
    zookeeper, plain = head_of_files(tree, digester, secrets)
    return OfflineSides(zookeeper, plain or NO_TOPICS, kraft)


def agreement(zookeeper: Side, kraft: Side, counts: Mapping[str, int]) -> Agreement:
    """Which topics and other objects differ (pure); `counts` are KRaft's partitions a topic."""
    names = zookeeper.prints.keys() | kraft.prints.keys()
    topics = {name for name in names if zookeeper.prints.get(name) != kraft.prints.get(name)}
    keys = zookeeper.entities.keys() | kraft.entities.keys()
    entities = {key for key in keys if zookeeper.entities.get(key) != kraft.entities.get(key)}
    return Agreement(
        topics=tuple(sorted(topics)),
        entities=tuple(sorted(entities)),
        partitions=sum(counts[name] for name in kraft.prints.keys() - topics),
    )


def whole(report: DiffReport, found: Agreement) -> DiffReport:
    """The report of the topics that differ as that of all: the fields of all others are equal."""
    counts = {kind: Counter(classes) for kind, classes in report.counts.items()}
    if found.partitions:
        counts.setdefault("partition", Counter())[DifferenceClass.EQUAL.value] += FIELDS * found.partitions
    return replace(report, counts={kind: dict(classes) for kind, classes in sorted(counts.items())})


def _rows(columns: EntityColumns, typed: Iterable[EntityRow]) -> dict[EntityKey, str]:
    """As the comparison takes them: typed rows stand for all rows of their kinds (`migrate.diff.frames.entities`)."""
    made = tuple(typed)
    kinds = {"broker", *(row[0] for row in made)}
    rows = zip(columns.kind, columns.key, columns.name, columns.value, strict=True)
    return {(kind, key, name): value for kind, key, name, value in chain((r for r in rows if r[0] not in kinds), made)}


def _of_topics(columns: PartitionColumns, wanted: Collection[str]) -> PartitionColumns:
    """The partitions of these topics."""
    keep = [topic in wanted for topic in columns.topic]
    names = (entry.name for entry in fields(PartitionColumns))
    return PartitionColumns(**{name: list(compress(getattr(columns, name), keep)) for name in names})
