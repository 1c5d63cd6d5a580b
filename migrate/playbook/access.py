"""How an inventory says what opens a listener and ZooKeeper: protocols, users, stores; secrets by reference alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import javaproperties

from migrate.errors import DocumentUnreadable
from migrate.hosts.properties import is_secret
from migrate.kafka.secrets import read_secret, take_from_environment
from migrate.model.config_keys import BOOTSTRAP, VOTERS, Fate, Moment, fate
from migrate.model.ids import NodeId
from migrate.model.inventory import (
    Access,
    AddedProperties,
    Kerberos,
    Secret,
    SecretCommand,
    SecretFile,
    SecretVariable,
    Store,
    ZookeeperLogin,
)
from migrate.model.written import BESIDE, FilePath, Text, keys_of
from migrate.playbook.document import Location, read_deciding, read_trusted
from migrate.playbook.fields import Fault, Section, refuse, validate

Place = Callable[[str], str]
SASL: Final = ("mechanism", "username", "password")
OURS: Final = (  # keys that the tool sets itself, from the inventory
    "process.roles",
    "node.id",
    "broker.id",
    VOTERS,
    BOOTSTRAP,
    "controller.listener.names",
    "listeners",
    "log.dirs",
    "metadata.log.dir",
    "zookeeper.connect",
    "zookeeper.metadata.migration.enable",
)


def _not_to_be_added(key: str, *, brokers: bool) -> str:
    """Why that key cannot be added to the files of brokers, or of controllers; "" where it can."""
    if key in OURS or (brokers and fate(key, Moment.FIRST_ROLL) is Fate.SET):
        return "this key follows from the inventory"
    removed = brokers and fate(key, Moment.SECOND_ROLL) is Fate.REMOVED
    return "the second roll removes this key: write it into the brokers' files" if removed else ""


AddedSection = FilePath | dict[Text, Text] | None


class SaslSection(Section):
    """A SASL identity of ZooKeeper: DIGEST-MD5, what DigestLoginModule checks."""

    username: Text
    password: Secret


class TlsSection(Section):
    """TLS to ZooKeeper."""

    truststore: Store | None = None
    keystore: Store | None = None


class ZookeeperAccessSection(Section):
    """How ZooKeeper lets us in."""

    sasl: SaslSection | None = None
    kerberos: Kerberos | None = None
    tls: TlsSection | None = None

    @property
    def login(self) -> ZookeeperLogin:
        username, password = ("", None) if self.sasl is None else (self.sasl.username, self.sasl.password)
        tls = self.tls or TlsSection()
        return ZookeeperLogin(username, password, self.tls is not None, tls.truststore, tls.keystore, self.kerberos)


# -- rules -------------------------------------------------------------------------------------------------------
def access_faults(access: Access, at: Location) -> Iterator[Fault]:
    """SASL has its user, GSSAPI its principal, and nothing else has one; TLS alone has stores."""
    given = {name for name in (*SASL, "kerberos", "oauth") if getattr(access, name)}
    by_kerberos, by_token = access.mechanism == "GSSAPI", access.mechanism == "OAUTHBEARER"
    if by_kerberos or "kerberos" in given:
        for name in ("kerberos",) if by_kerberos else ():
            if name not in given:
                yield Fault(at, f"{'.'.join(map(str, at))}.{name} is missing", "GSSAPI needs a principal")
        for name in ("username", "password", "oauth"):
            if name in given:
                yield Fault((*at, name), f"{name} with kerberos", "GSSAPI logs in by its principal")
        if not by_kerberos:
            yield Fault((*at, "kerberos"), "kerberos without GSSAPI", "write `mechanism: GSSAPI`")
        if not access.protocol.startswith("SASL_"):
            yield Fault((*at, "mechanism"), "mechanism without SASL", f"protocol {access.protocol} asks for no user")
    elif access.protocol.startswith("SASL_"):
        needed, other = ("oauth", "password") if by_token else ("password", "oauth")
        for name in ("mechanism", "username", needed):
            if name not in given:
                needs = f"mechanism, username and {needed}"
                yield Fault(at, f"{'.'.join(map(str, at))}.{name} is missing", f"SASL needs {needs}")
        if other in given:
            yield Fault((*at, other), f"{other} with {access.mechanism}", f"it logs in by `{needed}`")
    elif given:
        name = min(given)
        yield Fault((*at, name), f"{name} without SASL", f"protocol {access.protocol} asks for no user")
    if not access.protocol.endswith("SSL"):
        for name in ("truststore", "keystore"):
            if getattr(access, name) is not None:
                yield Fault((*at, name), f"{name} without TLS", f"protocol {access.protocol} is not encrypted")
    yield from store_faults({"truststore": access.truststore, "keystore": access.keystore}, at)
    if access.oauth is not None:
        yield from store_faults({"truststore": access.oauth.truststore}, (*at, "oauth"))


def zookeeper_faults(access: ZookeeperAccessSection | None, at: Location) -> Iterator[Fault]:
    if access is not None and access.sasl is not None and access.kerberos is not None:
        yield Fault((*at, "kerberos"), "kerberos with sasl", "a session has one login: write one of them")
    if access is not None and access.tls is not None:
        stores = {"truststore": access.tls.truststore, "keystore": access.tls.keystore}
        yield from store_faults(stores, (*at, "tls"))


def store_faults(stores: Mapping[str, Store | None], at: Location) -> Iterator[Fault]:
    """Only PEM goes without a password."""
    for name, store in stores.items():
        if store is not None and store.kind != "PEM" and store.password is None:
            yield Fault((*at, name), f"{name}.password is missing", f"a {store.kind} store is opened by its password")


# -- values ------------------------------------------------------------------------------------------------------
def take_variables(value: object) -> None:
    """Take each environment variable that holds a secret of that value out of ours, before anything is started."""
    if isinstance(value, SecretVariable):
        take_from_environment(value.name)
    elif isinstance(value, tuple):
        for entry in value:
            take_variables(entry)
    elif is_dataclass(value):
        for found in fields(value):
            take_variables(getattr(value, found.name))


def properties_faults(given: AddedSection, at: Location, *, brokers: bool) -> Iterator[Fault]:
    """Of properties that stand in the inventory itself, which is read by many: our own keys, and secrets."""
    for key, value in given.items() if isinstance(given, Mapping) else ():
        if why := _not_to_be_added(key, brokers=brokers):
            yield Fault((*at, key), f"{key} cannot be added", why, "take it out")
        elif is_secret(key, value):
            hint = "name a file of properties instead, with mode 0600: `properties: added.properties`"
            yield Fault((*at, key), f"{key} holds a secret", "an inventory is read by many, and kept with plans", hint)


def added(given: AddedSection, *, brokers: bool = False) -> AddedProperties | None:
    """The properties of the mapping or of the file, which has mode 0600 where one of its values may be a secret.

    Raises:
        SecretUnreadable: missing, or open to others while it holds a secret.
        DocumentNotTrusted: it belongs to another user.
        DocumentUnreadable: no properties, or keys that are not the operator's to add.
    """
    if given is None or isinstance(given, Mapping):
        return None if given is None else AddedProperties("", dict(given))
    try:
        values = _properties_in(given)
    except ValueError as error:
        raise DocumentUnreadable("the file holds no properties as Java reads them", where=given) from error
    refused = {key: why for key in sorted(values) if (why := _not_to_be_added(key, brokers=brokers))}
    if refused:
        why = "; ".join(dict.fromkeys(refused.values()))
        how = "take them out of the file"
        raise DocumentUnreadable(f"{', '.join(refused)} cannot be added", where=given, why=why, next_step=how)
    return AddedProperties(given, values)


def _properties_in(place: str) -> dict[str, str]:
    """What the file says; the reader of secrets reads it again unless nothing in it can be one."""
    with suppress(OSError):  # the reader of secrets says why
        values = dict(javaproperties.loads(read_trusted(Path(place)).decode()))
        if not any(is_secret(key, value) for key, value in values.items()):
            return values
    return dict(javaproperties.loads(read_secret(SecretFile(place))))


# -- and back ----------------------------------------------------------------------------------------------------
def dumped(value: Any, relative: Place) -> Any:
    """A value as a file writes it: what is as it would be without a word is left out."""
    match value:
        case SecretFile(path):
            return {"file": relative(path)}
        case SecretVariable(name):
            return {"env": name}
        case SecretCommand(argv):
            return {"command": list(argv)}
        case NodeId():
            return int(value)
        case float():
            return f"{value:.0f}s"
        case tuple():
            return list(value)
    if not is_dataclass(value):
        return value
    found = {}
    for (key, kind), entry in zip(keys_of(type(value)).items(), fields(value), strict=True):
        one = getattr(value, entry.name)
        if one != entry.default:
            found[key] = relative(one) if BESIDE in getattr(kind, "__metadata__", ()) else dumped(one, relative)
    return found


def dumped_login(value: ZookeeperLogin, relative: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if value.username and value.password:
        found["sasl"] = {"username": value.username, "password": dumped(value.password, relative)}
    if value.kerberos is not None:
        found["kerberos"] = dumped(value.kerberos, relative)
    if value.tls:
        stores = {"truststore": value.truststore, "keystore": value.keystore}
        found["tls"] = {name: dumped(store, relative) for name, store in stores.items() if store is not None}
    return found


def dumped_added(value: AddedProperties | None, relative: Place) -> dict[str, Any]:
    """The path alone, or what stood in the inventory."""
    return {} if value is None else {"properties": relative(value.path) if value.path else dict(value.values)}


def load_zookeeper_access(path: Path) -> ZookeeperLogin:
    """The login of a YAML file that holds what is under an inventory's `zookeeper_access`.

    Paths in it are relative to the file.  Raises DocumentUnreadable, YamlRefused or DocumentInvalid, each with
    file:line:column.
    """
    document = read_deciding(path)
    near = path.resolve().parent
    section = validate(document, ZookeeperAccessSection, lambda text: os.path.normpath(near / text))
    refuse(document, zookeeper_faults(section, ()))
    take_variables(section.login)
    return section.login
