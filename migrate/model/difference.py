"""Differences between ZooKeeper and KRaft, field by field, with their class; and where they are computed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, field
from datetime import date
from enum import StrEnum
from typing import Final

from migrate.model import strict_json
from migrate.model.inventory import AcceptedDifference


class DifferenceClass(StrEnum):
    """EQUAL is counted only; EXPECTED names the rule that excuses the row, with Kafka's source."""

    EQUAL = "EQUAL"
    ONLY_ZK = "ONLY_ZK"
    ONLY_KRAFT = "ONLY_KRAFT"
    DIFFERS = "DIFFERS"
    EXPECTED = "EXPECTED"
    ACCEPTED = "ACCEPTED"


BY_RULE: Final = frozenset({DifferenceClass.EQUAL, DifferenceClass.EXPECTED})
EXCUSED: Final = BY_RULE | {DifferenceClass.ACCEPTED}


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one key.  Values are text, None where that side has none; secrets are digests."""

    kind: str
    key: str
    field: str
    cls: DifferenceClass
    zookeeper: str | None
    kraft: str | None
    rule: str = ""
    zookeeper_where: str = ""  # where it was read: a znode
    kraft_where: str = ""  # a metadata offset

    @property
    def side(self) -> DifferenceClass:
        """ONLY_ZK, ONLY_KRAFT or DIFFERS, also where a rule or an acceptance excuses it."""
        if self.kraft is None:
            return DifferenceClass.ONLY_ZK
        return DifferenceClass.ONLY_KRAFT if self.zookeeper is None else DifferenceClass.DIFFERS


@dataclass(frozen=True, slots=True, order=True)
class DifferenceName:
    """What a difference is about and on which side it stands; its values are left out: they may move, or be secret."""

    kind: str
    key: str
    field: str
    cls: str

    @classmethod
    def of(cls, row: Difference) -> DifferenceName:
        return cls(row.kind, row.key, row.field, row.side.value)

    def __str__(self) -> str:
        return f"{self.cls} {self.kind} {self.key} {self.field}".rstrip()


def names_to_text(names: Iterable[DifferenceName]) -> str:
    """The names as one text, the same for the same names; "" for none."""
    found = sorted(set(names))
    return json.dumps([astuple(name) for name in found], separators=(",", ":")) if found else ""


def names_from_text(text: str) -> frozenset[DifferenceName]:
    """The names that `names_to_text` wrote; ValueError or TypeError for any other text."""
    return frozenset(DifferenceName(*entry) for entry in strict_json.loads(text)) if text else frozenset()


class IdleReason(StrEnum):
    UNUSED = "unused"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class IdleAcceptance:
    """An entry of an AcceptedDifferences file that excuses nothing (any more)."""

    entry: AcceptedDifference
    why: IdleReason


REGISTRATION: Final = "broker"  # the kind of row that no controller writes to ZooKeeper: each broker makes its own
NOTHING_COMPARED: Final = "nothing was compared: two empty views prove nothing"


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The comparison at one offset.

    `counts` is kind -> class -> number of compared fields.  `differences` holds all rows that are not EQUAL.
    `blind_spots` are kinds or keys that could not be compared, each with the reason.  `unsettled` are rows that
    differed in every look and changed between all of them: neither equal nor different, and in no count.  `idle` are
    acceptances without effect.  `looks` is how often both sides were read.
    """

    offset: int
    lag: int
    counts: Mapping[str, Mapping[str, int]]
    differences: tuple[Difference, ...]
    blind_spots: tuple[str, ...] = field(default=())
    unsettled: tuple[Difference, ...] = ()
    idle: tuple[IdleAcceptance, ...] = ()
    looks: int = 1

    @property
    def compared(self) -> int:
        """How many fields."""
        return sum(sum(classes.values()) for classes in self.counts.values())

    @property
    def is_empty(self) -> bool:
        """Were both sides empty?  That proves nothing."""
        return not self.compared and not self.unsettled

    @property
    def unexcused(self) -> tuple[Difference, ...]:
        return self._outside(EXCUSED)

    @property
    def unexcused_counts(self) -> dict[str, int]:
        """How many of these there are by kind, those that are not listed as well."""
        return {kind: number for kind in self.counts if (number := self._counted(kind, EXCUSED))}

    @property
    def unexcused_total(self) -> int:
        """All of them."""
        return sum(self.unexcused_counts.values())

    @property
    def cut(self) -> bool:
        """Are there more unexcused differences than are listed?"""
        return self._cut(EXCUSED)

    @property
    def uncovered(self) -> tuple[Difference, ...]:
        """Differences that no rule covers, those that the playbook accepts for the way to KRaft as well."""
        return self._outside(BY_RULE)

    def standing(self, discarded: Collection[DifferenceName] = ()) -> tuple[Difference, ...]:
        """Differences that a rollback would make permanent and that nobody has given up.

        What the playbook accepts was accepted for the way to KRaft: a rollback gives it up by its own list alone.
        """
        return tuple(
            row for row in self.uncovered if row.kind != REGISTRATION and DifferenceName.of(row) not in discarded
        )

    @property
    def uncovered_cut(self) -> bool:
        """Are there more of these than are listed?"""
        return self._cut(BY_RULE)

    def _outside(self, excused: frozenset[DifferenceClass]) -> tuple[Difference, ...]:
        return tuple(entry for entry in self.differences if entry.cls not in excused)

    def _cut(self, excused: frozenset[DifferenceClass]) -> bool:
        return sum(self._counted(kind, excused) for kind in self.counts) > len(self._outside(excused))

    def _counted(self, kind: str, excused: frozenset[DifferenceClass]) -> int:
        return sum(number for name, number in self.counts[kind].items() if name not in excused)


def current(accepted: Iterable[AcceptedDifference], today: date) -> tuple[AcceptedDifference, ...]:
    """Acceptances that still hold: from the day of `expires` on they count as differences again."""
    return tuple(entry for entry in accepted if today < date.fromisoformat(entry.expires))


LOCAL: Final = "local[2]"


@dataclass(frozen=True, slots=True)
class SparkWhere:
    """The master in Spark's own words, and settings that win over ours."""

    master: str = LOCAL  # local[2], spark://host:7077, yarn, k8s://..., sc://host:15002
    conf: Mapping[str, str] = field(default_factory=dict)  # they stand on a command line: no secrets

    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Does another process hold the driver, a Spark Connect server?"""
        return self.master.startswith("sc://")
