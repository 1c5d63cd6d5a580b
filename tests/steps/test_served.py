"""Both rolls, forward and back, are held to what the broker's listeners served before it was stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrate.model.ids import NodeId
from migrate.model.listeners import Certificate, Heard, Served, noted
from migrate.model.outcome import Failed, NotYet, Unknown, Verified
from migrate.model.stage import Stage
from migrate.model.world import NOT_ASKED, World
from migrate.steps.forward import RollToKraft, RollToMigrationMode
from migrate.steps.rollback.brokers import RollBackToMigrationMode
from migrate.steps.served import key
from tests.steps.looks import Remembered, whole

Roll = RollToMigrationMode | RollToKraft | RollBackToMigrationMode
ROLLS: list[tuple[Roll, World]] = [
    (RollToMigrationMode(1), whole(Stage.MIGRATION_MODE)),
    (RollToKraft(1), whole(Stage.KRAFT_MODE)),
]
PLAIN = Served("PLAINTEXT", "h:9092")
TLS = Served("SSL", "h:9093", Certificate("CN=b", "CN=ca", ("h",)))
BEFORE = Heard({"PLAINTEXT": PLAIN, "TLS": TLS}, ())
REFUSES = Served("SSL", "h:9093", refused="the listener refuses us: handshake failure")
CAUSE = "Per-broker configs of 1 could not be applied (ConfigException: no)"


def seen(step: Roll, world: World, before: Heard | Unknown | None, now: Heard | Unknown) -> World:
    """The world after the start, with what was noted."""
    facts = dict(world.facts) | ({} if before is None else {key(step.id): noted(before)})
    return replace(world, listeners={NodeId(1): now}, facts=facts)


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=lambda value: getattr(value, "kind", ""))
def test_listeners_that_serve_as_before_are_evidence(step: Roll, world: World) -> None:
    """By name."""
    found = step.verify(seen(step, world, BEFORE, BEFORE))
    assert isinstance(found, Verified)
    assert found.evidence[-1] == "listeners that serve what they served: PLAINTEXT, TLS"


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=lambda value: getattr(value, "kind", ""))
def test_a_dead_listener_ends_the_run_with_what_to_do(step: Roll, world: World) -> None:
    """Which, what it served, what it serves, the cause, the file, the next step."""
    found = step.verify(seen(step, world, BEFORE, Heard({"PLAINTEXT": PLAIN, "TLS": REFUSES}, (CAUSE,))))
    assert isinstance(found, Failed)
    for words in ("listener TLS served SSL, certificate CN=b, for h; it serves now nothing", CAUSE, "KAFKA-17431"):
        assert words in found.reason
    assert world.inventory.brokers[1].config in found.next_step
    assert "give the same command again" in found.next_step


@pytest.mark.parametrize(("step", "world"), ROLLS, ids=lambda value: getattr(value, "kind", ""))
def test_what_the_log_says_could_not_be_applied_ends_it_where_every_listener_serves(step: Roll, world: World) -> None:
    """The same line before its stop is no news."""
    found = step.verify(seen(step, world, BEFORE, replace(BEFORE, not_applied=(CAUSE,))))
    assert isinstance(found, Failed)
    assert "correct or delete that dynamic value" in found.next_step
    known = replace(BEFORE, not_applied=(CAUSE.replace("no)", "another cause)"),))
    found = step.verify(seen(step, world, known, replace(BEFORE, not_applied=(CAUSE,))))
    assert isinstance(found, Verified)
    assert found.evidence[-1] == f"as before, its log says: {CAUSE}"
    unread = replace(BEFORE, not_applied=Unknown("no log"))
    assert isinstance(step.verify(seen(step, world, unread, replace(BEFORE, not_applied=(CAUSE,)))), Failed)


def test_a_listener_that_nobody_reaches_is_waited_for() -> None:
    """A port may still be opened; the wait ends without progress."""
    step, world = ROLLS[1]
    away = replace(TLS, certificate=None, silent="no connection: Connection refused")
    found = step.verify(seen(step, world, BEFORE, Heard({"PLAINTEXT": PLAIN, "TLS": away}, ())))
    assert isinstance(found, NotYet)
    assert "listener TLS served SSL" in found.what
    assert "KAFKA-17431" in found.next_step


def test_what_could_not_be_seen_before_is_said_and_does_not_hold() -> None:
    """A network that this host is not in; a log that is elsewhere."""
    step, world = ROLLS[1]
    before = Heard({"PLAINTEXT": PLAIN, "TLS": replace(TLS, silent="no connection")}, Unknown("no log"))
    found = step.verify(seen(step, world, before, replace(before, listeners={**BEFORE.listeners, "TLS": REFUSES})))
    assert isinstance(found, Verified)
    assert found.evidence[-3:] == (
        "listeners that serve what they served: PLAINTEXT",
        "of its listeners nothing is proven where TLS could not be reached before (h:9093: no connection)",
        "whether it could apply its configuration is not known: no log",
    )


@pytest.mark.parametrize("before", [None, Unknown("its file cannot be read")])
def test_without_a_look_before_nothing_is_claimed(before: Unknown | None) -> None:
    """A journal of an earlier release, a file that could not be read."""
    step, world = ROLLS[1]
    found = step.verify(seen(step, world, before, BEFORE))
    assert isinstance(found, Verified)
    assert found.evidence[-1].startswith("what its listeners serve was not compared: ")


def test_listeners_that_cannot_be_met_afterwards_hold_the_proof() -> None:
    """They were seen before: unknown is not fine."""
    step, world = ROLLS[1]
    assert step.verify(seen(step, world, BEFORE, Unknown("no file"))) == Unknown("no file")
    narrow = replace(seen(step, world, BEFORE, BEFORE), listeners=NOT_ASKED)
    assert step.verify(narrow) == NOT_ASKED


def test_another_certificate_holds_the_way_forward_and_not_the_way_back() -> None:
    """Back in ZooKeeper mode the dynamic store takes the place of the file's again, as it was."""
    other = Heard({**BEFORE.listeners, "TLS": replace(TLS, certificate=Certificate("CN=b", "CN=ca", ("other",)))}, ())
    step, world = ROLLS[1]
    found = step.verify(seen(step, world, BEFORE, other))
    assert isinstance(found, Failed)
    assert "where the listener shall be as it is now, make a new plan" in found.next_step
    assert "KAFKA-17431" not in found.reason
    back = RollBackToMigrationMode(1)
    assert isinstance(back.verify(seen(back, whole(Stage.COPY), BEFORE, other)), Verified)
    dead = Heard({**BEFORE.listeners, "TLS": REFUSES}, ())
    assert isinstance(back.verify(seen(back, whole(Stage.COPY), BEFORE, dead)), Failed)


def test_what_is_noted_first_stays() -> None:
    """An attempt that was killed saw the broker before its stop; the next one sees it down."""
    step, world, first, again = RollToKraft(1), whole(Stage.COPY), Remembered(), Remembered()
    down = replace(BEFORE, listeners={"TLS": replace(TLS, silent="no connection")})
    step.do(seen(step, world, None, BEFORE), first)
    assert f"note {key(step.id)}={noted(BEFORE)}" in first.done
    step.do(seen(step, world, BEFORE, down), again)
    assert not [line for line in again.done if line.startswith("note served:")]
