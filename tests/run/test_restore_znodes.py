"""Parts of a backup are put back under version checks, by whoever holds the lock, with no controller about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from kazoo.security import make_digest_acl

from migrate.errors import LockLost, PlanIsStale, ZnodeChanged, ZnodesNotRestored
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, LiveView, NoFile, Running, ServiceState, Stopped
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from migrate.run.locks import LockFile, RunLock
from migrate.run.restore_znodes import Restore, Restored, put_back, require_no_controller
from migrate.zookeeper.backup import BackupTree, Standing, compare, fingerprint, load_backup, write_backup
from migrate.zookeeper.client import ZookeeperAccess, ZookeeperClient, connect
from migrate.zookeeper.layout import Znode
from migrate.zookeeper.lock import LOCK_PATH, ZookeeperLock, acquire
from tests.testing import worlds
from tests.testing.golden_trees import golden
from tests.testing.worlds import CONTROLLERS
from tests.testing.zookeeper_server import ZookeeperServer, load_tree, running_server

CONFIG = "/config/topics/compacted_topic"


# -- no controller -----------------------------------------------------------------------------------------------
@dataclass
class Looked:
    """What is seen of a cluster."""

    states: Mapping[NodeId, ServiceState] = field(default_factory=lambda: dict.fromkeys(CONTROLLERS, Stopped()))
    answers: LiveView | Unknown = field(default_factory=lambda: worlds.live(worlds.world_at(Stage.ASSESS)))
    files: Mapping[NodeId, ConfigFile | NoFile | Unknown] = field(default_factory=dict)

    def service_states(self) -> Mapping[NodeId, ServiceState]:
        """As given."""
        return self.states

    def configs(self) -> Mapping[NodeId, ConfigFile | NoFile | Unknown]:
        """As given."""
        return self.files

    def live(self) -> LiveView | Unknown:
        """As given."""
        return self.answers


def test_with_every_controller_stopped_nothing_is_refused() -> None:
    """Also where nobody answers at all, and where they were never rendered."""
    require_no_controller(worlds.inventory(), Looked())
    require_no_controller(worlds.inventory(), Looked(answers=Unknown("nobody")))
    unmade = dict.fromkeys(CONTROLLERS, NoFile("/conf/c.properties"))
    require_no_controller(worlds.inventory(), Looked(states={}, files=unmade))


@pytest.mark.parametrize(
    ("looked", "why"),
    [
        (Looked(states={**dict.fromkeys(CONTROLLERS, Stopped()), CONTROLLERS[2]: Running(1, 1.0, None)}), "it runs"),
        (Looked(states={**dict.fromkeys(CONTROLLERS, Stopped()), CONTROLLERS[2]: Unknown("no pid")}), "it may run"),
        (Looked(states={}), "it may run"),
        (Looked(answers=worlds.live(worlds.world_at(Stage.CONTROLLERS))), "it answers"),
        (
            Looked(
                answers=worlds.live(worlds.world_at(Stage.CONTROLLERS)),
                files=dict.fromkeys(CONTROLLERS, NoFile("/conf/c.properties")),
            ),
            "it answers",
        ),
        (
            Looked(
                states=dict.fromkeys(CONTROLLERS, Running(1, 1.0, None)),
                answers=Unknown("no route"),
                files=dict.fromkeys(CONTROLLERS, NoFile("/conf/c.properties")),
            ),
            "it runs",
        ),
    ],
)
def test_a_controller_that_runs_or_may_run_refuses_everything(looked: Looked, why: str) -> None:
    """What cannot be seen counts as running; one that answers runs, whatever our records say."""
    with pytest.raises(ZnodesNotRestored, match=why):
        require_no_controller(worlds.inventory(), looked)


# -- on a real server --------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """One for the module."""
    with running_server(tmp_path_factory.mktemp("restore")) as running:
        yield running


@dataclass(frozen=True)
class Standard:
    """A cluster's tree, its backup, and the lock in our hands."""

    client: ZookeeperClient
    tree: BackupTree
    lock: RunLock
    znode_lock: ZookeeperLock
    inventory: Inventory

    def restore(self, below: str, confirm: str = "") -> Restored:
        """Put back what is shown now, or what was confirmed."""
        what = Restore(self.tree, below, confirm or fingerprint(compare(self.tree, self.client, below)), "0" * 64)
        return put_back(what, self.client, self.lock, LOCK_PATH, self.inventory, SystemClock())

    def data(self, path: str) -> bytes | None:
        """A znode's data now."""
        (found,) = self.client.data([path])
        assert isinstance(found, Znode), path
        return found.data


@pytest.fixture
def standard(server: ZookeeperServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Standard]:
    """Each test in a chroot of its own."""
    chroot = f"/{abs(hash(request.node.nodeid)):x}"
    with server.client() as root:
        root.kazoo.create(chroot)
    with server.client(chroot) as client:
        load_tree(client, golden("zk-before"))
        write_backup(client, str(tmp_path / "b.gz"))
        held = acquire(client, "tests", "restore")
        lock = RunLock(LockFile(tmp_path / "runs" / "lock"), held)
        inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
        yield Standard(client, load_backup(str(tmp_path / "b.gz")), lock, held, inventory)


@pytest.mark.zookeeper
def test_a_changed_and_a_deleted_znode_come_back_and_nothing_else_moves(standard: Standard) -> None:
    """Data is what it was, the version the next one; what was made since stays; all of it is in the journal."""
    before = standard.data(CONFIG)
    user = next(path for path in sorted(standard.tree.znodes) if path.startswith("/config/users/"))
    standard.client.kazoo.set(CONFIG, b'{"version":1,"config":{}}')
    standard.client.kazoo.delete(user, recursive=True)
    standard.client.kazoo.create("/config/topics/later", b"{}")
    done = standard.restore("/config")
    assert CONFIG in done.paths
    assert user in done.paths
    assert standard.data(CONFIG) == before
    assert standard.data("/config/topics/later") == b"{}"
    assert {entry.standing for entry in compare(standard.tree, standard.client, "/config")} == {
        Standing.SAME,
        Standing.LIVE_ONLY,
    }
    events = journals.read(done.folder / "journal.jsonl").events
    effects = [(event.name, event.data["effect"]) for event in events if event.name.startswith("effect")]
    assert ("effect", "set-znode") in effects
    assert ("effected", "create-znode") in effects
    assert events[-1].name == "end"
    assert load_backup(str(done.folder / "before.jsonl.gz")).znodes["/config/topics/later"]


@pytest.mark.zookeeper
def test_an_emptied_tree_gets_its_topics_back(standard: Standard) -> None:
    """What a stale /migration does to ZooKeeper: all topics are deleted; each znode of theirs comes back, in order."""
    topics = [path for path in standard.tree.znodes if path.startswith("/brokers/topics/")]
    assert len(topics) > 50
    for name in standard.client.kazoo.get_children("/brokers/topics"):
        standard.client.kazoo.delete(f"/brokers/topics/{name}", recursive=True)
    done = standard.restore("/brokers/topics")
    assert sorted(done.paths) == sorted(topics)
    for path in topics:
        kept = standard.tree.znodes[path]
        assert isinstance(kept, Znode)
        assert (standard.data(path) or b"") == (kept.data or b"")


@pytest.mark.zookeeper
def test_nothing_is_written_where_the_tree_moved_since_it_was_shown(standard: Standard) -> None:
    """Another version is enough, the content may even be the same."""
    standard.client.kazoo.set(CONFIG, b"{}")
    shown = fingerprint(compare(standard.tree, standard.client, "/config"))
    standard.client.kazoo.set(CONFIG, b"{}")
    with pytest.raises(PlanIsStale, match="another than the one that was confirmed"):
        standard.restore("/config", shown)
    assert standard.data(CONFIG) == b"{}"
    assert not list(Path(standard.inventory.runs).glob("restore-*"))


@pytest.mark.zookeeper
def test_a_znode_that_changes_at_the_last_moment_is_not_overwritten(
    standard: Standard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZooKeeper itself refuses: the write names the version that was shown."""
    standard.client.kazoo.set(CONFIG, b"{}")
    lock = standard.lock.still_ours

    def late() -> None:
        lock()
        standard.client.kazoo.set(CONFIG, b"later")

    with monkeypatch.context() as patch:
        patch.setattr(RunLock, "still_ours", lambda _: late())
        with pytest.raises((ZnodeChanged, PlanIsStale)):
            standard.restore(CONFIG)
    assert standard.data(CONFIG) == b"later"


@pytest.mark.zookeeper
def test_a_run_that_lost_its_lock_writes_nothing(standard: Standard) -> None:
    """Another run took it: the next act is refused."""
    standard.client.kazoo.set(CONFIG, b"{}")
    standard.client.kazoo.delete(LOCK_PATH)
    with pytest.raises(LockLost):
        standard.restore(CONFIG)
    assert standard.data(CONFIG) == b"{}"


@pytest.mark.zookeeper
def test_znodes_come_back_with_their_acls(server: ZookeeperServer, tmp_path: Path) -> None:
    """On a secured tree: what only its owner may touch is again its owner's alone."""
    acl = make_digest_acl("kafka", "secret", all=True)
    with server.client() as root:
        root.kazoo.create("/secured")
    with connect(server.address + "/secured", access=ZookeeperAccess(digest="kafka:secret")) as client:
        load_tree(client, golden("zk-before"))
        client.kazoo.create("/config/users/owned", b'{"version":1,"config":{}}', acl=[acl])
        write_backup(client, str(tmp_path / "b.gz"))
        tree = load_backup(str(tmp_path / "b.gz"))
        client.kazoo.delete("/config/users/owned")
        lock = RunLock(LockFile(tmp_path / "runs" / "lock"), acquire(client, "tests", "restore"))
        inventory = replace(worlds.inventory(), runs=str(tmp_path / "runs"))
        what = Restore(tree, "/config/users", fingerprint(compare(tree, client, "/config/users")), "0" * 64)
        done = put_back(what, client, lock, LOCK_PATH, inventory, SystemClock())
        assert done.paths == ("/config/users/owned",)
        assert client.acls(["/config/users/owned"])[0] == tree.acls["/config/users/owned"]
        lock.release()
