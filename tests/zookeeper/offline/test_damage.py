"""Damage of any byte of a snapshot or a log ends in a typed error or in the same tree: never in another one."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import MigrateError, ZookeeperFileDamaged
from migrate.zookeeper.offline.files import find_files, load
from migrate.zookeeper.offline.snapshot import SNAPPY_HEAD, unpacked
from tests.zookeeper.offline.written import (
    SESSION,
    Kept,
    acl,
    close_session,
    create,
    data_dir,
    delete,
    i32,
    i64,
    log,
    multi,
    sealed,
    set_data,
    snapshot,
)

SNAPSHOT = snapshot(
    {"/k": Kept(b"data", acl=5), "/k/e": Kept(b"\0" * 40, owner=7), "/k/n": Kept(None)},
    acls={5: acl((31, "world", "anyone"), (1, "sasl", "kafka"))},
    sessions=[7],
    last=9,
)
LOG = log(
    10,
    [create("/b", b"BBBB" * 8), SESSION, multi(set_data("/b", b"x"), delete("/k/n")), close_session(), create("/z")],
    padding=300,
)
Tree = dict[str, tuple[bytes | None, object, bytes]]


def snappy_stream(content: bytes, block: int = 64) -> bytes:
    """Packed as snappy-java packs: here all literals, which is allowed."""
    out = SNAPPY_HEAD
    for start in range(0, len(content), block):
        piece = content[start : start + block]
        packed = bytes([len(piece), (len(piece) - 1) << 2]) + piece if len(piece) <= 60 else literal(piece)
        out += i32(len(packed)) + packed
    return out


def literal(piece: bytes) -> bytes:
    """A block of one literal of 61 to 127 bytes."""
    return bytes([len(piece), 60 << 2, len(piece) - 1]) + piece


def tree_of(folder: Path, name: str, content: bytes, other: dict[str, bytes]) -> Tree:
    """The tree where that file has that content."""
    tree = load(find_files([data_dir(folder, **other, **{name: content})])).tree
    return {path: (node.data, node.acl, node.stat) for path, node in tree.nodes.items()}


def outcome(folder: Path, name: str, content: bytes) -> Tree | MigrateError:
    """The tree where that file has that content beside those that lie there, or the typed error."""
    try:
        return tree_of(folder, name, content, {})
    except MigrateError as error:
        return error


CASES: dict[str, tuple[str, bytes, dict[str, bytes]]] = {
    "snapshot": ("snapshot_9", SNAPSHOT, {"log_a": LOG}),
    "gz": ("snapshot_9_gz", gzip.compress(SNAPSHOT), {"log_a": LOG}),
    "snappy": ("snapshot_9_snappy", snappy_stream(SNAPSHOT), {"log_a": LOG}),
    "log": ("log_a", LOG, {"snapshot_9": SNAPSHOT}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_file_cut_at_any_byte_is_an_error_or_the_same_tree(case: str, tmp_path: Path) -> None:
    """The same: only where zeros, or seals that older servers do not write, are what is missing."""
    name, content, other = CASES[case]
    whole = tree_of(tmp_path, name, content, other)
    harmless = []
    for size in range(len(content)):
        found = outcome(tmp_path, name, content[:size])
        if isinstance(found, MigrateError):
            assert isinstance(found, ZookeeperFileDamaged), size
            assert f"{name.replace('_', '.')}" in found.where
            assert "byte " in found.where
        else:
            assert found == whole, size
            harmless.append(size)
    end = len(LOG) - 300
    expected = {"snapshot": [len(SNAPSHOT) - 21], "gz": [], "snappy": None, "log": list(range(end + 12, len(LOG)))}
    assert expected[case] is None or harmless == expected[case]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_any_flipped_bit_is_an_error_or_harmless(case: str, tmp_path: Path) -> None:
    """Harmless: what leaves the tree the same, as the database's id does, which nobody compares."""
    name, content, other = CASES[case]
    whole = tree_of(tmp_path, name, content, other)
    harmless = set()
    for at in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            found = outcome(tmp_path, name, bytes(flipped))
            if isinstance(found, MigrateError):
                assert found.id.startswith("E-ZKF-")
            else:
                assert found == whole, (at, bit)
                harmless.add(at)
    end = len(LOG) - 300
    allowed = {
        "snapshot": set(),
        "gz": set(range(len(content))),  # deflate can say one thing in several ways; its CRC32 holds the content
        "snappy": set(),
        "log": {*range(8, 16), *range(end, end + 12)},  # a checksum or length, and zeros: an entry being written
    }
    assert harmless <= allowed[case], sorted(harmless - allowed[case])


@given(st.data())
def test_random_bytes_behind_a_right_seal_are_a_typed_error_or_a_tree(data: st.DataObject) -> None:
    """Where the checksum was created again, structure alone must hold."""
    raw = bytearray(SNAPSHOT[:-34])
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=6)):
        raw[at] = data.draw(st.sampled_from([0, 1, 0x2F, 0x7F, 0x80, 0xFF]))
    with tempfile.TemporaryDirectory() as folder:
        data_dir(Path(folder), log_a=LOG)
        found = outcome(Path(folder), "snapshot_9", sealed(bytes(raw)))
    assert not isinstance(found, MigrateError) or found.id.startswith("E-ZKF-")


LIES: dict[str, Callable[[bytes], bytes]] = {
    "a count of sessions": lambda raw: raw[:16] + i32((1 << 31) - 1) + raw[20:],
    "a count below zero": lambda raw: raw[:16] + i32(-5) + raw[20:],
    "a length": lambda raw: raw.replace(i32(4) + b"data", i32((1 << 31) - 1) + b"data"),
    "a length within the cap": lambda raw: raw.replace(i32(4) + b"data", i32(60 << 20) + b"data"),
    "a znode before its parent": lambda raw: raw.replace(i32(4) + b"/k/e", i32(4) + b"/x/e"),
    "a znode twice": lambda raw: raw.replace(i32(4) + b"/k/n", i32(4) + b"/k/e"),
    "another version": lambda raw: raw[:4] + i32(3) + raw[8:],
    "no root": lambda raw: sealed(raw[:20] + i32(0) + i32(1) + b"/"),
    "bytes behind it": lambda raw: raw + b"\0",
}


@pytest.mark.parametrize("lie", LIES)
def test_lying_numbers_are_found_where_they_stand(lie: str, tmp_path: Path) -> None:
    """Without reserving memory for what is not there."""
    content = LIES[lie](SNAPSHOT)
    assert content != SNAPSHOT
    with pytest.raises(ZookeeperFileDamaged, match=r"snapshot\.9, byte \d+: "):
        tree_of(tmp_path, "snapshot_9", content, {"log_a": LOG})


def test_a_log_with_a_hole_of_zeros_is_damaged_not_ended(tmp_path: Path) -> None:
    """ZooKeeper would stop reading there, and start without the rest."""
    hole = LOG[:16] + bytes(40) + LOG[56:]
    with pytest.raises(ZookeeperFileDamaged, match=r"log\.a, byte"):
        tree_of(tmp_path, "log_a", hole, {"snapshot_9": SNAPSHOT})


@pytest.mark.slow
def test_a_log_may_end_behind_the_zeros_that_were_laid_out(tmp_path: Path) -> None:
    """A large entry written across the end of the preallocated 64 MiB; no more zeros are laid out before the next."""
    big = create("/big", b"x" * 30_000_000)
    plain = len(log(10, [big, SESSION], padding=0))
    rest = create("/rest", b"y" * ((64 << 20) - plain + 16 - 5_000))
    last = create("/last", b"z" * 8_000)
    whole = log(10, [big, SESSION, rest, last], padding=0)
    assert len(whole) > (64 << 20) + 16
    assert "/last" in tree_of(tmp_path, "log_a", whole, {"snapshot_9": SNAPSHOT})


def test_bytes_behind_a_gzip_stream_are_damage(tmp_path: Path) -> None:
    """Another member, or anything."""
    for more in (b"x", gzip.compress(b"")):
        with pytest.raises(ZookeeperFileDamaged, match="bytes follow the gzip stream"):
            tree_of(tmp_path, "snapshot_9_gz", gzip.compress(SNAPSHOT) + more, {"log_a": LOG})


def test_a_snapshot_larger_than_a_chunk_is_read_in_chunks(tmp_path: Path) -> None:
    """Offsets and checksums hold across chunks, packed or not."""
    many = snapshot({f"/n{number}": Kept(bytes([number % 251]) * 999) for number in range(4_000)}, last=9)
    plain = tree_of(tmp_path / "1", "snapshot_9", many, {})
    assert len(plain) == 4_001
    assert tree_of(tmp_path / "2", "snapshot_9_gz", gzip.compress(many), {}) == plain
    with pytest.raises(ZookeeperFileDamaged, match="Adler32") as caught:
        tree_of(tmp_path / "3", "snapshot_9", many[:3_000_000] + b"?" + many[3_000_001:], {})
    assert f"byte {len(many) - 34}" in caught.value.where


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (b"\x00", b""),
        (b"\x05\x10hello", b"hello"),
        (b"\x0a\x00a\x15\x01\x00a"[:3] + b"\x15\x01", b"a" * 10),  # a run: nine bytes from one byte before
        (b"\x08\x0cabcd\x0e\x04\x00", b"abcdabcd"),  # copy with a 2-byte distance
        (b"\x08\x0cabcd\x0f\x04\x00\x00\x00", b"abcdabcd"),  # with a 4-byte one
        (b"\x46\xf0\x45" + b"q" * 70, b"q" * 70),  # a literal whose length takes a byte
        (b"\x80\x01\xf4\x7f\x00" + b"r" * 128, b"r" * 128),  # or two
    ],
)
def test_snappy_blocks_are_unpacked(block: bytes, content: bytes) -> None:
    """Each kind of element of the format."""
    assert unpacked(block) == content


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x80\x80\x80\x80\x80\x01",
        b"\xff\xff\xff\x7f",
        b"\x05",
        b"\x05\x10hell",
        b"\x04\x10hello",
        b"\x06\x10hello",
        b"\x04\x01\x01",
        b"\x05\x00a\x01\x02",
        b"\x05\x00a\x01\x00",
        b"\x05\x00a\x01",
        b"\x05\x00a\x0e\x01",
        b"\x05\xf0",
    ],
)
def test_what_is_no_snappy_block_is_refused(block: bytes) -> None:
    """Cut, lying, reaching before the beginning."""
    with pytest.raises(ValueError, match="block"):
        unpacked(block)


@given(st.binary(max_size=80))
def test_no_bytes_make_snappy_fail_otherwise(block: bytes) -> None:
    """ValueError, or bytes."""
    with contextlib.suppress(ValueError):
        assert isinstance(unpacked(block), bytes)


def test_a_snappy_stream_of_another_version_is_refused(tmp_path: Path) -> None:
    """Nobody has written one."""
    with pytest.raises(ZookeeperFileDamaged, match="version"):
        tree_of(tmp_path, "snapshot_9_snappy", SNAPPY_HEAD[:-8] + i64(2), {})


def test_the_seal_is_adler32(tmp_path: Path) -> None:
    """Of everything before it."""
    assert i64(zlib.adler32(SNAPSHOT[:-34])) == SNAPSHOT[-34:-26]
