"""Which of the rows that differ are different, and which merely moved while both sides were read (pure).

The order of reading is KRaft, ZooKeeper, KRaft, ZooKeeper, ...; each time ZooKeeper is read only after dual write has
passed the offset of the KRaft image before it.  A row that differs in two looks that follow each other is proven by
one of two arguments:

- *KRaft stood still.*  Its object is the same in both images, so it did not change while ZooKeeper was read in
  between.  Dual write had passed the first image: ZooKeeper had to say the same then, and did not.
- *ZooKeeper stood still.*  Its znode is the same in both reads, so nothing wrote it while the second image was taken
  in between.  Dual write had passed that image before the second read: the znode had to be written, and was not.

Absence has no revision, so that an object which is made and deleted again and again would seem to stand still: what
stands on one side alone is proven by that side.  Registrations of brokers are not dual-written, and need both.

A stamp holds the values and their revision (mzxid; partition epoch; the record's offset), so that an object that
changed and changed back did not stand still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView

RowKey = tuple[str, str, str]  # kind, key, field
IN_TOPIC_ZNODE: Final = ("", "topic_id", "replicas", "adding", "removing")


@dataclass(frozen=True, slots=True)
class Sighting:
    """A row's object on one side; `stamp` is None where that side has none."""

    stamp: Hashable | None
    where: str


def row_key(row: Difference) -> RowKey:
    return row.kind, row.key, row.field


def in_zookeeper(view: ZookeeperView, rows: Iterable[Difference]) -> Mapping[RowKey, Sighting]:
    """Each row's object in ZooKeeper: the znode and its mzxid, or that nothing is there (pure)."""
    wanted = {row_key(row) for row in rows}
    partitions = _partitions(view.partitions, wanted)
    entities = _entities(view.entities, wanted)
    found: dict[RowKey, Sighting] = {}
    for kind, key, name in wanted:
        absent = Sighting(None, f"not there at zxid {view.zxid_last}")
        if kind == "partition":
            found[kind, key, name] = _state(view, partitions.get(key), key, name) or absent
        elif kind == "broker":
            znode = view.brokers.get(NodeId(int(key)))
            found[kind, key, name] = Sighting(znode, f"/brokers/ids/{key}, czxid {znode.epoch}") if znode else absent
        elif (kind, key, name) in entities:
            value, path = entities[kind, key, name]
            mzxid = view.mzxids.get(path, -1)
            found[kind, key, name] = Sighting((value, path, mzxid), f"{path}, mzxid {mzxid}" if mzxid >= 0 else path)
        else:
            found[kind, key, name] = absent
    return found


def in_kraft(view: KraftView, rows: Iterable[Difference]) -> Mapping[RowKey, Sighting]:
    """Each row's object in the metadata image: its record or partition epoch, or that it is not there (pure)."""
    wanted = {row_key(row) for row in rows}
    partitions = _partitions(view.partitions, wanted)
    entities = _entities(view.entities, wanted)
    image = f"image at metadata offset {view.offset}"
    found: dict[RowKey, Sighting] = {}
    for kind, key, name in wanted:
        seen = Sighting(None, f"not in the {image}")
        if kind == "partition" and key in partitions:
            stamp = _values(view.partitions, partitions[key])
            seen = Sighting(stamp, f"{image}, partition epoch {view.partitions.revision[partitions[key]]}")
        elif kind == "broker" and NodeId(int(key)) in view.brokers:
            broker = view.brokers[NodeId(int(key))]
            seen = Sighting(broker, f"{image}, broker epoch {broker.epoch}")
        elif kind == "feature" and key in view.features:
            seen = Sighting(view.features[key], image)
        elif (kind, key, name) in entities:
            stamp = entities[kind, key, name]
            seen = Sighting(stamp, f"{image}, {stamp[1]}" if stamp[1] else image)
        found[kind, key, name] = seen
    return found


def _state(view: ZookeeperView, index: int | None, key: str, field: str) -> Sighting | None:
    if index is None:
        return None
    topic, _, number = key.rpartition("-")
    path, mzxid = f"/brokers/topics/{topic}", view.mzxids.get(f"/brokers/topics/{topic}", -1)
    if field not in IN_TOPIC_ZNODE:
        path, mzxid = f"{path}/partitions/{number}/state", view.partitions.revision[index]
    return Sighting(_values(view.partitions, index), f"{path}, mzxid {mzxid}" if mzxid >= 0 else path)


def _partitions(columns: PartitionColumns, wanted: Iterable[RowKey]) -> dict[str, int]:
    """Key -> index, of the wanted partitions."""
    keys = {key for kind, key, _ in wanted if kind == "partition"}
    if not keys:
        return {}
    topics = {key.rpartition("-")[0] for key in keys}
    named = enumerate(zip(columns.topic, columns.partition, strict=True))
    found = {f"{topic}-{number}": index for index, (topic, number) in named if topic in topics}
    return {key: found[key] for key in keys if key in found}


def _values(columns: PartitionColumns, index: int) -> Hashable:
    lists = (columns.replicas, columns.isr, columns.adding, columns.removing)
    plain = (columns.topic_id, columns.leader, columns.leader_epoch, columns.recovery_state, columns.revision)
    return *(tuple(column[index]) for column in lists), *(column[index] for column in plain)


def _entities(columns: EntityColumns, wanted: set[RowKey]) -> dict[RowKey, tuple[str, str]]:
    keys = zip(columns.kind, columns.key, columns.name, strict=True)
    return {key: (columns.value[at], columns.where[at]) for at, key in enumerate(keys) if key in wanted}


ObjectKey = tuple[str, str]  # kind, key
READ_ONCE: Final = "both sides were read once and cannot be read again: what differs may only have been moving"


@dataclass(frozen=True, slots=True)
class Look:
    """Both sides read once, KRaft first, and what the comparison said."""

    kraft: KraftView
    zookeeper: ZookeeperView
    report: DiffReport
    left: Mapping[RowKey, Sighting]
    right: Mapping[RowKey, Sighting]

    @classmethod
    def of(cls, kraft: KraftView, zookeeper: ZookeeperView, report: DiffReport) -> Self:
        """That look, with what each side had for the rows that nothing excuses."""
        rows = report.unexcused
        return cls(kraft, zookeeper, report, in_zookeeper(zookeeper, rows), in_kraft(kraft, rows))

    def located(self, row: Difference) -> Difference:
        key = row_key(row)
        return replace(row, zookeeper_where=self.left[key].where, kraft_where=self.right[key].where)


@dataclass(slots=True)
class Settling:
    """The rows of the first look, look by look, until each is proven, gone, or given up."""

    first: DiffReport
    last: Look
    proven: dict[ObjectKey, tuple[Difference, ...]] = field(default_factory=dict)
    open: set[ObjectKey] = field(default_factory=set)
    looks: int = 1

    @classmethod
    def begin(cls, look: Look) -> Self:
        """Every row that nothing excuses is open."""
        return cls(look.report, look, open={(row.kind, row.key) for row in look.report.unexcused})

    def go_on(self, later: Look) -> None:
        """Hold the open rows against one more look."""
        rows: dict[ObjectKey, list[Difference]] = {}
        for row in later.report.unexcused:
            if (row.kind, row.key) in self.open:
                rows.setdefault((row.kind, row.key), []).append(row)
        for key, found in rows.items():
            if all(proven(row, self.last, later) for row in found):
                self.proven[key] = tuple(map(later.located, found))
        self.open = rows.keys() - self.proven.keys()
        self.last = later
        self.looks += 1

    def report(self) -> DiffReport:
        """The first look's report, with what became of the rows that nothing excused.

        A row that was read again and no longer differed was moving, and is equal.  A list that is cut stays as it is.
        """
        if self.first.cut:
            return self.first
        proven = [row for rows in self.proven.values() for row in rows]
        later = self.last.report.unexcused
        unsettled = [self.last.located(row) for row in later if (row.kind, row.key) in self.open]
        before = set(self.first.unexcused)
        excused = [row for row in self.first.differences if row not in before]
        return replace(
            self.first,
            counts=_recounted(self.first, proven, unsettled),
            differences=(*sorted(proven, key=row_key), *excused),
            unsettled=tuple(sorted(unsettled, key=row_key)),
            looks=self.looks,
        )

    def unmoved(self) -> DiffReport:
        """The report of sources that cannot be read again: all rows, with a word on what they may be."""
        rows = tuple(
            self.last.located(row) if row_key(row) in self.last.left else row for row in self.first.differences
        )
        note = (READ_ONCE,) if self.open else ()
        return replace(self.first, differences=rows, blind_spots=(*self.first.blind_spots, *note))


def proven(row: Difference, earlier: Look, later: Look) -> bool:
    """Is this row of the later look a difference beyond doubt?  See the module's own words."""
    key = row_key(row)
    if key not in earlier.left:  # it did not differ, or not in this field, before
        return False
    znode = earlier.zookeeper.migration
    if isinstance(znode, MigrationZnode) and later.kraft.offset < znode.offset:
        return False  # that image is older than what ZooKeeper was seen to hold: an old leader answered
    zookeeper = earlier.left[key].stamp == later.left[key].stamp
    kraft = earlier.right[key].stamp == later.right[key].stamp
    if row.kind == "broker":
        return zookeeper and kraft
    return (zookeeper and later.left[key].stamp is not None) or (kraft and later.right[key].stamp is not None)


def _recounted(
    first: DiffReport, proven: Iterable[Difference], unsettled: Iterable[Difference]
) -> dict[str, dict[str, int]]:
    """Counts in which the first look's unexcused rows gave way to what became of them."""
    counted = Counter({(kind, name): n for kind, classes in first.counts.items() for name, n in classes.items()})
    before = Counter(row.kind for row in first.unexcused)
    counted -= Counter((row.kind, row.cls.value) for row in first.unexcused)
    after = Counter((row.kind, row.cls.value) for row in proven)
    gone = before - Counter(kind for kind, _ in after.elements()) - Counter(row.kind for row in unsettled)
    counted += after + Counter({(kind, DifferenceClass.EQUAL.value): n for kind, n in gone.items()})
    kinds: dict[str, dict[str, int]] = {}
    for (kind, name), number in sorted(counted.items()):
        kinds.setdefault(kind, {})[name] = number
    return kinds
