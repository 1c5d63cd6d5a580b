"""A watch names what has changed, so that it alone is read again; where it cannot say all, everything is."""

from __future__ import annotations

import json
import random  # noqa: TID251 - seeded
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kazoo.security import make_acl, make_digest_acl

from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.again import OLDEST, Rereader
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.read import read_view
from migrate.zookeeper.tree_watch import TreeWatch, watch
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree
from tests.zookeeper.test_rate_limit import FakeClock

pytestmark = pytest.mark.zookeeper

TREE = golden("hybrid-after-copy")
STATES = sorted(path for path in TREE.znodes if path.endswith("/state"))
TOPICS = sorted(path for path in TREE.znodes if path.startswith("/brokers/topics/") and path.count("/") == 3)


@pytest.fixture
def writer(chroot: str, client: ZookeeperClient) -> ZookeeperClient:
    """Another session on the same tree, which holds a captured cluster."""
    load_tree(client, TREE)
    return client


def reader_of(server: ZookeeperServer, chroot: str) -> ZookeeperClient:
    """A session that only reads."""
    return connect(server.address + chroot)


def watching(client: ZookeeperClient) -> tuple[Rereader, FakeClock]:
    """A rereader that has read twice: a watch is set."""
    clock = FakeClock()
    reread = Rereader(Digester(b"k" * 32), monotonic=clock.monotonic, sleep=clock.sleep)
    reread.read(client)
    reread._last = None
    reread.read(client)
    reread._last = None
    assert reread.kept is not None
    assert reread.whole == 2
    return reread, clock


def same(one: ZookeeperView, other: ZookeeperView) -> bool:
    """The same tree, whenever it was read."""
    return replace(one, zxid_first=0, zxid_last=0) == replace(other, zxid_first=0, zxid_last=0)


def whole(client: ZookeeperClient) -> ZookeeperView:
    """Read with nothing kept."""
    return read_view(client, Digester(b"k" * 32))


# -- what is written -------------------------------------------------------------------------------------------------
def state(writer: ZookeeperClient, chance: random.Random) -> None:
    """Of some partition."""
    path = chance.choice(STATES)
    if writer.kazoo.exists(path):
        value = json.loads(writer.kazoo.get(path)[0])
        writer.kazoo.set(path, json.dumps(value | {"leader_epoch": chance.randrange(99)}).encode())


def states_at_once(writer: ZookeeperClient, chance: random.Random) -> None:
    """One transaction with several events."""
    transaction = writer.kazoo.transaction()
    for path in chance.sample(STATES, 4):
        if writer.kazoo.exists(path):
            transaction.set_data(path, writer.kazoo.get(path)[0])
    transaction.commit()


def migration(writer: ZookeeperClient, chance: random.Random) -> None:
    """As dual write does twice a second."""
    value = json.loads(writer.kazoo.get("/migration")[0])
    writer.kazoo.set("/migration", json.dumps(value | {"kraft_metadata_offset": chance.randrange(10**6)}).encode())


def new_topic(writer: ZookeeperClient, chance: random.Random) -> None:
    """With one partition, whose state comes later."""
    name = f"made-{chance.randrange(10**6)}"
    data = json.dumps(
        {"version": 3, "topic_id": "A" * 22, "partitions": {"0": [1]}, "adding_replicas": {}, "removing_replicas": {}}
    )
    create(writer, f"/brokers/topics/{name}", data.encode())
    create(writer, f"/brokers/topics/{name}/partitions")
    create(writer, f"/brokers/topics/{name}/partitions/0")
    if chance.random() < 0.7:
        create(writer, f"/brokers/topics/{name}/partitions/0/state", writer.kazoo.get(STATES[-1])[0])


def topic_goes(writer: ZookeeperClient, chance: random.Random) -> None:
    """With all below it."""
    writer.kazoo.delete(chance.choice(TOPICS), recursive=True)


def reassigned(writer: ZookeeperClient, chance: random.Random) -> None:
    """The assignment of a topic."""
    path = chance.choice(TOPICS)
    if writer.kazoo.exists(path):
        value = json.loads(writer.kazoo.get(path)[0])
        value["adding_replicas"] = {"0": [chance.randrange(9)]}
        writer.kazoo.set(path, json.dumps(value).encode())


def unread(writer: ZookeeperClient, chance: random.Random) -> None:
    """What no view speaks of."""
    writer.kazoo.ensure_path(f"/isr_change_notification/isr_change_{chance.randrange(10**6)}")


NARROW: tuple[Callable[[ZookeeperClient, random.Random], object], ...] = (
    state,
    states_at_once,
    migration,
    new_topic,
    topic_goes,
    reassigned,
    unread,
)


def acl(writer: ZookeeperClient, _: random.Random) -> None:
    """Of which no event tells."""
    writer.kazoo.set_acls("/config/users", [make_digest_acl("a", "b", all=True)])


def acl_and_state(writer: ZookeeperClient, chance: random.Random) -> None:
    """A state that may not be read from now on, and is another: events tell of neither."""
    path = chance.choice(STATES)
    writer.kazoo.set_acls(path, [make_acl("world", "anyone", write=True, admin=True)])
    writer.kazoo.set(path, b"{}")


def config(writer: ZookeeperClient, _: random.Random) -> None:
    """What is no topic, and is read whole."""
    create(writer, "/config/topics/late", b'{"version":1,"config":{"retention.ms":"1"}}')


def malformed(writer: ZookeeperClient, chance: random.Random) -> None:
    """Told as a whole read tells it."""
    writer.kazoo.set(chance.choice(STATES), b"{")


def nothing_of_kafkas(writer: ZookeeperClient, _: random.Random) -> None:
    """A znode that we do not know."""
    create(writer, "/somebody", b"")


WHOLE: tuple[Callable[[ZookeeperClient, random.Random], object], ...] = (
    acl,
    acl_and_state,
    config,
    malformed,
    nothing_of_kafkas,
)


# -- what is read ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_after_any_changes_the_view_is_that_of_a_whole_read(
    seed: int, server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """Of topics, states and single znodes in any order: and no whole read is needed for it."""
    chance = random.Random(seed)
    with reader_of(server, chroot) as client:
        reread, _ = watching(client)
        for _ in range(25):
            for _ in range(chance.randrange(4)):
                chance.choice(NARROW)(writer, chance)
            assert same(reread.read(client), whole(client))
        assert reread.whole == 2
        assert reread.narrow >= 25


@pytest.mark.parametrize("change", WHOLE, ids=lambda change: change.__name__)
def test_what_is_not_told_plainly_is_read_whole(
    change: Callable[[ZookeeperClient, random.Random], object],
    server: ZookeeperServer,
    chroot: str,
    writer: ZookeeperClient,
) -> None:
    """An ACL, a znode that may not be read, a configuration, a malformed or unknown znode; and so is what follows."""
    chance = random.Random(5)
    with reader_of(server, chroot) as client:
        reread, _ = watching(client)
        change(writer, chance)
        migration(writer, chance)
        assert same(reread.read(client), whole(client))
        assert reread.whole == 3
        state(writer, random.Random(7))
        assert same(reread.read(client), whole(client))


def test_a_look_that_costs_what_changed(server: ZookeeperServer, chroot: str, writer: ZookeeperClient) -> None:
    """A sync, a znode, the ACLs: however many partitions there are."""
    chance = random.Random(1)
    with reader_of(server, chroot) as client:
        reread, _ = watching(client)
        migration(writer, chance)
        reread.read(client)
        before = client.pace.operations
        migration(writer, chance)
        view = reread.read(client)
        assert client.pace.operations - before <= 25
        assert same(view, whole(client))


def test_a_connection_that_ended_is_read_whole(server: ZookeeperServer, chroot: str, writer: ZookeeperClient) -> None:
    """Its watch went with it, and a new one is set."""
    chance = random.Random(1)
    with reader_of(server, chroot) as client:
        reread, _ = watching(client)
        client.kazoo._connection._socket.shutdown(2)
        state(writer, chance)
        assert same(reread.read(client), whole(client))
        assert reread.whole == 3
        state(writer, chance)
        assert same(reread.read(client), whole(client))
        assert (reread.whole, reread.narrow) == (3, 1)


def test_events_without_their_transaction_are_enough_for_a_poll_alone(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before 3.9; and not for ever."""
    told = TreeWatch._event

    def older(self: TreeWatch, raw: bytes, offset: int) -> None:
        told(self, raw[: offset - 16] + struct.pack(">iqi", -1, -1, 0) + raw[offset:], offset)

    monkeypatch.setattr(TreeWatch, "_event", older)
    chance = random.Random(1)
    with reader_of(server, chroot) as client:
        reread, clock = watching(client)
        for number in range(3):
            state(writer, chance)
            assert same(reread.read(client, poll=True), whole(client))
            assert (reread.whole, reread.narrow) == (2, number + 1)
        clock.now += OLDEST
        state(writer, chance)
        assert same(reread.read(client, poll=True), whole(client))
        assert reread.whole == 3
        state(writer, chance)
        assert same(reread.read(client), whole(client))
        assert reread.whole == 4


@pytest.mark.parametrize("change", [acl, acl_and_state], ids=lambda change: change.__name__)
def test_what_a_poll_let_pass_is_read_whole_by_who_acts(
    change: Callable[[ZookeeperClient, random.Random], object],
    server: ZookeeperServer,
    chroot: str,
    writer: ZookeeperClient,
) -> None:
    """Also where all that came after it was told."""
    chance = random.Random(5)
    with reader_of(server, chroot) as client:
        reread, _ = watching(client)
        change(writer, chance)
        reread.read(client, poll=True)
        assert (reread.whole, reread.narrow) == (2, 1)
        for _ in range(3):
            migration(writer, chance)
            reread.read(client, poll=True)
        assert (reread.whole, reread.narrow) == (2, 4)
        migration(writer, chance)
        assert same(reread.read(client), whole(client))
        assert reread.whole == 3


def test_an_event_that_is_none_that_we_know_is_a_doubt(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """For ever: the watch does not know what it missed."""
    with reader_of(server, chroot) as client:
        seen = watch(client)
        assert seen is not None
        migration(writer, random.Random(1))
        client.sync()
        found = seen.take()
        assert found is not None
        assert found.paths == {"/migration"}
        assert found.zxids == {client.zxid()}
        for raw in (
            b"",
            struct.pack(">iii", 4, 3, 1) + b"x",
            struct.pack(">iqi", -1, 9, 0) + struct.pack(">iii", 77, 3, 1) + b"/",
        ):
            again: Any = TreeWatch(client)
            again._event(raw, 16)
            assert again.take() is None
            assert again.take() is None


def test_one_look_sets_no_watch(server: ZookeeperServer, chroot: str, writer: ZookeeperClient) -> None:
    """Who reads once pays nothing for it."""
    with reader_of(server, chroot) as client:
        reread = Rereader(Digester())
        reread.read(client)
        assert reread._watch is None
        assert reread.kept is None
