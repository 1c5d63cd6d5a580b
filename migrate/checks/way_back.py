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
from migrate.model.outcome import Unknown
from migrate.model.way_back import (
    GAP_SECONDS,
    RESTART_SECONDS,
    Cost,
    Measured,
    Reason,
    WayBack,
    WayBackFacts,
    WayBackWord,
    Weight,
    gap_seconds,
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
    gap, gap_rests_on = _gap(world, facts)
    basis = [_said(each, "a restart", facts.restart, "a default, none was measured")] if restarts else []
    basis += [gap_rests_on] if gap_rests_on else []
    minutes = (restarts * each + (0.0 if isinstance(gap, Unknown) else gap)) / 60
    return Cost(rolls, restarts, minutes, gap, "; ".join(basis) or "nothing is restarted")


def _gap(world: World, facts: WayBackFacts) -> tuple[float | Unknown, str]:
    """Seconds without a controller, and what they rest on: "" where KRaft has no /controller to give back."""
    if not kraft_holds_controller(world):
        return 0.0, ""
    if facts.gap:
        return facts.gap.seconds, _said(facts.gap.seconds, "without a controller", facts.gap, "")
    size = metadata_log_bytes(world)
    if isinstance(size, Unknown):
        return size, f"how long nobody is controller is unknown: {size.reason}"
    seconds = gap_seconds(size)
    return seconds, _said(seconds, "without a controller", None, gap_basis(world, size))


def _said(seconds: float, what: str, measured: Measured | None, otherwise: str) -> str:
    known = otherwise if measured is None else f"the middle of {measured.samples} measured here"
    return f"{seconds:.0f} s {what} ({known})"


def gap_basis(world: World, log_bytes: int) -> str:
    """What `gap_seconds` of those bytes counts, and what it does not."""
    said = f"estimated: {GAP_SECONDS:.0f} s, and the reading of {log_bytes / 1e6:.0f} MB of controllers' metadata logs"
    if world.inventory.executor in ("supervisor", "local"):  # on this host
        return said
    return f"{said}; the time to copy them from their hosts was not measured and is not in it"


def metadata_log_bytes(world: World) -> int | Unknown:
    """Bytes of the segments of all controllers' metadata logs; Unknown where the size of one was not seen."""
    if isinstance(world.disks, Unknown):
        return Unknown(f"the controllers' directories cannot be seen: {world.disks.reason}")
    total = 0
    for node in world.inventory.controllers:
        found = world.disks.get(node.id, Unknown("its directory was not looked at"))
        if isinstance(found, Unknown):
            return Unknown(f"the metadata log of controller {int(node.id)} cannot be seen: {found.reason}")
        for entry in found.directories:
            if entry.holds_metadata_log and entry.metadata_log_bytes < 0:
                return Unknown(f"the size of the metadata log of controller {int(node.id)} was not seen")
            if entry.problem and not entry.holds_metadata_log:
                return Unknown(
                    f"the metadata log of controller {int(node.id)} cannot be seen: {entry.path} {entry.problem}"
                )
            total += max(entry.metadata_log_bytes, 0)
    return total
