"""One ZooKeeper server for the area's tests; each test has its own chroot on it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from migrate.zookeeper.client import ZookeeperClient
from tests.testing.zookeeper_server import ZookeeperServer, running_server

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """A server that no test may stop."""
    with running_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def chroot(server: ZookeeperServer) -> str:
    """A chroot that exists and is empty."""
    path = f"/cluster-{next(_NUMBERS)}"
    with server.client() as root:
        root.kazoo.create(path)
    return path


@pytest.fixture
def client(server: ZookeeperServer, chroot: str) -> Iterator[ZookeeperClient]:
    """A session below the chroot."""
    with server.client(chroot) as session:
        yield session
