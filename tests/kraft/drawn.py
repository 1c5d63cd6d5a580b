"""Made-up metadata from seeds: snapshots and logs, of which a share is odd."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from migrate.kraft.files import Snapshot
from migrate.model.secrets import Digester
from migrate.protocol.loader import Values
from migrate.protocol.primitives import uuid_text
from migrate.protocol.records import (
    ABORT_TRANSACTION,
    BEGIN_TRANSACTION,
    CONFIG,
    END_TRANSACTION,
    FEATURE_LEVEL,
    NO_OP,
    PARTITION,
    PARTITION_CHANGE,
    REMOVE_TOPIC,
    TOPIC,
)
from tests.testing.encoding import build, encode_control, encode_record

END, EPOCH = 1000, 7
DIGESTER: Final = Digester(b"k" * 32)


def uuid(draw: random.Random) -> str:
    """Any."""
    return uuid_text(draw.randbytes(16))


def partition(draw: random.Random, topic_id: str, number: int, *, odd: bool) -> bytes:
    """A PartitionRecord, plain or odd in one of many ways."""
    replicas = draw.sample(range(2000), draw.choice([1, 3, 3, 3, 5]))
    values: Values = {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": replicas,
        "isr": draw.sample(replicas, draw.randint(0, len(replicas))),
        "leader": draw.choice([-1, replicas[0]]),
        "leaderEpoch": draw.randrange(1 << 31),
        "partitionEpoch": draw.randrange(300),
        "directories": [uuid(draw) for _ in replicas],
        "leaderRecoveryState": draw.choice([0, 0, 0, 1, -1]),
    }
    version, more = draw.choice([0, 1, 1, 2]), dict[str, Any]()
    if not version:
        more = {"directories": []}  # as a copy writes it
    if odd:
        oddities: list[tuple[int, Values]] = [
            (0, {"directories": []}),
            (1, {"directories": []}),
            (1, {"addingReplicas": replicas[:1], "removingReplicas": replicas[-1:]}),
            (1, {"replicas": list(range(200)), "isr": list(range(150)), "directories": [uuid(draw)] * 200}),
            (1, {"isr": [replicas[0], replicas[0]]}),
            (2, {"eligibleLeaderReplicas": replicas}),
            (2, {"lastKnownElr": [], "leaderRecoveryState": 1}),
            (1, {"partitionId": draw.choice([-1, 1 << 17, (1 << 31) - 1])}),
            (1, {"replicas": [], "isr": [], "directories": []}),
            (1, {"directories": values["directories"][1:]}),  # the reference refuses it, mostly
        ]
        version, more = draw.choice(oddities)
    return encode_record(PARTITION, version, values | more)


def records(draw: random.Random, odd: float) -> Iterator[bytes]:
    """The records of a made-up snapshot, of which that share is odd."""
    known: list[str] = []
    for index in range(draw.choice([0, 1, 8])):
        topic_id = uuid(draw)
        name = draw.choice(["t", "a.longer_name-", "ünïcode-", "x" * 300]) + str(index)
        yield encode_record(TOPIC, 0, {"name": name, "topicId": topic_id})
        known.append(topic_id)
        for number in range(draw.choice([0, 1, 5, 40])):
            strange = draw.random() < odd
            whose = draw.choice(known) if strange and draw.random() < 0.3 else topic_id
            yield partition(draw, whose, number, odd=strange)
            if draw.random() < odd / 4:
                yield partition(draw, topic_id, number, odd=False)  # once more: the last one counts
            if draw.random() < odd / 4:
                yield encode_record(CONFIG, 0, {"resourceType": 2, "resourceName": name, "name": "a", "value": "1"})
    yield encode_record(FEATURE_LEVEL, 0, {"name": "metadata.version", "featureLevel": 21})


def snapshot(draw: random.Random, values: Sequence[bytes], most: int) -> bytes:
    """Framed as Kafka does it, in batches of up to so many records."""
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    raw, offset = build(0, EPOCH, [header], control=True), 1
    while values:
        size = draw.randint(1, most)
        raw += build(offset, EPOCH, [(None, value) for value in values[:size]])
        offset, values = offset + len(values[:size]), values[size:]
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    return raw + build(offset, EPOCH, [footer], control=True)


def made(seed: int, odd: float) -> bytes:
    """A snapshot from a seed."""
    draw = random.Random(seed)
    return snapshot(draw, list(records(draw, odd)), draw.choice([1, 7, 1000]))


def on_disk(folder: Path, raw: bytes) -> Snapshot:
    """A checkpoint's file."""
    path = folder / f"{END:020d}-{EPOCH:010d}.checkpoint"
    path.write_bytes(raw)
    return Snapshot(path, END, EPOCH)


# -- logs ------------------------------------------------------------------------------------------------------------
class Writer:
    """Writes records that a controller may have written, each on what the ones before it have made."""

    def __init__(self, draw: random.Random, odd: float) -> None:
        self.draw, self.odd = draw, odd
        self.living: dict[str, tuple[str, int]] = {}  # by topic id: its name, and how many partitions it has
        self.made = 0

    def topic(self) -> Iterator[bytes]:
        """A topic with its partitions; its configs stand between, as a copy from ZooKeeper has them, or behind."""
        draw, topic_id = self.draw, uuid(self.draw)
        free = sorted({"again", "and-again"} - {name for name, _ in self.living.values()})
        self.made += 1
        name = draw.choice(free) if free and draw.random() < 0.3 else f"t-{self.made}"
        yield encode_record(TOPIC, 0, {"name": name, "topicId": topic_id})
        count = draw.choice([0, 1, 5, 40])
        if draw.random() < 0.5:
            yield self.config(name)
        for number in range(count):
            yield partition(draw, topic_id, number, odd=False)
            if draw.random() < self.odd / 8:
                yield encode_record(NO_OP, 0, {})
        self.living[topic_id] = (name, count)
        if draw.random() < self.odd:
            yield self.config(name)

    def config(self, name: str) -> bytes:
        """Of a topic."""
        values = {"resourceType": 2, "resourceName": name, "name": "a", "value": str(self.draw.random())}
        return encode_record(CONFIG, 0, values)

    def later(self) -> bytes:
        """What happens to a cluster: leaders move, topics go."""
        if not self.living:
            return encode_record(NO_OP, 0, {})
        topic_id = self.draw.choice(sorted(self.living))
        name, count = self.living[topic_id]
        what = self.draw.choice(["change", "change", "change", "partition", "config", "remove", "no-op"])
        if what == "remove":
            del self.living[topic_id]
            return encode_record(REMOVE_TOPIC, 0, {"topicId": topic_id})
        if what == "config":
            return self.config(name)
        if what == "partition":
            self.living[topic_id] = (name, count + 1)
            return partition(self.draw, topic_id, count, odd=False)
        if what == "change" and count:
            values = {"partitionId": self.draw.randrange(count), "topicId": topic_id, "leader": self.draw.randrange(9)}
            return encode_record(PARTITION_CHANGE, 0, values)
        return encode_record(NO_OP, 0, {})

    def records(self) -> Iterator[bytes]:
        """Topics, and what happens between and behind them."""
        for _ in range(self.draw.choice([1, 4, 12])):
            yield from self.topic()
            while self.draw.random() < self.odd:
                yield self.later()


def bracketed(draw: random.Random, values: Sequence[bytes]) -> list[bytes]:
    """Perhaps within a transaction, which now and then is aborted, or open."""
    marks = [
        encode_record(BEGIN_TRANSACTION, 0, {"name": "copy"}),
        encode_record(END_TRANSACTION, 0, {}),
        encode_record(ABORT_TRANSACTION, 0, {"reason": "drawn"}),
    ]
    begin = draw.randint(0, len(values))
    end = draw.randint(begin, len(values))
    last = draw.choice([[marks[1]]] * 8 + [[marks[2]], []])
    if draw.random() < 0.4:
        return list(values)
    return [*values[:begin], marks[0], *values[begin:end], *last, *values[end:]]


def log_of(draw: random.Random, values: Sequence[bytes], most: int, base: int = 0, epoch: int = EPOCH) -> bytes:
    """A log in batches of up to so many records; now and then a leader is elected, in an epoch of its own."""
    raw, offset = b"", base
    while values:
        if draw.random() < 0.1:
            epoch += 1
            elected = {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}], "grantingVoters": []}
            raw += build(offset, epoch, [encode_control("LEADER_CHANGE", elected)], control=True)
            offset += 1
        size = draw.randint(1, most)
        raw += build(offset, epoch, [(None, value) for value in values[:size]])
        offset, values = offset + len(values[:size]), values[size:]
    return raw


def drawn_log(seed: int, odd: float) -> bytes:
    """A log from a seed."""
    draw = random.Random(seed)
    values = bracketed(draw, list(Writer(draw, odd).records()))
    return log_of(draw, values, draw.choice([1, 7, 50, 1000]))
