"""What a run needs on each host, from the same table of commands that it uses: told, tried, and as rights for sudo.

Nothing is changed by trying: commands that act are asked of sudo (`sudo -n -l`), commands that look are run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.backups import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.commands import Privilege, Words
from migrate.hosts.host_locks import LOCK_SUFFIX
from migrate.hosts.remote_metadata import reading
from migrate.hosts.runner import Runner
from migrate.hosts.systemd import parse_unit, patience
from migrate.model.host_rights import HostRights, Refused
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP
from migrate.model.units import STOP_ADVICE, too_soon

HOSTS_AT_ONCE: Final = 20
SAMPLE: Final = "20260101T000000"  # in the place of what a name takes from its time or content


@dataclass(frozen=True, slots=True)
class HostNeed:
    """One command that a run may need on a host; `acts`: it changes something, and is only asked for."""

    node: NodeId
    host: str
    purpose: str
    privilege: Privilege
    command: Words
    acts: bool


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it: `problem` is "" where the need is met."""

    need: HostNeed
    problem: str
    found: str = ""


def needs_of(inventory: Inventory) -> tuple[HostNeed, ...]:
    """Every need of every node (pure); none where the executor works no hosts."""
    if inventory.executor not in ("local", "ssh"):
        return ()
    return tuple(
        need
        for node in inventory.nodes
        for need in _of_node(inventory.executor_options, node, zookeeper=bool(inventory.zookeeper))
    )


def _of_node(options: Mapping[str, str], node: BrokerNode | ControllerNode, *, zookeeper: bool) -> Iterator[HostNeed]:
    services, files = Privilege(options.get("services_as", "")), Privilege(options.get("files_as", ""))
    disks, formats = Privilege(options.get("disks_as", "")), Privilege(options.get("format_as", ""))

    def need(purpose: str, privilege: Privilege, command: Words, *, acts: bool = True) -> HostNeed:
        return HostNeed(node.id, node.host, purpose, privilege, command, acts)

    yield need("see the unit", services, commands.unit_state(node.unit), acts=False)
    yield need("stop the unit", services, commands.unit_stop(node.unit))
    yield need("start the unit", services, commands.unit_start(node.unit))
    yield need("see whether the unit starts at boot", services, commands.unit_is_enabled(node.unit))
    yield need("see what starts at boot", services, commands.pulled_in_at_boot(), acts=False)
    yield need("enable the unit", services, commands.unit_enable(node.unit))
    yield need("disable the unit", services, commands.unit_disable(node.unit))
    yield need("read the unit's log", services, commands.unit_log(node.unit, LOG_LINES), acts=False)
    yield need("read far back in it", services, commands.unit_log(node.unit, LOG_LINES_DEEP))
    folder = os.path.dirname(node.config)  # noqa: PTH120 - a path of another host
    yield need("list the configuration's copies", files, commands.names(folder), acts=False)
    yield need("make a new name durable", files, commands.sync(folder))
    for path in (node.config, f"{node.config}{BACKUP_SUFFIX}", f"{node.config}{BACKUP_SUFFIX}-{SAMPLE}"):
        for purpose, command in _writing(path):
            yield need(purpose, files, command)
    yield need("look at the configuration", files, commands.status(node.config), acts=isinstance(node, ControllerNode))
    yield from (need("set its file aside", files, command) for command in _aside(node.config))
    if isinstance(node, BrokerNode) and not zookeeper:  # without ZooKeeper only a DirectoryPlaybook acts
        lock = f"{node.config}{LOCK_SUFFIX}"
        for purpose, command in (
            ("hold the lock", commands.hold_lock(lock)),
            ("see who holds it", commands.read(lock)),
            ("see whether it is held", commands.try_lock(lock)),
        ):
            yield need(purpose, files, command)
        yield need("format its new directories", formats, _format(options, node.config, ignore_formatted=True))
    if isinstance(node, ControllerNode):
        yield need("make the metadata directory", files, commands.make_folder(node.metadata_directory))
        yield from (need("set its metadata aside", files, command) for command in _aside(node.metadata_directory))
        for command in reading(node.metadata_directory):
            yield need("read its metadata log", disks, command)
        looked_at = commands.collector(None, (node.metadata_directory,), node.id)
        yield need("look at its metadata directory", disks, looked_at)
        yield need("format its storage", formats, _format(options, node.config, ignore_formatted=False))
    yield need("run the collector", disks, ("python3", "-c", "print(1)"), acts=False)


def _format(options: Mapping[str, str], config: str, *, ignore_formatted: bool) -> Words:
    home = options.get("kafka_home", "/")
    return commands.storage_format(home, config, "A" * 22, "3.9", ignore_formatted=ignore_formatted)


def _writing(path: str) -> Iterator[tuple[str, Words]]:
    """Reading and replacing one file."""
    new, folder = commands.new_name(path), os.path.dirname(path)  # noqa: PTH120
    yield "look at a file", commands.status(path)
    yield "read it", commands.read(path)
    yield "write its new content", commands.put_new(path)
    for command in (*commands.like_old(path), commands.own_like(new, folder)):
        yield "keep its owner and mode", command
    yield "keep its context", commands.context(path)
    yield "keep its context", commands.context_like_old(path)
    yield "make it durable", commands.sync(new)
    yield "put it in place", commands.move(new, path)
    yield "take back what was not put in place", commands.remove(path)


def _aside(path: str) -> Iterator[Words]:
    new = f"{path}{ASIDE_SUFFIX}-{SAMPLE}"
    yield commands.status(new)
    yield commands.move_where_nothing_is(path, new)


def examine(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> list[Tried]:
    """Try every need; one host after the other's node, hosts at once."""
    by_node: dict[NodeId, list[HostNeed]] = {}
    for need in needs_of(inventory):
        by_node.setdefault(need.node, []).append(need)
    with ThreadPoolExecutor(HOSTS_AT_ONCE, thread_name_prefix="host") as pool:
        answers = pool.map(lambda entry: _examine(runners[entry[0]], entry[1]), by_node.items())
        return [tried for found in answers for tried in found]


def folded(tried: Sequence[Tried]) -> list[Refused]:
    """What is wrong and what to do, one entry a reason: sudo refuses forty commands with one word (pure)."""
    by_problem: dict[str, list[HostNeed]] = {}
    for entry in tried:
        if entry.problem:
            by_problem.setdefault(entry.problem, []).append(entry.need)
    found = []
    for problem, needs in by_problem.items():
        if problem.startswith("E-HOST"):
            advice = f"explain {problem.split()[0]}: nothing else was asked of this host"
            found.append(Refused(problem, advice))
            continue
        more = f" (and {len(needs) - 1} more commands)" if len(needs) > 1 else ""
        command = " ".join(needs[0].privilege.words(needs[0].command))
        advice = f"{command}{'; `doctor --sudoers` prints what sudo needs' if needs[0].privilege.user else ''}"
        purposes = tuple(dict.fromkeys(need.purpose for need in needs))
        what = f"{needs[0].purpose}{more}: {problem}"
        found.append(Refused(what, advice, purposes, problem.startswith("sudo:")))
    return found


def rights_of(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> dict[NodeId, HostRights | Unknown]:
    """The same by node, for a plan: Unknown where its host does not answer; none where no hosts are worked."""
    tried: dict[NodeId, list[Tried]] = {}
    for entry in examine(inventory, runners):
        tried.setdefault(entry.need.node, []).append(entry)
    return {node: _rights(found) for node, found in tried.items()}


def _rights(found: Sequence[Tried]) -> HostRights | Unknown:
    silent = [entry.problem for entry in found if entry.problem.startswith("E-HOST")]
    if silent:
        return Unknown(silent[0])
    rights = [entry for entry in found if STOP_ADVICE not in entry.problem]  # B-OPS-06 says that of the unit itself
    return HostRights(found[0].need.host, len(found), tuple(folded(rights)))


def _examine(runner: Runner, needs: Sequence[HostNeed]) -> list[Tried]:
    found: list[Tried] = []
    for need in needs:
        try:
            found.append(_try(runner, need))
        except MigrateError as error:
            return [*found, Tried(need, f"{error.id} {error}")]  # the host does not answer: nothing more is asked of it
    return found


def _try(runner: Runner, need: HostNeed) -> Tried:
    if need.acts:
        if not need.privilege.user:
            return Tried(need, "", "as the login user; not tried, for it changes something")
        done = runner.run(need.privilege.question(need.command))
        return Tried(need, f"sudo: {done.says or 'not allowed'}" if done.code else "")
    done = runner.run(need.privilege.words(need.command))
    if done.code:
        return Tried(need, done.says or f"ended with {done.code}")
    return Tried(need, _unit_problem(done.output) if need.command[:2] == ("systemctl", "show") else "")


def _unit_problem(output: bytes) -> str:
    try:
        unit = parse_unit(output)
    except ValueError as error:
        return f"its answer is not understood: {error}"
    if unit.load != "loaded":
        return f"systemd says that this unit is {unit.load}"
    problem = too_soon(patience(unit))
    return f"{problem}: {STOP_ADVICE}" if problem else ""


def sudoers(needs: Sequence[HostNeed], programs: Mapping[str, str], account: str) -> list[str]:
    """What sudo must be told, a line a command, each as narrow as the command is (pure).

    `programs` gives each program's absolute path on the hosts; characters that sudoers reads specially are escaped.
    Names with a time or a hash in them end in a star there.
    """
    lines: dict[str, None] = {}
    for need in needs:
        if need.privilege.user:
            words = " ".join((programs.get(need.command[0], need.command[0]), *map(_pattern, need.command[1:])))
            lines[f"{account} ALL=({need.privilege.user}) NOPASSWD: {words}"] = None
    return list(lines)


def _pattern(word: str) -> str:
    return _escaped(word).replace(SAMPLE, "*")


def _escaped(word: str) -> str:
    return "".join("\\" + character if character in ",:=\\ *?[]!" else character for character in word)
