"""The load's history: whole entries or none, epochs that never meet, ids that no other record can claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import LoadHistoryBroken
from migrate.lab.load_history import (
    ENTRY,
    Entry,
    HistoryHead,
    HistoryWriter,
    Kind,
    LoadTopic,
    histories,
    read_entries,
    read_head,
    record_id,
    record_value,
)

TAG = bytes(range(8))
TOPICS = (LoadTopic("load-a", 3, 3), LoadTopic("load-single", 2, 1))


def _written(folder: Path, count: int) -> Path:
    writer = HistoryWriter(folder, TAG, TOPICS)
    for number in range(count):
        writer.write(0, number % 3, number, Kind.SENT, 100.0 + number)
    writer.close(1000.0)
    return folder / f"history-{writer.head.epoch:04d}.bin"


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    """Head and entries survive the disk unchanged, and the close stands last."""
    writer = HistoryWriter(tmp_path, TAG, TOPICS)
    writer.write(0, 2, 7, Kind.SENT, 12.5)
    writer.write(0, 2, 7, Kind.ACKED, 12.75, 991)
    writer.write(1, 0, 8, Kind.FAILED, 13.0)
    writer.close(14.0)
    path = tmp_path / "history-0001.bin"

    assert read_head(path) == HistoryHead(TAG, 1, TOPICS)
    assert list(read_entries(path)) == [
        Entry(Kind.SENT, 0, 2, 7, 12.5, -1),
        Entry(Kind.ACKED, 0, 2, 7, 12.75, 991),
        Entry(Kind.FAILED, 1, 0, 8, 13.0, -1),
        Entry(Kind.CLOSED, 0, 0, 0, 14.0, -1),
    ]


def test_an_entry_is_on_disk_as_soon_as_it_is_written(tmp_path: Path) -> None:
    """A SIGKILL right after the call loses nothing: no buffer of ours lies between."""
    writer = HistoryWriter(tmp_path, TAG, TOPICS)
    writer.write(0, 0, 0, Kind.SENT, 1.0)

    assert [entry.kind for entry in read_entries(tmp_path / "history-0001.bin")] == [Kind.SENT]
    writer.close(2.0)


def test_every_start_has_its_own_epoch(tmp_path: Path) -> None:
    """A restarted load continues with the next epoch and leaves the earlier files alone."""
    paths = [_written(tmp_path, 1) for _ in range(3)]

    assert histories(tmp_path) == list(enumerate(paths, 1))
    assert [read_head(path).epoch for path in paths] == [1, 2, 3]
    assert sorted(child.name for child in tmp_path.iterdir()) == [path.name for path in paths]


def test_an_epoch_is_never_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers that see the same last epoch do not both get the next one."""
    _written(tmp_path, 1)
    monkeypatch.setattr("migrate.lab.load_history.histories", lambda _: [])
    with pytest.raises(FileExistsError):
        HistoryWriter(tmp_path, TAG, TOPICS)


@pytest.mark.parametrize("lost", range(1, ENTRY.size))
def test_a_torn_tail_is_left_out(tmp_path: Path, lost: int) -> None:
    """A kill within the last write costs that entry and no other."""
    path = _written(tmp_path, 5)
    path.write_bytes(path.read_bytes()[:-lost])

    assert [entry.sequence for entry in read_entries(path)] == [0, 1, 2, 3, 4]


def test_entries_are_read_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that end within an entry lose and double nothing."""
    path = _written(tmp_path, 50)
    monkeypatch.setattr("migrate.lab.load_history.CHUNK", ENTRY.size + 5)

    assert [entry.sequence for entry in read_entries(path)][:-1] == list(range(50))


def test_damage_is_named_with_its_place(tmp_path: Path) -> None:
    """A kind that no load writes is an error with file and byte, never an entry passed over."""
    path = _written(tmp_path, 3)
    raw = bytearray(path.read_bytes())
    place = raw.index(b"\n") + 1 + ENTRY.size
    raw[place] = 99
    path.write_bytes(raw)

    with pytest.raises(LoadHistoryBroken, match=rf"history-0001.bin: kind 99 at byte {place}"):
        list(read_entries(path))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}\n",
        b"no json\n",
        b'{"format":2}\n',
        b'{"format":1,"tag":"zz","epoch":1,"topics":[]}\n',
        b"\xff\xfe\n",
        b"[]\n",
    ],
)
def test_a_head_that_is_none_is_refused(tmp_path: Path, line: bytes) -> None:
    """An empty, foreign or newer first line never becomes a history without topics."""
    path = tmp_path / "history-0001.bin"
    path.write_bytes(line)
    with pytest.raises(LoadHistoryBroken):
        read_head(path)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_a_records_id_comes_back(epoch: int, sequence: int) -> None:
    """Every id survives its record's value."""
    assert record_id(record_value(TAG, epoch, sequence), TAG) == (epoch, sequence)


@given(st.none() | st.binary(max_size=120))
def test_other_records_are_nobodys(value: bytes | None) -> None:
    """Seeded records, transactions' records and tombstones are passed over."""
    assert record_id(value, TAG) is None


def test_another_loads_record_is_not_ours() -> None:
    """The tag tells two loads on one cluster apart."""
    assert record_id(record_value(b"another!", 1, 1), TAG) is None


def test_a_topic_with_one_replica_carries_no_claim() -> None:
    """Nobody can promise that nothing is lost where one copy exists."""
    assert [topic.claimed for topic in TOPICS] == [True, False]
