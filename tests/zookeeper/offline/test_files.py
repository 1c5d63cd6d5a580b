"""Which files are read, what is replayed, and that a hole in them is never overlooked."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest

from migrate.errors import (
    MigrateError,
    TransactionsMissing,
    TreeDigestDiffers,
    ZookeeperFileDamaged,
    ZookeeperFilesMissing,
)
from migrate.zookeeper.offline.files import Loaded, find_files, load
from migrate.zookeeper.offline.tree import Tree
from tests.testing.denied import denied
from tests.zookeeper.offline.written import (
    EPOCH,
    ERROR,
    EVERYBODY,
    SESSION,
    Kept,
    Txn,
    buffer,
    close_session,
    create,
    data_dir,
    delete,
    entry,
    i32,
    i64,
    log,
    multi,
    set_data,
    snapshot,
)

A, B, C = create("/a"), create("/b", cversion=2), create("/c", cversion=3)


def loaded(*folders: Path) -> Loaded:
    """What the folders hold."""
    return load(find_files(folders))


def names(found: Loaded) -> set[str]:
    """Paths of its tree, ZooKeeper's own aside."""
    return {path for path in found.tree.nodes if path and not path.startswith("/zookeeper")}


def test_every_transaction_after_the_snapshot_is_replayed_and_none_before(tmp_path: Path) -> None:
    """The log that was open at the snapshot, and all later ones; older logs are not even opened."""
    found = loaded(
        data_dir(
            tmp_path,
            snapshot_0=snapshot({}),
            snapshot_4=snapshot({"/kept": Kept()}),
            log_1=b"unread",
            log_2=log(2, [create("/not"), SESSION, ERROR, A]),
            log_6=log(6, [B, SESSION]),
            log_8=log(8, [C]),
        )
    )
    assert names(found) == {"/kept", "/a", "/b", "/c"}
    assert (found.zxid, found.transactions, found.digests, found.notes) == (8, 4, 0, ())
    assert found.snapshot == tmp_path / "version-2" / "snapshot.4"
    assert [path.name for path in found.logs] == ["log.2", "log.6", "log.8"]


def test_logs_may_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    """DataLogDir; version-2 may be named itself; what is not ZooKeeper's name is passed over."""
    data = data_dir(tmp_path / "data", snapshot_0=snapshot({}), snapshot_5_tmp=b"?", log_1_gz=b"?", acceptedEpoch=b"1")
    logs = data_dir(tmp_path / "logs", log_1=log(1, [A]))
    assert names(loaded(data, logs)) == names(loaded(data / "version-2", logs)) == {"/a"}


def test_two_files_of_one_zxid_are_refused(tmp_path: Path) -> None:
    """Which is right is not ours to guess; the same folder named twice is no such case."""
    first, second = (data_dir(tmp_path / name, snapshot_0=snapshot({}), log_1=log(1, [A])) for name in "ab")
    with pytest.raises(ZookeeperFilesMissing, match="two files are of the same zxid"):
        loaded(first, second)
    assert names(loaded(first, first)) == {"/a"}


def test_no_file_at_all_is_an_error_with_the_folder(tmp_path: Path) -> None:
    """An empty folder, none, and a file that is a folder."""
    with pytest.raises(ZookeeperFilesMissing, match="no snapshot and no transaction log"):
        loaded(tmp_path)
    with pytest.raises(ZookeeperFilesMissing, match="No such file"):
        loaded(tmp_path / "none")
    (tmp_path / "snapshot.5").mkdir()
    with pytest.raises(ZookeeperFilesMissing, match=r"snapshot\.5"):
        loaded(tmp_path)


def test_a_folder_that_may_not_be_looked_into_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is ZooKeeper's user: no defect, and no folder without files."""
    monkeypatch.setattr(Path, "is_dir", denied)
    with pytest.raises(ZookeeperFilesMissing, match="Permission denied") as caught:
        find_files([tmp_path])
    assert caught.value.where == str(tmp_path)


def test_a_pipe_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    """Who opens it waits for somebody to write."""
    os.mkfifo(tmp_path / "snapshot.5")
    with pytest.raises(ZookeeperFilesMissing, match="no regular file") as caught:
        find_files([tmp_path])
    assert caught.value.where == str(tmp_path / "snapshot.5")


@pytest.mark.parametrize("first", [1, EPOCH + 1])
def test_logs_from_the_first_transaction_on_need_no_snapshot(first: int, tmp_path: Path) -> None:
    """As 3.4 left them; ZooKeeper's own znodes are there from the beginning."""
    (tmp_path / f"log.{first:x}").write_bytes(log(first, [A]))
    found = loaded(tmp_path)
    assert found.snapshot is None
    assert {"", "/zookeeper", "/zookeeper/quota", "/a"} <= set(found.tree.nodes)


GAPS = {
    "no snapshot, and logs that begin later": {"log_2": log(2, [A])},
    "a log is missing": {"snapshot_0": snapshot({}), "log_1": log(1, [A]), "log_3": log(3, [C])},
    "the log after the snapshot is missing": {"snapshot_4": snapshot({}), "log_6": log(6, [A])},
    "a later epoch's first is missing": {
        "snapshot_4": snapshot({}),
        "log_4": log(4, [A]),
        "log_100000002": log(EPOCH + 2, [B]),
    },
    "the numbers go back": {"snapshot_0": snapshot({}), "log_1": log(1, [A, B, C]), "log_2": log(2, [C])},
    "the snapshot is fuzzy beyond the logs": {
        "snapshot_3": snapshot({"/a": Kept(zxid=6)}),
        "log_3": log(3, [SESSION, A]),
    },
    "the snapshot says that more had come": {"snapshot_3": snapshot({}, last=5), "log_3": log(3, [SESSION, A])},
    "a snapshot alone": {"snapshot_3": snapshot({})},
    "a snapshot with older logs only": {"snapshot_3": snapshot({}), "log_1": log(1, [A])},
    "the newest snapshot is damaged and the logs do not reach it": {
        "snapshot_9": b"ZKSN",
        "snapshot_0": snapshot({}),
        "log_1": log(1, [A]),
    },
}


@pytest.mark.parametrize("files", GAPS.values(), ids=GAPS.keys())
def test_a_gap_is_named(files: dict[str, bytes], tmp_path: Path) -> None:
    """Never a tree with something left out."""
    with pytest.raises(TransactionsMissing) as caught:
        loaded(data_dir(tmp_path, **files))
    assert str(tmp_path) in caught.value.where
    assert "0x" in caught.value.what


WHOLE = {
    "a later epoch follows": {
        "snapshot_4": snapshot({}),
        "log_4": log(4, [SESSION]),
        "log_300000001": log(3 * EPOCH + 1, [A]),
    },
    "the snapshot is a new leader's": {"snapshot_200000000": snapshot({}), "log_4": log(4, [SESSION])},
    "the snapshot says that nothing had come": {"snapshot_3": snapshot({}, last=3)},
    "its digest says so": {"snapshot_3": snapshot({}, digest=(3, 1, 0))},
    "the log reaches the snapshot": {"snapshot_3": snapshot({}), "log_2": log(2, [A, B])},
    "the snapshot is fuzzy as far as the logs go": {
        "snapshot_3": snapshot({"/a": Kept(zxid=5)}),
        "log_3": log(3, [SESSION, A, create("/a")]),
    },
}


@pytest.mark.parametrize("files", WHOLE.values(), ids=WHOLE.keys())
def test_what_is_whole_is_not_refused(files: dict[str, bytes], tmp_path: Path) -> None:
    """Counter-examples of the gaps."""
    assert loaded(data_dir(tmp_path, **files)).notes == ()


def test_a_damaged_snapshot_gives_way_to_an_older_one_whose_logs_reach_as_far(tmp_path: Path) -> None:
    """As ZooKeeper starts after a crash in the middle of a snapshot; the damage is told."""
    whole = {"snapshot_0": snapshot({}), "log_1": log(1, [A, B])}
    found = loaded(data_dir(tmp_path, **whole, snapshot_2=snapshot({"/x": Kept()})[:-30]))
    assert names(found) == {"/a", "/b"}
    (note,) = found.notes
    assert "snapshot.2, byte " in note
    assert "older snapshot" in note


def test_where_all_snapshots_are_damaged_the_newest_ones_error_is_told(tmp_path: Path) -> None:
    """With file and byte."""
    with pytest.raises(ZookeeperFileDamaged, match=r"snapshot\.2, byte 0"):
        loaded(data_dir(tmp_path, snapshot_0=b"ZKSN", snapshot_2=b"ZKLG" + bytes(90), log_1=log(1, [A, B])))


def test_an_entry_that_was_being_written_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    """A crash leaves it: nobody was told that the transaction is done."""
    half = log(1, [A, B], padding=0)[:-20] + bytes(500)
    found = loaded(data_dir(tmp_path, snapshot_0=snapshot({}), log_1=half))
    assert names(found) == {"/a"}
    (note,) = found.notes
    assert "was being written" in note
    assert "0x1 " in note


def test_a_torn_log_matters_only_where_something_is_lost(tmp_path: Path) -> None:
    """The next log goes on with the torn transaction's number: it was never there.  Else it is a gap, or a cut file."""
    torn = log(1, [A, B], padding=0)[:-20]
    files = {"snapshot_0": snapshot({}), "log_1": torn}
    assert names(loaded(data_dir(tmp_path / "1", **files, log_2=log(2, [C])))) == {"/a", "/c"}
    with pytest.raises(TransactionsMissing):
        loaded(data_dir(tmp_path / "2", **files, log_3=log(3, [C])))
    with pytest.raises(ZookeeperFileDamaged, match=r"log\.1, byte \d+: the log is cut short"):
        loaded(data_dir(tmp_path / "3", **files, log_100000001=log(EPOCH + 1, [C])))
    with pytest.raises(ZookeeperFileDamaged, match=r"log\.1, byte \d+: the log is cut short"):
        loaded(data_dir(tmp_path / "4", **files))


def replayed(tmp_path: Path, znodes: dict[str, Kept], *txns: Txn) -> Tree:
    """A tree after transactions 10, 11, ..."""
    files = {"snapshot_9": snapshot(znodes, sessions=[7]), "log_a": log(10, txns)}
    return loaded(data_dir(tmp_path, **files)).tree


def test_changes_are_made_as_zookeeper_makes_them(tmp_path: Path) -> None:
    """Data, version and zxids; a child touches its parent's cversion and pzxid; null data stays null."""
    timed = Txn(21, buffer("/t") + buffer(None) + EVERYBODY + i32(5) + i64(60_000))
    container = Txn(19, buffer("/q") + buffer(b"q") + EVERYBODY + i32(4))
    acl = Txn(7, buffer("/a") + i32(1) + i32(1) + buffer("sasl") + buffer("kafka") + i32(3))
    txns = [set_data("/a", b"new", 8), create("/a/b", None, kind=15), container, timed, acl, set_data("/none", b"", 1)]
    nodes = replayed(tmp_path, {"/a": Kept(b"old")}, *txns).nodes
    assert nodes["/a"].znode() == (b"new", 8, 1, 10, 0, 0)
    assert nodes["/a"].acl == ((1, "sasl", "kafka"),)
    assert nodes["/a/b"].znode() == (None, 0, 11, 11, 0, 0)
    assert nodes["/q"].znode() == (b"q", 0, 12, 12, 0, 0)
    assert nodes["/t"].znode() == (None, 0, 13, 13, 0, 0)
    assert int.from_bytes(nodes["/t"].stat[44:52], "big") == 0xFF00_0000_0000_0000 | 60_000
    assert nodes["/q"].stat[44:52] == b"\x80" + bytes(7)
    assert int.from_bytes(nodes["/a"].stat[52:], "big") == 11  # pzxid


def test_the_fuzzy_part_is_replayed_without_harm(tmp_path: Path) -> None:
    """Created already, deleted already, deleted and made again: the end is the same."""
    ahead = {"/a": Kept(b"2", zxid=12), "/d": Kept(b"d", zxid=14), "/d/below": Kept(zxid=15)}
    txns = [
        create("/a", b"1"),
        create("/gone"),
        set_data("/a", b"2", 1),
        delete("/gone"),
        delete("/d"),
        create("/d", b"d"),
        create("/d/below"),
        delete("/never"),
    ]
    tree = replayed(tmp_path, ahead, *txns)
    assert set(tree.nodes) == {"", "/a", "/d", "/d/below"}
    assert tree.nodes["/a"].data == b"2"


@pytest.mark.parametrize("named", [True, False])
def test_a_closed_session_takes_its_znodes_along(named: bool, tmp_path: Path) -> None:
    """From the snapshot and from the log, whether the transaction names them (3.6) or not; others' stay."""
    before = {"/mine": Kept(owner=7), "/other": Kept(owner=8), "/late": Kept(owner=7)}
    close = close_session("/mine", "/new", named=named)
    tree = replayed(tmp_path, before, create("/new", ephemeral=True), close, create("/after", ephemeral=True))
    assert set(tree.nodes) == {"", "/other", "/after"}
    assert tree.nodes["/after"].znode().ephemeral_owner == 7


def test_a_multi_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """One failed operation undoes all."""
    tree = replayed(
        tmp_path,
        {"/a": Kept()},
        multi(create("/b"), Txn(13, buffer("/a") + i32(0)), set_data("/b", b"1"), delete("/a"), create("/c", kind=15)),
        multi(create("/no"), ERROR, delete("/b")),
    )
    assert set(tree.nodes) == {"", "/b", "/c"}
    assert tree.nodes["/b"].znode() == (b"1", 1, 10, 10, 0, 0)


def test_creates_of_servers_before_3_4_are_read(tmp_path: Path) -> None:
    """They do not say the parent's cversion: it is one more than it was."""
    old = Txn(1, buffer("/old") + buffer(b"o") + EVERYBODY + b"\0")
    tree = replayed(tmp_path, {}, old, Txn(1, buffer("/old/2") + buffer(None) + EVERYBODY + b"\1"))
    assert tree.nodes["/old/2"].znode() == (None, 0, 11, 11, 7, 0)
    assert int.from_bytes(tree.nodes["/old"].stat[36:40], "big") == 1


def digest_of(tree: Tree) -> bytes:
    """A transaction's digest, computed anew from the whole tree."""
    total = 0
    for path, node in tree.nodes.items():
        stat = node.stat[:16] + node.stat[52:] + node.stat[16:52]
        total += 0 if path.startswith("/zookeeper/") else zlib.crc32(path.encode() + (node.data or b"") + stat)
    return i32(2) + i64(total)


def test_the_digests_that_zookeeper_wrote_are_compared(tmp_path: Path) -> None:
    """Right ones count; a wrong last one is an error; one of another version says nothing."""
    plain = {"snapshot_9": snapshot({"/a": Kept()}), "log_a": log(10, [B, SESSION])}
    right = digest_of(loaded(data_dir(tmp_path / "plain", **plain)).tree)
    for name, digest, count in (("right", right, 1), ("other", i32(3) + i64(1), 0)):
        files = {**plain, "log_a": log(10, [B, Txn(-10, i32(1), digest=digest)])}
        assert loaded(data_dir(tmp_path / name, **files)).digests == count
    wrong = Txn(-10, i32(1), digest=right[:-1] + bytes([right[-1] ^ 1]))
    with pytest.raises(TreeDigestDiffers, match="transaction 0xb"):
        loaded(data_dir(tmp_path / "wrong", **{**plain, "log_a": log(10, [B, wrong])}))
    healed = [B, wrong, Txn(-10, i32(1), digest=right)]
    assert loaded(data_dir(tmp_path / "healed", **{**plain, "log_a": log(10, healed)})).digests == 2


def test_the_snapshots_own_digest_is_compared_where_its_transaction_comes(tmp_path: Path) -> None:
    """At once, or after the fuzzy part."""
    znodes = {"/a": Kept()}
    tree = loaded(data_dir(tmp_path / "1", snapshot_9=snapshot(znodes, last=9))).tree
    value = int.from_bytes(digest_of(tree)[4:], "big")
    assert loaded(data_dir(tmp_path / "2", snapshot_9=snapshot(znodes, digest=(9, 2, value)))).digests == 1
    with pytest.raises(TreeDigestDiffers, match=r"snapshot\.9"):
        loaded(data_dir(tmp_path / "3", snapshot_9=snapshot(znodes, digest=(9, 2, value + 1))))
    late = {"snapshot_9": snapshot(znodes, digest=(11, 2, value + 1)), "log_a": log(10, [SESSION, SESSION])}
    with pytest.raises(TreeDigestDiffers, match="0xb"):
        loaded(data_dir(tmp_path / "4", **late))


def test_a_digest_behind_a_session_that_names_nothing_is_no_list_of_paths(tmp_path: Path) -> None:
    """CloseSession without a record (closeSessionTxn switched off), but with a digest."""
    znodes = {"/mine": Kept(owner=7)}
    right = digest_of(replayed(tmp_path / "1", znodes, close_session(named=False)))
    tree = replayed(tmp_path / "2", znodes, Txn(-11, digest=right))
    assert set(tree.nodes) == {""}


WRONG = {
    "an unknown type": Txn(99),
    "a check alone": Txn(13, buffer("/a") + i32(0)),
    "bytes behind the transaction": Txn(2, buffer("/a") + b"more"),
    "a path without a slash": delete("a"),
    "a null path": Txn(2, i32(-1)),
    "a path that is no UTF-8": Txn(2, buffer(b"/\xff")),
    "a length beyond the entry": Txn(2, i32(1 << 30)),
    "a negative length": Txn(2, i32(-2)),
    "a negative count": Txn(14, i32(-7)),
    "a count without end": Txn(14, i32((1 << 31) - 1)),
    "no record": Txn(5),
    "a boolean that is 2": Txn(1, buffer("/x") + buffer(b"") + EVERYBODY + b"\2" + i32(1)),
    "no time to live": Txn(21, buffer("/t") + buffer(None) + EVERYBODY + i32(5) + i64(0)),
    "an unknown operation in a multi": multi(Txn(7)),
    "bytes behind an operation in a multi": multi(Txn(2, buffer("/a") + b"x")),
}


@pytest.mark.parametrize("txn", WRONG.values(), ids=WRONG.keys())
def test_an_entry_with_a_right_checksum_and_nonsense_in_it_is_a_typed_error(txn: Txn, tmp_path: Path) -> None:
    """With file and byte, inside that entry."""
    start = len(log(10, [SESSION], padding=0))
    with pytest.raises(ZookeeperFileDamaged) as caught:
        replayed(tmp_path, {}, SESSION, txn)
    assert caught.value.where.startswith(str(tmp_path / "version-2" / "log.a, byte "))
    assert start < int(caught.value.where.rpartition(" ")[2]) <= start + len(entry(11, txn))


def test_a_log_must_begin_with_the_transaction_that_it_is_named_for(tmp_path: Path) -> None:
    """A renamed or overwritten file."""
    with pytest.raises(ZookeeperFileDamaged, match="not the one in the file's name"):
        loaded(data_dir(tmp_path, snapshot_0=snapshot({}), log_1=log(2, [A])))


def test_a_packed_snapshot_is_chosen_and_read_like_a_plain_one(tmp_path: Path) -> None:
    """By its name; two snapshots of one zxid in two packings are refused."""
    folder = data_dir(tmp_path, snapshot_9_gz=gzip.compress(snapshot({"/a": Kept()}, last=9)))
    assert names(loaded(folder)) == {"/a"}
    data_dir(tmp_path, snapshot_9=snapshot({"/a": Kept()}, last=9))
    with pytest.raises(MigrateError, match="same zxid"):
        loaded(folder)
