"""A cluster in dual write, in memory: KRaft's records reach ZooKeeper in order, late, and between any two reads."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import Unknown
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView
from migrate.model.work import Work
from tests.diff.reference import entities_of, partitions_of, reference
from tests.testing.clusters import Partition, kraft_view, topic_id, zookeeper_view

Key = tuple[str, str, str]
OF_PARTITION = ("topic_id", "replicas", "isr", "adding", "removing", "leader", "leader_epoch", "recovery_state")


@dataclass(slots=True)
class Held:
    """A value and its revision: an offset in KRaft, a zxid in ZooKeeper."""

    value: str
    revision: int


@dataclass
class DualWrite:
    """Stands in for `Sources`.  `between` is called before each read, to do what clients and controllers do then.

    `stuck` are keys that dual write forgets.  Keys of kind `partition` hold their leader as value.
    """

    between: Callable[[DualWrite], object] = lambda _: None
    kraft_rows: dict[Key, Held] = field(default_factory=dict)
    zookeeper_rows: dict[Key, Held] = field(default_factory=dict)
    log: list[tuple[Key, str | None]] = field(default_factory=list)
    written: int = 0
    zxid: int = 0
    stuck: set[Key] = field(default_factory=set)
    reads: list[str] = field(default_factory=list)
    moves: bool = True
    work: Work = field(default_factory=Work)

    # -- what happens ------------------------------------------------------------------------------------------------
    def change(self, key: Key, value: str | None) -> None:
        """A committed record; None deletes."""
        self.log.append((key, value))
        if value is None:
            self.kraft_rows.pop(key, None)
        else:
            self.kraft_rows[key] = Held(value, len(self.log))

    def write(self, records: int = 10**9) -> None:
        """Dual write takes that many records further."""
        for key, value in self.log[self.written : self.written + records]:
            if key not in self.stuck:
                self.behind(key, value)
        self.written = min(len(self.log), self.written + records)

    def behind(self, key: Key, value: str | None) -> None:
        """Write a znode, as dual write does, and as nobody else should."""
        self.zxid += 1
        if value is None:
            self.zookeeper_rows.pop(key, None)
        else:
            self.zookeeper_rows[key] = Held(value, self.zxid)

    # -- what is read ------------------------------------------------------------------------------------------------
    def kraft(self) -> KraftView:
        """The image at the committed end."""
        self.between(self)
        self.reads.append("kraft")
        view = kraft_view(*_split(self.kraft_rows), offset=len(self.log))
        columns, entities = view.partitions, view.entities
        columns.revision[:] = [self.kraft_rows["partition", f"{t}-0", "leader"].revision for t in columns.topic]
        keys = zip(entities.kind, entities.key, entities.name, strict=True)
        entities.where[:] = [f"offset {self.kraft_rows[key].revision}" for key in keys]
        return replace(view, features={})

    def dual_write_offset(self) -> int:
        """It catches up while it is waited for."""
        self.between(self)
        self.reads.append("/migration")
        self.write()
        return self.written

    def zookeeper(self) -> ZookeeperView:
        """The tree."""
        self.between(self)
        self.reads.append("zookeeper")
        view = zookeeper_view(*_split(self.zookeeper_rows))
        columns, entities = view.partitions, view.entities
        columns.revision[:] = [self.zookeeper_rows["partition", f"{t}-0", "leader"].revision for t in columns.topic]
        keys = list(zip(entities.kind, entities.key, entities.name, strict=True))
        entities.where[:] = ["/" + "/".join(key) for key in keys]
        mzxids = {f"/{'/'.join(key)}": self.zookeeper_rows[key].revision for key in keys}
        return replace(view, migration=MigrationZnode(self.written, 1, 3000, 1, 1), mzxids=mzxids, zxid_last=self.zxid)


def _split(rows: dict[Key, Held]) -> tuple[list[Partition], list[tuple[str, str, str, str]]]:
    found = deepcopy(rows)
    partitions = [
        Partition(key[1].removesuffix("-0"), topic_id(0), 0, [0, 1, 2], leader=int(held.value))
        for key, held in found.items()
        if key[0] == "partition"
    ]
    return partitions, [(*key, held.value) for key, held in found.items() if key[0] != "partition"]


def plainly(
    _: object, zookeeper: ZookeeperView, kraft: KraftView, _accepted: tuple[AcceptedDifference, ...], lag: int
) -> DiffReport | Unknown:
    """The comparison in plain Python, in the place of the one on Spark."""
    found, equal = reference(zookeeper, kraft)
    sides = [
        {
            **{("partition", k, f): v for k, row in partitions_of(view.partitions).items() for f, v in row.items()},
            **entities_of(view),
        }
        for view in (zookeeper, kraft)
    ]
    rows = []
    counts: dict[str, dict[str, int]] = {kind: {"EQUAL": number} for kind, number in equal.items()}
    for kind, key, name, cls in sorted(found):
        left, right = (side.get((kind, key, name or "leader")) for side in sides)
        counts.setdefault(kind, {})[cls] = counts.get(kind, {}).get(cls, 0) + 1
        one, other = (None if value is None else str(value) for value in (left, right))
        rows.append(Difference(kind, key, name, DifferenceClass(cls), one, other))
    return DiffReport(kraft.offset, lag, counts, tuple(rows))
