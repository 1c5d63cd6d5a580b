"""`doctor --rights`: what the inventory's identities may do, against what the commands need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from migrate.cli.doctor_items import Health, Item
from migrate.errors import MigrateError, NodeUnreachable
from migrate.kafka.connection import Connection
from migrate.kafka.live import cluster_rights, controller_rights, count_topics
from migrate.model import rights
from migrate.model.inventory import Access, BrokerNode, ControllerNode, Inventory, ZookeeperLogin
from migrate.model.outcome import Unknown
from migrate.model.rights import CLUSTER, Side
from migrate.zookeeper import rights as of_zookeeper
from migrate.zookeeper.client import ZookeeperClient, access_of, connect
from migrate.zookeeper.layout import TOPICS as TOPIC_ZNODES
from migrate.zookeeper.layout import Absent

NAMED: Final = 4  # paths in one line
PAGE: Final = "docs/rights.md"


def rights_of(inventory: Inventory, lock_path: str) -> Iterator[Item]:
    """ZooKeeper, brokers, controllers; each by itself.  Nothing is changed by asking."""
    topics = None
    if inventory.zookeeper:
        login, name = inventory.zookeeper_login, "zookeeper rights"
        try:
            with connect(inventory.zookeeper, access=access_of(login)) as client:
                yield from _guarded(name, partial(_zookeeper, client, login, lock_path))
                topics = _topics(client)
        except MigrateError as error:
            yield _error(name, Health.MISSING, error)
    for name, access, addresses in _by_access(inventory, "broker rights", inventory.brokers):
        brokers = [partial(_broker, name, access, address, topics) for address in addresses]
        yield from _first(name, Health.MISSING, brokers)
    for name, access, addresses in _by_access(inventory, "controller rights", inventory.controllers):
        controllers = [partial(_controller, name, access, address) for address in addresses]
        yield from _first(name, Health.LATER, controllers)  # before the stage `controllers` none answers


def _by_access(
    inventory: Inventory, name: str, nodes: Sequence[BrokerNode | ControllerNode]
) -> Iterator[tuple[str, Access, list[str]]]:
    """(name, access, addresses) of each identity with which some of the nodes are called."""
    every = dict.fromkeys(map(inventory.access_of, nodes))
    for access in every:
        same = [node for node in nodes if inventory.access_of(node) == access]
        of = f" ({', '.join(str(int(node.id)) for node in same)})" if len(every) > 1 else ""
        yield f"{name}{of}", access, [node.address for node in same]


def _first(name: str, unreachable: Health, looks: Sequence[Callable[[], Iterator[Item]]]) -> Iterator[Item]:
    """What the first node says that can be reached; whoever refuses us has been reached."""
    said: list[Item] = []
    for look in looks:
        try:
            said = list(look())
        except NodeUnreachable as error:
            said = said or [_error(name, unreachable, error)]
        except MigrateError as error:
            said = [_error(name, Health.MISSING, error)]
            break
        else:
            break
    yield from said


def _guarded(name: str, look: Callable[[], Iterator[Item]]) -> list[Item]:
    try:
        return list(look())
    except MigrateError as error:
        return [_error(name, Health.MISSING, error)]


def _error(name: str, health: Health, error: MigrateError) -> Item:
    return Item(name, health, f"{error.id} {error}" + (f" ({error.why})" if error.why else ""), error.next_step)


def _topics(client: ZookeeperClient) -> int | None:
    """How many topics there are, by ZooKeeper: brokers leave out those that we may not describe; None: not known."""
    try:
        names = client.children([TOPIC_ZNODES])[0]
    except MigrateError:
        return None  # told as ZooKeeper's own line
    return None if isinstance(names, Absent) else len(names)


def _who(access: Access) -> str:
    if access.kerberos is not None:
        return f"{access.user}, by the listener's sasl.kerberos.principal.to.local.rules"
    return f"User:{access.username}" if access.username else "User:ANONYMOUS, or the name of a certificate"


# -- ZooKeeper ----------------------------------------------------------------------------------------------------
def _zookeeper(client: ZookeeperClient, login: ZookeeperLogin, lock_path: str) -> Iterator[Item]:
    name = "zookeeper rights"
    named, unnamed = client.sasl_user, ""
    if login.keystore is not None:
        unnamed = "the name of a certificate's identity does not show what it may write"
    elif isinstance(named, Unknown):
        unnamed, named = named.reason, login.kerberos.principal if login.kerberos else ""
    found = of_zookeeper.find_rights(client, str(named), lock_path)
    lacks = [lack for lack in found.lacks if not unnamed or lack.operation == "READ"]
    for stops in of_zookeeper.For:
        some = [lack for lack in lacks if lack.stops is stops]
        if some:
            told = "; ".join(f"{lack.operation} on {lack.path}" for lack in some[:NAMED])
            more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
            later = stops is of_zookeeper.For.ROLLBACK
            yield Item(
                name,
                Health.LATER if later else Health.MISSING,
                f"{found.identity} lacks {told}{more}: needed by {stops.value}",
                "have the brokers' credentials available for a rollback"
                if later
                else f"grant it, or give another: {PAGE}",
            )
    if unnamed:
        yield Item(name, Health.LATER, unnamed)
    elif not lacks:
        yield Item(name, Health.GOOD, f"{found.identity} has what is needed")


# -- Kafka ---------------------------------------------------------------------------------------------------------
def _broker(name: str, access: Access, address: str, there_are: int | None) -> Iterator[Item]:
    with Connection(address, access) as connection:
        have, topics = cluster_rights(connection), count_topics(connection)
    who = _who(access)
    yield from _judged(name, f"{who} on Cluster", have, Side.BROKERS, CLUSTER)
    if "DESCRIBE_CONFIGS" not in have:
        told = f"{who} on Cluster: lacks DESCRIBE_CONFIGS, needed {rights.WHERE_DYNAMIC}"
        yield Item(name, Health.LATER, told, f"grant it there, or no plan is READY: {PAGE}")
    if not topics:
        yield Item(name, Health.MISSING, f"{who} may describe no topic", f"grant DESCRIBE on Topic:*: {PAGE}")
    elif there_are is None:
        told = f"{who} may describe {topics} topics; whether that is all of them is not known"
        yield Item(name, Health.LATER, told, "a run compares them with the metadata, and waits where some are left out")
    elif topics < there_are:
        told = f"{who} may describe {topics} of {there_are} topics"
        yield Item(name, Health.MISSING, told, f"grant DESCRIBE on Topic:*: {PAGE}")
    else:
        yield Item(name, Health.GOOD, f"{who} may describe {topics} topics, which are all")


def _judged(name: str, who: str, have: frozenset[str], side: Side, resource: str) -> Iterator[Item]:
    lacks = sorted(rights.needed_to_look(side, resource) - have)
    if lacks:
        yield Item(name, Health.MISSING, f"{who}: lacks {', '.join(lacks)}", f"grant it: {PAGE}")
    else:
        yield Item(name, Health.GOOD, f"{who}: {', '.join(sorted(have))}")


def _controller(name: str, access: Access, address: str) -> Iterator[Item]:
    with Connection(address, access) as connection:
        found = controller_rights(connection)
    who = _who(access)
    if found.operations is not None:
        yield from _judged(name, f"{who} on Cluster", found.operations, Side.CONTROLLERS, CLUSTER)
        return
    lacks = [right for right, has in (("DESCRIBE", found.describes), ("CLUSTER_ACTION", found.reads)) if not has]
    if lacks:
        advice = f"grant it, or before the copy make it one of the controllers' super.users: {PAGE}"
        yield Item(name, Health.MISSING, f"{who} on Cluster: lacks {', '.join(lacks)}", advice)
        return
    told = f"{who} has DESCRIBE and CLUSTER_ACTION on Cluster, and no ALTER: elections after a rescue are not possible"
    yield Item(
        name,
        Health.LATER,
        told,
        "only `directories rescue` needs it",
    )
