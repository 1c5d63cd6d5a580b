"""The breadth-first visit of the whole bounded model, and the shortest way to a breach as a readable trace."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tests.testing.explorer.cluster import told
from tests.testing.explorer.system import System


@dataclass(frozen=True, slots=True)
class Visit:
    """What a visit met: states, transitions, the longest shortest way, CPU seconds, the first breach, its trace."""

    states: int
    transitions: int
    depth: int
    clusters: int
    seconds: float
    whole: bool  # False: it was stopped by its bound
    breach: str
    trace: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Transitions a second."""
        return self.transitions / max(self.seconds, 1e-9)


def visit(system: System, *, most: int = 1 << 40, wanted: str = "") -> Visit:
    """Visit breadth first until everything is seen, a breach is found, or `most` transitions were made.

    With `wanted`, only a breach that begins with it counts: what the earlier ones lead to.
    """
    began = time.process_time()
    first = system.start()
    parents: dict[int, int] = {first: -1}
    level, depth, transitions, breach = [first], 0, 0, ""
    trace: tuple[str, ...] = ()
    steps, twins = system.steps, system.folded if system.bounds.engines > 1 else int
    while level and not breach and transitions < most:
        following: list[int] = []
        for state in level:
            for _, after, wrong in steps(state):
                transitions += 1
                if wrong and wrong.startswith(wanted):
                    breach, trace = wrong, _trace(system, parents, state, after)
                    break
                if after not in parents:
                    after = twins(after)  # noqa: PLW2901 - the same state under one name
                    if after not in parents:
                        parents[after] = state
                        following.append(after)
            if breach or transitions >= most:
                break
        depth += 1
        level = following if not (breach or transitions >= most) else level
    return Visit(
        states=len(parents),
        transitions=transitions,
        depth=depth,
        clusters=len(system.clusters),
        seconds=time.process_time() - began,
        whole=not breach and transitions < most,
        breach=breach,
        trace=trace,
    )


def _trace(system: System, parents: dict[int, int], state: int, last: int) -> tuple[str, ...]:
    """One line an event, from the start to the breach."""
    path = [last, state]
    while parents[path[-1]] != -1:
        path.append(parents[path[-1]])
    path.reverse()
    here, lines = path[0], [f"  0  {told(system.cluster(path[0]))}"]
    for number, wanted in enumerate(path[1:], 1):
        # engines keep their names: of each state met, the one of the two twins that follows the line before
        text, here, wrong = next(step for step in system.steps(here) if wanted in (step[1], system.folded(step[1])))
        lines.append(f"{number:3}  {text}" + (f"   <- BREACH {wrong}" if wrong else ""))
    lines.append(f"     {told(system.cluster(here))}")
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class Ways:
    """From how many states, without a further fault, an end can be reached; `dead` are clusters from which none can."""

    states: int
    forward: int
    back: int
    dead: tuple[str, ...]


def ways(system: System) -> Ways:
    """Visit everything, then ask of every state: does a way lead from it to the end of one of the directions?

    Only what is fair leads there: no fault, and engines that are asked for that direction.
    """
    seen, left = {system.start()}, [system.start()]
    backwards: dict[str, dict[int, list[int]]] = {"forward": {}, "back": {}}
    ends: dict[str, list[int]] = {"forward": [], "back": []}
    while left:
        state = left.pop()
        for text, after, _ in system.steps(state):
            if after not in seen:
                seen.add(after)
                left.append(after)
            if text.startswith("FAULT"):
                continue
            for direction, edges in backwards.items():
                other = "back" if direction == "forward" else "forward"
                if not text.endswith(f"takes the lock: {other}"):
                    edges.setdefault(after, []).append(state)
            if text.endswith("its goal is reached"):
                ends["back" if system.asked_back(state) else "forward"].append(state)
    reached = {direction: _from(ends[direction], edges) for direction, edges in backwards.items()}
    dead = {told(system.cluster(state)) for state in seen - reached["forward"] - reached["back"]}
    return Ways(len(seen), len(reached["forward"]), len(reached["back"]), tuple(sorted(dead)))


def _from(ends: list[int], edges: dict[int, list[int]]) -> set[int]:
    found, left = set(ends), list(ends)
    while left:
        for before in edges.get(left.pop(), ()):
            if before not in found:
                found.add(before)
                left.append(before)
    return found
