"""What a journal's own times tell: the time without a controller, and how long each broker was away (pure).

Times are those of our own acts and proofs, so they are bounds from above: the cluster was never without a controller
for longer than from the first stop that the quorum noticed to the znode's deletion, and no broker away for longer than
from its stop to its proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.history import Event

CONTROLLER: Final = "/controller"
GAP: Final = "gap:controller"
AWAY: Final = "away:"


@dataclass(frozen=True, slots=True)
class Gap:
    """From the stop that takes the quorum's majority to the end of /controller's deletion, in the epoch's seconds."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """How long."""
        return self.ended - self.began


def controller_gap(events: Iterable[Event], stop_step: str = "stop-controllers") -> Gap | None:
    """The gap of a rollback; None where /controller was not deleted, or no controller stopped by this journal.

    A majority is lost with the second stop of three: half of the stops, rounded up.
    """
    stops, deleted, pending = [], None, False
    for event in events:
        deletes = event.name in ("effect", "effected") and event.data["effect"] == "delete-znode"
        deletes = deletes and event.data["node"] == CONTROLLER
        if pending or (deletes and event.name == "effected"):
            deleted, pending = event.time, False  # its end; killed before it was written: the next sign of life
        if event.name == "effect" and event.data["effect"] == "stop" and event.data["step"].endswith(stop_step):
            stops.append(event.time)
        pending = deletes and event.name == "effect"
    if not stops or deleted is None:
        return None
    return Gap(stops[len(stops) // 2], deleted)


def away(events: Iterable[Event]) -> dict[int, float]:
    """Node -> seconds from the first order to stop it, in each step, to that step's proof, added up."""
    stopped: dict[str, tuple[int, float]] = {}
    found: dict[int, float] = {}
    for event in events:
        if event.name == "effect" and event.data["effect"] == "stop" and not event.data["step"].endswith("controllers"):
            stopped.setdefault(event.data["step"], (int(event.data["node"]), event.time))
        elif event.name == "conclude" and event.data["step"] in stopped:
            if event.data["outcome"] not in ("Verified", "AlreadyDone"):
                continue  # refused half way: the node is still down
            node, began = stopped.pop(event.data["step"])
            found[node] = found.get(node, 0.0) + event.time - began
    return found


def notes(events: Iterable[Event]) -> Mapping[str, str]:
    """Both as the journal's notes: `gap:controller`, `away:1`; seconds as text."""
    listed = tuple(events)
    found = {f"{AWAY}{node}": f"{seconds:.1f}" for node, seconds in sorted(away(listed).items())}
    gap = controller_gap(listed)
    return found if gap is None else {GAP: f"{gap.seconds:.1f}", **found}
