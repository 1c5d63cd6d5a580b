"""Metadata files read without keeping a partition: every topic with its fingerprint, and whatever else there is.

A snapshot and the log behind it (or a log alone) pass in the memory of one batch, of their topics' names and of where
these stand.  A topic of which a record says more than columns do, as a change in the log, is read again by the rules of
the whole image (`migrate.kraft.rules`); so are topics that somebody wants to look at: from the batches that name them.
Whatever is odder than that is left to the reference, `migrate.kraft.files.load`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import numpy as np

from migrate.accelerated.choice import ready
from migrate.accelerated.plain_batches import Array, OtherRecord, PlainBatch, PlainBatches, in_order, topic_values
from migrate.errors import MigrateError, ReplayError
from migrate.kraft.files import ONE_DIRECTORY, MetadataFiles, Segment, Snapshot, read_batches, read_batches_at
from migrate.kraft.image import apply_control, check_broker_epoch, data_batches, decoded, entity_columns, in_sequence
from migrate.kraft.rules import State, apply_record, drop_topic_settings, partition_columns
from migrate.model.columns import EntityColumns, unswept
from migrate.model.fingerprints import NOTHING, Fingerprint, topic_fingerprints
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol import records
from migrate.protocol.batches import Batch
from migrate.protocol.loader import Struct, Values
from migrate.protocol.primitives import uuid_bytes, uuid_text

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """The same items, in order, each asked for in another thread while the one before is worked on.

    So one more is in memory.  What `items` raises is raised here, behind the items that came before it.
    """
    end = object()
    with ThreadPoolExecutor(1, "ahead") as pool:
        asked = pool.submit(next, items, end)
        while (found := asked.result()) is not end:
            asked = pool.submit(next, items, end)
            yield found  # type: ignore[misc]  # the end is not yielded


IN_SNAPSHOT: Final = -1  # for the offset of a topic's record
OF_TOPICS: Final = frozenset({records.PARTITION, records.PARTITION_CHANGE, records.REMOVE_TOPIC})


@dataclass(frozen=True, slots=True)
class Source:
    """A snapshot, or none, and the segments behind it, up to (and without) the offset `below`."""

    snapshot: Snapshot | None
    segments: tuple[Segment, ...] = ()
    below: int | None = None

    @property
    def begin(self) -> int:
        """The log's first offset that counts."""
        return 0 if self.snapshot is None else self.snapshot.end_offset

    def place(self, offset: int) -> str:
        """Where a record stands, as rows name it: by its offset in the log; all of the snapshot's alike."""
        if self.snapshot is None or offset != IN_SNAPSHOT:
            return f"offset {offset}"
        return f"snapshot {self.snapshot.end_offset}-{self.snapshot.epoch}"


@dataclass(slots=True)
class Topics:
    """Topics in the order of their records, those that are gone included: a number is a place in these lists."""

    names: list[str] = field(default_factory=list)
    ids: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)  # of its record in the log; IN_SNAPSHOT
    first: list[int] = field(default_factory=list)  # number of the batch with its record
    last: list[int] = field(default_factory=list)  # and of the last one that goes on with its partitions
    gone: set[int] = field(default_factory=set)

    def alive(self) -> Iterator[int]:
        """The numbers of those that are there at the end."""
        return (number for number in range(len(self.names)) if number not in self.gone)


class Place(NamedTuple):
    """Where a batch stands: its file and position; is that the log?"""

    path: str
    position: int
    logged: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found: `state` is the image without topics; `lanes` and `counts` are by a topic's number.

    `mentions` has, by topic id, the numbers of batches with records of it that are not for columns; `places` has where
    each batch stands.  `end_offset` (exclusive) and `epoch` say how far the log goes.
    """

    source: Source
    state: State
    topics: Topics
    lanes: Array
    counts: Array
    mentions: dict[bytes, list[int]]
    places: list[Place]
    end_offset: int
    epoch: int

    def fingerprints(self) -> dict[str, Fingerprint]:
        lanes, counts, names = self.lanes.tolist(), self.counts.tolist(), self.topics.names
        return {names[number]: Fingerprint(*lanes[number]) for number in self.topics.alive() if counts[number]}

    def partitions(self) -> dict[str, int]:
        counts = self.counts.tolist()
        return {self.topics.names[number]: counts[number] for number in self.topics.alive()}

    def with_topics(self, numbers: Collection[int], digester: Digester) -> State:
        """These topics and their partitions alone, from the batches that name them, read again.

        Raises ReplayError and its like where the files have changed meanwhile.
        """
        found = _Selection(self, numbers, digester).read()
        for number in numbers:
            if number not in self.topics.gone and uuid_text(self.topics.ids[number]) not in found.topics:
                what = f"the topic {self.topics.names[number]} is no longer in the files that it was read from"
                raise ReplayError(what, where=self.source.place(self.topics.offsets[number]))
        return found


def scan(source: Source, digester: Digester) -> Scan | None:
    """All topics by fingerprint; None where the files are odd, or not whole: the reference says then what is wrong."""
    try:
        return _Scanner(source, digester).read()
    except (MigrateError, _OddError):
        return None


class _OddError(Exception):
    """Something that only the reference can weigh."""


class _Scanner:
    """Gathers, a batch at a time."""

    def __init__(self, source: Source, digester: Digester) -> None:
        self.source, self.digester = source, digester
        self.state, self.topics = State(), Topics()
        self.decoder = PlainBatches()
        self.places: list[Place] = []
        self.parts: list[tuple[Array, Array]] = []  # of the topics that end with a batch: lanes, counts
        self.lanes, self.count = np.zeros(2, np.uint64), 0  # of the topic at hand
        self.mentions: dict[bytes, list[int]] = {}
        self.numbers: dict[bytes, int] = {}  # by topic id, as far as somebody has asked
        self.in_transaction = False
        self.end, self.epoch = source.begin, 0 if source.snapshot is None else source.snapshot.epoch

    def read(self) -> Scan:
        """The whole of it.  Raises _OddError, and what damage raises."""
        if self.source.snapshot is not None:
            self._read_snapshot(self.source.snapshot)
        for batch in self._of_log():
            self._take(batch, logged=True)
        self._end_topics(self.lanes[np.newaxis], np.array([self.count]))
        if self.in_transaction:
            raise _OddError
        return self._found()

    def _read_snapshot(self, snapshot: Snapshot) -> None:
        name = str(snapshot.path)
        for batch in data_batches(ahead(read_batches(snapshot.path)), snapshot.epoch, self.state, name):
            self._take(batch, logged=False)
        for registration, _ in self.state.brokers.values():
            check_broker_epoch(registration.id, registration.epoch, snapshot.end_offset, name)

    def _of_log(self) -> Iterator[Batch]:
        """Data batches below the end; what control batches say is applied."""
        below = self.source.below
        batches = chain.from_iterable(read_batches(segment.path) for segment in self.source.segments)
        for batch in in_sequence(batches, self.end, self.epoch):
            if below is not None and batch.base_offset >= below:
                return
            if batch.base_offset < self.end or (below is not None and batch.last_offset >= below):
                raise _OddError  # the cut goes through a batch
            if batch.control:
                for _, key, value in batch.records():
                    apply_control(self.state, key, value, batch)
            else:
                yield batch
            self.end, self.epoch = batch.last_offset + 1, batch.epoch

    def _take(self, batch: Batch, *, logged: bool) -> None:
        plain, found, at = self.decoder.decode(batch), self.topics, len(self.places)
        if plain is None:
            raise _OddError
        self.places.append(Place(batch.where, batch.position, logged=logged))
        self._add_rows(plain, at)
        found.names += plain.names
        found.ids += plain.ids
        found.offsets += plain.topic_offsets() if logged else [IN_SNAPSHOT] * len(plain.ids)
        found.first += [at] * len(plain.ids)
        found.last += [at] * len(plain.ids)
        for record in plain.others:
            where = self.source.place(record.offset if logged else IN_SNAPSHOT)
            self._other(*decoded(record.value, record.offset, batch), where, at)

    def _add_rows(self, plain: PlainBatch, at: int) -> None:
        """The rows of the topic at hand, and of those that begin here."""
        ids, last = self.topics.ids, self.topics.last
        if plain.counts[0]:
            last[-1] = at
        for topic, odd in zip([ids[-1] if ids else b"", *plain.ids], plain.odd, strict=True):
            if odd:
                self.mentions.setdefault(topic, [])
        lanes, counts = plain.lanes.copy(), np.array(plain.counts)
        lanes[0] += self.lanes
        counts[0] += self.count
        self._end_topics(lanes[:-1], counts[:-1])
        self.lanes, self.count = lanes[-1], int(counts[-1])

    def _end_topics(self, lanes: Array, counts: Array) -> None:
        """The first topic of all is none: what stands before the first record of a topic."""
        self.parts.append((lanes, counts))

    def _other(self, table: Struct, values: Values, where: str, at: int) -> None:
        """What is said of a topic is kept for the second reading; other records are applied."""
        if table in OF_TOPICS:
            topic = uuid_bytes(values["topicId"])
            listed = self.mentions.setdefault(topic, [])
            if not listed or listed[-1] != at:
                listed.append(at)
            if table is records.REMOVE_TOPIC:
                number = self._number(topic)
                self.topics.gone.add(number)
                drop_topic_settings(self.state, self.topics.names[number])
        elif table in {records.TOPIC, records.CLEAR_ELR, records.ABORT_TRANSACTION}:
            raise _OddError
        elif table is records.BEGIN_TRANSACTION or table is records.END_TRANSACTION:
            begins = table is records.BEGIN_TRANSACTION
            if begins == self.in_transaction or not self.places[at].logged:
                raise _OddError
            self.in_transaction = begins
        else:
            apply_record(self.state, table, values, where, self.digester)

    def _number(self, topic: bytes) -> int:
        for number in range(len(self.numbers), len(self.topics.ids)):
            self.numbers[self.topics.ids[number]] = number
        if topic not in self.numbers:
            raise _OddError
        return self.numbers[topic]

    def _found(self) -> Scan:
        lanes, counts = (np.concatenate(part)[1:] for part in zip(*self.parts, strict=True))
        names = Counter(self.topics.names)
        odd = {self._number(topic) for topic in self.mentions}
        odd.update(number for number, name in enumerate(self.topics.names) if names[name] > 1)
        if len(set(self.topics.ids)) < len(self.topics.ids):
            raise _OddError
        found = Scan(
            source=self.source,
            state=self.state,
            topics=self.topics,
            lanes=lanes,
            counts=counts,
            mentions=self.mentions,
            places=self.places,
            end_offset=self.end,
            epoch=self.epoch,
        )
        state = found.with_topics(odd, self.digester)
        true = topic_fingerprints(partition_columns(state))
        for number in odd:
            topic = state.topics.get(uuid_text(self.topics.ids[number]))
            lanes[number] = true.get(topic.name, NOTHING) if topic else NOTHING
            counts[number] = len(topic.partitions) if topic else 0
        return found


class _Selection:
    """Reads the batches of some topics again; by the rules of the image, in their order."""

    def __init__(self, found: Scan, numbers: Collection[int], digester: Digester) -> None:
        self.found, self.digester = found, digester
        self.numbers = numbers
        self.wanted = frozenset(found.topics.ids[number] for number in numbers)
        self.texts = frozenset(map(uuid_text, self.wanted))
        self.state = State()
        self.at_hand = b""

    def read(self) -> State:
        decoder, first, ids = PlainBatches(), self.found.topics.first, self.found.topics.ids
        with unswept():
            for at, batch in self._batches():
                before = bisect_left(first, at)  # so many topics have their records in earlier batches
                self.at_hand = ids[before - 1] if before else b""
                decoder.at_hand(self.at_hand)
                plain = decoder.decode(batch)
                if plain is None:
                    what = "a batch is not what it was when it was read before"
                    raise ReplayError(what, where=batch.place)
                self._take(plain, before, logged=self.found.places[at].logged)
        return self.state

    def _batches(self) -> Iterator[tuple[int, Batch]]:
        """Those that hold anything of these topics, with their numbers."""
        listed, mentions = self.found.topics, self.found.mentions
        wanted: set[int] = set()
        for number in self.numbers:
            wanted.update(range(listed.first[number], listed.last[number] + 1))
            wanted.update(mentions.get(listed.ids[number], ()))
        places = self.found.places
        for path, group in groupby(sorted(wanted), lambda at: places[at].path):
            numbers = list(group)
            batches = read_batches_at(Path(path), [places[at].position for at in numbers])
            yield from zip(numbers, batches, strict=True)

    def _take(self, plain: PlainBatch, before: int, *, logged: bool) -> None:
        state, batch, offsets, place = self.state, plain.batch, self.found.topics.offsets, self.found.source.place

        def topic(number: int) -> None:
            self.at_hand = plain.ids[number - 1]
            if self.at_hand in self.wanted:
                where = place(offsets[before + number - 1])
                apply_record(state, records.TOPIC, topic_values(plain, number), where, self.digester)

        def rows(_topic: int, first: int, end: int) -> None:
            if self.at_hand in self.wanted:
                text = uuid_text(self.at_hand)
                if text not in state.topics:
                    raise ReplayError(f"the topic {text} is unknown", where=batch.place)
                state.set_rows(text, list(plain.partitions(first, end)))

        def other(record: OtherRecord) -> None:
            table, values = decoded(record.value, record.offset, batch)
            if table in OF_TOPICS and values["topicId"] in self.texts:
                where = place(record.offset if logged else IN_SNAPSHOT)
                apply_record(state, table, values, where, self.digester)

        in_order(plain, topic, rows, other)


KERNEL = "metadata"
LEAST = 16 << 20  # bytes of snapshot and log, 130,000 partitions: from here on compiling the kernel pays


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
    rows, listed = entity_columns(found.state), found.topics
    for number in listed.alive():
        where = found.source.place(listed.offsets[number])
        rows.add("topic", listed.names[number], "topic_id", uuid_text(listed.ids[number]), where)
    return rows
