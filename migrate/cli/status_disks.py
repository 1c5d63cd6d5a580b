"""What `status` says of broken log directories, and of the partitions that they leave without a leader."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

SHOWN: Final = 5  # partitions by name
CONTROLLER: Final = "controller"  # `disk_trouble.CONTROLLER`


def as_values(world: Any) -> list[dict[str, Any]]:
    """Every directory that is not as it should be: what is wrong, what that does, what to do."""
    from migrate.model.disk_mends import disk_troubles

    return [{**asdict(trouble), "mode": str(trouble.mode), "do": list(trouble.do)} for trouble in disk_troubles(world)]


def as_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The same for a person."""
    for row in rows:
        node = (
            f"broker {row['broker']} ({row['mode']})" if row["mode"] != CONTROLLER else f"{CONTROLLER} {row['broker']}"
        )
        yield f"disk     {node} {row['path']}: {row['what']}"
        yield f"disk       {row['effect']}"
        for words in row["do"]:
            yield f"disk       do: {words}"


def unseen(world: Any) -> dict[str, str]:
    """Node -> why nothing is known of its disks: that is not the same as nothing to tell."""
    from migrate.model.outcome import Unknown

    if isinstance(world.disks, Unknown):
        return {}
    return {str(int(node)): found.reason for node, found in world.disks.items() if isinstance(found, Unknown)}


def unseen_lines(reasons: Mapping[str, str]) -> Iterator[str]:
    """The same for a person."""
    for node, reason in reasons.items():
        yield f"disk     node {node}: its disks were not seen: {reason}"


def leaderless(world: Any) -> list[str]:
    """Partitions without a leader that ElectLeaders brings back: where a replaced disk held the only replica."""
    from migrate.model.outcome import Unknown
    from migrate.model.rescue import leaderless as found

    if isinstance(world.kraft, Unknown):
        return []
    return [f"{row.topic}-{row.partition}" for row in found(world.kraft)]


def leaderless_lines(names: Sequence[str], inventory: str = "INVENTORY") -> Iterator[str]:
    """The same for a person."""
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        yield f"disk     without a leader although a replica is online: {', '.join(names[:SHOWN])}{more}"
        command = f"kraft-migrate directories rescue --inventory {shlex.quote(inventory)}"
        yield f"disk       do: {command}, it elects them"
