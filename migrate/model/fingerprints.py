"""Fingerprints of topics: 128 bits that say whether ZooKeeper and KRaft agree on a topic, without setting row by row.

A topic's fingerprint is a sum (two lanes of 64 bits, each wrapping) of one hash for its id, one for each partition's
assignment and one for each partition's state; these stand in two znodes in ZooKeeper, and in one record in KRaft.  So
the order in which they are met means nothing, and what changes is taken out and put in again.  What is hashed is what
the comparison compares (`migrate.diff.tables.PARTITION_FIELDS`), sets as sets: no directories, no partition epochs.

Each step of a hash is a bijection of the value that it takes in, in both lanes: two parts that differ in one value
never hash alike.  That other differences cancel out in a sum has the chance 2^-128; nothing is proven by it, it says
which topics need the field-by-field comparison.  `migrate.accelerated.fingerprints` does the same, compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from migrate.model.columns import PartitionColumns
from migrate.model.ids import KafkaUuid

ASSIGNMENT: Final = 1
STATE: Final = 2
IDENTITY: Final = 3
WRAP: Final = (1 << 64) - 1
START: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
STEP: Final = (0xFF51AFD7ED558CCD, 0x9FB21C651E98DF25)
LAST: Final = (0xC4CEB9FE1A85EC53, 0xD6E8FEB86659FD93)
TURN: Final = 29


class Fingerprint(NamedTuple):
    """Two sums modulo 2^64."""

    a: int
    b: int

    def plus(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint((self.a + other.a) & WRAP, (self.b + other.b) & WRAP)


NOTHING: Final = Fingerprint(0, 0)


def hashed(tag: int, values: Iterable[int]) -> Fingerprint:
    """The hash of whole numbers, in their order; negative ones as 64 bits in two's complement."""
    a, b = START[0] ^ tag, (START[1] + tag) & WRAP
    for value in values:
        number = value & WRAP
        a = ((a ^ number) * STEP[0]) & WRAP
        a ^= a >> 32
        b = ((b + number) * STEP[1]) & WRAP
        b = ((b << TURN) | (b >> (64 - TURN))) & WRAP
        b ^= b >> 35
    a ^= a >> 33
    a = (a * LAST[0]) & WRAP
    b ^= b >> 31
    b = (b * LAST[1]) & WRAP
    return Fingerprint(a ^ (a >> 29), b ^ (b >> 32))


def _set(values: Iterable[int]) -> list[int]:
    """Length and members of a set, the members sorted."""
    members = sorted(set(values))
    return [len(members), *members]


def assignment(
    partition: int, replicas: Sequence[int], adding: Sequence[int] = (), removing: Sequence[int] = ()
) -> Fingerprint:
    """The part of one partition's replicas, which are ordered; what is added and removed are sets."""
    return hashed(ASSIGNMENT, [partition, len(replicas), *replicas, *_set(adding), *_set(removing)])


def state(partition: int, leader: int, leader_epoch: int, recovery_state: int, isr: Sequence[int]) -> Fingerprint:
    """The part of one partition's state; the ISR is a set."""
    return hashed(STATE, [partition, leader, leader_epoch, recovery_state, *_set(isr)])


def identity(topic_id: str) -> Fingerprint:
    """The part of a topic's id; "" is none."""
    if not topic_id:
        return hashed(IDENTITY, [])
    uuid = KafkaUuid(topic_id)
    high, low = int.from_bytes(uuid.raw[:8], "big"), int.from_bytes(uuid.raw[8:], "big")
    if KafkaUuid.from_bytes(uuid.raw) == topic_id:
        return hashed(IDENTITY, [high, low])
    # another spelling of the same bytes is another text, and the comparison compares texts
    spelling = int.from_bytes(hashlib.sha256(topic_id.encode()).digest()[:8], "big")
    return hashed(IDENTITY, [high, low, spelling])


def topic_fingerprints(columns: PartitionColumns) -> dict[str, Fingerprint]:
    """The fingerprint of each topic that has partitions, by name; a topic whose rows name two ids has both in it."""
    found: dict[str, Fingerprint] = {}
    known: dict[str, set[str]] = {}
    rows = zip(
        columns.topic,
        columns.topic_id,
        columns.partition,
        columns.replicas,
        columns.adding,
        columns.removing,
        columns.leader,
        columns.leader_epoch,
        columns.recovery_state,
        columns.isr,
        strict=True,
    )
    for topic, topic_id, partition, replicas, adding, removing, *rest, isr in rows:
        before = found.get(topic, NOTHING)
        ids = known.setdefault(topic, set())
        if topic_id not in ids:
            ids.add(topic_id)
            before = before.plus(identity(topic_id))
        leader, leader_epoch, recovery_state = rest
        now = state(partition, leader, leader_epoch, recovery_state, isr)
        found[topic] = before.plus(assignment(partition, replicas, adding, removing)).plus(now)
    return found
