"""Topics and states read by a kernel are what the references read, errors included."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from itertools import chain, starmap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kazoo.exceptions import BadArgumentsError

from migrate.errors import ZookeeperSessionLost
from migrate.kernels import choice
from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper import collect as collecting
from migrate.zookeeper import decode
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import partition_states
from migrate.zookeeper.live_topics import StatesRead, plain_topics, requests, state_paths
from migrate.zookeeper.multiread import GET_DATA, MultiRead
from migrate.zookeeper.read import read_view, view_of
from migrate.zookeeper.znode import Absent, Znode
from tests.testing.golden_trees import TOPIC_ID, golden, minimal, tree_of
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree

END = struct.pack("!iBi", -1, 1, -1)
STAT = struct.Struct("!qqqqiiiqiiq")


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels from the first partition on."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(collecting, "KERNEL_LEAST", 0)
    monkeypatch.setattr(collecting, "KERNEL_WARM", 0)
    assert choice.ready("live_topics", 1, 0)


# -- answers as a server writes them -----------------------------------------------------------------------------------
def result(answer: Znode | Absent) -> bytes:
    """One result of a MultiRead."""
    if isinstance(answer, Absent):
        code = -101 if answer is Absent.MISSING else -102
        return struct.pack("!iBii", -1, 0, code, code)
    data = answer.data
    stat = (answer.czxid, answer.mzxid, 0, 0, answer.version, 0, 0, answer.ephemeral_owner, 0, answer.children, 0)
    length = -1 if data is None else len(data)
    return struct.pack("!iBii", GET_DATA, 0, 0, length) + (data or b"") + STAT.pack(*stat)


def outcome(read: Callable[[], Any]) -> Any:
    """What comes of it: a value, or the type of an error."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - whatever the reference raises
        return type(error)


def by_reference(raw: bytes, offset: int, count: int) -> Any:
    """States and absences; znodes where a closer look is needed."""
    answers = MultiRead(GET_DATA, [b"/"] * count).deserialize(raw, offset)
    return [looked_at(answer) for answer in answers]


def looked_at(answer: Any) -> Any:
    """A znode as the state that it is, where it is plain."""
    return decode.written_states([answer])[0] or answer if isinstance(answer, Znode) else answer


def by_kernel(raw: bytes, offset: int, count: int) -> Any:
    """The same: a kernel may be stricter about what is plain, never about what it says."""
    return [looked_at(answer) for answer in StatesRead([b"/"] * count).deserialize(raw, offset)]


def state(leader: int, isr: Sequence[int], epoch: int = 3, writer: int = 7) -> bytes:
    """As Kafka writes it."""
    numbers = ",".join(map(str, isr))
    return (
        f'{{"controller_epoch":{writer},"leader":{leader},"version":1,"leader_epoch":{epoch},"isr":[{numbers}]}}'
    ).encode()


NUMBER = st.integers(0, 2**31 + 5) | st.integers(0, 30)
PLAIN = st.builds(state, NUMBER | st.just(-1), st.lists(NUMBER, max_size=6), NUMBER, NUMBER)


@st.composite
def bent(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """With a byte changed, left out, or more of them at the end."""
    whole = draw(contents)
    at = draw(st.integers(0, len(whole) - 1))
    put = draw(st.sampled_from([b"", b"0", b"-", b" ", b",", b"]", b"}", b'"', b"\xff"]))
    return draw(st.sampled_from([whole[:at] + put + whole[at + 1 :], whole + put, whole[:at] + put + whole[at:]]))


ZXID = st.integers(-(2**63), 2**63 - 1)
ANSWERS = st.one_of(
    st.builds(Znode, PLAIN, st.integers(0, 9), ZXID, ZXID, ZXID, st.integers(0, 9)),
    st.builds(
        Znode, PLAIN | bent(PLAIN) | st.binary(max_size=40) | st.none(), st.just(0), ZXID, ZXID, st.just(0), st.just(2)
    ),
    st.sampled_from([Absent.MISSING, Absent.DENIED]),
)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(ANSWERS, max_size=12), st.binary(max_size=9))
def test_states_are_those_of_the_reference(answers: list[Znode | Absent], before: bytes) -> None:
    """Plain ones and others, null data and errors in any order, wherever the answer begins."""
    raw = before + b"".join(map(result, answers)) + END
    found = StatesRead([b"/"] * len(answers)).deserialize(raw, len(before))
    assert [*map(looked_at, found)] == by_reference(raw, len(before), len(answers))
    assert {*map(type, found)} <= {decode.PartitionState, Znode, Absent}


def test_what_kafka_writes_at_rest_takes_the_short_way() -> None:
    """No znode is made of it; lists of brokers are lists of their own."""
    contents = [state(-1, []), state(4, [4]), state(0, [0, 999_999_999]), state(4, [4])]
    raw = b"".join(result(Znode(data, 0, 5, 60 + number, 0)) for number, data in enumerate(contents)) + END
    found = StatesRead([b"/"] * 4).deserialize(raw, 0)
    assert found == [
        decode.PartitionState(leader, 3, isr, 0, 60 + number, 7)
        for number, (leader, isr) in enumerate([(-1, []), (4, [4]), (0, [0, 999_999_999]), (4, [4])])
    ]
    assert all(type(one) is decode.PartitionState for one in found)
    assert found[1].isr is not found[3].isr
    assert all(type(number) is int for one in found for number in (*one[:2], *one.isr, *one[3:]))


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(ANSWERS, min_size=1, max_size=5), st.data())
def test_a_damaged_answer_is_what_the_reference_makes_of_it(answers: list[Znode | Absent], data: st.DataObject) -> None:
    """Cut anywhere, a byte changed anywhere, another count: the same values, or an error of the same type."""
    raw = bytearray(b"".join(map(result, answers)) + END)
    count = len(answers) + data.draw(st.sampled_from([0, 0, 0, -1, 1]))
    if data.draw(st.booleans()):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.just(len(raw)) | st.integers(0, len(raw)))])
    expected = outcome(lambda: by_reference(damaged, 0, count))
    assert outcome(lambda: by_kernel(damaged, 0, count)) == expected


# -- topics ------------------------------------------------------------------------------------------------------------
def topic(partitions: dict[int, list[int]], **more: Any) -> bytes:
    """As Kafka writes it, in the order of a Scala map."""
    values = {
        "removing_replicas": {},
        "partitions": {str(number): replicas for number, replicas in partitions.items()},
        "topic_id": TOPIC_ID,
        "adding_replicas": {},
        "version": 3,
    }
    return json.dumps(values | more, separators=(",", ":")).encode()


LISTS = st.lists(st.integers(0, 40) | NUMBER, min_size=0, max_size=5)
TOPICS = st.builds(
    topic,
    st.dictionaries(st.integers(0, 7), LISTS, max_size=8)
    | st.lists(LISTS, min_size=1, max_size=12).map(lambda lists: dict(enumerate(lists))),
)
ODD_TOPICS = st.sampled_from(
    [
        b"",
        b"{}",
        topic({0: [1]}, adding_replicas={"0": [2]}),
        topic({0: [1]}, version=2),
        topic({0: [1]}, topic_id=""),
        topic({0: [1]}, more=1),
        b'{"version":1,"partitions":{"0":[1]}}',
    ]
)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(TOPICS | bent(TOPICS) | ODD_TOPICS | st.binary(max_size=30), max_size=8))
def test_topics_are_those_of_the_reference(contents: list[bytes]) -> None:
    """Whatever stands beside them; None is only what the reference is asked about."""
    for content, found in zip(contents, plain_topics(contents), strict=True):
        if found is not None:
            assert found == decode.topic("/brokers/topics/t", content)


@pytest.mark.slow
def test_topics_as_kafka_writes_them_take_the_short_way() -> None:
    """Also between others, partitions in any order, and above the default size of a znode."""
    large = topic({number: [number % 100] for number in range(100_000)})
    assert len(large) > 1 << 20
    contents = [topic({1: [3, 2], 0: [1, 2]}), b"[", topic({0: [5]}, version=4), topic({0: [9]}), large]
    first, *odd, last, beyond = plain_topics(contents)
    assert first == decode.TopicZnode(TOPIC_ID, {0: [1, 2], 1: [3, 2]}, {}, {})
    assert odd == [None, None]
    assert last == decode.TopicZnode(TOPIC_ID, {0: [9]}, {}, {})
    assert beyond == decode.topic("/brokers/topics/t", large)
    assert plain_topics([]) == []


# -- requests ----------------------------------------------------------------------------------------------------------
@given(
    st.lists(st.tuples(st.sampled_from(["t", "naïve", "x" * 249]), st.lists(st.integers(0, 1200), max_size=30))),
    st.integers(1, 40),
)
def test_requests_hold_every_state_once_in_order(wanted: list[tuple[str, list[int]]], operations: int) -> None:
    """The same paths as anywhere else, and all requests but the last as full as they may be."""
    found = [*requests(state_paths(b"/chroot/brokers/topics", wanted), operations)]
    expected = [f"/chroot{path}".encode() for path in chain.from_iterable(starmap(partition_states, wanted))]
    assert [*chain.from_iterable(found)] == expected
    assert all(0 < len(request) <= operations for request in found)
    assert {len(request) for request in found[:-1]} <= {operations}
    assert StatesRead(expected).serialize() == MultiRead(GET_DATA, expected).serialize()


# -- whole reads -------------------------------------------------------------------------------------------------------
Change = Callable[[dict[str, Any]], None]


class BytesTree:
    """A tree whose states are answered in a server's bytes; a writer writes before the n-th request."""

    def __init__(self, tree: BackupTree, writes: dict[int, Change] | None = None) -> None:
        self.tree = tree
        self.writes = writes or {}
        self.requests = self.asked = 0

    def _race(self) -> BackupTree:
        self.requests += 1
        if self.requests in self.writes:
            znodes = dict(self.tree.znodes)
            self.writes[self.requests](znodes)
            self.tree = BackupTree("raced", znodes)
        return self.tree

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        """A request for data."""
        return self._race().data(paths)

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        """A request for children."""
        return self._race().children(paths)

    def zxid(self) -> int:
        """The newest transaction."""
        return self.tree.zxid()

    def states(self, wanted: Sequence[tuple[str, Sequence[int]]]) -> list[Any]:
        """A request for states."""
        self.asked += 1
        paths = [*chain.from_iterable(starmap(partition_states, wanted))]
        raw = b"".join(map(result, self._race().data(paths))) + END
        return StatesRead([path.encode() for path in paths]).deserialize(raw, 0)


def odd_tree() -> BackupTree:
    """Plain topics, and every kind that is not."""
    names = {"plain": 3, "moving": 2, "recovering": 2, "missing": 2, "broken": 2, "old": 1}
    znodes: dict[str, Any] = {}
    for name, count in names.items():
        znodes[f"/brokers/topics/{name}"] = topic({number: [1, 2] for number in range(count)})
        for path in partition_states(name, range(count)):
            znodes[path] = state(1, [2, 1])
    znodes["/brokers/topics/moving"] = topic({0: [1, 2], 1: [1]}, adding_replicas={"0": [2]})
    recovering = json.loads(state(1, [1])) | {"leader_recovery_state": 1}
    znodes["/brokers/topics/recovering/partitions/1/state"] = json.dumps(recovering)
    del znodes["/brokers/topics/missing/partitions/0/state"]
    znodes["/brokers/topics/broken/partitions/1/state"] = b'{"version":1}'
    znodes["/brokers/topics/old"] = b'{"version":1,"partitions":{"0":[1]}}'
    znodes["/brokers/topics/malformed"] = b"{"
    return tree_of(minimal() | znodes)


def view(tree: Any) -> ZookeeperView:
    """The whole view, with neither time nor luck in it."""
    return view_of(tree, "x", Digester(b"k" * 32))


GOLDEN = ("zk-before", "hybrid-after-copy")


@pytest.mark.parametrize("tree", [odd_tree(), *map(golden, GOLDEN)], ids=["odd", *GOLDEN])
def test_a_view_is_that_of_the_reference(tree: BackupTree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Malformed, missing and odd znodes included; and the flag turns the kernel off."""
    raced = BytesTree(tree)
    found = view(raced)
    assert raced.asked == 1
    monkeypatch.setenv(choice.VARIABLE, "off")
    off = BytesTree(tree)
    assert view(off) == found == view(tree)
    assert off.asked == 0


@pytest.mark.parametrize("most", [1, 2, 5])
def test_states_read_ahead_belong_to_their_topics(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole topics at once, however few partitions that may be."""
    monkeypatch.setattr(collecting, "STATES_AT_ONCE", most)
    tree = odd_tree()
    reader = BytesTree(tree)
    found = view(reader)
    assert reader.asked > 1
    monkeypatch.setenv(choice.VARIABLE, "off")
    assert found == view(tree)


def test_what_goes_wrong_ahead_is_the_reads_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing more is asked."""
    monkeypatch.setattr(collecting, "STATES_AT_ONCE", 1)

    class Lost(BytesTree):
        def states(self, wanted: Sequence[tuple[str, Sequence[int]]]) -> list[Any]:
            if self.asked == 2:
                raise ZookeeperSessionLost("the connection ended", where="x")
            return super().states(wanted)

    reader = Lost(odd_tree())
    with pytest.raises(ZookeeperSessionLost, match="the connection ended"):
        view(reader)
    assert reader.asked == 2


def put(path: str, data: bytes, zxid: int = 9_999) -> Change:
    """A write, as that transaction."""
    return lambda znodes: znodes.update({path: Znode(data, 1, 5, zxid, 0), "/more": Znode(b"", 0, 1, zxid, 0)})


def changes() -> dict[str, Change]:
    """What a writer may do at once."""

    def gone(znodes: dict[str, Any]) -> None:
        for path in [path for path in znodes if path.startswith("/brokers/topics/plain")]:
            del znodes[path]
        znodes["/more"] = Znode(b"", 0, 1, 9_999, 0)

    fresh = "/brokers/topics/plain/partitions/0/state"
    return {
        "state": put(fresh, state(2, [2])),
        "same content": put(fresh, state(1, [2, 1])),
        "odd state": put(fresh, b'{"version":1}'),
        "mended": put("/brokers/topics/broken/partitions/1/state", state(2, [2])),
        "fewer": put("/brokers/topics/plain", topic({0: [1, 2]})),
        "more": put("/brokers/topics/plain", topic({number: [1] for number in range(5)})),
        "new": put("/brokers/topics/fresh", topic({0: [3]})),
        "gone": gone,
    }


@pytest.mark.parametrize("name", changes())
def test_a_writer_that_races_the_reader_is_noticed(name: str) -> None:
    """Whenever it writes: the view is that of the tree after it, and nothing is called moving."""
    change = changes()[name]
    still = BytesTree(odd_tree())
    view(still)
    for when in range(2, 2 * still.requests + 1):
        raced = BytesTree(odd_tree(), {when: change})
        found = view(raced)
        after = view(raced.tree)
        assert raced.requests > still.requests or raced.requests < when
        assert found.partitions == after.partitions, when
        assert (found.malformed, found.partitions_without_state) == (after.malformed, after.partitions_without_state)
        assert (found.znodes, found.blind_spots, found.mzxids) == (after.znodes, after.blind_spots, after.mzxids)


def test_the_first_topic_of_all_is_read_again_too() -> None:
    """It came while nothing was there; what its state is when it was read once is not yet what it is."""
    bare = tree_of(minimal())
    still = BytesTree(bare)
    view(still)
    path = "/brokers/topics/t/partitions/0/state"

    def born(znodes: dict[str, Any]) -> None:
        put("/brokers/topics/t", topic({0: [1]}), 8_000)(znodes)
        put(path, state(1, [1]), 8_000)(znodes)

    for later in range(1, still.requests + 4):
        raced = BytesTree(bare, {still.requests: born, still.requests + later: put(path, state(2, [2]), 9_000)})
        assert view(raced).partitions == view(raced.tree).partitions, later


def test_a_denied_state_is_a_blind_spot() -> None:
    """As it is for the reference."""
    tree = odd_tree()
    path = "/brokers/topics/plain/partitions/1/state"
    denied = BackupTree("denied", {**tree.znodes, path: Absent.DENIED})
    assert view(BytesTree(denied)) == view(denied)
    assert any(path in spot for spot in view(BytesTree(denied)).blind_spots)


def test_the_kernel_is_not_loaded_for_a_small_cluster_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads it again and again gets it, once as much was read as repays it."""
    monkeypatch.setattr(collecting, "KERNEL_LEAST", 1_000)
    monkeypatch.setattr(choice, "_load_kept", lambda _: False)  # as in the first run of all
    monkeypatch.setattr(collecting, "KERNEL_WARM", 100)
    monkeypatch.setattr(choice, "_failed", {})
    monkeypatch.setattr(choice, "_spent", {})
    tree = BytesTree(golden("zk-before"))  # 212 partitions
    asked = []
    for _ in range(6):
        view(tree)
        asked.append(tree.asked)
    assert asked == [0, 0, 0, 0, 1, 2]


# -- a real server -----------------------------------------------------------------------------------------------------
def wide(client: ZookeeperClient, name: str, count: int) -> None:
    """A plain topic with so many partitions."""
    create(client, f"/brokers/topics/{name}", topic({number: [number % 7] for number in range(count)}))
    transaction = client.kazoo.transaction()
    transaction.create(f"/brokers/topics/{name}/partitions")
    for number in range(count):
        transaction.create(f"/brokers/topics/{name}/partitions/{number}")
        transaction.create(f"/brokers/topics/{name}/partitions/{number}/state", state(number % 7, [number % 7]))
    transaction.commit()


@pytest.mark.zookeeper
def test_a_live_view_is_that_of_the_reference(client: ZookeeperClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several requests, every kind of oddity; a server that refuses large requests; one that has no MultiRead."""
    load_tree(client, odd_tree())
    wide(client, "wide", 1_200)
    wide(client, "second", 3)
    read: list[int] = []
    kernels_way = StatesRead.deserialize

    def counted(request: StatesRead, raw: bytes, offset: int) -> list[Any]:
        if len(request.paths) > 200:
            raise BadArgumentsError
        read.append(len(request.paths))
        return kernels_way(request, raw, offset)

    digester = Digester(b"k" * 32)
    monkeypatch.setattr(StatesRead, "deserialize", counted)
    small = read_view(client, digester)
    assert max(read) <= 200
    assert len(small.partitions) == 1_203 + 12
    monkeypatch.setattr(StatesRead, "deserialize", kernels_way)
    assert read_view(client, digester) == small
    monkeypatch.setenv(choice.VARIABLE, "off")
    assert read_view(client, digester) == small
    monkeypatch.delenv(choice.VARIABLE)
    monkeypatch.setattr(MultiRead, "type", 99)
    assert read_view(client, digester) == small
    assert not client.multiread


@pytest.mark.zookeeper
def test_states_that_a_writer_changes_meanwhile_are_read_again(
    client: ZookeeperClient, server: ZookeeperServer, chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session writes a state that was just read, while others are still to be read."""
    load_tree(client, odd_tree())
    wide(client, "wide", 100)
    path = "/brokers/topics/plain/partitions/0/state"
    kernels_way = StatesRead.deserialize
    client.operations = 4
    read: list[int] = []
    with server.client(chroot) as writer:

        def raced(request: StatesRead, raw: bytes, offset: int) -> list[Any]:
            if f"{chroot}{path}".encode() in request.paths and sum(read) < 112:
                writer.kazoo.set(path, state(2, [2]))
            read.append(len(request.paths))
            return kernels_way(request, raw, offset)

        monkeypatch.setattr(StatesRead, "deserialize", raced)
        found = read_view(client, Digester())
    assert (sum(read), max(read)) == (2 * 112, 8), "everything was read twice"
    row = found.partitions.topic.index("plain")
    assert (found.partitions.leader[row], found.partitions.isr[row]) == (2, [2])
    assert found.blind_spots == ()
