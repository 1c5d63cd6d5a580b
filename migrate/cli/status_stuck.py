"""What `status` tells of a wait: the explanations, with what more can be seen where something waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrate.model.waiting import Clues
    from migrate.model.world import World
    from migrate.observe.world import ClusterObserver


def clues_for(observer: ClusterObserver, world: World) -> Clues:
    """Asks addresses and reads logs, where an explanation would be firmer with them; else nothing is done."""
    from migrate.checks import stuck
    from migrate.observe.clues import gather

    return gather(stuck.wanted(world), observer.sources.services, stuck.telling)


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
