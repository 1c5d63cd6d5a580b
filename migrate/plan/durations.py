"""How long a step takes: from this run's own journal where it has measured one, else a stated estimate (pure)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.model.history import Event
from migrate.model.plan import PlannedStep

ENDED_WELL: Final = ("Verified", "AlreadyDone")
BROKER: Final = "broker"
FAMILIES: Final[Mapping[str, str]] = {  # kinds whose steps take alike: the restart of one broker, whatever its mode
    "roll-to-migration-mode": BROKER,
    "roll-to-kraft": BROKER,
    "roll-back-to-migration-mode": BROKER,
    "roll-to-zookeeper-mode": BROKER,
    "add-directories": BROKER,
    "remove-directories": BROKER,
}
NODE_SHARE: Final[Mapping[str, tuple[float, float]]] = {  # of the playbook's estimate of a node: (p50, p90)
    BROKER: (0.4, 1.0),
    "finalize-controller": (0.2, 0.5),
    "finish-finalize": (0.2, 0.5),
    "start-controllers": (0.1, 0.4),
    "stop-controllers": (0.1, 0.4),
}
CANARIES: Final = ("canary-in-migration-mode", "canary-in-kraft-mode")
OTHERS: Final = (60.0, 300.0)  # seconds: a look, a backup, a file, a comparison


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds that half, and nine of ten such steps take at most; `source` says where the numbers come from."""

    p50: float
    p90: float
    source: str


@dataclass(frozen=True, slots=True)
class Durations:
    """What is known of durations: seconds of steps of this run by kind, and the playbook's estimate of a node."""

    node_estimate: float
    measured: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def of(self, step: PlannedStep) -> Estimate:
        """The estimate of one step.  With fewer than ten samples the p90 is the longest of them."""
        if step.kind == "soak":
            seconds = float(step.params.get("seconds", "0"))
            return Estimate(seconds + OTHERS[0], seconds + OTHERS[1], "the playbook's soak")
        if step.kind in CANARIES:
            seconds = float(step.params.get("seconds", "0"))
            return Estimate(seconds, seconds + OTHERS[0], "the playbook's canary_soak")
        family = FAMILIES.get(step.kind, step.kind)
        samples = self.measured.get(step.kind) or self.measured.get(family) or ()
        if samples:
            number = f"{len(samples)} of this run" if len(samples) > 1 else "the first of this run"
            return Estimate(percentile(samples, 0.5), percentile(samples, 0.9), f"measured on {number}")
        if family in NODE_SHARE:
            low, high = NODE_SHARE[family]
            return Estimate(low * self.node_estimate, high * self.node_estimate, "the playbook's node_estimate")
        return Estimate(*OTHERS, "a stated default")


def percentile(samples: Iterable[float], share: float) -> float:
    """The smallest sample that at least that share of all does not exceed (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def measured(events: Iterable[Event], kinds: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
    """Seconds of the steps that a journal concluded well, by kind and by family; `kinds` maps step ids to kinds.

    A step counts from its first event to its conclusion, where it acted between them in one session: what was done
    already, or lies on both sides of a kill, says nothing about the next node.
    """
    began: dict[str, float] = {}
    acted: set[str] = set()
    found: dict[str, list[float]] = {}
    for event in events:
        if event.name == "session":
            began.clear()
            acted.clear()
        step = event.data.get("step")
        if not isinstance(step, str) or step not in kinds or event.name in ("paused", "resumed"):
            continue
        began.setdefault(step, event.time)
        if event.name == "intend":
            acted.add(step)
        if event.name == "conclude" and step in acted and event.data["outcome"] in ENDED_WELL:
            kind = kinds[step]
            for name in {kind, FAMILIES.get(kind, kind)}:
                found.setdefault(name, []).append(max(0.0, event.time - began[step]))
    return {kind: tuple(seconds) for kind, seconds in found.items()}
