"""What the journal keeps of an observation: the ledger by broker and directory, the comparisons' counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from migrate.model.causes import cause_of
from migrate.model.copied import CopyCheck, NoLook, by_rule
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.plan import PlannedStep
from migrate.model.world import NOT_ASKED, Need, World
from migrate.run.journal import Writer

COPY_CHECK: Final = "copy-check"  # the event
SAMPLES: Final = 20  # differences that a journal keeps of one comparison
LONGEST: Final = 160
NEEDS: Final[Mapping[str, Need]] = {
    "config": Need.CONFIGS,
    "mode": Need.CONFIGS,
    "log_dirs": Need.CONFIGS,
    "registered": Need.KRAFT,
    "migration_state": Need.KRAFT,
    "migration_znode": Need.ZOOKEEPER,
    "controller_znode": Need.ZOOKEEPER,
    "session": Need.ZOOKEEPER,
    "cluster_id": Need.ZOOKEEPER,
}


def needed_for(planned: PlannedStep) -> frozenset[Need]:
    return frozenset(NEEDS[key.partition(":")[0]] for key in planned.expects)


def write(append: Writer, planned: PlannedStep, world: World) -> None:
    if not isinstance(world.ledger, Unknown):
        cells = list(_cells(world.ledger, world))
        append("ledger", step=planned.id, offset=world.ledger.offset, engine=world.ledger.engine, cells=cells)
    if not isinstance(world.diff, Unknown):
        append("diff", step=planned.id, **_diff(world.diff))
    if isinstance(world.copy, CopyCheck | NoLook):
        append(COPY_CHECK, step=planned.id, **_copy_check(world.copy))
    if world.units != NOT_ASKED:
        append("units", step=planned.id, **_units(world))


def _units(world: World) -> dict[str, Any]:
    """What was seen of each node's unit; `starts` is empty where it is not known, with the reason beside it."""
    if isinstance(world.units, Unknown):
        return {"executor": world.inventory.executor, "nodes": [], "unseen": world.units.reason}
    nodes = []
    for node, unit in sorted(world.units.items()):
        if isinstance(unit, Unknown):
            nodes.append({"node": int(node), "unit": "", "word": "", "starts": "", "why": unit.reason})
            continue
        starts = unit.starts_at_boot
        known = "" if isinstance(starts, Unknown) else "yes" if starts else "no"
        why = starts.reason if isinstance(starts, Unknown) else ""
        nodes.append({"node": int(node), "unit": unit.name, "word": unit.word, "starts": known, "why": why})
    return {"executor": world.inventory.executor, "nodes": nodes, "unseen": ""}


def _cells(ledger: Ledger, world: World) -> Iterator[dict[str, Any]]:
    """One cell a broker and directory, by path: directories have no id before migration mode."""
    places = _places(world)
    counts: dict[tuple[int, str, str], dict[str, int]] = {}
    for row in ledger.rows:
        path, identity = places.get((row.broker, row.topic, row.partition), ("", row.on_disk))
        states = counts.setdefault((row.broker, path, identity), {})
        states[row.state.value] = states.get(row.state.value, 0) + 1
    for (broker, path, identity), states in sorted(counts.items()):
        yield {"broker": broker, "directory": identity, "path": path, "states": states}


def _places(world: World) -> dict[tuple[int, str, int], tuple[str, str]]:
    """(broker, topic, partition) -> (path, directory id) of the current copies in healthy directories."""
    found: dict[tuple[int, str, int], tuple[str, str]] = {}
    if isinstance(world.disks, Unknown):
        return found
    for node, disks in world.disks.items():
        if isinstance(disks, Unknown):
            continue
        for entry in filter(lambda directory: directory.healthy, disks.directories):
            rows = zip(entry.replicas.topic, entry.replicas.partition, entry.replicas.kind, strict=True)
            place = (entry.path, str(entry.id or ""))
            found.update({(int(node), topic, number): place for topic, number, kind in rows if kind == "current"})
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
        "unexcused": report.unexcused_total,
        "expected": expected,
        "blind_spots": list(report.blind_spots),
        "samples": [_sample(entry) for entry in report.unexcused[:SAMPLES]],
    }


def _copy_check(found: CopyCheck | NoLook) -> dict[str, Any]:
    if isinstance(found, NoLook):
        return {"at_end": False, "not_checked": found.reason}
    driver = found.driver.reason if isinstance(found.driver, Unknown) else dict(found.driver)
    return {
        "zxid": found.zxid,
        "source": found.source,
        "offset": found.offset,
        "at_end": found.at_end,
        "counts": {kind: list(both) for kind, both in found.counts.items()},
        "lost": len(found.lost),
        "samples": [f"{entry.kind} {entry.key} {entry.field}".rstrip() for entry in found.lost[:SAMPLES]],
        "known": {
            rule: [[row.kind, row.key, row.field] for row in rows[:SAMPLES]]
            for rule, rows in by_rule(found.known).items()
        },
        "records": dict(found.records),
        "driver": driver,
        "miscounted": list(found.miscounted),
        "blind_spots": list(found.blind),
    }


def _sample(entry: Difference) -> dict[str, str]:
    cause = cause_of(entry)
    return {
        "about": f"{entry.cls} {entry.kind} {entry.key} {entry.field}".rstrip(),
        "zookeeper": _clipped(entry.zookeeper, entry.zookeeper_where),
        "kraft": _clipped(entry.kraft, entry.kraft_where),
        "cause": cause.cause,
        "what_to_do": cause.what_to_do,
    }


def _clipped(value: str | None, where: str) -> str:
    return ("nothing" if value is None else value[:LONGEST]) + (f" ({where})" if where else "")
