"""NET: ports of the controllers to come, and which nodes see each other."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.checks.phase import lost_at_the_end
from migrate.checks.quorum import voters_of
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import controller_ports, inventory, metadata_answers
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.launch import Listening
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, MetadataAnswer, ServiceState, Stopped
from migrate.model.world import World

LOCALHOST: Final = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Port:
    """A port that somebody has or will have on a host."""

    host: str
    number: int
    owner: str
    purpose: str
    of_controller: bool

    @property
    def words(self) -> str:
        """For a message."""
        return f"the {self.purpose} of {self.owner}"


def port_of(address: str) -> int | None:
    """The number behind the last colon; None where there is none."""
    text = address.rpartition(":")[2].strip()
    return int(text) if text.isascii() and text.isdecimal() and 0 < int(text[:6]) <= 65535 else None


def _port(host: str, address: str, owner: str, purpose: str, *, of_controller: bool) -> Iterator[Port]:
    number = port_of(address)
    if number is not None:
        yield Port(host.lower(), number, owner, purpose, of_controller)


def ports_of_controller(node: ControllerNode) -> Iterator[Port]:
    """Its listener, and its JMX where that is planned."""
    owner = f"controller {int(node.id)}"
    yield from _port(node.host, node.address, owner, "controller listener", of_controller=True)
    if node.jmx is not None:
        yield from _port(node.host, node.jmx, owner, "JMX port", of_controller=True)


def ports_of_broker(node: BrokerNode, file: ConfigFile | None) -> Iterator[Port]:
    """Every listener of its file, else the one that the inventory names; and its JMX."""
    owner = f"broker {int(node.id)}"
    listeners = "" if file is None else file.values.get("listeners", "")
    for entry in filter(None, (part.strip() for part in listeners.split(","))):
        name, _, address = entry.partition("://")
        yield from _port(node.host, address, owner, f"listener {name}", of_controller=False)
    if not listeners:
        yield from _port(node.host, node.address, owner, "listener", of_controller=False)
    if node.jmx is not None:
        yield from _port(node.host, node.jmx, owner, "JMX port", of_controller=False)


def _of_zookeeper(connect: str) -> Iterator[Port]:
    for server in filter(None, connect.partition("/")[0].split(",")):
        host = server.rpartition(":")[0] if ":" in server else server
        address = server if ":" in server else f"{server}:2181"
        yield from _port(host, address, f"ZooKeeper server {server}", "client port", of_controller=False)


@check(
    CodeDoc(
        "B-NET-03",
        "a controller's port is another one's on the same host",
        "A port has one listener: the second process does not start, in the middle of the night, after files were "
        "written and directories formatted.",
        "Controllers were planned beside brokers, ZooKeeper or each other with the same number.",
        "Give the controller another port in the inventory, before its file is rendered.",
        "cp-ansible #2489; bind(2): EADDRINUSE",
    ),
    sees=inventory,
    blocks_from=Stage.PREPARE,
)
def ports_are_apart(seen: Inventory, world: World) -> Result:
    """Inventory and files: listeners, JMX, ZooKeeper; hosts are compared as they are spelled."""
    files: Mapping[NodeId, object] = {} if isinstance(world.configs, Unknown) else world.configs
    taken: dict[tuple[str, int], list[Port]] = {}
    hosts = {node.host.lower() for node in seen.controllers}
    for broker in seen.brokers:
        file = files.get(broker.id)
        known = file if isinstance(file, ConfigFile) else None
        if known is None and broker.host.lower() in hosts:
            yield Blind(
                f"the listeners of broker {int(broker.id)}", "its file was not read, and a controller is beside"
            )
        for port in ports_of_broker(broker, known):
            taken.setdefault((port.host, port.number), []).append(port)
    others = [port for node in seen.controllers for port in ports_of_controller(node)]
    for port in (*_of_zookeeper(seen.zookeeper), *others):
        taken.setdefault((port.host, port.number), []).append(port)
    for (host, number), ports in taken.items():
        owners = [port for port in ports if port.of_controller]
        if owners and len(ports) > 1:
            others_words = " and ".join(port.words for port in ports if port is not owners[0])
            yield Hit(owners[0].owner, f"port {number} of {host} is {owners[0].words} and {others_words}")


@check(
    CodeDoc(
        "B-NET-04",
        "a port of a controller to come is in use",
        "The controller would not start: its address is bound by another process of that host.",
        "Something listens there that neither the inventory nor a broker's file names.",
        "Find it with `ss -ltnp` on that host; free the port, or give the controller another one in the inventory.",
        "/proc/net/tcp; bind(2): EADDRINUSE",
    ),
    sees=controller_ports,
    blocks_from=Stage.CONTROLLERS,
    proof=True,
)
def ports_are_free(seen: dict[NodeId, tuple[Listening, ...]], world: World) -> Result:
    """Of controllers that do not run; loopback and other addresses do not bar each other."""
    for node in world.inventory.controllers:
        state = _state(world, node.id)
        if node.id not in seen or not isinstance(state, Stopped | Unknown):
            continue
        for port in ports_of_controller(node):
            bound = sorted({entry.address for entry in seen[node.id] if _bars(entry, port, node.address)})
            if bound and isinstance(state, Unknown):
                yield Blind(
                    f"whose port {port.number} of {port.host} is, controller {int(node.id)}'s own?", state.reason
                )
            elif bound:
                yield Hit(port.owner, f"port {port.number} of {port.host}, {port.words}, is in use", ", ".join(bound))


def _state(world: World, node: NodeId) -> ServiceState:
    unknown = Unknown("it was not looked at")
    return world.services if isinstance(world.services, Unknown) else world.services.get(node, unknown)


def _bars(entry: Listening, port: Port, address: str) -> bool:
    """Does that socket keep the controller from binding?  A wildcard always does, one address where it is its own.

    A name may stand for any address of the host but a loopback one; localhost is two of those.
    """
    if entry.port != port.number:
        return False
    bound, host = ipaddress.ip_address(entry.address), address.rpartition(":")[0].strip("[]").lower()
    try:
        return bound.is_unspecified or bound == ipaddress.ip_address(host)
    except ValueError:
        return str(bound) in LOCALHOST if host == "localhost" else not bound.is_loopback


LOOPBACK: Final = ("localhost", "127.", "::1", "[::1]")
ANY: Final = ("0.0.0.0", "[::]", "::")  # noqa: S104 - compared, never bound


@check(
    CodeDoc(
        "B-NET-01",
        "a broker does not see every broker",
        "A rejected or unregistered broker says 'started' and sees no others: rolling on would take the next one too.",
        "It is cut off, is denied by the controller, or has just started.",
        "Look at that broker's log and at its way to the controller; a broker that was refused needs a restart.",
        "Metadata; seen on 3.9.2: a rejected registration is retried for ever",
    ),
    sees=metadata_answers,
    blocks_from=Stage.MIGRATION_MODE,
    when=ALWAYS,
)
def sees_every_broker(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    """The brokers of each Metadata answer against the inventory."""
    lost = lost_at_the_end(world)
    wanted = {int(node.id) for node in world.inventory.brokers} - lost
    for node, answer in answers.items():
        hidden = sorted(wanted - set(answer.brokers))
        if hidden and int(node) not in lost:
            yield Hit(f"broker {node}", f"it does not see brokers {hidden}", f"it sees {sorted(answer.brokers)}")


@check(
    CodeDoc(
        "B-NET-02",
        "a controller's address cannot be reached from other hosts",
        "controller.quorum.voters is read on every node: a loopback or wildcard address means another process on each.",
        "The inventory gives controllers the address that they listen on, not the one they are called at.",
        "Give each controller a host name or address that every node can reach.",
        "KRaft refuses to advertise 0.0.0.0 (3.9); strimzi-kafka-operator #10714",
    ),
    sees=inventory,
    blocks_from=Stage.PREPARE,
)
def reachable_voters(seen: Inventory, world: World) -> Result:
    """Loopback is fine where everything is on one host."""
    hosts = {broker.host for broker in seen.brokers} | {controller.host for controller in seen.controllers}
    for node_id, address in voters_of(seen.voters).items():
        host = address.rpartition(":")[0]
        if host in ANY:
            yield Hit(f"controller {node_id}", f"{address} is no address that can be called")
        elif len(hosts) > 1 and host.lower().startswith(LOOPBACK):
            yield Hit(f"controller {node_id}", f"{address} is another process on each of the {len(hosts)} hosts")
