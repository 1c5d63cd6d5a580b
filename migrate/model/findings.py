"""Findings of checks, and the verdict that rests on them: a code, an object, the evidence, the fix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from migrate.model.stage import Stage

NAMED: Final = 8  # codes of checks that were not made, in a sentence


class Severity(StrEnum):
    """B blocks, W warns, I informs; a blind spot is something that could not be checked, and never counts as a pass."""

    BLOCKER = "B"
    WARNING = "W"
    INFO = "I"
    BLIND_SPOT = "?"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found.  `code` is severity-area-number (`B-ZKN-01`); `about` names znode, file, broker.

    One that is the same for several nodes (`migrate.model.alike`) has each of them in `objects`, and in `about` all.
    """

    code: str
    severity: Severity
    about: str
    message: str
    evidence: str = ""
    fix: str = ""
    blocks_from: int = 0  # number of the first stage that this finding blocks (blockers and blind spots)
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeDoc:
    """What `explain CODE` and the generated page say of a code."""

    code: str
    title: str
    why: str
    cause: str
    fix: str
    source: str


class Word(StrEnum):
    """The verdicts on a cluster and on a plan, worst first.  JSON has these values."""

    BLOCKED = "BLOCKED"
    INCOMPLETE = "INCOMPLETE"
    WARNINGS = "READY WITH WARNINGS"
    READY = "READY"
    NO_CHANGES = "NO CHANGES"


@dataclass(frozen=True, slots=True)
class Share:
    """How many checks belong to the cluster's phase, and the codes of those that were not made in full."""

    asked: int
    not_made: tuple[str, ...]

    @property
    def made(self) -> int:
        """How many were made in full, whatever they found."""
        return self.asked - len(self.not_made)

    def __str__(self) -> str:
        if not self.not_made:
            return f"{self.made} of {self.asked} checks made"
        more = f" and {len(self.not_made) - NAMED} more" if len(self.not_made) > NAMED else ""
        named = ", ".join(self.not_made[:NAMED])
        return f"{self.made} of {self.asked} checks made; {len(self.not_made)} could not: {named}{more}"


def blocks(entry: Finding, target: int) -> bool:
    """Return whether the finding blocks the stage `target`: a blocker of it, or a blind spot that may hide one."""
    return entry.severity in (Severity.BLOCKER, Severity.BLIND_SPOT) and entry.blocks_from <= target


def share(asked: int, findings: Iterable[Finding]) -> Share:
    """Return which of so many checks were made; those that can block come first among the others."""
    blind = {entry.code: entry.blocks_from for entry in findings if entry.severity is Severity.BLIND_SPOT}
    return Share(asked, tuple(sorted(blind, key=lambda code: (blind[code] > max(Stage), code))))


def decide(findings: Sequence[Finding], target: int = max(Stage)) -> Word:
    """Decide what may be said of a cluster on its way to the stage `target`, by default the last one.

    BLOCKED: a blocker of one of these stages was found.  INCOMPLETE: no blocker was found, and a check that could find
    one was not made in full.  So READY rests on every check that can block, made on every node.  What such a check
    leaves to the proof of a step (`blocks_from` is above every stage) is asked there.
    """
    blocking = {entry.severity for entry in findings if blocks(entry, target)}
    if Severity.BLOCKER in blocking:
        return Word.BLOCKED
    if Severity.BLIND_SPOT in blocking:
        return Word.INCOMPLETE
    return Word.READY if all(entry.severity is Severity.INFO for entry in findings) else Word.WARNINGS
