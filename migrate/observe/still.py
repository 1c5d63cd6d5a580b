"""A comparison, and a ledger, that need not be made again: of views that hold just what they held then.

Every value is compared with what it was; where readers share what has not changed between one view and the next
(`migrate.kraft.image`, `migrate.zookeeper.again`) the columns are the same ones, which costs nothing.  So a wait whose
gate compares every field does it once, and again when anything changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Generic, Protocol, Self, TypeVar

from migrate.model.difference import DiffReport
from migrate.model.facts import DisksByBroker
from migrate.model.inventory import AcceptedDifference
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.views import BrokerDisks, KraftView, ZookeeperView


@dataclass(frozen=True, slots=True)
class Question:
    """What was compared, on which day (an acceptance may end)."""

    zookeeper: ZookeeperView
    kraft: KraftView
    accepted: tuple[AcceptedDifference, ...]
    today: date

    def is_still(self, other: Question) -> bool:
        """Is all that a comparison looks at the same?"""
        ours, theirs, ours_then, theirs_then = self.zookeeper, self.kraft, other.zookeeper, other.kraft
        return (
            (ours.brokers, ours.pending, ours.blind_spots, ours.malformed)
            == (ours_then.brokers, ours_then.pending, ours_then.blind_spots, ours_then.malformed)
            and (theirs.brokers, theirs.features) == (theirs_then.brokers, theirs_then.features)
            and (self.accepted, self.today) == (other.accepted, other.today)
            and (ours.entities, theirs.entities) == (ours_then.entities, theirs_then.entities)
            and (ours.partitions, theirs.partitions) == (ours_then.partitions, theirs_then.partitions)
        )


class _Question(Protocol):
    """What was asked; `is_still` says whether its answer is another one's too."""

    def is_still(self, other: Self) -> bool:
        """Is all that the answer depends on the same?"""


Q = TypeVar("Q", bound=_Question)
A = TypeVar("A")


class Last(Generic[Q, A]):
    """The last answer, for questions that are still the same."""

    def __init__(self) -> None:
        self._last: tuple[Q, A] | None = None

    def answer(self, question: Q) -> A | None:
        """It, where it is that of this question too, at the offset of then; None: ask."""
        return self._last[1] if self._last is not None and question.is_still(self._last[0]) else None

    def keep(self, question: Q, found: A) -> None:
        """For the next time."""
        self._last = (question, found)


class Compared(Last[Question, DiffReport]):
    """The last comparison that found nothing unexcused."""

    def keep(self, question: Question, found: DiffReport) -> None:
        """For the next time; one that is to be looked at again is not kept, and what was kept before it is gone."""
        super().keep(question, found)
        if found.unexcused or found.cut or found.unsettled:
            self._last = None


@dataclass(frozen=True, slots=True)
class LedgerQuestion:
    """What a ledger is made of: whose replicas, on which disks, and how far the migration is."""

    zookeeper: ZookeeperView | Unknown
    kraft: KraftView | Unknown
    disks: DisksByBroker | Unknown
    after_copy: bool
    finalized: bool

    def is_still(self, other: LedgerQuestion) -> bool:
        """Is all that a ledger looks at the same?"""
        return self._held() == other._held()

    def _held(self) -> tuple[object, ...]:
        ours, theirs = self.zookeeper, self.kraft
        return (
            (self.after_copy, self.finalized),
            ours if isinstance(ours, Unknown) else (ours.malformed, ours.partitions),
            theirs if isinstance(theirs, Unknown) else (theirs.brokers, theirs.partitions),
            self.disks
            if isinstance(self.disks, Unknown)
            else {node: _replicas(seen) for node, seen in self.disks.items()},
        )


def _replicas(seen: BrokerDisks | Unknown) -> object:
    """What lies where, and what is broken; no ledger asks for free space and for the metadata log's size."""
    if isinstance(seen, Unknown):
        return seen
    return [replace(directory, free_bytes=-1, metadata_log_bytes=-1) for directory in seen.directories]


class LedgerKept(Last[LedgerQuestion, Ledger]):
    """Spark's last ledger, which was the pure rule's row by row."""
