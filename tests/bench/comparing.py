"""The race of comparing two views: Spark, warm, typed field by field, against pandas' outer merge."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from migrate.diff.compare import compare
from migrate.diff.session import SparkHandle
from migrate.model.columns import PartitionColumns
from migrate.model.difference import DiffReport
from migrate.model.views import KraftView, ZookeeperView
from tests.bench.files import cluster
from tests.bench.races import Race, Work
from tests.testing.clusters import Partition, kraft_view, zookeeper_view
from tests.testing.spark_session import driver_pid

if TYPE_CHECKING:
    import pandas as pd

FIELDS: Final = ("topic_id", "replicas", "isr", "adding", "removing", "leader", "leader_epoch", "recovery_state")
EVERY: Final = 997  # one partition in so many differs
ABSENT: Final = 4_999  # one in so many is on one side alone
WARM: Final = 2  # comparisons before the one that is timed


def views(size: int) -> tuple[ZookeeperView, KraftView]:
    """Two views of that many partitions, with differences planted at known places."""
    left: list[Partition] = []
    right: list[Partition] = []
    number = 0
    for topic in cluster(size):
        for row in topic.partitions:
            number += 1
            for side, rows in enumerate((left, right)):
                if number % ABSENT == 0 and number // ABSENT % 2 == side:
                    continue
                changed = side == 1 and number % EVERY == 0
                isr = row.isr[:1] if changed and number % 2 else list(row.isr)
                epoch = row.leader_epoch + (1 if changed and not number % 2 else 0)
                rows.append(
                    Partition(
                        topic.name,
                        topic.id,
                        row.number,
                        list(row.replicas),
                        isr=isr,
                        leader=row.leader,
                        leader_epoch=epoch,
                    )
                )
    return zookeeper_view(left), kraft_view(right)


def digest(rows: Iterable[object]) -> str:
    """One hash for all rows, in their order."""
    found = hashlib.sha256()
    for row in rows:
        found.update(repr(row).encode())
    return found.hexdigest()


@contextmanager
def nothing(_folder: Path, _size: int) -> Iterator[None]:
    """The views are made by each side, from the seed."""
    yield


def on_spark(handle: SparkHandle, size: int) -> Work:
    """Our comparison on that session, once it is warm."""
    zookeeper, kraft = views(size)
    spark = handle.get(300)

    def timed() -> DiffReport:
        return compare(spark, zookeeper, kraft, (), offset=kraft.offset, lag=0, today=date(2026, 1, 1))

    for _ in range(WARM):
        timed()
    pid = driver_pid(handle)
    return Work(timed, lambda report: digest(sorted(found_by(report))), () if pid is None else (pid,))


def found_by(report: DiffReport) -> list[tuple[str, str]]:
    """(partition, field) of what differs; a partition on one side alone is one row, "" its field."""
    return [(row.key, row.field) for row in report.unexcused if row.kind == "partition"]


@contextmanager
def our_comparison(folder: Path, size: int) -> Iterator[Work]:
    """In a session of its own."""
    handle = SparkHandle.start(folder)
    try:
        yield on_spark(handle, size)
    finally:
        handle.stop()


@contextmanager
def by_pandas(_folder: Path, size: int) -> Iterator[Work]:
    """Two frames, merged on topic and partition, compared column by column; lists become tuples to be comparable."""
    zookeeper, kraft = views(size)
    timed: Callable[[], list[tuple[str, str]]] = lambda: merged(zookeeper.partitions, kraft.partitions)  # noqa: E731
    for _ in range(WARM):
        timed()
    yield Work(timed, lambda rows: digest(sorted(rows)))


def merged(left: PartitionColumns, right: PartitionColumns) -> list[tuple[str, str]]:
    """(partition, field) of what differs."""
    both = frame(left).merge(
        frame(right), on=["topic", "partition"], how="outer", suffixes=("_l", "_r"), indicator=True
    )
    names = both["topic"] + "-" + both["partition"].astype(str)
    alone = both["_merge"] != "both"
    found = [(name, "") for name in names[alone]]
    for field in FIELDS:
        found += [(name, field) for name in names[~alone & (both[f"{field}_l"] != both[f"{field}_r"])]]
    return found


def frame(columns: PartitionColumns) -> pd.DataFrame:
    """The columns that both sides have."""
    import pandas as pd  # by the process alone that races it

    def plain(name: str) -> list[Any]:
        values: list[Any] = getattr(columns, name)
        return [tuple(entry) for entry in values] if values and isinstance(values[0], list) else values

    return pd.DataFrame({name: plain(name) for name in ("topic", "partition", *FIELDS)})


RACES: Final = (
    Race(
        "comparison, warm",
        100_000,
        seconds=5.0,
        at_most=True,
        around=nothing,
        sides={"ours": our_comparison, "peer": by_pandas},
        note="pandas' outer merge, compared column by column; Spark's driver is part of our memory",
    ),
)
