"""Brokers of the inventory that have not registered: process, file, voters, version, cluster, directories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.checks import processes
from migrate.checks.principals import controller_listener
from migrate.checks.quorum import other_quorum, voters_of
from migrate.checks.sight import of_node
from migrate.checks.stuck.seen import (
    exit_of,
    explanation,
    leader_log,
    level_of,
    log_lines,
    metas_of,
    no_answer,
    not_seen,
    other_file,
    quorum_of,
    readable,
)
from migrate.model.broker_modes import FLAG, Mode, mode_of
from migrate.model.config_keys import BOOTSTRAP, IBP, VOTERS
from migrate.model.findings import Clues, Explanation
from migrate.model.ids import NodeId
from migrate.model.kafka_values import elements
from migrate.model.listeners import inter_broker_listener, listeners, protocols
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, KraftView, NodeAnswer, NoFile, Quorum, Running, Stopped
from migrate.model.world import World

REGISTER_BROKER: Final = 62  # BrokerRegistration: served by controllers alone
NAMES: Final = "controller.listener.names"
Cause = tuple[str, str, str]  # code, cause, evidence


@dataclass(frozen=True, slots=True)
class Look:
    world: World
    clues: Clues
    kraft: KraftView
    node: int
    values: Mapping[str, str]

    @property
    def leader(self) -> int | None:
        """The active controller, where it is known."""
        quorum = quorum_of(self.world)
        return int(quorum.leader) if isinstance(quorum, Quorum) else None


def not_registered(world: World, clues: Clues, kraft: KraftView, waiting: list[int]) -> Iterator[Explanation]:
    """Every cause that can be seen, for each of these brokers; those that were not rolled yet are told together."""
    files = {node: of_node(world.configs, node) for node in waiting}
    unrolled = [
        node for node, file in files.items() if isinstance(file, ConfigFile) and mode_of(file.values) is Mode.ZOOKEEPER
    ]
    if unrolled:
        none = "" if kraft.brokers else " (none has registered yet)"
        names, several = ", ".join(map(str, unrolled)), len(unrolled) > 1
        waits = f"broker{'s' if several else ''} {names} to register{none}"
        cause = f"{FLAG} is not in {'their files' if several else 'its file'}: not rolled into migration mode"
        yield explanation("S-STUCK-30", waits, cause, *leader_log(world, clues), nodes=unrolled)
    for node in waiting:
        if node not in unrolled or isinstance(of_node(world.services, node), Stopped):
            yield from _one(world, clues, kraft, node, unrolled=node in unrolled)


def _one(world: World, clues: Clues, kraft: KraftView, node: int, *, unrolled: bool) -> Iterator[Explanation]:
    file = of_node(world.configs, node)
    causes = list(_of_process(world, node, file))
    if isinstance(file, ConfigFile) and not unrolled:
        look = Look(world, clues, kraft, node, file.values)
        for find in (_mode, _voters, _protocol, _silent_leader, _version, _cluster, _listener, _directories):
            causes += find(look)
    waits, lines = f"broker {node} to register", (*log_lines(clues, node), *leader_log(world, clues))
    for code, cause, evidence in causes:
        owner = f"whoever runs broker {node}"
        if isinstance(file, ConfigFile) and code in ("S-STUCK-33", "S-STUCK-34", "S-STUCK-36", "S-STUCK-41"):
            owner = f"whoever keeps {file.path}"
        yield explanation(code, waits, cause, evidence, *lines, owner=owner, nodes=[node])
    if not causes:
        why, evidence = Unknown(_why_unknown(world, node, file)), _other_voters(world, file)
        yield explanation("S-STUCK-40", waits, why, evidence, *lines, owner=f"broker {node}", nodes=[node])


def _of_process(world: World, node: int, file: ConfigFile | NoFile | Unknown) -> Iterator[Cause]:
    state = of_node(world.services, node)
    if isinstance(state, Stopped):
        yield "S-STUCK-31", processes.do_not_run(world.inventory, [node]), exit_of(state)
    if not isinstance(state, Running) or not isinstance(file, ConfigFile) or mode_of(file.values) is Mode.ZOOKEEPER:
        return
    if state.config_sha256 not in (None, file.sha256):
        cause = "its process was started with another file than the current one"
        yield "S-STUCK-32", cause, other_file(state, file)
    elif state.config_sha256 is None:
        metas = metas_of(world, node)
        if not isinstance(metas, Unknown) and metas and all(meta.directory_id is None for meta in metas):
            told = "a start with the flag writes directory.id into every log directory, and none has one"
            yield "S-STUCK-32", "its process was not started with the flag, or is only just starting", told


def _mode(look: Look) -> Iterator[Cause]:
    if mode_of(look.values) is Mode.KRAFT:
        yield "S-STUCK-41", "its file has process.roles, and the copy was not made yet", ""


def _voters(look: Look) -> Iterator[Cause]:
    """The entry of the active controller decides: that one the broker calls.  Another name for it is no fault."""
    text, servers = look.values.get(VOTERS, "").strip(), look.values.get(BOOTSTRAP, "").strip()
    if servers:  # which a broker calls, whatever its voters are (seen on 3.9.2)
        if not {node.address for node in look.world.inventory.controllers} & set(elements(servers)):
            yield "S-STUCK-33", f"{BOOTSTRAP} of its file names no controller of the inventory", servers
        return
    if not text:
        yield "S-STUCK-33", f"{look.world.inventory.quorum_key[0]} is missing in its file", ""
        return
    here, there = voters_of(text), voters_of(look.world.inventory.voters)
    called = there if look.leader is None else {look.leader: there.get(look.leader, "")}
    for controller, address in called.items():
        if not address or here.get(controller) == address:
            continue
        if controller not in here:
            yield "S-STUCK-33", f"controller {controller} is missing in {VOTERS} of its file", f"{VOTERS}={text}"
            continue
        answer = look.clues.addresses.get(here[controller])
        if isinstance(answer, NodeAnswer) and REGISTER_BROKER in answer.apis:
            continue  # a controller answers there: another name of the same, for all that can be seen
        active = "active " if look.leader is not None else ""
        cause = f"its file gives the {active}controller {controller} as {here[controller]}, and it listens on {address}"
        evidence = f"something else than a controller answers at {here[controller]}"
        if answer is None:
            evidence = f"{here[controller]} was not asked"
        elif isinstance(answer, Unknown):
            evidence = f"nobody answers at {here[controller]}: {answer.reason}"
        yield "S-STUCK-33", cause, evidence


def _protocol(look: Look) -> Iterator[Cause]:
    name = controller_listener(look.values)
    if not name:
        yield "S-STUCK-34", f"{NAMES} is missing in its file", ""
        return
    wanted = look.world.inventory.controller_access.protocol.upper()
    found = protocols(look.values).get(name)
    if found != wanted:
        cause = f"its file has {found or 'no protocol'} for {name}, the controllers use {wanted}"
        yield "S-STUCK-34", cause, f"{NAMES} and listener.security.protocol.map"


def _silent_leader(look: Look) -> Iterator[Cause]:
    leader = look.leader
    if leader is None:
        return
    address = voters_of(look.world.inventory.voters).get(leader)
    answer = no_answer(look.world, leader)
    known = {*voters_of(look.values.get(VOTERS, "")).values(), *elements(look.values.get(BOOTSTRAP, ""))}
    if address in known and answer is not None:
        yield "S-STUCK-35", f"the active controller {leader} does not answer at {address}", answer.reason


def _version(look: Look) -> Iterator[Cause]:
    level = look.kraft.features.get("metadata.version")
    text = look.values.get(IBP, "").strip()
    if level is None or not text or level_of(text) == level:
        return
    here = level_of(text)
    its = f"{IBP} is {text} in its file (metadata.version {'unknown' if here is None else here})"
    yield "S-STUCK-36", f"{its}, the controllers have metadata.version {level}", ""


def _cluster(look: Look) -> Iterator[Cause]:
    metas = metas_of(look.world, look.node)
    ids = set() if isinstance(metas, Unknown) else {meta.cluster_id for meta in metas if meta.cluster_id}
    view = readable(look.world)
    there = "" if isinstance(view, Unknown) else f"; /cluster/id in ZooKeeper is {view.cluster_id}"
    for cluster_id in sorted(ids):
        if look.kraft.cluster_id and cluster_id != look.kraft.cluster_id:
            cause = f"its log directories belong to cluster {cluster_id}, the controllers to {look.kraft.cluster_id}"
            yield "S-STUCK-37", cause, f"meta.properties{there}"


def _listener(look: Look) -> Iterator[Cause]:
    """By its file, from which it registers at its next start, and by the endpoints of its znode."""
    view = readable(look.world)
    live = None if isinstance(view, Unknown) else view.brokers.get(NodeId(look.node))
    here = listeners(look.values, "advertised.listeners") or listeners(look.values)
    names = {entry.listener for entry in here} | {
        entry.partition("://")[0].upper() for entry in (() if live is None else live.endpoints)
    }
    for node in look.world.inventory.controllers:
        file = of_node(look.world.configs, node.id)
        if isinstance(file, ConfigFile) and inter_broker_listener(file.values) not in names:
            wanted = inter_broker_listener(file.values)
            cause = f"controller {int(node.id)} calls brokers on {wanted}, and it listens on {', '.join(sorted(names))}"
            yield "S-STUCK-38", cause, f"inter.broker.listener.name in {file.path}"
            return


def _directories(look: Look) -> Iterator[Cause]:
    metas = metas_of(look.world, look.node)
    if isinstance(metas, Unknown):
        return
    for meta in metas:
        for other, entry in look.kraft.brokers.items():
            if meta.directory_id is not None and int(other) != look.node and meta.directory_id in entry.log_dirs:
                cause = f"broker {int(other)} has registered directory.id {meta.directory_id}, which is on its disk"
                yield "S-STUCK-39", cause, ""


def _other_voters(world: World, file: ConfigFile | NoFile | Unknown) -> str:
    """Entries that differ from the inventory's and are no cause by themselves."""
    named = isinstance(file, ConfigFile) and any(file.values.get(key, "").strip() for key in (VOTERS, BOOTSTRAP))
    found = other_quorum(file.values, world.inventory) if named and isinstance(file, ConfigFile) else ""
    return f"in its file {found}" if found else ""


def _why_unknown(world: World, node: int, file: ConfigFile | NoFile | Unknown) -> str:
    if isinstance(file, NoFile):
        return f"its file {file.path} does not exist"
    parts = (
        ("its file", file),
        ("its process", of_node(world.services, node)),
        ("its disks", metas_of(world, node)),
        ("the quorum", quorum_of(world)),
    )
    right = "its process runs with a file of migration mode, and protocol, version, cluster and ids are right"
    return not_seen(parts) or right
