"""Nodes that are systemd units of their hosts: started, stopped and observed through `systemctl`, here or by SSH.

A running process counts as started with its configuration file where the file's inode has not changed since before the
start: the kernel sets that time, and no user can set it back.  Before systemd starts a unit's process, it notes that in
a link of its own (`unit_export_invocation_id` in src/core/unit.c, from systemd 235 on).  The kernel stamps the file and
the link by one clock, so the earlier stamp is the earlier change, however coarse the clock is, and also where it is set
forward later.  Where there is no such note, half a second must lie between change and start.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from migrate.errors import (
    HostCommandRefused,
    HostCommandUnknown,
    MigrateError,
    ProcessNotStarted,
    ProcessNotStopped,
    StorageNotFormatted,
    UnitNotUsable,
)
from migrate.hosts import commands
from migrate.hosts.commands import Words
from migrate.hosts.properties import log_line
from migrate.hosts.remote_files import FileStatus, RemoteFiles, error_of, parse_status
from migrate.hosts.runner import Completed, Runner, run_all, unseen
from migrate.model import strict_json
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from migrate.model.launch import OF_A_LAB, STOP_ADVICE, STOP_SECONDS, VIEW, Unit, kept_from
from migrate.model.outcome import Awaited, Unknown, unknown
from migrate.model.views import Running, ServiceState, Stopped

LIVING: Final = frozenset({"active", "activating", "deactivating", "reloading", "refreshing", "maintenance"})
NOTES: Final = "/run/systemd/units"  # with a link `invocation:UNIT` for each unit that systemd has started
A_TICK: Final = 0.05  # seconds in which the clock of these stamps goes on: its ticks are 10 ms at most
OLD_ENOUGH: Final = 1.0  # seconds between a file's change and the start of the process, where no note tells them apart
POLL_SECONDS: Final = 0.25
FORMAT_SECONDS: Final = 120.0
UNLIMITED: Final = "infinity"


class Waits(Protocol):
    def monotonic(self) -> float:
        """Seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit as `systemctl show` reports it: `started` and `ended` in seconds since the boot, 0 for never."""

    load: str
    active: str
    sub: str
    pid: int
    started: float
    exit_code: int
    properties: Mapping[str, str]
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Service:
    node: NodeId
    unit: str
    config: str
    runner: Runner
    files: RemoteFiles

    @property
    def where(self) -> str:
        return f"{self.runner.host}:{self.unit}"


def parse_unit(output: bytes) -> UnitState:
    """Parse the answer of `commands.unit_state` (pure); ValueError where it is malformed."""
    lines = (line.partition("=") for line in output.decode(errors="replace").splitlines())
    values = {name: value for name, equals, value in lines if equals}
    if "ActiveState" not in values or "LoadState" not in values:
        raise ValueError("no ActiveState")
    return UnitState(
        load=values["LoadState"],
        active=values["ActiveState"],
        sub=values.get("SubState", ""),
        pid=int(values.get("MainPID") or 0),
        started=int(values.get("ExecMainStartTimestampMonotonic") or 0) / 1e6,
        exit_code=int(values.get("ExecMainStatus") or 0),
        properties=values,
        ended=int(values.get("InactiveEnterTimestampMonotonic") or 0) / 1e6,
    )


def seconds(text: str) -> float | None:
    """Parse a time span of systemd, such as `1min 30s` (pure); None for `infinity`, ValueError for others."""
    if text == UNLIMITED:
        return None
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
    total = 0.0
    for part in text.split():
        number = part.rstrip("abcdefghijklmnopqrstuvwxyz")
        total += float(number) * units[part[len(number) :] or "us"]
    return total


def patience(unit: UnitState) -> float | Unknown | None:
    """Seconds after which systemd kills a process that is being stopped (pure); None: never."""
    if unit.properties.get("SendSIGKILL") == "no":
        return None
    try:
        return seconds(unit.properties["TimeoutStopUSec"])
    except (ValueError, KeyError) as error:
        return Unknown(f"its TimeoutStopUSec is not understood: {error}")


NOT_AT_BOOT: Final = frozenset(
    {"disabled", "enabled-runtime", "linked", "linked-runtime", "masked", "masked-runtime", "transient"}
)
BY_ITS_TARGET: Final = frozenset({"enabled", "static", "indirect", "generated", OF_A_LAB})


def starts_at_boot(name: str, word: str, unit: UnitState, pulled_in: Sequence[str]) -> bool | Unknown:
    """Does the boot start it (pure)?  Seen on systemd 252: `enabled` is also said of a unit that no target pulls in.

    Two things must say so: the links that systemd has loaded (WantedBy, RequiredBy), and the boot's own target.
    """
    if word in NOT_AT_BOOT:
        return False
    if word == "alias":
        return Unknown(f"{name} is another name of a unit: name the unit itself in the inventory")
    if word not in BY_ITS_TARGET:
        return Unknown(f"systemctl is-enabled says {word!r}" if word else "systemctl is-enabled says nothing")
    wanted = unit.properties.get("WantedBy", "") or unit.properties.get("RequiredBy", "")
    if wanted and name in pulled_in:
        return True
    return Unknown(f"it is {word}, and default.target does not pull it in: what starts it at boot is not known")


def _clock(done: Completed) -> tuple[float, float]:
    """Now and the uptime, read in this order: a start seems earlier, never later."""
    if done.code:
        raise OSError(f"clock: {done.says}")
    now, up = map(float, done.output.split())
    return now, up


def _ended(unit: UnitState, clock: Completed) -> float | None:
    """When the unit became inactive; None where it never ran in this boot, or the host's clock was not read."""
    try:
        now, up = _clock(clock)
    except (OSError, ValueError):
        return None
    return now - (up - unit.ended) if 0 < unit.ended <= up else None


def _file_before(config: str, answers: Sequence[Completed], began: float) -> str | None:
    """The file's hash where it did not change since before the start; else None.

    `answers` are of the start's note, and the file's status, bytes and status.  `began` is the start by the clock of
    now: a clock that was set back since the start shows the change behind it there, too.
    """
    note, *of_file = answers
    for done in of_file:
        if done.code:
            raise error_of(done, config)
    before, content, after = of_file
    found = parse_status(before.output)
    if note.code:
        is_before = _changed(found) + OLD_ENOUGH / 2 < began
    else:
        is_before = _changed(found) < min(parse_status(note.output).changed, began)
    return hashlib.sha256(content.output).hexdigest() if is_before and parse_status(after.output) == found else None


def _changed(file: FileStatus) -> float:
    """The latest moment of its change: file systems that keep whole seconds leave out the rest."""
    return file.changed + (1.0 if file.changed.is_integer() else 0.0)


class SystemdServices:
    """`model.ports.ServiceControl` for units; a missing answer is Unknown."""

    def __init__(self, services: Mapping[NodeId, Service], clock: Waits) -> None:
        self._services = services
        self._clock = clock
        self._started_with: dict[tuple[NodeId, int, float], str] = {}
        self._looked_at: set[NodeId] = set()
        self._by_own_name: set[NodeId] = set()  # units that are not named by an alias: notes have their own names

    def runner(self, node: NodeId) -> Runner:
        return self._services[node].runner

    # -- looking -----------------------------------------------------------------------------------------------------
    def state(self, node: NodeId) -> ServiceState:
        """Does the unit's main process run?  A unit that is starting or stopping is Unknown for that moment."""
        service = self._services[node]
        asked = [commands.unit_state(service.unit), commands.CLOCK]
        if node not in self._looked_at:  # later the proof is kept, or asked for where it is missed
            asked += self._about_file(service)
            self._looked_at.add(node)
        try:
            shown, clock, *file = run_all(service.runner, asked)
            unit = self._decoded(service, shown)
            if unit.properties.get("Id") == service.unit:
                self._by_own_name.add(node)
            if unit.active == "active" and unit.pid:
                return self._running(service, unit, clock, file)
        except (HostCommandUnknown, HostCommandRefused, UnitNotUsable) as error:
            return unseen(error)
        host = service.runner.host
        found = f"{service.unit} on {host} is {unit.active} ({unit.sub})"
        if unit.sub == "auto-restart":
            after = f"on {host}: `journalctl -u {service.unit} -n 50` shows why; repair that; "
            after += "the run then continues"
            return Awaited(f"{found}: its process ended, and systemd starts it again", f"whoever runs {host}", after)
        return Unknown(found) if unit.active in LIVING else Stopped(unit.exit_code, since=_ended(unit, clock))

    def _unit(self, service: Service) -> UnitState:
        return self._decoded(service, service.runner.run(commands.unit_state(service.unit)))

    def _decoded(self, service: Service, done: Completed) -> UnitState:
        if done.code:
            raise HostCommandRefused(f"systemctl show: {done.says}", where=service.where)
        try:
            found = parse_unit(done.output)
        except ValueError as error:
            raise HostCommandRefused("the output of systemctl show cannot be parsed", where=service.where) from error
        if found.load != "loaded":
            raise UnitNotUsable(f"systemd says that this unit is {found.load}", where=service.where)
        return found

    def _running(self, service: Service, unit: UnitState, clock: Completed, file: Sequence[Completed]) -> ServiceState:
        """With the file it was started with, where the times prove it; the proof is kept."""
        known = (service.node, unit.pid, unit.started)
        try:
            now, up = _clock(clock)
            began = now - (up - unit.started)
            proven = self._started_with.get(known)
            if proven is None:
                answers = file or run_all(service.runner, self._about_file(service))
                proven = _file_before(service.config, answers, began)
            if proven is not None:
                self._started_with[known] = proven
            return Running(unit.pid, began, proven)
        except (OSError, ValueError) as error:
            return Unknown(f"{service.unit} on {service.runner.host}: {error}")

    def _about_file(self, service: Service) -> list[Words]:
        note, file = (
            commands.status(service.node, path) for path in (f"{NOTES}/invocation:{service.unit}", service.config)
        )
        return [note, file, commands.read(service.node, service.config), file]

    def properties(self, node: NodeId) -> Mapping[str, str]:
        """The unit's properties; raises HostCommandUnknown, HostCommandRefused or UnitNotUsable."""
        return self._unit(self._services[node]).properties

    def unit(self, node: NodeId, *more: Words) -> tuple[Unit, Mapping[str, str], Sequence[Completed]]:
        """How long it may take to stop, and whether it starts at boot; its properties; answers to `more` commands.

        Raises what `properties` raises.
        """
        service = self._services[node]
        done, asked, listed, *answers = run_all(
            service.runner,
            (
                commands.unit_state(service.unit),
                commands.unit_is_enabled(service.unit),
                commands.PULLED_IN_AT_BOOT,
                *more,
            ),
        )
        shown = self._decoded(service, done)
        word = next(iter(asked.output.decode(errors="replace").split()), "")
        boots: bool | Unknown = Unknown(f"systemctl is-enabled: {asked.says or asked.code}")
        if word:
            boots = Unknown(f"systemctl list-dependencies: {listed.says or listed.code}")
            if not listed.code:
                boots = starts_at_boot(service.unit, word, shown, listed.output.decode(errors="replace").split())
        return Unit(service.runner.host, service.unit, patience(shown), word, boots), shown.properties, answers

    def command_line(self, node: NodeId, pid: int) -> bytes:
        """The words of the unit's main process, each ended by a zero byte; OSError, or what `properties` raises."""
        service = self._services[node]
        done = service.runner.run(commands.process_words(service.unit, pid))
        if done.code:
            raise OSError(f"{service.runner.host}: {done.says}")
        return done.output

    def last_words(self, node: NodeId, lines: int) -> Sequence[str]:
        service = self._services[node]
        done = service.runner.run(commands.unit_log(service.unit, lines))
        return done.output.decode(errors="replace").splitlines()[-lines:] if not done.code else [done.says]

    # -- acting ------------------------------------------------------------------------------------------------------
    def start(self, node: NodeId) -> None:
        """Start the unit without waiting; raises ProcessNotStarted where it runs already, or systemd refuses."""
        service = self._services[node]
        state = self.state(node)
        if not isinstance(state, Stopped):
            reason = f"it runs already (pid {state.pid})" if isinstance(state, Running) else state.reason
            raise ProcessNotStarted(f"{service.unit} was not started: {reason}", where=service.runner.host)
        self._let_the_file_grow_old(service)
        done = service.runner.run(commands.unit_start(service.unit))
        if done.code:
            raise ProcessNotStarted(f"systemctl start: {done.says}", where=service.where)

    def _let_the_file_grow_old(self, service: Service) -> None:
        """Wait, so that the times can prove which file the process was started with."""
        asked = (commands.CLOCK, commands.status(service.node, service.config), commands.status(service.node, NOTES))
        clock, file, notes = run_all(service.runner, asked)
        try:
            if file.code:
                raise error_of(file, service.config)
            age = _clock(clock)[0] - _changed(parse_status(file.output))
        except (OSError, ValueError) as error:
            raise ProcessNotStarted(
                f"its file cannot be looked at: {error}", where=f"{service.runner.host}:{service.config}"
            ) from error
        will_be_noted = service.node in self._by_own_name and not notes.code
        wait = (A_TICK if will_be_noted else OLD_ENOUGH) - age
        if 0 < wait <= 2 * OLD_ENOUGH:  # by a clock that was set back, a file may be of the far future
            self._clock.sleep(wait)

    def stop(self, node: NodeId, timeout: float) -> None:
        """Stop the unit, and wait until its process is gone.

        Raises:
            ProcessNotStopped: it lives on after `timeout` seconds, or cannot be seen.
            UnitNotUsable: systemd itself would kill the process sooner than that.
        """
        service = self._services[node]
        unit, where = self._unit(service), service.where
        limit = patience(unit)
        if isinstance(limit, Unknown):
            raise UnitNotUsable(limit.reason, where=where)
        if unit.active in LIVING and limit is not None and limit < timeout:
            raise UnitNotUsable(
                f"systemd would kill it after {limit:.0f} s; a controlled shutdown may take {timeout:.0f} s",
                where=where,
                why="a killed broker leaves its log to be recovered, and its partitions without a leader for longer",
                next_step=STOP_ADVICE,
            )
        done = service.runner.run(commands.unit_stop(service.unit))
        if done.code:
            raise ProcessNotStopped(f"systemctl stop: {done.says}", where=where)
        until = self._clock.monotonic() + timeout
        while (unit := self._unit(service)).active in LIVING:
            if self._clock.monotonic() > until:
                raise ProcessNotStopped(
                    f"it is still running after {timeout:.0f} s ({unit.active}, {unit.sub})", where=where
                )
            self._clock.sleep(POLL_SECONDS)

    def format_storage(
        self, node: NodeId, cluster_id: str, release_version: str, *, ignore_formatted: bool = False, voters: str = ""
    ) -> str:
        """kafka-storage format as the unit's own user; its output.

        Raises:
            StorageNotFormatted: it refused.
            HostCommandUnknown: nobody knows whether it came to its end.
        """
        service = self._services[node]
        command = commands.storage_format(
            node, cluster_id, release_version, ignore_formatted=ignore_formatted, voters=voters
        )
        done = service.runner.run(command, seconds=FORMAT_SECONDS)
        said = log_line((done.output.decode(errors="replace") + done.errors).strip())
        if done.code:
            where = f"{service.runner.host}:{service.config}"
            raise StorageNotFormatted("kafka-storage format refused", where=where, why=said[-2000:])
        return said


ARGV: Final = re.compile(r"argv\[\]=(.*?) ; ignore_errors=")
FILE: Final = re.compile(r"(?<![\w.$}/-])(/[^\s\"';:,=]+\.properties)\b")
FACTS: Final = {  # of the answer to `facts`
    "user": str,
    "config": dict.fromkeys(("path_readable_by_user", "exists", "readable_by_user"), bool),
}
CONTROLLER_FACTS: Final = {
    **FACTS,
    "metadata_directory": dict.fromkeys(("exists", "can_be_made", "writable_by_user"), bool),
    "kafka_home": {"storage_tool": str, "exists": bool, "executable_by_user": bool},
    "java": str,
}
HALTED: Final = "1"  # Exit.halt(1) of a broker whose disk died
KILLED: Final = ("9", "SIGKILL")
SWITCH_USER: Final = ("su", "runuser")  # on TERM they send TERM, and after two seconds KILL (util-linux, su-common.c)


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
        yield "Type=oneshot: systemd tracks no process of it"
    if properties.get("KillMode") == "none":
        yield "KillMode=none: systemd reports it as stopped while its process runs"
    if properties.get("KillSignal") in KILLED:
        yield "KillSignal=SIGKILL: a stop kills the process before it has ended its shutdown"
    if properties.get("SendSIGKILL") == "no" and _gives_up(properties.get("TimeoutStopUSec", "")):
        yield "SendSIGKILL=no with a short TimeoutStopSec: systemd reports it as stopped while its process runs"
    for words in ARGV.findall(properties.get("ExecStart", "")):
        name = os.path.basename(words.split(" ", 1)[0])  # noqa: PTH119 - a path of another host
        if name in SWITCH_USER:
            yield f"its ExecStart is {name}, which kills Kafka two seconds after a stop begins: give the unit User="
    # only where its arguments name files, and this is none of them: variables and scripts are not followed
    words = " ".join(ARGV.findall(properties.get("ExecStart", "")))
    files = [found for found in FILE.findall(words) if "log4j" not in os.path.basename(found)]  # noqa: PTH119
    if files and os.path.normpath(config) not in map(os.path.normpath, files):
        yield f"its ExecStart names {', '.join(dict.fromkeys(files))}, the inventory says {config}"
    for words in ARGV.findall(properties.get("ExecStop", "")):
        if fault := ends_neighbours(words, neighbours):
            yield f"its ExecStop is {fault}"


def ends_neighbours(words: str, neighbours: Sequence[int]) -> str:
    """Kafka's stop script signals every Kafka process of the host, unless it is given an option of KIP-979 (pure)."""
    if "kafka-server-stop" not in words or "--node-id" in words or "--process-role" in words or not neighbours:
        return ""
    return f"kafka-server-stop.sh, which ends node {', '.join(map(str, neighbours))} of this host, too"


def _gives_up(limit: str) -> bool:
    """Does systemd stop waiting for a stop before a run does?"""
    try:
        found = seconds(limit)
    except (ValueError, KeyError):
        return True
    return found is not None and found < STOP_SECONDS


def restarts_halted(properties: Mapping[str, str]) -> bool:
    """Does systemd start it again after exit code 1, with which Kafka halts?"""
    again = properties.get("Restart") in ("always", "on-failure")
    return again and HALTED not in properties.get("RestartPreventExitStatus", "").split()


def reload_due(properties: Mapping[str, str]) -> bool | Unknown:
    """Has the unit changed on disk since systemd read it?"""
    said = properties.get("NeedDaemonReload")
    return Unknown("systemd did not say whether the unit changed on disk") if said is None else said == "yes"


def user_of(properties: Mapping[str, str]) -> str:
    return properties.get("User") or "root"


def find_access_faults(told: Any, node: BrokerNode | ControllerNode) -> Iterator[tuple[str, str]]:
    """Yield each problem and its remedy; TypeError for a malformed answer.

    A broker is not asked for Kafka's tools: only a DirectoryPlaybook formats one, and it says so itself.
    """
    kind = CONTROLLER_FACTS if isinstance(node, ControllerNode) else FACTS
    if problem := strict_json.unlike(told, kind, "the answer"):
        raise TypeError(problem)
    user, config = told["user"], told["config"]
    if not config["path_readable_by_user"]:
        what = f"user {user} may not enter the folder of {node.config}, or one above it"
        yield what, f"give {user} or its group the right to enter each folder of {node.config} (`chmod g+x`)"
    elif config["exists"] and not config["readable_by_user"]:
        what = f"user {user} cannot read {node.config}"
        yield what, f"give {user} or its group the right to read it (`chgrp`, `chmod g+r`)"
    if not isinstance(node, ControllerNode):
        return
    home, directory = node.metadata_directory, told["metadata_directory"]
    if not directory["exists"] and not directory["can_be_made"]:
        what = f"{home} is not there, and neither this tool nor user {user} may make it"
        yield what, f"make it: install -d -o {user} -m 750 -- {home}"
    elif directory["exists"] and not directory["writable_by_user"]:
        yield f"user {user} cannot write into {home}", f"give it to that user: chown {user}: -- {home}"
    tools = told["kafka_home"]
    tool = tools["storage_tool"]
    if not tools["exists"]:
        yield f"{tool} is not there for user {user}", "correct kafka_home in the inventory, or install Kafka there"
    elif not tools["executable_by_user"]:
        yield f"user {user} cannot run {tool}", f"give {user} the right to run it (`chmod +x`)"
    if not told["java"]:
        what = f"user {user} has no java: neither the unit's JAVA_HOME nor its PATH leads to one"
        yield what, "set Environment=JAVA_HOME=... in the unit, then `systemctl daemon-reload`"


Node = BrokerNode | ControllerNode


def unit_of(services: SystemdServices, inventory: Inventory, node: Node) -> Unit | Unknown:
    try:
        unit, shown, (told,) = services.unit(node.id, commands.facts(node.id))
        view = tuple((name, shown[name]) for name in VIEW if shown.get(name, "no") not in ("", "no"))
        neighbours = [int(other.id) for other in inventory.nodes if other.host == node.host and other.id != node.id]
        return replace(
            unit,
            reload_due=reload_due(shown),
            faults=tuple(find_faults(shown, node.config, neighbours)),
            user=user_of(shown),
            restarts_halted=restarts_halted(shown),
            access=_with_view(access_of(told, node), view, node),
            view=view,
        )
    except UnitNotUsable as error:  # not there, or masked: what it says of itself
        return Unit(node.host, node.unit, None, "", Unknown(error.what), faults=(error.what,))
    except MigrateError as error:
        return unknown(error)


def _with_view(
    access: tuple[tuple[str, str], ...] | Unknown, view: tuple[tuple[str, str], ...], node: Node
) -> tuple[tuple[str, str], ...] | Unknown:
    """What the unit itself keeps from the node, before what its user may not do."""
    own = [(node.config, "see", kept_from(view, node.config))]
    if isinstance(node, ControllerNode):
        place = node.metadata_directory
        own.append((place, "write into", kept_from(view, place, written=True)))
    advice = f"except that path from it (`systemctl edit {node.unit}`), then `systemctl daemon-reload`; or use another"
    found = tuple((f"{node.unit} cannot {verb} {path}: {by}", advice) for path, verb, by in own if by)
    return found or access if isinstance(access, Unknown) else (*found, *access)


def access_of(done: Completed, node: Node) -> tuple[tuple[str, str], ...] | Unknown:
    if done.code:
        return Unknown(f"{node.host} did not look as the unit's user: {done.says or done.code}")
    try:
        return tuple(find_access_faults(strict_json.loads(done.output, surrogates=True), node))
    except (ValueError, TypeError) as error:
        return Unknown(f"{node.host} gave no answer that can be read: {error}")
