"""Topics and partitions in a batch of a metadata snapshot, or log: from its bytes to columns, a fingerprint a topic.

A snapshot holds a topic's record and then its partitions' (`TopicImage.write`), as what a migration copies does.  Plain
is a partition of the topic that was met last, with one directory a replica (versions 1 and 2) or none at all (version
0, which a copy writes), and no tag but the recovery state; whatever else a batch holds is listed, for the reference to
decode one by one: partitions of any topic may be among it, which no fingerprint has.  Where the frame of a record is
odd, the whole batch is the reference's.  Nothing outside `raw` is read: what a length says is held against its end
before it is followed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from migrate.accelerated.compiled import BYTES, LONG, OUT_BYTES, OUT_INTS, OUT_LONGS, helper, i32, kernel
from migrate.accelerated.fingerprints import ASSIGNMENT, IDENTITY, STATE, finish, mix, mix_all, start
from migrate.accelerated.metadata_columns import (
    ADDING,
    AT_HAND,
    BEGIN,
    COUNT,
    DIRECTORIES,
    END,
    FIRST,
    ID,
    INDEX,
    ISR,
    ISR_LIMIT,
    LEADER,
    LEADER_EPOCH,
    LENGTH,
    MEMBERS,
    NAME,
    NUMBER,
    ODD,
    OTHERS,
    PARTITION,
    PARTITION_EPOCH,
    RECOVERY,
    REMOVING,
    REPLICAS,
    ROWS,
    ROWS_BEFORE,
    TOPIC,
    TOPICS,
    TOPICS_BEFORE,
    UNTOLD,
    Array,
    Columns,
)

REFERENCE = "migrate.kraft.image.snapshot_state"
NOT_PLAIN: Final = -1

TOPIC_RECORD, PARTITION_RECORD, CONFIG_RECORD, NO_OP_RECORD = 2, 3, 4, 20
HEADER: Final = 61  # of a batch
LONGEST_NAME: Final = 0x7FFF


TABLE: Final = types.Array(types.int32, 2, "C")
COLUMNS: Final = types.NamedTuple(
    (
        TABLE,
        types.Array(types.int32, 1, "C"),
        TABLE,
        types.Array(types.uint64, 2, "C"),
        TABLE,
        types.Array(types.int32, 1, "C"),
        OUT_BYTES,
        OUT_INTS,
        OUT_LONGS,
    ),
    Columns,
)


@helper
def _u64(raw: Array, at: int) -> Any:
    """Big-endian."""
    found = np.uint64(0)
    for byte in range(8):
        found = (found << np.uint64(8)) | np.uint64(raw[at + byte])
    return found


@helper
def _varint(raw: Array, at: int, end: int) -> Any:
    """An unsigned one of up to three bytes, and the offset after it; the offset is NOT_PLAIN for any other."""
    value, shift = np.int64(0), 0
    while at < end and shift < 21:
        byte = np.int64(raw[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return np.int64(0), np.int64(NOT_PLAIN)


@helper
def _numbers(raw: Array, at: int, end: int, members: Array, spare: int) -> Any:
    """How many numbers an array has, all of them copied, and the offset after it; NOT_PLAIN."""
    length, at = _varint(raw, at, end)
    if at < 0 or length == 0 or at + 4 * (length - 1) > end or spare + length - 1 > len(members):
        return np.int64(0), np.int64(NOT_PLAIN)
    for index in range(length - 1):
        members[spare + index] = i32(raw, at)
        at += 4
    return length - 1, at


@helper
def _partition(raw: Array, at: int, end: int, row: Array, members: Array, spare: int) -> Any:
    """Read a PartitionRecord's fields into `row`; the members that it has, NOT_PLAIN.  Its version stands before."""
    version = raw[at - 1]
    if at + 20 > end:
        return NOT_PLAIN
    row[PARTITION] = i32(raw, at)
    row[FIRST] = spare
    at += 20
    first = spare
    for column in (REPLICAS, ISR, REMOVING, ADDING):
        count, at = _numbers(raw, at, end, members, spare)
        if at < 0:
            return NOT_PLAIN
        row[column] = count
        spare += count
    if at + 12 > end:
        return NOT_PLAIN
    row[LEADER] = i32(raw, at)
    row[LEADER_EPOCH] = i32(raw, at + 4)
    row[PARTITION_EPOCH] = i32(raw, at + 8)
    at += 12
    row[DIRECTORIES] = UNTOLD
    if version:
        length, at = _varint(raw, at, end)
        if at < 0 or length - 1 != row[REPLICAS] or at + 16 * (length - 1) > end:
            return NOT_PLAIN
        row[DIRECTORIES] = at
        at += 16 * (length - 1)
    if at >= end:
        return NOT_PLAIN
    row[RECOVERY] = 0
    if raw[at] == 0:
        at += 1
    elif at + 4 <= end and raw[at] == 1 and raw[at + 1] == 0 and raw[at + 2] == 1:
        row[RECOVERY] = np.int8(raw[at + 3])
        at += 4
    else:
        return NOT_PLAIN
    return spare - first if at == end else NOT_PLAIN


@helper
def _add_topic(raw: Array, at: int, lanes: Array) -> None:
    """A topic's fingerprint begins with its id."""
    a, b = mix(*start(IDENTITY), _u64(raw, at))
    a, b = finish(*mix(a, b, _u64(raw, at + 8)))
    lanes[0] = a
    lanes[1] = b


@helper
def _add_row(lanes: Array, row: Array, members: Array, room: Array) -> bool:
    """Add a partition's two parts; False where the reference must (sets that are large, or not empty)."""
    count = row[ISR]
    if count > ISR_LIMIT or row[REMOVING] or row[ADDING]:
        return False
    partition, first = row[PARTITION], row[FIRST]
    a, b = mix(*start(ASSIGNMENT), partition)
    a, b = mix_all(a, b, members, first, row[REPLICAS])
    a, b = mix(a, b, 0)
    a, b = finish(*mix(a, b, 0))
    lanes[0] += a
    lanes[1] += b
    kept = 0
    for index in range(count):  # sorted, each once
        value, place = members[first + row[REPLICAS] + index], kept
        while place and room[place - 1] > value:
            place -= 1
        if place and room[place - 1] == value:
            continue
        for above in range(kept, place, -1):
            room[above] = room[above - 1]
        room[place] = value
        kept += 1
    a, b = mix(*start(STATE), partition)
    a, b = mix(a, b, row[LEADER])
    a, b = mix(a, b, row[LEADER_EPOCH])
    a, b = mix(a, b, row[RECOVERY])
    a, b = finish(*mix_all(a, b, room, 0, kept))
    lanes[0] += a
    lanes[1] += b
    return True


@helper
def _topic(raw: Array, at: int, end: int, topic: Array) -> bool:
    """Read a TopicRecord's fields; False where it is not plain."""
    length, at = _varint(raw, at, end)
    if at < 0 or not 2 <= length <= LONGEST_NAME + 1 or at + length - 1 + 17 != end or raw[end - 1] != 0:
        return False
    topic[NAME], topic[LENGTH], topic[ID], topic[COUNT], topic[ODD] = at, length - 1, at + length - 1, 0, 0
    return True


@helper
def _same_id(raw: Array, at: int, topic_id: Array) -> bool:
    """Is it the topic's at hand?"""
    same = True
    for byte in range(16):
        same = same and raw[at + byte] == topic_id[byte]
    return same


@helper
def _value(raw: Array, at: int, limit: int, index: int) -> Any:
    """Begin and end of a record's value, and the offset after the record; the last is NOT_PLAIN where it is odd."""
    length, at = _varint(raw, at, limit)
    end = at + (length >> 1)
    if at < 0 or length & 1 or end > limit or end - at < 6:
        return np.int64(0), np.int64(0), np.int64(NOT_PLAIN)
    if raw[at + 1] > 127:  # attributes; the delta of the timestamp
        return np.int64(0), np.int64(0), np.int64(NOT_PLAIN)
    delta, at = _varint(raw, at + 2, end)
    if at < 0 or delta != 2 * index or at >= end or raw[at] != 1:  # no key
        return np.int64(0), np.int64(0), np.int64(NOT_PLAIN)
    length, at = _varint(raw, at + 1, end)
    if at < 0 or length & 1 or at + (length >> 1) + 1 != end or raw[end - 1] != 0:  # no headers
        return np.int64(0), np.int64(0), np.int64(NOT_PLAIN)
    return at, end - 1, end


@kernel(LONG, BYTES, LONG, COLUMNS, reference=REFERENCE)
def decode(raw: Array, count: int, found: Columns) -> int:
    """Decode the batch in `raw` with that many records; 0, or NOT_PLAIN.

    After NOT_PLAIN nothing that was filled means anything.
    """
    counters, rows, topics, others = found.counters, found.rows, found.topics, found.others
    row, topic, other, member = 0, 0, 0, 0
    at, limit, at_hand, number = np.int64(HEADER), len(raw), counters[AT_HAND], counters[NUMBER]
    room, current = found.room, found.current
    topics[0, COUNT], topics[0, ODD], found.lanes[0, 0], found.lanes[0, 1] = 0, 0, 0, 0
    for index in range(count):
        begin, end, after = _value(raw, at, limit, index)
        if after < 0:
            return NOT_PLAIN
        at = after
        kind = -1
        if end - begin >= 3 and raw[begin] == 1 and raw[begin + 1] < 128 and raw[begin + 2] < 128:
            kind, version = np.int64(raw[begin + 1]), np.int64(raw[begin + 2])
            if kind == PARTITION_RECORD and at_hand and version <= 2 and end - begin > 23:
                if _same_id(raw, begin + 7, current):
                    into = rows[row]
                    took = _partition(raw, begin + 3, end, into, found.members, member)
                    if took >= 0:
                        into[TOPIC] = topic
                        partition = into[PARTITION]
                        if not 0 <= partition < len(found.seen) or found.seen[partition] == number:
                            topics[topic, ODD] = 1
                        else:
                            found.seen[partition] = number
                        if not _add_row(found.lanes[topic], into, found.members, room):
                            topics[topic, ODD] = 1
                        topics[topic, COUNT] += 1
                        row, member = row + 1, member + took
                        continue
            elif kind == TOPIC_RECORD and version == 0 and _topic(raw, begin + 3, end, topics[topic + 1]):
                topic, number, at_hand = topic + 1, number + 1, 1
                place = topics[topic, ID]
                for byte in range(16):
                    current[byte] = raw[place + byte]
                _add_topic(raw, place, found.lanes[topic])
                continue
        others[other, INDEX], others[other, BEGIN], others[other, END] = index, begin, end
        others[other, ROWS_BEFORE], others[other, TOPICS_BEFORE] = row, topic
        other += 1
        if kind not in (PARTITION_RECORD, CONFIG_RECORD, NO_OP_RECORD):  # these leave topics as they are
            at_hand = 0
    counters[AT_HAND], counters[NUMBER] = at_hand, number
    counters[ROWS], counters[TOPICS], counters[OTHERS], counters[MEMBERS] = row, topic, other, member
    return 0 if at == limit else NOT_PLAIN
