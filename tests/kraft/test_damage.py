"""Damaged metadata is detected, or provably harmless: never an untyped exception, much memory, or a long wait.

What CI draws is seeded, so that it says the same twice; the `long` tests do the whole count.
"""

from __future__ import annotations

import base64
import json
import logging
import random  # noqa: TID251 - seeded: the same damage each time
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.errors import BatchError, DecodeError, InputError, SnapshotError
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.kraft.quorum_files import read_directory
from migrate.model.views import KraftView
from migrate.protocol.batches import split
from tests.kraft import damage
from tests.kraft.damage import SNAPSHOT_BYTES, Tally, flipped, limited, read_record, read_snapshot, snapshot_64k
from tests.kraft.logs import D1, DATA, T1, T2, captured_log, change, leader_change, log, partition, topic

LOG = logging.getLogger("tests.damage")
BITS = SNAPSHOT_BYTES * 8
CORPUS = DATA / "damage.json"


def heads() -> set[int]:
    """The bits of the batch headers, where stands what no CRC covers; of the footer's a part, since it is read last."""
    first, data, footer = (found.position * 8 for found in split(snapshot_64k(), where="whole"))
    return {*range(first, first + 61 * 8), *range(data, data + 61 * 8), *range(footer, footer + 61 * 8, 7)}


def detected(bits: range | list[int]) -> int:
    """Flip each bit, one at a time; how many were detected."""
    whole, found = snapshot_64k(), 0
    for bit in bits:
        try:
            read_snapshot(flipped(whole, bit))
        except (BatchError, SnapshotError):
            found += 1
    return found


def records_tried(seed: int, number: int) -> Tally:
    """Damage single records, each type as often as the others."""
    draw, tally = random.Random(seed), Tally()
    with limited():
        for _ in range(number):
            tally.run(read_record, damage.mutated(draw, draw.choice(draw.choice(damage.by_type()))))
    LOG.info("records: %s, slowest %.3f s, read again %d", tally.ended, tally.slowest, tally.read_again)
    return tally


def files_tried(seed: int, number: int, read: Callable[[bytes], KraftView], whole: bytes) -> Tally:
    """Damage whole files behind CRCs that are right."""
    draw, tally = random.Random(seed), Tally()
    with limited():
        for _ in range(number):
            tally.run(read, damage.mutated_file(draw, whole))
    LOG.info("files: %s, slowest %.3f s, read again %d", tally.ended, tally.slowest, tally.read_again)
    return tally


class TestSnapshots:
    """A snapshot of 64 KiB, as Kafka writes it."""

    @pytest.mark.slow
    def test_the_snapshot_is_whole_before_it_is_damaged(self) -> None:
        """Real records, in three batches, of exactly 64 KiB."""
        view = read_snapshot(snapshot_64k())
        damage.check(view)
        assert (len(snapshot_64k()), len(view.brokers), view.offset) == (SNAPSHOT_BYTES, 3, damage.END - 1)
        assert len(list(split(snapshot_64k(), where="whole"))) == 3
        assert len(view.partitions) > 500

    @pytest.mark.slow
    def test_flipped_bits_are_detected(self) -> None:
        """The batches' headers, and a seeded draw of all bits."""
        bits = sorted({*heads(), *random.Random(858).sample(range(BITS), 8000)})
        assert detected(bits) == len(bits)

    @pytest.mark.slow
    def test_every_truncation_is_detected(self) -> None:
        """A seeded draw, and each cut at and around a batch's end."""
        whole = snapshot_64k()
        ends = [found.position + move for found in split(whole, where="whole") for move in (-1, 0, 1, 12, 60, 61)]
        cuts = {0, *(end for end in ends if end >= 0), SNAPSHOT_BYTES - 1}
        for end in sorted({*cuts, *random.Random(858).sample(range(SNAPSHOT_BYTES), 3000)}):
            with pytest.raises((BatchError, SnapshotError)):
                read_snapshot(whole[:end])

    @pytest.mark.long
    def test_all_flips_and_truncations_are_detected(self) -> None:
        """524,288 flips and 65,536 truncations."""
        assert detected(range(BITS)) == BITS
        whole = snapshot_64k()
        for end in range(SNAPSHOT_BYTES):
            with pytest.raises((BatchError, SnapshotError)):
                read_snapshot(whole[:end])


class TestRecords:
    """Single records, as if their batch's CRC had been right."""

    @pytest.mark.slow
    def test_a_damaged_record_is_a_typed_error_or_a_valid_one(self) -> None:
        """A seeded draw, in each type; both ends are reached."""
        tally = records_tried(858, 8000)
        assert sum(tally.ended.values()) == 8000
        assert {"image", "E-WIRE-01", "E-WIRE-03", "E-KRAFT-03"} <= set(tally.ended)

    @pytest.mark.long
    def test_200_000_damaged_records(self) -> None:
        """The whole count, with another seed."""
        assert sum(records_tried(3, 200_000).ended.values()) == 200_000


class TestFiles:
    """Whole files, each batch behind a CRC that is right again."""

    @pytest.mark.slow
    def test_a_damaged_snapshot_is_a_typed_error_or_a_valid_image(self) -> None:
        """A seeded draw."""
        tally = files_tried(858, 60, read_snapshot, snapshot_64k())
        assert {"E-BATCH-01", "E-KRAFT-02"} <= set(tally.ended)

    @pytest.mark.slow
    def test_a_damaged_log_is_a_typed_error_or_a_valid_image(self, tmp_path: Path) -> None:
        """The captured log up to the registrations of all brokers, as a directory's only segment."""
        tally = files_tried(858, 100, damage.log_reader(tmp_path), captured_log()[:11975])
        assert {"E-BATCH-01", "E-WIRE-01"} <= set(tally.ended)

    @pytest.mark.long
    def test_2_000_damaged_files(self, tmp_path: Path) -> None:
        """1,000 snapshots, and 1,000 logs with the copy in them."""
        snapshots = files_tried(3, 1000, read_snapshot, snapshot_64k())
        logs = files_tried(3, 1000, damage.log_reader(tmp_path), captured_log()[:40713])
        assert sum(snapshots.ended.values()) + sum(logs.ended.values()) == 2000


class TestEpochs:
    """No CRC covers a batch's epoch: the rules do."""

    TWO_EPOCHS = (
        leader_change(0, 1)
        + log(topic("a", T1), partition(T1, 0, [1], [D1]), base=1)
        + leader_change(3, 6)
        + log(change(T1, 0, isr=[]), topic("b", T2), base=4, epoch=6)
    )

    def flips(self, folder: Path, whole: bytes, quorum_epoch: int | None) -> list[tuple[int, int]]:
        """(base offset, bit) of each flip in a batch's epoch that nothing detected."""
        part = folder / PARTITION_DIRECTORY
        part.mkdir()
        if quorum_epoch is not None:
            state = {"leaderId": 3000, "leaderEpoch": quorum_epoch, "votedId": -1, "data_version": 0}
            (part / "quorum-state").write_text(json.dumps(state), encoding="utf-8")
        missed = []
        for batch in split(whole, where="whole"):
            for bit in range(32):
                (part / "00000000000000000000.log").write_bytes(flipped(whole, (batch.position + 12) * 8 + bit))
                try:
                    read_directory(folder)
                except BatchError:
                    continue
                missed.append((batch.base_offset, bit))
        return missed

    @pytest.mark.parametrize("quorum_epoch", [None, 6, 99])
    def test_every_flipped_epoch_bit_of_a_log_is_detected(self, tmp_path: Path, quorum_epoch: int | None) -> None:
        """Epochs never go back, and only a leader change begins one."""
        assert self.flips(tmp_path, self.TWO_EPOCHS, quorum_epoch) == []

    def test_a_leader_change_at_the_very_end_is_held_by_quorum_state(self, tmp_path: Path) -> None:
        """Above its epoch is detected, as is one that does not grow; between them the log alone cannot tell.

        Such a directory proves nothing by itself: beside another one their epochs differ at that offset.
        """
        whole = leader_change(0, 1) + log(topic("a", T1), base=1) + leader_change(2, 6)
        missed = self.flips(tmp_path, whole, 6)
        assert {offset for offset, _ in missed} == {2}
        assert [6 ^ (1 << (bit % 8)) for _, bit in missed] == [4, 2]

    def test_a_snapshots_epoch_is_that_of_its_name(self) -> None:
        """So that not one of the epoch's bits may differ."""
        starts = [found.position for found in split(snapshot_64k(), where="whole")][:2]
        for bit in (bit for start in starts for bit in range((start + 12) * 8, (start + 16) * 8)):
            with pytest.raises((SnapshotError, BatchError), match="epoch"):
                read_snapshot(flipped(snapshot_64k(), bit))


class TestCorpus:
    """Damaged records and files kept because each ends in its own way."""

    CASES = json.loads(CORPUS.read_text("utf-8")) if CORPUS.exists() else []

    def test_the_corpus_holds_every_end(self) -> None:
        """Each error that damage can lead to, and valid images."""
        assert {case["ends"] for case in self.CASES} == {
            "image",
            "E-WIRE-01",
            "E-WIRE-03",
            "E-BATCH-01",
            "E-BATCH-02",
            "E-BATCH-03",
            "E-KRAFT-02",
            "E-KRAFT-03",
        }

    @pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']}: {case['says'][:60]}" for case in CASES])
    def test_it_ends_as_it_did(self, case: dict[str, str], tmp_path: Path) -> None:
        """With the same error and the same words, or as an image."""
        raw = base64.b64decode(case["data"])
        reader = {"record": read_record, "snapshot": read_snapshot}.get(case["kind"]) or damage.log_reader(tmp_path)
        assert Tally().run(reader, raw) == case["ends"]
        if case["ends"] != "image":
            with pytest.raises(InputError) as caught:
                reader(raw)
            assert caught.value.what == case["says"]
            assert isinstance(caught.value, DecodeError) == case["ends"].startswith(("E-WIRE", "E-BATCH"))
