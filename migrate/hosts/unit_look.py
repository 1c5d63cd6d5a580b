"""Inspect one node's unit: can a run stop and start it, and does its user have the access it needs?

`find_faults` decides by what `systemctl show` says.  `Restart=always` is no fault: systemd never restarts what
`systemctl stop` has stopped; what it does with a broker that halts is `restarts_halted`.  `find_access_faults` decides
by the host program's answer to `facts`, which looks as the unit's user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from migrate.errors import MigrateError, UnitNotUsable
from migrate.hosts import commands
from migrate.hosts.runner import Runner
from migrate.hosts.systemd import SystemdServices, seconds
from migrate.model import strict_json
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.outcome import Unknown
from migrate.model.units import STOP_SECONDS, Unit

ARGV: Final = re.compile(r"argv\[\]=(.*?) ; ignore_errors=")
FILE: Final = re.compile(r"(?<![\w.$}/-])(/[^\s\"';:,=]+\.properties)\b")
HALTED: Final = "1"  # Exit.halt(1) of a broker whose disk died
KILLED: Final = ("9", "SIGKILL")


def find_faults(properties: Mapping[str, str], config: str, neighbours: Sequence[int]) -> Iterator[str]:
    """Each fault in words; `neighbours` are the other nodes of its host.

    A property that systemd was not asked for, or does not know, is no fault.
    """
    for name, verb in (("RefuseManualStop", "stop"), ("RefuseManualStart", "start")):
        if properties.get(name) == "yes":
            yield f"{name}=yes: systemd refuses to {verb} it"
    if properties.get("RemainAfterExit") == "yes":
        yield "RemainAfterExit=yes: systemd calls it active after its process has ended"
    if properties.get("Type") == "oneshot":
        yield "Type=oneshot: systemd knows no process of it that lives on"
    if properties.get("KillMode") == "none":
        yield "KillMode=none: systemd calls it stopped while its process lives on"
    if properties.get("KillSignal") in KILLED:
        yield "KillSignal=SIGKILL: a stop kills the process before it has ended its shutdown"
    if properties.get("SendSIGKILL") == "no" and _gives_up(properties.get("TimeoutStopUSec", "")):
        yield "SendSIGKILL=no with a short TimeoutStopSec: systemd calls it stopped while its process lives on"
    yield from _starts_another_file(properties, config)
    yield from _stops_others(properties, neighbours)


def _gives_up(limit: str) -> bool:
    """Does systemd stop waiting for a stop before a run does?"""
    try:
        found = seconds(limit)
    except (ValueError, KeyError):
        return True
    return found is not None and found < STOP_SECONDS


def _starts_another_file(properties: Mapping[str, str], config: str) -> Iterator[str]:
    """Only where its arguments name files, and this is none of them: variables and scripts are not followed."""
    words = " ".join(ARGV.findall(properties.get("ExecStart", "")))
    files = [found for found in FILE.findall(words) if "log4j" not in os.path.basename(found)]  # noqa: PTH119
    if files and os.path.normpath(config) not in map(os.path.normpath, files):
        yield f"its ExecStart names {', '.join(dict.fromkeys(files))}, the inventory says {config}"


def _stops_others(properties: Mapping[str, str], neighbours: Sequence[int]) -> Iterator[str]:
    """Kafka's stop script signals every Kafka process of the host, unless it is given an option of KIP-979."""
    for words in ARGV.findall(properties.get("ExecStop", "")):
        if "kafka-server-stop" in words and "--node-id" not in words and "--process-role" not in words and neighbours:
            others = ", ".join(map(str, neighbours))
            yield f"its ExecStop is kafka-server-stop.sh, which ends node {others} of this host, too"


def restarts_halted(properties: Mapping[str, str]) -> bool:
    """Does systemd start it again after exit code 1, with which Kafka halts?"""
    again = properties.get("Restart") in ("always", "on-failure")
    return again and HALTED not in properties.get("RestartPreventExitStatus", "").split()


def reload_due(properties: Mapping[str, str]) -> bool | Unknown:
    """Has the unit changed on disk since systemd read it?"""
    said = properties.get("NeedDaemonReload")
    return Unknown("systemd did not say whether the unit changed on disk") if said is None else said == "yes"


def user_of(properties: Mapping[str, str]) -> str:
    """The user of the unit's process."""
    return properties.get("User") or "root"


def find_access_faults(told: object, node: BrokerNode | ControllerNode) -> Iterator[tuple[str, str]]:
    """Yield each problem and its remedy; TypeError for a malformed answer.

    A broker is not asked for Kafka's tools: only a DirectoryPlaybook formats one, and it says so itself.
    """
    user, config = _text(told, "user"), _part(told, "config")
    if not _flag(config, "path_readable_by_user"):
        what = f"user {user} may not enter the folder of {node.config}, or one above it"
        yield what, f"give {user} or its group the right to enter each folder of {node.config} (`chmod g+x`)"
    elif _flag(config, "exists") and not _flag(config, "readable_by_user"):
        what = f"user {user} cannot read {node.config}"
        yield what, f"give {user} or its group the right to read it (`chgrp`, `chmod g+r`)"
    if isinstance(node, ControllerNode):
        yield from _of_controller(told, node, user)


def _of_controller(told: object, node: ControllerNode, user: str) -> Iterator[tuple[str, str]]:
    home, directory = node.metadata_directory, _part(told, "metadata_directory")
    if not _flag(directory, "exists") and not _flag(directory, "can_be_made"):
        what = f"{home} is not there, and neither this tool nor user {user} may make it"
        yield what, f"make it: install -d -o {user} -m 750 -- {home}"
    elif _flag(directory, "exists") and not _flag(directory, "writable_by_user"):
        yield f"user {user} cannot write into {home}", f"give it to that user: chown {user}: -- {home}"
    tools = _part(told, "kafka_home")
    tool = _text(tools, "storage_tool")
    if not _flag(tools, "exists"):
        yield f"{tool} is not there for user {user}", "correct kafka_home in the inventory, or install Kafka there"
    elif not _flag(tools, "executable_by_user"):
        yield f"user {user} cannot run {tool}", f"give {user} the right to run it (`chmod +x`)"
    if not _text(told, "java"):
        what = f"user {user} has no java: neither the unit's JAVA_HOME nor its PATH leads to one"
        yield what, "set Environment=JAVA_HOME=... in the unit, then `systemctl daemon-reload`"


def _part(told: object, name: str) -> Mapping[str, Any]:
    found = told.get(name) if isinstance(told, dict) else None
    if not isinstance(found, dict):
        message = f"the answer has no {name}"
        raise TypeError(message)
    return found


def _text(told: object, name: str) -> str:
    found = told.get(name) if isinstance(told, dict) else None
    if not isinstance(found, str):
        message = f"the answer has no {name}"
        raise TypeError(message)
    return found


def _flag(told: Mapping[str, Any], name: str) -> bool:
    found = told.get(name)
    if not isinstance(found, bool):
        message = f"the answer does not say {name}"
        raise TypeError(message)
    return found


Node = BrokerNode | ControllerNode


def unit_of(services: SystemdServices, runner: Runner, inventory: Inventory, node: Node) -> Unit | Unknown:
    """Inspect a node's unit; nothing is changed."""
    try:
        shown, unit = services.properties(node.id), services.unit(node.id)
        neighbours = [int(other.id) for other in inventory.nodes if other.host == node.host and other.id != node.id]
        return replace(
            unit,
            reload_due=reload_due(shown),
            faults=tuple(find_faults(shown, node.config, neighbours)),
            user=user_of(shown),
            restarts_halted=restarts_halted(shown),
            access=_access(runner, node),
        )
    except UnitNotUsable as error:  # not there, or masked: what it says of itself
        return Unit(node.host, node.unit, None, "", Unknown(error.what), faults=(error.what,))
    except MigrateError as error:
        return Unknown(f"{error.id} {error}")


def _access(runner: Runner, node: Node) -> tuple[tuple[str, str], ...] | Unknown:
    done = runner.run(commands.facts(node.id))
    if done.code:
        return Unknown(f"{runner.host} did not look as the unit's user: {done.says or done.code}")
    try:
        return tuple(find_access_faults(strict_json.loads(done.output, surrogates=True), node))
    except (ValueError, TypeError) as error:
        return Unknown(f"{runner.host} gave no answer that can be read: {error}")
