"""Offsets, the cut at the high watermark, transactions, snapshots: the image is whole or it is not there."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.errors import BatchCutError, BatchError, DecodeError, ReplayError, SnapshotError
from migrate.kraft.image import Image
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView
from migrate.protocol import records
from migrate.protocol.batches import split
from tests.kraft.logs import (
    D1,
    D2,
    T1,
    T2,
    Entry,
    batch,
    captured_log,
    change,
    leader_change,
    log,
    partition,
    snapshot,
    topic,
)
from tests.testing.encoding import build, encode_control

DIGESTER = Digester(b"k" * 32)
BEGIN: Entry = (records.BEGIN_TRANSACTION, {"name": "a test"})
END: Entry = (records.END_TRANSACTION, {})
ABORT: Entry = (records.ABORT_TRANSACTION, {"reason": "a test"})
NO_OP: Entry = (records.NO_OP, {})
HEADER = encode_control("SNAPSHOT_HEADER", {"version": 0})
FOOTER = encode_control("SNAPSHOT_FOOTER", {"version": 0})
LARGEST_BATCH = 12884  # bytes, in the captured log


def fresh() -> Image:
    """An empty image."""
    return Image(DIGESTER)


def seen(image: Image) -> KraftView:
    """Its view, without a word on what is committed."""
    return image.view("cluster", Unknown("a test"), "a test")


def topics_of(image: Image) -> list[str]:
    """Names of its topics."""
    columns = seen(image).entities
    return [key for kind, key in zip(columns.kind, columns.key, strict=True) if kind == "topic"]


class TestOffsets:
    """Nothing is missed, nothing is applied twice."""

    def test_an_empty_image_stands_before_the_first_offset(self) -> None:
        """Offset -1, and the next to fetch is 0."""
        view = seen(fresh())
        assert (view.offset, view.epoch, fresh().next_offset) == (-1, 0, 0)
        assert not view.committed

    def test_the_view_says_offset_and_epoch(self) -> None:
        """Of the last record, control records included."""
        image = fresh()
        image.apply_batches(leader_change(0, 4) + log(topic("a", T1), base=1, epoch=4), below=None)
        view = image.view("cluster", 2, "c3000")
        assert (view.offset, view.epoch, view.source, view.cluster_id) == (1, 4, "c3000", "cluster")
        assert view.committed
        assert not image.view("cluster", 1, "c3000").committed

    def test_what_was_applied_is_passed_over(self) -> None:
        """An answer may begin below the asked offset, also inside a batch."""
        image = fresh()
        both = batch(topic("a", T1), topic("b", T2))
        image.apply_batches(both, below=1)
        assert topics_of(image) == ["a"]
        image.apply_batches(both, below=None)
        image.apply_batches(both, below=None)
        assert topics_of(image) == ["a", "b"]
        assert image.next_offset == 2

    def test_a_gap_is_an_error(self) -> None:
        """The log went on without us."""
        image = fresh()
        with pytest.raises(ReplayError, match="begins at offset 1; 0 was due"):
            image.apply_batches(log(topic("a", T1), base=1), below=None)

    def test_an_epoch_that_goes_back_is_an_error(self) -> None:
        """The log was truncated under us, or comes from another place."""
        image = fresh()
        image.apply_batches(log(NO_OP, epoch=5), below=None)
        with pytest.raises(ReplayError, match="epoch 4 follows one of epoch 5"):
            image.apply_batches(log(NO_OP, base=1, epoch=4), below=None)

    def test_nothing_at_or_above_the_high_watermark_is_applied(self) -> None:
        """The leader serves uncommitted records too."""
        image = fresh()
        raw = log(topic("a", T1), NO_OP, topic("b", T2))
        for below, offset, names in ((0, -1, []), (1, 0, ["a"]), (2, 1, ["a"]), (3, 2, ["a", "b"]), (9, 2, ["a", "b"])):
            image.apply_batches(raw, below=below)
            assert (seen(image).offset, topics_of(image)) == (offset, names)

    def test_a_cut_last_batch_waits_for_the_next_answer(self) -> None:
        """As a Fetch answer ends."""
        raw = log(topic("a", T1), topic("b", T2))
        image = fresh()
        image.apply_batches(raw[:-3], below=None)
        assert topics_of(image) == ["a"]
        image.apply_batches(raw, below=None)
        assert topics_of(image) == ["a", "b"]


class TestTransactions:
    """KIP-868: whole or not at all."""

    RAW = log(topic("a", T1), BEGIN, topic("b", T2), partition(T2, 0, [1], [D1]), END, NO_OP)

    def test_an_open_transaction_is_not_in_the_image(self) -> None:
        """The image stands before its beginning; what to fetch next goes on."""
        for below, offset in ((1, 0), (2, 0), (3, 0), (4, 0), (5, 4), (6, 5)):
            image = fresh()
            image.apply_batches(self.RAW, below=below)
            view = seen(image)
            assert (view.offset, image.next_offset) == (offset, below)
            assert topics_of(image) == (["a", "b"] if below >= 5 else ["a"])
            assert len(view.partitions) == (1 if below >= 5 else 0)

    def test_it_appears_whole_when_its_end_is_applied_later(self) -> None:
        """Across answers."""
        image = fresh()
        for below in range(1, 7):
            image.apply_batches(self.RAW, below=below)
            assert len(topics_of(image)) == 1 + len(seen(image).partitions)
        assert topics_of(image) == ["a", "b"]

    def test_the_epoch_of_an_open_transaction_is_not_the_images(self) -> None:
        """Offset and epoch belong together."""
        image = fresh()
        image.apply_batches(log(topic("a", T1), epoch=1) + log(BEGIN, topic("b", T2), base=1, epoch=2), below=None)
        view = seen(image)
        assert (view.offset, view.epoch, image.fetched_epoch) == (0, 1, 2)

    def test_an_aborted_transaction_leaves_nothing(self) -> None:
        """And what follows counts."""
        image = fresh()
        image.apply_batches(log(BEGIN, topic("a", T1), ABORT, topic("b", T2)), below=None)
        assert topics_of(image) == ["b"]
        assert seen(image).offset == 3

    @pytest.mark.parametrize(
        ("entries", "says"),
        [
            ([END], "ends that has not begun"),
            ([ABORT], "ends that has not begun"),
            ([BEGIN, BEGIN], "begins inside a transaction"),
            ([BEGIN, END, END], "ends that has not begun"),
        ],
    )
    def test_brackets_that_do_not_match_are_errors(self, entries: list[Entry], says: str) -> None:
        """As in `MetadataBatchLoader`."""
        with pytest.raises(ReplayError, match=says):
            fresh().apply_batches(log(*entries), below=None)

    @pytest.mark.slow
    @settings(deadline=None, max_examples=15)
    @given(st.data())
    def test_the_captured_copy_is_never_half_applied(self, data: st.DataObject) -> None:
        """The real one: 400 records in one transaction, cut at any offset, read in any pieces."""
        image, raw = fresh(), captured_log()
        for below in sorted(data.draw(st.lists(st.integers(150, 700), min_size=1, max_size=4))):
            image.apply_batches(raw, below=below)
            view = seen(image)
            assert image.next_offset == below
            assert len(view.partitions) in {0, 212}
            assert len(topics_of(image)) in {0, 24}
            assert (len(view.partitions) == 212) == (view.migration_state.name == "MIGRATION")


class TestErrors:
    """After an error the image is not to be trusted."""

    def test_an_image_that_broke_off_refuses_everything_until_it_begins_anew(self) -> None:
        """The first record of the batch is in it, the second could not be."""
        image = fresh()
        with pytest.raises(ReplayError, match=r"topic .* is unknown"):
            image.apply_batches(batch(topic("a", T1), change(T2, 0)), below=None)
        with pytest.raises(ReplayError, match="broke off"):
            seen(image)
        with pytest.raises(ReplayError, match="broke off"):
            image.apply_batches(b"", below=None)
        image.reset()
        assert seen(image).offset == -1

    def test_batches_are_checked_before_the_first_is_applied(self) -> None:
        """A damaged answer leaves the image as it was."""
        image = fresh()
        good = log(topic("a", T1))
        with pytest.raises(BatchError):
            image.apply_batches(good + log(topic("b", T2), base=1)[:-1] + b"\xff", below=None)
        assert seen(image).offset == -1

    def test_an_unknown_record_is_named_with_its_place(self) -> None:
        """Answer, position and offset."""
        with pytest.raises(DecodeError, match="unknown type 6") as caught:
            fresh().apply_batches(log(NO_OP) + build(1, 1, [(None, b"\1\6\0")]), below=None, where="c3000")
        assert caught.value.where.startswith("c3000 at position")
        assert caught.value.where.endswith("offset 1")

    def test_an_unknown_control_record_is_named_with_its_place(self) -> None:
        """Control records are checked too."""
        with pytest.raises(DecodeError, match="control record of type 9") as caught:
            fresh().apply_batches(build(0, 1, [(b"\0\0\0\x09", b"\0\0")], control=True), below=None)
        assert "position 0" in caught.value.where


class TestSnapshots:
    """Header first, footer last, one epoch."""

    DATA = (topic("a", T1), partition(T1, 0, [1, 2], [D1, D2]))

    def test_a_snapshot_begins_the_image_anew(self) -> None:
        """Its offsets are no log offsets: the log goes on at its end offset."""
        image = fresh()
        image.apply_batches(log(topic("b", T2)), below=None)
        image.load_snapshot(snapshot(*self.DATA), 100, 3)
        view = seen(image)
        assert (view.offset, view.epoch, image.next_offset, image.fetched_epoch) == (99, 3, 100, 3)
        assert topics_of(image) == ["a"]
        image.apply_batches(log(change(T1, 0, isr=[1]), base=100, epoch=3), below=None)
        assert seen(image).partitions.isr == [[1]]

    def test_an_empty_snapshot_is_whole(self) -> None:
        """Header and footer."""
        image = fresh()
        image.load_snapshot(snapshot(), 1, 3)
        assert seen(image).offset == 0

    def test_rows_from_a_snapshot_name_it(self) -> None:
        """The offset inside a snapshot means nothing to a reader."""
        image = fresh()
        image.load_snapshot(snapshot(*self.DATA), 100, 3)
        assert seen(image).entities.where == ["snapshot 100-3"]

    def test_kraft_version_is_rafts_and_no_feature(self) -> None:
        """A FeatureLevelRecord of that name has no effect on Raft (KAFKA-18979)."""
        kraft = encode_control("KRAFT_VERSION", {"version": 0, "kRaftVersion": 1})
        image = fresh()
        image.load_snapshot(build(0, 0, [HEADER, kraft], control=True) + build(2, 0, [FOOTER], control=True), 5, 0)
        assert (seen(image).kraft_version, seen(image).features) == (1, {})
        other = fresh()
        level = {"name": "kraft.version", "featureLevel": 1}
        other.apply_batches(log((records.FEATURE_LEVEL, level)), below=None)
        assert (seen(other).kraft_version, seen(other).features) == (0, {"kraft.version": 1})

    def test_a_snapshot_cut_at_any_byte_is_refused_and_changes_nothing(self) -> None:
        """Also where the cut falls between two batches: the footer is missing."""
        raw = snapshot(*self.DATA)
        image = fresh()
        image.apply_batches(log(topic("b", T2)), below=None)
        for end in range(len(raw)):
            with pytest.raises((SnapshotError, BatchCutError)):
                image.load_snapshot(raw[:end], 100, 3)
        assert topics_of(image) == ["b"]

    def test_every_flipped_bit_of_a_snapshot_is_found(self) -> None:
        """Its epoch is known beforehand, so that not even that may differ."""
        raw = snapshot(*self.DATA)
        for bit in range(len(raw) * 8):
            damaged = bytearray(raw)
            damaged[bit // 8] ^= 1 << (bit % 8)
            with pytest.raises((SnapshotError, BatchError)):
                fresh().load_snapshot(bytes(damaged), 100, 3)

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (b"", "without its footer"),
            (snapshot(epoch=2), "epoch 2 at offset 0; epoch 3"),
            (log(topic("a", T1), epoch=3), "does not begin with its header"),
            (snapshot(BEGIN), "part of a transaction"),
            (snapshot() + log(NO_OP, base=2, epoch=3), "follows the snapshot's footer"),
            (
                build(0, 3, [FOOTER], control=True),
                "SNAPSHOT_FOOTER at offset 0",
            ),
        ],
    )
    def test_each_rule_is_held(self, raw: bytes, says: str) -> None:
        """A snapshot that is not whole is no snapshot."""
        with pytest.raises(SnapshotError, match=says):
            fresh().load_snapshot(raw, 100, 3)

    def test_a_snapshot_of_the_image_equals_the_log(self) -> None:
        """Replaying the log's tail on a snapshot gives what the whole log gives."""
        head, tail = log(*self.DATA, epoch=3), log(change(T1, 0, leader=2), base=2, epoch=3)
        by_log, by_snapshot = fresh(), fresh()
        by_log.apply_batches(head + tail, below=None)
        by_snapshot.load_snapshot(snapshot(*self.DATA), 2, 3)
        by_snapshot.apply_batches(tail, below=None)
        assert seen(by_log).partitions == seen(by_snapshot).partitions


class TestIncrements:
    """The image grows; views are cheap."""

    def test_columns_are_shared_while_nothing_in_them_has_changed(self) -> None:
        """A NoOpRecord every half second makes no new columns; a partition's change leaves the entities."""
        image = fresh()
        image.apply_batches(log(topic("a", T1), partition(T1, 0, [1], [D1])), below=None)
        first = seen(image)
        image.apply_batches(log(NO_OP, base=2), below=None)
        second = seen(image)
        assert second.partitions is first.partitions
        assert second.entities is first.entities
        image.apply_batches(log(change(T1, 0, leader=-1), base=3), below=None)
        third = seen(image)
        assert third.partitions is not first.partitions
        assert third.entities is first.entities

    @pytest.mark.slow
    @settings(deadline=None, max_examples=10)
    @given(st.lists(st.integers(1, 142910), max_size=8))
    def test_any_pieces_give_the_same_image(self, cuts: list[int]) -> None:
        """The captured log, fetched in answers that end anywhere."""
        raw = captured_log()
        starts = {found.base_offset: found.position for found in split(raw, where="log")}
        image = fresh()
        for end in [*sorted(cuts), len(raw)]:
            begin = starts.get(image.next_offset, 0)
            if end - begin > LARGEST_BATCH or end == len(raw):
                image.apply_batches(raw[begin:end], below=None)
        whole = fresh()
        whole.apply_batches(raw, below=None)
        assert seen(image) == seen(whole)


class TestTheCopysEnd:
    """A run keeps the metadata as Kafka's copy left it: it is held against what ZooKeeper had before."""

    def test_a_real_copy_is_kept_as_its_transaction_left_it(self) -> None:
        """With its records by type; what comes later changes nothing of it."""
        image = Image(Digester(), keep_copy=True)
        image.apply_batches(captured_log(), below=None)
        end = image.copy_end
        assert end is not None
        assert end.offset < image.offset
        assert end.records["TOPIC_RECORD"] == len(set(end.partitions.topic))
        assert end.records["PARTITION_RECORD"] == len(end.partitions)
        assert end.records["ACCESS_CONTROL_ENTRY_RECORD"] == end.entities.counts()["acl"]
        earlier = Image(Digester())
        earlier.apply_batches(captured_log(), below=end.offset + 1)
        view = earlier.view("", 0, "")
        assert view.partitions == end.partitions
        assert view.migration_state is ZkMigrationState.MIGRATION
        before = Image(Digester(), keep_copy=True)
        before.apply_batches(captured_log(), below=end.offset)
        assert before.copy_end is None
        assert before.view("", 0, "").waiting == sum(end.records.values())

    @pytest.mark.slow
    def test_nobody_keeps_it_unasked_and_a_log_read_anew_is_kept_anew(self) -> None:
        """A large cluster's columns are not kept twice for nothing."""
        image = Image(Digester())
        image.apply_batches(captured_log(), below=None)
        assert image.copy_end is None
        keeping = Image(Digester(), keep_copy=True)
        keeping.apply_batches(captured_log(), below=None)
        first = keeping.copy_end
        keeping.reset()
        assert keeping.copy_end is None
        keeping.apply_batches(captured_log(), below=None)
        assert keeping.copy_end is not first
