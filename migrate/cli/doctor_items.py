"""What `doctor` says of one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """Of one thing that was looked at."""

    GOOD = "ok"
    LATER = "later"  # not there yet, and comes by itself when it is needed
    OPTIONAL = "optional"  # not installed, and needed for what its line names alone
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing: how it is, what was found, and what to do where it is missing."""

    name: str
    health: Health
    found: str
    to_do: str = ""
