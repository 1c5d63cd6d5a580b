"""What Spark says of an observation: the comparison at one offset, and the ledger.  Imports `migrate.diff` when asked.

The comparison follows one protocol: take the committed offset N, wait until dual write has passed it, read ZooKeeper,
compare; what differs is compared again at a later N.  Reported is what differs although one side stood still while the
other was read (`migrate.observe.settle`); what changed in every look is unsettled: neither equal nor different.
"""

from __future__ import annotations

import logging
import pathlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from typing import Final

from migrate.errors import MigrateError, NotVisible
from migrate.model.causes import LOST_LOGS, TRIES_AGAIN
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.facts import migration_state, pure_ledger
from migrate.model.inventory import AcceptedDifference, Inventory
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown, unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView
from migrate.model.world import World
from migrate.observe.settle import Look, Settling
from migrate.observe.sources import Sources

Comparer = Callable[
    [Sources, ZookeeperView, KraftView, tuple[AcceptedDifference, ...], int], DiffReport | Unknown
]  # the last: how far dual write was behind
LOG: Final = logging.getLogger("migrate.observe")
LOOKS: Final = 6  # how often both sides are read before what still moves is unsettled
LAG_SECONDS: Final = 15.0  # for /migration to pass one offset: it moves twice a second
LAG_POLL: Final = 0.1
STARTING: Final = "starting Spark"
FINALIZED: Final = "the migration is finalized, and ZooKeeper is not written any more"
NOTHING_LEFT: Final = "no controller has a log: ZooKeeper was compared with nothing"
AGAIN: Final = 0.3  # seconds before all is compared again


def with_diff(sources: Sources, world: World, compare: Comparer | None = None) -> World:
    """The world with its comparison; the views in it are those that were read last.

    Where no controller answers, and the logs of the stopped ones were read, ZooKeeper is compared with the image of
    these; where no log is left, with nothing.  `compare` stands in for the comparison on Spark.
    """
    image, lost = _of_stopped(world), world.lost_logs
    if image is None and lost and isinstance(world.kraft, Unknown):
        return replace(world, diff=_with_lost(DiffReport(-1, 0, {}, (), (NOTHING_LEFT,)), lost))
    if image is None:
        return _compared(sources, world, compare or _on_spark, stopped=False)
    if lost:  # what is left is all that can be compared, and the report says so
        image = replace(image, high_watermark=image.offset + 1)
    found = _compared(sources, replace(world, kraft=image), compare or _on_spark, stopped=True)
    if lost and not isinstance(found.diff, Unknown):
        found = replace(found, diff=_with_lost(found.diff, lost))
    return replace(found, kraft=world.kraft)


def _with_lost(report: DiffReport, lost: tuple[int, ...]) -> DiffReport:
    """With a row for what only the logs of these controllers held: a rollback loses it, and gives it up by name."""
    name = f"controllers {', '.join(map(str, lost))}"
    row = Difference(LOST_LOGS, name, "what they alone held", DifferenceClass.ONLY_KRAFT, None, "not known")
    counts = {**report.counts, LOST_LOGS: {str(DifferenceClass.ONLY_KRAFT): 1}}
    return replace(report, counts=counts, differences=(row, *report.differences))


def _of_stopped(world: World) -> KraftView | None:
    """The image of the stopped controllers' logs; None where a controller answers, or the logs were not read."""
    if not isinstance(world.kraft, Unknown) or isinstance(world.metadata_logs, Unknown):
        return None
    return world.metadata_logs.view


def _compared(sources: Sources, world: World, compare: Comparer, *, stopped: bool) -> World:
    """Look by look; the image of `stopped` controllers changes no more."""
    settling: Settling | None = None
    for look in range(LOOKS if sources.moves else 1):
        if look and not stopped:
            Event().wait(AGAIN)  # what differed may have been moving
            world = replace(world, kraft=sources.kraft())
        found = _look(sources, world, compare, stopped=stopped)
        if isinstance(found, Unknown):
            return replace(world, diff=found)
        world = replace(world, zookeeper=found.zookeeper)
        # a cut list has not all rows: none of them can be held against another look, and what it lacks is not equal
        if settling is None or settling.first.cut or found.report.cut:
            settling = Settling.begin(found)
        else:
            settling.go_on(found)
        if not settling.open:
            break
        LOG.info("%d objects differ at metadata offset %d: reading them again", len(settling.open), found.report.offset)
    assert settling is not None
    return replace(world, diff=settling.report() if sources.moves else settling.unmoved())


def _not_comparable(world: World) -> str | None:
    """Why ZooKeeper and KRaft cannot be compared now; None if they can."""
    if isinstance(world.kraft, Unknown):
        return f"the metadata is unknown: {world.kraft.reason}"
    if world.finalized:
        return FINALIZED
    if isinstance(world.zookeeper, Unknown):
        return f"ZooKeeper is unknown: {world.zookeeper.reason}"
    if not world.kraft.committed:
        return "the metadata's tail is not proven to be committed"
    if world.kraft.migration_state is not ZkMigrationState.MIGRATION:
        return f"they are equal by dual write only in MIGRATION; the metadata says {world.kraft.migration_state.name}"
    znode = world.zookeeper.migration
    if isinstance(znode, MigrationZnode) and not znode.copied:
        return "the metadata says MIGRATION, and /migration has no offset: dual write has not begun"
    return None


def _handed_back(world: World) -> str | None:
    """Why the stopped controllers' metadata is no measure for ZooKeeper any more; None while it is."""
    if isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns:
        return None
    return "no KRaft controller owns /controller: ZooKeeper has gone on without the stopped controllers' metadata"


def _look(sources: Sources, world: World, compare: Comparer, *, stopped: bool) -> Look | Unknown:
    """Wait until dual write has passed the KRaft view, unless nobody writes any more; read ZooKeeper, compare."""
    reason = _not_comparable(world) or (_handed_back(world) if stopped else None)
    if reason is not None:
        return Unknown(reason)
    kraft = world.kraft
    assert not isinstance(kraft, Unknown)
    try:
        with sources.work.part(f"waiting for dual write to pass metadata offset {kraft.offset:,}"):
            lag = 0 if stopped else await_dual_write(sources, kraft.offset)
        if isinstance(lag, Unknown):
            return lag
        with sources.work.part("reading ZooKeeper again"):
            zookeeper = sources.zookeeper()
        if isinstance(zookeeper, Unknown):
            return Unknown(f"ZooKeeper is unknown: {zookeeper.reason}")
        accepted = () if isinstance(world.playbook, Unknown) else world.playbook.accepted_differences
        report = compare(sources, zookeeper, kraft, accepted, lag)
    except MigrateError as error:
        return unknown(error)
    return report if isinstance(report, Unknown) else Look.of(kraft, zookeeper, report)


def _on_spark(
    sources: Sources, zookeeper: ZookeeperView, kraft: KraftView, accepted: tuple[AcceptedDifference, ...], lag: int
) -> DiffReport | Unknown:
    handle = sources.spark()
    if handle is None:
        return Unknown("this command works without Spark")
    with sources.work.part(STARTING):
        session = handle.get()  # first: pyspark is imported by who starts it, and cannot be by two threads at once
    from migrate.diff.compare import compare, fields_in

    today = datetime.now(UTC).date()
    with sources.work.part(f"comparing {fields_in(kraft):,} fields"):
        return compare(session, zookeeper, kraft, accepted, offset=kraft.offset, lag=lag, today=today)


def cannot_compare(reason: Unknown, inventory: Inventory) -> NotVisible:
    found = NotVisible(f"ZooKeeper and KRaft cannot be compared: {reason.reason}", where=inventory.name)
    if reason.reason == FINALIZED:
        found.next_step = "nothing is left to compare; `kraft-migrate directories verify` proves the replicas"
    return found


def require_no_differences(folder: pathlib.Path) -> None:
    """Ask before the work what `write_differences` would refuse after it.  Raises ExportRefused."""
    from migrate.diff.export import require_absent

    require_absent(folder)


def write_differences(report: DiffReport, folder: pathlib.Path) -> list[pathlib.Path]:
    """The report as Parquet files; raises ExportRefused where the folder holds something else."""
    from migrate.diff.export import write

    return write(report, folder)


def await_dual_write(sources: Sources, offset: int) -> int | Unknown:
    """How far /migration was behind `offset` when first looked at (records); Unknown if it does not pass it."""
    first = sources.dual_write_offset()
    seen, deadline, pause = first, time.monotonic() + (LAG_SECONDS if sources.moves else 0.0), Event()
    while seen < offset:
        if time.monotonic() > deadline:
            return Unknown(
                f"dual write did not pass metadata offset {offset} within {LAG_SECONDS:.0f} s: it is at {seen}. "
                f"`status` names what stops it; where that has been removed, {TRIES_AGAIN}"
            )
        pause.wait(LAG_POLL)
        seen = sources.dual_write_offset()
    return max(0, offset - first)


def spark_ledger(sources: Sources, world: World) -> Ledger | Unknown:
    """The ledger from Spark, held equal to the pure rule's row by row."""
    reference = pure_ledger(world)
    if isinstance(reference, Unknown):
        return reference
    handle = sources.spark()
    if handle is None:
        return Unknown("this command works without Spark, and this gate asks Spark")
    after_copy, finalized = migration_state(world)
    try:
        with sources.work.part(STARTING):
            session = handle.get()  # first, as in `_on_spark`
        from migrate.diff.ledger import ledger

        views = world.zookeeper, world.kraft, world.disks
        found = ledger(session, *views, after_copy=after_copy, finalized=finalized)
    except MigrateError as error:
        return unknown(error)
    if found.rows != reference.rows:
        return Unknown("the ledger from Spark is not the one of the pure rule: this is a defect, nothing may act on it")
    return found
