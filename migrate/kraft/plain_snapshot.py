"""A large metadata snapshot: its image, or its fingerprints alone, with partitions decoded in columns.

`PlainReplay` does what `migrate.kraft.replay.apply_data` does, batch after batch.  `scan` keeps no partition at all: a
snapshot of any number of them passes in the memory of one batch, and of its topics' names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

import numpy as np

from migrate.errors import MigrateError
from migrate.kraft.ahead import ahead
from migrate.kraft.files import Snapshot, read_batches
from migrate.kraft.plain_batches import Array, OtherRecord, PlainBatch, PlainBatches, in_order, topic_values
from migrate.kraft.replay import apply_data, apply_decoded, check_broker_epoch, data_batches, decoded
from migrate.kraft.rules import apply_record
from migrate.kraft.state import State, partition_columns
from migrate.model.fingerprints import NOTHING, Fingerprint, topic_fingerprints
from migrate.model.secrets import Digester
from migrate.model.unswept import unswept
from migrate.protocol.batches import Batch
from migrate.protocol.primitives import uuid_bytes, uuid_text
from migrate.protocol.records import topics


class PlainReplay:
    """Applies a snapshot's data batches to a state, one after another."""

    def __init__(self) -> None:
        self._decoder = PlainBatches()
        self._topic_id = ""

    def apply_data(self, state: State, batch: Batch, where: str, digester: Digester) -> None:
        """As the reference."""
        plain = self._decoder.decode(batch)
        if plain is None:
            apply_data(state, batch, where, digester)
            return
        made = plain.partitions(0, len(plain.rows))

        def topic(number: int) -> None:
            values = topic_values(plain, number)
            self._topic_id = values["topicId"]
            apply_record(state, topics.TOPIC, values, where, digester)

        def rows(_topic: int, first: int, end: int) -> None:
            state.topics[self._topic_id].partitions.update(islice(made, end - first))
            state.partition_changes += end - first

        def other(record: OtherRecord) -> None:
            apply_decoded(state, decoded(record.value, record.offset, batch), batch, where, digester)

        in_order(plain, topic, rows, other)


@dataclass(slots=True)
class Scan:
    """A snapshot's topics, in the order of their records, and whatever else it holds.

    `state` is the image without topics.  `ids` has 16 bytes a topic, `lanes` its fingerprint
    (`migrate.model.fingerprints`), `counts` how many partitions that is of; `odd` has the numbers of the topics for
    which the reference had to compute it.
    """

    snapshot: Snapshot
    state: State
    names: list[str]
    ids: Array
    lanes: Array
    counts: Array
    odd: tuple[int, ...]

    def fingerprints(self) -> dict[str, Fingerprint]:
        """By topic name, of each topic that has partitions."""
        rows = zip(self.names, self.lanes.tolist(), self.counts.tolist(), strict=True)
        return {name: Fingerprint(*lanes) for name, lanes, count in rows if count}

    def with_topics(self, numbers: Collection[int], digester: Digester) -> State:
        """The image with these topics and their partitions only: the snapshot is read again.

        Raises SnapshotError and its like where it has changed meanwhile.
        """
        wanted = frozenset(self.ids[number].tobytes() for number in numbers)
        return _Selection(wanted).read(self.snapshot, digester)


def scan(snapshot: Snapshot, digester: Digester) -> Scan | None:
    """Fingerprints of all topics; None where the snapshot is not plain, or not whole: `replay_snapshot` says then.

    No partition is kept: the memory is that of one batch, and of the topics' names.
    """
    try:
        return _Scanner().read(snapshot, digester)
    except MigrateError:
        return None


class _Scanner:
    """Gathers, a batch at a time."""

    def __init__(self) -> None:
        self.state = State()
        self.names: list[str] = []
        self.ids: list[bytes] = []
        self.parts: list[tuple[Array, Array]] = []  # of the topics that end with a batch: lanes, counts
        self.lanes, self.count = np.zeros(2, np.uint64), 0  # of the topic at hand
        self.odd: set[bytes] = set()

    def read(self, snapshot: Snapshot, digester: Digester) -> Scan | None:
        """The whole of it."""
        decoder, where = PlainBatches(), f"snapshot {snapshot.end_offset}-{snapshot.epoch}"
        batches = ahead(read_batches(snapshot.path))
        for batch in data_batches(batches, snapshot.epoch, self.state, str(snapshot.path)):
            plain = decoder.decode(batch)
            if plain is None or not self._take(plain, batch, where, digester):
                return None
        self._end_topics(self.lanes[np.newaxis], np.array([self.count]))
        if len(set(self.names)) < len(self.names) or len(set(self.ids)) < len(self.ids):
            return None
        for registration, _ in self.state.brokers.values():
            check_broker_epoch(registration.id, registration.epoch, snapshot.end_offset, str(snapshot.path))
        return self._found(snapshot, digester)

    def _take(self, plain: PlainBatch, batch: Batch, where: str, digester: Digester) -> bool:
        """False where a record is not for columns."""
        lanes = plain.lanes.copy()
        lanes[0] += self.lanes
        counts = np.array(plain.counts)
        counts[0] += self.count
        topics_before = [self.ids[-1] if self.ids else b"", *plain.ids]
        self.odd.update(topic for topic, odd in zip(topics_before, plain.odd, strict=True) if odd and topic)
        self.names += plain.names
        self.ids += plain.ids
        self._end_topics(lanes[:-1], counts[:-1])
        self.lanes, self.count = lanes[-1], int(counts[-1])
        return all(self._other(record, batch, where, digester) for record in plain.others)

    def _end_topics(self, lanes: Array, counts: Array) -> None:
        """The first topic of all is none: what stands before the first record of a topic."""
        self.parts.append((lanes, counts))

    def _other(self, record: OtherRecord, batch: Batch, where: str, digester: Digester) -> bool:
        """A partition makes its topic odd; a topic, or the end of one, is not for columns; others are applied."""
        table, values = decoded(record.value, record.offset, batch)
        if table is topics.PARTITION:
            self.odd.add(uuid_bytes(values["topicId"]))
            return True
        if table in {topics.TOPIC, topics.REMOVE_TOPIC, topics.PARTITION_CHANGE}:
            return False
        apply_decoded(self.state, (table, values), batch, where, digester)
        return True

    def _found(self, snapshot: Snapshot, digester: Digester) -> Scan | None:
        lanes, counts = (np.concatenate(part)[1:] for part in zip(*self.parts, strict=True))
        ids = np.frombuffer(b"".join(self.ids), np.uint8).reshape(-1, 16)
        odd = tuple(number for number, topic in enumerate(self.ids) if topic in self.odd)
        found = Scan(snapshot, self.state, self.names, ids, lanes, counts, odd)
        if len(odd) != len(self.odd):
            return None  # a partition of a topic that is not there
        if odd:
            state = found.with_topics(odd, digester)
            true = topic_fingerprints(partition_columns(state))
            for number in odd:
                lanes[number] = true.get(self.names[number], NOTHING)
                counts[number] = len(state.topics[uuid_text(self.ids[number])].partitions)
        return found


class _Selection:
    """Reads a snapshot again, for some of its topics; every record but theirs and other topics' is applied."""

    def __init__(self, wanted: frozenset[bytes]) -> None:
        self.state = State()
        self.wanted = wanted
        self.texts = frozenset(map(uuid_text, wanted))
        self.at_hand = b""

    def read(self, snapshot: Snapshot, digester: Digester) -> State:
        """The image of these."""
        decoder, where = PlainBatches(), f"snapshot {snapshot.end_offset}-{snapshot.epoch}"
        with unswept():
            for batch in data_batches(read_batches(snapshot.path), snapshot.epoch, self.state, str(snapshot.path)):
                plain = decoder.decode(batch)
                if plain is None:
                    values = ((offset, value) for offset, _, value in batch.records())
                    for offset, value in values:
                        self._apply(value, offset, batch, where, digester)
                else:
                    self._take(plain, batch, where, digester)
        return self.state

    def _take(self, plain: PlainBatch, batch: Batch, where: str, digester: Digester) -> None:
        def topic(number: int) -> None:
            self.at_hand = plain.ids[number - 1]
            if self.at_hand in self.wanted:
                apply_record(self.state, topics.TOPIC, topic_values(plain, number), where, digester)

        def rows(_topic: int, first: int, end: int) -> None:
            if self.at_hand in self.wanted:
                self.state.topics[uuid_text(self.at_hand)].partitions.update(plain.partitions(first, end))
                self.state.partition_changes += end - first

        def other(record: OtherRecord) -> None:
            self._apply(record.value, record.offset, batch, where, digester)

        in_order(plain, topic, rows, other)

    def _apply(self, value: bytes | None, offset: int, batch: Batch, where: str, digester: Digester) -> None:
        table, values = decoded(value, offset, batch)
        if "topicId" not in values or values["topicId"] in self.texts:
            apply_decoded(self.state, (table, values), batch, where, digester)
            if table is topics.TOPIC:
                self.at_hand = uuid_bytes(values["topicId"])
