"""Differences between ZooKeeper and KRaft, field by field, with their class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class DifferenceClass(StrEnum):
    """EQUAL is counted only; EXPECTED names the rule that excuses the row, with Kafka's source."""

    EQUAL = "EQUAL"
    ONLY_ZK = "ONLY_ZK"
    ONLY_KRAFT = "ONLY_KRAFT"
    DIFFERS = "DIFFERS"
    EXPECTED = "EXPECTED"
    ACCEPTED = "ACCEPTED"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one key.  Values are text; secrets are digests."""

    kind: str
    key: str
    field: str
    cls: DifferenceClass
    zookeeper: str | None
    kraft: str | None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The comparison at one offset.

    `counts` is kind -> class -> number of compared fields.  `differences` holds all rows that are not EQUAL.
    `blind_spots` are kinds or keys that could not be compared, each with the reason.
    """

    offset: int
    lag: int
    counts: Mapping[str, Mapping[str, int]]
    differences: tuple[Difference, ...]
    blind_spots: tuple[str, ...] = field(default=())

    @property
    def unexcused(self) -> tuple[Difference, ...]:
        """Differences that no rule and no acceptance covers."""
        excused = (DifferenceClass.EXPECTED, DifferenceClass.ACCEPTED, DifferenceClass.EQUAL)
        return tuple(entry for entry in self.differences if entry.cls not in excused)
