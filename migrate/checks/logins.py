"""SEC: logins of brokers, controllers and of this tool: does each side know the other, and what goes unencrypted?

Passwords are compared here, and never stand in a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final

from migrate.checks.config import inter_broker_listener
from migrate.checks.phase import Phase, phase_of
from migrate.checks.principals import (
    ANONYMOUS,
    BUILDER,
    JAAS,
    LOCATION,
    after_first_restart,
    authorizer,
    certificates_name,
    controller_listener,
    super_users,
)
from migrate.checks.registry import ALWAYS, BEFORE_COPY, UNTIL_FINALIZED, Blind, Hit, Result, check
from migrate.checks.security import BROKER_MECHANISM, CONTROLLER_MECHANISM, EXTERNAL, dynamic_at_start
from migrate.checks.sight import (
    Configs,
    Sight,
    both,
    both_configs,
    broker_configs,
    broker_stores,
    controller_configs,
    readable_zookeeper,
    starts_with_stores,
)
from migrate.checks.zookeeper_access import stranger
from migrate.hosts.jaas import options
from migrate.model.config_keys import base_name
from migrate.model.ids import NodeId
from migrate.model.inventory import Access
from migrate.model.kafka_values import elements, listener_prefix
from migrate.model.listeners import StoreFile, listeners, protocols
from migrate.model.outcome import Unknown
from migrate.model.secrets import is_password_config
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZookeeperView
from migrate.model.world import World

SOON_DAYS: Final = 7
Stores = dict[NodeId, tuple[StoreFile, ...]]


def jaas_key(listener: str, mechanism: str) -> str:
    """`listener.name.ctl.plain.sasl.jaas.config`."""
    return f"{listener_prefix(listener)}{mechanism.lower()}.{JAAS}"


@check(
    "B-SEC-16",
    "a broker has no login for the controllers' listener",
    "The broker does not start again after its first restart: \"Could not find a 'KafkaServer' or 'ctl.KafkaServer' "
    'entry", whichever of the two is missing.',
    "sasl.mechanism.controller.protocol, or the login of that listener, is not in the broker's file.",
    "Name a file in the inventory's brokers.properties with sasl.mechanism.controller.protocol and "
    "listener.name.L.MECHANISM.sasl.jaas.config (L: the controller listener): each broker gets it at its first "
    "restart.",
    "seen on 3.9.2",
).sees(both_configs, blocks_from=Stage.MIGRATION_MODE)
def brokers_can_call(seen: tuple[Configs, Configs], world: World) -> Result:
    """Iff the controller listener is SASL; as the files will be after the first restart."""
    brokers, controllers = seen
    listeners = {
        controller_listener(file.values)
        for file in controllers.values()
        if protocols(file.values).get(controller_listener(file.values), "").startswith("SASL")
    }
    for node, file in brokers.items():
        about, values = f"broker {node}: {file.path}", after_first_restart(file, world)
        for listener in sorted(listeners):
            mechanism = values.get(CONTROLLER_MECHANISM, "").strip()
            if not mechanism:
                yield Hit(about, f"{CONTROLLER_MECHANISM} is missing, listener {listener} asks for a login")
            elif not values.get(jaas_key(listener, mechanism), "").strip():
                yield Blind(about, f"no {jaas_key(listener, mechanism)}; a JAAS file of the process may have it")


@check(
    "B-SEC-17",
    "a login is not known, or has another password, on the other side",
    "A broker that is refused by the controllers says 'started' and never registers; a controller that is refused by "
    "the brokers leaves the migration in KRAFT_CONTROLLER_TO_BROKER_COMM. Both retry indefinitely.",
    "A password was mistyped, or changed on one side only.",
    "Give the login of the one side the password that user_NAME has on the other, in the files that are named.",
    "PlainLoginModule; seen on 3.9.2: 'Invalid username or password', retried indefinitely",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def passwords_agree(seen: tuple[Configs, Configs], world: World) -> Result:
    """PLAIN, whose passwords stand on both sides: brokers and controllers to controllers, controllers to brokers."""
    brokers, controllers = seen
    late = {node: after_first_restart(file, world) for node, file in brokers.items()}
    for node, file in controllers.items():
        listener, about = controller_listener(file.values), f"controller {node}: {file.path}"
        callers = [(f"broker {other}", values) for other, values in late.items()]
        callers += [(f"controller {other}", entry.values) for other, entry in controllers.items()]
        yield from _compare_passwords(about, file.values, listener, CONTROLLER_MECHANISM, callers)
    for node, values in late.items():
        callers = [(f"controller {other}", entry.values) for other, entry in controllers.items()]
        about = f"broker {node}: {brokers[node].path}"
        yield from _compare_passwords(about, values, inter_broker_listener(values), BROKER_MECHANISM, callers)


def _compare_passwords(
    about: str,
    values: Mapping[str, str],
    listener: str,
    mechanism_key: str,
    callers: list[tuple[str, Mapping[str, str]]],
) -> Iterator[Hit | Blind]:
    """Does the side with these values know each caller's user and password?"""
    key = jaas_key(listener, "PLAIN")
    known = options(values.get(key, ""))
    if isinstance(known, Unknown):
        yield Blind(about, known.reason)
        return
    if not any(name.startswith("user_") for name in known):
        return  # a handler of its own, a JAAS file, or no PLAIN: nothing that could be compared stands here
    for who, other in callers:
        mine = options(other.get(key, "")) if other.get(mechanism_key, "").strip() == "PLAIN" else {}
        if isinstance(mine, Unknown):
            yield Blind(who, mine.reason)
            continue
        if "username" not in mine:
            continue
        user, given, wanted = mine["username"], mine.get("password", ""), known.get(f"user_{mine['username']}")
        if EXTERNAL in given or EXTERNAL in (wanted or ""):
            yield Blind(about, f"a password of user {user} is resolved by a configuration provider on the node")
        elif wanted is None:
            yield Hit(about, f"listener {listener} knows no user {user}, as which {who} calls it")
        elif wanted != given:
            yield Hit(about, f"listener {listener} has another password for user {user} than {who} uses")


@check(
    "B-SEC-20",
    "a value that a broker starts with stands in a dynamic configuration only",
    "A broker of ZooKeeper mode reads its dynamic values before it opens its listeners; a KRaft broker opens them with "
    "its file, and learns the dynamic values afterwards. Then it refuses a store that its listener did not begin with, "
    "and with it all other values of that broker; it never takes a login, or what a listener asks of its clients. The "
    "listener is dead or asks for less than before, or the broker does not start.",
    "kafka-configs set stores, a login, listeners or what a listener demands (--entity-type brokers), and the broker's "
    "file has another value or none.",
    "Write the value into the broker's file (the dynamic one may stay). No restart is needed before the migration: the "
    "dynamic value is the one that the broker runs with.",
    "KAFKA-17431; SslFactory.createNewSslEngineFactory; DynamicListenerConfig; seen on 3.9.2",
).sees(both(readable_zookeeper, broker_configs), blocks_from=Stage.MIGRATION_MODE, when=UNTIL_FINALIZED)
def starts_by_its_file(seen: tuple[ZookeeperView, Configs], world: World) -> Result:
    """Passwords are compared by the run's digests.  A listener that has no TLS needs no store, and so on."""
    view, brokers = seen
    for owner, name, value in dynamic_at_start(view):
        for node, file in brokers.items():
            if owner != str(int(node)) or not _used(name, file.values):
                continue
            own = file.values.get(name, file.values.get(base_name(name), "")).strip()
            hidden = is_password_config(name) or not value
            there = file.passwords.get(name, file.passwords.get(base_name(name), value))
            if hidden and own and value and there != value:
                about = f"broker {node}: {file.path}"
                yield Hit(about, f"{name} is set dynamically, and the file has another one")
            elif not own or (not hidden and elements(own) != elements(value)):
                told = "is set dynamically" if hidden else f"is {value} by a dynamic configuration"
                line = "" if hidden else f"{name}={value}"
                yield Hit(f"broker {node}: {file.path}", f"{name} {told}, the file has {own or 'none'}", line)


STORE_SOURCE: Final = "DefaultSslEngineFactory.FileBasedStore.load; SslFactory.SslEngineValidator"


@check(
    "B-SEC-25",
    "a store that a broker starts from is gone, or its certificate has ended",
    "The broker runs with what it read at its last start or by a dynamic configuration. At its next one it does not "
    "start without the file; with a certificate that has ended its fellow brokers, or its clients, refuse it.",
    "A store was moved, deleted or renamed since, or a certificate was not renewed.",
    "Put a store with a valid certificate there, readable for the node's user, or write another path into the "
    "broker's file.",
    STORE_SOURCE,
).sees(both(broker_stores, broker_configs), blocks_from=Stage.MIGRATION_MODE, when=UNTIL_FINALIZED, proof=True)
def stores_are_there(seen: tuple[Stores, Configs], world: World) -> Result:
    """Of stores that a listener of the file makes use of."""
    for about, store in _stores_in_use(seen, world):
        if store.ends is None:
            yield Hit(about, f"{store.key} names {store.path}, which does not exist")
        elif not isinstance(store.ends, Unknown) and store.ends and store.ends < world.today:
            yield Hit(about, f"the certificate of {store.key} ({store.path}) ended on {store.ends}")


@check(
    "W-SEC-26",
    f"the certificate of a broker's store ends within {SOON_DAYS} days",
    "A migration may be parked for days. A broker that restarts, or a rollback, behind that day brings a listener that "
    "nobody accepts.",
    "It was issued for so long, and nobody has renewed it yet.",
    "Renew it before the migration, in the same file.",
    STORE_SOURCE,
).sees(both(broker_stores, broker_configs))
def certificates_last(seen: tuple[Stores, Configs], world: World) -> Result:
    """A store that cannot be read is a blind spot here: B-SEC-25 knows nothing of it either."""
    for about, store in _stores_in_use(seen, world):
        if isinstance(store.ends, Unknown):
            yield Blind(about, f"{store.key}: {store.ends.reason}")
        elif store.ends and world.today and 0 <= _days(world.today, store.ends) <= SOON_DAYS:
            yield Hit(about, f"the certificate of {store.key} ({store.path}) ends on {store.ends}")


def _days(today: str, day: str) -> int:
    return (date.fromisoformat(day) - date.fromisoformat(today)).days


def _stores_in_use(seen: tuple[Stores, Configs], world: World) -> Iterator[tuple[str, StoreFile]]:
    stores, files = seen
    for node, found in stores.items():
        for store in found:
            values = files[node].values if node in files else {}
            if values and starts_with_stores(values, world) and _used(store.key, values):
                yield f"broker {node}: {files[node].path}", store


def _used(name: str, values: Mapping[str, str]) -> bool:
    """Does a listener of that file make use of the key?  One of another protocol, or none of that name, does not."""
    base = base_name(name)
    if base == name:
        return True
    known = protocols(values)
    mine = [entry.listener for entry in listeners(values) if name.startswith(listener_prefix(entry.listener))]
    spoken = {known.get(listener, "SASL_SSL") for listener in mine}  # unknown: it may be any
    if base.startswith("ssl."):
        return any(protocol.endswith("SSL") for protocol in spoken)
    if "sasl." in base:
        return any(protocol.startswith("SASL") for protocol in spoken)
    return bool(spoken)


@check(
    "B-SEC-22",
    "this tool is not among the super users of a controller",
    "Before the copy a controller authorizes super users only: the tool could not read the metadata, and would wait at "
    "the end of the stage without seeing whether a broker registers.",
    "The inventory's controllers.access has a user that is not in super.users of the controllers' files.",
    "Write super.users with the principal into the inventory's controllers.properties; take it out after "
    "the migration.",
    "seen on 3.9.2: CLUSTER_AUTHORIZATION_FAILED (31) to whoever is no super user",
).sees(controller_configs, blocks_from=Stage.CONTROLLERS, when=BEFORE_COPY, proof=True)
def tool_is_let_in(configs: Configs, world: World) -> Result:
    """By the inventory's user, or by our certificate as that listener's rules read it."""
    for node, file in configs.items():
        about = f"controller {node}: {file.path}"
        principal = _own_principal(world.inventory.access_of(world.inventory.node(node)), file)
        if isinstance(principal, Blind):
            yield principal
        elif authorizer(file.values) and principal not in super_users(file.values):
            yield Hit(about, f"super.users lacks {principal}, as which this tool calls it")


def _own_principal(access: Access, file: ConfigFile) -> str | Blind:
    if file.values.get(BUILDER, "").strip():
        return Blind("our principal", f"a {BUILDER} makes it")
    if access.username:
        return f"User:{access.username}"
    if access.protocol != "SSL" or access.keystore is None:
        return ANONYMOUS
    store = {LOCATION: access.keystore.path}
    return certificates_name(store, file.subjects, file.values, controller_listener(file.values))


@check(
    "W-SEC-18",
    "our own ZooKeeper identity may not write what a rollback must",
    "With it the lock inside the chroot cannot be taken, and /controller and /migration cannot be deleted for a "
    "rollback (NoAuth).",
    "zookeeper.set.acl=true on the brokers, and the inventory gives this tool another identity, or none.",
    "Give the inventory's zookeeper_access the brokers' identity (their JAAS section Client, or their certificate), or "
    "have that identity available for a rollback and create the playbook's lock path beforehand.",
    "zookeeper.set.acl; ZkData.defaultAcls; seen on 3.9.2",
).sees(readable_zookeeper, when=UNTIL_FINALIZED)
def own_identity(view: ZookeeperView, world: World) -> Result:
    if isinstance(view.acls, Unknown):
        yield Blind("the ACLs of ZooKeeper's znodes", view.acls.reason)
        return
    said = stranger(view.acls, world.inventory.zookeeper_login)
    if isinstance(said, Blind):
        yield said
    elif said is not None:
        yield Hit("ZooKeeper's ACLs", said)


def _files(world: World) -> Sight[tuple[Configs, Configs]]:
    """Look at the files that can be seen; what the inventory says holds without any."""
    brokers, controllers = broker_configs(world), controller_configs(world)
    return Sight((brokers.value or {}, controllers.value or {}), (*brokers.missing, *controllers.missing))


def _unencrypted(configs: Iterable[Configs], world: World) -> tuple[list[str], list[str]]:
    """List what goes without TLS, by the listeners' names: with a credential in clear, and without one."""
    found: dict[str, bool] = {}
    known, (brokers, controllers) = world.inventory, configs
    between = [
        (file.values, "brokers", inter_broker_listener(file.values), BROKER_MECHANISM) for file in brokers.values()
    ]
    between += [
        (file.values, "controllers", name, CONTROLLER_MECHANISM)
        for file in controllers.values()
        if (name := controller_listener(file.values))
    ]
    for values, who, name, key in between:
        protocol = protocols(values).get(name, name)
        mechanism = values.get(key, "GSSAPI").strip() if protocol.startswith("SASL") else ""
        found |= _without_tls(f"the {who}' listener {name}", protocol, mechanism)
    for access in dict.fromkeys(map(known.access_of, known.brokers)):
        names = {
            name
            for node in known.brokers
            if node.id in brokers and known.access_of(node) == access
            for name in _listeners_at(brokers[node.id].values, node.address.rpartition(":")[2])
        }
        listener = f" at listener {', '.join(sorted(names))}" if names else ""
        found |= _without_tls(f"this tool to the brokers{listener}", access.protocol, access.mechanism)
    for access in dict.fromkeys(map(known.access_of, known.controllers)):
        where = f"controllers at listener {known.controller_listener}"
        found |= _without_tls(f"this tool to the {where}", access.protocol, access.mechanism)
    if known.zookeeper and not known.zookeeper_login.tls and phase_of(world) is not Phase.FINALIZED:
        found["this tool to ZooKeeper (no TLS)"] = False
    return [said for said, clear in found.items() if clear], [said for said, clear in found.items() if not clear]


def _without_tls(what: str, protocol: str, mechanism: str) -> dict[str, bool]:
    """Name a connection without TLS, with whether a credential can be read on it; nothing for one with TLS."""
    if protocol not in ("PLAINTEXT", "SASL_PLAINTEXT"):
        return {}
    return {f"{what} ({', '.join(filter(None, (protocol, mechanism)))})": mechanism in ("PLAIN", "OAUTHBEARER")}


def _listeners_at(values: Mapping[str, str], port: str) -> Iterator[str]:
    """Name the listeners that are bound to, or advertised with, that port."""
    for key in ("advertised.listeners", "listeners"):
        yield from (entry.listener for entry in listeners(values, key) if str(entry.port) == port)


@check(
    "W-SEC-23",
    "a password or a token goes over the network in clear",
    "SASL_PLAINTEXT with PLAIN or OAUTHBEARER sends the credential itself: whoever sees one connection's packets is "
    "that user from then on, often a super user.",
    "The listener has SASL without TLS, or the inventory's `access` says so.",
    "Give the listener SASL_SSL (and `access` of the inventory `protocol: SASL_SSL`), or a mechanism that sends no "
    "credential, such as SCRAM. The migration does not need it: it keeps each listener's protocol as it is.",
    "KIP-43; Apache Kafka, Security: SASL/PLAIN should be used with TLS only",
).sees(_files, when=ALWAYS)
def credentials_in_clear(seen: tuple[Configs, Configs], world: World) -> Result:
    clear, _ = _unencrypted(seen, world)
    if clear:
        yield Hit("the network", f"a credential is sent in clear: {'; '.join(clear)}")


@check(
    "I-SEC-24",
    "connections that are not encrypted",
    "Everything on them can be read and changed on the way: records, metadata, and what a migration is decided by.",
    "The listener's protocol is PLAINTEXT or SASL_PLAINTEXT, or ZooKeeper is reached without TLS: the defaults.",
    "Where the network is not trusted, give the listener SSL or SASL_SSL and the inventory's `access` the same; for "
    "ZooKeeper a secureClientPort, and `tls` in `zookeeper_access`. The migration changes no protocol.",
    "Apache Kafka, Security: listener.security.protocol.map; zookeeper.ssl.client.enable",
).sees(_files, when=ALWAYS)
def not_encrypted(seen: tuple[Configs, Configs], world: World) -> Result:
    clear, plain = _unencrypted(seen, world)
    if clear or plain:
        yield Hit("the network", f"not encrypted: {'; '.join((*clear, *plain))}")
