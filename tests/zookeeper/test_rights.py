"""Least rights in a real ZooKeeper: exactly the table's are enough, each that is missing is named, and nothing is done.

The tree is a real cluster's, every znode `kafka`'s as with zookeeper.set.acl; the tool comes as `tool`, to whom the
table's rights are granted one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl

from migrate.errors import LockLost, MigrateError, ZookeeperDenied
from migrate.model.rights import SENSITIVE
from migrate.model.secrets import Digester
from migrate.zookeeper import layout
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Absent, Znode
from migrate.zookeeper.lock import LOCK_PATH, acquire
from migrate.zookeeper.read import read_migration, read_view
from migrate.zookeeper.rights import For, find_rights, require_rollback_rights
from migrate.zookeeper.write import ZookeeperWriter
from tests.testing.golden_trees import golden
from tests.testing.secured_zookeeper import login, sasl_server, session
from tests.testing.zookeeper_server import ZookeeperServer

pytestmark = pytest.mark.zookeeper
CHROOT = "/kafka"
PARENT, FENCE = "/kraft-migrate", f"{LOCK_PATH}-fence"
BITS = {"READ": 1, "WRITE": 2, "CREATE": 4, "DELETE": 8}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """It knows the brokers' identity and the tool's."""
    folder = tmp_path_factory.mktemp("rights")
    with sasl_server(folder, {"kafka": "k", "tool": "t"}) as found:
        yield found


@pytest.fixture(scope="module")
def owner(server: ZookeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperClient]:
    """As the brokers, in a cluster's tree that is closed to others as Kafka closes it."""
    with session(server, login(tmp_path_factory.mktemp("owner"), "kafka", "k")) as root:
        root.kazoo.create(CHROOT, b"", acl=_granted("READ"))
    with session(server, login(tmp_path_factory.mktemp("owner"), "kafka", "k"), CHROOT) as client:
        _load(client, TREE)
        for path in (PARENT, FENCE):
            client.kazoo.create(path, b"", acl=_granted(*TABLE[path]))
        _grant(client)
        yield client


@pytest.fixture
def tool(server: ZookeeperServer, tmp_path: Path, owner: ZookeeperClient) -> Iterator[ZookeeperClient]:
    """As the tool, with all that the table names."""
    _grant(owner)
    with session(server, login(tmp_path, "tool", "t"), CHROOT) as client:
        yield client


# what the table says, for this tree: path -> operations of the tool
TABLE: dict[str, tuple[str, ...]] = {
    "/": ("READ", "DELETE"),
    PARENT: ("READ", "CREATE", "DELETE"),
    FENCE: ("READ", "WRITE"),
    layout.CONTROLLER_EPOCH: ("READ", "WRITE"),
}
TREE = golden("zk-before")
STATES = tuple(path for path in TREE.znodes if path.endswith("/state"))
TABLE |= dict.fromkeys(STATES, ("READ", "WRITE"))
STATE = next(path for path in sorted(STATES) if path.endswith("/0/state"))


def _granted(*operations: str) -> list[object]:
    """The brokers' all, the tool's some; nothing for anybody else."""
    bits = sum(BITS[name] for name in operations)
    mine = [make_acl("sasl", "kafka", all=True)]
    some = make_acl(
        "sasl", "tool", read=bool(bits & 1), write=bool(bits & 2), create=bool(bits & 4), delete=bool(bits & 8)
    )
    return [*mine, some] if bits else mine


def _load(client: ZookeeperClient, tree: BackupTree) -> None:
    """Every znode of it, none of them ephemeral, all of them `kafka`'s."""
    pending = [
        client.kazoo.create_async(path, znode.data or b"", acl=_granted("READ"))
        for path, znode in sorted(tree.znodes.items(), key=lambda entry: entry[0].count("/"))
        if path != "/" and isinstance(znode, Znode)
    ]
    for result in pending:
        result.get(timeout=60)


def _grant(client: ZookeeperClient, without: tuple[str, str] | None = None) -> None:
    """The table's rights; `without` is one of them, a place and an operation."""
    places = dict.fromkeys((*layout.PLACES, *TABLE))
    for path in places:
        if client.kazoo.exists(path) is None:
            continue
        operations = [name for name in TABLE.get(path, ("READ",)) if (path, name) != without]
        client.kazoo.set_acls(path, _granted(*operations))


def test_the_tables_rights_are_enough_for_all_that_is_done(tool: ZookeeperClient, owner: ZookeeperClient) -> None:
    """The whole view, the lock and back, a rollback's writes; and doctor finds nothing missing."""
    found = find_rights(tool, "tool", LOCK_PATH)
    assert found.lacks == ()
    assert read_view(tool, Digester()).blind_spots == ()
    lock = acquire(tool, "me", "plan")
    writer = ZookeeperWriter(tool, lock.fence)
    writer.set(layout.CONTROLLER_EPOCH, b"9", tool.data([layout.CONTROLLER_EPOCH])[0].version)  # type: ignore[union-attr]
    before = owner.data([layout.CONTROLLER])[0]
    assert isinstance(before, Znode)
    writer.delete(layout.CONTROLLER, before.version)
    lock.release()
    owner.kazoo.create(layout.CONTROLLER, before.data, acl=_granted("READ"))


@dataclass(frozen=True)
class Taken:
    """One right taken away, and what is tried then."""

    path: str
    operation: str
    stops: For
    tried: Callable[[ZookeeperClient], object]
    names: str  # the place that the error must name
    says: str


def _reads(client: ZookeeperClient) -> object:
    return read_view(client, Digester())


def _epoch(client: ZookeeperClient) -> None:
    znode = client.data([layout.CONTROLLER_EPOCH])[0]
    assert isinstance(znode, Znode)
    ZookeeperWriter(client).set(layout.CONTROLLER_EPOCH, b"77", znode.version)


def _raise(client: ZookeeperClient) -> None:
    ZookeeperWriter(client).raise_versions({STATE: 99}, None)


def _delete(client: ZookeeperClient) -> None:
    ZookeeperWriter(client).delete(layout.CONTROLLER, 0)


READS = tuple(
    Taken(path, "READ", For.LOOKING, _reads, path, "needs READ")
    for path in layout.PLACES
    if path not in (*SENSITIVE, layout.MIGRATION, layout.REASSIGNMENTS, layout.ELECTIONS)
)
TAKES = (
    *READS,
    Taken(PARENT, "CREATE", For.ACTING, lambda c: acquire(c, "me", "plan"), LOCK_PATH, "needs CREATE on its parent"),
    Taken(FENCE, "WRITE", For.ACTING, lambda c: acquire(c, "me", "plan"), FENCE, "needs WRITE"),
    Taken("/", "DELETE", For.ROLLBACK, _delete, layout.CONTROLLER, "needs DELETE on its parent"),
    Taken(layout.CONTROLLER_EPOCH, "WRITE", For.ROLLBACK, _epoch, layout.CONTROLLER_EPOCH, "needs WRITE"),
    Taken(STATE, "WRITE", For.ROLLBACK, _raise, STATE, "needs WRITE"),
)


@pytest.mark.parametrize("take", TAKES, ids=lambda take: f"{take.operation} {take.path}")
def test_each_right_that_is_missing_is_named_and_nothing_happens(
    take: Taken, tool: ZookeeperClient, owner: ZookeeperClient
) -> None:
    """By doctor before, and by the error of who tries; the tree stays as it was."""
    if owner.kazoo.exists(take.path) is None:
        pytest.skip("this cluster has no such znode")
    _grant(owner, (take.path, take.operation))
    before = _versions(owner)
    (lack,) = find_rights(tool, "tool", LOCK_PATH).lacks
    assert (lack.operation, lack.path, lack.stops) == (take.operation, take.path, take.stops)
    with pytest.raises(ZookeeperDenied) as caught:
        take.tried(tool)
    assert caught.value.where == take.names
    assert take.says in caught.value.what
    assert _versions(owner) == before


def _versions(client: ZookeeperClient) -> dict[str, tuple[int, int] | None]:
    """Each place with what changes when it, or what stands in it, does."""
    paths = (*layout.PLACES, *TABLE, LOCK_PATH)
    stats = {path: client.kazoo.exists(path) for path in paths}
    return {path: None if stat is None else (stat.version, stat.cversion) for path, stat in stats.items()}


def test_without_delete_beside_the_lock_it_cannot_be_given_back_and_goes_with_the_session(
    tool: ZookeeperClient, owner: ZookeeperClient
) -> None:
    """Doctor names it before; the lock is ephemeral, so nothing stays behind."""
    _grant(owner, (PARENT, "DELETE"))
    (lack,) = find_rights(tool, "tool", LOCK_PATH).lacks
    assert (lack.operation, lack.path) == ("DELETE", PARENT)
    lock = acquire(tool, "me", "plan")
    with pytest.raises(LockLost):
        lock.release()
    tool.close()
    owner.sync("/")
    assert owner.kazoo.exists(LOCK_PATH) is None


BACK = tuple(take for take in TAKES if take.stops is For.ROLLBACK)


@pytest.mark.parametrize("take", BACK, ids=lambda take: f"{take.operation} {take.path}")
def test_what_a_rollback_lacks_is_known_before_it_stops_anything(
    take: Taken, tool: ZookeeperClient, owner: ZookeeperClient
) -> None:
    """By ZooKeeper's own answer to what cannot be done; the tree stays as it was, whatever the answer."""
    before = _versions(owner)
    require_rollback_rights(tool)
    require_rollback_rights(owner)
    _grant(owner, (take.path, take.operation))
    with pytest.raises(ZookeeperDenied) as caught:
        require_rollback_rights(tool)
    assert caught.value.where == take.names
    assert take.says in caught.value.what
    assert "nothing was stopped" in caught.value.why
    require_rollback_rights(owner)
    assert _versions(owner) == before


def test_a_rollback_needs_no_right_on_an_epoch_that_is_not_there(server: ZookeeperServer) -> None:
    """A cluster that no broker ever controlled has none; an open tree lets in everybody."""
    with server.client() as client:
        client.kazoo.create("/bare", b"")
    with server.client("/bare") as client:
        require_rollback_rights(client)
        assert client.kazoo.get_children("/") == []


def test_a_chroot_that_may_not_be_read_is_told_at_the_door(server: ZookeeperServer, owner: ZookeeperClient) -> None:
    """A right that is missing is an error of ours, wherever it is asked for."""
    del owner
    with pytest.raises(ZookeeperDenied, match="the chroot needs READ") as caught:
        server.client(CHROOT)
    assert caught.value.where.endswith(CHROOT)


@pytest.mark.parametrize("path", SENSITIVE)
def test_what_only_brokers_may_read_is_a_blind_spot_that_is_named(
    path: str, tool: ZookeeperClient, owner: ZookeeperClient
) -> None:
    """The rest can be told without users, brokers' configurations and tokens; doctor says what is missing."""
    if owner.kazoo.exists(path) is None:
        pytest.skip("this cluster has no such znode")
    _grant(owner, (path, "READ"))
    assert [(lack.operation, lack.path) for lack in find_rights(tool, "tool", LOCK_PATH).lacks] == [("READ", path)]
    assert [spot.partition(":")[0] for spot in read_view(tool, Digester()).blind_spots] == [path]


def test_a_takeover_znode_that_may_not_be_read_is_never_taken_for_none(
    tool: ZookeeperClient, owner: ZookeeperClient
) -> None:
    """/migration missing means that nothing was ever copied; hidden it means nothing at all."""
    owner.kazoo.create(layout.MIGRATION, b"{}", acl=_granted())
    try:
        for ask in (_reads, read_migration):
            with pytest.raises(MigrateError) as caught:
                ask(tool)
            assert (type(caught.value), caught.value.where) == (ZookeeperDenied, layout.MIGRATION)
    finally:
        owner.kazoo.delete(layout.MIGRATION)


@pytest.mark.parametrize("path", [LOCK_PATH, "/kraft-migrate/other/lock"])
def test_where_kafkas_znodes_are_closed_the_locks_are_too(
    path: str, server: ZookeeperServer, owner: ZookeeperClient
) -> None:
    """Whoever could change the fence would shut out a run; whoever could make a lock there would hold it up."""
    fence = f"{path}-fence"
    lock = acquire(owner, "me", "plan", path)
    try:
        made = (path, fence, path.rpartition("/")[0]) if path != LOCK_PATH else (path,)
        for acl in owner.acls(made):
            assert not isinstance(acl, Absent)
            assert sorted(acl) == [(1, "world", "anyone"), (31, "sasl", "kafka")]
        with server.client() as nobody:
            assert nobody.data([CHROOT + path])[0] == owner.data([path])[0], "who holds it may be seen"
            changes: tuple[Callable[[], object], ...] = (
                lambda: nobody.kazoo.set(CHROOT + fence, b""),
                lambda: nobody.kazoo.delete(CHROOT + path),
            )
            for change in changes:
                with pytest.raises(NoAuthError):
                    change()
        lock.still_ours()
    finally:
        lock.release()


def test_in_an_open_tree_everybody_may_lock(server: ZookeeperServer, tmp_path: Path) -> None:
    """A login alone closes nothing: the next person may come without one."""
    with server.client() as client:
        client.kazoo.create("/free/brokers/topics", b"", makepath=True)
    with session(server, login(tmp_path, "kafka", "k"), "/free") as client:
        acquire(client, "me", "plan").release()
    with server.client("/free") as nobody:
        acquire(nobody, "me", "plan").release()


def test_the_brokers_identity_lacks_nothing(owner: ZookeeperClient) -> None:
    """It owns the tree."""
    assert find_rights(owner, "kafka", LOCK_PATH).lacks == ()


def test_in_an_open_tree_nobody_lacks_anything(server: ZookeeperServer, owner: ZookeeperClient) -> None:
    """Without a login, too."""
    del owner
    with server.client() as client:
        client.kazoo.create("/open", b"")
    with server.client("/open") as client:
        for path in ("/config/topics", "/brokers/topics", "/controller_epoch"):
            client.kazoo.create(path, b"1", makepath=True)
        found = find_rights(client, "", LOCK_PATH)
    assert found.identity == "nobody"
    assert found.lacks == ()
