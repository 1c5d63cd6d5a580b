"""Topics in a ZooKeeper snapshot, as Kafka writes them: from the file's bytes to columns and fingerprints in one pass.

A topic is plain where its znodes follow each other as `DataTree.serialize` leaves them (topic, `partitions`, and for
each partition its number and its `state`), where its partitions are 0 to n - 1, and where topic and states are byte for
byte what Kafka 3.9 writes while nothing is reassigned and no leader recovers.  Every other znode is only stepped over.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types

from migrate.accelerated.compiled import (
    BYTES,
    LONG,
    LONGS,
    NONE,
    OUT_LONGS,
    byte,
    helper,
    i32,
    i64,
    kernel,
    same,
    says,
    word,
)
from migrate.accelerated.fingerprints import ASSIGNMENT, IDENTITY, STATE, finish, mix, mix_all, start
from migrate.accelerated.kafka_json import SLASH, number, state_data, text, topic_data
from migrate.accelerated.znode_columns import (
    AT,
    BEGIN,
    BROKEN,
    COUNT,
    DONE,
    END,
    FIRST,
    HIGH,
    ISR,
    ISR_COUNT,
    LEADER,
    LEADER_EPOCH,
    LOW,
    MEMBER,
    MORE,
    MOST_MEMBERS,
    MZXID,
    NAME,
    NEWEST,
    NODES,
    PASS_OVER,
    RANGE,
    REPLICA_COUNT,
    REPLICAS,
    ROOM,
    ROW,
    STATE_MZXID,
    TOPICS,
    WHERE,
    Columns,
)

Array = np.ndarray[Any, np.dtype[Any]]


TABLE: Final = types.Array(types.int64, 2, "C")
COLUMNS: Final = types.NamedTuple(
    (
        TABLE,
        types.Array(types.uint64, 2, "C"),
        types.Array(types.int32, 2, "C"),
        TABLE,
        types.Array(types.int32, 1, "C"),
        TABLE,
        OUT_LONGS,
    ),
    Columns,
)

TAIL: Final = 8 + 60  # number of the ACL, stat
SMALLEST: Final = 4 + 4 + TAIL
PARTITIONS_NAME: Final = text("/partitions")
STATE_NAME: Final = text("/state")


def _legal_in_names() -> np.ndarray[Any, Any]:
    found = np.zeros(256, np.uint8)
    for sign in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-":
        found[sign] = 1
    return found


LEGAL: Final = _legal_in_names()


# -- fingerprints ----------------------------------------------------------------------------------------------------
@helper
def part_of_assignment(partition: Any, row: Any, rows: Any, members: Any) -> Any:
    """A partition's part of its topic's fingerprint: its replicas."""
    a, b = mix(*start(ASSIGNMENT), partition)
    a, b = mix_all(a, b, members, rows[row, REPLICAS], rows[row, REPLICA_COUNT])
    a, b = mix(a, b, 0)  # nothing is added, nothing removed
    return finish(*mix(a, b, 0))


@helper
def part_of_state(partition: Any, row: Any, rows: Any, members: Any, spare: Any) -> Any:
    """Its other part: its state.  `members` from `spare` on is room to sort the ISR in."""
    first, count = np.int64(rows[row, ISR]), np.int64(rows[row, ISR_COUNT])
    for index in range(count):
        value, place = members[first + index], spare + index
        while place > spare and members[place - 1] > value:
            members[place] = members[place - 1]
            place -= 1
        members[place] = value
    a, b = mix(*start(STATE), partition)
    a, b = mix(a, b, rows[row, LEADER])
    a, b = mix(a, b, rows[row, LEADER_EPOCH])
    a, b = mix(a, b, 0)
    return finish(*mix_all(a, b, members, spare, count))


@helper
def part_of_id(high: Any, low: Any) -> Any:
    a, b = mix(*start(IDENTITY), high)
    return finish(*mix(a, b, low))


@helper
def fingerprint(topic: Any, spare: Any, columns: Any) -> Any:
    topics, rows, members = columns.topics, columns.rows, columns.members
    a, b = part_of_id(topics[topic, HIGH], topics[topic, LOW])
    first = topics[topic, FIRST]
    for partition in range(topics[topic, COUNT]):
        more_a, more_b = part_of_assignment(partition, first + partition, rows, members)
        a, b = a + more_a, b + more_b
        more_a, more_b = part_of_state(partition, first + partition, rows, members, spare)
        a, b = a + more_a, b + more_b
    columns.lanes[topic, 0], columns.lanes[topic, 1] = a, b


# -- znodes ----------------------------------------------------------------------------------------------------------
@helper
def parts(raw: Any, at: Any, limit: Any) -> Any:
    """(where its path ends, where its data ends, where it ends) of the znode at `at`; 0s: more bytes are needed.

    -1s: no znode.
    """
    zero, minus = np.int64(0), np.int64(-1)
    nothing, broken = (zero, zero, zero), (minus, minus, minus)
    if at + 4 > limit:
        return nothing
    path = at + 4 + i32(raw, at)
    if path < at + 4:
        return broken
    if path + 4 > limit:
        return nothing
    size = i32(raw, path)
    if size < -1:
        return broken
    data = path + 4 + max(size, 0)
    return nothing if data + TAIL > limit else (path, data, data + TAIL)


@helper
def zxids(raw: Any, data: Any) -> Any:
    """The newest zxid that a znode names; -1 where it is a session's."""
    if i64(raw, data + 8 + 44) != 0:
        return np.int64(-1)
    return max(i64(raw, data + 8 + 8), i64(raw, data + 8 + 52))


@helper
def partition_of(raw: Any, at: Any, limit: Any, begin: Any, length: Any) -> Any:
    """The two znodes of one partition below a path: its number, its newest zxid, and `parts` of its state.

    The number is -1 where they are not plain, -2 where more bytes are needed.
    """
    zero, minus, more = np.int64(0), np.int64(-1), np.int64(-2)
    path, data, end = parts(raw, at, limit)
    if path == 0:
        return more, zero, zero, zero, zero
    if path < at + 4 + length + 2 or byte(raw, at + 4 + length) != SLASH or not same(raw, at + 4, raw, begin, length):
        return minus, zero, zero, zero, zero
    partition, after = number(raw, at + 4 + length + 1, path)
    newest = zxids(raw, data)
    if after != path or newest < 0:
        return minus, zero, zero, zero, zero
    state_path, state_data_end, following = parts(raw, end, limit)
    if state_path == 0:
        return more, zero, zero, zero, zero
    size = path - at - 4
    if state_path - end - 4 != size + len(STATE_NAME) or not same(raw, end + 4, raw, at + 4, size):
        return minus, zero, zero, zero, zero
    own = zxids(raw, state_data_end)
    if own < 0 or not says(raw, end + 4 + size, state_path, STATE_NAME):
        return minus, zero, zero, zero, zero
    return partition, max(newest, own), state_path, state_data_end, following


@helper
def partitions(raw: Any, at: Any, limit: Any, begin: Any, length: Any, count: Any, columns: Any) -> Any:
    """The znodes of so many partitions into the columns: where they end; 0: more bytes are needed; -1: not plain."""
    counters, rows, longs, members = columns.counters, columns.rows, columns.longs, columns.members
    used, newest, first = counters[MEMBER], counters[NEWEST], counters[ROW]
    for _ in range(count):
        partition, zxid, path, data, following = partition_of(raw, at, limit, begin, length)
        if partition < 0 or partition >= count or rows[first + partition, ISR] != -1:
            return np.int64(0) if partition == -2 else np.int64(-1)
        isr = state_data(raw, path + 4, data, rows, first + partition, used, members)
        if isr < 0:
            return np.int64(-1)
        used, newest = used + isr, max(newest, zxid)
        longs[first + partition, STATE_MZXID], longs[first + partition, WHERE] = i64(raw, data + 8 + 8), at
        at = following
    counters[MEMBER], counters[NEWEST] = used, newest
    return at


@helper
def one_topic(raw: Any, at: Any, limit: Any, prefix: Any, columns: Any) -> Any:
    """A topic's znodes into the columns: where they end; 0: more bytes are needed; -1: not plain."""
    topics, rows, members, counters = columns.topics, columns.rows, columns.members, columns.counters
    path, data, end = parts(raw, at, limit)
    name, newest = path - at - 4 - prefix, zxids(raw, data)
    for index in range(at + 4 + prefix, path):
        if not LEGAL[byte(raw, index)]:
            return np.int64(-1)
    if name < 1 or counters[TOPICS] >= len(topics) or newest < 0:
        return np.int64(-1)
    count, high, low = topic_data(raw, path + 4, data, rows[counters[ROW] :], counters[MEMBER:], members)
    if count <= 0:
        return np.int64(-1)
    mzxid, begin = i64(raw, data + 8 + 8), at + 4
    below, data, following = parts(raw, end, limit)
    if below == 0:
        return np.int64(0)
    length = below - end - 4
    own = zxids(raw, data)
    if own < 0 or length != path - begin + len(PARTITIONS_NAME) or not same(raw, end + 4, raw, begin, path - begin):
        return np.int64(-1)
    if not says(raw, below - len(PARTITIONS_NAME), below, PARTITIONS_NAME):
        return np.int64(-1)
    counters[NEWEST] = max(counters[NEWEST], newest, own)
    following = partitions(raw, following, limit, end + 4, length, count, columns)
    if following <= 0:
        return following
    if counters[MEMBER] + MOST_MEMBERS > len(members):
        return np.int64(-1)
    topic = counters[TOPICS]
    topics[topic, BEGIN], topics[topic, END] = at, following
    topics[topic, NAME], topics[topic, MZXID] = name, mzxid
    topics[topic, HIGH], topics[topic, LOW] = high, low
    topics[topic, FIRST], topics[topic, COUNT] = counters[ROW], count
    fingerprint(topic, counters[MEMBER], columns)
    counters[TOPICS] += 1
    counters[ROW] += count
    counters[NODES] += 2 + 2 * count
    return following


@helper
def in_the_file(topic: Any, longs: Any, base: Any) -> Any:
    """Let the places of a topic's znodes count from the beginning of the file."""
    topic[BEGIN] += base
    topic[END] += base
    for row in range(topic[FIRST], topic[FIRST] + topic[COUNT]):
        longs[row, WHERE] += base


@kernel(
    *(LONG, BYTES, LONG, LONG, BYTES, COLUMNS),
    reference="migrate.zookeeper.offline.snapshot.read_snapshot, migrate.zookeeper.decode",
)
def scan(raw: Any, limit: Any, base: Any, topics_path: Any, columns: Any) -> Any:
    """Znodes of byte(raw, counters[AT):limit]: plain topics into the columns, the places of all others into `others`.

    `base` is where raw begins in the file; `topics_path` is /brokers/topics with the chroot before it.  `counters` go
    on from call to call: DONE stands at the path "/" that ends the znodes, MORE at the first one that is not whole.
    """
    length = len(topics_path)
    counters, others, topics = columns.counters, columns.others, columns.topics
    while True:
        at = counters[AT]
        if at + 5 <= limit and i32(raw, at) == 1 and byte(raw, at + 4) == SLASH:
            return DONE
        path, _data, end = parts(raw, at, limit)
        if path < 0:
            return BROKEN
        if path == 0:
            return MORE
        found = np.int64(-1)
        below = path - at - 4 > length and byte(raw, at + 4 + length) == SLASH and says(raw, at + 4, path, topics_path)
        if counters[ROOM] and below:
            member, newest = counters[MEMBER], counters[NEWEST]
            found = one_topic(raw, at, limit, length + 1, columns)
            if found > 0:
                in_the_file(topics[counters[TOPICS] - 1], columns.longs, base)
                counters[AT] = found
                continue
            counters[MEMBER], counters[NEWEST] = member, newest
            if found == 0 and not counters[PASS_OVER]:
                return MORE
        elif path - at - 4 == length and says(raw, at + 4, path, topics_path):
            counters[ROOM] = 1
        last = counters[RANGE] - 1
        if last >= 0 and others[last, 1] == base + at:
            others[last, 1] = base + end
        elif last + 1 < len(others):
            others[last + 1, 0], others[last + 1, 1] = base + at, base + end
            counters[RANGE] += 1
        else:
            return BROKEN
        counters[AT] = end


@kernel(NONE, LONGS, COLUMNS, reference="migrate.model.fingerprints.topic_fingerprints")
def fingerprint_again(which: Any, columns: Any) -> Any:
    """The fingerprints of these topics from their rows; the last MOST_MEMBERS of `members` are room to sort in."""
    for index in range(len(which)):
        fingerprint(which[index], len(columns.members) - MOST_MEMBERS, columns)


# -- digests ---------------------------------------------------------------------------------------------------------
def _crc_tables() -> np.ndarray[Any, Any]:
    tables = np.zeros((8, 256), np.uint32)
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        tables[0, value] = crc
    for row in range(1, 8):
        before = tables[row - 1]
        tables[row] = before >> 8 ^ tables[0][before & 0xFF]
    return tables


CRC: Final = _crc_tables()


@helper
def crc32(crc: Any, raw: Any, at: Any, end: Any) -> Any:
    """CRC-32 (that of zlib), eight bytes at a time."""
    low_byte = np.uint64(255)
    while at + 8 <= end:
        eight = word(raw, at) ^ np.uint64(crc)
        crc = (
            CRC[7, eight & low_byte]
            ^ CRC[6, eight >> np.uint64(8) & low_byte]
            ^ CRC[5, eight >> np.uint64(16) & low_byte]
            ^ CRC[4, eight >> np.uint64(24) & low_byte]
            ^ CRC[3, eight >> np.uint64(32) & low_byte]
            ^ CRC[2, eight >> np.uint64(40) & low_byte]
            ^ CRC[1, eight >> np.uint64(48) & low_byte]
            ^ CRC[0, eight >> np.uint64(56)]
        )
        at += 8
    while at < end:
        crc = CRC[0, np.uint64(crc ^ np.uint32(byte(raw, at))) & low_byte] ^ (crc >> np.uint32(8))
        at += 1
    return np.uint32(crc)


@kernel(LONG, *(BYTES, LONG, LONG), reference="migrate.zookeeper.offline.tree.Tree.digest")
def digest(raw: Any, at: Any, end: Any) -> Any:
    """The sum of the digests (`DigestCalculator`, version 2) of whole znodes of which `scan` made sure."""
    total = np.int64(0)
    while at < end:
        path, data, following = parts(raw, at, end)
        stat = data + 8
        crc = crc32(np.uint32(0xFFFFFFFF), raw, at + 4, path)
        crc = crc32(crc, raw, path + 4, data)
        crc = crc32(crc, raw, stat, stat + 16)
        crc = crc32(crc, raw, stat + 52, stat + 60)
        crc = crc32(crc, raw, stat + 16, stat + 52)
        total += np.int64(crc ^ np.uint32(0xFFFFFFFF))
        at = following
    return total
