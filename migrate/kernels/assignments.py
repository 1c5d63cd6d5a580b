"""AssignReplicasToDirs for millions of replicas: code the ids, sort one number a replica, cut, encode.

A replica's number holds, from its top bits on, its directory's rank (by broker, then by the id's text), its topic's
rank (by the id's text) and its partition.  Sorted, it is the order of the reference, equal replicas stand beside each
other, and nothing else has to be looked up but ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from migrate.kernels.compiled import (
    INTS,
    LONG,
    LONGS,
    NONE,
    OUT_BYTES,
    OUT_INTS,
    OUT_KEYS,
    OUT_LONGS,
    OUT_PAIRS,
    PAIRS,
    ROWS,
    helper,
    kernel,
)

REFERENCE = "migrate.kafka.assignments.requests_by_reference"
NOT_PLAIN = -1

Array = np.ndarray[Any, np.dtype[Any]]
Number = int | np.int64


@helper
def _spread(first: np.uint64, second: np.uint64) -> np.uint64:
    """A hash of an id; ids are random, so little is needed."""
    mixed = first * np.uint64(0x9E3779B97F4A7C15) ^ second * np.uint64(0xC2B2AE3D27D4EB4F)
    return mixed ^ (mixed >> np.uint64(29))


@kernel(LONG, PAIRS, OUT_INTS, OUT_INTS, OUT_PAIRS, reference=REFERENCE)
def coded(ids: Array, table: Array, codes: Array, unique: Array) -> int:
    """A number for each id, in the order of their first appearance; how many there are.

    `table` (a power of two of -1) is the hash table, `unique` takes the ids; NOT_PLAIN where it is too small.
    """
    count, mask = 0, np.uint64(len(table) - 1)
    for row in range(len(ids)):
        first, second = ids[row, 0], ids[row, 1]
        if row and first == ids[row - 1, 0] and second == ids[row - 1, 1]:
            codes[row] = codes[row - 1]
            continue
        place = _spread(first, second) & mask
        code = table[place]
        while code >= 0 and (unique[code, 0] != first or unique[code, 1] != second):
            place = (place + np.uint64(1)) & mask
            code = table[place]
        if code < 0:
            if count == len(unique):
                return NOT_PLAIN
            code = count
            table[place] = code
            unique[code, 0] = first
            unique[code, 1] = second
            count += 1
        codes[row] = code
    return count


@kernel(LONG, INTS, INTS, INTS, INTS, OUT_INTS, OUT_INTS, OUT_LONGS, reference=REFERENCE)
def surveyed(
    brokers: Array, directories: Array, topics: Array, partitions: Array, owners: Array, widths: Array, sizes: Array
) -> int:
    """The broker and the size of each directory, and each topic's highest partition + 1; 0.

    NOT_PLAIN for a directory of two brokers and for a negative number.
    """
    for row in range(len(brokers)):
        broker, directory, topic, partition = brokers[row], directories[row], topics[row], partitions[row]
        if broker < 0 or partition < 0 or partition == 0x7FFFFFFF:
            return NOT_PLAIN
        if owners[directory] < 0:
            owners[directory] = broker
        elif owners[directory] != broker:
            return NOT_PLAIN
        sizes[directory] += 1
        if partition >= widths[topic]:
            widths[topic] = partition + 1
    return 0


@kernel(NONE, INTS, INTS, INTS, LONGS, LONGS, LONG, LONG, OUT_LONGS, OUT_KEYS, reference=REFERENCE)
def numbered(
    directories: Array,
    topics: Array,
    partitions: Array,
    directory_ranks: Array,
    topic_ranks: Array,
    topic_shift: int,
    directory_shift: int,
    places: Array,
    keys: Array,
) -> None:
    """Each replica's number, at its directory's next place: what is left to be sorted fits into the processor's cache.

    `places` says where each directory's numbers begin; it is used up.
    """
    for row in range(len(directories)):
        directory = directories[row]
        keys[places[directory]] = np.uint64(
            (directory_ranks[directory] << directory_shift)
            | (topic_ranks[topics[row]] << topic_shift)
            | np.int64(partitions[row])
        )
        places[directory] += 1


@kernel(LONG, OUT_KEYS, LONG, LONG, INTS, LONGS, LONG, OUT_INTS, OUT_LONGS, OUT_LONGS, reference=REFERENCE)
def cut(
    keys: Array,
    topic_shift: int,
    directory_shift: int,
    owners: Array,
    bases: Array,
    most: int,
    seen: Array,
    starts: Array,
    sums: Array,
) -> int:
    """Take out repetitions (in place) and find where each request starts; how many requests.

    `bases` gives each topic its stretch of `seen`, in which a broker marks its partitions.  `sums` takes how many
    replicas, runs of a directory and runs of a topic there are.  NOT_PLAIN for a replica in two directories.
    """
    requests, held, kept, runs, inner = 0, 0, 0, 0, 0
    directory, topic, broker = np.int64(-1), np.int64(-1), np.int64(-1)
    partition_mask = (np.int64(1) << topic_shift) - 1
    topic_mask = (np.int64(1) << (directory_shift - topic_shift)) - 1
    for row in range(len(keys)):
        key = np.int64(keys[row])
        if row and keys[row] == keys[kept - 1]:
            continue
        now, of, partition = key >> directory_shift, (key >> topic_shift) & topic_mask, key & partition_mask
        owner = np.int64(owners[now])
        place = bases[of] + partition
        if seen[place] == owner:
            return NOT_PLAIN
        seen[place] = owner
        fresh = owner != broker or held == most
        if fresh:
            starts[requests] = kept
            requests, held, broker = requests + 1, 0, owner
        fresh = fresh or now != directory
        if fresh:
            runs, directory = runs + 1, now
        if fresh or of != topic:
            inner, topic = inner + 1, of
        keys[kept] = key
        kept, held = kept + 1, held + 1
    starts[requests] = kept
    sums[0], sums[1], sums[2] = kept, runs, inner
    return requests


@helper
def _length(out: Array, at: int, count: int) -> int:
    """A compact array's length."""
    value = count + 1
    while value > 127:
        out[at] = (value & 127) | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@helper
def _number(out: Array, at: int, value: Number, size: int) -> int:
    """Big-endian."""
    for byte in range(size):
        out[at + byte] = (value >> (8 * (size - 1 - byte))) & 255
    return at + size


@helper
def _id(out: Array, at: int, ids: Array, row: Number) -> int:
    """The sixteen bytes of an id."""
    for byte in range(16):
        out[at + byte] = ids[row, byte]
    return at + 16


@helper
def _run(keys: Array, start: int, end: int, shift: int) -> int:
    """Where the numbers that agree above `shift` end."""
    at, value = start + 1, np.int64(keys[start]) >> shift
    while at < end and np.int64(keys[at]) >> shift == value:
        at += 1
    return at


@helper
def _runs(keys: Array, start: int, end: int, shift: int) -> int:
    """How many different values there are above `shift`."""
    found = 1
    for at in range(start + 1, end):
        found += np.int64(keys[at]) >> shift != np.int64(keys[at - 1]) >> shift
    return found


@kernel(LONG, OUT_KEYS, LONGS, LONG, LONG, INTS, LONGS, ROWS, ROWS, OUT_BYTES, OUT_LONGS, reference=REFERENCE)
def encoded(
    keys: Array,
    starts: Array,
    topic_shift: int,
    directory_shift: int,
    owners: Array,
    epochs: Array,
    directory_ids: Array,
    topic_ids: Array,
    out: Array,
    ends: Array,
) -> int:
    """The bodies of the requests one after another, version 0; how many bytes.  `ends` takes where each ends.

    Owners, epochs and ids stand by rank.  `out` is long enough by `room`.
    """
    at = 0
    topic_mask = (np.int64(1) << (directory_shift - topic_shift)) - 1
    partition_mask = (np.int64(1) << topic_shift) - 1
    for request in range(len(starts) - 1):
        row, end = starts[request], starts[request + 1]
        directory = np.int64(keys[row]) >> directory_shift
        at = _number(out, at, owners[directory], 4)
        at = _number(out, at, epochs[directory], 8)
        at = _length(out, at, _runs(keys, row, end, directory_shift))
        while row < end:
            directory = np.int64(keys[row]) >> directory_shift
            stop = _run(keys, row, end, directory_shift)
            at = _id(out, at, directory_ids, directory)
            at = _length(out, at, _runs(keys, row, stop, topic_shift))
            while row < stop:
                last = _run(keys, row, stop, topic_shift)
                at = _id(out, at, topic_ids, (np.int64(keys[row]) >> topic_shift) & topic_mask)
                at = _length(out, at, last - row)
                while row < last:
                    at = _number(out, at, np.int64(keys[row]) & partition_mask, 4)
                    out[at] = 0
                    at, row = at + 1, row + 1
                out[at] = 0
                at += 1
            out[at] = 0
            at += 1
        out[at] = 0
        at += 1
        ends[request] = at
    return at
