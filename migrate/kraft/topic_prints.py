"""Fingerprints of all topics in metadata files: of a snapshot by a kernel, and the log behind it by the reference.

No partition is kept but those of topics that the log names.  Their rows, and those of topics that somebody wants to
look at, come from the snapshot read once more, with the log replayed on them by the same code as on a whole image.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

from migrate.errors import MigrateError
from migrate.kernels.choice import ready
from migrate.kraft.files import MetadataFiles, read_batches
from migrate.kraft.image import entity_columns
from migrate.kraft.plain_snapshot import Scan, scan
from migrate.kraft.replay import KERNEL, LARGE, Replayer
from migrate.kraft.state import partition_columns
from migrate.model.columns import EntityColumns
from migrate.model.fingerprints import Fingerprint, topic_fingerprints
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol.primitives import uuid_text
from migrate.protocol.records import topics
from migrate.protocol.records.frame import decode_record

LEAST = LARGE  # bytes of a snapshot
ONE_DIRECTORY = Unknown("files of one directory alone do not say what is committed")


@dataclass(frozen=True, slots=True)
class TopicPrints:
    """All topics by fingerprint, and everything else as it is in the image.

    `counts` are partitions a topic, by name; `touched` the numbers of the topics in `scan` that the log names.
    """

    files: MetadataFiles
    scan: Scan
    touched: frozenset[int]
    replayer: Replayer
    prints: dict[str, Fingerprint]
    counts: dict[str, int]
    entities: EntityColumns

    def view(self, names: Iterable[str] = ()) -> KraftView:
        """The image with the partitions of these topics only (those that the log names come along).

        Raises what a whole replay raises, where the files have changed meanwhile.
        """
        wanted = {number for number, name in enumerate(self.scan.names) if name in set(names)} - self.touched
        replayer = self.replayer
        if wanted:
            replayer = _replayed(self.files, self.scan, self.touched | wanted, replayer.digester, replayer.next_offset)
        state = replayer.state
        return KraftView(
            cluster_id="",
            offset=replayer.offset,
            epoch=replayer.epoch,
            high_watermark=ONE_DIRECTORY,
            source=str(self.files.path),
            migration_state=state.migration_state,
            features=dict(state.features),
            brokers={registration.id: registration for registration, _ in state.brokers.values()},
            controllers={registration.id: registration for registration in state.controllers.values()},
            partitions=partition_columns(state),
            entities=self.entities,
        )


def topic_prints(files: MetadataFiles, digester: Digester, *, below: int | None = None) -> TopicPrints | None:
    """The fingerprints at the end of these files, or below that offset; None: the reference is to replay them."""
    usable = [entry for entry in files.snapshots if below is None or entry.end_offset <= below]
    try:
        if not usable or not ready(KERNEL, usable[-1].path.stat().st_size, LEAST):
            return None
    except OSError:
        return None
    found = scan(usable[-1], digester)
    if found is None:
        return None
    try:
        touched, end = _touched(files, found, below)
        replayer = _replayed(files, found, touched, digester, end)
    except MigrateError:
        return None
    changed = {found.names[number] for number in touched}
    columns = partition_columns(replayer.state)
    prints = {name: print_ for name, print_ in found.fingerprints().items() if name not in changed}
    counts = dict(zip(found.names, found.counts.tolist(), strict=True))
    for name in changed:
        counts.pop(name)
    for topic in replayer.state.topics.values():
        counts[topic.name] = len(topic.partitions)
    return TopicPrints(
        files=files,
        scan=found,
        touched=touched,
        replayer=replayer,
        prints=prints | topic_fingerprints(columns),
        counts=counts,
        entities=_entities(found, touched, replayer),
    )


def _touched(files: MetadataFiles, found: Scan, below: int | None) -> tuple[frozenset[int], int]:
    """The topics of the snapshot that the log names, by id or by name; and where the log ends (exclusive)."""
    ids = {uuid_text(topic.tobytes()): number for number, topic in enumerate(found.ids)}
    names = {name: number for number, name in enumerate(found.names)}
    touched: set[int] = set()
    end = found.snapshot.end_offset
    for segment in files.segments:
        for batch in read_batches(segment.path):
            if batch.control or batch.last_offset < found.snapshot.end_offset:
                end = max(end, batch.last_offset + 1)
                continue
            for offset, _, value in batch.records():
                if offset < found.snapshot.end_offset:
                    continue
                table, _, values = decode_record(value)
                known = ids.get(values.get("topicId", ""))
                named = names.get(values["name"]) if table is topics.TOPIC else None
                touched.update(number for number in (known, named) if number is not None)
            end = max(end, batch.last_offset + 1)
    return frozenset(touched), end if below is None else min(end, below)


def _replayed(files: MetadataFiles, found: Scan, numbers: Iterable[int], digester: Digester, end: int) -> Replayer:
    """The image with these topics of the snapshot, after the log up to (and without) `end`."""
    snapshot = found.snapshot
    wanted = list(numbers)
    state = found.with_topics(wanted, digester) if wanted else copy.deepcopy(found.state)
    replayer = Replayer(digester, state, next_offset=snapshot.end_offset, fetched_epoch=snapshot.epoch)
    for segment in files.segments:
        replayer.apply(read_batches(segment.path), below=end)
    return replayer


def _entities(found: Scan, touched: frozenset[int], replayer: Replayer) -> EntityColumns:
    """Of the whole image: with the rows of topics that only the snapshot names."""
    rows = entity_columns(replayer.state)
    where = f"snapshot {found.snapshot.end_offset}-{found.snapshot.epoch}"
    for number, name in enumerate(found.names):
        if number not in touched:
            rows.add("topic", name, "topic_id", uuid_text(found.ids[number].tobytes()), where)
    return rows
