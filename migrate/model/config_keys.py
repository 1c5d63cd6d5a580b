"""Which configuration keys change in which stage, and what becomes of every other: the one table (data alone).

Steps edit by it, checks and the parity matrix judge by it, playbooks are held to it, and docs/configuration.md is
made of it.  Rows end with why, and where that is known from; each was run on real clusters of Kafka 3.9.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.config_rows import CONTROLLER_DEFAULTS, OWN, SHARED

ANY: Final = ".*"  # a row's name that ends so is about every key that begins with the rest


class Moment(StrEnum):
    """When a file is written."""

    RENDERED = "controllers, rendered"
    FIRST_ROLL = "brokers, to migration mode"
    SECOND_ROLL = "brokers, to KRaft mode"
    FINALIZE = "controllers, finalize"


class Fate(StrEnum):
    """What becomes of a key.  In a controller's rendered file a broker's key is `equal`, `kept` or `left out`."""

    SET = "set"
    REMOVED = "removed"
    EQUAL = "equal"  # taken from the brokers, and must be theirs
    KEPT = "kept"  # as it stands; in a controller's file: taken from the brokers, and may differ
    LEFT = "left out"
    REFUSED = "refused"  # the node must not have it: a check stops before it starts


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key, or all that begin alike (`zookeeper.*`)."""

    name: str
    rendered: Fate
    first_roll: Fate
    second_roll: Fate
    finalize: Fate
    why: str
    source: str

    def at(self, moment: Moment) -> Fate:
        """What becomes of it then."""
        match moment:
            case Moment.RENDERED:
                return self.rendered
            case Moment.FIRST_ROLL:
                return self.first_roll
            case Moment.SECOND_ROLL:
                return self.second_roll
            case Moment.FINALIZE:
                return self.finalize

    def covers(self, key: str) -> bool:
        """Is it about that key?"""
        return key.startswith(self.name[:-1]) if self.name.endswith(ANY) else key == self.name


LETTERS: Final = {"s": Fate.SET, "r": Fate.REMOVED, "e": Fate.EQUAL, "k": Fate.KEPT, "l": Fate.LEFT, "x": Fate.REFUSED}


def _row(name: str, fates: str, why: str, source: str) -> KeyRow:
    rendered, first, second, finalize = (LETTERS[letter] for letter in fates)
    return KeyRow(name, rendered, first, second, finalize, why, source)


TABLE: Final[tuple[KeyRow, ...]] = tuple(_row(*entry) for entry in (*OWN, *SHARED, *CONTROLLER_DEFAULTS))
EXACT: Final = {row.name: row for row in TABLE if not row.name.endswith(ANY)}
PREFIXED: Final = tuple(sorted((row for row in TABLE if row.name.endswith(ANY)), key=lambda row: -len(row.name)))


def row_of(key: str) -> KeyRow | None:
    """The row that is about a key: its own before any family's, the longest family first; None: the operator's own."""
    return EXACT.get(key) or next((row for row in PREFIXED if row.covers(key)), None)


def fate(key: str, moment: Moment) -> Fate:
    """What becomes of a key: what no row names is kept in a node's own file, and left out of a rendered one."""
    row = row_of(key)
    if row is not None:
        return row.at(moment)
    return Fate.LEFT if moment is Moment.RENDERED else Fate.KEPT


def removed(keys: Iterable[str], moment: Moment) -> list[str]:
    """Those that are taken out then."""
    return [key for key in keys if fate(key, moment) is Fate.REMOVED]


def taken(keys: Iterable[str]) -> Iterator[str]:
    """Of a broker's keys, those that a controller's file takes: single ones in the table's order, then families'."""
    have = dict.fromkeys(keys)
    wanted = (Fate.EQUAL, Fate.KEPT)
    yield from (row.name for row in TABLE if row.name in have and row.rendered in wanted)
    yield from (key for key in have if key not in EXACT and fate(key, Moment.RENDERED) in wanted)


def override_fault(key: str) -> str | None:
    """Why a playbook may not set that key in the controllers' files; None where it may."""
    row = row_of(key)
    match fate(key, Moment.RENDERED):
        case Fate.SET:
            return "kraft-migrate sets this key itself"
        case Fate.EQUAL:
            return "this key must be the brokers', and is taken from their files"
        case Fate.REFUSED:
            return "a controller must not have this key"
        case Fate.LEFT if row is not None:
            return "this key is a broker's alone"
        case _:
            return None
