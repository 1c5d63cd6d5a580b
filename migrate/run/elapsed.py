"""How long the cluster has been in dual write with every broker in KRaft mode, by no wall clock.

Each event that begins such a time carries a reading of a clock that nobody can set (CLOCK_BOOTTIME) and the name of the
boot that it counts from.  On another host, or after a reboot, nobody knows how long it has been: it counts from the
first session under the new name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from migrate.model.history import Event
from migrate.model.ports import Clock

BEGINS = "kraft-mode"  # the stage behind whose last step the soak begins


def reading(clock: Clock) -> dict[str, str | float]:
    """What an event carries."""
    return {"boot": clock.boot(), "at": round(clock.monotonic(), 3)}


def since_last_roll(events: Iterable[Event], clock: Clock) -> float | None:
    """Seconds since the last step of the second roll was concluded; None where this journal has no session yet.

    Where another run rolled the brokers, this journal proves dual write only since its own first session.
    """
    known = list(_readings(events))
    if not known:
        return None
    begin = max((number for number, (rolled, _, _) in enumerate(known) if rolled), default=0)
    here = clock.boot()
    ours = [at for _, boot, at in known[begin:] if boot == here]
    return max(0.0, clock.monotonic() - ours[0]) if ours else 0.0


def _readings(events: Iterable[Event]) -> Iterator[tuple[bool, str, float]]:
    """(is the end of a step of the second roll, boot, reading) of the events that carry one."""
    for event in events:
        rolled = event.name == "conclude" and event.data.get("stage") == BEGINS
        if (rolled or event.name == "session") and {"boot", "at"} <= event.data.keys():
            yield rolled, str(event.data["boot"]), float(event.data["at"])
