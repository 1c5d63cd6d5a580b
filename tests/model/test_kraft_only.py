"""What KRaft accepts and Kafka cannot write to ZooKeeper is found by name, with the command that removes it."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from migrate.model.columns import EntityColumns
from migrate.model.kraft_only import KraftOnly, is_kraft_only, kraft_only, summary


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
