"""What is wrong with a cluster now: the line with which every command begins that sees it, and what to do first (pure).

A problem comes before every forward step: `status`, plans, `diff` and a run's board name it first, and no command hands
out a forward step while one stands.  A part that nobody asked for is none; a part that was asked for and could not be
seen is one, for it is never taken for fine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from migrate.checks import availability, processes, stuck
from migrate.checks.phase import lost_at_the_end
from migrate.checks.processes import DISK_COMMANDS, held_by_runs
from migrate.checks.rollback import Start, origin
from migrate.model.disk_trouble import Sick, sick_directories
from migrate.model.findings import Explanation
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from migrate.model.outcome import Unknown
from migrate.model.views import ConfigFile, NoFile, NoZnode, Running
from migrate.model.words import plural
from migrate.model.world import NOT_ASKED, Need, World

NAMED: Final = 3  # problems that the first line names; the others are counted
NEEDS: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES})
FAULTS: Final = frozenset(  # reasons for a wait that no waiting and no next step of the migration ends
    {f"S-STUCK-{number:02}" for number in (1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 20, 21)}
)
STATUS: Final = "`kraft-migrate status`"
READABLE: Final = "let this host reach, and the user of this tool read, what the reason names"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and what to do about it; `run` is the one that stopped these nodes, and whose next step it is.

    `passes`: it may end by itself, as where a topic is being created; plans look a second time.
    """

    what: str
    remedy: str
    run: str = ""
    passes: bool = False


def problems(world: World) -> tuple[Problem, ...]:
    """Whatever is wrong; () where everything that was asked for was seen and is as it should be."""
    finalized = origin(world).start is Start.FINALIZED
    sick, faults = tuple(sick_directories(world)), [entry for entry in stuck.explain(world) if entry.code in FAULTS]
    began = (finalized or (stuck.begun(world) and not _handed_back(world))) and not faults
    stopped = _stopped(world, {entry.broker for entry in sick}, began=began)
    found = [*_zookeeper(world, finalized=finalized), *_disks(world, sick), *stopped]
    found += [*_stuck(world, faults), *_silent(world), *_files(world)]
    return tuple(_with_partitions(world, found))


def headline(found: Sequence[Problem]) -> str:
    """`2 PROBLEMS: broker 1 is stopped on kafka-2 since 01:12:50 UTC; ZooKeeper cannot be read`; "" for none."""
    if not found:
        return ""
    alike: dict[str, list[str]] = {}
    for entry in found:
        key = re.sub("[0-9]+", "0", entry.what) if entry.remedy.startswith(READABLE) else entry.what
        alike.setdefault(key, []).append(entry.what)
    named = list(alike.values())
    told = [what + f" ({len(others)} more like it)" * bool(others) for what, *others in named[:NAMED]]
    told += [f"{sum(map(len, named[NAMED:]))} more"] if len(named) > NAMED else []
    return f"{plural(len(found), 'PROBLEM', 'PROBLEMS')}: {'; '.join(told)}"


def _zookeeper(world: World, *, finalized: bool) -> Iterator[Problem]:
    asked = bool(world.inventory.zookeeper) and world.zookeeper != NOT_ASKED and not finalized
    if asked and isinstance(world.zookeeper, Unknown):
        yield Problem(f"ZooKeeper cannot be read ({world.zookeeper.reason})", "bring ZooKeeper back")


def _disks(world: World, found_sick: Iterable[Sick]) -> Iterator[Problem]:
    down = processes.ended(world, world.inventory.nodes)
    for sick in found_sick:
        state = " (stopped)" if sick.broker in down else ""
        what = f"{sick.node}{state}: {sick.directory.path}: {sick.said}"
        yield Problem(what, f"repair or replace that disk: {DISK_COMMANDS}")
    for node, found in {} if isinstance(world.disks, Unknown) else sorted(world.disks.items()):
        if isinstance(found, Unknown):
            what = f"the disks of {processes.name_of(world.inventory, node)} cannot be seen ({found.reason})"
            yield Problem(what, READABLE)


def _stopped(world: World, sick: Collection[int], *, began: bool) -> Iterator[Problem]:
    """Brokers, and controllers where their quorum `began`; not those that are down by a disk named already."""
    brokers = [node for node in processes.ended(world, world.inventory.brokers) if node not in sick]
    made = [node for node in world.inventory.controllers if not isinstance(_file(world, node), NoFile)]
    controllers = [node for node in processes.ended(world, made) if node not in sick] if began else []
    for down in (brokers, controllers):
        held = held_by_runs(world, down)
        if own := [node for node in down if node not in held]:
            typed = f"{processes.start(world.inventory, own)}; the log says why it ended"
            yield Problem(processes.stopped_on(world, own), typed)
        for run in dict.fromkeys(filter(None, held.values())):
            nodes = [node for node in down if held.get(node) == run]
            them = "it" if len(nodes) == 1 else "them"
            what = f"{processes.are(world.inventory, nodes)} stopped: run {run} stopped {them}"
            yield Problem(f"{what} and has not ended", f"continue run {run}: {STATUS} has its command", run)


def _handed_back(world: World) -> bool:
    """Does ZooKeeper's own controller lead, with nothing left of the migration's: are controllers stopped for good?"""
    view = world.zookeeper
    return not isinstance(view, Unknown) and isinstance(view.migration, NoZnode) and not view.kraft_owns


def _stuck(world: World, faults: Iterable[Explanation]) -> Iterator[Problem]:
    if held_by_runs(world, [int(node.id) for node in world.inventory.controllers]):
        return  # the run that stopped them goes on with them
    for entry in faults:
        cause = entry.cause.reason if isinstance(entry.cause, Unknown) else entry.cause
        yield Problem(f"{cause} ({entry.code})", entry.next_step.rstrip("."))


def _silent(world: World) -> Iterator[Problem]:
    """Nodes that run and do not answer this tool."""
    live = world.live
    if isinstance(live, Unknown):
        if live != NOT_ASKED:
            yield Problem(f"no node could be asked ({live.reason})", READABLE)
        return
    for node in world.inventory.nodes:
        answers: Mapping[NodeId, object] = live.metadata if isinstance(node, BrokerNode) else live.controllers
        answer, state = answers.get(node.id), {} if isinstance(world.services, Unknown) else world.services
        if isinstance(answer, Unknown) and isinstance(state.get(node.id), Running):
            what = f"{processes.name_of(world.inventory, node.id)} runs and does not answer ({answer.reason})"
            yield Problem(what, f"{READABLE}; or else see its log: it does not serve its clients either")


def _files(world: World) -> Iterator[Problem]:
    """Files and processes of nodes that could not be looked at."""
    for what, part in (("file", world.configs), ("process", world.services)):
        for node, found in {} if isinstance(part, Unknown) else sorted(part.items()):
            if isinstance(found, Unknown) and (what == "file" or isinstance(_file(world, node), ConfigFile)):
                about = processes.name_of(world.inventory, node)
                yield Problem(f"the {what} of {about} cannot be seen ({found.reason})", READABLE)


def _with_partitions(world: World, found: list[Problem]) -> list[Problem]:
    """What the partitions suffer is said of the first problem; by itself it is one."""
    if isinstance(world.live, Unknown) or lost_at_the_end(world):  # there the way on repairs it
        return found
    answers = [entry for entry in world.live.metadata.values() if not isinstance(entry, Unknown)]
    unhealthy = max((availability.unexcused(world, answer) for answer in answers), key=len, default=())
    offline = sum(entry.leader < 0 for entry in unhealthy)
    words = [f"{plural(len(unhealthy) - offline, 'partition')} under-replicated"] if len(unhealthy) > offline else []
    words += [f"{plural(offline, 'partition')} without a leader"] if offline else []
    if not words:
        return found
    if found:
        return [replace(found[0], what=f"{found[0].what}; {', '.join(words)}"), *found[1:]]
    if "" in held_by_runs(world, [int(node.id) for node in world.inventory.brokers]).values():
        return []  # a run restarts a broker just now
    remedy = "wait until every ISR is full again; if it lasts, see the logs of the brokers that are missing in them"
    return [Problem(", ".join(words), remedy, passes=True)]


def _file(world: World, node: BrokerNode | ControllerNode | NodeId) -> object:
    key = node if isinstance(node, int) else node.id
    return None if isinstance(world.configs, Unknown) else world.configs.get(key)
