"""What Spark says of an observation: the comparison at one offset, and the ledger.  Imports `migrate.diff` when asked.

The comparison follows one protocol: take the committed offset N, wait until dual write has passed it, read ZooKeeper,
compare; what differs is compared again at a later N, and only what still differs is reported.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event
from typing import Final

from migrate.errors import MigrateError
from migrate.model.difference import Difference, DiffReport
from migrate.model.ledger import Ledger
from migrate.model.outcome import Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.world import World
from migrate.observe.ledgers import pure_ledger, stands
from migrate.observe.sources import Sources

LOG: Final = logging.getLogger("migrate.observe")
LOOKS: Final = 6  # how often differing keys are read again before they are reported
LAG_SECONDS: Final = 15.0  # for /migration to pass one offset: it moves twice a second
LAG_POLL: Final = 0.1


def with_diff(sources: Sources, world: World) -> World:
    """The world with its comparison; the views in it are those that were compared last."""
    before: frozenset[Difference] | None = None
    for look in range(LOOKS):
        if look:
            world = replace(world, kraft=sources.kraft())
        reason = _not_comparable(world)
        if reason is not None:
            return replace(world, diff=Unknown(reason))
        try:
            world = _compare(sources, world)
        except MigrateError as error:
            return replace(world, diff=Unknown(f"{error.id} {error}"))
        if isinstance(world.diff, Unknown) or not world.diff.unexcused:
            return world
        found = frozenset(world.diff.unexcused)
        if found == before:
            return world
        LOG.info("%d differences at metadata offset %d: reading them again", len(found), world.diff.offset)
        before = found
    return world


def _not_comparable(world: World) -> str | None:
    """Why ZooKeeper and KRaft cannot be compared now; None if they can."""
    if isinstance(world.kraft, Unknown):
        return f"the metadata is unknown: {world.kraft.reason}"
    if isinstance(world.zookeeper, Unknown):
        return f"ZooKeeper is unknown: {world.zookeeper.reason}"
    if not world.kraft.committed:
        return "the metadata's tail is not proven to be committed"
    if world.kraft.migration_state is not ZkMigrationState.MIGRATION:
        return f"they are equal by dual write only in MIGRATION; the metadata says {world.kraft.migration_state.name}"
    return None


def _compare(sources: Sources, world: World) -> World:
    from migrate.diff.compare import compare

    assert not isinstance(world.kraft, Unknown)
    lag = _await_dual_write(sources, world.kraft.offset)
    if isinstance(lag, Unknown):
        return replace(world, diff=lag)
    world = replace(world, zookeeper=sources.zookeeper())
    if isinstance(world.zookeeper, Unknown):
        return replace(world, diff=Unknown(f"ZooKeeper is unknown: {world.zookeeper.reason}"))
    handle = sources.spark()
    if handle is None:
        return replace(world, diff=Unknown("this command works without Spark"))
    accepted = () if isinstance(world.playbook, Unknown) else world.playbook.accepted_differences
    assert not isinstance(world.kraft, Unknown)
    report: DiffReport = compare(
        handle.get(),
        world.zookeeper,
        world.kraft,
        accepted,
        offset=world.kraft.offset,
        lag=lag,
        today=datetime.now(UTC).date(),
    )
    return replace(world, diff=report)


def _await_dual_write(sources: Sources, offset: int) -> int | Unknown:
    """How far /migration was behind `offset` when first looked at (records); Unknown if it does not pass it."""
    first = sources.dual_write_offset()
    seen, deadline, pause = first, time.monotonic() + LAG_SECONDS, Event()
    while seen < offset:
        if time.monotonic() > deadline:
            return Unknown(
                f"dual write did not pass metadata offset {offset} within {LAG_SECONDS:.0f} s: it is at {seen}"
            )
        pause.wait(LAG_POLL)
        seen = sources.dual_write_offset()
    return max(0, offset - first)


def spark_ledger(sources: Sources, world: World) -> Ledger | Unknown:
    """The ledger from Spark, held equal to the pure rule's row by row."""
    from migrate.diff.ledger import ledger

    reference = pure_ledger(world)
    if isinstance(reference, Unknown):
        return reference
    handle = sources.spark()
    if handle is None:
        return Unknown("this command works without Spark, and this gate asks Spark")
    after_copy, finalized = stands(world)
    try:
        found = ledger(
            handle.get(), world.zookeeper, world.kraft, world.disks, after_copy=after_copy, finalized=finalized
        )
    except MigrateError as error:
        return Unknown(f"{error.id} {error}")
    if found.rows != reference.rows:
        return Unknown("the ledger from Spark is not the one of the pure rule: this is a defect, nothing may act on it")
    return found
