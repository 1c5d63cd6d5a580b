"""What a soak has seen, as values: attempts, legs, rounds, and the report that is written after each of them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from migrate.hosts.files import replace_file

SCHEMA: Final = "kraft-migrate/soak/v1"
GOOD: Final = "GOOD"
BAD: Final = "BAD"
ERROR: Final = re.compile(r"E-[A-Z]+-\d+: ")
MOST: Final = 300  # characters of what the tool said


@dataclass
class Attempt:
    """One call of the tool: its exit code (negative: the signal that ended it), and the line that says why."""

    code: int
    said: str
    seconds: float


@dataclass
class Leg:
    """One part of the way: there, back, again."""

    name: str
    fault: str
    drawn: str  # where and how, as it was drawn
    step: str = ""  # the step that was in progress when it struck; "" where it never did
    struck: str = ""  # what was done
    attempts: list[Attempt] = field(default_factory=list)
    seconds: float = 0.0
    done: bool = False


@dataclass
class RoundSeen:
    """One round: what speaks against it decides its verdict."""

    number: int
    seed: int
    goal: str
    folder: str
    began: float
    legs: list[Leg] = field(default_factory=list)
    load: dict[str, int] = field(default_factory=dict)
    znodes: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # seen, and not held against it
    against: list[str] = field(default_factory=list)
    seconds: float = 0.0
    ended: bool = False

    @property
    def verdict(self) -> str:
        """GOOD, BAD, or "" while it runs."""
        if self.against:
            return BAD
        return GOOD if self.ended else ""


@dataclass
class Soak:
    """The whole: `state` is running, ended, or stopped before its time."""

    seed: int
    minutes: float
    commit: str
    began: float
    pid: int
    state: str = "running"
    seconds: float = 0.0
    rounds: list[RoundSeen] = field(default_factory=list)

    def totals(self) -> dict[str, int]:
        """Over the rounds that ended."""
        ended = [one for one in self.rounds if one.ended]
        legs = [leg for one in ended for leg in one.legs]
        return {
            "rounds": len(ended),
            "good": sum(one.verdict == GOOD for one in ended),
            "faults": sum(bool(leg.struck) for leg in legs),
            "calls": sum(len(leg.attempts) for leg in legs),
            "acknowledged": sum(one.load.get("acknowledged", 0) for one in ended),
            "missing": sum(one.load.get("missing", 0) for one in ended),
            "doubled": sum(one.load.get("duplicated", 0) for one in ended),
        }

    def text(self) -> str:
        """As JSON."""
        rounds = [{**asdict(one), "verdict": one.verdict} for one in self.rounds]
        return (
            json.dumps({"schema": SCHEMA, **asdict(self), "rounds": rounds, "totals": self.totals()}, indent=1) + "\n"
        )

    def write(self, path: Path) -> None:
        """Replace the report: a reader finds the old one or the new one, whole."""
        replace_file(str(path), self.text().encode())


def last_reason(stderr: str) -> str:
    """The tool's own error, by its id, with the place; else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [place for place, line in enumerate(lines) if ERROR.match(line)]
    if not errors:
        return (lines or [""])[-1][:MOST]
    behind = [line for line in lines[errors[-1] + 1 :][:2] if line.startswith(("where", "why"))]
    return "; ".join([lines[errors[-1]], *behind])[:MOST]


def read(path: Path) -> dict[str, Any]:
    """A report."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
