"""SEC: OAUTHBEARER: whose tokens a listener takes, and what a node needs to check and to fetch them (pure).

Kafka looks up a handler of a listener under one name alone, `listener.name.L.oauthbearer.KEY`: neither KEY by itself,
nor with only one of the two prefixes (`ChannelBuilders.channelBuilderConfigs`, `SaslChannelBuilder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.principals import of_listener
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import Configs, node_configs
from migrate.model.inventory import BrokerNode
from migrate.model.kafka_values import elements, listener_prefix, trim
from migrate.model.listeners import listeners, protocols
from migrate.model.stage import Stage
from migrate.model.world import World

MECHANISM: Final = "OAUTHBEARER"
PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
VALIDATOR: Final = f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
SERVER_HANDLER: Final = "sasl.server.callback.handler.class"


def handler_key(listener: str, key: str) -> str:
    """`listener.name.ctl.oauthbearer.sasl.server.callback.handler.class`."""
    return f"{listener_prefix(listener)}{MECHANISM.lower()}.{key}"


def serving(values: Mapping[str, str]) -> Iterator[str]:
    """The listeners that a node opens with OAUTHBEARER."""
    known = protocols(values)
    for entry in listeners(values):
        enabled = elements(of_listener(values, entry.listener, "sasl.enabled.mechanisms", "GSSAPI"))
        if known.get(entry.listener, "").startswith("SASL") and MECHANISM in enabled:
            yield entry.listener


@check(
    "B-SEC-28",
    "a listener takes tokens that nobody signed",
    "Without a handler of its own, a listener with OAUTHBEARER has Kafka's handler for development: whoever writes a "
    "token without a signature is whom it names, a super user too, and tokens of the real issuer are refused.",
    f"Write listener.name.L.oauthbearer.{SERVER_HANDLER}={VALIDATOR} (L: the listener, in small letters; Kafka reads "
    "the key in no other form), with sasl.oauthbearer.jwks.endpoint.url, expected.issuer and expected.audience: into "
    "the broker's file and restart it, for controllers into the inventory's controllers.properties.",
    "SaslChannelBuilder.createServerCallbackHandlers; seen on 3.9.2: an unsigned token was super user of a controller",
).sees(node_configs, blocks_from=Stage.PREPARE, when=ALWAYS)
def unsigned_tokens(configs: Configs, world: World) -> Result:
    for node, file in configs.items():
        role = "broker" if isinstance(world.inventory.node(node), BrokerNode) else "controller"
        about = f"{role} {node}: {file.path}"
        for listener in serving(file.values):
            key = handler_key(listener, SERVER_HANDLER)
            name = trim(file.values.get(key, ""))
            if not name:
                yield Hit(about, f"listener {listener} has OAUTHBEARER, and {key} is missing")
            elif "unsecured" in name.lower():
                yield Hit(about, f"{key} is {name}")
            elif "${" in name:
                yield Blind(about, f"{key} is resolved by a configuration provider on the node")
