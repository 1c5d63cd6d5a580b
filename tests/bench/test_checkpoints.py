"""The races of reading a checkpoint run, and Kafka reads in it what we read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.kraft.image import snapshot_state
from migrate.model.secrets import Digester
from migrate.protocol.batches import split
from tests.bench import checkpoints
from tests.bench.races import Run, measured, race

RACES = {entry.name: replace(entry, once="small") for entry in checkpoints.RACES}


def small(name: str, side: str, folder: Path, size: int) -> Run:
    """A side of one of them, from here."""
    with RACES[name].sides[side](folder, size) as work:
        return measured(work)


@pytest.mark.kafka
@pytest.mark.parametrize("name", ["checkpoint, dump tool", "checkpoint, Kafka's classes"])
def test_kafka_finds_the_same(name: str) -> None:
    """Its dump tool every field of every partition, its classes the same sums."""
    if "classes" in name and shutil.which("javac") is None:
        pytest.skip("no javac here: Kafka's own classes are not raced")
    assert race(RACES[name], 1, 2_000, small).ratio > 0


def test_the_made_up_checkpoint_is_what_its_size_says(tmp_path: Path) -> None:
    """Shrunk ISRs and batches of Kafka's size included."""
    path = tmp_path / checkpoints.CHECKPOINT
    checkpoints.write(path, 70_000)
    batches = split(path.read_bytes(), where="c")
    state = snapshot_state(batches, checkpoints.END, checkpoints.EPOCH, Digester(b"k" * 32), "c")
    rows = [row for topic in state.topics.values() for row in topic.partitions.values()]
    assert len(rows) == 70_000
    assert 0.01 < sum(len(row.isr) == 2 for row in rows) / len(rows) < 0.03
