"""Nodes that are no units of systemd: the operator's commands start and stop them and say whether they run.

A command is words, with an exit code and a time; what it prints is for people.  /proc must agree with what `status`
says: a node runs where one process of its user runs Kafka's class with the node's file; it is stopped where there is
none, nothing else names the file, and nobody listens on its port.  A stop holds only if it lasts: whoever supervises a
process starts it again at once if the command told the process, and not the supervisor.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from migrate.errors import (
    HostCommandRefused,
    HostCommandUnknown,
    MigrateError,
    ProcessNotStarted,
    ProcessNotStopped,
    UnitNotUsable,
)
from migrate.hosts import commands
from migrate.hosts.commands import Words
from migrate.hosts.host_program import START_SECONDS, STATUS_SECONDS
from migrate.hosts.properties import log_line
from migrate.hosts.runner import Completed, unseen
from migrate.hosts.sockets import listening_on
from migrate.hosts.systemd import Node, Service, SystemdServices, UnitState, access_of, ends_neighbours
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, OwnCommands
from migrate.model.launch import OWN_STOP_ADVICE, Unit
from migrate.model.outcome import Unknown, unknown
from migrate.model.views import Running, ServiceState, Stopped

SLACK: Final = 15.0  # seconds more than the host program waits for a command
SETTLED: Final = 3.0  # seconds that a stopped node stays away: supervisors start again within one or two
SEEN_WITHIN: Final = 10.0  # seconds from the end of a start command to a process
POLL_SECONDS: Final = 0.5
AT_BOOT: Final = Unknown("it is no unit of systemd: whether its supervisor starts it at boot is not seen")
RUNS, DOES_NOT_RUN = 0, 3  # exit codes of a status command, as the Linux Standard Base has them; others say neither
LOOK: Final = {
    "boot": str,
    "hertz": int,
    "uid": int,
    "processes": [{"pid": int, "ticks": int, "uid": int, "kind": str, "why": str}],
}
GIVEN: Final = {"code": int, "said": str}


@dataclass(frozen=True, slots=True)
class Commanded(Service):
    """A node with commands in place of a unit; `port` is the one that it listens on."""

    own: OwnCommands
    port: int


def service_of(node: Node, **given: Any) -> Service:
    """A unit, or a node with commands."""
    common = {"node": node.id, "config": node.config, "unit": node.supervised_name, **given}
    if node.service is None:
        return Service(**common)
    return Commanded(**common, own=node.service, port=int(node.address.rpartition(":")[2]))


class HostServices(SystemdServices):
    """`model.ports.ServiceControl` for units, and for nodes with commands."""

    def __init__(self, services: Mapping[NodeId, Service], clock: Any) -> None:
        super().__init__(services, clock)
        self._boots: dict[NodeId, str] = {}

    # -- looking -----------------------------------------------------------------------------------------------------
    def state(self, node: NodeId) -> ServiceState:
        """Does a process of the node's user run Kafka with the node's file, and does the status command agree?"""
        service = self._services[node]
        if not isinstance(service, Commanded):
            return super().state(node)
        try:
            found = self._running_of(service, self._told(service, commands.service_look(node), LOOK))
            if isinstance(found, Unknown):
                return found
            status = self._told(service, commands.service_status(node), GIVEN, STATUS_SECONDS + SLACK)
        except (HostCommandUnknown, HostCommandRefused) as error:
            return unseen(error)
        if found is not None and status["code"] == RUNS:
            return found
        if found is None and status["code"] == DOES_NOT_RUN:
            return self._gone(service)
        there = "a process runs" if found is not None else "no process runs"
        said = f"the status command {_ended(status, STATUS_SECONDS)}"
        codes = f"{RUNS} says that it runs, {DOES_NOT_RUN} that it does not"
        return Unknown(f"{service.where}: {there} Kafka with {service.config}, and {said} ({codes})")

    def _running_of(self, service: Commanded, told: Any) -> ServiceState | None:
        """The process, None where there is none; Unknown where it is not the one process that it must be."""
        found = [one for one in told["processes"] if one["kind"] == "kafka"]
        host, pids = service.runner.host, ", ".join(str(one["pid"]) for one in found)
        if len(found) > 1:
            return Unknown(f"{service.where}: several processes run Kafka with {service.config}: {pids}")
        strange = {"apart"} if found else {"apart", "doubt"}  # beside Kafka what waits for it is none
        if doubts := [f"process {one['pid']}: {one['why']}" for one in told["processes"] if one["kind"] in strange]:
            return Unknown(f"{service.where}: {'; '.join(doubts)}")
        if not found:
            return None
        (one,) = found
        if one["uid"] != told["uid"]:
            said = f"process {pids} on {host} runs Kafka with {service.config} as the user with uid {one['uid']}"
            return Unknown(f"{said}, and not as {service.own.user}, as the inventory says")
        if self._boots.setdefault(service.node, told["boot"]) != told["boot"]:  # numbers and times began anew
            self._boots[service.node] = told["boot"]
            self._started_with = {key: value for key, value in self._started_with.items() if key[0] != service.node}
        started = one["ticks"] / told["hertz"]
        unit = UnitState("loaded", "active", "", one["pid"], started, 0, {})
        return self._running(service, unit, service.runner.run(commands.CLOCK), ())

    def _gone(self, service: Commanded) -> ServiceState:
        """Stopped, where nobody listens on its port either."""
        found = listening_on(service.runner)
        if isinstance(found, Unknown):
            return found
        if any(entry.port == service.port for entry in found):
            what = f"no process runs Kafka with {service.config}, and port {service.port} is listened on"
            return Unknown(f"{service.where}: {what}")
        return Stopped()

    def _told(self, service: Commanded, words: Words, shape: Any, seconds: float | None = None) -> Any:
        """The answer of the host program; HostCommandRefused where it gave none."""
        runner = service.runner
        done: Completed = runner.run(words) if seconds is None else runner.run(words, seconds=seconds)
        if done.code:
            raise HostCommandRefused(f"{words[0]}: {done.says or done.code}", where=service.where)
        try:
            told = strict_json.loads(done.output, surrogates=True)
            given = told | {"code": -1} if shape is GIVEN and isinstance(told, dict) and told["code"] is None else told
            problem = strict_json.unlike(given, shape, "the answer")
        except (ValueError, KeyError) as error:
            problem = str(error)
        if problem:
            raise HostCommandRefused(f"{words[0]} gave no answer that can be read: {problem}", where=service.where)
        return told

    def properties(self, node: NodeId) -> Mapping[str, str]:
        """What systemd says: nothing of a node that is no unit."""
        return {} if isinstance(self._services[node], Commanded) else super().properties(node)

    def command_line(self, node: NodeId, pid: int) -> bytes:
        """The words of the node's process, each ended by a zero byte."""
        service = self._services[node]
        if not isinstance(service, Commanded):
            return super().command_line(node, pid)
        done = service.runner.run(commands.service_process(node, pid))
        if done.code:
            raise OSError(f"{service.runner.host}: {done.says}")
        return done.output

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]:
        """What the status command prints: for people."""
        service = self._services[node]
        if not isinstance(service, Commanded):
            return super().last_words(node, lines)
        try:
            told = self._told(service, commands.service_status(node), GIVEN, STATUS_SECONDS + SLACK)
        except HostCommandRefused as error:
            return [str(error)]
        return str(told["said"]).splitlines()[-lines:]

    # -- acting ------------------------------------------------------------------------------------------------------
    def start(self, node: NodeId) -> None:
        """Give the start command, and look for a process.

        Raises:
            ProcessNotStarted: it runs already, the command cannot be given, or no process was seen.
            HostCommandUnknown: the command has not ended, and there is no process yet.
        """
        service = self._services[node]
        if not isinstance(service, Commanded):
            super().start(node)
            return
        state = self.state(node)
        if not isinstance(state, Stopped):
            reason = f"it runs already (pid {state.pid})" if isinstance(state, Running) else state.reason
            raise ProcessNotStarted(f"{service.unit} was not started: {reason}", where=service.runner.host)
        self._let_the_file_grow_old(service)
        try:
            told = self._told(service, commands.service_start(node), GIVEN, START_SECONDS + SLACK)
        except HostCommandRefused as error:
            raise ProcessNotStarted(error.what, where=service.where) from error
        until = self._clock.monotonic() + SEEN_WITHIN
        while isinstance(self.state(node), Stopped):
            if self._clock.monotonic() > until:
                if told["code"] is None:
                    raise _not_ended("start", START_SECONDS, told, service.where)
                ended = _ended(told, START_SECONDS)
                what = f"no process with {service.config} came of the start command, which {ended}"
                raise ProcessNotStarted(what, where=service.where)
            self._clock.sleep(POLL_SECONDS)

    def stop(self, node: NodeId, timeout: float) -> None:
        """Give the stop command, and wait until the process is gone and stays away.

        Raises:
            ProcessNotStopped: it lives on after `timeout` seconds, is started again, or cannot be seen.
            HostCommandUnknown: the command has not ended in its own time: what it will still do is not known.
            UnitNotUsable: by the inventory it would be killed sooner than that.
        """
        service = self._services[node]
        if not isinstance(service, Commanded):
            super().stop(node, timeout)
            return
        before, where = self.state(node), service.where
        if isinstance(before, Unknown):
            raise ProcessNotStopped(f"the stop command was not given: {before.reason}", where=where)
        if isinstance(before, Running) and service.own.timeout < timeout:
            raise UnitNotUsable(
                f"by the inventory it is killed {service.own.timeout:.0f} s after a stop; a controlled shutdown may "
                f"take {timeout:.0f} s",
                where=where,
                why="a killed broker leaves its log to be recovered, and its partitions without a leader for longer",
                next_step=OWN_STOP_ADVICE,
            )
        until = self._clock.monotonic() + timeout
        try:
            told = self._told(service, commands.service_stop(node), GIVEN, service.own.timeout + SLACK)
        except HostCommandRefused as error:
            raise ProcessNotStopped(error.what, where=where) from error
        if told["code"] is None:
            raise _not_ended("stop", service.own.timeout, told, where)
        self._wait_until_it_stays_away(service, before, told, until)

    def _wait_until_it_stays_away(self, service: Commanded, before: ServiceState, told: Any, until: float) -> None:
        gone_since: float | None = None
        while True:
            state, now = self.state(service.node), self._clock.monotonic()
            if isinstance(state, Running) and not _same(state, before):
                raise ProcessNotStopped(
                    f"it was stopped, and whoever supervises it started it again (pid {state.pid})",
                    where=service.where,
                    why="the stop command ended the process and did not tell its supervisor",
                    next_step="give a stop command in the inventory that tells the supervisor, too",
                )
            gone_since = (gone_since or now) if isinstance(state, Stopped) else None
            if gone_since is not None and now - gone_since >= SETTLED:
                return
            if gone_since is None and now > until:
                left = f"pid {state.pid} lives" if isinstance(state, Running) else getattr(state, "reason", "")
                raise ProcessNotStopped(
                    f"it is not stopped ({left}); the stop command {_ended(told, service.own.timeout)}",
                    where=service.where,
                )
            self._clock.sleep(POLL_SECONDS)


def _same(state: Running, before: ServiceState) -> bool:
    return isinstance(before, Running) and state.pid == before.pid and abs(state.started_at - before.started_at) < 1


def _ended(told: Any, seconds: float) -> str:
    said = log_line(" ".join(told["said"].split()))[-500:] or "nothing"  # `pgrep -a` prints passwords of a command line
    if told["code"] is None:
        return f"has not ended after {seconds:.0f} s, and so far it said: {said}"
    return f"ended with {told['code']} and said: {said}"


def _not_ended(verb: str, seconds: float, told: Any, where: str) -> HostCommandUnknown:
    return HostCommandUnknown(
        f"the {verb} command {_ended(told, seconds)}; it was left as it is",
        where=where,
        next_step="look at the command and at the node on its host; then the same command again, which looks first",
    )


def own_unit_of(services: HostServices, inventory: Inventory, node: Node, own: OwnCommands) -> Unit | Unknown:
    """What is known of a node with commands, in the place of its unit."""
    try:
        runner = services.runner(node.id)
        neighbours = [int(other.id) for other in inventory.nodes if other.host == node.host and other.id != node.id]
        access = access_of(runner.run(commands.facts(node.id)), node)
    except MigrateError as error:
        return unknown(error)
    except OSError as error:
        return Unknown(f"{node.supervised_name} on {node.host}: {error}")
    fault = ends_neighbours(shlex.join(own.stop), neighbours)
    faults = (f"its stop command is {fault}",) if fault else ()
    return Unit(
        node.host, node.supervised_name, own.timeout, "", AT_BOOT,
        faults=faults, user=own.user, access=access, is_own=True,
    )  # fmt: skip
