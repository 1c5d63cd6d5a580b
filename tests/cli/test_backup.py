"""`backup`: what would change is shown, without secrets, before anything changes."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from migrate.hosts.executors import Executor, executor_of
from migrate.model.inventory import Inventory
from migrate.zookeeper.backup import load_backup, write_backup
from tests.cli.commands import Ended, inventory_in, kraft_migrate
from tests.testing.golden_trees import golden
from tests.testing.this_host import LocalFiles
from tests.testing.zookeeper_server import load_tree, running_server

pytestmark = pytest.mark.zookeeper
CONFIG = "/config/topics/compacted_topic"
CHROOT = "/kafka"


class Cluster:
    """A ZooKeeper server with a real cluster's tree, its inventory and a backup."""

    def __init__(self, address: str, folder: Path) -> None:
        self.file = folder / "tree.jsonl.gz"
        self.inventory = inventory_in(folder, zookeeper=address + CHROOT)
        self.kazoo = KazooClient(address + CHROOT)
        self.kazoo.start(timeout=20)

    def ask(self, command: str, *words: object, file: Path | None = None) -> Ended:
        """`backup COMMAND FILE --inventory ...`."""
        return kraft_migrate("backup", command, file or self.file, "--inventory", self.inventory, *words)


@pytest.fixture(autouse=True)
def _files_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node's files are on this host: that a controller has none is seen."""

    def made(inventory: Inventory) -> Executor:
        return replace(executor_of(inventory), files=LocalFiles())  # type: ignore[arg-type] # it never crashes here

    monkeypatch.setattr("migrate.observe.sources.executor_of", made)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for the module; each test leaves the tree as it was."""
    folder = tmp_path_factory.mktemp("backup")
    with running_server(folder / "server") as server:
        with server.client() as root:
            root.kazoo.create(CHROOT)
        with server.client(CHROOT) as client:
            load_tree(client, golden("zk-before"))
            found = Cluster(server.address, folder)
            write_backup(client, str(found.file))
            yield found
            found.kazoo.stop()
            found.kazoo.close()


def test_a_path_that_is_not_there_and_no_backup_are_errors(cluster: Cluster, tmp_path: Path) -> None:
    """Each names the file or the path."""
    ended = cluster.ask("restore", "--path", "/nothing")
    assert (ended.code, "the backup has no znode /nothing" in ended.err) == (1, True)
    (tmp_path / "x").write_text("no backup")
    ended = cluster.ask("restore", "--path", CONFIG, file=tmp_path / "x")
    assert (ended.code, "E-ZK-10" in ended.err) == (1, True)
    assert cluster.ask("restore", "--path", "config").code == 64


def test_secrets_are_shown_as_digests_alone(cluster: Cluster) -> None:
    """Of both sides of a difference, and of what is gone."""
    users = [path for path in load_backup(str(cluster.file)).znodes if path.startswith("/config/users/")]
    kept = {path: cluster.kazoo.get(path)[0] for path in users}
    for path in users:
        cluster.kazoo.set(path, b"{}")
    try:
        shown = cluster.ask("restore", "--path", "/config/users").out
    finally:
        for path, data in kept.items():
            cluster.kazoo.set(path, data)
    scram = [line for line in shown.splitlines() if "SCRAM" in line]
    assert scram
    assert all(" = hmac:" in line for line in scram)
    assert "stored_key" not in shown


def test_create_writes_a_file_for_its_owner_and_never_over_another(cluster: Cluster, tmp_path: Path) -> None:
    """Then it is the same as the live tree."""
    ended = cluster.ask("create", file=tmp_path / "new.gz")
    assert ended.code == 0, ended.err
    assert stat.S_IMODE((tmp_path / "new.gz").stat().st_mode) == 0o600
    assert f"{len(load_backup(str(tmp_path / 'new.gz')).znodes)} znodes" in ended.out
    assert cluster.ask("create", file=tmp_path / "new.gz").code == 64
    assert cluster.ask("create", file=tmp_path / "no" / "new.gz").code == 64
    assert cluster.ask("restore", "--path", "/", file=tmp_path / "new.gz").code == 0


def test_shown_then_put_back_with_its_fingerprint(cluster: Cluster) -> None:
    """The whole way of an operator: shown, refused with another confirmation, put back, shown again."""
    assert cluster.ask("restore", "--path", "/").code == 0
    cluster.kazoo.set(CONFIG, b'{"version":1,"config":{"cleanup.policy":"delete"}}')
    shown = cluster.ask("restore", "--path", CONFIG)
    assert (shown.code, "nothing was written" in shown.out) == (2, True)
    assert f"~     {CONFIG} version 1" in shown.out
    assert "- config.cleanup.policy = delete" in shown.out
    assert "+ config.cleanup.policy = compact" in shown.out
    assert cluster.kazoo.get(CONFIG)[1].version == 1
    wrong = cluster.ask("restore", "--path", CONFIG, "--confirm", "0" * 64)
    assert (wrong.code, "E-PLAN-02" in wrong.err) == (6, True)
    confirm = ("--path", CONFIG, "--confirm", shown.out.split()[-1])
    done = cluster.ask("restore", *confirm)
    assert (done.code, "1 znodes were put back" in done.out) == (0, True), done.err
    assert json.loads(cluster.kazoo.get(CONFIG)[0])["config"]["cleanup.policy"] == "compact"
    assert cluster.ask("restore", "--path", CONFIG).code == 0
    again = cluster.ask("restore", *confirm)
    assert (again.code, "nothing to put back" in again.out) == (0, True)
    assert cluster.kazoo.exists("/kraft-migrate/lock") is None


def test_what_is_never_put_back_is_told_with_its_reason(cluster: Cluster) -> None:
    """And never written: a restore has nothing to do."""
    before, _ = cluster.kazoo.get("/controller_epoch")
    cluster.kazoo.set("/controller_epoch", b"99")
    try:
        told = cluster.ask("restore", "--path", "/controller_epoch")
        assert (told.code, "never /controller_epoch" in told.out, "forward only" in told.out) == (0, True, True)
        assert cluster.kazoo.get("/controller_epoch")[0] == b"99"
    finally:
        cluster.kazoo.set("/controller_epoch", before)


def test_while_a_controller_may_run_nothing_is_put_back(cluster: Cluster) -> None:
    """Its file is there and nobody knows its process: that is no stopped controller."""
    cluster.kazoo.set(CONFIG, b"{}")
    rendered = inventory_with_a_rendered_controller(cluster)
    try:
        ended = kraft_migrate("backup", "restore", cluster.file, "--inventory", rendered, "--path", CONFIG)
        assert (ended.code, "E-ZK-11" in ended.err, f"~     {CONFIG}" in ended.out) == (3, True, True)
        assert cluster.kazoo.get(CONFIG)[0] == b"{}"
    finally:
        shown = cluster.ask("restore", "--path", CONFIG).out
        assert cluster.ask("restore", "--path", CONFIG, "--confirm", shown.split()[-1]).code == 0


def inventory_with_a_rendered_controller(cluster: Cluster) -> Path:
    """The same inventory, but controller 3000's file exists."""
    folder = cluster.inventory.parent
    (folder / "c3000.properties").write_text("process.roles=controller\nnode.id=3000\n")
    text = cluster.inventory.read_text().replace("/conf/c3000.properties", str(folder / "c3000.properties"))
    path = folder / "rendered.yaml"
    path.write_text(text)
    return path
