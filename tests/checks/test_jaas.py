"""The value of a sasl.jaas.config, read as Kafka's JaasConfig reads it; what it would refuse is not guessed at."""

from __future__ import annotations

import pytest

from migrate.checks.jaas import options
from migrate.model.outcome import Unknown


def test_no_text_is_no_option() -> None:
    """A key that is not there."""
    assert options("") == options("  ") == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            """org.X required username="a b" password='c=d' user_e=f serviceName=kafka;""",
            {"username": "a b", "password": "c=d", "user_e": "f", "serviceName": "kafka"},
        ),
        ("org.X required;", {}),
        ("org.X\nrequired\n  a = 1 ;", {"a": "1"}),
        ("org.X required a=1 /* b=2; */ c=3; // end", {"a": "1", "c": "3"}),
        (r'org.X required password="a\"b\\c" user="d";', {"password": 'a"b\\c', "user": "d"}),
        (r"""org.X required password='it\'s' user="say 'x'";""", {"password": "it's", "user": "say 'x'"}),
        (r'org.X required password="tab\there\101";', {"password": "tab\there" + "A"}),
        ('org.X required password="";', {"password": ""}),
    ],
)
def test_options_are_those_that_kafka_reads(text: str, found: dict[str, str]) -> None:
    """Quotes of both kinds, escapes within them, comments between."""
    assert options(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "org.X",
        "org.X required",
        'org.X required username="canary"',
        'org.X required username="canary',
        "org.X required username= ;",
        'org.X required username "canary";',
        'org.X required = "canary";',
        '= required username="canary";',
        'org.X required a="canary"; org.Y required b="c";',
        "${file:/secrets/canary:jaas}",
        "hmac:canary",
    ],
)
def test_what_kafka_refuses_or_resolves_later_is_unknown(text: str) -> None:
    """No word of it is told: it may hold a password."""
    found = options(text)
    assert isinstance(found, Unknown)
    assert "canary" not in found.reason
