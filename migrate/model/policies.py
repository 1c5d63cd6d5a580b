"""Policies of a playbook that decide when a run goes on: health, error budget, pace, how long half a roll may stand."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RollOrder(StrEnum):
    """In which order brokers are rolled."""

    INVENTORY = "inventory"
    CANARY_FIRST = "canary-first"  # the fewest leaders, then rack by rack, ZooKeeper's controller last


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """Before each restart so many looks in a row, so many seconds apart, must find every partition whole."""

    samples: int = 3
    interval: float = 5.0


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The share of a probe's requests that may fail within `seconds`; `history` is the file that the probe writes.

    `topic`: the run probes that topic itself, while it goes on; "": the probe is the operator's own.
    """

    history: str
    share: float
    seconds: float
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may be expected, or allowed, to take, in seconds.

    `node_estimate`: a node, before this run has measured one.  `hybrid_max_age`: how long the cluster may stand between
    the first broker in migration mode and the last one in KRaft mode.
    """

    node_estimate: float = 900.0
    hybrid_max_age: float = 86400.0
