"""`backup`: what a file holds is shown without secrets; what would change is shown before anything changes."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from migrate.zookeeper.backup import load_backup, write_backup
from tests.cli.commands import Ended, inventory_in, kraft_migrate
from tests.testing.golden_trees import golden
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


def test_show_lists_every_znode_and_hides_every_secret(cluster: Cluster) -> None:
    """As text and as JSON; with a path, its data too."""
    told = json.loads(kraft_migrate("backup", "show", cluster.file, "--output", "json").out)
    tree = load_backup(str(cluster.file))
    assert {row["path"] for row in told["znodes"]} == set(tree.znodes)
    users = [row for row in told["znodes"] if row["path"].startswith("/config/users/")]
    scram = [line for row in users for line in row["data"] if "SCRAM" in line]
    assert scram
    assert all(" = hmac:" in line for line in scram)
    text = kraft_migrate("backup", "show", cluster.file, "--path", "/config/users").out
    assert "stored_key" not in text + json.dumps(told)
    assert f"{len(users) + 1} znodes of " in text


def test_show_of_a_path_that_is_not_there_and_of_no_backup_is_an_error(cluster: Cluster, tmp_path: Path) -> None:
    """Each names the file."""
    ended = kraft_migrate("backup", "show", cluster.file, "--path", "/nothing")
    assert (ended.code, str(cluster.file) in ended.err) == (1, True)
    (tmp_path / "x").write_text("no backup")
    ended = kraft_migrate("backup", "show", tmp_path / "x")
    assert (ended.code, "E-ZK-10" in ended.err) == (1, True)
    assert kraft_migrate("backup", "show", cluster.file, "--path", "config").code == 64


def test_create_writes_a_file_for_its_owner_and_never_over_another(cluster: Cluster, tmp_path: Path) -> None:
    """Then it is the same as the live tree."""
    ended = cluster.ask("create", "--output", "json", file=tmp_path / "new.gz")
    assert ended.code == 0, ended.err
    assert stat.S_IMODE((tmp_path / "new.gz").stat().st_mode) == 0o600
    assert json.loads(ended.out)["znodes"] == str(len(load_backup(str(tmp_path / "new.gz")).znodes))
    assert cluster.ask("create", file=tmp_path / "new.gz").code == 64
    assert cluster.ask("create", file=tmp_path / "no" / "new.gz").code == 64
    assert cluster.ask("diff", file=tmp_path / "new.gz").code == 0


def test_diff_then_restore_with_its_fingerprint(cluster: Cluster) -> None:
    """The whole way of an operator: shown, refused without confirmation, put back, shown again."""
    assert cluster.ask("diff").code == 0
    cluster.kazoo.set(CONFIG, b'{"version":1,"config":{"cleanup.policy":"delete"}}')
    shown = cluster.ask("diff", "--path", CONFIG)
    assert shown.code == 2
    assert f"~     {CONFIG} version 1" in shown.out
    assert "- config.cleanup.policy = delete" in shown.out
    assert "+ config.cleanup.policy = compact" in shown.out
    command = shown.out.splitlines()[-1].removeprefix("next: kraft-migrate ").split()
    unconfirmed = kraft_migrate(*command[:-2])
    assert (unconfirmed.code, "nothing was written" in unconfirmed.out) == (2, True)
    assert cluster.kazoo.get(CONFIG)[1].version == 1
    wrong = kraft_migrate(*command[:-1], "0" * 64)
    assert (wrong.code, "E-PLAN-02" in wrong.err) == (6, True)
    done = kraft_migrate(*command)
    assert (done.code, "1 znodes were put back" in done.out) == (0, True), done.err
    assert json.loads(cluster.kazoo.get(CONFIG)[0])["config"]["cleanup.policy"] == "compact"
    assert cluster.ask("diff", "--path", CONFIG).code == 0
    again = kraft_migrate(*command)
    assert (again.code, "nothing to put back" in again.out) == (0, True)
    assert cluster.kazoo.exists("/kraft-migrate/lock") is None


def test_what_is_never_put_back_is_told_with_its_reason(cluster: Cluster) -> None:
    """Only with --all, and never written: a restore has nothing to do."""
    before, _ = cluster.kazoo.get("/controller_epoch")
    cluster.kazoo.set("/controller_epoch", b"99")
    try:
        told = cluster.ask("diff", "--all", "--path", "/controller_epoch")
        assert (told.code, "never /controller_epoch" in told.out, "forward only" in told.out) == (0, True, True)
        assert cluster.ask("restore", "--path", "/controller_epoch").code == 0
        assert cluster.kazoo.get("/controller_epoch")[0] == b"99"
    finally:
        cluster.kazoo.set("/controller_epoch", before)


def test_while_a_controller_may_run_nothing_is_put_back(cluster: Cluster) -> None:
    """Its file is there and nobody knows its process: that is no stopped controller."""
    cluster.kazoo.set(CONFIG, b"{}")
    rendered = inventory_with_a_rendered_controller(cluster)
    try:
        ended = kraft_migrate("backup", "restore", cluster.file, "--inventory", rendered, "--path", CONFIG)
        assert (ended.code, "E-ZK-11" in ended.err) == (3, True)
        assert cluster.kazoo.get(CONFIG)[0] == b"{}"
    finally:
        found = json.loads(cluster.ask("diff", "--path", CONFIG, "--output", "json").out)["fingerprint"]
        assert cluster.ask("restore", "--path", CONFIG, "--confirm", found).code == 0


def inventory_with_a_rendered_controller(cluster: Cluster) -> Path:
    """The same inventory, but controller 3000's file exists."""
    folder = cluster.inventory.parent
    (folder / "c3000.properties").write_text("process.roles=controller\nnode.id=3000\n")
    text = cluster.inventory.read_text().replace("/conf/c3000.properties", str(folder / "c3000.properties"))
    path = folder / "rendered.yaml"
    path.write_text(text)
    return path
