"""As whom the controllers' processes will call ZooKeeper: read from their JAAS files, and tried at ZooKeeper itself.

Kafka's controllers say nothing where that login is missing or wrong: they wait for ever, or die at their start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from migrate.errors import MigrateError, ZookeeperDenied
from migrate.hosts.jaas import LoginModule, sections
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.launch import Launch, NoZookeeperClient, ZookeeperClient
from migrate.model.outcome import Unknown
from migrate.model.ports import Files
from migrate.zookeeper.client import connect
from migrate.zookeeper.login import access_of

DIGEST: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
Tried = dict[tuple[str, str], bool | Unknown]


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
        return NoZookeeperClient("no -Djava.security.auth.login.config is among its words")
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
    return _tried(known[section][0], path, inventory, tried)


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
        with connect(inventory.zookeeper, access=replace(ours, sasl_username=user, sasl_password=password)) as client:
            client.sync("/")
    except ZookeeperDenied:
        return False
    except MigrateError as error:
        return Unknown(f"{error.id} {error}")
    return True
