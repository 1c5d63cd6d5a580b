"""What the runs' journals prove that the cluster itself does not show: the comparison in hybrid, and the cleanup.

For people alone (`status`): no step and no gate rests on it, but that a rollback disables the units that runs enabled.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

from migrate.errors import MigrateError
from migrate.model.detect import CLEANUP_PROVEN, HYBRID_PROVEN
from migrate.model.history import Event
from migrate.model.inventory import Inventory
from migrate.model.units import ENABLED_BY_RUNS
from migrate.run import journal as journals

PROOFS: Final = {"hybrid/hybrid": HYBRID_PROVEN, "cleanup/prove-final": CLEANUP_PROVEN}  # step -> fact


def by_journals(inventory: Inventory) -> Mapping[str, str]:
    """Facts for `observe`: what was proven by the last thing that any run of this cluster concluded."""
    last: tuple[float, str, str] | None = None
    for run, event in _conclusions(pathlib.Path(inventory.runs)):
        if last is None or event.time >= last[0]:
            last = (event.time, str(event.data["step"]), run)
    return {PROOFS[last[1]]: f"run {last[2]}"} if last is not None and last[1] in PROOFS else {}


def enabled_by_runs(inventory: Inventory) -> Mapping[str, str]:
    """The fact which nodes' units a run has enabled and none has disabled since; {} where none has.

    An intent counts although its effect was not written down: the unit was disabled until then.
    """
    last: dict[int, tuple[float, bool]] = {}
    units = {int(node.id): node.unit for node in inventory.nodes}
    for _, event in _events(pathlib.Path(inventory.runs)):
        if event.name == "effect" and event.data["effect"] in ("enable-unit", "disable-unit"):
            node = int(event.data["node"])
            if units.get(node) == event.data["detail"] and event.time >= last.get(node, (0.0, False))[0]:
                last[node] = event.time, event.data["effect"] == "enable-unit"
    found = ",".join(str(node) for node, (_, enabled) in sorted(last.items()) if enabled)
    return {ENABLED_BY_RUNS: found} if found else {}


def _conclusions(runs: pathlib.Path) -> Iterator[tuple[str, Event]]:
    for run, event in _events(runs):
        if event.name == "conclude" and event.data["outcome"] in journals.ENDED_WELL:
            yield run, event


def _events(runs: pathlib.Path) -> Iterator[tuple[str, Event]]:
    for path in sorted(runs.glob("*/journal.jsonl")):
        try:
            events = journals.read(path).events
        except (OSError, MigrateError):
            continue  # a journal that cannot be read proves nothing
        yield from ((path.parent.name, event) for event in events)
