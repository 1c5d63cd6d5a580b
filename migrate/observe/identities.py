"""As whom nodes call: the names in their certificates, and the controllers' logins at ZooKeeper, tried at ZooKeeper.

Kafka's controllers say nothing where that login is missing or wrong: they wait for ever, or die at their start.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from migrate.errors import IssuerUnreachable, KdcUnreachable, MigrateError, ZookeeperDenied
from migrate.hosts.disks import Configs, Told
from migrate.hosts.jaas import LoginModule, options, sections
from migrate.kafka.gssapi import ask_kdc
from migrate.kafka.oauth import ask_endpoint
from migrate.kafka.secrets import read_secret
from migrate.model.broker_modes import restarted
from migrate.model.ids import NodeId
from migrate.model.inventory import AddedProperties, BrokerNode, ControllerNode, Inventory, Kerberos, Playbook, Store
from migrate.model.kafka_values import REFERENCE, truth
from migrate.model.kerberos_names import with_realm
from migrate.model.launch import JAAS_FILE, KRB5, JaasLogin, Launch, NoZookeeperClient, ZookeeperClient
from migrate.model.listeners import (
    CHAIN,
    DENIED,
    GONE,
    KEYSTORE,
    TRUSTSTORE,
    ZOOKEEPER,
    StoreFile,
    jaas_key,
    logins,
    spoken,
    stores_named,
)
from migrate.model.outcome import Unknown, unknown
from migrate.model.ports import Files
from migrate.model.views import ConfigFile, NoFile
from migrate.zookeeper.client import access_of, connect

if TYPE_CHECKING:
    from migrate.kafka.stores import Anchors

TRUSTED: Final = "ssl.truststore.certificates"
ENDINGS: Final = {"pem": "PEM", "p12": "PKCS12", "jks": "JKS"}


def with_subjects(
    file: ConfigFile, added: AddedProperties | None, files: Files, own: Iterable[Store], controllers: tuple[str, str]
) -> ConfigFile:
    """The file with keystore's path -> subject: of the stores that it names, or will name, and of our own.

    Listeners' stores are not read where no listener that the node has or calls is of protocol SSL; the one for
    ZooKeeper is.  `controllers` are the controllers' listener and its protocol, which a file may not name yet.
    """
    values = {**file.values, **({} if added is None else added.values)}
    found = dict(_zookeepers(values, file.node, files))
    if "SSL" in spoken(values, *controllers).values():
        found |= dict(_stores((file.values, values), file.node, files))
        found |= {store.path: _own(store) for store in own}
    return replace(file, subjects=found) if found else file


Resolve = Callable[[NodeId, Sequence[str]], Mapping[str, Told] | Unknown]


def started_with(
    node: BrokerNode | ControllerNode, configs: Configs, inventory: Inventory, playbook: Playbook | Unknown
) -> Mapping[str, str] | Unknown:
    """The values that the node has at its next start, or more: a controller's that is not rendered yet by its sources.

    Those are the first broker's file, the playbook's overrides, and what the inventory adds (`steps.configuration`).
    """
    file = configs.get(node.id, Unknown("it was not read"))
    if isinstance(file, NoFile) and isinstance(node, ControllerNode):
        broker, added = configs.get(inventory.brokers[0].id), inventory.controller_properties
        if not isinstance(broker, ConfigFile) or isinstance(playbook, Unknown):
            return Unknown(f"{file.path} does not exist, and what it will hold is not known")
        more = {} if added is None else added.values
        own = {"listeners": f"{inventory.controller_listener}://{node.address}"}
        return {**broker.values, **playbook.controller_overrides.get(node.id, {}), **more, **own}
    if isinstance(file, ConfigFile):
        is_broker = isinstance(node, BrokerNode)
        return restarted(file.values, inventory.broker_properties) if is_broker else file.values
    return file if isinstance(file, Unknown) else Unknown(f"{file.path} does not exist")


def stores_of(
    node: NodeId,
    values: Mapping[str, str],
    launch: Launch | Unknown,
    inventory: Inventory,
    files: Files,
    resolve: Resolve,
) -> tuple[StoreFile, ...]:
    """The stores and files of logins that a node of these values, started so, opens; each is read as the node's user.

    Nothing is known of the logins of a controller that does not run.
    """
    access = (inventory.controller_listener, inventory.controller_access.protocol)
    found = [_store(node, values, key, files, resolve) for key in stores_named(values, *access)]
    if not isinstance(launch, Launch):
        unseen = any(node == broker.id for broker in inventory.brokers)
        return (*found, *([StoreFile("its command line", "", launch, launch)] if unseen else []))
    secure = "zookeeper.client.secure" in launch.zookeeper_properties or truth(values, "zookeeper.ssl.client.enable")
    named = {JAAS_FILE, *(key for key in launch.files if secure and key[2:].lower() not in values)} - {KRB5}
    opened = {key: _opened(node, key, launch.files[key], files, resolve) for key in sorted(named & {*launch.files})}
    found += [file for file, _ in opened.values()]
    texts = {jaas_key(name, mechanism): name for name, mechanism in sorted(logins(values, *access))}
    told_of: list[tuple[str, Mapping[str, str]]] = [
        (key, told) for key in texts if isinstance(told := options(values.get(key, "")), Mapping)
    ]
    if content := opened[JAAS_FILE][1] if JAAS_FILE in opened else None:
        try:
            told_of += _of_sections(content, launch, {name for key, name in texts.items() if key not in values})
        except ValueError as error:
            found.append(StoreFile(JAAS_FILE, launch.files[JAAS_FILE], Unknown(f"{launch.jaas_file}: {error}")))
    tabs = [(key, told["keyTab"]) for key, told in told_of if truth(told, "useKeyTab") and "keyTab" in told]
    tabs += [(KRB5, launch.files[KRB5])] if tabs and KRB5 in launch.files else []
    return (*found, *(_opened(node, key, path, files, resolve)[0] for key, path in tabs))


ENDPOINTS: Final = re.compile(r"(?:listener\.name\..*\.)?sasl\.oauthbearer\.(?:token|jwks)\.endpoint\.url")


class Issuers:
    """Who issues the logins that nodes' starts need: each is asked once, from this host.

    A KDC is asked where this tool logs in by Kerberos, else it cannot be.  What a provider resolves is not known here.
    A network may let nodes reach an endpoint that this host may not: one counts as away where this tool has its own
    tokens from there, or where it is in `reached`, which keeps what has answered.
    """

    def __init__(self, inventory: Inventory, reached: set[str]) -> None:
        self._inventory = inventory
        self._reached = reached
        own = (inventory.access_of(node).oauth for node in inventory.nodes)
        self._own = {_host(login.endpoint) for login in own if login is not None and login.endpoint}
        self._ask = functools.cache(self._asked)

    def away(self, values: Mapping[str, str]) -> tuple[str, ...] | Unknown:
        """Those that a node of these values needs and that do not answer, each with the reason."""
        access = (self._inventory.controller_listener, self._inventory.controller_access.protocol)
        by = {mechanism for _, mechanism in logins(values, *access)}
        wanted: list[str | Kerberos] = []
        at_zookeeper = self._inventory.zookeeper_login.kerberos
        if "GSSAPI" in by or (at_zookeeper is not None and truth(values, "zookeeper.set.acl")):
            known = [self._inventory.access_of(node).kerberos for node in self._inventory.nodes]
            wanted += [login for login in (*known, at_zookeeper) if login is not None][:1]
        if "OAUTHBEARER" in by:
            urls = (values[key].strip() for key in sorted(values) if ENDPOINTS.fullmatch(key))
            wanted += [url for url in urls if url.startswith("http") and REFERENCE not in url]
        found = [self._ask(one) for one in dict.fromkeys(wanted)]
        unseen = next((one for one in found if isinstance(one, Unknown)), None)
        return unseen or tuple(one for one in found if isinstance(one, str) and one)

    def _asked(self, issuer: str | Kerberos) -> str | Unknown:
        try:
            if isinstance(issuer, str):
                ask_endpoint(issuer)
                self._reached.add(issuer)
            else:
                ask_kdc(issuer)
        except (KdcUnreachable, IssuerUnreachable) as error:
            elsewhere = isinstance(issuer, str) and not (issuer in self._reached or _host(issuer) in self._own)
            return "" if elsewhere else f"{error.what} ({error.why})"
        except MigrateError as error:
            return unknown(error)
        return ""


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _of_sections(content: bytes, launch: Launch, listeners: set[str]) -> list[tuple[str, Mapping[str, str]]]:
    """The logins in a JAAS file for ZooKeeper and for these listeners, which have none in the node's file."""
    known = sections(content.decode("utf-8", errors="replace"))
    own = {name: f"{name.lower()}.KafkaServer" for name in listeners}
    wanted = {launch.zookeeper_section, *(name if name in known else "KafkaServer" for name in own.values())}
    told = [(name, module) for name in sorted(wanted) for module in known.get(name, ())]
    return [(f"{name} of {launch.jaas_file}", module.options) for name, module in told]


def _store(node: NodeId, values: Mapping[str, str], key: str, files: Files, resolve: Resolve) -> StoreFile:
    from migrate.kafka.stores import valid_days

    path, trusted = values[key].strip(), partial(_trusted, node, values, key, files, resolve)
    if key.endswith(CHAIN) and REFERENCE not in path:
        return _dated(key, "", valid_days(path.encode(), "PEM", "", trusted))
    store, content = _opened(node, key, path, files, resolve)
    if content is None or key.endswith(TRUSTSTORE):
        return replace(store, path="") if key.endswith(CHAIN) else store
    kind, password = _opened_by(values, key)
    if REFERENCE in kind + password:
        return replace(store, ends=Unknown(f"a configuration provider says on the node how {path} is opened"))
    return _dated(key, path, valid_days(content, kind, password, trusted), store.fault)


def _opened(node: NodeId, key: str, path: str, files: Files, resolve: Resolve) -> tuple[StoreFile, bytes | None]:
    if REFERENCE in path or not path.startswith("/"):
        known = Unknown(f"what {key} is, is known on the node alone")
        return StoreFile(key, path, known, known), None
    content, fault = _read(node, path, files, resolve)
    return StoreFile(key, path, fault if content is None and isinstance(fault, Unknown) else "", fault), content


def _dated(key: str, path: str, days: tuple[str, str] | Unknown, fault: str | Unknown = "") -> StoreFile:
    begins, ends = ("", days) if isinstance(days, Unknown) else days
    return StoreFile(key, path, ends, fault, begins)


def _read(node: NodeId, path: str, files: Files, resolve: Resolve) -> tuple[bytes | None, str | Unknown]:
    """The content, as far as it can be had, and what keeps the node's user from it; Unknown without that user."""
    told = resolve(node, (path,))
    seen, fault = (path, told) if isinstance(told, Unknown) else (told[path].real if path in told else path, "")
    try:
        return files.read(node, seen), fault
    except FileNotFoundError:
        return None, GONE
    except (OSError, MigrateError) as error:
        denied = isinstance(error, PermissionError) and not isinstance(fault, Unknown)
        return None, DENIED if denied else Unknown(f"{path} cannot be read: {error}")


def _trusted(node: NodeId, values: Mapping[str, str], key: str, files: Files, resolve: Resolve) -> Anchors | Unknown:
    """What the truststore of that key store's listener holds: its fellow nodes have the same."""
    if key.startswith(ZOOKEEPER):
        return Unknown("ZooKeeper says it")
    from migrate.kafka.stores import anchors

    prefix = key.removesuffix(KEYSTORE).removesuffix(CHAIN)
    if inline := values.get(f"{prefix}{TRUSTED}", values.get(TRUSTED, "")):
        return anchors(inline.encode(), "PEM", "")
    place = f"{prefix}{TRUSTSTORE}" if f"{prefix}{TRUSTSTORE}" in values else TRUSTSTORE
    path = values.get(place, "").strip()
    if not path.startswith("/"):
        return Unknown("no truststore of a listener is named by its path")
    content, fault = _read(node, path, files, resolve)
    if content is None:
        return fault if isinstance(fault, Unknown) else Unknown(f"{path} {fault}")
    return anchors(content, *_opened_by(values, f"{prefix}{TRUSTSTORE}"))


def _zookeepers(values: Mapping[str, str], node: NodeId, files: Files) -> Iterator[tuple[str, str | Unknown]]:
    """The keystore with which the node calls ZooKeeper."""
    path = values.get(f"{ZOOKEEPER}{KEYSTORE}", "").strip()
    if path:
        yield path, _subject(values, f"{ZOOKEEPER}{KEYSTORE}", path, node, files)


def _stores(both: tuple[Mapping[str, str], ...], node: NodeId, files: Files) -> Iterator[tuple[str, str | Unknown]]:
    seen: set[str] = set()
    for values in both:
        for key, path in values.items():
            if key.endswith(KEYSTORE) and not key.startswith(ZOOKEEPER) and path not in seen:
                seen.add(path)
                yield path, _subject(values, key, path, node, files)


def _opened_by(values: Mapping[str, str], key: str) -> tuple[str, str]:
    """Type and password of the store that key names; for ZooKeeper without a type its ending tells it.

    Source: `KeyStoreFileType`.
    """
    own = key.startswith(ZOOKEEPER)
    found = []
    for name in ("type", "password"):
        base = (TRUSTSTORE if key.endswith(TRUSTSTORE) else KEYSTORE).replace("location", name)
        listeners = "" if own else values.get(base, "")
        found.append(values.get(key.removesuffix("location") + name, listeners).strip())
    ending = ENDINGS.get(values.get(key, "").strip().rpartition(".")[2].lower(), "JKS") if own else "JKS"
    return found[0] or ending, found[1]


def _subject(values: Mapping[str, str], key: str, path: str, node: NodeId, files: Files) -> str | Unknown:
    kind, password = _opened_by(values, key)
    if REFERENCE in path + kind + password:
        return Unknown(f"a configuration provider says on the node how {path} is opened")
    from migrate.kafka.stores import subject

    try:
        return subject(files.read(node, path), kind, password)
    except OSError as error:
        return Unknown(f"{path} cannot be read: {error.strerror or error}")
    except MigrateError as error:
        return Unknown(f"{path} cannot be read: {error.id} {error}")


def _own(store: Store) -> str | Unknown:
    from migrate.kafka.stores import subject

    try:
        with open(store.path, "rb") as file:  # noqa: PTH123 - bytes of a path as the inventory spells it
            content = file.read(8 << 20)
        return subject(content, store.kind, read_secret(store.password) if store.password else "")
    except OSError as error:
        return Unknown(f"{store.path} cannot be read: {error.strerror}")
    except MigrateError as error:
        return Unknown(f"{store.path} cannot be read: {error.id}")


DIGEST: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
Tried = dict[tuple[str, str], bool | Unknown]


KRB5_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
KRB5_FILE: Final = "/etc/krb5.conf"
REALM: Final = re.compile(r"^\s*default_realm\s*=\s*([^\s{}]+)\s*$", re.MULTILINE)


def with_logins(launch: Launch | Unknown, node: NodeId, files: Files) -> Launch | Unknown:
    """The launch with what its JAAS file says of logins, and Kerberos' default realm: two files of that host."""
    if isinstance(launch, Unknown):
        return launch
    launch = replace(launch, logins={}, realm=_realm(launch.files.get(KRB5, KRB5_FILE), node, files))
    if launch.jaas_file is None:
        return launch
    try:
        known = sections(files.read(node, launch.jaas_file).decode("utf-8", errors="replace"))
    except (OSError, ValueError, MigrateError) as error:
        return replace(launch, logins=Unknown(f"{launch.jaas_file} cannot be read: {error}"))
    return replace(launch, logins={name: tuple(map(_login, modules)) for name, modules in known.items()})


def _login(module: LoginModule) -> JaasLogin:
    given = module.options
    return JaasLogin(module.name, given.get("username", ""), given.get("principal", ""), given.get("serviceName", ""))


def _realm(path: str, node: NodeId, files: Files) -> str | Unknown:
    try:
        text = files.read(node, path).decode("utf-8", errors="replace")
    except (OSError, MigrateError) as error:
        return Unknown(f"{path} cannot be read: {error}")
    found = REALM.search(text)
    return found[1] if found else Unknown(f"{path} has no default_realm")


def with_zookeeper_clients(
    launches: Mapping[NodeId, Launch | Unknown], inventory: Inventory, files: Files
) -> dict[NodeId, Launch | Unknown]:
    """The launches, controllers' with their logins for ZooKeeper; each login is tried once.  Nothing is written."""
    found = dict(launches)
    tried: Tried = {}
    for node in inventory.controllers:
        launch = found.get(node.id)
        if isinstance(launch, Launch):
            found[node.id] = replace(launch, zookeeper_client=_client(launch, node.id, inventory, files, tried))
    return found


def _client(
    launch: Launch, node: NodeId, inventory: Inventory, files: Files, tried: Tried
) -> ZookeeperClient | NoZookeeperClient | Unknown:
    section, path = launch.zookeeper_section, launch.jaas_file
    if not section:
        return NoZookeeperClient("-Dzookeeper.sasl.client=false")
    if path is None:
        return NoZookeeperClient(f"no {JAAS_FILE} is among its words")
    try:
        known = sections(files.read(node, path).decode("utf-8", errors="replace"))
    except FileNotFoundError:
        return NoZookeeperClient(f"{path} does not exist")
    except ValueError as error:
        return NoZookeeperClient(f"{path}: {error}")
    except OSError as error:
        return Unknown(f"{path} cannot be read: {error.strerror or error}")
    except MigrateError as error:
        return Unknown(f"{path} cannot be read: {error.id} {error}")
    if not known.get(section):
        return NoZookeeperClient(f"{path} has no section {section}")
    module = known[section][0]
    if module.name == KRB5_MODULE:
        return _by_kerberos(module.options.get("principal", ""), path, launch.realm)
    return _tried(module, path, inventory, tried)


def _by_kerberos(principal: str, path: str, realm: str | Unknown) -> ZookeeperClient | Unknown:
    """Its key stays on its host: the login is not tried.  A process without a key for it ends at its start."""
    if not principal:
        return Unknown(f"{path}: its login names no principal")
    whole = with_realm(principal, realm)
    return whole if isinstance(whole, Unknown) else ZookeeperClient("", Unknown("it was not tried"), whole)


def _tried(
    module: LoginModule, path: str, inventory: Inventory, tried: Tried
) -> ZookeeperClient | NoZookeeperClient | Unknown:
    user, password = module.options.get("username", ""), module.options.get("password", "")
    if module.name != DIGEST:
        return Unknown(f"{path}: {module.name} is not spoken by this tool")
    if not user:
        return NoZookeeperClient(f"{path}: its login names no username")
    key = (user, password)
    if key not in tried:
        tried[key] = _let_in(inventory, user, password)
    return ZookeeperClient(user, tried[key])


def _let_in(inventory: Inventory, user: str, password: str) -> bool | Unknown:
    """Does ZooKeeper take that password?"""
    try:
        ours = access_of(inventory.zookeeper_login)
        theirs = replace(ours, sasl_username=user, sasl_password=password, kerberos=None)  # our ticket would go first
        with connect(inventory.zookeeper, access=theirs) as client:
            client.sync("/")
    except ZookeeperDenied:
        return False
    except MigrateError as error:
        return unknown(error)
    return True
