"""How each node's process was started: its words in /proc here, or on its host; its unit, where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts.executors import Executor
from migrate.hosts.files import read_no_follow
from migrate.hosts.launch_words import generating, of_command_line, of_unit
from migrate.hosts.supervisor import Supervisor
from migrate.hosts.systemd import SystemdServices
from migrate.model.ids import NodeId
from migrate.model.launch import Launch, UnitNotes
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState

NOT_RUNNING: Final = "it does not run: how it would be started cannot be seen"
FAR: Final = Unknown("the environment of a process is not read through commands: it may hold secrets")


def launches(executor: Executor, states: Mapping[NodeId, ServiceState]) -> dict[NodeId, Launch | Unknown]:
    """Each node's launch; Unknown where it does not run and its start cannot be foreseen, or may not be looked at."""
    return {node: _launch(executor, node, state) for node, state in states.items()}


def _launch(executor: Executor, node: NodeId, state: ServiceState) -> Launch | Unknown:
    if isinstance(state, Unknown):
        return state
    if not isinstance(state, Running):
        return _planned(executor, node)
    try:
        found = of_command_line(_words(executor, node, state.pid))
        environment = FAR if node in executor.runners else _environment(state.pid)
        return replace(found, environment=environment, unit=_unit(executor, node))
    except MigrateError as error:
        return Unknown(f"{error.id} {error}")
    except OSError as error:
        return Unknown(f"the command line of process {state.pid} cannot be read: {error.strerror or error}")


def _planned(executor: Executor, node: NodeId) -> Launch | Unknown:
    """As the supervisor would start it; a unit's own words stand in scripts and environments that are not read."""
    if not isinstance(executor.services, Supervisor):
        return Unknown(NOT_RUNNING)
    try:
        argv = executor.services.spec(node).argv
    except MigrateError as error:
        return Unknown(f"{NOT_RUNNING}: {error.id} {error}")
    return of_command_line(b"".join(word.encode() + b"\0" for word in argv))


def _words(executor: Executor, node: NodeId, pid: int) -> bytes:
    services = executor.services
    if isinstance(services, SystemdServices):
        return services.command_line(node, pid)
    return read_no_follow(f"/proc/{int(pid)}/cmdline")


def _environment(pid: int) -> tuple[str, ...] | Unknown:
    try:
        return generating(read_no_follow(f"/proc/{int(pid)}/environ"))
    except OSError as error:
        return Unknown(f"the environment of process {pid} cannot be read: {error.strerror or error}")


def _unit(executor: Executor, node: NodeId) -> UnitNotes | None:
    services = executor.services
    return of_unit(services.properties(node)) if isinstance(services, SystemdServices) else None
