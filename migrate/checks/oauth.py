"""SEC: OAUTHBEARER: whose tokens a listener takes, and what a node needs to check and to fetch them (pure).

Kafka looks up a handler of a listener under one name alone, `listener.name.L.oauthbearer.KEY`: neither KEY by itself,
nor with only one of the two prefixes (`ChannelBuilders.channelBuilderConfigs`, `SaslChannelBuilder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.principals import after_first_restart, of_listener
from migrate.checks.processes import name_of
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import Configs, node_configs, of_node
from migrate.model.kafka_values import REFERENCE, listener_prefix, trim
from migrate.model.launch import Launch
from migrate.model.listeners import called, jaas_key, listeners, mechanisms, protocols
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World

MECHANISM: Final = "OAUTHBEARER"
PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
VALIDATOR: Final = f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
FETCHER: Final = f"{PACKAGE}.OAuthBearerLoginCallbackHandler"
SERVER_HANDLER: Final = "sasl.server.callback.handler.class"
LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
URLS: Final = {  # of Kafka's own handlers, by the last part of their names (there are two of each)
    VALIDATOR.rpartition(".")[2]: "sasl.oauthbearer.jwks.endpoint.url",
    FETCHER.rpartition(".")[2]: "sasl.oauthbearer.token.endpoint.url",
}
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def handler_key(listener: str, key: str) -> str:
    """`listener.name.ctl.oauthbearer.sasl.server.callback.handler.class`."""
    return f"{listener_prefix(listener)}{MECHANISM.lower()}.{key}"


def serving(values: Mapping[str, str]) -> Iterator[str]:
    """The listeners that a node opens with OAUTHBEARER."""
    known = protocols(values)
    for entry in listeners(values):
        if known.get(entry.listener, "").startswith("SASL") and MECHANISM in mechanisms(values, entry.listener):
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
        about = f"{name_of(world.inventory, node)}: {file.path}"
        for listener in serving(file.values):
            key = handler_key(listener, SERVER_HANDLER)
            name = trim(file.values.get(key, ""))
            if not name:
                yield Hit(about, f"listener {listener} has OAUTHBEARER, and {key} is missing")
            elif "unsecured" in name.lower():
                yield Hit(about, f"{key} is {name}")
            elif REFERENCE in name:
                yield Blind(about, f"{key} is resolved by a configuration provider on the node")


@check(
    "B-SEC-30",
    "a node lacks what it needs to fetch or to check tokens",
    "A node with Kafka's own handlers reads the issuer's keys when it starts, and fetches a token: without their URLs, "
    "or with a URL that its command line does not allow, it dies at its start; without a handler for its login it "
    "makes a token that nobody signed, and is refused for ever.",
    f"Write what is named into the node's file, for controllers and for the controllers' listener into the inventory's "
    "controllers.properties and brokers.properties; a URL also into the list of "
    f"-D{ALLOWED} wherever a node's command line has that option.",
    "VerificationKeyResolverFactory; ConfigurationUtils.validateUrl; seen on 3.9.2: 'jwks.endpoint.url value must be "
    "non-null', 'is not allowed'",
).sees(node_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS, proof=True)
def has_what_tokens_need(configs: Configs, world: World) -> Result:
    """As the files are after the first restart; a node that runs already with its listeners has what these need."""
    access = (world.inventory.controller_listener, world.inventory.controller_access.protocol)
    for node, file in configs.items():
        values, about = after_first_restart(file, world), f"{name_of(world.inventory, node)}: {file.path}"
        served = set(serving(values))
        calls = {listener for listener, mechanism in called(values, *access).items() if mechanism == MECHANISM}
        needed: dict[str, str] = {}
        for listener in sorted(served | calls):
            key = jaas_key(listener, MECHANISM)
            if not values.get(key, "").strip():
                yield Blind(about, f"no {key}; a JAAS file of the process may have it")
            keys = (handler_key(listener, LOGIN_HANDLER), handler_key(listener, SERVER_HANDLER))
            login, validator = (trim(values.get(key, "")) for key in keys)
            if listener in calls and (not login or "unsecured" in login.lower()):
                what = f"it calls listener {listener} with OAUTHBEARER"
                yield Hit(about, f"{what}, and {keys[0]} is {login or 'missing'}")
            for handler in (login, validator if listener in served else ""):
                if url := URLS.get(handler.rpartition(".")[2]) if handler.startswith(PACKAGE) else None:
                    needed[url] = trim(values.get(handler_key(listener, url), "")) or of_listener(values, listener, url)
                    if not needed[url]:
                        yield Hit(about, f"{url} is missing, listener {listener} needs it")
        urls = {key: url for key, url in needed.items() if url}
        yield from _allowed(about, urls, of_node(world.launches, node))


def _allowed(about: str, urls: Mapping[str, str], launch: Launch | Unknown) -> Result:
    """3.9 calls every URL where the option is not set."""
    if isinstance(launch, Unknown):
        if urls:
            yield Blind(about, f"whether its command line allows its URLs: {launch.reason}")
        return
    if ALLOWED not in launch.kafka_properties:
        return
    allowed = [entry.strip() for entry in launch.kafka_properties[ALLOWED].split(",")]
    for key, url in urls.items():
        if url not in allowed and REFERENCE not in url:
            yield Hit(about, f"{key} is a URL that -D{ALLOWED} of its command line does not list")
