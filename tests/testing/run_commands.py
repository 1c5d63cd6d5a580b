"""Every command that a run gives to the host program for a node, in any stage, and what the program would refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from migrate.hosts import commands, leftovers
from migrate.hosts.commands import Words
from migrate.hosts.leftovers import ASIDE_SUFFIX, BACKUP_SUFFIX
from migrate.hosts.meta_properties import META_PROPERTIES
from migrate.hosts.remote_files import LOCK_SUFFIX, LOG
from migrate.hosts.sockets import TABLES
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP

SAMPLE_TIME: Final = "20260101T000000"  # in the place of what a name takes from its time or content
SAMPLE_HASH: Final = "0" * 8
SAMPLE_CLUSTER: Final = "A" * 22
SAMPLE_RELEASE: Final = "3.9"
UNIT_COMMANDS: Final = (
    commands.unit_state, commands.unit_stop, commands.unit_start, commands.unit_is_enabled,
)  # fmt: skip


def commands_of(
    inventory: Inventory, node: BrokerNode | ControllerNode, directories: Sequence[str] = (), target: str = ""
) -> set[Words]:
    """Those of one node; `directories` are its log directories, `target` is what its file leads to if it is a link."""
    return set(_words(node, tuple(directories), target or node.config, zookeeper=bool(inventory.zookeeper)))


def _words(
    node: BrokerNode | ControllerNode, directories: tuple[str, ...], beside: str, *, zookeeper: bool
) -> Iterator[Words]:
    if node.service is None:
        yield from (make(node.unit) for make in UNIT_COMMANDS)
        yield from (commands.unit_log(node.unit, LOG_LINES), commands.unit_log(node.unit, LOG_LINES_DEEP))
        yield from (commands.process_words(node.unit, 1), commands.PULLED_IN_AT_BOOT)
    else:
        yield from (commands.service_look(node.id), commands.service_start(node.id), commands.service_stop(node.id))
        yield from (commands.service_process(node.id, 1), commands.service_status(node.id))
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


REFUSALS: Final = """
import importlib.machinery, importlib.util, json, sys
loader = importlib.machinery.SourceFileLoader("installed", sys.argv[1])
program = importlib.util.module_from_spec(importlib.util.spec_from_loader("installed", loader))
loader.exec_module(program)
host, answers = program.load(), []
for words in json.load(sys.stdin):
    try:
        program.act_of(host, words)
        answers.append("")
    except program.RefusedError as error:
        answers.append(error.where + ": " + error.text)
print(json.dumps(answers))
"""


def refusals(
    program: Path | str,
    asked: Iterable[Sequence[str]],
    run: Callable[[Sequence[str], bytes], bytes] | None = None,
) -> list[str]:
    """Why the installed program would refuse each of these commands, "" where it would not; nothing is done."""
    words = (sys.executable if run is None else "/usr/bin/python3", "-B", "-c", REFUSALS, str(program))
    given = json.dumps([list(entry) for entry in asked]).encode()
    told = run(words, given) if run else subprocess.run(words, input=given, capture_output=True, check=True).stdout
    answers = json.loads(told)
    assert isinstance(answers, list)
    return answers
