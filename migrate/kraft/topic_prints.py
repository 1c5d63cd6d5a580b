"""Fingerprints of all topics in metadata files, snapshot and log, and the image of those topics that somebody wants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from migrate.kernels.choice import ready
from migrate.kraft.files import MetadataFiles
from migrate.kraft.image import entity_columns
from migrate.kraft.state import State, partition_columns
from migrate.kraft.topic_scan import Scan, Source, scan
from migrate.model.columns import EntityColumns
from migrate.model.fingerprints import Fingerprint
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol.primitives import uuid_text

KERNEL = "metadata"
LEAST = 16 << 20  # bytes of snapshot and log, 130,000 partitions: from here on compiling the kernel pays
ONE_DIRECTORY = Unknown("files of one directory alone do not say what is committed")


@dataclass(frozen=True, slots=True)
class TopicPrints:
    """All topics by fingerprint, and everything else as it is in the image; `counts` are partitions by topic."""

    files: MetadataFiles
    scan: Scan
    digester: Digester
    prints: dict[str, Fingerprint]
    counts: dict[str, int]
    entities: EntityColumns

    def view(self, names: Collection[str] = ()) -> KraftView:
        """The image with the partitions of these topics only.

        Raises what a whole replay raises, where the files have changed meanwhile.
        """
        listed, state, wanted = self.scan.topics, self.scan.state, set(names)
        numbers = [number for number in listed.alive() if listed.names[number] in wanted] if wanted else []
        some = self.scan.with_topics(numbers, self.digester) if numbers else State()
        return KraftView(
            cluster_id="",
            offset=self.scan.end_offset - 1,
            epoch=self.scan.epoch,
            high_watermark=ONE_DIRECTORY,
            source=str(self.files.path),
            migration_state=state.migration_state,
            features=dict(state.features),
            brokers={registration.id: registration for registration, _ in state.brokers.values()},
            controllers={registration.id: registration for registration in state.controllers.values()},
            partitions=partition_columns(some),
            entities=self.entities,
        )


def topic_prints(files: MetadataFiles, digester: Digester, *, below: int | None = None) -> TopicPrints | None:
    """The fingerprints at the end of these files, or below that offset; None: the reference is to replay them."""
    usable = [entry for entry in files.snapshots if below is None or entry.end_offset <= below]
    source = Source(usable[-1] if usable else None, files.segments, below)
    try:
        if not ready(KERNEL, _size(source), LEAST):
            return None
    except OSError:
        return None
    found = scan(source, digester)
    if found is None or not found.end_offset:  # an empty log: bootstrap.checkpoint counts
        return None
    return TopicPrints(
        files=files,
        scan=found,
        digester=digester,
        prints=found.fingerprints(),
        counts=found.partitions(),
        entities=_entities(found),
    )


def _size(source: Source) -> int:
    """Bytes of the snapshot, and of the segments that reach beyond it."""
    ends = [segment.base_offset for segment in source.segments[1:]]
    behind = [segment.path for segment, end in zip(source.segments, ends, strict=False) if end > source.begin]
    last = [segment.path for segment in source.segments[-1:]]
    first = [] if source.snapshot is None else [source.snapshot.path]
    return sum(path.stat().st_size for path in (*first, *behind, *last))


def _entities(found: Scan) -> EntityColumns:
    """Of the whole image."""
    rows, listed = entity_columns(found.state), found.topics
    for number in listed.alive():
        where = found.source.place(listed.offsets[number])
        rows.add("topic", listed.names[number], "topic_id", uuid_text(listed.ids[number]), where)
    return rows
