"""SEC: logins of brokers, controllers and of this tool: does each side know the other, and what goes unencrypted?

Passwords are compared here, and never stand in a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Final

from migrate.checks.phase import Phase, phase_of
from migrate.checks.principals import (
    ANONYMOUS,
    BUILDER,
    after_first_restart,
    authorizer,
    called_at,
    certificates_name,
    controller_listener,
    kerberos_user,
    not_looked_for,
    own_builder,
    super_users,
    without_login,
)
from migrate.checks.registry import ALWAYS, BEFORE_COPY, UNTIL_FINALIZED, Blind, Hit, Result, check, placed
from migrate.checks.security import dynamic_at_start
from migrate.checks.sight import (
    NOT_LOOKED,
    Configs,
    Sight,
    both,
    both_configs,
    broker_configs,
    controller_configs,
    node_configs,
    of_node,
    readable_zookeeper,
)
from migrate.checks.zookeeper_access import stranger
from migrate.hosts.jaas import options
from migrate.model.config_keys import base_name
from migrate.model.ids import NodeId
from migrate.model.inventory import Access, BrokerNode
from migrate.model.kafka_values import REFERENCE, elements, listener_prefix
from migrate.model.launch import Launch, Unit, kept_from
from migrate.model.listeners import (
    BROKER_MECHANISM,
    CHAIN,
    CONTROLLER_MECHANISM,
    DENIED,
    JAAS,
    KEYSTORE,
    PROTOCOL_MAP,
    STORES,
    StoreFile,
    inter_broker_listener,
    jaas_key,
    listeners,
    protocols,
    stores_named,
)
from migrate.model.outcome import Unknown
from migrate.model.secrets import is_password_config
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, ZookeeperView
from migrate.model.world import World

SOON_DAYS: Final = 7


@check(
    "B-SEC-16",
    "a broker has no login for the controllers' listener",
    "The broker does not start again after its first restart: \"Could not find a 'KafkaServer' or 'ctl.KafkaServer' "
    'entry", whether sasl.mechanism.controller.protocol or the login is missing.',
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
    for about, file in placed("broker", brokers):
        values = after_first_restart(file, world)
        for listener in sorted(listeners):
            mechanism = values.get(CONTROLLER_MECHANISM, "").strip()
            if not mechanism:
                yield Hit(about, f"{CONTROLLER_MECHANISM} is missing, listener {listener} asks for a login")
                continue
            yield from without_login(about, file, listener, mechanism, world, of=values)


@check(
    "B-SEC-17",
    "a login is not known, or has another password, on the other side",
    "A broker that is refused by the controllers says 'started' and never registers; a controller that is refused by "
    "the brokers leaves the migration in KRAFT_CONTROLLER_TO_BROKER_COMM. Both retry indefinitely.",
    "Give the login of the one side the password that user_NAME has on the other, in the files that are named.",
    "PlainLoginModule; seen on 3.9.2: 'Invalid username or password', retried indefinitely",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def passwords_agree(seen: tuple[Configs, Configs], world: World) -> Result:
    """PLAIN, whose passwords stand on both sides: brokers and controllers to controllers, controllers to brokers."""
    brokers, controllers = seen
    late = {node: after_first_restart(file, world) for node, file in brokers.items()}
    for about, file in placed("controller", controllers):
        listener = controller_listener(file.values)
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
        if REFERENCE in f"{user}{given}{wanted or ''}":
            yield Blind(about, f"a password of user {user} is resolved by a configuration provider on the node")
        elif wanted is None:
            yield Hit(about, f"listener {listener} knows no user {user}, as which {who} calls it")
        elif wanted != given:
            yield Hit(about, f"listener {listener} has another password for user {user} than {who} uses")


DELETE_MAP: Final = (
    "The dynamic map overrides the file's, to which the first roll adds that listener: the broker would not start. "
    "Write the dynamic values of listeners into the broker's file, restart the broker, then delete the map: "
    "`kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type brokers --entity-name N --delete-config "
    "listener.security.protocol.map`."
)


@check(
    "B-SEC-20",
    "a value that a broker starts with is in a dynamic configuration only",
    "A broker of ZooKeeper mode reads its dynamic values before it opens its listeners; a KRaft broker opens them with "
    "its file, and learns the dynamic values afterwards. Then it refuses a store that its listener did not begin with, "
    "and with it all other values of that broker; it never takes a login, or what a listener asks of its clients. The "
    "listener is dead or asks for less than before, or the broker does not start.",
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
            if name == PROTOCOL_MAP and world.inventory.controller_listener.upper() not in protocols({name: value}):
                about = f"broker {node}: {file.path}"
                yield Hit(about, f"{name} is set dynamically, without the controllers' listener", value, DELETE_MAP)
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


def stores_in_use(world: World) -> Sight[tuple[tuple[str, NodeId, StoreFile], ...]]:
    """Each store that a node opens when it starts, by its file and by what its first restart adds to it."""
    files, found = node_configs(world), []
    missing, inventory = list(files.missing), world.inventory
    for node in inventory.nodes:
        file = (files.value or {}).get(node.id)
        values = {} if file is None else after_first_restart(file, world)
        keys = stores_named(values, inventory.controller_listener, inventory.controller_access.protocol)
        launch, read = of_node(world.launches, node.id), of_node(world.stores, node.id)
        logins = (isinstance(launch, Launch) and launch.files) or any(key.endswith(f".gssapi.{JAAS}") for key in values)
        role = "broker" if isinstance(node, BrokerNode) else "controller"
        if isinstance(read, Unknown):
            missing += [(f"the stores of {role} {int(node.id)}", read.reason)] if keys or logins else []
            continue
        known = {(store.key, store.path): store for store in read}
        named = [(key, "" if key.endswith(CHAIN) else values[key].strip()) for key in keys]
        stores = [known.get(place, StoreFile(*place, NOT_LOOKED, NOT_LOOKED)) for place in named]
        stores += [store for store in read if not store.key.endswith(STORES)]  # what a login names
        found += [(f"{role} {node.id}: {file.path if file else ''}", node.id, store) for store in stores]
    return Sight(tuple(found) or None, tuple(missing))


def _certificate(store: StoreFile) -> str:
    return f"a certificate in {store.key}" + (f" ({store.path})" if store.path else "")


@check(
    "B-SEC-25",
    "a file that a node starts from is gone or closed to its user, or its certificate is not valid",
    "The node runs with what it read at its last start or by a dynamic configuration. Without a store, the JAAS file "
    "of its command line, or the keytab or krb5.conf of a login, it does not start again; with a certificate that has "
    "ended, or is not valid yet, it does not start where brokers call each other, ZooKeeper gives it no session unless "
    "its ssl.clientAuth is none, and elsewhere its clients refuse it.",
    "Put the file there, a store with a valid certificate, readable for the node's user (`chgrp`, `chmod g+r`; each "
    "folder above it `chmod g+x`), or write another path where the finding says it is named; for a controller without "
    "a file: where its values come from. Where the unit hides it: except it there (`systemctl edit`).",
    STORE_SOURCE,
).sees(stores_in_use, blocks_from=Stage.CONTROLLERS, when=UNTIL_FINALIZED, proof=True)
def stores_are_there(seen: tuple[tuple[str, NodeId, StoreFile], ...], world: World) -> Result:
    """Certificates of a truststore are not asked for their day: Java does not either (seen on 3.9.2)."""
    for about, node, store in seen:
        unit = of_node(world.units, node)
        if isinstance(unit, Unit) and store.path and (by := kept_from(unit.view, store.path)):
            yield Hit(about, f"{store.key} names {store.path}, which {unit.name} does not see: {by}")
        elif store.fault and not isinstance(store.fault, Unknown):
            user = f" ({unit.user})" if store.fault == DENIED and isinstance(unit, Unit) and unit.user else ""
            yield Hit(about, f"{store.key} names {store.path}, which {store.fault}{user}")
        elif not isinstance(store.ends, Unknown) and store.ends and store.ends < world.today:
            yield Hit(about, f"{_certificate(store)} ended on {store.ends}")
        elif store.begins:
            yield Hit(about, f"{_certificate(store)} is not valid before {store.begins}")


@check(
    "W-SEC-26",
    f"the certificate of a node's store ends within {SOON_DAYS} days",
    "A migration may be parked for days. A node that restarts, or a rollback, behind that day brings a listener that "
    "nobody accepts.",
    "Renew it before the migration, in the same file.",
    STORE_SOURCE,
).sees(stores_in_use)
def certificates_last(seen: tuple[tuple[str, NodeId, StoreFile], ...], world: World) -> Result:
    """A store of which something is not known is a blind spot here: B-SEC-25 knows nothing of it either."""
    for about, _, store in seen:
        unseen = next((part for part in (store.ends, store.fault) if isinstance(part, Unknown)), None)
        if unseen is not None:
            yield Blind(about, f"{store.key}: {unseen.reason}")
        dated = world.today and isinstance(store.ends, str) and store.ends
        if dated and 0 <= _days(world.today, dated) <= SOON_DAYS:
            yield Hit(about, f"{_certificate(store)} ends on {store.ends}")


def _days(today: str, day: str) -> int:
    return (date.fromisoformat(day) - date.fromisoformat(today)).days


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
    "Write super.users with the principal into the inventory's controllers.properties; take it out after "
    "the migration.",
    "seen on 3.9.2: CLUSTER_AUTHORIZATION_FAILED (31) to whoever is no super user",
).sees(controller_configs, blocks_from=Stage.CONTROLLERS, when=BEFORE_COPY, proof=True)
def tool_is_let_in(configs: Configs, world: World) -> Result:
    """By the inventory's user, or by our certificate as that listener's rules read it."""
    for node, file in configs.items():
        about = f"controller {node}: {file.path}"
        principal = _own_principal(world.inventory.access_of(world.inventory.node(node)), file, world)
        if isinstance(principal, Blind):
            if not not_looked_for(principal, world):
                yield principal
        elif authorizer(file.values) and principal not in super_users(file.values):
            yield Hit(about, f"super.users lacks {principal}, as which this tool calls it")


def _own_principal(access: Access, file: ConfigFile, world: World) -> str | Blind:
    listener = controller_listener(file.values)
    if own_builder(file.values, listener):
        return Blind("our principal", f"a {BUILDER} makes it")
    if access.kerberos is not None:
        called = called_at(file.node, file.values, world)
        return kerberos_user(access.user, called, listener)
    if access.username:
        return f"User:{access.username}"
    if access.protocol != "SSL" or access.keystore is None:
        return ANONYMOUS
    store = {KEYSTORE: access.keystore.path}
    return certificates_name(store, file.subjects, file.values, listener)


@check(
    "W-SEC-18",
    "our own ZooKeeper identity may not write what a rollback must",
    "Where the brokers have zookeeper.set.acl=true, and this tool has another identity or none, the lock inside the "
    "chroot cannot be taken, and /controller and /migration cannot be deleted for a rollback (NoAuth).",
    "Give the inventory's zookeeper_access the brokers' identity (their JAAS section Client, or their certificate), or "
    "have that identity available for a rollback and create the playbook's lock path beforehand.",
    "zookeeper.set.acl; ZkData.defaultAcls; seen on 3.9.2",
).sees(readable_zookeeper, when=UNTIL_FINALIZED)
def own_identity(view: ZookeeperView, world: World) -> Result:
    said = stranger(view, world)
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
    for access in map(known.access_of, known.nodes):
        if access.oauth is not None and (access.oauth.endpoint or "").startswith("http:"):
            found[f"this tool's client_secret to {access.oauth.endpoint}"] = True
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
    "Where the network is not trusted, give the listener SSL or SASL_SSL and the inventory's `access` the same; for "
    "ZooKeeper a secureClientPort, and `tls` in `zookeeper_access`. The migration changes no protocol.",
    "Apache Kafka, Security: listener.security.protocol.map; zookeeper.ssl.client.enable",
).sees(_files, when=ALWAYS)
def not_encrypted(seen: tuple[Configs, Configs], world: World) -> Result:
    clear, plain = _unencrypted(seen, world)
    if clear or plain:
        yield Hit("the network", f"not encrypted: {'; '.join((*clear, *plain))}")
