"""Kills a run at every point, and every recovery at every point, and so on, until nothing is new.

What a run does next is a function of three things: the cluster, the steps that its journal says were begun and
concluded, and the notes in it.  So a kill that leaves these as another kill left them needs no second try: the set of
states that kills can reach is finite, and all of it is walked.  That is more than every pair of kills: it is every
number of them.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrate.model.history import concluded
from migrate.model.plan import Plan
from migrate.run import journal as journals
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.engine import Engine, Machinery
from migrate.run.journal import Journal
from tests.testing.open_gate import OpenGate
from tests.testing.simulated import AsAsked, FakeClock, SimulatedCluster

Key = tuple[Any, ...]
VOLATILE = ("bend", "clock", "elsewhere", "cleaned", "moving", "behind")  # functions of a test, not state of a cluster


class Free:
    """A lock that is always ours."""

    def still_ours(self) -> None:
        """Nothing."""

    def release_zookeeper(self) -> None:
        """Nothing."""

    def release(self) -> None:
        """Nothing."""


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory, where there is one: hundreds of runs fsync each of their lines."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def frozen(value: Any) -> Any:
    """A value as something that hashes."""
    if isinstance(value, dict):
        return frozenset((key, frozen(entry)) for key, entry in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return frozenset(map(frozen, value)) if isinstance(value, set | frozenset) else value


def state_of(cluster: SimulatedCluster) -> Key:
    """Everything that a cluster is."""
    names = [name for cls in type(cluster).__mro__ for name in getattr(cls, "__slots__", ())]
    return tuple((name, frozen(getattr(cluster, name))) for name in sorted(names) if name not in VOLATILE)


@dataclass(frozen=True)
class Left:
    """What a kill left: the cluster, the journal's bytes, and the points at which the kills came."""

    cluster: SimulatedCluster
    journal: bytes
    kills: tuple[str, ...]


@dataclass
class Walk:
    """All states that kills can reach from a beginning."""

    plan: Plan
    done: list[str]  # the effects of a run that nobody killed
    files: dict[tuple[int, str], bytes]
    seen: set[Key] = field(default_factory=set)
    waiting: list[Left] = field(default_factory=list)
    points: int = 0  # kills that were looked at
    recoveries: int = 0
    deepest: int = 0

    def note(self, cluster: SimulatedCluster, journal: Journal, kills: tuple[str, ...], *, torn: bool) -> None:
        """A kill here; `torn`: half of the journal's last line is not on the disk."""
        self.points += 1
        events = journal.events
        key = (
            state_of(cluster),
            concluded(events),
            journals.begun(events),
            frozenset(journals.notes(events).items()),
            torn,
        )
        if key in self.seen:
            return
        self.seen.add(key)
        raw = journal.path.read_bytes()
        if torn:
            start = raw.rfind(b"\n", 0, len(raw) - 1) + 1
            raw = raw[: (start + len(raw)) // 2]
        self.waiting.append(Left(copy.deepcopy(cluster), raw, kills))


class Everywhere:
    """Crash points that kill nobody, and write down what a kill would have left."""

    def __init__(self, walk: Walk, cluster: SimulatedCluster, kills: tuple[str, ...]) -> None:
        self.walk, self.cluster, self.kills = walk, cluster, kills
        self.journal: Journal | None = None
        self.passed = 0

    def reach(self, label: str) -> None:
        """Note it; a line that is written and not yet fsynced is torn by a crash of the host.

        Lost or whole it leaves what the point before or behind it leaves.
        """
        self.passed += 1
        assert self.journal is not None
        torn = label.startswith("unsynced:")
        self.walk.note(self.cluster, self.journal, (*self.kills, label), torn=torn)


def carry_out(cluster: SimulatedCluster, plan: Plan, path: Path, crash: Any) -> Journal:
    """One run, from wherever the journal stands."""
    clock = FakeClock()
    journal = Journal.resume(path) if path.exists() else Journal.begin(path, 0.0, {"plan": plan.fingerprint})
    crash.journal = journal
    journal.between = crash.reach
    hands = Hands(
        cluster, cluster, lambda: cluster, cluster.drive, not_storing=cluster.not_storing,
    )  # fmt: skip
    effects = JournaledEffects(hands, journal, Free(), clock, path.parent, crash)
    try:
        Engine(
            plan,
            Machinery(AsAsked(cluster), effects, journal, Free(), clock, lambda _: 60.0, lambda _: None, OpenGate()),
        ).run()
    finally:
        journal.close()
    return journal


def walk_all_kills(start: Callable[[], SimulatedCluster], plan: Plan, folder: Path, *, most: int | None = None) -> Walk:
    """Every kill of a run and of its recoveries; each recovery must end as the run that nobody killed.

    `most` bounds the recoveries (the first ones in the order of their discovery: single kills come before double ones).
    """
    reference = start()
    (folder / "reference").mkdir()
    carry_out(reference, plan, folder / "reference" / "journal.jsonl", Everywhere(Walk(plan, [], {}), reference, ()))
    walk = Walk(plan, list(reference.done), dict(reference.files))
    first = start()
    (folder / "first").mkdir()
    carry_out(first, plan, folder / "first" / "journal.jsonl", Everywhere(walk, first, ()))
    while walk.waiting and (most is None or walk.recoveries < most):
        recover(walk, walk.waiting.pop(0), folder)
    return walk


def recover(walk: Walk, left: Left, folder: Path) -> None:
    """The same command again."""
    walk.recoveries += 1
    walk.deepest = max(walk.deepest, len(left.kills))
    path = folder / str(walk.recoveries) / "journal.jsonl"
    path.parent.mkdir()
    path.write_bytes(left.journal)
    try:
        if not journals.read(path).events:
            path.unlink()
        carry_out(left.cluster, walk.plan, path, Everywhere(walk, left.cluster, left.kills))
    except Exception as error:
        raise AssertionError(f"killed at {' then '.join(left.kills)}: {type(error).__name__}: {error}") from error
    where = f"killed at {' then '.join(left.kills)}"
    assert left.cluster.done == walk.done, where
    assert left.cluster.files == walk.files, where
    path.unlink()
