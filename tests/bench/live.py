"""The race of reading a live ZooKeeper: our whole view against one get after the other."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.read import read_view
from tests.bench.decoding import digest
from tests.bench.files import topic_znodes
from tests.bench.races import Race, Work
from tests.testing.zookeeper_server import running_server

ADDRESS: Final = "address"
AT_ONCE: Final = 2_000  # creates in flight
CLUSTER: Final = b'{"version":"1","id":"REh233dFSJKhrlnVHSnalQ"}'

Row = tuple[str, int, list[int], list[int], int, int]  # topic, partition, replicas, ISR, leader, its epoch


def fill(client: ZookeeperClient, partitions: int) -> None:
    """Make the znodes of a cluster below the client's chroot."""
    for path in ("/brokers/ids", "/brokers/topics", "/cluster"):
        client.kazoo.ensure_path(path)
    client.kazoo.create("/cluster/id", CLUSTER)
    pending: deque[object] = deque()
    for path, data in topic_znodes(partitions):
        pending.append(client.kazoo.create_async(path, data or b""))
        if len(pending) >= AT_ONCE:
            pending.popleft().get(timeout=60)  # type: ignore[attr-defined] # kazoo has no types
    for result in pending:
        result.get(timeout=60)  # type: ignore[attr-defined]


@contextmanager
def a_server(folder: Path, size: int) -> Iterator[None]:
    """A real server with that many partitions; its address stands in a file."""
    with running_server(folder / "server", "snapCount=1000000\n") as server:
        with server.client() as client:
            fill(client, size)
        (folder / ADDRESS).write_text(server.address)
        yield


@contextmanager
def our_view(folder: Path, _size: int) -> Iterator[Work]:
    """The whole view: every kind, each znode as it stood still, ACLs too."""
    with connect((folder / ADDRESS).read_text()) as client:

        def told(view: ZookeeperView) -> str:
            columns = view.partitions
            assert not view.malformed
            return digest(
                sorted(
                    zip(
                        columns.topic,
                        columns.partition,
                        columns.replicas,
                        columns.isr,
                        columns.leader,
                        columns.leader_epoch,
                        strict=True,
                    )
                )
            )

        yield Work(lambda: read_view(client, Digester()), told)


@contextmanager
def one_by_one(folder: Path, _size: int) -> Iterator[Work]:
    """Kazoo as its documentation shows it: a topic, then each of its partitions' states; nothing else is read."""
    client = KazooClient((folder / ADDRESS).read_text())
    client.start(20)
    try:
        yield Work(lambda: list(states(client)), lambda rows: digest(sorted(rows)))
    finally:
        client.stop()
        client.close()


def states(client: KazooClient) -> Iterator[Row]:
    """Every partition."""
    for topic in client.get_children("/brokers/topics"):
        assigned = json.loads(client.get(f"/brokers/topics/{topic}")[0])
        for partition, replicas in assigned["partitions"].items():
            state = json.loads(client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")[0])
            yield topic, int(partition), replicas, state["isr"], state["leader"], state["leader_epoch"]


NOTE: Final = "kazoo, one get after the other in one thread, on the loopback: a network makes it slower still"
RACES: Final = (
    Race(
        "live ZooKeeper",
        20_000,
        promise=20,
        at_most=False,
        around=a_server,
        sides={"ours": our_view, "peer": one_by_one},
        growing=("ours",),  # the peer is two minutes at 5N, in which nothing is learnt
        note=NOTE,
    ),
)
