"""Seeded walks through models that are too large to be visited: one integer, one line an event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.oracles.machine import EVERY, Guards
from tests.testing.explorer.cluster import told
from tests.testing.explorer.system import Bounds, System


def numbers(seed: int) -> Iterator[int]:
    """Steele's SplitMix64: the same numbers for a seed on every machine and every Python."""
    mask = (1 << 64) - 1
    state = seed & mask
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        yield mixed ^ (mixed >> 31)


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk met: how far it got, its breach ("" for none), one line an event."""

    seed: int
    steps: int
    breach: str
    lines: tuple[str, ...]


def walk(bounds: Bounds, *, seed: int, steps: int, guards: Guards = EVERY) -> Walk:
    """Choose at random among what may happen; a fault befalls one step in forty, so that walks get somewhere."""
    chance = numbers(seed)
    system = System(bounds, guards)
    state = system.start()
    lines = [f"seed {seed}: {told(system.cluster(state))}"]
    for number in range(1, steps + 1):
        choices = list(system.steps(state))
        calm = [step for step in choices if not step[0].startswith("FAULT")]
        among = calm if calm and next(chance) % 40 else choices
        text, state, breach = among[next(chance) % len(among)]
        lines.append(f"{number:5}  {text}" + (f"   <- BREACH {breach}" if breach else ""))
        if breach:
            return Walk(seed, number, breach, tuple(lines))
    return Walk(seed, steps, "", tuple(lines))


if __name__ == "__main__":
    import sys

    found = walk(Bounds(brokers=3, engines=2, faults=3), seed=int(sys.argv[1]), steps=2_000)
    sys.stdout.write("\n".join(found.lines) + "\n")
