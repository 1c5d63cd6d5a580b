"""A comparison that need not be made again: of the same two views, of which nothing is another since.

Readers share what has not changed between one view and the next (`migrate.kraft.image`, `migrate.zookeeper.again`): the
same columns, not equal ones.  So a wait whose gate compares every field does it once, and again when anything changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from migrate.model.difference import DiffReport
from migrate.model.inventory import AcceptedDifference
from migrate.model.views import KraftView, ZookeeperView


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
            ours.partitions is ours_then.partitions
            and ours.entities is ours_then.entities
            and theirs.partitions is theirs_then.partitions
            and theirs.entities is theirs_then.entities
            and (ours.brokers, ours.pending, ours.blind_spots, ours.malformed)
            == (ours_then.brokers, ours_then.pending, ours_then.blind_spots, ours_then.malformed)
            and (theirs.brokers, theirs.features) == (theirs_then.brokers, theirs_then.features)
            and (self.accepted, self.today) == (other.accepted, other.today)
        )


class Compared:
    """The last comparison that found nothing unexcused."""

    def __init__(self) -> None:
        self._last: tuple[Question, DiffReport] | None = None

    def answer(self, question: Question) -> DiffReport | None:
        """Its report, where it is that of this question too; None: compare."""
        return self._last[1] if self._last is not None and question.is_still(self._last[0]) else None

    def keep(self, question: Question, report: DiffReport) -> None:
        """For the next time."""
        self._last = None if report.unexcused or report.cut or report.unsettled else (question, report)
