"""OAUTHBEARER: which key decides who checks a listener's tokens, as Kafka's own classes say it, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from migrate.checks.oauth import PACKAGE, SERVER_HANDLER, VALIDATOR, unsigned_tokens
from migrate.checks.registry import Blind, Hit
from migrate.model.ids import NodeId
from migrate.model.stage import Stage
from tests.checks.bends import UNSECURED
from tests.testing import worlds
from tests.testing.kafka_jvm import kafka_jvm

LISTENER: Final = "listener.name.ctl."
OWN: Final = f"{LISTENER}oauthbearer.{SERVER_HANDLER}"
ON: Final = {f"{LISTENER}sasl.enabled.mechanisms": "OAUTHBEARER"}
PLACES: Final[tuple[tuple[dict[str, str], bool], ...]] = (  # keys, and: does the listener take unsigned tokens?
    (ON, True),
    (ON | {OWN: VALIDATOR}, False),
    (ON | {OWN: f"{VALIDATOR.rpartition('.')[0]}.secured.OAuthBearerValidatorCallbackHandler"}, False),
    (ON | {OWN: f"{UNSECURED}ValidatorCallbackHandler"}, True),
    (ON | {SERVER_HANDLER: VALIDATOR}, True),
    (ON | {f"oauthbearer.{SERVER_HANDLER}": VALIDATOR}, True),
    (ON | {f"{LISTENER}{SERVER_HANDLER}": VALIDATOR}, True),
    (ON | {OWN.replace("ctl", "CTL"): VALIDATOR}, True),
    (ON | {OWN.replace("oauthbearer", "OAUTHBEARER"): VALIDATOR}, True),
    (ON | {OWN.replace("ctl", "other"): VALIDATOR}, True),
    ({"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, True),
    ({"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER", f"{LISTENER}sasl.enabled.mechanisms": "PLAIN"}, False),
    ({"sasl.enabled.mechanisms": "PLAIN"}, False),
)
BASE: Final = {
    "process.roles": "controller",
    "node.id": "3000",
    "controller.quorum.voters": "3000@127.0.0.1:1",
    "controller.listener.names": "CTL",
    "listeners": "CTL://127.0.0.1:1",
    "listener.security.protocol.map": "CTL:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "sasl.oauthbearer.expected.audience": "kafka",
    "listener.name.ctl.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required;",
    "listener.name.ctl.oauthbearer.sasl.jaas.config": (
        f'{PACKAGE}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="a";'
    ),
}


@pytest.mark.parametrize(("keys", "unsigned"), PLACES, ids=str)
def test_a_listener_that_takes_unsigned_tokens_is_found(keys: dict[str, str], unsigned: bool) -> None:
    """As the oracle below, from the same table."""
    assert bool(list(unsigned_tokens(*seen(keys)))) is unsigned


def test_a_handler_that_is_resolved_on_the_node_is_a_blind_spot() -> None:
    """It may be any class."""
    assert [type(one) for one in unsigned_tokens(*seen(ON | {OWN: "${file:/etc/kafka/classes:validator}"}))] == [Blind]


def test_every_listener_of_a_broker_is_looked_at() -> None:
    """That of its clients, too."""
    keys = {"listeners": "INTERNAL://h:1,CLIENT://h:2", "sasl.enabled.mechanisms": "OAUTHBEARER"}
    keys["listener.security.protocol.map"] = "INTERNAL:SASL_SSL,CLIENT:SASL_SSL"
    found = list(unsigned_tokens(*seen(keys)))
    assert [one.message.split()[1] for one in found if isinstance(one, Hit)] == ["INTERNAL", "CLIENT"]


def seen(keys: dict[str, str]) -> tuple[Any, Any]:
    """One controller's file with these keys, and a world that knows the controller."""
    raw = "".join(f"{key}={value}\n" for key, value in (BASE | keys).items()).encode()
    file = worlds.config_file(NodeId(3000), "/etc/kafka/controller.properties", raw)
    return {NodeId(3000): file}, worlds.world_at(Stage.PREPARE)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Kafka's classes."""
    with kafka_jvm(release=False) as gateway:
        yield gateway.jvm


@pytest.mark.kafka
@pytest.mark.parametrize(("keys", "unsigned"), PLACES, ids=str)
def test_kafka_makes_the_handler_that_the_check_expects(
    jvm: Any, keys: dict[str, str], unsigned: bool, tmp_path: Path
) -> None:
    """The class that a listener of Kafka's really has."""
    (tmp_path / "jwks.json").write_text('{"keys": []}')
    given = jvm.java.util.Properties()
    for key, value in (BASE | {"sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "jwks.json").as_uri()} | keys).items():
        given.setProperty(key, value)
    config = jvm.kafka.server.KafkaConfig.fromProps(given, False)
    name = jvm.org.apache.kafka.common.network.ListenerName("CTL")
    protocol = jvm.org.apache.kafka.common.security.auth.SecurityProtocol.SASL_PLAINTEXT
    time, logs = jvm.org.apache.kafka.common.utils.Time.SYSTEM, jvm.org.apache.kafka.common.utils.LogContext()
    builder = jvm.org.apache.kafka.common.network.ChannelBuilders.serverChannelBuilder(
        name, False, protocol, config, None, None, time, logs, jvm.java.util.function.Function.identity()
    )
    try:
        field = builder.getClass().getDeclaredField("saslCallbackHandlers")
        field.setAccessible(True)
        handler = field.get(builder).get("OAUTHBEARER")
        made = "" if handler is None else handler.getClass().getName()
    finally:
        builder.close()
    assert ("Unsecured" in made) is unsigned, made
