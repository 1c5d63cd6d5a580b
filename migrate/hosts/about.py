"""What each host's program answers of itself: is it of this release and this inventory, and what would it refuse?

The program's verbs are a fixed list, and each works on what its configuration names: a program with the sums of this
release and the nodes of this inventory takes every command of a run.  Asking changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from migrate.errors import HostCommandRefused, HostProgramMissing, MigrateError
from migrate.hosts import commands
from migrate.hosts.executors import HOSTS_AT_ONCE
from migrate.hosts.host_setup import configuration
from migrate.hosts.runner import Runner, set_up
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown, unknown
from migrate.model.rights import HostRights, Refused

PARTS: Final[Mapping[str, str]] = {"nodes": "its nodes, or a unit, a path or a kafka_home of them,"}
Node = BrokerNode | ControllerNode


def rights_of(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> dict[NodeId, HostRights | Unknown]:
    """Return the rights per node: Unknown where its host does not answer; empty where none is remote.

    All hosts are asked at once, and a host with several nodes once.
    """
    by_host: dict[int, list[Node]] = {}
    for node in inventory.nodes:
        if node.id in runners:
            by_host.setdefault(id(runners[node.id]), []).append(node)
    with ThreadPoolExecutor(HOSTS_AT_ONCE, thread_name_prefix="host") as pool:
        answers = pool.map(lambda nodes: _host(inventory, runners[nodes[0].id], nodes), by_host.values())
        return {node: found for answer in answers for node, found in answer.items()}


def _host(inventory: Inventory, runner: Runner, nodes: Sequence[Node]) -> Mapping[NodeId, HostRights | Unknown]:
    host = nodes[0].host
    try:
        told = _answer(runner)
    except HostProgramMissing as error:
        missing = HostRights(host, (Refused(f"{error.id} {error}", error.next_step),))
        return dict.fromkeys((node.id for node in nodes), missing)
    except MigrateError as error:
        return dict.fromkeys((node.id for node in nodes), unknown(error))
    return {
        node.id: HostRights(host, tuple(Refused(what, set_up(host)) for what in find_refusals(inventory, node, told)))
        for node in nodes
    }


def _answer(runner: Runner) -> object:
    done = runner.run(commands.ABOUT)
    if done.code:
        raise HostProgramMissing(
            f"`about` was refused: {done.says or done.code}", where=runner.host, next_step=set_up(runner.host)
        )
    try:
        return strict_json.loads(done.output, surrogates=True)
    except strict_json.NotStrictJson as error:
        raise HostCommandRefused("`about` gave no answer that can be read", where=runner.host) from error


def find_refusals(inventory: Inventory, node: Node, told: object) -> list[str]:
    """Why a command of a run would be refused for that node, by the answer of its host's program (pure)."""
    wanted = configuration(inventory, node.host)
    if not isinstance(told, dict):
        return ["the host program says nothing of itself"]
    if told.get("programs") != wanted["programs"]:
        return ["the host program is of another release"]
    for key, what in PARTS.items():
        if told.get(key) != wanted[key]:
            return [f"the host's configuration is of another inventory: {what} are not those of this one"]
    refuses = told.get("refuses")
    if not isinstance(refuses, dict):
        return ["the host program does not say what it would refuse"]
    said = refuses.get(str(int(node.id)))
    return [f"the host program refuses it: {said}"] if said else []
