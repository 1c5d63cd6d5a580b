"""What the journal keeps of an observation: the ledger by broker and directory, the comparison's counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from migrate.model.difference import DifferenceClass, DiffReport
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.plan import PlannedStep
from migrate.model.world import Need, World

NEEDS: Final[Mapping[str, Need]] = {
    "config": Need.CONFIGS,
    "mode": Need.CONFIGS,
    "log_dirs": Need.CONFIGS,
    "registered": Need.KRAFT,
    "migration_state": Need.KRAFT,
    "migration_znode": Need.ZOOKEEPER,
    "cluster_id": Need.ZOOKEEPER,
}


class Writer(Protocol):
    """Appends an event."""

    def __call__(self, name: str, **data: Any) -> None:
        """Write it."""


def needed_for(planned: PlannedStep) -> frozenset[Need]:
    """What must be observed to hold a step's predictions against the world."""
    return frozenset(NEEDS[key.partition(":")[0]] for key in planned.expects)


def write(append: Writer, planned: PlannedStep, world: World) -> None:
    """Journal the ledger and the comparison, where the world has them."""
    if not isinstance(world.ledger, Unknown):
        cells = list(_cells(world.ledger, world))
        append("ledger", step=planned.id, offset=world.ledger.offset, engine=world.ledger.engine, cells=cells)
    if not isinstance(world.diff, Unknown):
        append("diff", step=planned.id, **_diff(world.diff))


def _cells(ledger: Ledger, world: World) -> Iterator[dict[str, Any]]:
    """One cell a broker and directory; replicas without a directory stand under ""."""
    counts: dict[tuple[int, str], dict[str, int]] = {}
    for row in ledger.rows:
        states = counts.setdefault((row.broker, row.on_disk), {})
        states[row.state.value] = states.get(row.state.value, 0) + 1
    paths = _paths(world)
    for (broker, directory), states in sorted(counts.items(), key=lambda cell: (cell[0][0], paths.get(cell[0], ""))):
        path = paths.get((broker, directory), "")
        yield {"broker": broker, "directory": directory, "path": path, "states": states}


def _paths(world: World) -> dict[tuple[int, str], str]:
    found: dict[tuple[int, str], str] = {}
    if isinstance(world.disks, Unknown):
        return found
    for node, disks in world.disks.items():
        if not isinstance(disks, Unknown):
            found.update({(int(node), str(entry.id or "")): entry.path for entry in disks.directories})
    return found


def _diff(report: DiffReport) -> dict[str, Any]:
    expected: dict[str, int] = {}
    for entry in report.differences:
        if entry.cls is DifferenceClass.EXPECTED:
            expected[entry.rule] = expected.get(entry.rule, 0) + 1
    return {
        "offset": report.offset,
        "lag": report.lag,
        "counts": {kind: dict(classes) for kind, classes in report.counts.items()},
        "unexcused": len(report.unexcused),
        "expected": expected,
        "blind_spots": list(report.blind_spots),
    }
