"""Processes that do not run, in words that name node, unit and host, and what to type there (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from migrate.model.disk_trouble import sick_directories
from migrate.model.findings import Finding, Severity, ranges
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory, by_hand
from migrate.model.launch import NOT_RUNNING
from migrate.model.outcome import NotYet, Unknown
from migrate.model.views import Stopped
from migrate.model.words import moment
from migrate.model.world import World

BY_RUN: Final = "stopped by run: "  # before a node, in a world's facts: which run stopped it and did not start it since
UNSEEN: Final = "B-NET-01"  # a broker does not see others
SAYS: Final = "what broker {} says of itself"
METADATA: Final = "the Metadata answer of broker {}"
LOG_DIRS: Final = "the DescribeLogDirs answer of broker {}"
LAUNCH: Final = "how broker {} was started"
GOES_ON: Final = "the run then continues"
AGAIN: Final = "then give the same command again"  # in its place, once the run has ended
DISK_ENDS_IT: Final = "in migration mode one log directory that dies ends a broker"
DISK_COMMANDS: Final = "`kraft-migrate status` has the commands, under `disk`"


def ended(world: World, nodes: Iterable[BrokerNode | ControllerNode]) -> list[int]:
    """Those that are known to have no process; a process that cannot be seen is not among them."""
    if isinstance(world.services, Unknown):
        return []
    states = ((node.id, world.services.get(node.id)) for node in nodes)
    return [int(node) for node, state in states if isinstance(state, Stopped)]


def stopped_on(world: World, nodes: Sequence[int]) -> str:
    """`brokers 0-1 are stopped on kafka-1, kafka-2, the first since 01:12:50 UTC`; no time where a host knows none."""
    hosts = ", ".join(dict.fromkeys(world.inventory.node(NodeId(node)).host for node in nodes))
    states = {} if isinstance(world.services, Unknown) else world.services
    found = [state.since for node in nodes if isinstance(state := states.get(NodeId(node)), Stopped)]
    known = [since for since in found if since is not None]
    since = f"{'' if len(nodes) == 1 else ', the first'} since {moment(min(known))}" if len(known) == len(nodes) else ""
    return f"{are(world.inventory, nodes)} stopped on {hosts}{since}"


def are(inventory: Inventory, nodes: Sequence[int]) -> str:
    """`broker 3 is` or `controllers 3000-3002 are`."""
    one = name_of(inventory, nodes[0])
    return f"{one} is" if len(nodes) == 1 else f"{one.partition(' ')[0]}s {ranges(nodes)} are"


def held_by_runs(world: World, nodes: Iterable[int]) -> Mapping[int, str]:
    """Which of the nodes a run stopped and has not started since: node -> the run; "" while a process works on it."""
    return {node: world.facts[f"{BY_RUN}{node}"] for node in nodes if f"{BY_RUN}{node}" in world.facts}


def name_of(inventory: Inventory, node: int) -> str:
    """`broker 3` or `controller 3002`."""
    return f"{'broker' if any(entry.id == node for entry in inventory.brokers) else 'controller'} {int(node)}"


def do_not_run(inventory: Inventory, nodes: Collection[int]) -> str:
    """`controller 3002 does not run (kafka-controller.service on h3)`, for each of them."""
    return "; ".join(f"{name_of(inventory, node)} does not run ({_place(inventory, node)})" for node in nodes)


def start(inventory: Inventory, nodes: Collection[int]) -> str:
    """What to type, and where: `on h3: systemctl start kafka-controller.service`."""
    return "; ".join(_typed(inventory, node, "start") for node in nodes)


def disks_first(world: World, down: Collection[int]) -> str:
    """What comes before a start where one of them has a dead disk; "" where none has.

    A broker that starts without a disk recreates the replicas of it on the others, those without another one empty.
    """
    sick = sorted({entry.broker for entry in sick_directories(world)} & {*down})
    names = " and ".join(name_of(world.inventory, node) for node in sick)
    return f"repair or replace the disk of {names}, and start nothing before: {DISK_COMMANDS}" if sick else ""


def start_those(world: World, nodes: Iterable[int], gone: str = "") -> str:
    """The fix of what is found because brokers are known to be down: what to type; "" where it is not only that.

    `gone` is what to do where they will not come back.
    """
    wanted = [*nodes]
    down = ended(world, [node for node in world.inventory.brokers if node.id in wanted])
    if not down or len(down) < len(wanted):
        return ""
    typed = f"Start what is down, with its file as it is ({start(world.inventory, down)}); its log says why it ended."
    if runs := {*held_by_runs(world, down).values()} - {""}:
        return f"Continue run {', '.join(sorted(runs))}, which stopped it: `kraft-migrate status` has the command."
    if first := disks_first(world, down):
        typed = f"{first[0].upper()}{first[1:]}."
    return f"{typed} Or, where it will not come back: {gone}." if gone else typed


def ended_after_start(inventory: Inventory, nodes: Collection[int]) -> str:
    """The reason of a step that has started them, with what leads on."""
    return (
        f"{do_not_run(inventory, nodes)}: its process ended after the start. Repair what its last lines name, in its "
        "file too, but in no key that this run writes there: the same command starts it"
    )


def stop(inventory: Inventory, nodes: Collection[int]) -> str:
    return "; ".join(_typed(inventory, node, "stop") for node in nodes)


def owner(inventory: Inventory, nodes: Collection[int]) -> str:
    """Whose turn it is: `whoever runs h3`."""
    hosts = dict.fromkeys(inventory.node(NodeId(node)).host for node in nodes)
    return f"whoever runs {', '.join(hosts)}"


def down_behind(world: World) -> Callable[[Finding], int | None]:
    """Which broker that has no process a finding follows from; None for blind spots, which are told by their reason."""
    down = ended(world, world.inventory.brokers)

    def behind(finding: Finding) -> int | None:
        if finding.severity is Severity.BLIND_SPOT:
            return None
        if finding.code == UNSEEN:
            missed = {int(number) for number in re.findall("[0-9]+", finding.message)}
            return min(missed) if missed and missed <= {*down} else None
        return next((node for node in down if because_down(finding, node)), None)

    return behind


def unseen_by_stop(world: World, about: str, reason: str) -> str:
    """Why that cannot be seen: of what its process alone tells, that the broker is stopped; else the reason given."""
    for node in ended(world, world.inventory.brokers):
        started = about.startswith(f"broker {node}:") and reason == NOT_RUNNING.reason
        if started or about in [name.format(node) for name in (SAYS, METADATA, LOG_DIRS, LAUNCH)]:
            return stopped_on(world, [node])
    return reason


def because_down(finding: Finding, node: int | None) -> bool:
    """Would this not be found if that node ran?  Told by code and node; everything else about it still counts."""
    if node is None:
        return False
    if finding.severity is Severity.BLIND_SPOT:
        answers = (SAYS, METADATA, LOG_DIRS, "what controller {} says of itself")
        return finding.about in [name.format(node) for name in answers]
    match finding.code:
        case "B-ZKN-05":  # its replicas are assigned to a broker that is not alive
            return finding.about == f"broker {node}"
        case "B-CFG-08":  # ZooKeeper knows one broker less than the inventory and the playbook
            return finding.about in (f"broker {node}", "the playbook")
        case code if code == UNSEEN:  # the others do not see it; the proof asks them again
            return True
        case "B-MIG-05":  # stopped in KRaft mode, it is fenced until it is back
            return finding.about == f"broker {node}"
        case "B-MIG-06":  # stopped in migration mode, its znode went with its session and its registration stays
            return finding.about == f"broker {node}"
        case "B-QRM-03":  # its file was written already
            return finding.about.startswith(f"controller {node}:")
        case _:
            return False


def unknown_file(inventory: Inventory, node: int) -> str:
    """A file that another hand touched after the start proves nothing of the process, even with the same content."""
    found = inventory.node(NodeId(node))
    restart = by_hand(found, "restart") or f"restart {name_of(inventory, node)}"
    return (
        f"which configuration file {name_of(inventory, node)} was started with is not known: {found.config} on "
        f"{found.host} was written, or its owner or mode was set, after the start. See that the file is right, then "
        f"restart it, on {found.host}: {restart}"
    )


def awaited(inventory: Inventory, nodes: Collection[int]) -> NotYet:
    """A wait until these run again."""
    brokers = any(entry.id in nodes for entry in inventory.brokers)
    why = f"its log says why it ended ({DISK_ENDS_IT})" if brokers else "its log says why it ended"
    return NotYet(
        f"{' and '.join(f'{name_of(inventory, node)} ({_place(inventory, node)})' for node in nodes)} to run again",
        owner(inventory, nodes),
        f"{start(inventory, nodes)}; {why}; {GOES_ON}",
        progress=str(sorted(nodes)),
    )


def ends_again(inventory: Inventory, node: int) -> NotYet:
    """A wait for a process that was replaced by a new one: whatever supervises it starts it again."""
    return NotYet(
        f"{name_of(inventory, node)} to stay up ({_place(inventory, node)} ends, and is started again)",
        owner(inventory, [node]),
        f"its log says why; repair that; {GOES_ON}",
    )


def _place(inventory: Inventory, node: int) -> str:
    found = inventory.node(NodeId(node))
    return f"{found.unit} on {found.host}" if found.unit else f"its process on {found.host}"


def _typed(inventory: Inventory, node: int, verb: str) -> str:
    found = inventory.node(NodeId(node))
    what = by_hand(found, verb) or f"{verb} {name_of(inventory, node)}"
    return f"on {found.host}: {what}"
