"""What the runs' journals prove that the cluster itself does not show: the comparison in hybrid, and the cleanup.

For people alone (`status`): no step and no gate rests on it.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.errors import MigrateError
from migrate.model.detect import CLEANUP_PROVEN, HYBRID_PROVEN
from migrate.model.history import Event
from migrate.model.inventory import Inventory
from migrate.run import journal as journals

PROOFS: Final = {"hybrid/hybrid": HYBRID_PROVEN, "cleanup/prove-final": CLEANUP_PROVEN}  # step -> fact


def by_journals(inventory: Inventory) -> Mapping[str, str]:
    """Facts for `observe`: what was proven by the last thing that any run of this cluster concluded."""
    last: tuple[float, str, str] | None = None
    for run, event in _conclusions(pathlib.Path(inventory.runs)):
        if last is None or event.time >= last[0]:
            last = (event.time, str(event.data["step"]), run)
    return {PROOFS[last[1]]: f"run {last[2]}"} if last is not None and last[1] in PROOFS else {}


def _conclusions(runs: pathlib.Path) -> Iterator[tuple[str, Event]]:
    for path in sorted(runs.glob("*/journal.jsonl")):
        try:
            events = journals.read(path).events
        except (OSError, MigrateError):
            continue  # a journal that cannot be read proves nothing
        for event in events:
            if event.name == "conclude" and event.data["outcome"] in journals.ENDED_WELL:
                yield path.parent.name, event
