"""A packed tree is the tree that the reference reads, at every step; what cannot be packed is the reference's."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.accelerated import choice, packed_snapshot
from migrate.accelerated.packed_snapshot import PackedFiles, open_files
from migrate.accelerated.packed_tree import PackedTree
from migrate.accelerated.plain_topics import PlainTopics
from migrate.errors import MigrateError, TreeDigestDiffers
from migrate.model.fingerprints import topic_fingerprints
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.offline.files import Loaded, OfflineTree, ZookeeperFiles
from tests.bench.files import topic_znodes as topic_znodes_of
from tests.bench.files import zookeeper_snapshot
from tests.bench.live import fill
from tests.testing.zookeeper_server import running_server
from tests.zookeeper.offline.clusters import (
    FIRST,
    TOPICS,
    changes,
    others,
    state_data,
    topic_data,
    topic_znodes,
    trees,
)
from tests.zookeeper.offline.written import (
    EVERYBODY,
    Kept,
    Txn,
    acl,
    create,
    data_dir,
    delete,
    i32,
    i64,
    log,
    sealed,
    set_data,
    snapshot,
)

DIGESTER = Digester()
ACLS = {5: acl((31, "sasl", "kafka"))}


@contextmanager
def by_kernel(window: int = 8 << 20, carried: int = 16 << 20) -> Iterator[None]:
    """Whatever the size of a file; windows of so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(choice.VARIABLE, raising=False)
        patch.setattr(packed_snapshot, "LEAST", 0)
        patch.setattr(packed_snapshot, "WINDOW", window)
        patch.setattr(packed_snapshot, "CARRIED", carried)
        yield


@contextmanager
def by_reference() -> Iterator[None]:
    """Without kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(choice.VARIABLE, "off")
        yield


def written(folder: Path, znodes: dict[str, Kept], txns: list[Txn] | None = None) -> Path:
    """A dataDir with a snapshot and the log behind it."""
    files = {f"snapshot_{FIRST - 1:x}": snapshot(znodes, acls=ACLS, sessions=[7], last=FIRST - 1)}
    if txns is not None:
        files[f"log_{FIRST:x}"] = log(FIRST, txns)
    return data_dir(folder, **files)


def open_folder(folder: Path) -> OfflineTree:
    """The tree in it."""
    return open_files(ZookeeperFiles((str(folder),)))


def plain_of(tree: OfflineTree) -> PlainTopics:
    """The topics that are columns."""
    assert isinstance(tree, PackedFiles)
    return tree.plain


def everything(loaded: Loaded) -> object:
    """All that a tree holds."""
    nodes = {path: (node.data, node.acl, node.stat) for path, node in loaded.tree.nodes.items()}
    return nodes, loaded.tree.digest, loaded.zxid, loaded.transactions, loaded.digests, loaded.notes


def outcome(folder: Path) -> object:
    """What loading says: the tree, or the error, word for word."""
    try:
        return everything(open_folder(folder).loaded)
    except MigrateError as error:
        return type(error), str(error), error.where


def view(folder: Path) -> ZookeeperView | tuple[object, ...]:
    """The view, or the error."""
    try:
        return open_folder(folder).view(DIGESTER)
    except MigrateError as error:
        return type(error), str(error)


WINDOWS = st.sampled_from([(64, 64), (100, 700), (333, 4_000), (8 << 20, 16 << 20)])


@pytest.mark.slow
@given(trees(), st.none() | changes(), WINDOWS)
def test_files_give_the_same_view_whether_packed_or_not(
    znodes: dict[str, Kept], txns: list[Txn] | None, window: tuple[int, int]
) -> None:
    """With every oddity, after every kind of transaction, wherever windows end; the tree afterwards too."""
    with tempfile.TemporaryDirectory() as name:
        folder = written(Path(name), znodes, txns)
        with by_reference():
            expected, tree = view(folder), outcome(folder)
        with by_kernel(*window):
            assert view(folder) == expected
            assert outcome(folder) == tree


@pytest.mark.slow
@given(trees(), st.none() | changes())
def test_kept_fingerprints_are_those_of_the_views_rows(znodes: dict[str, Kept], txns: list[Txn] | None) -> None:
    """Of the topics that stayed plain, log and all."""
    with tempfile.TemporaryDirectory() as name, by_kernel():
        found = plain_of(open_folder(written(Path(name), znodes, txns)))
        rows = topic_fingerprints(found.columns(list(range(len(found)))))
        assert dict(found.fingerprints()) == rows


@pytest.mark.slow
@given(trees(), st.data())
def test_damage_is_told_as_the_reference_tells_it(znodes: dict[str, Kept], data: st.DataObject) -> None:
    """Bytes that were changed or cut, with seals that are created again or not."""
    whole = bytearray(snapshot(znodes, acls=ACLS, last=FIRST - 1))
    raw = whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=4)) if raw else ():
        raw[at] = data.draw(st.sampled_from([0, 1, 0x2F, 0x30, 0x7F, 0x80, 0xFF]))
    content = sealed(bytes(raw[:-55])) if data.draw(st.booleans()) else bytes(raw)
    with tempfile.TemporaryDirectory() as name:
        folder = data_dir(Path(name), **{f"snapshot_{FIRST - 1:x}": content})
        with by_reference():
            expected = outcome(folder)
        with by_kernel(*data.draw(WINDOWS)):
            assert outcome(folder) == expected


@pytest.mark.slow
@given(trees(), changes(), st.data())
def test_each_znode_is_the_references_one_in_whatever_order_it_is_asked_for(
    znodes: dict[str, Kept], txns: list[Txn], data: st.DataObject
) -> None:
    """Asked for one by one, listed, counted: nobody can tell that it was packed."""
    with tempfile.TemporaryDirectory() as name:
        folder = written(Path(name), znodes, txns)
        with by_reference():
            plain = OfflineTree(open_folder(folder).loaded, ZookeeperFiles((name,)))
        with by_kernel():
            loaded = open_folder(folder).loaded
        tree = OfflineTree(loaded, ZookeeperFiles((name,)))
        paths = [*plain.paths(), f"{TOPICS}/a/partitions/7/state", f"{TOPICS}/none", f"{TOPICS}/a/partitions/00"]
        assert len(loaded.tree.nodes) == len(plain.loaded.tree.nodes)
        some = data.draw(st.lists(st.sampled_from(paths), max_size=6))
        assert tree.data(some) == plain.data(some)
        assert tree.acls(some) == plain.acls(some)
        assert tree.children(paths) == plain.children(paths)
        assert [path in loaded.tree.nodes for path in paths] == [path in plain.loaded.tree.nodes for path in paths]
        assert tree.paths() == plain.paths()


def at_rest(count: int = 3) -> dict[str, Kept]:
    """Some plain topics."""
    found = others()
    for number in range(count):
        found |= topic_znodes(f"t{number}", number, [[1, 2, 3], [2, 3, 1]], zxid=2)
    return found


def packed_names(folder: Path) -> list[str]:
    """The topics that are columns after loading."""
    with by_kernel():
        return plain_of(open_folder(folder)).names


def test_topics_at_rest_are_columns_and_nothing_of_them_is_a_znode(tmp_path: Path) -> None:
    """Only what is no topic was opened."""
    folder = written(tmp_path, at_rest())
    assert packed_names(folder) == ["t0", "t1", "t2"]
    with by_kernel():
        tree = open_folder(folder).loaded.tree
    assert isinstance(tree, PackedTree)
    assert set(tree.nodes.own()) == {"", *others()}
    assert len(tree.nodes) == 1 + len(others()) + 3 * 6


CHANGES: dict[str, tuple[list[Txn], list[str]]] = {
    "a state": ([set_data(f"{TOPICS}/t1/partitions/0/state", state_data(2, 9, [2]))], ["t0", "t1", "t2"]),
    "a state that is not plain": ([set_data(f"{TOPICS}/t1/partitions/0/state", b"{}")], ["t0", "t2"]),
    "the topic": ([set_data(f"{TOPICS}/t1", topic_data(1, [[1], [2]]))], ["t0", "t2"]),
    "a partition goes": ([delete(f"{TOPICS}/t1/partitions/0/state")], ["t0", "t2"]),
    "a partition comes": ([create(f"{TOPICS}/t1/partitions/2")], ["t0", "t2"]),
    "another topic comes": ([create(f"{TOPICS}/t3", topic_data(3, [[1]]))], ["t0", "t1", "t2"]),
    "nothing of topics": ([create("/config", None)], ["t0", "t1", "t2"]),
    "an ACL": ([Txn(7, i32(len(TOPICS) + 3) + f"{TOPICS}/t1".encode() + EVERYBODY + i32(1))], ["t0", "t1", "t2"]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_topic_stays_packed_while_only_its_states_move(case: str, tmp_path: Path) -> None:
    """Anything else is the reference's from then on."""
    txns, names = CHANGES[case]
    assert packed_names(written(tmp_path, at_rest(), txns)) == names


ODD: dict[str, dict[str, Kept]] = {
    "an id is spelled in another way": {
        f"{TOPICS}/t1": Kept(topic_data(1, [[1], [2]], topic_id="AQEBAQEBAQEBAQEBAQEBAX"))
    },
    "no id": {f"{TOPICS}/t1": Kept(topic_data(1, [[1], [2]], topic_id=None))},
    "a reassignment": {f"{TOPICS}/t1": Kept(topic_data(1, [[1], [2]], adding_replicas={"0": [4]}))},
    "a session's znode": {f"{TOPICS}/t1/partitions": Kept(None, owner=7)},
    "a recovering leader": {f"{TOPICS}/t1/partitions/0/state": Kept(state_data(1, 1, [1], leader_recovery_state=1))},
    "a state with spaces": {f"{TOPICS}/t1/partitions/0/state": Kept(state_data(1, 1, [1]).replace(b",", b", "))},
    "fewer partitions than states": {f"{TOPICS}/t1": Kept(topic_data(1, [[1]]))},
    "more partitions than states": {f"{TOPICS}/t1": Kept(topic_data(1, [[1], [2], [3]]))},
}


@pytest.mark.parametrize("case", ODD)
def test_a_topic_that_is_odd_is_read_znode_by_znode(case: str, tmp_path: Path) -> None:
    """The others are columns all the same."""
    folder = written(tmp_path, {**at_rest(), **ODD[case]})
    assert packed_names(folder) == ["t0", "t2"]


def test_a_topic_larger_than_what_is_carried_along_is_read_znode_by_znode(tmp_path: Path) -> None:
    """And the ones around it are columns."""
    big = topic_znodes("big", 9, [[1, 2, 3]] * 40)
    folder = written(tmp_path, {**at_rest(2), **big, **topic_znodes("t9", 4, [[1]])})
    with by_kernel(window=1_000, carried=1_500):
        found = open_folder(folder)
    assert plain_of(found).names == ["t0", "t1", "t9"]
    assert f"{TOPICS}/big/partitions/39/state" in set(found.loaded.tree.nodes)


def test_the_digest_of_a_packed_tree_is_compared(tmp_path: Path) -> None:
    """Before and after transactions, and an error where it differs."""
    znodes = at_rest()
    with by_reference():
        right = open_folder(written(tmp_path / "plain", znodes)).loaded.tree.digest
    for name, value in (("right", right), ("wrong", right ^ 1)):
        raw = snapshot(znodes, acls=ACLS, digest=(FIRST - 1, 2, value))
        data_dir(tmp_path / name, **{f"snapshot_{FIRST - 1:x}": raw})
    with by_kernel():
        assert open_folder(tmp_path / "right").loaded.digests == 1
        with pytest.raises(TreeDigestDiffers):
            open_folder(tmp_path / "wrong")
    moved = set_data(f"{TOPICS}/t1/partitions/0/state", state_data(2, 9, [2]))
    with by_reference():
        after = open_folder(written(tmp_path / "moved", znodes, [moved])).loaded.tree.digest
    for name, value in (("well", after), ("ill", after ^ 1)):
        written(tmp_path / name, znodes, [replace(moved, digest=i32(2) + i64(value - (1 << 64 if value >> 63 else 0)))])
    with by_kernel():
        assert open_folder(tmp_path / "well").loaded.digests == 1
        with pytest.raises(TreeDigestDiffers):
            open_folder(tmp_path / "ill")


def test_below_a_chroot_topics_are_packed_too(tmp_path: Path) -> None:
    """Those of the chroot that was asked for, and no others."""
    below = {f"/kafka{path}": kept for path, kept in at_rest().items()}
    folder = written(tmp_path, {**at_rest(1), "/kafka": Kept(None), **below})
    files = ZookeeperFiles((str(folder),), "/kafka")
    with by_reference():
        expected = open_files(files).view(DIGESTER)
    with by_kernel():
        tree = open_files(files)
        assert plain_of(tree).names == ["t0", "t1", "t2"]
        assert tree.view(DIGESTER) == expected


def test_a_thousand_topics_are_the_same_packed_or_not(tmp_path: Path) -> None:
    """Of the benchmark's files, in windows as they are used."""
    zxid = zookeeper_snapshot(tmp_path / "s", 3_000)
    (tmp_path / "s").rename(tmp_path / f"snapshot.{zxid:x}")
    with by_reference():
        expected = view(tmp_path)
    with by_kernel():
        assert packed_names(tmp_path) == [f"team-{number % 97}.events-{number}" for number in range(60)]
        assert view(tmp_path) == expected


@pytest.mark.zookeeper
def test_a_real_servers_fuzzy_snapshot_is_the_same_packed_or_not_and_its_digests_hold(tmp_path: Path) -> None:
    """Written while states move; each digest that the server put into snapshot and log is compared."""
    settings = "snapCount=300\nautopurge.purgeInterval=0\n"
    with running_server(tmp_path / "server", settings) as server, server.client() as client:
        fill(client, 250)
        pending = [
            client.kazoo.set_async(path, state_data(number % 3, number, [number % 3, 4]))
            for number in range(4)
            for path, _ in topic_znodes_of(250)
            if path.endswith("/state")
        ]
        for result in pending:
            result.get(timeout=60)
        client.kazoo.delete("/brokers/topics/team-2.events-2/partitions/7/state")
    folder = tmp_path / "server" / "data"
    with by_reference():
        expected, tree = view(folder), outcome(folder)
    with by_kernel(window=20_000, carried=100_000):
        found = open_folder(folder)
        loaded, plain = found.loaded, plain_of(found)
        assert view(folder) == expected
        assert outcome(folder) == tree
    assert "team-2.events-2" not in plain.names
    assert len(plain) == 4
    assert loaded.transactions > 0
    assert loaded.digests > 0
    assert dict(plain.fingerprints()) == topic_fingerprints(plain.columns(list(range(4))))


def test_small_files_load_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read before numba is imported."""
    monkeypatch.setattr(choice, "_load", pytest.fail)
    monkeypatch.setattr(choice, "_failed", {})
    monkeypatch.setattr(choice, "_asked", Counter())
    assert not isinstance(open_folder(written(tmp_path, at_rest())), PackedFiles)
