"""As whom a node calls another, and whom a node lets in: principals by its file, its logins and certificates (pure).

Source: `DefaultKafkaPrincipalBuilder`, `SslPrincipalMapper`: the called listener's ssl.principal.mapping.rules decide.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.checks.registry import Blind, Hit, Result
from migrate.checks.sight import of_node
from migrate.hosts.jaas import options
from migrate.model.broker_modes import SUPER_USERS, restarted, with_added
from migrate.model.inventory import Inventory, KraftAuthorizer
from migrate.model.kafka_values import REFERENCE, entries, listener_prefix, trim
from migrate.model.kerberos_names import short_name, with_realm
from migrate.model.launch import JaasLogin, Launch
from migrate.model.listeners import (
    BROKER_MECHANISM,
    CHAIN,
    CONTROLLER_MECHANISM,
    KEYSTORE,
    inter_broker_listener,
    jaas_key,
    protocols,
)
from migrate.model.outcome import Unknown
from migrate.model.patterns import LINE_ENDS, Pattern, compiled_as_java
from migrate.model.views import ConfigFile
from migrate.model.world import NOT_ASKED, World

TO_LOCAL: Final = "sasl.kerberos.principal.to.local.rules"
RULES: Final = "ssl.principal.mapping.rules"
CLIENT_AUTH: Final = "ssl.client.auth"
ONE_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<made>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
LONGEST_SUBJECT: Final = 4096  # characters
Rule = tuple[Pattern, tuple[str | int, ...], str]
Subjects = Mapping[str, str | Unknown]
Logins = tuple[JaasLogin, ...] | Unknown


def of_listener(values: Mapping[str, str], listener: str, key: str, default: str = "") -> str:
    """A listener's own value of the key, else the node's."""
    return trim(values.get(f"{listener_prefix(listener)}{key}", values.get(key, default)))


def certificates_name(
    values: Mapping[str, str], subjects: Subjects, called: Mapping[str, str], listener: str
) -> str | Blind:
    """As whom a node with these values calls that listener of a node with the values `called`: User:NAME."""
    if of_listener(called, listener, CLIENT_AUTH, "none").lower() == "none":
        return "User:ANONYMOUS"
    path = of_listener(values, listener, KEYSTORE)
    if not path:
        inline = of_listener(values, listener, CHAIN)
        return Blind("its principal", "its certificate is in the file itself" if inline else "it names no keystore")
    found = subjects.get(path, Unknown(f"{path} was not looked at"))
    return Blind("its principal", found.reason) if isinstance(found, Unknown) else known_as(found, called, listener)


def known_as(subject: str, called: Mapping[str, str], listener: str) -> str | Blind:
    """What the called listener's rules make of a certificate's subject."""
    try:
        name = _mapped(subject, of_listener(called, listener, RULES, "DEFAULT"))
    except ValueError:
        return Blind("its principal", f"{RULES} of listener {listener} cannot be read")
    return name or Blind("its principal", f"no rule of {RULES} of listener {listener} is for {subject}")


@functools.lru_cache(maxsize=4096)
def _mapped(subject: str, rules: str) -> str | None:
    """User:NAME by the first rule that is for the subject, None where none is; ValueError as `parsed`."""
    if len(subject) > LONGEST_SUBJECT or not LINE_ENDS.isdisjoint(subject):
        raise ValueError(len(subject))
    for rule in list(parsed(rules)):
        if rule is None:
            return f"User:{subject}"
        pattern, made, case = rule
        if pattern.fullmatch(subject):
            name, at = "", 0
            for found in pattern.finditer(subject):
                parts = (part if isinstance(part, str) else found.texts[part] for part in made)
                name, at = f"{name}{subject[at : found.begin]}{''.join(parts)}", found.end
            name += subject[at:]
            return "User:" + (name.lower() if case == "L" else name.upper() if case == "U" else name)
    return None


def parsed(text: str) -> Iterator[Rule | None]:
    """The rules in their order, None for DEFAULT; ValueError where Kafka's text is not understood."""
    at = 0
    while at < len(text):
        match = ONE_RULE.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(at)
        at = match.end()
        if match["default"]:
            yield None
        else:
            pattern = compiled_as_java(match["pattern"])
            yield pattern, tuple(_replacement(match["made"], pattern.groups)), match["case"]


def _replacement(text: str, groups: int) -> Iterator[str | int]:
    """Java's replacement in parts: a backslash takes the next letter as it stands, `$1` is a group, as an int here."""
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            yield next(letters, "")
        elif letter == "$":
            digit = next(letters, "")
            yield int(digit) if digit.isascii() and digit.isdigit() and int(digit) <= groups else f"${digit}"
        else:
            yield letter


AUTHORIZER: Final = "authorizer.class.name"
ANONYMOUS: Final = "User:ANONYMOUS"
BUILDER: Final = "principal.builder.class"
DEFAULT_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


def own_builder(values: Mapping[str, str], listener: str) -> bool:
    """Does a class that is not Kafka's make the principals of who calls that listener?"""
    return of_listener(values, listener, BUILDER) not in ("", DEFAULT_BUILDER)


def authorizer(values: Mapping[str, str]) -> str:
    """authorizer.class.name, "" for none."""
    return values.get(AUTHORIZER, "").strip()


ACL_AUTHORIZERS: Final = ("kafka.security.authorizer.AclAuthorizer", "kafka.security.auth.SimpleAclAuthorizer")
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def in_kraft_mode(values: Mapping[str, str], kraft: KraftAuthorizer | None) -> Mapping[str, str]:
    """Who decides about rights on a KRaft node, by a broker's values: the class and the keys that come with it.

    AclAuthorizer and StandardAuthorizer decide alike; another class stays unless the playbook names its successor.
    """
    name = authorizer(values)
    if name and kraft is not None:
        return {AUTHORIZER: kraft.name, **kraft.properties}
    return {AUTHORIZER: STANDARD_AUTHORIZER if name in ACL_AUTHORIZERS else name} if name else {}


def successor(world: World) -> KraftAuthorizer | None:
    """The class that the playbook names for KRaft mode; None without a playbook, too."""
    return None if isinstance(world.playbook, Unknown) else world.playbook.kraft_authorizer


def super_users(values: Mapping[str, str]) -> frozenset[str]:
    """super.users, split at semicolons."""
    return frozenset(user.strip() for user in values.get(SUPER_USERS, "").split(";") if user.strip())


def controller_listener(values: Mapping[str, str]) -> str:
    """The first of controller.listener.names, the one that brokers call, in capitals; "" for none."""
    return next(iter(entries(values.get("controller.listener.names", ""))), "").upper()


@dataclass(frozen=True, slots=True)
class Called:
    """The side that is called: its values, and Kerberos' default realm there."""

    values: Mapping[str, str]
    realm: str | Unknown


STATE_IT: Final = "write it as `principal` of the inventory's brokers, or controllers"
RESOLVED: Final = f"is resolved by a configuration provider on the node: {STATE_IT}"
NOT_STARTED: Final = Unknown("how its process is started was not seen")


def logins_of(values: Mapping[str, str], listener: str, mechanism: str, launch: Launch | Unknown) -> Logins:
    """The login modules by which a node calls that listener: of its file, else of its process's JAAS file.

    Source: `JaasContext.load`: listener.name.L.MECHANISM.sasl.jaas.config, l.KafkaServer, KafkaServer.
    """
    name = jaas_key(listener, mechanism)
    if values.get(name, "").strip():
        found = options(values[name])
        if isinstance(found, Unknown):
            return Unknown(f"{name} {RESOLVED}") if REFERENCE in values[name] else found
        if found.get("tokenauth", "").lower() == "true":
            return Unknown(f"{name} logs in by a delegation token, as that token's owner")
        username, principal, service = (found.get(key, "") for key in ("username", "principal", "serviceName"))
        return (JaasLogin(values[name].split()[0], username, principal, service),)
    known = launch if isinstance(launch, Unknown) else launch.logins
    if isinstance(known, Unknown):
        return Unknown(f"no {name} in its file; {known.reason}")
    return known.get(f"{listener.lower()}.KafkaServer", known.get("KafkaServer", ()))


def asked(world: World) -> bool:
    """Was it looked at how nodes are started?  What starts controllers, and the first rolls, do; others come later."""
    return world.launches is not NOT_ASKED


def without_login(
    about: str, file: ConfigFile, listener: str, mechanism: str, world: World, *, of: Mapping[str, str]
) -> Result:
    """Neither the node's values nor the JAAS file of its process has a login for that listener, which it calls."""
    known = logins_of(of, listener, mechanism, of_node(world.launches, file.node))
    if isinstance(known, Unknown):
        if asked(world) and REFERENCE not in of.get(jaas_key(listener, mechanism), ""):
            yield Blind(about, known.reason)
    elif not known:
        yield Hit(about, f"neither {jaas_key(listener, mechanism)} nor a section KafkaServer of its JAAS file is there")


def not_looked_for(blind: Blind, world: World) -> bool:
    """Is it unknown only because nobody looked at how nodes are started?"""
    return blind.reason.endswith(NOT_ASKED.reason) and not asked(world)


def caller(
    values: Mapping[str, str],
    listener: str,
    protocol: str,
    mechanism_key: str,
    launch: Launch | Unknown = NOT_STARTED,
    called: Called | None = None,
    *,
    stated: str = "",
) -> str | Blind:
    """The principal with which a node with these values calls that listener (User:name), or why it is unknown.

    `stated` is what the inventory says of the node: it counts where nothing else says it.
    """
    return or_stated(_called_as(values, listener, protocol, mechanism_key, launch, called), stated)


def or_stated(found: str | Blind, stated: str) -> str | Blind:
    """What was found, or else what the inventory says."""
    return stated if stated and isinstance(found, Blind) else found


def _called_as(
    values: Mapping[str, str],
    listener: str,
    protocol: str,
    mechanism_key: str,
    launch: Launch | Unknown,
    called: Called | None,
) -> str | Blind:
    if any(own_builder(side, listener) for side in (values, called.values if called else {})):
        return Blind("its principal", f"a {BUILDER} makes it: {STATE_IT}")
    if protocol == "PLAINTEXT":
        return ANONYMOUS
    if protocol == "SSL":
        return Blind("its principal", f"listener {listener} takes it from a TLS certificate")
    mechanism = values.get(mechanism_key, "GSSAPI").strip()
    if mechanism == "OAUTHBEARER":
        return Blind("its principal", f"the issuer names it in its token: {STATE_IT}")
    found = logins_of(values, listener, mechanism, launch)
    if isinstance(found, Unknown):
        return Blind("its principal", found.reason)
    if len(found) != 1:
        return Blind("its principal", f"its login for listener {listener} is not one module, but {len(found)}")
    name = found[0].principal if mechanism == "GSSAPI" else found[0].username
    if REFERENCE in name:
        return Blind("its principal", f"the name in its login for listener {listener} {RESOLVED}")
    if mechanism == "GSSAPI":
        return kerberos_user(name, called, listener)
    return f"User:{name}" if name else Blind("its principal", f"{jaas_key(listener, mechanism)} names no username")


def kerberos_user(principal: str, called: Called | None, listener: str) -> str | Blind:
    """User:NAME, as the called side's rules read a principal of Kerberos."""
    if not principal or called is None:
        return Blind("its principal", "its login names no principal of Kerberos, or the called side is not known")
    if isinstance(called.realm, Unknown):
        return Blind("its principal", f"Kerberos' default realm is not known: {called.realm.reason}")
    full = str(with_realm(principal, called.realm))
    try:
        found = short_name(full, of_listener(called.values, listener, TO_LOCAL, "DEFAULT"), called.realm)
    except ValueError:
        return Blind("its principal", f"{TO_LOCAL} of listener {listener} cannot be read")
    return f"User:{found}" if found else Blind("its principal", f"no rule of {TO_LOCAL} makes a user of {full}")


def controllers_user(values: Mapping[str, str], inventory: Inventory) -> str | Blind:
    """As whom controllers whose files are rendered from a broker's values call that broker; it lets in that user."""
    found, listener = values, inter_broker_listener(values)
    for added in (inventory.broker_properties, inventory.controller_properties):
        found = found if added is None else with_added(found, added.values)
    protocol, stated = protocols(values).get(listener, listener), inventory.controller_principal
    return caller(found, listener, protocol, BROKER_MECHANISM, stated=stated)


def joining(values: Mapping[str, str], principals: Iterable[str | Blind]) -> list[str]:
    """Who of these calls the node of that file and is to join its super users, where there is an authorizer.

    Never ANONYMOUS: that would let in everybody, and is for a person to decide (B-SEC-06 and B-SEC-07 say it is due).
    """
    if not authorizer(values):
        return []
    known = {ANONYMOUS, *super_users(values)}
    return list(dict.fromkeys(one for one in principals if isinstance(one, str) and one not in known))


def called_at(node: int, values: Mapping[str, str], world: World) -> Called:
    """That node as others call it."""
    launch = of_node(world.launches, node)
    return Called(values, launch if isinstance(launch, Unknown) else launch.realm)


def after_first_restart(file: ConfigFile, world: World) -> Mapping[str, str]:
    """A broker's values once it was restarted: what the inventory adds is in them."""
    return restarted(file.values, world.inventory.broker_properties)


def principal_to(
    controller: ConfigFile, values: Mapping[str, str], subjects: Subjects, world: World, node: int
) -> str | Blind:
    """As whom that node, with these values and the certificates that they name, calls that controller."""
    listener = controller_listener(controller.values)
    protocol = protocols(controller.values).get(listener, "PLAINTEXT")
    known = world.inventory
    stated = known.broker_principal if any(one.id == node for one in known.brokers) else known.controller_principal
    if protocol == "SSL" and not own_builder(controller.values, listener):
        return or_stated(certificates_name(values, subjects, controller.values, listener), stated)
    called = called_at(controller.node, controller.values, world)
    launch = of_node(world.launches, node)
    return caller(values, listener, protocol, CONTROLLER_MECHANISM, launch, called, stated=stated)


def controller_principals(controller: ConfigFile, broker: ConfigFile, world: World) -> Iterator[str | Blind]:
    """As whom a controller calls the brokers, and its fellow controllers."""
    listener = inter_broker_listener(broker.values)
    protocol, stated = protocols(broker.values).get(listener, listener), world.inventory.controller_principal
    if protocol == "SSL" and not own_builder(broker.values, listener):
        found = certificates_name(controller.values, controller.subjects, broker.values, listener)
        yield or_stated(found, stated)
    else:
        launch, called = of_node(world.launches, controller.node), called_at(broker.node, broker.values, world)
        yield caller(controller.values, listener, protocol, BROKER_MECHANISM, launch, called, stated=stated)
