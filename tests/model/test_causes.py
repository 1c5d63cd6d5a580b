"""Every row that the comparison can make has a likely cause, and a way out."""

from __future__ import annotations

from itertools import product
from urllib.parse import quote

import pytest

from migrate.model.causes import (
    CAUSES,
    NOT_KNOWN,
    UNWRITABLE_ACL,
    UNWRITABLE_CONFIG,
    KraftOnly,
    cause_of,
    is_kraft_only,
    kraft_only,
    summary,
)
from migrate.model.columns import EntityColumns
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
    "applied-config": ("log.cleaner.threads",),
    "metadata-log": ("what they alone held",),
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


def entities(*rows: tuple[str, str]) -> EntityColumns:
    """Rows of these kinds and keys."""
    found = EntityColumns()
    for kind, key in rows:
        found.add(kind, key, "present", "true")
    return found


@pytest.mark.parametrize(
    ("kind", "key", "about", "command"),
    [
        (
            "acl",
            "GROUP|LITERAL|a%2Fb|User:g|*|READ|ALLOW",
            "ACL of GROUP a/b (LITERAL)",
            "kafka-acls {} --remove --force --group a/b --resource-pattern-type literal",
        ),
        (
            "acl",
            "TRANSACTIONAL_ID|PREFIXED|flink%2F my job|User:g|*|READ|ALLOW",
            "ACL of TRANSACTIONAL_ID flink/ my job (PREFIXED)",
            "kafka-acls {} --remove --force --transactional-id 'flink/ my job' --resource-pattern-type prefixed",
        ),
        (
            "acl",
            "TOPIC|LITERAL|it's%01|User:g|*|READ|ALLOW",
            "ACL of TOPIC it's\x01 (LITERAL)",
            "kafka-acls {} --remove --force --topic $'it\\'s\\U00000001' --resource-pattern-type literal",
        ),
        (
            "client-metrics-config",
            "s",
            "client-metrics-config s",
            "kafka-configs --bootstrap-controller HOST:PORT {} client-metrics --entity-name s --delete-config present",
        ),
    ],
)
def test_each_object_has_its_name_and_the_command_that_removes_it(
    kind: str, key: str, about: str, command: str
) -> None:
    """Quoted for a shell; one command removes every ACL of a resource."""
    rows = {(kind, key): None, (kind, key.replace("READ", "WRITE")): None}
    found = kraft_only(entities(*rows))
    command = command.format("--bootstrap-server HOST:PORT" if kind == "acl" else "--alter --entity-type")
    assert found == (KraftOnly(kind, about, command),)
    assert command in found[0].told


def test_every_key_of_a_configuration_is_deleted_by_one_command() -> None:
    """Through the controllers: brokers in ZooKeeper mode refuse to describe these, which the tool asks for first."""
    columns = EntityColumns()
    for name in ("interval.ms", "metrics"):
        columns.add("client-metrics-config", "sub", name, "x")
    (found,) = kraft_only(columns)
    assert found.remove.startswith("kafka-configs --bootstrap-controller HOST:PORT ")
    assert found.remove.endswith(" --entity-name sub --delete-config interval.ms,metrics")


def test_a_summary_names_three_and_counts_the_rest() -> None:
    """A refusal is read in one look."""
    keys = [f"GROUP|LITERAL|{name}%2F|User:g|*|READ|ALLOW" for name in "abcde"]
    text = summary(kraft_only(entities(*(("acl", key) for key in keys))))
    assert "ACL of GROUP c/ (LITERAL): Kafka 3.9 cannot write it" in text
    assert "GROUP d/" not in text
    assert text.endswith(" (and 2 more)")


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("acl", "GROUP|LITERAL|a.b|User:a%2Fb|*|READ|ALLOW"),
        ("acl", "CLUSTER|LITERAL|kafka-cluster|User:a|*|READ|ALLOW"),
        ("acl", "of another shape"),
        ("topic-config", "t"),
        ("broker-config", "<default>"),
        ("topic", "t"),
        ("client-quota", "client-id=a%2Fb"),
        ("scram", "a/b"),
        ("producer-ids", ""),
    ],
)
def test_what_dual_write_writes_is_none_of_them(kind: str, key: str) -> None:
    """Names of quotas and users are sanitized on their way to ZooKeeper; those of ACLs are not."""
    assert not is_kraft_only(kind, key)
    assert kraft_only(entities((kind, key))) == ()


@pytest.mark.parametrize(
    ("code", "named"),
    [
        *((code, False) for code in (0x01, 0x1F, 0x2F, 0x7F, 0x9F, 0xE000, 0xF8FF, 0xFFF0, 0xFFFF, 0x10000)),
        *((code, True) for code in (0x20, 0x2E, 0x30, 0x7E, 0xA0, 0xD7FF, 0xF900, 0xFFEF)),
    ],
)
def test_a_name_is_a_znodes_as_zookeeper_decides(code: int, named: bool) -> None:
    """`PathUtils.validatePath` to the letter, at both ends of each range."""
    key = f"GROUP|LITERAL|{quote(f'a{chr(code)}b', safe='')}|User:g|*|READ|ALLOW"
    assert is_kraft_only("acl", key) is not named


def test_half_a_letter_is_no_part_of_a_znodes_name() -> None:
    """The first surrogate; what is written with percent signs cannot spell it."""
    assert is_kraft_only("acl", "GROUP|LITERAL|a\ud800b|User:g|*|READ|ALLOW")


def test_a_kind_of_configuration_that_nobody_knows_is_one_of_them() -> None:
    """Resource types come with releases: `config-64` is how an unknown one is spelled."""
    assert is_kraft_only("config-64", "x")
    assert [found.about for found in kraft_only(entities(("config-64", "x")))] == ["config-64 x"]


def test_exactly_as_many_as_are_listed_leave_no_rest() -> None:
    """Three are three."""
    keys = [f"GROUP|LITERAL|{name}%2F|User:g|*|READ|ALLOW" for name in "abc"]
    assert "more" not in summary(kraft_only(entities(*(("acl", key) for key in keys))))
