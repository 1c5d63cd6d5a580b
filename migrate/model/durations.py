"""How long a step takes: the one estimate that plans, windows, the board, `status` and the rollback go by (pure).

A step counts from the end of the one before it, or of the session's beginning, to its own conclusion: its samples of
health and its looks are in it, so that the sum of the steps is what a run takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from migrate.model.history import ENDED_WELL, Event
from migrate.model.inventory import Pace, Playbook
from migrate.model.outcome import Unknown
from migrate.model.words import plural

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
    "start-voters": (0.1, 0.4),
    "stop-controllers": (0.1, 0.4),
}
CANARIES: Final = ("canary-in-migration-mode", "canary-in-kraft-mode")
OTHERS: Final = (60.0, 300.0)  # seconds: a look at everything, a comparison
FILES: Final = (5.0, 60.0)  # seconds: files of one node (seen: at most 20 on labs and on hosts, on a busy machine too)
OF_FILES: Final = frozenset(
    {
        "back-up-broker",
        "back-up-zookeeper",
        "render-controller",
        "format-controllers",
        "format-voters",
        "keep-zookeeper",
        "keep-directory-files",
        "keep-protocol-files",
        "put-flag-back",
        "set-controller-aside",
        "set-metadata-aside",
    }
)
Samples = Mapping[str, tuple[float, ...]]  # seconds of steps, by kind and by family


class Timed(Protocol):
    """What an estimate asks of a planned step."""

    @property
    def kind(self) -> str: ...
    @property
    def params(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Estimate:
    p50: float
    p90: float
    source: str


@dataclass(frozen=True, slots=True)
class Durations:
    """What is known of durations: seconds of steps of this cluster, and the playbook's estimate of a node."""

    node_estimate: float
    measured: Samples = field(default_factory=dict)

    def of(self, step: Timed) -> Estimate:
        seconds = float(step.params.get("seconds", "0"))
        if step.kind == "soak":
            return Estimate(seconds + OTHERS[0], seconds + OTHERS[1], "the playbook's soak")
        if step.kind in CANARIES:
            return Estimate(seconds, seconds + OTHERS[0], "the playbook's canary_soak")
        return self._of_kind(step.kind)

    @property
    def restart(self) -> Estimate:
        """Of one broker, in whatever mode."""
        return self._of_kind(BROKER)

    def _of_kind(self, kind: str) -> Estimate:
        family = FAMILIES.get(kind, kind)
        samples = self.measured.get(kind) or self.measured.get(family) or ()
        if samples:
            source = f"measured here on {plural(len(samples), 'step')}"
            return Estimate(percentile(samples, 0.5), percentile(samples, 0.9), source)
        if family in NODE_SHARE:
            low, high = NODE_SHARE[family]
            return Estimate(low * self.node_estimate, high * self.node_estimate, "the playbook's node_estimate")
        return Estimate(*(FILES if kind in OF_FILES else OTHERS), "a stated default")


def percentile(samples: Iterable[float], share: float) -> float:
    """The smallest sample that at least that share of all does not exceed (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def measured(*journals: Iterable[Event]) -> dict[str, tuple[float, ...]]:
    """Seconds of the steps that these journals concluded well, by kind and by family.

    A step counts where it acted in one session, and no problem was waited for: what was done already,
    was cut in two by a kill, or was repaired by a person meanwhile, says nothing about the next node.
    """
    found: dict[str, list[float]] = {}
    for events in journals:
        began = 0.0
        acted: set[str] = set()
        amiss: set[str] = set()
        for event in events:
            step = str(event.data.get("step", ""))
            match event.name:
                case "session":
                    began = event.time
                    acted.clear()
                case "intend":
                    acted.add(step)
                case "waiting" if event.data.get("problem"):
                    amiss.add(step)
                case "conclude":
                    kind = str(event.data.get("kind", ""))  # journals of earlier releases have none
                    if kind and step in acted - amiss and event.data["outcome"] in ENDED_WELL:
                        for name in {kind, FAMILIES.get(kind, kind)}:
                            found.setdefault(name, []).append(max(0.0, event.time - began))
                    began = event.time
                case _:
                    pass
    return {kind: tuple(seconds) for kind, seconds in found.items()}


def durations_by(playbook: Playbook | Unknown, *samples: Samples) -> Durations:
    """By all of these samples, and by the playbook's estimate of a node, or its default."""
    pace = Pace() if isinstance(playbook, Unknown) else playbook.pace
    kinds = dict.fromkeys(kind for some in samples for kind in some)
    return Durations(
        pace.node_estimate, {kind: tuple(one for some in samples for one in some.get(kind, ())) for kind in kinds}
    )
