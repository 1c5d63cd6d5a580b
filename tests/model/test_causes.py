"""Every row that the comparison can make has a likely cause, and a way out."""

from __future__ import annotations

from itertools import product

import pytest

from migrate.model.causes import CAUSES, NOT_KNOWN, UNWRITABLE_ACL, UNWRITABLE_CONFIG, cause_of
from migrate.model.difference import Difference, DifferenceClass

KINDS = {
    "partition": ("", "topic_id", "replicas", "isr", "adding", "removing", "leader", "leader_epoch", "recovery_state"),
    "broker": ("mode", "endpoints", "rack"),
    "topic": ("topic_id",),
    "topic-config": ("retention.ms",),
    "broker-config": ("log.cleaner.backoff.ms",),
    "client-quota": ("producer_byte_rate",),
    "client-metrics-config": ("interval.ms",),
    "group-config": ("consumer.heartbeat.interval.ms",),
    "config-99": ("a.key",),
    "stranger": ("field",),
    "scram": ("SCRAM-SHA-512.salt",),
    "acl": ("present",),
    "delegation-token": ("owner",),
    "producer-ids": ("next_producer_id",),
    "feature": ("level",),
}
SIDES = (("1", "2"), ("1", None), (None, "2"))
LONGEST = 300  # a finding of a rollback says what to do after that as well, and holds 400 characters
KEYS = {
    "acl": ("k", "GROUP|LITERAL|g|User:u|*|READ|ALLOW", "GROUP|LITERAL|a%2Fb|User:u|*|READ|ALLOW"),
    "client-quota": ("user=u", "client-id=a", "client-id=a/user=u", "ip=10.0.0.1"),
}
ROWS = [
    Difference(kind, key, field, DifferenceClass.DIFFERS, *values)
    for kind, fields in KINDS.items()
    for key, field, values in product(KEYS.get(kind, ("k",)), fields, SIDES)
    if field or None in values  # a whole partition differs by standing on one side
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.key}-{row.field}-{row.side}")
def test_every_row_has_a_cause_and_a_way_out(row: Difference) -> None:
    """In words that stand in one line."""
    cause = cause_of(row)
    assert cause.cause
    assert cause.what_to_do
    assert "\n" not in cause.cause + cause.what_to_do
    assert len(cause.what_to_do) <= LONGEST


def test_no_line_of_the_table_is_out_of_reach() -> None:
    """A line that an earlier one covers would never be said."""
    assert {cause_of(row) for row in ROWS} == {*CAUSES, UNWRITABLE_ACL, UNWRITABLE_CONFIG, NOT_KNOWN}


@pytest.mark.parametrize("kind", ["client-metrics-config", "broker-logger-config", "group-config", "config-64", "new"])
@pytest.mark.parametrize("values", SIDES)
def test_a_kind_that_nobody_knows_has_an_answer_too(kind: str, values: tuple[str | None, str | None]) -> None:
    """A row without an answer would end every run and every report that holds it."""
    found = cause_of(Difference(kind, "k", "f", DifferenceClass.DIFFERS, *values))
    assert found in (UNWRITABLE_CONFIG, NOT_KNOWN)
    assert found.what_to_do


def row(kind: str, key: str, zookeeper: str | None, kraft: str | None) -> Difference:
    """A row of that kind and key."""
    return Difference(kind, key, "present", DifferenceClass.DIFFERS, zookeeper, kraft)


@pytest.mark.parametrize("key", ["client-id=app", "ip=10.0.0.1", "client-id=app/user=alice", "client-id=<default>"])
def test_a_quota_whose_deletion_kafka_lost_names_kafkas_fault_and_a_restart(key: str) -> None:
    """To delete it again writes no record: only the sync of the next active controller repairs it."""
    found = cause_of(row("client-quota", key, "1.0", None))
    assert "NullPointerException" in found.cause
    assert found.what_to_do.startswith("restart the active controller")


def test_a_quota_of_a_user_alone_has_not_that_fault() -> None:
    """Kafka writes these on another path, which works."""
    assert "NullPointerException" not in cause_of(row("client-quota", "user=client-id", "1.0", None)).cause


@pytest.mark.parametrize("name", ["a%2Fb", ".", "..", "a%01b", "%C2%85", "%F0%9F%98%80", ""])
def test_an_acl_that_zookeeper_cannot_hold_is_to_be_removed(name: str) -> None:
    """By the rules of ZooKeeper for a path, in Java's UTF-16."""
    found = cause_of(row("acl", f"GROUP|LITERAL|{name}|User:u|*|READ|ALLOW", None, "true"))
    assert found is UNWRITABLE_ACL
    assert "kafka-acls" in found.what_to_do


@pytest.mark.parametrize("name", ["a.b", "...", "%C3%A9 %7C", "*", "a:b"])
def test_an_ordinary_acl_that_zookeeper_lacks_says_what_it_was_lost_with(name: str) -> None:
    """The other one may be gone by now; a `/` in the principal is no fault."""
    found = cause_of(row("acl", f"TOPIC|PREFIXED|{name}|User:CN%3Da%2Fb|*|READ|ALLOW", None, "true"))
    assert found is not UNWRITABLE_ACL
    assert "contains `/`" in found.cause
    assert found.what_to_do.startswith("restart the active controller")
