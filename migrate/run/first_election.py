"""Kafka's race at the first election of a fresh quorum, and the one start more that ends it.

A controller that is elected first replays its own bootstrap records before they are committed.  If it loses the
leadership then, they are reverted, but not that it has replayed something (`LogReplayTracker` is never reset in 3.9).
Elected again before anybody has committed a metadata.version, it takes its log for an old cluster's and ends itself:
"Should not have ZK migrations enabled on a cluster running metadata.version 3.0-IV1" (seen on a busy host).

To start it once more is safe: what was wrong stood in its memory alone, on its disk is what the quorum has committed or
will truncate, and it is started by the same step behind the same gates (the flag in every file, no other copy in
/migration) as when the command is given again by hand.  A true metadata.version of that age ends it a second time, and
a second time nobody starts it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final

from migrate.errors import MigrateError, PlanStopped
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.ports import LOG_LINES, Clock, ServiceControl
from migrate.model.views import Running, Stopped
from migrate.run import journal as journals
from migrate.run.journal import Journal
from migrate.run.last_words import latest_life, started

LOG: Final = logging.getLogger("migrate.run")
STEP: Final = "controllers/start-controllers"
KEY: Final = "started-once-more"
RACE: Final = re.compile(
    r"RuntimeException: Should not have ZK migrations enabled on a cluster running metadata\.version 3\.0-IV1\s*$"
)


def once_more(run: Callable[[], None], journal: Journal, services: ServiceControl, clock: Clock) -> None:
    """Run; where the first start of the controllers ended by that race alone, note it, and run the same once more.

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
        return False  # without its own word it is started by nobody
    return any(RACE.search(line) for line in latest)
