"""Fields of documents that hold a value of Kafka's: read as Kafka reads it."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from migrate.model import written as fields


@pytest.mark.parametrize("text", ["ctl", "CTL", "Ctl"])
def test_the_controllers_listener_is_written_in_capitals(text: str) -> None:
    """A controller looks for controller.listener.names among names in capitals, and else does not start."""
    assert TypeAdapter(fields.ListenerName).validate_python(text) == "CTL"


@pytest.mark.parametrize(
    "text",
    [
        "zk1:2181",
        "zk1",
        " zk1 , zk2:2182,,zk3/kafka",
        "zk1:2181/kafka,zk2:2181/kafka",
        "zk1/",
        "[::1]:2181/a b",
        "[fe80::1%eth0]:2181",
    ],
)
def test_a_connect_string_may_be_written_as_in_a_brokers_file(text: str) -> None:
    """And it stays as it was written: what `inventory init` writes is what ZooKeeper was asked by."""
    assert TypeAdapter(fields.ZookeeperConnect).validate_python(text) == text


def test_an_ipv6_address_may_have_a_zone() -> None:
    """Kafka takes one in listeners, voters and connect strings."""
    for kind, text in ((fields.Address, "[fe80::1%eth0]:9093"), (fields.Host, "fe80::1%eth0")):
        assert TypeAdapter(kind).validate_python(text) == text
    with pytest.raises(ValidationError):
        TypeAdapter(fields.Address).validate_python("[fe80::1%]:9093")


@pytest.mark.parametrize("text", ["zk1:2181/kafka/", "zk1:2181//kafka", "zk1:x", "zk1: 2181", ",", "/kafka"])
def test_a_connect_string_that_kafka_refuses_is_refused(text: str) -> None:
    """With the reason."""
    with pytest.raises(ValidationError, match="zk1:2181,zk2:2181/kafka is expected: "):
        TypeAdapter(fields.ZookeeperConnect).validate_python(text)
