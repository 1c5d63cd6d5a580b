"""Do new replicas go into directories that brokers got?  A topic is created, and looked for on the disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka.admin import AdminClient

from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.lab.seed import create_topics, settings_for
from migrate.lab.seed_data import SeedTopic
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.ports import Observer
from migrate.model.world import Need, World

TOPIC: Final = SeedTopic("after-directories", 12, 3)
NEEDS: Final = frozenset({Need.KRAFT, Need.DISKS, Need.CONFIGS, Need.LEDGER})


@dataclass(frozen=True, slots=True)
class Spread:
    """The new topic's replicas, how many of them lie in new directories, and what speaks against it ("" nothing)."""

    replicas: int
    in_new: int
    against: str = ""


def spread(lab: Lab, observer: Observer, new: Mapping[NodeId, tuple[str, ...]]) -> Spread:
    """Create the topic, wait until each of its replicas is VERIFIED, and count; LabNotReady where that never comes."""
    create_topics(AdminClient(settings_for(lab.topology)), [TOPIC])
    wanted = TOPIC.partitions * TOPIC.replication
    found: list[World] = []

    def reached() -> str:
        found[:] = [observer.observe(NEEDS, {})]
        return _missing(found[0], wanted)

    names = [broker.name for broker in lab.topology.brokers]
    ready.wait_until("waiting for the new topic's directories", reached, lab.supervisor, names)
    return Spread(wanted, in_new(found[0], new))


def _missing(world: World, wanted: int) -> str:
    if isinstance(world.ledger, Unknown):
        return world.ledger.reason
    rows = [row for row in world.ledger.rows if row.topic == TOPIC.name]
    verified = sum(row.state is ReplicaState.VERIFIED for row in rows)
    return "" if verified == wanted else f"{verified} of {wanted} replicas are VERIFIED"


def in_new(world: World, new: Mapping[NodeId, tuple[str, ...]], topic: str = TOPIC.name) -> int:
    """Replicas of the topic in these directories, by the disks."""
    if isinstance(world.disks, Unknown):
        return 0
    count = 0
    for broker, paths in new.items():
        disks = world.disks.get(broker, Unknown("not looked at"))
        if isinstance(disks, Unknown):
            continue
        for entry in disks.directories:
            rows = zip(entry.replicas.topic, entry.replicas.kind, strict=True)
            count += sum(name == topic and kind == "current" for name, kind in rows) if entry.path in paths else 0
    return count
