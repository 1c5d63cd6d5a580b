"""Each guard of the machine, switched off alone, is missed: the explorer finds what it kept from happening."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.oracles.machine import EVERY, Guard
from tests.testing.explorer.search import Visit, visit
from tests.testing.explorer.system import Bounds, System

MODEL: Final = Path(__file__).parents[2] / "docs" / "model.md"
LONGEST: Final = 100  # lines of a trace that a person still reads
# guard -> faults that are needed to miss it, and the promise that breaks
MISSED: Final[dict[Guard, tuple[int, str]]] = {
    Guard.STALE_MIGRATION: (1, "G4"),
    Guard.UNKNOWN: (1, "G4"),
    Guard.LOCK: (1, "G6"),
    Guard.FLAG: (1, "G2"),
    Guard.WHOLE: (0, "G8"),
    Guard.ZERO_DIFFERENCE: (1, "G2"),
    Guard.LEDGER: (0, "G8"),
    Guard.ALL_KRAFT: (0, "G2"),
    Guard.LEADER_LAST: (0, "G8"),
    Guard.STALENESS: (1, "G7"),
    Guard.DISKS: (1, "G8"),
    Guard.SESSION: (1, "G8"),
    Guard.CONTROLLERS_GONE: (0, "G3"),
    Guard.DUAL_WRITE: (0, "G3"),
    Guard.VERSIONS: (0, "G8"),
    Guard.EPOCH: (0, "G3"),
    Guard.MIGRATION_GONE: (0, "G3"),
    Guard.BELIEF: (0, "G8"),
    Guard.KRAFT_FIRST: (0, "G8"),
    Guard.NO_RETURN: (1, "G3"),
}


def without(guard: Guard, *, faults: int, wanted: str = "") -> Visit:
    """The visit of a machine that lacks it."""
    return visit(System(Bounds(engines=1, faults=faults), EVERY - {guard}), wanted=wanted, most=2_000_000)


def test_every_guard_has_its_mutation() -> None:
    """None is forgotten."""
    assert set(MISSED) == set(Guard)


@pytest.mark.slow
@pytest.mark.parametrize("guard", MISSED, ids=lambda guard: guard.name.lower())
def test_a_guard_that_is_switched_off_is_missed(guard: Guard) -> None:
    """By the shortest way to the breach, in lines that a person reads."""
    faults, promise = MISSED[guard]
    found = without(guard, faults=faults)
    assert found.breach.startswith(promise), found
    assert found.trace[-2].endswith(f"<- BREACH {found.breach}")
    assert len(found.trace) <= LONGEST
    assert all(re.match(r" *\d+  ", line) for line in found.trace[:-1])


@pytest.mark.slow
def test_without_the_check_of_migration_zookeeper_is_emptied() -> None:
    """What the breach leads to, if it goes on: the accident of the field, move by move."""
    found = without(Guard.STALE_MIGRATION, faults=1, wanted="G1")
    assert found.breach == "G1: ZooKeeper is emptied"
    lines = "\n".join(found.trace)
    assert "an earlier attempt left /migration behind" in lines
    assert "the driver skips the copy: /migration says that it was made" in lines


@pytest.mark.slow
def test_a_rollback_that_leaves_migration_behind_ends_in_an_emptied_zookeeper() -> None:
    """With both checks gone: rolled back, migrated again, and everything is lost."""
    system = System(Bounds(engines=1, faults=0), EVERY - {Guard.MIGRATION_GONE, Guard.STALE_MIGRATION})
    found = visit(system, wanted="G1")
    assert found.breach == "G1: ZooKeeper is emptied"
    assert sum("takes the lock: back" in line for line in found.trace) == 1


@pytest.mark.parametrize("guard", [Guard.STALE_MIGRATION, Guard.LOCK], ids=lambda guard: guard.name)
def test_the_traces_that_the_page_shows_are_the_explorers(guard: Guard) -> None:
    """As kept in docs/model.md."""
    found = without(guard, faults=MISSED[guard][0])
    assert "\n".join(found.trace) in MODEL.read_text()
