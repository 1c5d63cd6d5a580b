"""The races of large tables, small: every side finds exactly what was planted, on the session of these tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from migrate.diff.compare import MOST_ROWS
from migrate.diff.partition_files import PartitionFiles
from migrate.diff.session import SparkHandle
from tests.bench import decoding, entering, joining, large
from tests.bench.lasting import Lasting
from tests.bench.resident import family, watched

SIZE = 10_100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both tables."""
    place = tmp_path_factory.mktemp("tables")
    large.write(place, SIZE)
    return place


def test_the_tables_differ_where_it_is_said(folder: Path) -> None:
    """And lie in another order: compared by dictionaries, they have the planted differences and no other."""
    sides = []
    for name in ("left", "right"):
        assert PartitionFiles.at(folder / name).rows == SIZE - SIZE // large.ABSENT // 2
        rows = pq.read_table(folder / name).to_pylist()
        sides.append({f"{row['topic']}-{row['partition']}": row for row in rows})
    left, right = sides
    assert list(left) != list(right)
    found = [
        (key, field)
        for key in left.keys() | right.keys()
        for field in (
            [""] if key not in left or key not in right
            else [name for name in large.FIELDS if left[key][name] != right[key][name]]
        )
    ]  # fmt: skip
    assert sorted(found) == sorted(large.planted(SIZE))
    assert Counter(field for _, field in found).keys() == {"", "isr", "leader_epoch"}


def test_larger_tables_go_on_where_smaller_ones_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are made piece by piece, the second side's in another order, and topics have names of their own."""
    monkeypatch.setattr(large, "PIECE", 1_000)
    large.write(tmp_path, 2_500)
    topics = [set(pq.read_table(path).column("topic").to_pylist()) for path in sorted((tmp_path / "left").iterdir())]
    assert list(map(len, topics)) == [20, 20, 10]
    assert len(set.union(*topics)) == 50
    assert set(pq.read_table(tmp_path / "right/00001.parquet").column("topic").to_pylist()) == topics[2]


@pytest.mark.parametrize(("module", "find"), [("polars", joining.by_polars), ("duckdb", joining.by_duckdb)])
def test_a_peer_finds_what_was_planted(
    module: str, find: Callable[[Path], joining.Found], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is installed."""
    pytest.importorskip(module)
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    assert joining.told(find(folder)) == joining.told(list(large.planted(SIZE)))
    if module == "duckdb":
        assert joining.counted(joining.by_duckdb(folder, joining.CAP)) == joining.counted(list(large.planted(SIZE)))


def test_a_peer_that_is_missing_says_so() -> None:
    """It is told in the table, and how it is to be had."""
    assert joining.missing("json")() == ""
    assert "no_such_peer is not installed" in joining.missing("no_such_peer")()


@pytest.mark.spark
def test_ours_and_plain_spark_find_what_was_planted(spark_handle: SparkHandle, folder: Path) -> None:
    """By fingerprints, and by the join that somebody would write."""
    spark = spark_handle.get(300)
    report = joining.on_session(spark, folder)()
    assert joining.told_of(report) == joining.told(list(large.planted(SIZE)))
    assert joining.counts_of(report) == joining.counted(list(large.planted(SIZE)))
    assert joining.told(joining.by_plain_spark(spark, folder)) == joining.told(list(large.planted(SIZE)))


def test_lists_that_a_report_does_not_hold_are_told_by_their_counts() -> None:
    """As many rows as it lists may be all or the first ones: nobody is told which they are."""
    rows = [(f"orders-{number}", "isr") for number in range(MOST_ROWS)]
    assert joining.LISTED == MOST_ROWS
    assert joining.told(rows[1:]) != joining.counted(rows[1:])
    assert joining.told(rows) == joining.told([*rows[1:], ("orders-0", "leader")]) == f"{MOST_ROWS} differ, 0 alone"


@pytest.mark.spark
def test_rows_enter_spark_by_columns_by_fingerprints_and_by_tuples(spark_handle: SparkHandle, folder: Path) -> None:
    """Each way brings all of them."""
    spark = spark_handle.get(300)
    ways = (entering.by_columns, entering.by_fingerprints, entering.by_tuples)
    numbers = pq.read_table(folder / "left", columns=["partition"]).column("partition").to_pylist()
    assert {way(spark, folder) for way in ways} == {(len(numbers), sum(numbers))}


def test_a_lasting_side_works_whenever_it_is_told_to(tmp_path: Path) -> None:
    """One process, several rounds; what it found is the same each time."""
    with decoding.a_checkpoint(tmp_path, 100), closing(Lasting()) as lasting:
        first, second = (lasting("metadata records", "ours", tmp_path, 100) for _ in range(2))
    assert first.answer == second.answer
    assert first.also > 0 < second.also
    with closing(Lasting()) as lasting, pytest.raises(RuntimeError, match="metadata records, ours: ended with 1"):
        lasting("metadata records", "ours", tmp_path / "nowhere", 100)


def test_memory_is_that_of_a_process_and_of_all_below_it() -> None:
    """What was there before included."""
    with watched(os.getpid()) as found:
        kept = bytearray(b"x") * 50_000_000
        found.look(os.getpid())
    assert os.getpid() in family(os.getpid())
    assert found.peak > len(kept)
