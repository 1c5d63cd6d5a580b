"""Looking again costs one request where nothing has happened, and never gives an old answer where something has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kazoo.security import make_digest_acl

from migrate.model.secrets import Digester
from migrate.zookeeper.again import MOST_REST, REST, Rereader
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.password_encoder import EncoderSecrets
from migrate.zookeeper.rate_limit import Pace
from migrate.zookeeper.read import read_view
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, create, load_tree
from tests.zookeeper.test_rate_limit import FakeClock

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def writer(server: ZookeeperServer, chroot: str, client: ZookeeperClient) -> ZookeeperClient:
    """Another session on the same tree, which holds a captured cluster."""
    load_tree(client, golden("hybrid-after-copy"))
    return client


def reader_of(server: ZookeeperServer, chroot: str, pace: Pace | None = None) -> ZookeeperClient:
    """A session that only reads."""
    return connect(server.address + chroot, pace=pace)


def calm() -> tuple[Rereader, FakeClock]:
    """A rereader on a clock that stands still unless it sleeps."""
    clock = FakeClock()
    return Rereader(Digester(), monotonic=clock.monotonic, sleep=clock.sleep), clock


def test_a_quiet_tree_is_read_once(server: ZookeeperServer, chroot: str, writer: ZookeeperClient) -> None:
    """Then a sync is all that is asked, and the view is the one that a whole read gives."""
    reread, _ = calm()
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        before = client.pace.operations
        for _ in range(5):
            assert reread.read(client) is first
        assert client.pace.operations - before == 5
        assert reread.whole == 1
        assert read_view(client, reread._digester) == first


def deep(writer: ZookeeperClient) -> None:
    """A partition's state."""
    path = next(path for path in golden("hybrid-after-copy").znodes if path.endswith("/state"))
    writer.kazoo.set(path, writer.kazoo.get(path)[0].replace(b'"leader_epoch":', b'"leader_epoch":9'))


CHANGES: dict[str, Callable[[ZookeeperClient], object]] = {
    "a partition's state": deep,
    "a topic is marked": lambda writer: create(writer, "/admin/delete_topics/gone", b""),
    "a znode goes": lambda writer: writer.kazoo.delete("/controller"),
    "an ACL": lambda writer: writer.kazoo.set_acls("/config/users", [make_digest_acl("a", "b", all=True)]),
    "a broker's session": lambda writer: create(writer, "/brokers/ids/77", b"{}", ephemeral=True),
    "data written back as it was": lambda writer: writer.kazoo.set("/migration", writer.kazoo.get("/migration")[0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_is_in_the_next_look(
    change: str, server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """Data, children, ACLs, ephemeral znodes: each is a transaction, and each ends what was remembered."""
    reread, _ = calm()
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        assert reread.read(client) is first
        CHANGES[change](writer)
        second = reread.read(client)
        assert second is not first
        assert second == read_view(client, reread._digester)
        assert reread.whole == 2
        assert reread.read(client) is second


def test_every_of_many_changes_is_seen_by_the_look_that_follows_it(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """A write that has ended before the look began: the sync sees to it."""
    reread, _ = calm()
    create(writer, "/admin/delete_topics/t-0", b"")
    with reader_of(server, chroot) as client:
        for number in range(1, 30):
            create(writer, f"/admin/delete_topics/t-{number}", b"")
            assert f"t-{number}" in reread.read(client).pending.deletions
            assert len(reread.read(client).pending.deletions) == number + 1


def test_a_view_that_was_read_while_something_happened_is_not_kept(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part of it may be older than its newest zxid."""
    reread, _ = calm()

    def disturbed(client: ZookeeperClient, digester: Digester, secrets: EncoderSecrets | None = None) -> object:
        kept = read_view(client, digester, secrets)
        create(writer, f"/admin/delete_topics/late-{reread.whole}", b"")
        client.sync()
        return kept

    monkeypatch.setattr("migrate.zookeeper.again.read_view", disturbed)
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        assert reread.read(client) is not first
        assert reread.whole == 2


def test_another_session_or_secret_is_another_look(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient
) -> None:
    """Zxids of one ensemble say nothing of another; a secret opens passwords that were blind spots."""
    reread, _ = calm()
    with reader_of(server, chroot) as client:
        first = reread.read(client)
        opened = reread.read(client, EncoderSecrets("a secret"))
        assert opened is not first
        assert reread.read(client, EncoderSecrets("a secret")) is opened
        assert reread.read(client, EncoderSecrets("a secret", "an older one")) is not opened
        assert reread.read(client) is not first
    with reader_of(server, chroot) as client:
        reread.read(client)
        assert reread.whole == 5


def test_whole_reads_keep_a_distance_that_grows_with_what_they_cost(
    server: ZookeeperServer, chroot: str, writer: ZookeeperClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times the last read, at most five seconds; nothing where the operator said how fast."""
    clock, costs = FakeClock(), [0.5, 1.0, 60.0, 0.0, 60.0, 60.0]

    def costly(client: ZookeeperClient, digester: Digester, secrets: EncoderSecrets | None = None) -> object:
        clock.now += costs.pop(0)
        return read_view(client, digester, secrets)

    monkeypatch.setattr("migrate.zookeeper.again.read_view", costly)
    reread = Rereader(Digester(), monotonic=clock.monotonic, sleep=clock.sleep)
    with reader_of(server, chroot) as client:
        for number in range(4):
            create(writer, f"/admin/delete_topics/cost-{number}", b"")
            reread.read(client)
        assert clock.slept == pytest.approx([0.5 * REST, 1.0 * REST, MOST_REST])
    with reader_of(server, chroot, Pace(1_000_000)) as client:
        slept = list(clock.slept)
        for number in range(2):
            create(writer, f"/admin/delete_topics/paced-{number}", b"")
            reread.read(client)
        assert clock.slept == slept
