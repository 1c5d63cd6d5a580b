"""Finds the backup of ZooKeeper that a run took before the last broker of the first roll was restarted (reads only).

Any run's will do: a run that was killed, or another plan after it, goes on with what was kept.
"""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Final

from migrate.model.copied import KeptTree
from migrate.model.inventory import Inventory
from migrate.run.snapshots import COPY_CHECK
from migrate.run.way_back_facts import TREE, runs_of
from migrate.steps.roll_broker import BEFORE_COPY

NOTE: Final = f"backup:{BEFORE_COPY}"


def kept_before_copy(inventory: Inventory) -> KeptTree | None:
    """The newest that a journal of this cluster names, with the check that found nothing lost; None where none does."""
    kept: KeptTree | None = None
    runs = runs_of(pathlib.Path(inventory.runs), inventory.name)
    events = [(event.time, folder, event) for folder, found in runs for event in found]
    for _, folder, event in sorted(events, key=lambda entry: entry[0]):
        if event.name == "note" and event.data["key"] == NOTE:
            said = TREE.fullmatch(str(event.data["value"]))
            kept = KeptTree(str(folder / "backup" / said["name"]), said["digest"], folder.name) if said else None
        elif event.name == COPY_CHECK and kept is not None and event.data["at_end"]:
            clean = event.data.get("lost") == 0 and event.data.get("miscounted") == []
            kept = replace(kept, concluded=dict(event.data) if clean else None)
    return kept
