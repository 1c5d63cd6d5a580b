"""Directories of a healthy cluster, made sick in each way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrate.lab.cluster import Lab
from migrate.model.broker_modes import Mode
from migrate.model.ids import DirectoryId, NodeId
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import Directory, MetaBroken, MetaMissing, MetaProperties, ServiceState
from migrate.model.world import World
from tests.lab.faults import set_aside
from tests.testing.clusters import uuid

MODES = {
    Stage.ASSESS: Mode.ZOOKEEPER,
    Stage.HYBRID: Mode.MIGRATION,
    Stage.SOAK: Mode.KRAFT,
    Stage.CLEANUP: Mode.KRAFT,
}
PATH = "/data/b1/d1"


def gone(entry: Directory) -> Directory:
    """A file in its place."""
    return replace(entry, problem="is no folder", meta=MetaMissing())


def emptied(entry: Directory) -> Directory:
    """Healthy, and without identity."""
    return replace(entry, meta=MetaMissing())


def torn(entry: Directory) -> Directory:
    """A file that Kafka would take for another."""
    return replace(entry, meta=MetaBroken("empty: forgets"))


def replaced(entry: Directory) -> Directory:
    """Another disk with an id of its own."""
    assert isinstance(entry.meta, MetaProperties)
    return replace(entry, meta=replace(entry.meta, directory_id=DirectoryId(uuid(99))))


def formatted(entry: Directory) -> Directory:
    """The same disk with a file as kafka-storage format writes it."""
    assert isinstance(entry.meta, MetaProperties)
    return replace(entry, meta=replace(entry.meta, version=1))


def with_process(world: World, broker: int, state: ServiceState) -> World:
    """Its process in that state."""
    assert not isinstance(world.services, Unknown)
    return replace(world, services={**world.services, NodeId(broker): state})


def broken_disks(lab: Lab) -> tuple[Path, ...]:
    """The directories of a lab that `tests.lab.faults` has broken."""
    folders = (Path(path) for broker in lab.topology.brokers for path in broker.log_dirs)
    return tuple(folder for folder in folders if set_aside(folder).exists())
