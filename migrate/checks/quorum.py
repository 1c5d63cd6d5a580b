"""QRM and NET: the controllers' files, the quorum they form, their addresses and ports, and who sees whom."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.checks import processes, replicas
from migrate.checks.phase import lost_at_the_end, no_quorum_yet
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check, placed
from migrate.checks.sight import (
    Configs,
    controller_configs,
    controller_ports,
    inventory,
    kraft,
    live_quorum,
    metadata_answers,
    node_configs,
    of_node,
)
from migrate.model.broker_modes import FLAG, Mode, has_flag, mode_of, roles_of
from migrate.model.config_keys import BOOTSTRAP, VOTERS, QuorumKind
from migrate.model.detect import quorum_kind
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.kafka_values import connect_string, elements, number
from migrate.model.launch import Listening
from migrate.model.listeners import listeners
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, ConfigFile, KraftView, MetadataAnswer, Quorum, Stopped, Voter
from migrate.model.world import World

BEHIND: Final = 1000  # records that a voter may lag without a word
SAFE_QUORUM: Final = 3
START: Final = "start it if it does not run"  # Kafka adds no controller that does not fetch
LOGIN: Final = "admin.properties"  # a client's, which the operator has
JOINING: Final = "joining.properties"  # Kafka takes the login and the controller to add from one file
LOGIN_HAS: Final = f" ({LOGIN}: a client's settings for the controllers' listener, as a user with ALTER on the cluster)"


def voters_of(text: str) -> dict[int, str]:
    """controller.quorum.voters: id -> host:port; what is malformed is left out."""
    found: dict[int, str] = {}
    for entry in elements(text):
        node, at, address = entry.partition("@")
        value = number(node)
        if at and value is not None:
            found[value] = address
    return found


def other_quorum(values: Mapping[str, str], known: Inventory) -> str:
    """What a file says of the quorum where the inventory says something else; "" where both say the same.

    A dynamic quorum is found by any list of all controllers: nodes use the voters for that where they have no other
    (seen on 3.9.2).
    """
    key, wanted = known.quorum_key
    text = values.get(key, "").strip()
    if known.quorum is QuorumKind.STATIC or (not text and values.get(VOTERS, "").strip()):
        wanted = wanted if key == VOTERS else f"{key}={wanted}"
        key, text = VOTERS, values.get(VOTERS, "").strip()
        same = voters_of(text) == voters_of(known.voters)
    else:
        same = set(elements(text)) == set(elements(wanted))
    return "" if same else f"{key} is {text or 'missing'}, the inventory gives {wanted}"


@check(
    "B-QRM-01",
    "nodes disagree on the quorum",
    "Each node counts votes by its own list in a static quorum: with different lists there is no majority that all "
    "agree on. In a dynamic one a node finds the active controller by its list alone.",
    "Write what the inventory gives into every file, the same text; with static voters it never changes.",
    "controller.quorum.voters, controller.quorum.bootstrap.servers; QuorumConfig",
).sees(node_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def one_list_of_voters(configs: Configs, world: World) -> Result:
    """Every file that acts by the key; one of ZooKeeper mode does not, and the first roll replaces what it has."""
    for about, file in placed("node", configs):
        if mode_of(file.values) is not Mode.ZOOKEEPER and (found := other_quorum(file.values, world.inventory)):
            yield Hit(about, found)


@check(
    "B-QRM-02",
    "the quorum is of another kind than the inventory or a file says",
    "A static quorum's voters stand in every file, a dynamic quorum's in the metadata log with their directory ids "
    "(KIP-853); the inventory says which kind it is (`spec.controllers.quorum`), and files are written by that. A "
    "controller of a static quorum that starts with controller.quorum.bootstrap.servers in place of "
    "controller.quorum.voters knows no voters: with a majority of such files there is no quorum. With both keys "
    "`kafka-storage format` makes a static quorum or refuses. Kafka 3.9's own migration page leads to a dynamic one.",
    "Make the inventory's `quorum` the kind that runs: neither kind can be made the other in Kafka 3.9, and a "
    "migration ends with either. Give each file the key of that kind alone.",
    "KIP-853; kafka-storage format; seen on 3.9.2; Kafka 3.9 documentation, ZooKeeper to KRaft Migration: Provisioning "
    "the KRaft controller quorum",
).sees(node_configs, blocks_from=Stage.CONTROLLERS)
def one_kind_of_quorum(configs: Configs, world: World) -> Result:
    """By what runs, else by the inventory; a broker finds either kind by either key."""
    said, found = world.inventory.quorum, quorum_kind(world)
    if isinstance(found, Unknown):
        if not no_quorum_yet(world):
            yield Blind("the KRaft metadata", found.reason)
    elif found is not said:
        yield Hit("the quorum", f"it is {found}, and `spec.controllers.quorum` of the inventory says {said}")
    kind = said if isinstance(found, Unknown) else found
    key = BOOTSTRAP if kind is QuorumKind.DYNAMIC else VOTERS
    for about, file in placed("node", configs):
        keys = [one for one in (VOTERS, BOOTSTRAP) if file.values.get(one, "").strip()]
        if mode_of(file.values) is Mode.ZOOKEEPER:  # Kafka ignores them there, and the first roll removes them
            continue
        if len(keys) > 1:
            yield Hit(about, f"{VOTERS} and {BOOTSTRAP} are both set")
        elif keys and keys != [key] and "controller" in roles_of(file.values):
            yield Hit(about, f"{keys[0]} is set, and the quorum is {kind}: it takes {key}")


@check(
    "B-QRM-03",
    "a controller's file lacks the migration flag",
    "A controller that starts without it sets an empty log to NONE for good, and ends a running migration as soon as "
    "it is elected.",
    "Put zookeeper.metadata.migration.enable=true into that file before its process starts again.",
    "KRaftMigrationDriver; ActivationRecordsGenerator; KAFKA-20960; seen on 3.9.2",
).sees(controller_configs, blocks_from=Stage.CONTROLLERS)
def flag_in_files(configs: Configs, world: World) -> Result:
    """Until finalize begins, every controller's file has the flag."""
    for about, file in placed("controller", configs):
        if not has_flag(file.values):
            yield Hit(about, f"{FLAG} is {file.values.get(FLAG) or 'missing'}")


@check(
    "B-QRM-04",
    "a controller's file is not a controller's",
    "The process would start as something else.",
    "Write process.roles=controller and node.id=N, or correct the path.",
    "process.roles, node.id",
).sees(controller_configs, blocks_from=Stage.CONTROLLERS, when=ALWAYS)
def controller_files(configs: Configs, world: World) -> Result:
    for node, file in configs.items():
        about, roles = f"controller {node}: {file.path}", roles_of(file.values)
        if "controller" not in roles:
            yield Hit(about, f"process.roles is {file.values.get('process.roles') or 'missing'}")
        if not file.values.get("node.id", "").strip():
            yield Hit(about, "node.id is missing")


def voteless(quorum: Quorum, world: World) -> Iterator[tuple[int, str, str]]:
    """Controllers of a dynamic quorum that are no voter, or vote under another directory id than they run with.

    Each with what is seen, and with the commands that give it its vote, in the order that Kafka 3.9 takes: while the id
    is a voter, it refuses to add it under another directory id (DUPLICATE_VOTER).
    """
    voters = {voter.id: voter for voter in quorum.voters}
    if not any(voter.directory for voter in quorum.voters):
        return
    secured = world.inventory.controller_access.protocol != "PLAINTEXT"
    for node in world.inventory.controllers:
        asked = [one.address for one in world.inventory.controllers if one.id == quorum.leader] or [node.address]
        tool = f"kafka-metadata-quorum.sh --bootstrap-controller {asked[0]}"
        add = f"on {node.host} `{tool} --command-config {shlex.quote(node.config)} add-controller`"
        if secured:
            both = f"`(umask 077; {{ cat {shlex.quote(node.config)}; echo; cat {LOGIN}; }} > {JOINING})`"
            add = f"on {node.host} {both}, `{tool} --command-config {JOINING} add-controller` and `rm {JOINING}`"
            tool += f" --command-config {LOGIN}"
        add += LOGIN_HAS if secured else ""
        voter = voters.get(node.id)
        if voter is None:
            empty = "format its directory with --no-initial-controllers if it is empty"
            yield int(node.id), "it is no voter of the quorum that runs", f"{empty}, {START}, then {add}"
        elif (said := misplaced(quorum, voter, world)) is not None:
            ids = f"--controller-id {int(node.id)} --controller-directory-id {voter.directory}"
            never = "never format it with the first command or an old directory id again"
            yield int(node.id), said, f"{START}, then `{tool} remove-controller {ids}`, then {add}; {never}"


@check(
    "B-QRM-05",
    "the living quorum's voters are not the inventory's controllers",
    "The tool would watch and restart other processes than those that vote. A controller whose directory id is not "
    "the one it votes with runs as an observer, and logs nothing unusual: the quorum has one vote less, and the next "
    "loss of a controller may stop it.",
    "Bring the inventory back to the voters that run. In a dynamic quorum give the controller its vote, with the "
    "commands that are printed for it.",
    "DescribeQuorum; KIP-853; seen on 3.9.2",
).sees(live_quorum, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def voters_are_ours(quorum: Quorum, world: World) -> Result:
    ours = {node.id for node in world.inventory.controllers}
    there = {voter.id for voter in quorum.voters}
    found = {node: Hit(f"controller {node}", said, fix=fix) for node, said, fix in voteless(quorum, world)}
    if there - ours or (there != ours and not found):
        yield Hit("the quorum", f"its voters are {sorted(map(int, there))}, the inventory has {sorted(map(int, ours))}")
    yield from found.values()
    for voter in quorum.voters:
        if (
            voter.id in ours - found.keys()
            and voter.directory
            and isinstance(disks := of_node(world.disks, voter.id), Unknown)
        ):
            yield Blind(f"whether controller {int(voter.id)} has the directory id it votes with", disks.reason)


def misplaced(quorum: Quorum, voter: Voter, world: World) -> str | None:
    """Why that voter is not the process of its id; None where it is, or nothing says so.

    By the observers that the leader sees, or by what lies in its metadata directory.
    """
    other, disks = quorum.instead_of(voter), of_node(world.disks, voter.id)
    if voter.directory and isinstance(disks, BrokerDisks):
        found = next((entry.id for entry in disks.directories if entry.id is not None), None)
        if found is not None and found != voter.directory:
            return f"it votes with directory id {voter.directory}, and its metadata directory has {found}"
    if other is not None:
        return f"it votes with directory id {voter.directory}, and runs as an observer with {other.directory}"
    return None


@check(
    "I-QRM-06",
    "the quorum does not survive the loss of a controller",
    "While /controller belongs to KRaft, brokers have no controller when the quorum has no majority.",
    "Use three controllers on three hosts.",
    "KIP-595",
).sees(inventory)
def small_quorum(seen: Inventory, world: World) -> Result:
    count = len(seen.controllers)
    if 0 < count < SAFE_QUORUM:
        yield Hit(f"{count} controllers", "the loss of one of them leaves the cluster without a controller")


GHOST_BROKER: Final = (
    "unregister the broker (`kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id N`) once it is certain that "
    "it will not come back"
)
GHOST_CONTROLLER: Final = (
    "add the controller to the inventory if it still exists. Otherwise leave the registration: no command of Kafka 3.9 "
    "to 4.3 removes that of a controller (`kafka-cluster.sh unregister` is for brokers). From Kafka 4.4 on, with "
    "metadata.version 4.4-IV2 or later, `kafka-cluster.sh unregister-controller` does. The stage cleanup ends with it "
    "where an AcceptedDifferences file names it: rule W-QRM-07, selector {kind: controller, name: its id, field: "
    "registration}"
)
GHOST: Final = "W-QRM-07"
ACCEPTED_GHOST: Final = "accepted by the playbook: it may hold up a later metadata.version"


def accepted_ghost(world: World, node: int) -> bool:
    """Does an acceptance that holds name that controller's registration?"""
    wanted = ("controller", str(node), "registration")
    return any(
        (entry.kind, entry.name, entry.field) == wanted and replicas.holds(entry, world)
        for entry in replicas.entries(world, GHOST)
    )


@check(
    GHOST,
    "the metadata keeps a registration of a node that is not in the inventory",
    "Stale registrations block later upgrades of metadata.version, and the copy waits for every registered broker.",
    f"For a broker: {GHOST_BROKER}. For a controller: {GHOST_CONTROLLER}.",
    "KAFKA-20295, KAFKA-20395, KIP-1312; the help of kafka-cluster in 4.3.1 and 4.4.0; strimzi-kafka-operator #11039",
).sees(kraft, when=ALWAYS)
def stale_registrations(view: KraftView, world: World) -> Result:
    known = {int(node.id) for node in world.inventory.nodes}
    for kind, found, fix in (
        ("broker", view.brokers, GHOST_BROKER),
        ("controller", view.controllers, GHOST_CONTROLLER),
    ):
        for node in found:
            if int(node) not in known:
                said = ACCEPTED_GHOST if kind == "controller" and accepted_ghost(world, int(node)) else ""
                yield Hit(f"{kind} {node}", "it is registered in the metadata and not in the inventory", said, fix)


@check(
    "W-QRM-09",
    "a finalized level of kraft.version says nothing",
    "Kafka 3.9 writes that level for whoever asks (`kafka-features upgrade --feature kraft.version=1`), of a static "
    "quorum as of a dynamic one, and Raft does not read it: the quorum stays of the kind that it was formatted with, "
    "whatever `kafka-features describe` says.",
    "Nothing. Do not take it back: a downgrade writes one more record, and later releases pass over them.",
    "FeatureControlManager.updateFeature; KAFKA-18979; seen on 3.9.2",
).sees(kraft)
def level_without_effect(view: KraftView, world: World) -> Result:
    if "kraft.version" in view.features:
        kind = QuorumKind.DYNAMIC if view.kraft_version else QuorumKind.STATIC
        yield Hit("the KRaft metadata", f"it has kraft.version {view.features['kraft.version']}; the quorum is {kind}")


@check(
    "W-QRM-08",
    "a controller lags behind its leader",
    "It could not take over now without losing time, and one more loss could stop the quorum. It was restarted, its "
    "disk is slow, or it is down.",
    "Wait until it has caught up; look at its log if it does not.",
    "DescribeQuorum: logEndOffset",
).sees(live_quorum, when=ALWAYS)
def lagging_voter(quorum: Quorum, world: World) -> Result:
    for voter in quorum.voters:
        behind = quorum.high_watermark - voter.log_end_offset
        if behind > BEHIND:
            yield Hit(f"controller {voter.id}", f"it is {behind} records behind the high watermark")


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
        return f"the {self.purpose} of {self.owner}"


def port_of(address: str) -> int | None:
    """The number behind the last colon; None where there is none."""
    text = address.rpartition(":")[2].strip()
    return int(text) if text.isascii() and text.isdecimal() and 0 < int(text[:6]) <= 65535 else None


def _ports(host: str, owner: str, *places: tuple[str | None, str], of_controller: bool = False) -> Iterator[Port]:
    for address, purpose in places:
        if address is not None and (found := port_of(address)) is not None:
            yield Port(host.lower(), found, owner, purpose, of_controller)


def ports_of_controller(node: ControllerNode) -> Iterator[Port]:
    """Its listener, and its JMX where that is planned."""
    places = (node.address, "controller listener"), (node.jmx, "JMX port")
    return _ports(node.host, f"controller {int(node.id)}", *places, of_controller=True)


def ports_of_broker(node: BrokerNode, file: ConfigFile | None) -> Iterator[Port]:
    """Every listener of its file, else the one that the inventory names; and its JMX."""
    known = {} if file is None else file.values
    places = [(f":{entry.port}", f"listener {entry.listener}") for entry in listeners(known) if "listeners" in known]
    places += [] if places else [(node.address, "listener")]
    return _ports(node.host, f"broker {int(node.id)}", *places, (node.jmx, "JMX port"))


def _of_zookeeper(connect: str) -> Iterator[Port]:
    for server in connect_string(connect).servers if connect else ():
        host = server.rpartition(":")[0]
        yield from _ports(host, f"ZooKeeper server {server}", (server, "client port"))


@check(
    "B-NET-03",
    "a controller's port is another one's on the same host",
    "A port has one listener: the second process does not start, during the change window, after files were written "
    "and directories formatted.",
    "Give the controller another port in the inventory, before its file is rendered.",
    "cp-ansible #2489; bind(2): EADDRINUSE",
).sees(inventory, blocks_from=Stage.PREPARE)
def ports_are_apart(seen: Inventory, world: World) -> Result:
    """Inventory and files: listeners, JMX, ZooKeeper; hosts are compared as they are spelled."""
    files: Mapping[NodeId, object] = {} if isinstance(world.configs, Unknown) else world.configs
    every: list[Port] = []
    hosts = {node.host.lower() for node in seen.controllers}
    for broker in seen.brokers:
        file = files.get(broker.id)
        known = file if isinstance(file, ConfigFile) else None
        if known is None and broker.host.lower() in hosts:
            about = f"the listeners of broker {int(broker.id)}"
            yield Blind(about, "its file was not read, and a controller is on the same host")
        every += ports_of_broker(broker, known)
    try:
        every += _of_zookeeper(seen.zookeeper)
    except ValueError as error:  # of a bundle, whose inventory nobody loaded from a file
        yield Blind("the ports of ZooKeeper", f"its connect string cannot be read: {error}")
    every += [port for node in seen.controllers for port in ports_of_controller(node)]
    taken: dict[tuple[str, int], list[Port]] = {}
    for port in every:
        taken.setdefault((port.host, port.number), []).append(port)
    for ports in taken.values():
        mine = next((port for port in ports if port.of_controller), None)
        if mine is not None and len(ports) > 1:
            others = " and ".join(port.words for port in ports if port is not mine)
            yield Hit(mine.owner, f"port {mine.number} of {mine.host} is {mine.words} and {others}")


@check(
    "B-NET-04",
    "a port of a controller to come is in use",
    "The controller would not start: its address is bound by another process of that host.",
    "Find it with `ss -ltnp` on that host; free the port, or give the controller another one in the inventory.",
    "/proc/net/tcp; bind(2): EADDRINUSE",
).sees(controller_ports, blocks_from=Stage.CONTROLLERS, proof=True)
def ports_are_free(seen: dict[NodeId, tuple[Listening, ...]], world: World) -> Result:
    """Of controllers that do not run; loopback and other addresses do not bar each other."""
    for node in world.inventory.controllers:
        state = of_node(world.services, node.id)
        if node.id not in seen or not isinstance(state, Stopped | Unknown):
            continue
        for port in ports_of_controller(node):
            bound = sorted({entry.address for entry in seen[node.id] if _bars(entry, port, node.address)})
            if bound and isinstance(state, Unknown):
                whose = f"whose port {port.number} of {port.host} is, controller {int(node.id)}'s own?"
                yield Blind(whose, state.reason)
            elif bound:
                yield Hit(port.owner, f"port {port.number} of {port.host}, {port.words}, is in use", ", ".join(bound))


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
    "B-NET-01",
    "a broker does not see every broker",
    "A rejected or unregistered broker says 'started' and sees no others: rolling on would take the next one too. It "
    "is cut off, is denied by the controller, or has just started. Or the inventory reaches brokers at listeners of "
    "different names: at a listener a broker names only those that have one of the same name.",
    "Look at that broker's log and at its way to the controller; a broker that was refused needs a restart. Let every "
    "`address` of the inventory be at a listener whose name every broker has: its protocol and users may differ.",
    "Metadata; seen on 3.9.2: a rejected registration is retried indefinitely",
).sees(metadata_answers, blocks_from=Stage.MIGRATION_MODE, when=ALWAYS)
def sees_every_broker(answers: dict[NodeId, MetadataAnswer], world: World) -> Result:
    lost = lost_at_the_end(world)
    wanted = {int(node.id) for node in world.inventory.brokers} - lost
    for node, answer in answers.items():
        hidden = sorted(wanted - set(answer.brokers))
        if hidden and int(node) not in lost:
            message, evidence = f"it does not see brokers {hidden}", f"it sees {sorted(answer.brokers)}"
            yield Hit(f"broker {node}", message, evidence, processes.start_those(world, hidden))


@check(
    "B-NET-02",
    "a controller's address cannot be reached from other hosts",
    "controller.quorum.voters is read on every node: a loopback or wildcard address means another process on each.",
    "Give each controller a host name or address that every node can reach.",
    "KRaft refuses to advertise 0.0.0.0 (3.9); strimzi-kafka-operator #10714",
).sees(inventory, blocks_from=Stage.PREPARE)
def reachable_voters(seen: Inventory, world: World) -> Result:
    """Loopback is fine where everything is on one host."""
    hosts = {broker.host for broker in seen.brokers} | {controller.host for controller in seen.controllers}
    for node_id, address in voters_of(seen.voters).items():
        host = address.rpartition(":")[0]
        if host in ANY:
            yield Hit(f"controller {node_id}", f"{address} is no address that can be called")
        elif len(hosts) > 1 and host.lower().startswith(LOOPBACK):
            yield Hit(f"controller {node_id}", f"{address} is another process on each of the {len(hosts)} hosts")
