"""NoOps in a row, passed over together, are the batches that the reference reads one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import MigrateError
from migrate.kraft.files import find, load, read_batches, read_segment
from migrate.kraft.image import Image
from migrate.kraft.quorum_files import Marks, common_end, read_directory
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.protocol import records
from migrate.protocol.batches import Batch, Idle
from tests.kraft.logs import D1, T1, T2, captured_log, leader_change, log, partition, topic
from tests.kraft.test_quorum_files import SEGMENT, directory
from tests.testing.encoding import build, encode_record

DIGESTER = Digester(b"k" * 32)


def view(image: Image) -> KraftView:
    """What the image holds."""
    return image.view("", Unknown("not asked"), "")


NO_OP = (None, encode_record(records.NO_OP, 0, {}))


def noops(count: int, base: int, epoch: int = 1, since: int = 1_700_000_000_000) -> bytes:
    """That many, half a second apart."""
    return b"".join(build(base + one, epoch, [NO_OP], timestamp=since + 500 * one) for one in range(count))


def segment(folder: Path, raw: bytes) -> Path:
    """A first segment with these bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SEGMENT
    path.write_bytes(raw)
    return path


def marks(path: Path, *, reference: bool) -> tuple[list[int], list[int], list[int], bytes]:
    """What a log's lineage keeps of its batches."""
    found = Marks()
    for one in read_batches(path) if reference else read_segment(path):
        found.add(one)
    return list(found.bases), list(found.lasts), list(found.epochs), bytes(found.crcs)


def outcome(path: Path, *, reference: bool) -> object:
    """The marks, or the error."""
    try:
        return marks(path, reference=reference)
    except MigrateError as error:
        return type(error), str(error)


def long_log() -> bytes:
    """Two epochs, with topics between NoOps, and some of the NoOps two in a batch."""
    raw = leader_change(0, 1) + log(topic("a", T1), base=1) + noops(700, 2)
    raw += build(702, 1, [NO_OP, NO_OP]) + noops(3, 704)
    raw += leader_change(707, 2) + noops(1, 708, 2) + log(topic("b", T2), base=709, epoch=2) + noops(90, 710, 2)
    return raw


def test_stretches_hold_the_batches_of_the_reference(tmp_path: Path) -> None:
    """Offsets, epochs and CRCs, batch for batch; most of them come in few pieces."""
    path = segment(tmp_path, long_log())
    assert marks(path, reference=False) == marks(path, reference=True)
    found = list(read_segment(path))
    assert sum(one.last_offset - one.base_offset + 1 for one in found if isinstance(one, Idle)) > 700
    assert len(found) < 30


def test_a_real_log_is_read_alike(tmp_path: Path) -> None:
    """As a cluster wrote it, from its first controller to finalized."""
    path = segment(tmp_path, captured_log())
    assert marks(path, reference=False) == marks(path, reference=True)


@pytest.mark.slow
def test_every_damaged_byte_of_a_stretch_is_told_as_the_reference_tells_it(tmp_path: Path) -> None:
    """A flipped bit anywhere, a log cut anywhere: the same error at the same place, or the same batches."""
    raw, size = leader_change(0, 1) + noops(100, 1), len(noops(1, 1))
    for at in (*range(len(raw) - 2 * size, len(raw) - size), *range(0, len(raw), 37)):
        bad = bytearray(raw)
        bad[at] ^= 1 << at % 8
        path = segment(tmp_path, bytes(bad))
        assert outcome(path, reference=False) == outcome(path, reference=True), at
    for cut in (1, size - 1, size, size + 1, 50 * size):
        path = segment(tmp_path, raw[:-cut])
        assert outcome(path, reference=False) == outcome(path, reference=True), cut


@pytest.mark.parametrize("below", [None, 1, 2, 3, 60, 702, 703, 704, 707, 709, 710, 711, 799, 800])
def test_an_image_cut_inside_a_stretch_stands_where_the_reference_stands(tmp_path: Path, below: int | None) -> None:
    """A high watermark may be anywhere."""
    path = segment(tmp_path / "__cluster_metadata-0", long_log())
    image, reference = load(find(path.parent), DIGESTER, below=below), Image(DIGESTER)
    reference.apply(read_batches(path), below=below)
    assert (image.next_offset, image.offset, image.fetched_epoch) == (
        reference.next_offset,
        reference.offset,
        reference.fetched_epoch,
    )
    assert view(image) == view(reference)


def test_a_transaction_stays_open_over_a_stretch(tmp_path: Path) -> None:
    """The image stands before it, however many NoOps follow."""
    begin = log((records.BEGIN_TRANSACTION, {"name": None}), topic("a", T1), base=1)
    raw = leader_change(0, 1) + begin + noops(50, 3) + log((records.END_TRANSACTION, {}), base=53)
    path = segment(tmp_path / "__cluster_metadata-0", raw)
    inside = load(find(path.parent), DIGESTER, below=40)
    assert (inside.next_offset, inside.offset, view(inside).entities.key) == (40, 0, [])
    assert view(load(find(path.parent), DIGESTER)).entities.key == ["a"]


def test_logs_part_where_one_noop_of_a_stretch_differs(tmp_path: Path) -> None:
    """Another time is another record: another leader wrote it."""
    same = leader_change(0, 1) + log(topic("a", T1), partition(T1, 0, [1], [D1]), base=1)
    for at in (0, 1, 2, 77, 498, 499):
        other = noops(at, 3) + noops(500 - at, 3 + at, since=1_800_000_000_000)
        made = (directory(tmp_path / f"{at}", node, same + raw) for node, raw in ((1, noops(500, 3)), (2, other)))
        one, two = (read_directory(*entry).lineage for entry in made)
        assert common_end(one, two) == common_end(two, one) == 3 + at
    short = read_directory(*directory(tmp_path / "short", 3, same + noops(20, 3))).lineage
    assert common_end(one, short) == 23


def test_a_noop_with_something_else_in_it_is_no_part_of_a_stretch(tmp_path: Path) -> None:
    """Control batches, other records and tagged fields of the same size stay batches of their own."""
    tagged = build(30, 1, [(None, b"\x01\x14\x00\x01\x00\x01\x00")])
    path = segment(tmp_path, leader_change(0, 1) + noops(29, 1) + tagged + noops(9, 31))
    found = list(read_segment(path))
    assert any(isinstance(one, Batch) and one.base_offset == 30 for one in found)
    assert marks(path, reference=False) == marks(path, reference=True)
