"""Waiting for what comes by itself: a wait ends by lack of progress, never by elapsed time alone.

A wait looks narrowly (processes, files, who answers, the committed metadata) until that look finds nothing to wait for.
Then one full look decides.  A narrow look proves nothing and refuses nothing.
"""

from __future__ import annotations

from typing import Final

from migrate.checks.processes import AGAIN, GOES_ON
from migrate.errors import NoProgress
from migrate.model.outcome import Awaited, NotYet, Outcome, Readiness, Unknown
from migrate.model.ports import Clock
from migrate.run.journal import Writer

CHEAP: Final = (0.5, 1.0)  # seconds between two looks that read no disk and no tree: at first, and at most
DEAR: Final = (2.0, 10.0)  # the same for a full look: its answer was "not yet" although a narrow look found nothing
BACK_OFF: Final = 5.0  # the pause is this part of the time without progress
MEANWHILE: Final = (10.0, 60.0)  # a full look is due where narrow ones see no progress: after, and at most apart
LOOK_AGAIN: Final = 1.0  # the pause where something could not be seen
LONG_LOOK: Final = 2.0  # seconds; a full look that takes longer is load on the brokers' hosts
LOOK_PAUSES: Final = 3  # such looks are as far apart as three of them would take, and 15 s at most
LONGEST_PAUSE: Final = 15.0
UNSEEN_SECONDS: Final = 30.0  # how long something may be unseen before it is refused by name


class Wait:
    """One wait of one step.

    NotYet, and what somebody was asked for, is waited for as long as it moves within `patience` seconds.  Any other
    Unknown is looked at again for UNSEEN_SECONDS
    (a broker that did not answer once, a request that timed out), and is an answer after that.

    `dear` says that a full look reads disks, trees or tables: such looks are further apart.
    """

    def __init__(self, step: str, clock: Clock, patience: float, write: Writer, *, dear: bool = False) -> None:
        self._dear = dear
        self.problem = ""  # what is wrong with the cluster meanwhile, as `status` begins; said with each wait
        self._step, self._clock, self._patience, self._write = step, clock, patience, write
        self._last: dict[bool, tuple[str, str]] = {}  # by: was it a narrow look?
        self._been: set[tuple[bool, str, str]] = set()
        # a process went down meanwhile, and when: to return to what was seen before is no progress
        self._down: tuple[NotYet, float] | None = None
        self._since = self._looked = clock.monotonic()  # the current look began then
        self._unseen: float | None = None  # since when
        self._full = self._since  # the end of the last full look
        self._apart = MEANWHILE[0]

    def is_over(self, found: Readiness | Outcome) -> bool:
        """Is the answer of a full look one to act on?

        If not, one turn of the wait has passed.  Raises NoProgress where nothing advanced within the patience.
        """
        if self._last:
            self._apart = min(2 * self._apart, MEANWHILE[1])
        match found:
            case NotYet() | Awaited():
                self._turn(found, narrow=False)
                return False
            case Unknown(reason=reason):
                return self._unseen_too_long(reason)
            case _:
                return True

    def goes_on(self, found: Readiness | Outcome) -> bool:
        """Does a narrow look see what is still waited for?  If so, one turn of the wait has passed."""
        if not isinstance(found, NotYet | Awaited):
            return False
        self._turn(found, narrow=True)
        return True

    @property
    def wants_full_look(self) -> bool:
        """Is a full look due, whatever a narrow one sees?

        It names causes that a narrow look cannot see, refuses what no waiting repairs, and comes before giving up.
        """
        now = self._clock.monotonic()
        unmoved = now - self._since
        return unmoved > self._patience or min(unmoved, now - self._full) >= self._apart

    @property
    def was_down(self) -> bool:
        """Was a process seen to have ended, or somebody asked to start one?"""
        return self._down is not None

    def went_down(self, reason: NotYet) -> None:
        """Hear of a process that ended between two looks, and is up again."""
        self._down = reason, self._clock.monotonic()
        self._say(reason)

    def _turn(self, found: NotYet | Awaited, *, narrow: bool) -> None:
        self._unseen = None
        reason = found if isinstance(found, NotYet) else NotYet(found.reason, found.owner, found.next_step)
        now = self._clock.monotonic()
        if isinstance(found, Awaited):
            self._down = reason, now
        seen, before = (reason.what, reason.progress), self._last.get(narrow)
        if self._down is not None:
            moved = (narrow, *seen) not in self._been
        else:
            moved = seen != before and (narrow or before is not None or not self._last)
        # up again for a moment, it says no more than before; that it is down again is told each time
        if seen not in (before, self._last.get(not narrow)) and (moved or self._down in (None, (reason, now))):
            self._say(reason)
        self._last[narrow] = seen
        self._been.add((narrow, *seen))
        if moved:
            self._since, self._apart = now, MEANWHILE[0]
        elif now - self._since > self._patience and not narrow:
            seconds = now - self._since
            if self._down is not None and now - self._down[1] <= MEANWHILE[1]:
                reason = self._down[0]  # a process that ends again and again is why it does nothing else
            self._write("stop", reason=f"no progress for {seconds:.0f} s: {reason.what}", code=NoProgress.id)
            raise NoProgress(
                f"no progress for {seconds:.0f} s while waiting for {reason.what}",
                where=f"step {self._step}",
                why=f"{reason.owner} did not move",
                next_step=reason.next_step.replace(GOES_ON, AGAIN),
            )
        self._pause(reason.pace, now, narrow=narrow)

    def _pause(self, pace: float, now: float, *, narrow: bool) -> None:
        look, unmoved = now - self._looked, now - self._since  # a look may have taken seconds of the pace
        least, most = CHEAP if narrow or not self._dear else DEAR
        pause = min(max(least, unmoved / BACK_OFF), most)
        pause = max(CHEAP[0], min(pause, self._patience - unmoved))
        if pace:
            pause = max(CHEAP[0], pace - look)
        if self._dear and not narrow and look > LONG_LOOK:
            pause = max(pause, min(LOOK_PAUSES * look, LONGEST_PAUSE))
        if not narrow:
            self._full = now
        self._sleep(pause)

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
                    "the owner of what does not answer",
                    f"if it lasts {UNSEEN_SECONDS:.0f} s the step is refused: the unseen is not assumed to be fine",
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
            **({"problem": self.problem} if self.problem else {}),
        )
