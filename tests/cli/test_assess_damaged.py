"""`assess` by a connect string on a real server whose tree was damaged: every fault is told, exit 3, all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.diff.compare import Question
from migrate.errors import MalformedZnode
from migrate.model.secrets import Digester
from migrate.zookeeper.read import read_view
from tests.cli.commands import kraft_migrate
from tests.testing.clusters import kraft_view
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import ZookeeperServer, load_tree, running_server

pytestmark = pytest.mark.zookeeper
DAMAGE = {
    "/brokers/topics/t00": b"\xff",
    "/config/brokers/not-a-number": b'{"version":1,"config":{}}',
    "/config/clients/app-x": b'{"version":1,"config":{"producer_byte_rate":"fast"}}',
    "/config/users/mallory": b'{"version":1,"config":{"SCRAM-SHA-512":"salt=1"}}',
    "/migration": None,
}
EXPECTED = {
    "/brokers/topics/t00": "B-ZKN-16",
    "/config/brokers/not-a-number": "B-ZKN-18",
    "/config/clients/app-x": "B-ZKN-12",
    "/config/users/mallory": "B-ZKN-17",
    "/migration": "B-ZKN-02",
    "/controller_epoch": "B-ZKN-09",
    "/admin/delete_topics/t05": "B-ZKN-06",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """A captured cluster below a chroot, damaged there; two topics have one id."""
    with running_server(tmp_path_factory.mktemp("zookeeper")) as running:
        with running.client() as root:
            root.kazoo.create("/bent")
        with running.client("/bent") as client:
            load_tree(client, golden("zk-before"))
            for path, data in DAMAGE.items():
                client.kazoo.ensure_path(path)
                client.kazoo.set(path, data)
            client.kazoo.delete("/controller_epoch")
            client.kazoo.ensure_path("/admin/delete_topics/t05")
            client.kazoo.set("/brokers/topics/t03", client.kazoo.get("/brokers/topics/t02")[0])
            client.kazoo.delete("/brokers/topics/t04/partitions/0/state")
        yield running


def test_every_fault_is_told_at_once_and_the_verdict_is_blocked(server: ZookeeperServer, tmp_path: Path) -> None:
    """By code and znode, as JSON and in the report; strangers are named, checks of the whole are blind."""
    report = tmp_path / "a.html"
    with server.client("/bent"):
        answer = kraft_migrate("assess", "--zookeeper", f"{server.address}/bent", "--output", "json", "--html", report)
    assert answer.code == 3
    found = json.loads(answer.out)["findings"]
    told = {entry["about"]: entry["code"] for entry in found if entry["severity"] == "B"}
    assert EXPECTED.items() <= told.items()
    assert told["topics t02, t03"] == "B-ZKN-11"
    assert "B-ZKN-04" in told.values()
    assert {entry["about"] for entry in found if entry["code"] == "W-ZKN-20"} >= {"127.0.0.1"}
    blind = {entry["code"] for entry in found if entry["severity"] == "?"}
    assert {"B-ZKN-05", "B-HLT-02", "B-ZKN-01"} <= blind, "what needs the whole tree is no pass"
    assert "BLOCKED" in report.read_text()


def test_a_damaged_tree_is_not_compared(server: ZookeeperServer) -> None:
    """Its missing topic would look like one that is only in KRaft."""
    with server.client("/bent") as client:
        view = read_view(client, Digester())
    with pytest.raises(MalformedZnode, match="/brokers/topics/t00"):
        Question(view, kraft_view())
