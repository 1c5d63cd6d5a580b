"""`inventory init`: a file from a running ZooKeeper, never over another, readable by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import dead_port, kraft_migrate
from tests.testing.golden_trees import golden
from tests.testing.zookeeper_server import load_tree, running_server


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server with a captured cluster below a chroot."""
    with running_server(tmp_path_factory.mktemp("zookeeper")) as server:
        with server.client() as root:
            root.kazoo.ensure_path("/some/where")
        with server.client("/some/where") as client:
            load_tree(client, golden("zk-before"))
            yield f"{server.address}/some/where"


@pytest.mark.zookeeper
def test_a_running_cluster_gives_a_file_with_its_gaps(connect: str, tmp_path: Path) -> None:
    """To stdout or to a file of mode 0600; a second time is refused."""
    path = tmp_path / "inventory.yaml"
    shown = kraft_migrate("inventory", "init", "--zookeeper", connect)
    assert shown.code == 0
    assert f'zookeeper: "{connect}"' in shown.out
    written = kraft_migrate("inventory", "init", "--zookeeper", connect, "--out", path)
    assert written.code == 0
    assert path.read_text() == shown.out
    assert path.stat().st_mode & 0o777 == 0o600
    again = kraft_migrate("inventory", "init", "--zookeeper", connect, "--out", path)
    assert again.code == 64
    refused = kraft_migrate("assess", "--inventory", path)
    assert refused.code == 1
    assert "is not filled in" in refused.err


def test_a_dead_port_is_told(tmp_path: Path) -> None:
    """Nothing is written."""
    path = tmp_path / "inventory.yaml"
    answer = kraft_migrate("inventory", "init", "--zookeeper", f"127.0.0.1:{dead_port()}", "--out", path)
    assert answer.code == 1
    assert not path.exists()
