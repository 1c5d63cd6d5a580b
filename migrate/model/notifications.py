"""What a run tells those that its playbook names: the events to choose from, and the value that is sent."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

SCHEMA: Final = "kraft-migrate/notification/v1"


class Happening(StrEnum):
    """Names of events that can be chosen; the value is what the file writes and what is sent."""

    BEGINS = "begins"
    NEEDS_APPROVAL = "needs-approval"
    PARKED = "parked"
    WAITS = "waits-longer-than"
    STOPPED = "stopped"
    POINT_OF_NO_RETURN = "point-of-no-return"
    ENDED = "ended"
    HALF_ROLLED = "half-rolled-longer-than"
    TEST = "test"  # of `playbook notify-test`; nobody needs to choose it


LASTING: Final = (Happening.WAITS, Happening.HALF_ROLLED)  # chosen by their own keys, with a duration


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing that is told.  `n` is the journal's line that it follows from; `seconds` of what lasts for too long."""

    event: Happening
    run: str
    n: int
    time: float
    cluster: str
    cluster_id: str
    change: str
    host: str
    stage: str
    step: str
    text: str
    code: str = ""
    seconds: float | None = None

    @property
    def body(self) -> bytes:
        """The bytes that are signed and sent."""
        found = {"schema": SCHEMA, **asdict(self)}
        return json.dumps(found, ensure_ascii=True, separators=(",", ":")).encode()
