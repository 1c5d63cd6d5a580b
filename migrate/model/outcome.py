"""Answers as values: what is unknown, what may be done, how it ended.  No bools, no None for *unknown*."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate.errors import MigrateError


@dataclass(frozen=True, slots=True)
class Unknown:
    """We could not see it.  Never read as empty, as no, or as yes.

    The engine looks again for a while (`migrate.run.waits`), and then refuses by this reason.
    """

    reason: str


def unknown(error: MigrateError) -> Unknown:
    """What a look answers that ended with this error."""
    return Unknown(f"{error.id} {error}")


@dataclass(frozen=True, slots=True)
class Awaited(Unknown):
    """Unknown so far, and somebody was asked for it: a run waits for the answer as for anything that must come true."""

    owner: str = ""
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class Denied(Unknown):
    """Unknown for want of a right that nothing before this question needed."""


# -- may a step act? ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Ready:
    """Every gate of the step holds."""


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """The world is as the step would leave it."""

    how: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A gate does not hold, and waiting will not help."""

    reason: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotYet:
    """Something must come true first, by itself.

    `progress` is any text that changes while the thing advances: a wait ends by *no progress*, never by elapsed time.
    """

    what: str
    owner: str
    next_step: str
    progress: str = ""
    pace: float = 0.0  # seconds from this look's beginning to the next one's, where a look is dear; 0: the engine's own
    gate: str = ""  # whose objects these are, where clients make and delete them all the time
    objects: frozenset[str] = frozenset()  # those that were there in every look of this wait


Readiness = Ready | AlreadyDone | NotYet | Refused | Unknown


# -- how did it end? ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Verified:
    """The world was observed to be what the step promised; `evidence` says by what."""

    evidence: tuple[str, ...] = field(default=())
    left: tuple[str, ...] = field(default=())  # what an operator may remove from the hosts, a line per node: no proof


@dataclass(frozen=True, slots=True)
class Failed:
    """The world is not what the step promised, and waiting will not help."""

    reason: str
    next_step: str = ""


Outcome = Verified | AlreadyDone | NotYet | Failed | Refused | Unknown
