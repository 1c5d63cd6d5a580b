"""Findings that an AcceptedDifferences file excuses by name: a rule, a broker, a path, until a day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from migrate.model.inventory import AcceptedDifference
from migrate.model.outcome import Unknown
from migrate.model.world import World

STRAY: Final = "W-DIR-07"
BROKER: Final = "broker"  # the selector's kind; its name is the broker's id, its field the folder's path


def entries(world: World, rule: str) -> Iterator[AcceptedDifference]:
    """The playbook's acceptances of that rule, expired ones too."""
    if not isinstance(world.playbook, Unknown):
        yield from (entry for entry in world.playbook.accepted_differences if entry.rule == rule)


def holds(entry: AcceptedDifference, world: World) -> bool:
    """Is it in force?  From the day of `expires` on it is not, and neither where the day is not known."""
    return bool(world.today) and world.today < entry.expires


def accepted(world: World, rule: str, broker: int, path: str) -> bool:
    """Does an acceptance that holds name exactly that path on that broker?"""
    return any(
        (entry.kind, entry.name, entry.field) == (BROKER, str(int(broker)), path) and holds(entry, world)
        for entry in entries(world, rule)
    )
