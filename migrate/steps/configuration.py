"""The table of configuration keys (`model.config_keys`), applied to the operators' own files (pure).

Source: Kafka 3.9 operations guide (ZooKeeper to KRaft migration), `KafkaConfig.scala`, `KafkaServer.scala`.  Comments,
order and untouched bytes of a broker's file are kept; a controller's file is rendered from a broker's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from migrate.checks.config import brought_along
from migrate.checks.principals import (
    AUTHORIZER,
    STANDARD_AUTHORIZER,
    caller,
    controllers_user,
    in_kraft_mode,
    joining,
    super_users,
)
from migrate.checks.registry import Blind
from migrate.checks.releases import PROTOCOL
from migrate.hosts.properties import DEFAULT_LOG_DIR, edit, log_dirs, parse
from migrate.model import config_keys
from migrate.model.broker_modes import FLAG, with_added
from migrate.model.config_keys import IBP, Fate, Moment, QuorumKind
from migrate.model.inventory import AddedProperties, BrokerNode, ControllerNode, Inventory, KraftAuthorizer
from migrate.model.kafka_values import calls_itself, entries, listener_of, listener_prefix, map_entries, version_name
from migrate.model.listeners import DEFAULT_PROTOCOL_MAP, PROTOCOL_MAP, inter_broker_listener, protocols
from migrate.model.outcome import Unknown
from migrate.model.world import World

LOG_DIRS: Final = "log.dirs"
LISTENER: Final = "listener.name."


def _with_super_users(values: dict[str, str], principals: Iterable[str | Blind]) -> None:
    """Add who calls this node and must be let in."""
    if missing := joining(values, principals):
        given = values.get("super.users", "").strip().rstrip(";")
        values["super.users"] = ";".join([given, *missing] if given else missing)


def _added(values: AddedProperties | None) -> Mapping[str, str]:
    return {} if values is None else values.values


def _brokers_own(values: Mapping[str, str], inventory: Inventory) -> dict[str, str]:
    """What a broker of these values is to have from its first restart on, beyond our own keys."""
    found = dict(_added(inventory.broker_properties))
    after = with_added(values, found)
    _with_super_users(after, [controllers_user(values, inventory)])
    found.pop("super.users", None)
    if after.get("super.users") != values.get("super.users"):
        found["super.users"] = after["super.users"]
    return found


def _protocol_map(values: Mapping[str, str], inventory: Inventory) -> str:
    """Return the map with the controller listener in it; brokers and controllers need both sides.

    An entry of that name with another protocol is replaced, never kept: B-CFG-30 refuses it before a file is written.
    """
    name, protocol = inventory.controller_listener, inventory.controller_access.protocol
    if protocols(values).get(name.upper()) == protocol and values.get(PROTOCOL_MAP):
        return values[PROTOCOL_MAP]
    known = map_entries(values.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP))
    return ",".join([*(entry for entry in known if listener_of(entry) != name.upper()), f"{name}:{protocol}"])


def migration_mode(raw: bytes, inventory: Inventory) -> bytes:
    values = parse(raw)
    changes = {
        FLAG: "true",
        **dict([inventory.quorum_key]),
        "controller.listener.names": inventory.controller_listener,
        PROTOCOL_MAP: _protocol_map(values, inventory),
    }
    return _edited(raw, values, changes, Moment.FIRST_ROLL, inventory)


def kraft_mode(raw: bytes, inventory: Inventory, broker: BrokerNode, kraft: KraftAuthorizer | None = None) -> bytes:
    """`kraft` is the playbook's, as for `controller`: the class that decides about rights in KRaft mode."""
    values = parse(raw)
    changes = {
        "process.roles": "broker",
        "node.id": str(int(broker.id)),
        **dict([inventory.quorum_key]),
        "controller.listener.names": inventory.controller_listener,
        PROTOCOL_MAP: _protocol_map(values, inventory),
    }
    return _edited(raw, values, changes, Moment.SECOND_ROLL, inventory, in_kraft_mode(values, kraft))


def controller(
    broker: Mapping[str, str],
    inventory: Inventory,
    node: ControllerNode,
    overrides: Mapping[str, str] | None = None,
    kraft: KraftAuthorizer | None = None,
) -> bytes:
    """A controller's file, rendered from a broker's values: the flag is in it from the first start on.

    `overrides` are the playbook's: keys that the table leaves to the operator, held to it when the playbook was read.
    """
    values = {
        "process.roles": "controller",
        "node.id": str(int(node.id)),
        **dict([inventory.quorum_key]),
        "controller.listener.names": inventory.controller_listener,
        "listeners": f"{inventory.controller_listener}://{node.address}",
        PROTOCOL_MAP: _protocol_map(broker, inventory),
        "log.dirs": node.metadata_directory,
        "metadata.log.dir": node.metadata_directory,
        FLAG: "true",
        "zookeeper.connect": _zookeeper(broker, inventory),
    }
    deciding = in_kraft_mode(broker, kraft)  # without a class, what brokers forward in hybrid is checked by nobody
    values |= {key: value for key, value in deciding.items() if key == AUTHORIZER}
    if deciding.get(AUTHORIZER, STANDARD_AUTHORIZER) != STANDARD_AUTHORIZER:
        values["early.start.listeners"] = inventory.controller_listener
    _of_table(values, Moment.RENDERED, inventory.quorum)
    listeners = tuple(map(listener_prefix, (inter_broker_listener(broker), inventory.controller_listener)))
    for key in config_keys.taken(broker):
        # settings and secrets of listeners that a controller neither has nor calls stay with the brokers
        if not key.startswith(LISTENER) or key.startswith(listeners):
            values[key] = broker[key]
    values |= {**{key: broker[key] for key in brought_along(broker)}, **deciding}
    values |= {key: value for key, value in (overrides or {}).items() if config_keys.override_fault(key) is None}
    values.update(_added(inventory.controller_properties))
    if "super.users" in values:  # those of the brokers' file stay let in
        _with_super_users(values, sorted(super_users(broker) - super_users(values)))
    listener = inventory.controller_listener
    protocol = protocols(values).get(listener.upper(), inventory.controller_access.protocol)
    callers = (
        ({**broker, **_added(inventory.broker_properties)}, inventory.broker_principal),
        (values, inventory.controller_principal),
    )
    key = "sasl.mechanism.controller.protocol"
    _with_super_users(values, [caller(one, listener, protocol, key, stated=stated) for one, stated in callers])
    header = b"# KRaft controller, rendered by kraft-migrate from a broker's file.\n"
    return edit(header, values, ())


def _zookeeper(broker: Mapping[str, str], inventory: Inventory) -> str:
    """The broker's connect string; the inventory's where the broker calls its own host, which is another one here."""
    theirs, known = broker.get("zookeeper.connect", ""), inventory.zookeeper
    return theirs if theirs and (not known or calls_itself(known) or not calls_itself(theirs)) else known


def rendered(world: World, raw: bytes | None, node: ControllerNode) -> bytes | None:
    """A controller's file from the first broker's, with the playbook's overrides; None where either is not known."""
    if raw is None or isinstance(world.playbook, Unknown):
        return None
    playbook = world.playbook
    own = playbook.controller_overrides.get(node.id, {})
    return controller(parse(raw), world.inventory, node, own, playbook.kraft_authorizer)


def finalized_controller(raw: bytes) -> bytes:
    """A controller's file without the flag and without ZooKeeper: the first start with it is the point of no return."""
    return edit(raw, {}, config_keys.removed(parse(raw), Moment.FINALIZE))


def _edited(
    raw: bytes,
    values: Mapping[str, str],
    changes: dict[str, str],
    moment: Moment,
    inventory: Inventory,
    deciding: Mapping[str, str] | None = None,
) -> bytes:
    """The file with these changes, and with what this cluster's operators add beside the table's keys."""
    wanted = {**_brokers_own(values, inventory), **(deciding or {}), **_of_table(changes, moment, inventory.quorum)}
    changed = {key: value for key, value in wanted.items() if values.get(key) != value}
    return edit(raw, changed, config_keys.removed(values, moment, inventory.quorum))


def _of_table(changes: dict[str, str], moment: Moment, quorum: QuorumKind) -> dict[str, str]:
    """The same changes; one that the table does not announce is a bug, and is never written."""
    strange = [key for key in changes if config_keys.fate(key, moment, quorum) is not Fate.SET]
    if strange:
        message = f"{moment}: {strange} are set, and the table of keys does not say so"
        raise AssertionError(message)
    return changes


def with_protocol(raw: bytes) -> bytes:
    """A broker's file with the protocol version that a migration begins with; without the key it is the default."""
    value = parse(raw).get(IBP, "")
    return edit(raw, {IBP: PROTOCOL}) if value and version_name(value) != PROTOCOL else raw


def with_directories(raw: bytes, directories: Sequence[str]) -> bytes:
    """A KRaft broker's file with more log directories, behind those that it has.

    The first of them holds the metadata log where metadata.log.dir does not say otherwise: it stays the first.
    """
    values = parse(raw)
    known = set(map(os.path.normpath, log_dirs(values)))
    missing = [path for path in directories if os.path.normpath(path) not in known]
    if not missing:
        return raw
    return edit(raw, {LOG_DIRS: ",".join([*_listed(values), *missing])}, ())


def without_directories(raw: bytes, directories: Sequence[str]) -> bytes:
    values = parse(raw)
    gone = set(map(os.path.normpath, directories))
    kept = [path for path in _listed(values) if os.path.normpath(path) not in gone]
    return raw if kept == _listed(values) else edit(raw, {LOG_DIRS: ",".join(kept)}, ())


def _listed(values: Mapping[str, str]) -> list[str]:
    listed = values.get(LOG_DIRS) or values.get("log.dir") or DEFAULT_LOG_DIR
    return list(entries(listed))
