"""A left-over /migration on real Kafka: refused with the guard, and without it ZooKeeper is seen to be emptied.

Kafka 3.9: fresh controllers that find a copied offset skip the copy and write their empty metadata back as the last
broker registers (strimzi-kafka-operator #11262).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from migrate.lab.cluster import Lab
from tests.lab.commands import kraft_migrate, stopped

pytestmark = pytest.mark.kafka
SECONDS = 300
LEFT_OVER = {  # lower than anything that fresh controllers have: the pair is compared epoch first
    "version": 0,
    "kraft_controller_id": 3000,
    "kraft_controller_epoch": 1,
    "kraft_metadata_offset": 5,
    "kraft_metadata_epoch": 0,
}
WITHOUT_THE_GUARD = """
import sys
from dataclasses import replace
from migrate.checks.registry import CHECKS
from migrate.cli.main import main
from migrate.model import detect
from migrate.model.outcome import Ready
from migrate.model.views import NoZnode
from migrate.run import guards
from migrate.steps import controllers
del CHECKS["B-ZKN-01"]
controllers._no_other_copy = lambda world: Ready()
guards.check_expectations = lambda planned, world: None
by_zookeeper = detect._by_zookeeper
detect._by_zookeeper = lambda view, kraft: by_zookeeper(replace(view, migration=NoZnode()), kraft)
sys.argv = ["kraft-migrate", *sys.argv[1:]]
main()
"""


@contextmanager
def zookeeper(directory: Path) -> Iterator[KazooClient]:
    """A session with the lab's ZooKeeper."""
    client = KazooClient(Lab.open(directory).inventory.zookeeper)
    client.start(timeout=20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def topics(directory: Path) -> list[str]:
    """The topics that ZooKeeper knows."""
    with zookeeper(directory) as client:
        return sorted(client.get_children("/brokers/topics"))


@pytest.fixture
def remembering(tmp_path: Path) -> Iterator[Path]:
    """A cluster that is prepared, and whose /migration remembers an attempt of long ago."""
    folder = tmp_path / "lab"
    try:
        ended = kraft_migrate("lab", "demo", "--dir", str(folder), "--until", "prepare", "--no-load")
        assert ended.returncode == 0, ended.stderr[-3000:]
        with zookeeper(folder) as client:
            client.create("/migration", json.dumps(LEFT_OVER).encode())
        yield folder
    finally:
        stopped(folder)


@pytest.mark.long
@pytest.mark.parametrize("guard", ["refused", "emptied"])
def test_a_stale_migration_znode(guard: str, remembering: Path) -> None:
    """With the guard nothing is started; without it every topic is gone from ZooKeeper."""
    before = topics(remembering)
    assert len(before) > 5
    words = ("lab", "demo", "--dir", str(remembering), "--until", "migration-mode", "--no-load")
    if guard == "refused":
        ended = kraft_migrate(*words)
        assert ended.returncode == 3, ended.stderr[-3000:]
        assert "B-ZKN-01" in ended.stderr
        assert topics(remembering) == before
        return
    command = [sys.executable, "-c", WITHOUT_THE_GUARD, *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ) as run:
        left, deadline = before, time.monotonic() + SECONDS
        while left and time.monotonic() < deadline:
            over = run.poll() is not None
            left = topics(remembering)
            if over:
                break
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=120)
    assert left == [], said.decode()[-4000:]
