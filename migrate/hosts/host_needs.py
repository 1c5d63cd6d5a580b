"""What a run gives to the host program of each host, asked beforehand: would it take every one of these commands?

Nothing is changed by asking.  The commands are made by the same functions that a run uses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from migrate.errors import HostCommandRefused, HostProgramMissing, MigrateError
from migrate.hosts import commands, leftovers
from migrate.hosts.commands import Words
from migrate.hosts.executors import HOSTS_AT_ONCE
from migrate.hosts.host_setup import configuration, servers_of
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.properties import all_directories, read_config
from migrate.hosts.remote_files import LOCK_SUFFIX, LOG, RemoteFiles
from migrate.hosts.runner import ProgramHolder, Runner, set_up
from migrate.hosts.sockets import TABLES
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP
from migrate.model.rights import HostRights, Refused
from migrate.model.views import NoFile

SAMPLE_TIME: Final = "20260101T000000"  # in the place of what a name takes from its time or content
SAMPLE_HASH: Final = "0" * 8
SAMPLE_CLUSTER: Final = "A" * 22
SAMPLE_RELEASE: Final = "3.9"
UNIT_COMMANDS: Final = (
    commands.unit_state, commands.unit_stop, commands.unit_start, commands.unit_is_enabled, commands.unit_enable,
    commands.unit_disable,
)  # fmt: skip
SERVER_COMMANDS: Final = (  # of a unit of ZooKeeper; a host of servers alone is asked by the stage that stops them
    commands.unit_state, commands.unit_is_enabled, commands.unit_stop, commands.unit_disable, commands.unit_mask,
)  # fmt: skip
Node = BrokerNode | ControllerNode


@dataclass(frozen=True, slots=True)
class HostNeed:
    node: NodeId
    host: str
    command: Words


@dataclass(frozen=True, slots=True)
class Tried:
    """The result for one need: `problem` is "" where it is met; `denied`: the program or sudo refuses it."""

    need: HostNeed
    problem: str = ""
    advice: str = ""
    denied: bool = False


def needs_of(
    inventory: Inventory, node: Node, directories: Sequence[str] = (), target: str = ""
) -> tuple[HostNeed, ...]:
    """Every command for a node, in any stage, rollback included (pure); `directories` are its log directories.

    `target` is what its file leads to where it is a link.  None where the executor uses no host program.
    """
    if inventory.executor not in ("local", "ssh"):
        return ()
    beside = target or node.config
    given = dict.fromkeys(_words(node, tuple(directories), beside, zookeeper=bool(inventory.zookeeper)))
    return tuple(HostNeed(node.id, node.host, command) for command in given)


def _words(node: Node, directories: tuple[str, ...], beside: str, *, zookeeper: bool) -> Iterator[Words]:
    if node.service is None:
        yield from (make(node.unit) for make in UNIT_COMMANDS)
        yield from (commands.unit_log(node.unit, LOG_LINES), commands.unit_log(node.unit, LOG_LINES_DEEP))
        yield from (commands.process_words(node.unit, 1), commands.PULLED_IN_AT_BOOT)
    else:
        yield from (commands.service_look(node.id), commands.service_start(node.id), commands.service_stop(node.id))
        yield from (commands.service_process(node.id, 1), commands.service_sees(node.id, 1, (node.config,)))
        if node.service.status:
            yield commands.service_status(node.id)
    yield from (commands.facts(node.id), commands.target(node.id), commands.CLOCK, *map(commands.sockets, TABLES))
    yield commands.names(node.id, os.path.dirname(beside))  # noqa: PTH120 - a path of another host
    yield from _of_file(node.id, node.config, beside)
    if isinstance(node, ControllerNode):
        home = node.metadata_directory
        yield commands.make_directory(node.id, home)
        yield from (commands.status(node.id, home), commands.status(node.id, f"{home}/{LOG}"))
        yield commands.archive(node.id)
        folder = f"{home}/{leftovers.ASIDE_FOLDER}-{SAMPLE_TIME}"
        yield commands.make_directory(node.id, folder)
        for entry in leftovers.ENTRIES:
            new = f"{folder}/{entry}"
            yield from (commands.status(node.id, new), commands.rename(node.id, f"{home}/{entry}", new))
        directories = (home,)
    elif not zookeeper:  # without ZooKeeper only a DirectoryPlaybook acts
        lock = f"{node.config}{LOCK_SUFFIX}"
        yield from (commands.hold_lock(node.id, lock), commands.try_lock(node.id, lock), commands.read(node.id, lock))
    for path in directories:
        yield commands.names(node.id, path)
        yield from _of_file(node.id, *[f"{path}/{META_PROPERTIES}"] * 2)
    if directories:
        yield from (commands.collector(node.id, directories), commands.resolve_paths(node.id, directories))
    for ignored in (False, True):
        yield commands.storage_format(node.id, SAMPLE_CLUSTER, SAMPLE_RELEASE, ignore_formatted=ignored)


def _of_file(node: NodeId, path: str, beside: str) -> Iterator[Words]:
    yield commands.write(node, path, b"")
    for copy in (f"{beside}{BACKUP_SUFFIX}", f"{beside}{BACKUP_SUFFIX}-{SAMPLE_HASH}"):
        yield from (commands.read(node, copy), commands.keep(node, {path: (copy, b"")}))
    new = f"{beside}{ASIDE_SUFFIX}-{SAMPLE_TIME}"
    yield from (commands.status(node, path), commands.read(node, path))
    yield from (commands.status(node, new), commands.rename(node, path, new))


def examine(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> list[Tried]:
    """Ask every host, in parallel; a host with several nodes is asked once."""
    by_host: dict[int, list[Node]] = {}
    for node in inventory.nodes:
        if node.id in runners:
            by_host.setdefault(id(runners[node.id]), []).append(node)
    with ThreadPoolExecutor(HOSTS_AT_ONCE, thread_name_prefix="host") as pool:
        answers = pool.map(lambda nodes: _host(inventory, runners, nodes), by_host.values())
        return [tried for found in answers for tried in found]


def _host(inventory: Inventory, runners: Mapping[NodeId, Runner], nodes: Sequence[Node]) -> list[Tried]:
    runner = runners[nodes[0].id]
    installed = [HostNeed(node.id, node.host, commands.ABOUT) for node in nodes]
    try:
        about = _answer(runner, commands.ABOUT)
        problem = _another(inventory, nodes, about)
        if problem:
            return [Tried(need, problem, set_up(need.host), denied=True) for need in installed]
        files = RemoteFiles(runners)
        links = _links(about)
        needs = [
            need
            for node in nodes
            for need in needs_of(inventory, node, _directories(files, node), links.get(node.config, ""))
        ]
        needs += [
            HostNeed(nodes[0].id, nodes[0].host, make(unit))
            for unit in servers_of(inventory, nodes[0].host)
            for make in SERVER_COMMANDS
        ]
        told = _answer(runner, commands.ALLOWED, json.dumps([need.command for need in needs]).encode())
        if not isinstance(told, list) or len(told) != len(needs):
            raise HostCommandRefused("the host program did not answer for each command", where=runner.host)
        return [
            Tried(need, f"the host program refuses it: {said}", set_up(need.host), denied=True) if said else Tried(need)
            for need, said in zip(needs, told, strict=True)
        ]
    except HostProgramMissing as error:
        return [Tried(need, f"{error.id} {error}", error.next_step, denied=True) for need in installed]
    except MigrateError as error:  # the host does not answer: nothing more is asked of it
        advice = f"explain {error.id}: nothing else was asked of this host"
        return [Tried(need, f"{error.id} {error}", advice) for need in installed]


def _answer(runner: Runner, command: Words, stdin: bytes = b"") -> object:
    done = runner.run(command, stdin=stdin)
    if done.code:
        raise HostProgramMissing(
            f"`{command[0]}` was refused: {done.says or done.code}", where=runner.host, next_step=set_up(runner.host)
        )
    try:
        return strict_json.loads(done.output, surrogates=True)
    except strict_json.NotStrictJson as error:
        raise HostCommandRefused(f"`{command[0]}` gave no answer that can be read", where=runner.host) from error


def _another(inventory: Inventory, nodes: Sequence[Node], told: object) -> str:
    """Why the program that answers is not the one of this release and inventory; "" where it is (pure)."""
    wanted = configuration(inventory, nodes[0].host)
    if not isinstance(told, dict):
        return "the host program says nothing of itself"
    if told.get("programs") != wanted["programs"]:
        return "the host program is of another release"
    parts = {"nodes": "its nodes, or a unit, a path or a kafka_home of them,", "zookeeper": "its units of ZooKeeper"}
    for key, what in parts.items():
        if told.get(key) != wanted[key]:
            return f"the host's configuration is of another inventory: {what} are not those of this one"
    return ""


def _links(about: object) -> Mapping[str, str]:
    """What nodes' files that are links lead to, as the host program tells it (pure)."""
    links = about.get("links", {}) if isinstance(about, dict) else {}
    return {str(path): str(target) for path, target in links.items()} if isinstance(links, dict) else {}


def _directories(files: RemoteFiles, node: Node) -> tuple[str, ...]:
    """A broker's log directories by its file; none where that cannot be read: the check of the file reports it."""
    if isinstance(node, ControllerNode):
        return ()
    try:
        file = read_config(files, node.id, node.config)
    except MigrateError:
        return ()
    return () if isinstance(file, NoFile) else all_directories(file.values)


def folded(tried: Sequence[Tried]) -> list[Refused]:
    """Problems and remedies, one per reason: a missing program blocks every command (pure)."""
    by_problem: dict[tuple[str, str, bool], list[HostNeed]] = {}
    for entry in tried:
        if entry.problem:
            by_problem.setdefault((entry.problem, entry.advice, entry.denied), []).append(entry.need)
    found = []
    for (problem, advice, denied), needs in by_problem.items():
        more = f" (and {len(needs) - 1} more commands)" if len(needs) > 1 else ""
        whole = needs[0].command == commands.ABOUT
        found.append(Refused(problem if whole else f"{' '.join(needs[0].command)}{more}: {problem}", advice, denied))
    return found


def rights_of(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> dict[NodeId, HostRights | Unknown]:
    """Return the rights per node, for a plan: Unknown where its host does not answer; empty where none is remote."""
    tried: dict[NodeId, list[Tried]] = {}
    for entry in examine(inventory, runners):
        tried.setdefault(entry.need.node, []).append(entry)
    rights: dict[NodeId, HostRights | Unknown] = {}
    for node, found in tried.items():
        silent = [entry.problem for entry in found if entry.problem.startswith("E-HOST") and not entry.denied]
        granted = HostRights(found[0].need.host, len(found), tuple(folded(found)))
        rights[node] = Unknown(silent[0]) if silent else granted
    return rights


# what a wide rule lets through, and the one line for the host program does not
# asked as `sudo -l COMMAND`: plain `sudo -l` lists rules with defaults, aliases and wildcards, which prove nothing
FORBIDDEN: Final[Mapping[str, Words]] = {
    "every command": ("sh", "-c", "true"),
    "every unit": ("systemctl", "stop", "--", "sshd.service"),
    "reading every file": ("cat", "--", "/etc/shadow"),
    "writing every file": ("tee", "--", "/etc/sudoers"),
    "giving every file away": ("chown", "nobody", "--", "/etc/shadow"),
    "every program of Python's": ("python3", "-c", "pass"),
}
PATTERN_RULE: Final = "files beyond a pattern of an earlier release's lines: remove those"
NO_ANSWER: Final = "must have a tty"  # requiretty


def forbidden_commands(config: str) -> Mapping[str, Words]:
    """Those, and what sudoers lines with a star allow: in arguments it matches blanks and slashes (pure)."""
    copy = f"if={config}.kraft-migrate-backup-"
    return {
        **FORBIDDEN,
        PATTERN_RULE: ("dd", copy, "if=/etc/shadow", "iflag=nofollow,nonblock", "bs=1M", "count=9", "status=none"),
    }


def find_excess_sudo(inventory: Inventory, runners: Mapping[NodeId, Runner]) -> Iterator[tuple[NodeId, str]]:
    """Yield (node, what sudo allows there beyond need), once per host; a host that does not answer is skipped."""
    seen: set[str] = set()
    for node in inventory.nodes:
        runner = runners.get(node.id)
        if not isinstance(runner, ProgramHolder) or not runner.access.sudo or runner.host in seen:
            continue
        seen.add(runner.host)
        if found := _excess_of(runner.holder, forbidden_commands(node.config)):
            yield node.id, found


def _excess_of(runner: Runner, asked: Mapping[str, Words]) -> str:
    found = []
    for what, command in asked.items():
        try:
            done = runner.run(("sudo", "-n", "-l", "--", *command))
        except MigrateError:
            return ""
        if NO_ANSWER in done.errors:
            return f"what sudo allows besides is unknown (requiretty): {done.says}"
        if done.code == 0:
            found.append(what)
    return f"sudo allows {', '.join(found)}" if found else ""
