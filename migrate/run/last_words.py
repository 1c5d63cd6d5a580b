"""When a run stops after starting a process: what that process itself said, beside our own reason.

A broker that dies at its start says why in its log; whoever reads the stop should not have to go and look for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from migrate.errors import MigrateError, NoProgress, PlanStopped
from migrate.hosts.properties import log_line
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.listeners import latest_life
from migrate.model.ports import LOG_LINES, LOG_LINES_DEEP, Clock, ServiceControl
from migrate.model.views import Running, Stopped
from migrate.run import journal as journals
from migrate.run.journal import Journal

DEAD: Final = re.compile(r"-to-controller-([a-z-]+)-channel-manager\]?: Error due to")


def dead(lines: Iterable[str]) -> tuple[str, ...]:
    """Channels whose thread has ended, by the lines of one life of a broker, in order, each once (pure)."""
    return tuple(dict.fromkeys(match[1] for line in lines if (match := DEAD.search(line))))


def why(found: Mapping[int, Sequence[str]]) -> tuple[str, ...]:
    return tuple(
        f"broker {node}: its thread of channel {', '.join(channels)} has died (a fault of Kafka's, as control changed "
        "hands); partitions that it leads cannot take replicas back into the ISR"
        for node, channels in found.items()
        if channels
    )


def next_step(found: Mapping[int, Sequence[str]]) -> str:
    """What brings them back; "" where none is dead (pure)."""
    nodes = [node for node, channels in found.items() if channels]
    if not nodes:
        return ""
    named = f"broker {nodes[0]}" if len(nodes) == 1 else f"brokers {nodes}, one by one,"
    return f"restart {named} with the current file, then give the same command again"


SHOWN: Final = 8
WIDE: Final = 300  # characters of a line
TELLING: Final = re.compile(
    r"\b(ERROR|FATAL|Error|Exception)\b|(Exception|Error):|Address already in use"
    r"|: (Control|Main) process exited,|: Failed (with result|at step|to)"  # what systemd says of a unit
)
STACK: Final = re.compile(r"\s+at |\s*\.\.\. \d+ more")


def started(events: Sequence[Event]) -> tuple[str, tuple[NodeId, ...]]:
    """The last step that acted, and the nodes that it has started since (pure)."""
    step, nodes = "", list[NodeId]()
    for event in events:
        if event.name == "intend":
            step, nodes = str(event.data["step"]), []
        elif event.name == "effect" and event.data["effect"] == "start" and event.data["step"] == step:
            nodes.append(NodeId(int(event.data["node"])))
    return step, tuple(nodes)


def told(lines: Sequence[str]) -> tuple[str, ...]:
    """The useful lines since the last start: its errors, or where there are none, its end (pure)."""
    latest = [line.rstrip() for line in latest_life(lines) if line.strip() and not STACK.match(line)]
    chosen = [line for line in latest if TELLING.search(line)] or latest
    return tuple(_shown(line) for line in dict.fromkeys(chosen))[-SHOWN:]


def _shown(line: str) -> str:
    clean = "".join(letter if letter.isprintable() else "?" for letter in log_line(line))
    return clean if len(clean) <= WIDE else clean[: WIDE - 3] + "..."


@contextmanager
def last_words_told(
    journal: Journal, services: ServiceControl, clock: Clock, brokers: Iterable[NodeId] = ()
) -> Iterator[None]:
    """A stop behind a started process says that process's own last lines: in the error, and in the journal.

    A wait that stood still also says which of these brokers can no longer speak to the controller, by their logs.
    """
    try:
        yield
    except (PlanStopped, NoProgress) as error:
        if isinstance(error, NoProgress):
            _dead_channels_told(error, services, brokers)
        step, nodes = started(journal.events)
        if step and error.where == f"step {step}":
            # of several that were started, those whose process lives no more have something to say
            ended = [node for node in nodes if len(nodes) > 1 and isinstance(services.state(node), Stopped)]
            said = {int(node): _asked(services, node) for node in ended or nodes}
            for node, lines in said.items():
                journal.append(clock.now(), "note", {"key": f"last-words:{node}", "value": "\n".join(lines)})
            text = "\n".join(f"node {node} said: {line}" for node, lines in said.items() for line in lines)
            error.why = "\n         ".join(part for part in (error.why, *text.splitlines()) if part)
        raise


def _dead_channels_told(error: NoProgress, services: ServiceControl, brokers: Iterable[NodeId]) -> None:
    found: dict[int, tuple[str, ...]] = {}
    for node in brokers:
        with suppress(MigrateError, OSError):  # an unread log adds nothing: the stop is told all the same
            found[int(node)] = dead(latest_life(services.last_words(node, LOG_LINES_DEEP)))
    error.why = "\n         ".join(part for part in (error.why, *why(found)) if part)
    error.next_step = next_step(found) or error.next_step


def _asked(services: ServiceControl, node: NodeId) -> tuple[str, ...]:
    try:
        return told(services.last_words(node, LOG_LINES)) or ("nothing in its log",)
    except (MigrateError, OSError) as error:
        return (f"its log cannot be read: {error}",)


LOG: Final = logging.getLogger("migrate.run")
STEP: Final = "controllers/start-controllers"
KEY: Final = "started-once-more"
RACE: Final = re.compile(
    r"RuntimeException: Should not have ZK migrations enabled on a cluster running metadata\.version 3\.0-IV1\s*$"
)


def rerun_after_election_race(
    run: Callable[[], None], journal: Journal, services: ServiceControl, clock: Clock
) -> None:
    """Run; where the first start of the controllers ended by Kafka's race alone, note it, and run the same once more.

    A controller that is elected first replays its own bootstrap records before they are committed.  If it loses the
    leadership then, they are reverted, but not that it has replayed something (`LogReplayTracker` is never reset in
    3.9).  Elected again before anybody has committed a metadata.version, it takes its log for an old cluster's and ends
    itself: "Should not have ZK migrations enabled on a cluster running metadata.version 3.0-IV1" (seen on a busy host).

    To start it once more is safe: the fault was only in its memory, on its disk is what the quorum has
    committed or will truncate, and it is started by the same step behind the same gates (the flag in every file, no
    other copy in /migration) as when the command is given again by hand.  A true metadata.version of that age ends it a
    second time, and a second time nobody starts it.

    Raises what `run` raises.  Each controller is started again once in the life of a journal.
    """
    try:
        run()
    except PlanStopped as error:
        dead = died_of_it(error, journal.events, services)
        if not dead:
            raise
    else:
        return
    for node in dead:
        text = "its process ended by Kafka's race at the first election; it is started once more"
        LOG.warning("controller %d: %s", int(node), text)
        journal.append(clock.now(), "note", {"key": f"{KEY}:{int(node)}", "value": text})
    run()


def died_of_it(error: PlanStopped, events: Sequence[Event], services: ServiceControl) -> tuple[NodeId, ...]:
    """The controllers that ended so, where this is all that stopped the step; () where anything else may be wrong."""
    step, nodes = started(events)
    if step != STEP or error.where != f"step {STEP}":
        return ()
    dead = []
    for node in nodes:
        match services.state(node):
            case Running():
                continue
            case Stopped():
                dead.append(node)
            case _:  # nobody can tell whether it lives
                return ()
    noted = journals.notes(tuple(events))
    if any(f"{KEY}:{int(node)}" in noted or not _by_the_race(services, node) for node in dead):
        return ()
    return tuple(dead)


def _by_the_race(services: ServiceControl, node: NodeId) -> bool:
    try:
        latest = latest_life(services.last_words(node, LOG_LINES))
    except (MigrateError, OSError):
        return False  # without its log it is not started again
    return any(RACE.search(line) for line in latest)
