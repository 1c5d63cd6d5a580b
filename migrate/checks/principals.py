"""As whom a node calls another, and whom a node lets in: principals by its file, its logins and certificates (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.certificates import Subjects, certificates_name
from migrate.checks.config import inter_broker_listener, protocols
from migrate.checks.registry import Blind
from migrate.hosts.jaas import options
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile
from migrate.model.world import World

AUTHORIZER: Final = "authorizer.class.name"
JAAS: Final = "sasl.jaas.config"
SUPER_USERS: Final = "super.users"
ANONYMOUS: Final = "User:ANONYMOUS"
BUILDER: Final = "principal.builder.class"


def authorizer(values: Mapping[str, str]) -> str:
    """authorizer.class.name, "" for none."""
    return values.get(AUTHORIZER, "").strip()


def super_users(values: Mapping[str, str]) -> frozenset[str]:
    """super.users, split at semicolons."""
    return frozenset(user.strip() for user in values.get(SUPER_USERS, "").split(";") if user.strip())


def controller_listener(values: Mapping[str, str]) -> str:
    """The first of controller.listener.names: the one that brokers call."""
    return values.get("controller.listener.names", "").split(",")[0].strip()


def caller(values: Mapping[str, str], listener: str, protocol: str, mechanism_key: str) -> str | Blind:
    """The principal with which a node with these values calls that listener (User:name), or why it cannot be told."""
    if values.get(BUILDER, "").strip():
        return Blind("its principal", "a principal.builder.class makes it")
    if protocol == "PLAINTEXT":
        return ANONYMOUS
    if protocol == "SSL":
        return Blind("its principal", f"listener {listener} takes it from a TLS certificate")
    mechanism = values.get(mechanism_key, "GSSAPI").strip()
    name = f"listener.name.{listener.lower()}.{mechanism.lower()}.{JAAS}"
    found = options(values.get(name, ""))
    if isinstance(found, Unknown):
        return Blind("its principal", found.reason)
    if found.get("tokenauth", "").lower() == "true":
        return Blind("its principal", f"{name} logs in by a delegation token, as that token's owner")
    if "username" not in found:
        return Blind("its principal", f"{name} names no username")
    return "User:" + found["username"]


def after_first_restart(file: ConfigFile, world: World) -> Mapping[str, str]:
    """A broker's values once it was restarted: what the inventory adds is in them."""
    added = world.inventory.broker_properties
    if added is None or mode_of(file.values) is not Mode.ZOOKEEPER:
        return file.values
    return with_added(file.values, added.values)


def with_added(values: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """A node's values with those that are added to them; super users join the ones that are there."""
    merged = {**values, **added}
    if SUPER_USERS in values and SUPER_USERS in added:
        users = dict.fromkeys(user.strip() for each in (values, added) for user in each[SUPER_USERS].split(";"))
        merged[SUPER_USERS] = ";".join(user for user in users if user)
    return merged


def principal_to(controller: ConfigFile, values: Mapping[str, str], subjects: Subjects) -> str | Blind:
    """As whom a node with these values (and the certificates that they name) calls that controller."""
    listener = controller_listener(controller.values)
    protocol = protocols(controller.values).get(listener.upper(), "PLAINTEXT")
    if protocol == "SSL" and not controller.values.get(BUILDER, "").strip():
        return certificates_name(values, subjects, controller.values, listener)
    return caller(values, listener, protocol, "sasl.mechanism.controller.protocol")


def controller_principals(controller: ConfigFile, broker: ConfigFile) -> Iterator[str | Blind]:
    """As whom a controller calls the brokers, and its fellow controllers."""
    listener = inter_broker_listener(broker.values)
    protocol = protocols(broker.values).get(listener.upper(), listener.upper())
    if protocol == "SSL" and not broker.values.get(BUILDER, "").strip():
        yield certificates_name(controller.values, controller.subjects, broker.values, listener)
    else:
        yield caller(controller.values, listener, protocol, "sasl.mechanism.inter.broker.protocol")
