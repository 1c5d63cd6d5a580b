"""An explanation as a row and as lines: the same content, an unknown cause said as such."""

from __future__ import annotations

import json

from migrate.model.findings import Explanation
from migrate.model.outcome import Unknown
from migrate.report.status import waiting_lines, waiting_values

KNOWN = Explanation(
    "S-STUCK-31",
    "broker 1 to register",
    "whoever runs broker 1",
    "its process is stopped",
    "Start it.",
    "nothing before that",
    ("it ended with code 1", "log of node 1: [...] Exiting Kafka."),
    (1,),
    "WAIT_FOR_BROKERS",
)
UNKNOWN = Explanation(
    "S-STUCK-40", "broker 2 to register", "broker 2", Unknown("not seen: its file: gone"), "Look.", "nothing", (), (2,)
)


def test_a_row_holds_every_field_and_no_cause_is_null() -> None:
    """For machines: exactly one of cause and unknown."""
    known, unknown = waiting_values([KNOWN, UNKNOWN])
    assert known == {
        "code": "S-STUCK-31",
        "waits_for": "broker 1 to register",
        "driver": "WAIT_FOR_BROKERS",
        "nodes": [1],
        "owner": "whoever runs broker 1",
        "cause": "its process is stopped",
        "unknown": None,
        "evidence": ["it ended with code 1", "log of node 1: [...] Exiting Kafka."],
        "next": "Start it.",
        "by_itself": "nothing before that",
    }
    assert (unknown["cause"], unknown["unknown"]) == (None, "not seen: its file: gone")
    assert json.loads(json.dumps([known, unknown])) == [known, unknown]


def test_a_person_reads_what_why_who_and_what_next() -> None:
    """In that order, under one heading a wait."""
    assert list(waiting_lines(waiting_values([KNOWN]))) == [
        "waits    S-STUCK-31 for broker 1 to register",
        "         because its process is stopped",
        "         seen: it ended with code 1",
        "         seen: log of node 1: [...] Exiting Kafka.",
        "         owner: whoever runs broker 1",
        "         next: Start it.",
        "         without action: nothing before that",
    ]


def test_what_cannot_be_told_is_said_with_its_reason() -> None:
    """Never a cause."""
    text = "\n".join(waiting_lines(waiting_values([UNKNOWN])))
    assert "cannot tell why, because not seen: its file: gone" in text
    assert "         because" not in text
