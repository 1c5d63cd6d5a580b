"""Rollback readiness: from a World, and what journals and backups say, to READY, READY WITH WORK or NOT READY (pure).

What is unknown bars the way, as a fault would: nobody starts a rollback on a guess.
Sources: the sequences of a rollback as seen on 3.9.2, KAFKA-20488 (epochs), KAFKA-20762 (meta.properties).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from migrate.checks.phase import kraft_holds_controller
from migrate.checks.way_back_origin import Origin, Start, origin
from migrate.checks.way_back_rules import RULES, bar
from migrate.model.way_back import (
    GAP_SECONDS,
    RESTART_SECONDS,
    Cost,
    Reason,
    WayBack,
    WayBackFacts,
    WayBackWord,
    Weight,
)
from migrate.model.world import World

NO_FACTS: Final = WayBackFacts()
PROCEDURES: Final[Mapping[Start, str]] = {
    Start.NOTHING: "nothing to undo",
    Start.CONTROLLERS: "stop the controllers, delete /migration",
    Start.MIGRATION: "stop the controllers, mend the znodes, roll the brokers to ZooKeeper mode",
    Start.KRAFT: "roll the KRaft brokers to migration mode, stop the controllers, mend the znodes, "
    "roll the brokers to ZooKeeper mode",
    Start.FINALIZED: "none: there is no way back from the first controller without the flag on",
}


def way_back(world: World, facts: WayBackFacts = NO_FACTS) -> WayBack:
    """The answer for this very moment."""
    begin = origin(world)
    if begin.start is Start.FINALIZED:
        return _gone(begin)
    reasons = tuple(reason for rule in RULES for reason in rule(world, facts, begin))
    if begin.start is Start.NOTHING:  # a fault of the cluster does not bar what needs no step
        reasons = tuple(reason for reason in reasons if reason.name.endswith("-unknown"))
    weights = {reason.weight for reason in reasons}
    word = WayBackWord.READY
    if Weight.BAR in weights:
        word = WayBackWord.NOT_READY
    elif Weight.WORK in weights:
        word = WayBackWord.READY_WITH_WORK
    return WayBack(word, begin.label, PROCEDURES[begin.start], _sorted(reasons), _cost(world, facts, begin))


def _gone(begin: Origin) -> WayBack:
    reason = bar(
        "finalized",
        "the KRaft metadata",
        "the migration is finalized: ZooKeeper is not written any more",
        "none: roll forward every broker that is not in KRaft mode yet",
    )
    procedure = PROCEDURES[Start.FINALIZED]
    return WayBack(WayBackWord.NOT_READY, begin.label, procedure, (reason,), Cost(0, 0, 0.0, 0.0, "-"), gone=True)


def _sorted(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    order = tuple(Weight)
    return tuple(sorted(reasons, key=lambda reason: order.index(reason.weight)))


def _cost(world: World, facts: WayBackFacts, begin: Origin) -> Cost:
    """Rolls, restarts, minutes, and the gap; the gap is there only where KRaft has to give /controller back."""
    rolls = 2 if begin.kraft else int(bool(begin.migration))
    restarts = len(begin.migration) + 2 * len(begin.kraft)
    each = facts.restart.seconds if facts.restart else RESTART_SECONDS
    owned = kraft_holds_controller(world)
    gap = (facts.gap.seconds if facts.gap else GAP_SECONDS) if owned else 0.0
    said = []
    if restarts:
        said.append(_said(each, "a restart", None if facts.restart is None else facts.restart.samples))
    if owned:
        said.append(_said(gap, "without a controller", None if facts.gap is None else facts.gap.samples))
    return Cost(rolls, restarts, (restarts * each + gap) / 60, gap, "; ".join(said) or "nothing is restarted")


def _said(seconds: float, what: str, samples: int | None) -> str:
    known = "a default, none was measured" if samples is None else f"the middle of {samples} measured here"
    return f"{seconds:.0f} s {what} ({known})"
