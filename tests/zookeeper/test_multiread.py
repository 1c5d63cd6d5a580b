"""MultiRead answers what single reads answer, in requests that every server takes."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.exceptions import BadArgumentsError, MarshallingError
from kazoo.protocol.serialization import GetData

from migrate.zookeeper import multiread
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.multiread import GET_CHILDREN, GET_DATA, MAX_REQUEST_BYTES, MultiRead, chunks
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import create, load_tree


@pytest.mark.slow
@given(st.lists(st.binary(max_size=50), max_size=80), st.integers(1, 7), st.integers(1, 400))
def test_chunks_hold_every_path_once_in_order(paths: list[bytes], operations: int, size: int) -> None:
    """Bounded by count and bytes; one path that is too long stands alone."""
    found = list(chunks(paths, operations, size))
    assert [path for chunk in found for path in chunk] == paths
    assert all(0 < len(chunk) <= operations for chunk in found)
    for chunk in found:
        if len(chunk) > 1:
            assert sum(multiread.HEADER_BYTES + len(path) for path in chunk) <= size
    for one, following in itertools.pairwise(found):  # no request is sent that could have gone with the one before
        longer = sum(multiread.HEADER_BYTES + len(path) for path in (*one, following[0]))
        assert len(one) == operations or longer > size


def test_a_request_stays_below_jute_maxbuffer() -> None:
    """Long names fill a request by bytes, short ones by count."""
    long = [f"/brokers/topics/{'t' * 249}/partitions/{number}/state".encode() for number in range(5000)]
    sizes = [len(MultiRead(GET_DATA, chunk).serialize()) for chunk in chunks(long)]
    assert max(sizes) <= MAX_REQUEST_BYTES + 9
    assert max(len(chunk) for chunk in chunks([b"/a"] * 5000)) == multiread.MAX_OPERATIONS


def test_an_answer_that_lies_is_refused() -> None:
    """Too few answers, an unknown error code, a cut one."""
    done = struct.pack("!iBi", -1, 1, -1)
    with pytest.raises(ValueError, match="0 answers to 1"):
        MultiRead(GET_DATA, [b"/a"]).deserialize(done, 0)
    failed = struct.pack("!iBi", -1, 0, -5) + struct.pack("!i", -5) + done
    with pytest.raises(MarshallingError):
        MultiRead(GET_DATA, [b"/a"]).deserialize(failed, 0)
    with pytest.raises(struct.error):
        MultiRead(GET_DATA, [b"/a"]).deserialize(done[:5], 0)


@dataclass(frozen=True)
class Written:
    """An answer to one read, and how a server writes it."""

    answer: Znode | Absent
    raw: bytes


def written(data: bytes | None, stat: tuple[int, ...]) -> Written:
    """A znode with its data; null data has the length -1."""
    length = -1 if data is None else len(data)
    header = struct.pack("!iBi", GET_DATA, 0, 0)
    return Written(
        multiread.znode_of(data, stat),
        header + struct.pack("!i", length) + (data or b"") + struct.pack("!qqqqiiiqiiq", *stat),
    )


def failed(answer: Absent, code: int) -> Written:
    """An error in the place of a znode."""
    return Written(answer, struct.pack("!iBi", -1, 0, code) + struct.pack("!i", code))


INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
ANSWERS = st.one_of(
    st.builds(
        written,
        st.binary(max_size=120) | st.none(),
        st.tuples(LONG, LONG, LONG, LONG, INT, INT, INT, LONG, INT, INT, LONG),
    ),
    st.sampled_from([failed(Absent.MISSING, -101), failed(Absent.DENIED, -102)]),
)
END = struct.pack("!iBi", -1, 1, -1)


@pytest.mark.slow
@given(st.lists(ANSWERS, max_size=12), st.binary(max_size=9))
def test_data_in_bulk_is_what_was_written(answers: list[Written], before: bytes) -> None:
    """Znodes, null data and errors in any order, wherever the answer begins."""
    request = MultiRead(GET_DATA, [b"/"] * len(answers))
    raw = before + b"".join(one.raw for one in answers) + END
    found = request.deserialize(raw, len(before))
    assert found == [one.answer for one in answers]
    assert all(type(one) in (Znode, Absent) for one in found)


@pytest.mark.slow
@given(st.lists(ANSWERS, min_size=1, max_size=5), st.data())
def test_an_answer_that_is_cut_is_refused(answers: list[Written], data: st.DataObject) -> None:
    """At whatever byte: nothing is made of what follows in memory, or of nothing."""
    raw = b"".join(one.raw for one in answers) + END
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    with pytest.raises((struct.error, ValueError)):
        MultiRead(GET_DATA, [b"/"] * len(answers)).deserialize(cut, 0)


def test_a_request_is_what_kazoo_would_write() -> None:
    """Operation by operation: header, path, no watch; and the header that ends it."""
    paths = ["/a", "/naïve/b", "/"]
    parts = [struct.pack("!iBi", GET_DATA, 0, -1) + GetData(path, None).serialize() for path in paths]
    assert MultiRead(GET_DATA, [path.encode() for path in paths]).serialize() == b"".join([*parts, END])
    assert MultiRead(GET_CHILDREN, []).serialize() == END


def test_a_request_does_not_print_its_paths_or_answers() -> None:
    """Kazoo logs requests that fail."""
    assert repr(MultiRead(GET_DATA, [b"/secret", b"/b"])) == "MultiRead(2 paths)"


@pytest.mark.zookeeper
def test_multiread_equals_get(client: ZookeeperClient) -> None:
    """Data, stat, children and what is missing, for every znode of a real cluster's tree."""
    tree = golden("hybrid-after-copy")
    load_tree(client, tree)
    create(client, "/null", None)
    create(client, "/naïve", "ü".encode())
    paths = [*sorted(tree.znodes), "/null", "/naïve", "/missing", "/missing/too"]
    for path, answer, names in zip(paths, client.data(paths), client.children(paths), strict=True):
        if path.startswith("/missing"):
            assert (answer, names) == (Absent.MISSING, Absent.MISSING)
            continue
        data, stat = client.kazoo.get(path)
        expected = Znode(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner, stat.numChildren)
        assert answer == expected
        assert names == tuple(sorted(client.kazoo.get_children(path)))
    assert client.multiread


@pytest.mark.zookeeper
def test_many_reads_come_back_in_order(client: ZookeeperClient) -> None:
    """More than one window of requests."""
    transaction = client.kazoo.transaction()
    for number in range(200):
        transaction.create(f"/{number}", str(number).encode())
    transaction.commit()
    numbers = [number * 7 % 200 for number in range(5_000)]
    answers = client.data([f"/{number}" for number in numbers])
    assert [int(answer.data or b"") for answer in answers if isinstance(answer, Znode)] == numbers
    assert client.data([]) == []


@pytest.mark.zookeeper
def test_a_server_without_multiread_is_read_one_by_one(
    client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a server answers Unimplemented and hangs up, as this one does for an opcode that it does not know."""
    tree = golden("zk-before")
    load_tree(client, tree)
    paths = [*sorted(tree.znodes), "/missing"]
    data, children = client.data(paths), client.children(paths)
    monkeypatch.setattr(MultiRead, "type", 99)
    assert client.data(paths) == data
    assert not client.multiread
    assert client.children(paths) == children
    assert client.data(["/controller"]) == client.data(["/controller"])


@pytest.mark.zookeeper
def test_a_server_that_refuses_large_requests_gets_smaller_ones(
    client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper 3.9.7 takes a thousand operations at most; whoever takes fewer is asked for fewer from then on."""
    client.kazoo.create("/a", b"1")
    paths = [f"/{'a' if number % 3 else 'missing'}" for number in range(9_000)]
    whole = client.data(paths)
    read = MultiRead.deserialize

    def limited(request: MultiRead, raw: bytes, offset: int) -> object:
        if len(request.paths) > 100:
            raise BadArgumentsError
        return read(request, raw, offset)

    monkeypatch.setattr(MultiRead, "deserialize", limited)
    assert client.data(paths) == whole
    assert client.multiread
    assert client.operations == multiread.MAX_OPERATIONS // 16
    asked = client.pace.operations
    assert client.data(paths) == whole
    assert client.pace.operations - asked == len(paths), "the second time nothing is refused"


@pytest.mark.zookeeper
def test_a_server_that_refuses_every_request_is_read_one_by_one(
    client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few operations are in it: nothing is left out."""
    client.kazoo.create("/a", b"1")

    def refused(*_: object) -> object:
        raise BadArgumentsError

    monkeypatch.setattr(MultiRead, "deserialize", refused)
    found = client.data(["/a", "/missing"])
    assert isinstance(found[0], Znode)
    assert (found[0].data, found[1]) == (b"1", Absent.MISSING)
    assert client.children(["/a"]) == [()]


@pytest.mark.zookeeper
def test_large_znodes_are_read(client: ZookeeperClient) -> None:
    """Many megabytes in one answer: kazoo has no limit for what it receives."""
    for number in range(8):
        client.kazoo.create(f"/{number}", bytes([number]) * 1_000_000)
    answers = client.data([f"/{number}" for number in range(8)])
    assert [answer.data for answer in answers if isinstance(answer, Znode)] == [
        bytes([number]) * 1_000_000 for number in range(8)
    ]
    assert client.children(["/"]) == [("0", "1", "2", "3", "4", "5", "6", "7")]
