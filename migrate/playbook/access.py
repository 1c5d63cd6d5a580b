"""How an inventory says what opens a listener and ZooKeeper: protocols, users, stores; secrets by reference alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import javaproperties

from migrate.errors import DocumentUnreadable
from migrate.hosts.properties import is_secret
from migrate.kafka.secrets import read_secret, take_from_environment
from migrate.model.inventory import (
    Access,
    AddedProperties,
    Secret,
    SecretCommand,
    SecretFile,
    SecretVariable,
    Store,
    ZookeeperLogin,
)
from migrate.playbook.document import Location, read_deciding, read_trusted
from migrate.playbook.fields import Fault, FilePath, SecretReference, Section, Text, refuse, validate

At = Location
Place = Callable[[str], str]
SASL: Final = ("mechanism", "username", "password")
OURS: Final = (  # keys that the tool sets itself, from the inventory
    "process.roles",
    "node.id",
    "broker.id",
    "controller.quorum.voters",
    "controller.listener.names",
    "listeners",
    "log.dirs",
    "metadata.log.dir",
    "zookeeper.connect",
    "zookeeper.metadata.migration.enable",
)


AddedSection = FilePath | dict[Text, Text] | None


class StoreSection(Section):
    """A file with certificates, or with a key and its certificates."""

    path: FilePath
    type: Literal["PEM", "PKCS12", "JKS"]
    password: SecretReference | None = None  # PEM: of the private key in it


class AccessSection(Section):
    """How to connect to a listener.  Host names are always verified; without a truststore the host's are used."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: Text | None = None
    password: SecretReference | None = None
    truststore: StoreSection | None = None
    keystore: StoreSection | None = None


class SaslSection(Section):
    """A SASL identity of ZooKeeper: DIGEST-MD5, what DigestLoginModule checks."""

    username: Text
    password: SecretReference


class TlsSection(Section):
    """TLS to ZooKeeper."""

    truststore: StoreSection | None = None
    keystore: StoreSection | None = None


class ZookeeperAccessSection(Section):
    """How ZooKeeper lets us in."""

    sasl: SaslSection | None = None
    tls: TlsSection | None = None


# -- rules -------------------------------------------------------------------------------------------------------
def access_faults(access: AccessSection, at: At) -> Iterator[Fault]:
    """SASL has its user, and nothing else has one; TLS alone has stores."""
    given = {name for name in SASL if getattr(access, name) is not None}
    if access.protocol.startswith("SASL_"):
        for name in SASL:
            if name not in given:
                yield Fault(
                    at, f"{'.'.join(map(str, at))}.{name} is missing", "SASL needs mechanism, username and password"
                )
    elif given:
        name = min(given)
        yield Fault((*at, name), f"{name} without SASL", f"protocol {access.protocol} asks for no user")
    if not access.protocol.endswith("SSL"):
        for name in ("truststore", "keystore"):
            if getattr(access, name) is not None:
                yield Fault((*at, name), f"{name} without TLS", f"protocol {access.protocol} is not encrypted")
    yield from store_faults({"truststore": access.truststore, "keystore": access.keystore}, at)


def zookeeper_faults(access: ZookeeperAccessSection | None, at: At) -> Iterator[Fault]:
    if access is not None and access.tls is not None:
        stores = {"truststore": access.tls.truststore, "keystore": access.tls.keystore}
        yield from store_faults(stores, (*at, "tls"))


def store_faults(stores: Mapping[str, StoreSection | None], at: At) -> Iterator[Fault]:
    """Only PEM goes without a password."""
    for name, store in stores.items():
        if store is not None and store.type != "PEM" and store.password is None:
            yield Fault((*at, name), f"{name}.password is missing", f"a {store.type} store is opened by its password")


# -- values ------------------------------------------------------------------------------------------------------
def access_of(section: AccessSection, beside: Place) -> Access:
    return Access(
        section.protocol,
        section.mechanism or "",
        section.username or "",
        secret_of(section.password, beside),
        _store(section.truststore, beside),
        _store(section.keystore, beside),
    )


def login_of(section: ZookeeperAccessSection | None, beside: Place) -> ZookeeperLogin:
    """The value; an empty one where nothing is said."""
    if section is None:
        return ZookeeperLogin()
    sasl, tls = section.sasl, section.tls
    return ZookeeperLogin(
        "" if sasl is None else sasl.username,
        None if sasl is None else secret_of(sasl.password, beside),
        tls is not None,
        None if tls is None else _store(tls.truststore, beside),
        None if tls is None else _store(tls.keystore, beside),
    )


def _store(section: StoreSection | None, beside: Place) -> Store | None:
    return None if section is None else Store(beside(section.path), section.type, secret_of(section.password, beside))


def secret_of(reference: SecretReference | None, beside: Place) -> Secret | None:
    """The value.  An environment variable is taken out of our environment here, before anything is started."""
    if reference is None:
        return None
    if reference.file is not None:
        return SecretFile(beside(reference.file))
    if reference.env is not None:
        take_from_environment(reference.env)
        return SecretVariable(reference.env)
    return SecretCommand(tuple(reference.command or ()))


def properties_faults(given: AddedSection, at: At) -> Iterator[Fault]:
    """Of properties that stand in the inventory itself, which is read by many: our own keys, and secrets."""
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if key in OURS:
            yield Fault((*at, key), f"{key} cannot be added", "this key follows from the inventory", "take it out")
        elif is_secret(key, value):
            hint = "name a file of properties instead, with mode 0600: `properties: added.properties`"
            yield Fault((*at, key), f"{key} holds a secret", "an inventory is read by many, and kept with plans", hint)


def added(given: AddedSection, beside: Place) -> AddedProperties | None:
    """The properties of the mapping or of the file, which has mode 0600 where one of its values may be a secret.

    Raises:
        SecretUnreadable: missing, or open to others while it holds a secret.
        DocumentNotTrusted: it belongs to another user.
        DocumentUnreadable: no properties, or keys that are not the operator's to add.
    """
    if given is None or isinstance(given, Mapping):
        return None if given is None else AddedProperties("", dict(given))
    place = beside(given)
    try:
        values = _properties_in(place)
    except ValueError as error:
        raise DocumentUnreadable("the file holds no properties as Java reads them", where=place) from error
    if ours := sorted(set(values) & set(OURS)):
        raise DocumentUnreadable(
            f"{', '.join(ours)} cannot be added",
            where=place,
            why="these keys follow from the inventory",
            next_step="take them out of the file",
        )
    return AddedProperties(place, values)


def _properties_in(place: str) -> dict[str, str]:
    """What the file says; the reader of secrets reads it again unless nothing in it can be one."""
    with suppress(OSError):  # the reader of secrets says why
        values = dict(javaproperties.loads(read_trusted(Path(place)).decode()))
        if not any(is_secret(key, value) for key, value in values.items()):
            return values
    return dict(javaproperties.loads(read_secret(SecretFile(place))))


# -- and back ----------------------------------------------------------------------------------------------------
def dumped_secret(value: Secret, relative: Place) -> dict[str, Any]:
    match value:
        case SecretFile(path):
            return {"file": relative(path)}
        case SecretVariable(name):
            return {"env": name}
        case SecretCommand(argv):
            return {"command": list(argv)}


def dumped_access(value: Access, relative: Place) -> dict[str, Any]:
    found: dict[str, Any] = {"protocol": value.protocol}
    if value.mechanism:
        found |= {"mechanism": value.mechanism, "username": value.username}
    if value.password:
        found["password"] = dumped_secret(value.password, relative)
    return found | _stores(value.truststore, value.keystore, relative)


def dumped_login(value: ZookeeperLogin, relative: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if value.username and value.password:
        found["sasl"] = {"username": value.username, "password": dumped_secret(value.password, relative)}
    if value.tls:
        found["tls"] = _stores(value.truststore, value.keystore, relative)
    return found


def dumped_added(value: AddedProperties | None, relative: Place) -> dict[str, Any]:
    """The path alone, or what stood in the inventory."""
    return {} if value is None else {"properties": relative(value.path) if value.path else dict(value.values)}


def _stores(truststore: Store | None, keystore: Store | None, relative: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, store in (("truststore", truststore), ("keystore", keystore)):
        if store is not None:
            found[name] = {"path": relative(store.path), "type": store.kind}
            if store.password is not None:
                found[name]["password"] = dumped_secret(store.password, relative)
    return found


def load_zookeeper_access(path: Path) -> ZookeeperLogin:
    """The login of a YAML file that holds what is under an inventory's `zookeeper_access`.

    Paths in it are relative to the file.  Raises DocumentUnreadable, YamlRefused or DocumentInvalid, each with
    file:line:column.
    """
    document = read_deciding(path)
    section = validate(document, ZookeeperAccessSection)
    refuse(document, list(zookeeper_faults(section, ())))
    near = path.resolve().parent
    return login_of(section, lambda text: os.path.normpath(near / text))
