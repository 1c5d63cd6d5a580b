"""What `status` tells of a wait: the explanations, with what more can be seen where something waits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from migrate.model.ids import NodeId
    from migrate.model.waiting import Clues
    from migrate.model.world import World
    from migrate.observe.world import ClusterObserver


AGAIN_SECONDS: Final = 1.5  # a refused first request is sent again after 0.2 s


def clues_for(observer: ClusterObserver, world: World) -> Clues:
    """Asks addresses and reads logs, where an explanation would be firmer with them; else nothing is done."""
    from migrate.checks import stuck
    from migrate.observe.clues import gather

    wanted = stuck.wanted(world)
    clues = gather(wanted, observer.sources.services, stuck.telling)
    return _with_reports(observer, clues, wanted.reporters) if wanted.reporters else clues


def _with_reports(observer: ClusterObserver, clues: Clues, brokers: tuple[NodeId, ...]) -> Clues:
    """Looks a second time: what a broker has reported by then was no stall."""
    from migrate.checks.stuck import reports
    from migrate.model.outcome import Unknown
    from migrate.model.world import Need
    from migrate.observe.reports import reports as look
    from migrate.run.clock import SystemClock

    SystemClock().sleep(AGAIN_SECONDS)
    world = observer.observe(frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LEDGER}), {})
    later: dict[NodeId, int | Unknown] = {}
    for node in brokers:
        if isinstance(world.kraft, Unknown) or isinstance(world.ledger, Unknown):
            later[node] = Unknown("the second look did not see it")
        else:
            later[node] = len(reports.unreported(world, world.kraft).get(int(node), ()))
    sources = observer.sources
    return replace(clues, reports=look(sources.inventory, sources.services, later, reports.telling))


def waiting(world: World, clues: Clues | None = None) -> list[dict[str, Any]]:
    """A row an explanation; [] where nothing waits."""
    from migrate.checks import stuck
    from migrate.model.waiting import NO_CLUES
    from migrate.report.waiting import as_values

    return as_values(stuck.explain(world, NO_CLUES if clues is None else clues))


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """The same for a person."""
    from migrate.report.waiting import as_lines

    return list(as_lines(rows))
