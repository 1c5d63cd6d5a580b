"""Topics and partition states as Kafka writes them into ZooKeeper, parsed without any freedom.

Accepted is what Kafka 3.9 writes, byte for byte, while nothing is reassigned and no leader recovers: everything else is
"not plain", and `migrate.zookeeper.decode` says what it is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from migrate.accelerated.compiled import byte, helper, says
from migrate.accelerated.znode_columns import (
    ISR,
    ISR_COUNT,
    LEADER,
    LEADER_EPOCH,
    MOST_MEMBERS,
    REPLICA_COUNT,
    REPLICAS,
    WRITER,
)

Array = np.ndarray[Any, np.dtype[Any]]

SLASH, QUOTE, COMMA, COLON, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, MINUS = (ord(sign) for sign in '/",:{}[]-')
DIGITS: Final = 9  # with so many a number is in its range


def text(content: str) -> np.ndarray[Any, Any]:
    """Bytes to be looked for."""
    return np.frombuffer(content.encode(), np.uint8)


WRITER_KEY: Final = text('{"controller_epoch":')
LEADER_KEY: Final = text(',"leader":')
EPOCH_KEY: Final = text(',"version":1,"leader_epoch":')
ISR_KEY: Final = text(',"isr":[')
VERSION: Final = text('"version":3')
ADDING: Final = text('"adding_replicas":{}')
REMOVING: Final = text('"removing_replicas":{}')
PARTITIONS_KEY: Final = text('"partitions":{')
ID_KEY: Final = text('"topic_id":"')
ID_LENGTH: Final = 22


def _values_of_base64() -> np.ndarray[Any, Any]:
    found = np.full(256, -1, np.int64)
    for value, sign in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"):
        found[sign] = value
    return found


BASE64: Final = _values_of_base64()


# -- numbers -------------------------------------------------------------------------------------------------------
@helper
def number(raw: Any, at: Any, end: Any) -> Any:
    """A number as JSON writes it, of at most nine digits, and where it ends; -1 where there is none."""
    value, first = np.int64(0), at
    while at < end and 48 <= byte(raw, at) <= 57:
        value = value * 10 + (np.int64(byte(raw, at)) - 48)
        at += 1
        if at - first > DIGITS:
            return np.int64(-1), at
    if at == first or (byte(raw, first) == 48 and at - first > 1):
        return np.int64(-1), at
    return value, at


@helper
def numbers(raw: Any, at: Any, end: Any, members: Any, first: Any) -> Any:
    """A list of numbers, each once, up to its bracket: how many, and where the bracket stands; -1 for anything else."""
    count = np.int64(0)
    while True:
        value, at = number(raw, at, end)
        if value < 0 or count == MOST_MEMBERS or first + count >= len(members):
            return np.int64(-1), at
        for index in range(first, first + count):
            if members[index] == value:
                return np.int64(-1), at
        members[first + count] = value
        count += 1
        if at >= end:
            return np.int64(-1), at
        if byte(raw, at) == CLOSE_LIST:
            return count, at
        if byte(raw, at) != COMMA:
            return np.int64(-1), at
        at += 1


# -- what Kafka writes -----------------------------------------------------------------------------------------------
@helper
def topic_id(raw: Any, at: Any, end: Any) -> Any:
    """The two halves of an id in base64; False for another spelling of it."""
    high, low = np.int64(0), np.int64(0)
    if at + ID_LENGTH > end:
        return False, high, low
    for index in range(ID_LENGTH):
        value = BASE64[byte(raw, at + index)]
        if value < 0:
            return False, high, low
        if index < 10:
            high = high << 6 | value
        elif index == 10:
            high = high << 4 | value >> 2
            low = value & 3
        elif index < 21:
            low = low << 6 | value
        elif value & 15:
            return False, high, low
        else:
            low = low << 2 | value >> 4
    return True, high, low


@helper
def assigned(raw: Any, at: Any, end: Any, rows: Any, used: Any, members: Any) -> Any:
    """Partitions and their replicas, from the bracket on: how many (-1: not plain), and where that ends.

    `rows` begins with the topic's; `members` is filled from used[0] on.
    """
    count, place = np.int64(0), at
    while place < end and byte(raw, place) != CLOSE:
        count += byte(raw, place) == OPEN_LIST
        place += 1
    if count == 0 or count > len(rows):
        return np.int64(-1), at
    for row in range(count):
        rows[row, REPLICAS] = -1
    for _ in range(count):
        if at >= end or byte(raw, at) != QUOTE:
            return np.int64(-1), at
        partition, at = number(raw, at + 1, end)
        if partition < 0 or partition >= count or rows[partition, REPLICAS] != -1 or at + 3 > end:
            return np.int64(-1), at
        if byte(raw, at) != QUOTE or byte(raw, at + 1) != COLON or byte(raw, at + 2) != OPEN_LIST:
            return np.int64(-1), at
        found, at = numbers(raw, at + 3, end, members, used[0])
        if found < 0:
            return np.int64(-1), at
        rows[partition, REPLICAS] = used[0]
        rows[partition, REPLICA_COUNT] = found
        rows[partition, ISR] = -1
        used[0] += found
        at += 1
        if at < end and byte(raw, at) == COMMA:
            at += 1
    if at != place or at >= end or byte(raw, at - 1) == COMMA:
        return np.int64(-1), at
    return count, at + 1


@helper
def topic_data(raw: Any, at: Any, end: Any, rows: Any, used: Any, members: Any) -> Any:
    """A topic's JSON, its five keys in any order: how many partitions (0: not plain), and the id's halves."""
    count, high, low = np.int64(0), np.int64(0), np.int64(0)
    nothing = (np.int64(0), high, low)
    seen = 0
    if at >= end or byte(raw, at) != OPEN:
        return nothing
    for _ in range(5):
        at += 1
        if says(raw, at, end, VERSION):
            seen |= 1
            at += len(VERSION)
        elif says(raw, at, end, ADDING):
            seen |= 2
            at += len(ADDING)
        elif says(raw, at, end, REMOVING):
            seen |= 4
            at += len(REMOVING)
        elif says(raw, at, end, ID_KEY):
            fine, high, low = topic_id(raw, at + len(ID_KEY), end)
            at += len(ID_KEY) + ID_LENGTH + 1
            if not fine or at > end or byte(raw, at - 1) != QUOTE:
                return nothing
            seen |= 8
        elif says(raw, at, end, PARTITIONS_KEY) and count == 0:
            count, at = assigned(raw, at + len(PARTITIONS_KEY), end, rows, used, members)
            if count < 0:
                return nothing
            seen |= 16
        else:
            return nothing
        if at >= end or (byte(raw, at) != COMMA and byte(raw, at) != CLOSE):
            return nothing
        if byte(raw, at) == CLOSE:
            break
    if seen != 31 or byte(raw, at) != CLOSE or at + 1 != end:
        return nothing
    return count, high, low


@helper
def state_data(raw: Any, at: Any, end: Any, rows: Any, row: Any, used: Any, members: Any) -> Any:
    """A partition's state into its row, its ISR into `members` from `used` on: how large that is, -1: not plain."""
    if not says(raw, at, end, WRITER_KEY):
        return np.int64(-1)
    writer, at = number(raw, at + len(WRITER_KEY), end)
    if writer < 0 or not says(raw, at, end, LEADER_KEY):
        return np.int64(-1)
    at += len(LEADER_KEY)
    if at + 1 < end and byte(raw, at) == MINUS and byte(raw, at + 1) == 49:
        leader, at = np.int64(-1), at + 2
    else:
        leader, at = number(raw, at, end)
        if leader < 0:
            return np.int64(-1)
    if not says(raw, at, end, EPOCH_KEY):
        return np.int64(-1)
    epoch, at = number(raw, at + len(EPOCH_KEY), end)
    if epoch < 0 or not says(raw, at, end, ISR_KEY):
        return np.int64(-1)
    at += len(ISR_KEY)
    count = np.int64(0)
    if at < end and byte(raw, at) != CLOSE_LIST:
        count, at = numbers(raw, at, end, members, used)
    if count < 0 or at + 2 != end or byte(raw, at) != CLOSE_LIST or byte(raw, at + 1) != CLOSE:
        return np.int64(-1)
    rows[row, LEADER], rows[row, LEADER_EPOCH], rows[row, WRITER] = leader, epoch, writer
    rows[row, ISR], rows[row, ISR_COUNT] = used, count
    return count
