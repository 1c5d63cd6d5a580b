"""What a start meets: how the node would be started, and each directory as it would be found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from migrate.model.views import MetaBroken, MetaMissing, MetaProperties


class Mode(StrEnum):
    """How the node would be started."""

    ZOOKEEPER = "zookeeper"
    MIGRATION = "migration"  # ZooKeeper mode with zookeeper.metadata.migration.enable=true
    KRAFT = "kraft"


@dataclass(frozen=True, slots=True)
class Place:
    """A directory as a start would find it.

    `meta` is by Kafka's own rules, `doubt` says why we would not trust a file that Kafka takes.  `unusable` says why
    it is no readable folder, "" for a good one; `missing` that nothing is there, `writable` that Kafka could write into
    it (make it, where it is missing).  `canonical` is the path without links.  `replicas` are folders of replicas.
    """

    path: str
    meta: MetaProperties | MetaMissing | MetaBroken
    canonical: str
    doubt: str = ""
    missing: bool = False
    unusable: str = ""
    writable: bool = True
    metadata_log: bool = False
    replicas: int = 0
    blocks: str = ""  # reading would never end: a FIFO in the place of meta.properties
    notes: tuple[str, ...] = ()
