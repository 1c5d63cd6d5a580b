"""Record batches: each rule that makes a batch believable, broken once."""

from __future__ import annotations

import io
import struct

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import BatchCrcError, BatchCutError, BatchError
from migrate.model import limits
from migrate.protocol.batches import Batch, parse, split, stream
from tests.testing.encoding import build

ONE = build(0, 1, [(None, b"a"), (None, b"bc")], timestamp=5)
TWO = build(2, 1, [(b"\0\0\0\2", b"x")], control=True)
THREE = build(3, 4, [(None, b"d")])


def read(raw: bytes) -> list[Batch]:
    """The same through both doors: bytes at once, and an open file."""
    at_once = list(split(raw, where="log"))
    assert list(stream(io.BytesIO(raw), where="log")) == at_once
    return at_once


def forged(raw: bytes, at: int, value: bytes) -> bytes:
    """A batch with other bytes and a CRC that is right again."""
    changed = bytearray(raw)
    changed[at : at + len(value)] = value
    changed[17:21] = struct.pack(">I", google_crc32c.value(bytes(changed[21:])))
    return bytes(changed)


class TestWholeBatches:
    """What is whole is read."""

    def test_records_have_offsets_keys_and_values(self) -> None:
        """And their batch says epoch, kind and position."""
        first, second, third = read(ONE + TWO + THREE)
        assert list(first.records()) == [(0, None, b"a"), (1, None, b"bc")]
        assert list(second.records()) == [(2, b"\0\0\0\2", b"x")]
        assert (first.control, second.control, third.epoch) == (False, True, 4)
        assert [batch.position for batch in (first, second, third)] == [0, len(ONE), len(ONE) + len(TWO)]
        assert first.timestamp == 5
        assert third.place == f"log at position {len(ONE) + len(TWO)}"

    def test_nothing_is_no_batch(self) -> None:
        """An empty file or answer."""
        assert read(b"") == []

    @pytest.mark.slow
    @given(
        st.lists(
            st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9)), min_size=1, max_size=9
        ),
        st.integers(0, 2**40),
        st.integers(0, 2**31 - 1),
    )
    def test_what_is_built_is_read(
        self, records: list[tuple[bytes | None, bytes | None]], base: int, epoch: int
    ) -> None:
        """Any records, any offset and epoch."""
        (batch,) = read(build(base, epoch, records))
        assert [(key, value) for _, key, value in batch.records()] == records
        assert (batch.base_offset, batch.last_offset, batch.epoch) == (base, base + len(records) - 1, epoch)


class TestDamage:
    """What is damaged is an error with file and position."""

    @pytest.mark.parametrize("raw", [ONE + TWO, ONE])
    def test_a_file_cut_inside_a_batch_is_an_error(self, raw: bytes) -> None:
        """At every byte, except between two batches."""
        for end in set(range(1, len(raw))) - {len(ONE)}:
            with pytest.raises(BatchCutError) as caught:
                read(raw[:end])
            assert caught.value.where.startswith("log at position")

    def test_every_flipped_bit_of_a_file_is_found_or_means_the_same(self) -> None:
        """Only the epoch of a last batch may rise unseen: no CRC covers it, and nothing follows it."""
        good = ONE + TWO + THREE
        payload = [list(batch.records()) for batch in split(good, where="log")]
        unseen = set()
        for bit in range(len(good) * 8):
            raw = bytearray(good)
            raw[bit // 8] ^= 1 << (bit % 8)
            try:
                found = [list(batch.records()) for batch in split(bytes(raw), where="log")]
            except BatchError:
                continue
            assert found == payload
            unseen.add(bit // 8)
        epochs = {start + index for start in (0, len(ONE), len(ONE) + len(TWO)) for index in range(12, 16)}
        assert unseen <= epochs

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (forged(ONE, 16, b"\1"), "magic 1"),
            (forged(ONE, 21, b"\0\4"), "compressed batch .codec 4."),
            (forged(ONE, 23, struct.pack(">i", 2)), "2 records whose last offset delta is 2"),
            (forged(ONE, 57, struct.pack(">i", 0)), "0 records"),
            (struct.pack(">q", -1) + ONE[8:], "base offset -1"),
            (ONE[:12] + struct.pack(">i", -1) + ONE[16:], "epoch -1"),
            (ONE[:8] + struct.pack(">i", 48) + ONE[12:], "says the length 48"),
            (ONE[:8] + struct.pack(">i", -5) + ONE[12:], "says the length -5"),
            (ONE[:8] + struct.pack(">i", limits.most("batch") + 1) + ONE[12:], "says the length"),
            (ONE + THREE, "begins at offset 3; 2 was due"),
            (ONE + build(2, 0, [(None, b"")]), "epoch 0 follows one of epoch 1"),
        ],
    )
    def test_each_rule_is_held(self, raw: bytes, says: str) -> None:
        """Before a record is looked at."""
        with pytest.raises(BatchError, match=says):
            read(raw)

    def test_a_wrong_crc_is_its_own_error(self) -> None:
        """The most common damage has its own id."""
        with pytest.raises(BatchCrcError):
            read(ONE[:-1] + b"\xff")

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            ("10 00 00 00 01 02 61 00", "record says 8 bytes"),
            ("0e 00 00 02 01 02 61 00", "offset delta 1"),
            ("0e 00 00 00 01 08 61 00", "key or value says 4 bytes"),
            ("0e 00 00 00 01 02 61 02", "1 headers"),
            ("10 00 00 00 01 02 61 00 00", "8 bytes has 7 bytes of fields"),
            ("0e 00 00 00 01 02 61 00 00", "1 bytes follow the last record"),
            ("01 00", "record says -1 bytes"),
            ("0e 80 80 80 80 80 80 80", "past the end"),
        ],
    )
    def test_records_that_contradict_their_batch_are_refused(self, body: str, says: str) -> None:
        """Lengths, deltas, headers, rests: the CRC is right, the writer was not."""
        tail = ONE[21:57] + struct.pack(">i", 1) + bytes.fromhex(body)
        tail = tail[:2] + struct.pack(">i", 0) + tail[6:]
        raw = struct.pack(">qiibI", 0, len(tail) + 9, 1, 2, google_crc32c.value(tail)) + tail
        batch = parse(raw, where="log", position=0)
        with pytest.raises(BatchError, match=says) as caught:
            list(batch.records())
        assert caught.value.where == "log at position 0"


class TestAnswersOfAFetch:
    """A Fetch answer may end inside a batch: the next answer brings it whole."""

    @pytest.mark.parametrize("end", [1, 11, 12, 40, len(TWO) - 1])
    def test_a_cut_last_batch_is_left_out(self, end: int) -> None:
        """The batches before it stand."""
        found = list(split(ONE + TWO[:end], where="answer", partial_tail=True))
        assert [batch.base_offset for batch in found] == [0]

    def test_a_cut_only_batch_is_an_error(self) -> None:
        """The node sends at least one whole batch: waiting for more would never end."""
        with pytest.raises(BatchCutError):
            list(split(ONE[:50], where="answer", partial_tail=True))
