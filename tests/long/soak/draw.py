"""What a round of the soak does, drawn from its seed alone: the same seed draws the same round, on every Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")

# the way there, stage by stage; the round turns back after one of the last ones
STAGES: Final = ("prepare", "controllers", "migration-mode", "copy", "hybrid", "kraft-mode", "soak")
REACHED: Final = ("copy", "hybrid")  # planned alone they have no step: the stage before has led there
GOALS: Final = ("hybrid", "kraft-mode", "soak")
LEGS: Final = ("there", "back", "again")
BROKERS: Final = 3
DISKS: Final = 3

# rows of the fault matrix; each strikes once and is mended
FAULTS: Final = (
    "tool-killed",
    "tool-paused",
    "tool-interrupted",
    "second-apply",
    "run-folder-full",
    "broker-killed",
    "active-controller-killed",
    "active-controller-paused",
    "zookeeper-killed",
    "zookeeper-paused",
    "link-cut",
    "disk-gone",
)
LONGEST_DELAY: Final = 3.0
SHORTEST_HOLD, LONGEST_HOLD = 4.0, 25.0


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault: where in its leg, on whom, how long after the step began, and how long it stands.

    `stage` is the stage whose plan it strikes ("" where the leg is one plan); `share` is the place of the step in that
    plan's steps, from 0 up to 1; seconds everywhere.
    """

    fault: str
    stage: str
    share: float
    delay: float
    hold: float
    broker: int
    disk: int


@dataclass(frozen=True, slots=True)
class Round:
    """One round: how far it goes before it turns back, stage by stage or not, and the fault of each leg by its name."""

    seed: int
    goal: str
    by_stages: bool
    strikes: dict[str, Strike]


def number(seed: int, *words: object) -> float:
    """A number from 0 up to 1 that belongs to a seed and those words."""
    text = ":".join(map(str, (seed, *words)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / (1 << 56)


def choice(seed: int, what: str, among: Sequence[T]) -> T:
    """One of them."""
    return among[int(number(seed, what) * len(among))]


def round_seed(seed: int, index: int) -> int:
    """The seed of a soak's round, the first is 0: nine digits, so that a person can type it."""
    return int(number(seed, "round", index) * 1_000_000_000)


def draw(seed: int) -> Round:
    """The round of that seed."""
    goal, by_stages = choice(seed, "goal", GOALS), choice(seed, "manner", (True, False))
    return Round(seed, goal, by_stages, {leg: _strike(seed, leg, goal, by_stages) for leg in LEGS})


def stages_to(goal: str) -> tuple[str, ...]:
    """The stages of the way there."""
    return STAGES[: STAGES.index(goal) + 1]


def step_at(share: float, steps: Sequence[str]) -> int:
    """Which of a plan's steps: its place."""
    return min(int(share * len(steps)), len(steps) - 1)


def _strike(seed: int, leg: str, goal: str, by_stages: bool) -> Strike:
    stages = [stage for stage in stages_to(goal) if stage not in REACHED]
    return Strike(
        fault=choice(seed, f"{leg} fault", FAULTS),
        stage=choice(seed, f"{leg} stage", stages) if leg == "there" and by_stages else "",
        share=round(number(seed, leg, "share"), 3),
        delay=round(number(seed, leg, "delay") * LONGEST_DELAY, 1),
        hold=round(SHORTEST_HOLD + number(seed, leg, "hold") * (LONGEST_HOLD - SHORTEST_HOLD), 1),
        broker=int(number(seed, leg, "broker") * BROKERS),
        disk=int(number(seed, leg, "disk") * DISKS),
    )
