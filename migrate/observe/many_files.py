"""Many clusters' files compared at once: each cluster is read in a process of its own pool, all differences by one job.

A process hands back what agrees, by fingerprints (`migrate.observe.agreement`), and of both sides the rows of topics
that do not, with all of the rest that they do not say alike of topics; these cross to Spark, whose one job gives every
difference of all clusters its class.  So memory is that of as many clusters as there are processes, and what a whole
comparison costs is what decoding costs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Self

from migrate.errors import Defect, MigrateError, NotVisible
from migrate.kraft.files import find
from migrate.model.difference import DiffReport
from migrate.model.fleet import FilePair, NotRead
from migrate.model.secrets import Digester
from migrate.model.views import KraftView, ZookeeperView
from migrate.observe.agreement import Agreement, apart, whole
from migrate.observe.offline import open_files, read_sides
from migrate.zookeeper.offline.reader import ZookeeperFiles

if TYPE_CHECKING:
    from migrate.diff.session import SparkHandle


@dataclass(frozen=True, slots=True)
class Read:
    """What is left of a cluster once both its sides were read: `zookeeper` and `kraft` have the rows that differ.

    `equal` is how much both said alike of topics, by kind; that is in neither.
    """

    found: Agreement
    zookeeper: ZookeeperView
    kraft: KraftView
    equal: Mapping[str, int]


def not_read(error: MigrateError) -> NotRead:
    """An error as the answer of its cluster."""
    return NotRead(error.id, error.what, error.where, error.why, error.next_step, error.exit_code)


def read_pair(pair: FilePair) -> Read | NotRead:
    """Both sides of one cluster; what it raises is its answer."""
    try:
        tree = open_files(ZookeeperFiles(pair.zookeeper, pair.chroot))
        sides = read_sides(tree, find(Path(pair.metadata)), Digester())
        found = sides.agreement()
        zookeeper, kraft = sides.views(found.differing)
    except MigrateError as error:
        return not_read(error)
    except Exception as error:  # noqa: BLE001 - one cluster's damage is that cluster's, a defect of ours included
        return not_read(Defect(f"{type(error).__name__}: {error}"))
    ours, theirs, equal = apart(zookeeper.entities, kraft.entities)
    # mzxids are as many as znodes, and nobody asks for them
    return Read(found, replace(zookeeper, entities=ours, mzxids={}), replace(kraft, entities=theirs), equal)


class FilesPool:
    """Processes that read clusters' files, as many as cores unless said otherwise; they end with the block."""

    def __init__(self, handle: SparkHandle, processes: int | None = None) -> None:
        self._handle = handle
        count = processes or os.cpu_count() or 1
        # spawned: our own process has threads, and Spark's gateway, which a fork would share
        self._pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_quiet)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def compare(self, pairs: Sequence[FilePair], today: date) -> list[DiffReport | NotRead]:
        """The comparison of each, in their order; Spark's one job has the differing rows of all.

        Raises:
            SparkDidNotStart: the session did not come up.
            SparkGone: it ended under the comparison.
        """
        found = self.read(pairs)
        reports = iter(self._reports([one for one in found if isinstance(one, Read)], today))
        return [one if isinstance(one, NotRead) else next(reports) for one in found]

    def read(self, pairs: Sequence[FilePair]) -> list[Read | NotRead]:
        """Both sides of each, in their order."""
        try:
            begun = [self._pool.submit(read_pair, pair) for pair in pairs]
        except BrokenProcessPool as error:
            return [_lost(pair, error) for pair in pairs]
        return [_answer(pair, one) for pair, one in zip(pairs, begun, strict=True)]

    def _reports(self, read: Sequence[Read], today: date) -> list[DiffReport]:
        if not read:
            return []
        session = self._handle.get()  # first: pyspark is imported by who starts it, not by two threads at once
        from migrate.diff.compare import Question, compare_many

        found = compare_many(session, [Question(one.zookeeper, one.kraft) for one in read], today=today)
        return [whole(report, one.found, one.equal) for report, one in zip(found, read, strict=True)]


def _answer(pair: FilePair, begun: Future[Read | NotRead]) -> Read | NotRead:
    try:
        return begun.result()
    except BrokenProcessPool as error:
        return _lost(pair, error)


def _lost(pair: FilePair, error: BrokenProcessPool) -> NotRead:
    """A process was killed, for its memory perhaps: then those behind it are not read either."""
    return not_read(NotVisible("a process that read clusters' files ended", where=pair.metadata, why=str(error)))


def _quiet() -> None:
    """Ctrl-C is our own process's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
