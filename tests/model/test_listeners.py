"""What a restart took away from listeners, told from what nobody can know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.listeners import (
    Certificate,
    Change,
    Heard,
    Served,
    changed,
    from_note,
    lost,
    not_applied,
    noted,
    unseen,
)
from migrate.model.outcome import Unknown

TLS = Served("SSL", "h:1", Certificate("CN=a", "CN=ca", ("h", "h.example")))
LOGIN = Served("SASL_PLAINTEXT", "h:2", mechanisms=("PLAIN", "SCRAM-SHA-512"))
BEFORE = Heard({"TLS": TLS, "LOGIN": LOGIN}, ())
START = "[2026-01-01 10:00:00,000] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jController)"
REFUSED = "[2026-01-01 10:00:05,000] ERROR Per-broker configs of 1 could not be applied: java.util@1 (kafka.server.D)"
CAUSE = "org.apache.kafka.common.config.ConfigException: Cannot add SSL keystore to an existing listener"


def now(**others: Served) -> Heard:
    """Afterwards."""
    return Heard({**BEFORE.listeners, **others}, ())


def test_what_serves_as_before_is_no_news() -> None:
    """Nothing is lost, changed or unseen."""
    assert [*lost(BEFORE, now()), *changed(BEFORE, now()), *unseen(BEFORE, now())] == []


@pytest.mark.parametrize(
    ("found", "passing"),
    [(Served("SSL", "h:1", refused="no TLS"), False), (Served("SSL", "h:1", silent="no connection"), True)],
)
def test_a_listener_that_serves_no_more_is_lost(found: Served, passing: bool) -> None:
    """For good where somebody refuses; whoever is not there may come."""
    (change,) = lost(BEFORE, now(TLS=found))
    why = found.refused or found.silent
    assert change == Change("TLS", "SSL, certificate CN=a, for h, h.example", f"nothing (h:1: {why})", passing)


def test_a_listener_that_is_gone_from_the_file_is_lost() -> None:
    """Nobody would meet it again."""
    (change,) = lost(BEFORE, Heard({"TLS": TLS}, ()))
    assert change.listener == "LOGIN"
    assert not change.passing


@pytest.mark.parametrize(
    ("subject", "issuer", "names", "same"),
    [
        ("CN=a", "CN=ca", ("h", "h.example"), True),
        ("CN=a", "CN=another ca", ("h", "h.example", "more"), True),
        ("CN=a", "CN=ca", ("h",), False),
        ("CN=b", "CN=ca", ("h", "h.example"), False),
    ],
)
def test_a_renewed_certificate_has_its_subject_and_all_names(
    subject: str, issuer: str, names: tuple[str, ...], same: bool
) -> None:
    """As Kafka compares a store with the one that it replaces."""
    found = replace(TLS, certificate=Certificate(subject, issuer, names))
    assert [*changed(BEFORE, now(TLS=found))] == [] if same else [Change("TLS", TLS.told, found.told)]


@pytest.mark.parametrize(
    "found",
    [
        {"LOGIN": replace(LOGIN, mechanisms=("PLAIN",))},
        {"TLS": replace(TLS, guarded=True)},
        {"TLS": Served("SSL", "h:1")},
    ],
)
def test_what_a_listener_demands_is_part_of_it(found: dict[str, Served]) -> None:
    """Mechanisms, a client's certificate; and no certificate of its own is another one, too."""
    assert [change.listener for change in changed(BEFORE, now(**found))] == [*found]


def test_what_nobody_saw_before_is_named_and_proves_nothing() -> None:
    """Neither lost nor changed, whatever is there now."""
    before = Heard({"AWAY": Served("SSL", "h:3", silent="no connection"), "DEAD": replace(TLS, refused="no TLS")}, ())
    found = Heard({"AWAY": TLS, "DEAD": TLS, "NEW": TLS}, ())
    assert [*lost(before, found), *changed(before, found)] == []
    assert [*unseen(before, found)] == [
        "AWAY could not be reached before (h:3: no connection)",
        "DEAD served nothing before (h:1: no TLS)",
        "NEW is new",
    ]


@pytest.mark.parametrize("found", [BEFORE, replace(BEFORE, not_applied=Unknown("no log")), Unknown("no file")])
def test_a_note_is_read_as_it_was_written(found: Heard | Unknown) -> None:
    """A run that was killed holds the broker to it."""
    assert from_note(noted(found)) == found


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"listeners": {"A": {}}, "not_applied": []}', '{"listeners": 1}'])
def test_a_note_of_another_hand_is_unknown(text: str) -> None:
    """Never an empty one."""
    assert isinstance(from_note(text), Unknown)


def test_the_log_since_the_start_says_what_could_not_be_applied() -> None:
    """With its cause; of an earlier life nothing."""
    assert not_applied([START, REFUSED, CAUSE, "\tat x", START]) == ()
    assert not_applied([START, "INFO", REFUSED, CAUSE, "\tat x", REFUSED, CAUSE]) == (
        f"Per-broker configs of 1 could not be applied ({CAUSE})",
    )
    default = REFUSED.replace("Per-broker configs of 1", "Cluster default configs")
    assert not_applied([START, default]) == ("Cluster default configs could not be applied",)


@pytest.mark.parametrize("lines", [[], [REFUSED], ["the last 50 lines of its log are on h: look there"]])
def test_a_log_without_the_start_is_unknown(lines: list[str]) -> None:
    """What went before its first line is not seen."""
    assert isinstance(not_applied(lines), Unknown)
