"""SEC: Kerberos: what a node's login by GSSAPI needs besides its principal (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.checks.principals import after_first_restart, asked, logins_of, of_listener
from migrate.checks.processes import name_of
from migrate.checks.quorum import voters_of
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import Configs, both_configs, of_node
from migrate.model.config_keys import VOTERS
from migrate.model.ids import NodeId
from migrate.model.launch import KRB5, Launch
from migrate.model.listeners import called
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.world import World

SERVICE: Final = "sasl.kerberos.service.name"


@check(
    "B-SEC-29",
    "a node's login by Kerberos lacks what it needs",
    "Without the service's name a node ends at its start (No serviceName defined). A voter that is named by its IP is "
    "called by the name that reverse DNS has, of which no keytab has a key: the quorum has a leader, and brokers never "
    "register. A controller without the brokers' -Djava.security.krb5.conf or -Dzookeeper.sasl.client.* asks another "
    "KDC, or ZooKeeper under another name, and retries indefinitely.",
    f"Write {SERVICE} into the files that are named (the inventory's brokers.properties, controllers.properties); give "
    "controllers in the inventory `address` with the host's name as its keytab has it; start the controllers with the "
    "brokers' JVM options.",
    "seen on 3.9.2: SaslClientAuthenticator; KafkaRaftClient; ZooKeeperSaslClient",
).sees(both_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def kerberos_needs(seen: tuple[Configs, Configs], world: World) -> Result:
    brokers, controllers = seen
    late = {node: after_first_restart(file, world) for node, file in brokers.items()}
    access = (world.inventory.controller_listener, world.inventory.controller_access.protocol)
    any_call = False
    for node, values in (*late.items(), *((node, file.values) for node, file in controllers.items())):
        file = brokers[node] if node in brokers else controllers[node]
        about = f"{name_of(world.inventory, node)}: {file.path}"
        calls = [listener for listener, mechanism in called(values, *access).items() if mechanism == "GSSAPI"]
        for listener in calls:
            any_call = True
            logins = logins_of(values, listener, "GSSAPI", of_node(world.launches, node))
            if of_listener(values, listener, SERVICE):
                continue
            if isinstance(logins, Unknown):
                if asked(world):
                    yield Blind(about, logins.reason)
            elif not any(login.service for login in logins):
                yield Hit(about, f"no {SERVICE}, and no serviceName in its login for listener {listener}")
        if access[0].upper() in calls and (numbers := list(_addresses(values))):
            yield Hit(about, f"controller.quorum.voters names {', '.join(numbers)}")
    if any_call:
        yield from _other_options(world, brokers, controllers)


def _addresses(values: Mapping[str, str]) -> Iterator[str]:
    for address in voters_of(values.get(VOTERS, "")).values():
        host = address.rpartition(":")[0]
        try:
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            continue
        yield host


def _other_options(world: World, brokers: Configs, controllers: Configs) -> Result:
    """JVM options that a broker has and a controller has not; of one that does not run nothing is known."""
    theirs = [launch for node in brokers if (launch := _launch(world, node)) is not None]
    for node, file in controllers.items():
        own = _launch(world, node)
        if own is None or not theirs:
            continue
        wanted = theirs[0]
        if KRB5 in wanted.files and KRB5 not in own.files:
            yield Hit(f"controller {node}", f"it is started without {KRB5}, which brokers have")
        lacking = sorted(set(wanted.zookeeper_sasl) - set(own.zookeeper_sasl))
        if lacking and "zookeeper.connect" in file.values:  # a finalized one calls no ZooKeeper
            yield Hit(f"controller {node}", f"it is started without the brokers' {', '.join(lacking)}")


def _launch(world: World, node: NodeId) -> Launch | None:
    found = of_node(world.launches, node)
    return found if isinstance(found, Launch) else None
