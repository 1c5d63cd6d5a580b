"""What `status` says with a DirectoryPlaybook: which broker has which of its directories, and what comes next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def stage(world: Any) -> dict[str, Any]:
    """Where the roll stands, by the brokers' files and registrations (no journal is asked)."""
    rows = list(_rows(world))
    there = sum(row["state"] == "in use" for row in rows)
    unknown = [row for row in rows if row["state"] == "unknown"]
    how = f"{there} of {len(rows)} directories of the playbook are in use, by files and registrations"
    said = {
        "stage": "directories",
        "half_done": "directories" if 0 < there < len(rows) else None,
        "how": how + (f"; {len(unknown)} cannot be seen" if unknown else ""),
        "new_directories": rows,
    }
    return said if there == len(rows) else {**said, "next": "plan PLAYBOOK"}


def _rows(world: Any) -> Iterator[dict[str, str]]:
    for broker, paths in world.playbook.new_directories.items():
        for path in paths:
            yield {"broker": str(int(broker)), "path": path, **_state(world, broker, path)}


def _state(world: Any, broker: Any, path: str) -> dict[str, str]:
    """`in use`, `in the file, not registered`, `not yet`, or unknown with the reason."""
    from migrate.model.outcome import Unknown
    from migrate.steps.directories import gates

    here = gates.listed(world, int(broker))
    if isinstance(here, Unknown):
        return {"state": "unknown", "why": here.reason}
    if os.path.normpath(path) not in here:
        return {"state": "not yet", "why": ""}
    found = gates.entries(world, int(broker), (path,))
    if isinstance(found, Unknown):
        return {"state": "unknown", "why": found.reason}
    if isinstance(world.kraft, Unknown):
        return {"state": "unknown", "why": world.kraft.reason}
    registration = world.kraft.brokers.get(broker)
    directory = found[0].directory
    if registration is None or directory.id is None or directory.id not in registration.log_dirs:
        return {"state": "in the file, not registered", "why": directory.problem or f"directory.id {directory.id}"}
    return {"state": "in use", "why": f"directory.id {directory.id}"}


def lines(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The same for a person; [] without a DirectoryPlaybook."""
    return [
        f"broker {row['broker']}: {row['path']}: {row['state']}" + (f" ({row['why']})" if row["why"] else "")
        for row in rows
    ]
