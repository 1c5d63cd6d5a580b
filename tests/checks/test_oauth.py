"""OAUTHBEARER: which key decides who checks a listener's tokens, as Kafka's own classes say it, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from migrate.checks.oauth import (
    ALLOWED,
    FETCHER,
    PACKAGE,
    SERVER_HANDLER,
    VALIDATOR,
    has_what_tokens_need,
    unsigned_tokens,
)
from migrate.checks.principals import caller
from migrate.checks.registry import Blind, Hit
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, AddedProperties
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
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
    world = worlds.world_at(Stage.PREPARE)
    access = Access("SASL_PLAINTEXT", "OAUTHBEARER")
    return {NodeId(3000): file}, replace(world, inventory=replace(world.inventory, controller_access=access))


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


PLACED: Final = f"{LISTENER}oauthbearer."
LOGS_IN: Final = ON | {
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    OWN: VALIDATOR,
    f"{PLACED}sasl.login.callback.handler.class": FETCHER,
    "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/jwks",
    "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
}
JWKS, LOGIN = "sasl.oauthbearer.jwks.endpoint.url", f"{PLACED}sasl.login.callback.handler.class"
NEEDS: Final[tuple[tuple[dict[str, str], dict[str, str] | None, list[str]], ...]] = (  # keys, JVM options, findings
    ({}, {}, []),
    ({JWKS: ""}, {}, [f"{JWKS} is missing"]),
    ({JWKS: "", f"{PLACED}{JWKS}": "https://issuer/jwks"}, {}, []),
    ({JWKS: "", f"{LISTENER}{JWKS}": "https://issuer/jwks"}, {}, []),
    ({"sasl.oauthbearer.token.endpoint.url": ""}, {}, ["sasl.oauthbearer.token.endpoint.url is missing"]),
    ({LOGIN: ""}, {}, ["it calls listener CTL"]),
    ({LOGIN: f"{UNSECURED}LoginCallbackHandler"}, {}, ["it calls listener CTL"]),
    ({LOGIN: "org.example.Login", OWN: "org.example.Validator", JWKS: ""}, {}, []),
    ({"sasl.mechanism.controller.protocol": "PLAIN", LOGIN: ""}, {}, []),
    ({}, {ALLOWED: "https://issuer/token, https://issuer/jwks"}, []),
    ({}, {ALLOWED: "https://issuer/token"}, [f"{JWKS} is a URL that"]),
    ({}, None, ["whether its command line allows"]),
    ({f"{PLACED}sasl.jaas.config": ""}, {}, [f"no {PLACED}sasl.jaas.config"]),
)


@pytest.mark.parametrize(("keys", "options", "told"), NEEDS, ids=str)
def test_what_tokens_need_is_missed_before_a_start(
    keys: dict[str, str], options: dict[str, str] | None, told: list[str]
) -> None:
    """In the file and on the command line."""
    configs, world = seen(LOGS_IN | keys)
    launch = Unknown("not seen") if options is None else Launch("c.properties", kafka_properties=options)
    found = list(has_what_tokens_need(configs, replace(world, launches={NodeId(3000): launch})))
    texts = [one.message if isinstance(one, Hit) else one.reason for one in found]
    assert len(texts) == len(told), texts
    assert all(text.startswith(start) for text, start in zip(texts, told, strict=True)), texts


def test_a_broker_needs_a_way_to_its_token_before_its_first_restart() -> None:
    """Its file names the controllers' listener from then on: until then the inventory does, with its protocol."""
    base = {"broker.id": "0", "listeners": "INTERNAL://h:1", "inter.broker.listener.name": "INTERNAL"}
    base["listener.security.protocol.map"] = "INTERNAL:PLAINTEXT"
    raw = "".join(f"{key}={value}\n" for key, value in base.items()).encode()
    world = seen({})[1]
    for missing, told in (("", []), (LOGIN, [f"it calls listener CTL with OAUTHBEARER, and {LOGIN} is missing"])):
        added = {**LOGS_IN, f"{PLACED}sasl.jaas.config": "x", missing: ""}
        known = replace(world.inventory, broker_properties=AddedProperties("/b", added))
        file = worlds.config_file(NodeId(0), "/etc/kafka/server.properties", raw)
        bent = replace(world, inventory=known, launches={NodeId(0): Launch("server.properties")})
        found = list(has_what_tokens_need({NodeId(0): file}, bent))
        assert [one.message if isinstance(one, Hit) else one.reason for one in found] == told


def test_a_tokens_principal_is_what_the_inventory_says() -> None:
    """No file says whom the issuer names; without a word of the inventory it stays unknown."""
    values = {"sasl.mechanism.controller.protocol": "OAUTHBEARER"}
    key = "sasl.mechanism.controller.protocol"
    assert caller(values, "CTL", "SASL_SSL", key, stated="User:4711") == "User:4711"
    assert isinstance(caller(values, "CTL", "SASL_SSL", key), Blind)
