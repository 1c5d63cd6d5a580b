"""Two tables of partitions of any size, as Parquet, with differences planted at known places: for races of comparisons.

50 partitions a topic, three replicas, 100 brokers; about 0.1% of the rows are changed and 0.02% stand on one side
alone.  The second table has its topics, and their partitions, in another order.  Written piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARTITIONS_A_TOPIC: Final = 50
PIECE: Final = 1_000_000  # rows a file
ROW_GROUP: Final = 131_072
EVERY: Final = 997  # one partition in so many differs
ABSENT: Final = 4_999  # one in so many is on one side alone
SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        *((name, pa.list_(pa.int32())) for name in ("replicas", "isr", "adding", "removing")),
        *((name, pa.int32()) for name in ("leader", "leader_epoch", "recovery_state")),
    ]
)
FIELDS: Final = tuple(name for name in SCHEMA.names if name not in {"topic", "partition"})
ALPHABET: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


def write(folder: Path, size: int) -> tuple[Path, Path]:
    """Both tables, as folders of Parquet files; what is there already is left as it is."""
    folders = folder / "left", folder / "right"
    for side, place in enumerate(folders):
        if place.exists():
            continue
        place.mkdir(parents=True)
        last = -(-size // PIECE)
        for number in range(last):
            table = piece(number, min(PIECE, size - number * PIECE), side)
            name = f"{number if side == 0 else last - number:05d}.parquet"
            pq.write_table(table, place / name, row_group_size=ROW_GROUP)
    return folders


def tables(size: int) -> tuple[pa.Table, pa.Table]:
    """The same, in memory."""
    starts = range(0, size, PIECE)
    left, right = ([piece(start // PIECE, min(PIECE, size - start), side) for start in starts] for side in (0, 1))
    return pa.concat_tables(left), pa.concat_tables(right)


def piece(number: int, rows: int, side: int) -> pa.Table:
    """The rows of one file of one side."""
    chance = np.random.default_rng(number)
    topics = -(-rows // PARTITIONS_A_TOPIC)
    first, step = chance.integers(0, 100, rows), 1 + chance.integers(0, 30, rows)
    replicas = np.stack([first, (first + step) % 100, (first + 2 * step) % 100], axis=1).astype(np.int32)
    shrunk = chance.random(rows) < 0.02
    epoch = chance.integers(0, 50, rows).astype(np.int32)
    ids = ALPHABET[chance.integers(0, 64, (topics, 22))]
    names = [f"team-{topic % 97}.events-{topic}" for topic in range(number * PIECE, number * PIECE + topics)]
    at = np.arange(rows)
    place = number * PIECE + at + 1
    absent = (place % ABSENT == 0) & (place // ABSENT % 2 == side)
    changed = (place % EVERY == 0) & (side == 1)
    shrunk ^= changed & (place % 2 == 1)
    epoch += (changed & (place % 2 == 0)).astype(np.int32)
    kept = at[~absent]
    if side == 1:
        order = np.lexsort((-(kept % PARTITIONS_A_TOPIC), chance.permutation(topics)[kept // PARTITIONS_A_TOPIC]))
        kept = kept[order]
    topic = kept // PARTITIONS_A_TOPIC
    spelled = [row.tobytes().decode() for row in ids]
    columns = [
        pc.take(pa.array(names), pa.array(topic)),
        pa.array((kept % PARTITIONS_A_TOPIC).astype(np.int32)),
        pc.take(pa.array(spelled), pa.array(topic)),
        lists(replicas[kept], np.full(len(kept), 3)),
        lists(replicas[kept], np.where(shrunk[kept], 2, 3)),
        lists(replicas[kept], np.zeros(len(kept), np.int64)),
        lists(replicas[kept], np.zeros(len(kept), np.int64)),
        pa.array(first[kept].astype(np.int32)),
        pa.array(epoch[kept]),
        pa.array(np.zeros(len(kept), np.int32)),
    ]
    return pa.table(columns, schema=SCHEMA)


def lists(values: Any, sizes: Any) -> pa.ListArray:
    """The first so many values of each row."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    mask = np.arange(values.shape[1]) < sizes[:, None]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values[mask]))


def planted(size: int) -> Iterator[tuple[str, str]]:
    """(partition, field) of each difference, "" the field of a row that one side lacks."""
    for place in range(1, size + 1):
        alone = place % ABSENT == 0
        if not alone and place % EVERY:
            continue
        number, at = divmod(place - 1, PIECE)
        topic = number * PIECE + at // PARTITIONS_A_TOPIC
        key = f"team-{topic % 97}.events-{topic}-{at % PARTITIONS_A_TOPIC}"
        yield key, "" if alone else "isr" if place % 2 else "leader_epoch"
