"""Waiting for what comes by itself: a wait ends by lack of progress, never by elapsed time alone."""

from __future__ import annotations

from typing import Final, Protocol

from migrate.errors import NoProgress
from migrate.model.outcome import Awaited, NotYet, Outcome, Readiness, Unknown
from migrate.model.ports import Clock

POLL: Final = 0.3  # seconds between two looks while waiting
LOOK_AGAIN: Final = 1.0  # the same, where something could not be seen
LONG_LOOK: Final = 2.0  # seconds; a longer look at every file of every log directory is load on the brokers' hosts
LOOK_PAUSES: Final = 3  # such looks are as far apart as three of them would take, and 15 s at most
LONGEST_PAUSE: Final = 15.0
UNSEEN_SECONDS: Final = 30.0  # how long something may be unseen before it is refused by name


class Journaled(Protocol):
    """Appends an event, and tells it."""

    def __call__(self, name: str, **data: str) -> None:
        """Write it."""


class Wait:
    """One wait of one step.

    NotYet, and what somebody was asked for, is waited for as long as it moves within `patience` seconds.  Any other
    Unknown is looked at again for UNSEEN_SECONDS
    (a broker that did not answer once, a request that timed out), and is an answer after that.

    With `walks_disks` each look reads every log directory: where that takes long, looks are further apart.
    """

    def __init__(
        self, step: str, clock: Clock, patience: float, write: Journaled, *, walks_disks: bool = False
    ) -> None:
        self._walks_disks = walks_disks
        self._step, self._clock, self._patience, self._write = step, clock, patience, write
        self._last: tuple[str, str] | None = None
        self._been: set[tuple[str, str]] = set()
        self._flaps = False  # a process went down meanwhile: to come back to what was seen before is no progress
        self._since = self._looked = clock.monotonic()  # the look at hand began then
        self._unseen: float | None = None  # since when

    def is_over(self, found: Readiness | Outcome) -> bool:
        """Is this an answer to act on?  If not, one turn of the wait has passed; NoProgress when it stood still."""
        match found:
            case NotYet():
                self._unseen = None
                self._turn(found)
                return False
            case Awaited(reason=reason, owner=owner, next_step=next_step):
                self._unseen, self._flaps = None, True
                self._turn(NotYet(reason, owner, next_step))
                return False
            case Unknown(reason=reason):
                return self._unseen_too_long(reason)
            case _:
                return True

    def _turn(self, reason: NotYet) -> None:
        now = self._clock.monotonic()
        seen = (reason.what, reason.progress)
        moved = seen not in self._been if self._flaps else seen != self._last
        if seen != self._last:
            self._last = seen
            self._say(reason)
        self._been.add(seen)
        if moved:
            self._since = now
        elif now - self._since > self._patience:
            raise self._gave_up(reason, now - self._since)
        look = now - self._looked  # it may have taken seconds of the pace
        rest = min(LOOK_PAUSES * look, LONGEST_PAUSE) if self._walks_disks and look > LONG_LOOK else 0.0
        self._sleep(max(POLL, reason.pace - look, rest))

    def _sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
        self._looked = self._clock.monotonic()

    def _unseen_too_long(self, reason: str) -> bool:
        now = self._clock.monotonic()
        if self._unseen is None:
            self._unseen = now
            self._say(
                NotYet(
                    f"what cannot be seen: {reason}",
                    "whoever runs what does not answer",
                    f"if it lasts {UNSEEN_SECONDS:.0f} s the step is refused: nothing unseen is taken for fine",
                )
            )
        if now - self._unseen >= min(UNSEEN_SECONDS, self._patience):
            return True
        self._sleep(LOOK_AGAIN)
        return False

    def _say(self, reason: NotYet) -> None:
        self._write(
            "waiting",
            step=self._step,
            what=reason.what,
            owner=reason.owner,
            next=reason.next_step,
            progress=reason.progress,
        )

    def _gave_up(self, reason: NotYet, seconds: float) -> NoProgress:
        self._write("stop", reason=f"no progress for {seconds:.0f} s: {reason.what}", code=NoProgress.id)
        return NoProgress(
            f"no progress for {seconds:.0f} s while waiting for {reason.what}",
            where=f"step {self._step}",
            why=f"{reason.owner} did not move",
            next_step=reason.next_step,
        )
