"""Batches decoded in columns: all that Kafka writes at rest, and no more room than the largest batch takes."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from pathlib import Path

from migrate.accelerated.plain_batches import PlainBatches
from migrate.kraft.files import read_batches
from migrate.protocol.batches import split
from migrate.protocol.records import PARTITION, decode_record
from tests.kraft.drawn import made, on_disk, records, snapshot
from tests.kraft.logs import captured_log


def share_in_columns(raw: bytes) -> tuple[int, int]:
    """Rows that the kernel decoded, and records that it listed."""
    decoder, rows, others = PlainBatches(), 0, 0
    for batch in split(raw, where="s"):
        if not batch.control:
            plain = decoder.decode(batch)
            assert plain is not None
            rows, others = rows + len(plain.rows), others + len(plain.others)
    return rows, others


def test_what_is_plain_is_decoded_in_columns() -> None:
    """All but the feature: recovery states, leaders that are none, names that are long or not ASCII."""
    totals = [share_in_columns(made(seed, 0)) for seed in range(40)]
    assert sum(rows for rows, _ in totals) > 1000
    assert all(others == 1 for _, others in totals)


def test_batches_come_from_the_file_one_at_a_time(tmp_path: Path) -> None:
    """The arrays grow with the largest batch, not with the file."""
    draw = random.Random(4)
    file = on_disk(tmp_path, snapshot(draw, list(records(draw, 0)), 3))
    decoder = PlainBatches()
    rooms = set()
    for batch in read_batches(file.path):
        if not batch.control and decoder.decode(batch) is not None and decoder._columns is not None:
            rooms.add(len(decoder._columns.rows))
    assert max(rooms) <= 5


def test_what_a_real_copy_wrote_is_decoded_in_columns() -> None:
    """All 212 partitions: in the version without directories, with their topics' configs before them."""
    decoder, rows = PlainBatches(), 0
    for batch in split(captured_log(), where="l"):
        if not batch.control and rows < 212:
            plain = decoder.decode(batch)
            assert plain is not None
            assert PARTITION not in {decode_record(record.value)[0] for record in plain.others}
            rows += len(plain.rows)
    assert rows == 212
