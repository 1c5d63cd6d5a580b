"""The races of reading every partition's state from a live ZooKeeper that holds a large cluster.

Ours is the whole view (every kind of znode, ACLs too); the peers read topics and states alone: kazoo a thousand at
once, and ZooKeeper's own Java client ten at once, as Kafka does by default (`zookeeper.max.in.flight.requests`).  All
sides are processes that have read once before, and parse what they read; the server is one as operators run it, with
its tree loaded from a snapshot.
"""

from __future__ import annotations

import json
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient

from migrate.model.secrets import Digester
from migrate.model.views import ZookeeperView
from migrate.zookeeper.client import connect
from migrate.zookeeper.read import read_view
from tests.bench import files
from tests.bench.javac import compiled, no_compiler
from tests.bench.races import SIDES, Race, Side, Work
from tests.testing.zookeeper_server import running_server

SIZE: Final = 200_000
ADDRESS: Final = "address"  # the file with the server's
Row = tuple[str, int, list[int], list[int], int, int]  # topic, partition, replicas, ISR, leader, its epoch
# as operators run it: the compiler and the heap that a large tree needs; the snapshot has no digest of its tree
SERVER: Final = ("-Xmx2g", "-XX:TieredStopAtLevel=4", "-Dzookeeper.digest.enabled=false")
TOPICS: Final = "/brokers/topics"


@contextmanager
def a_large_server(folder: Path, size: int) -> Iterator[None]:
    """A real server that has loaded that many partitions; its address stands in a file."""
    data = folder / "server" / "data" / "version-2"
    data.mkdir(parents=True)
    zxid = files.zookeeper_snapshot(folder / "made", size)
    (folder / "made").rename(data / f"snapshot.{zxid:x}")
    with running_server(folder / "server", "snapCount=10000000\n", SERVER) as server:
        (folder / ADDRESS).write_text(server.address)
        yield


def told(rows: Iterable[Row]) -> str:
    """As the Java program tells: how many partitions, and a sum over all that was read."""
    count = total = 0
    for _, partition, replicas, isr, leader, epoch in rows:
        count += 1
        total += partition + 5 * sum(replicas) + 3 * sum(isr) + leader + 7 * epoch
    return f"{count} {total}"


def rows_of(view: ZookeeperView) -> Iterator[Row]:
    """Every partition of a view."""
    assert not view.malformed
    one = view.partitions
    return zip(one.topic, one.partition, one.replicas, one.isr, one.leader, one.leader_epoch, strict=True)


@contextmanager
def ours(folder: Path, _size: int) -> Iterator[Work]:
    """The whole view."""
    with connect((folder / ADDRESS).read_text()) as client:

        def timed() -> ZookeeperView:
            return read_view(client, Digester())

        timed()
        yield Work(timed, lambda view: told(rows_of(view)))


# -- peers -----------------------------------------------------------------------------------------------------------
def by_kazoo(read: Callable[[KazooClient], Iterable[Row]]) -> Side:
    """One of kazoo's ways."""

    @contextmanager
    def running(folder: Path, _size: int) -> Iterator[Work]:
        client = KazooClient((folder / ADDRESS).read_text())
        client.start(20)
        try:
            yield Work(lambda: list(read(client)), told)
        finally:
            client.stop()
            client.close()

    return running


def many_at_once(client: KazooClient, most: int = 1_000) -> Iterator[Row]:
    """Kazoo's `get_async`, that many in flight."""
    names = client.get_children(TOPICS)
    assigned = [json.loads(raw)["partitions"] for raw in windowed(client, [f"{TOPICS}/{name}" for name in names], most)]
    paths = [
        f"{TOPICS}/{name}/partitions/{number}/state"
        for name, numbers in zip(names, assigned, strict=True)
        for number in numbers
    ]
    answers = windowed(client, paths, most)
    for name, numbers in zip(names, assigned, strict=True):
        for number, replicas in numbers.items():
            state = json.loads(next(answers))
            yield name, int(number), replicas, state["isr"], state["leader"], state["leader_epoch"]


def windowed(client: KazooClient, paths: Sequence[str], most: int) -> Iterator[bytes]:
    """The data of each."""
    pending: deque[Any] = deque()
    for path in paths:
        pending.append(client.get_async(path))
        if len(pending) >= most:
            yield pending.popleft().get(timeout=60)[0]
    for result in pending:
        yield result.get(timeout=60)[0]


def by_java(many: int) -> Side:
    """ZooKeeper's own client, as `ReadStates.java` uses it; compiled, started and warmed before it is measured."""

    @contextmanager
    def running(folder: Path, _size: int) -> Iterator[Work]:
        command = [*compiled(folder, "ReadStates"), (folder / ADDRESS).read_text()]
        with subprocess.Popen(
            [*command, str(many)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as program:
            asked, answers = program.stdin, program.stdout
            assert asked is not None
            assert answers is not None

            def timed() -> str:
                asked.write("\n")
                asked.flush()
                return answers.readline().strip()

            timed()
            yield Work(timed, str, others=(program.pid,))
            asked.close()

    return running


def a_race(
    name: str,
    promise: float,
    peer: Side,
    who: str,
    *,
    lacks: Callable[[], str] = str,
    growing: Sequence[str] = SIDES,
) -> Race:
    """Against one of them."""
    return Race(
        f"live read, {name}",
        SIZE,
        promise=promise,
        at_most=False,
        around=a_large_server,
        sides={"ours": ours, "peer": peer},
        growing=growing,
        goal="P4",
        peer=who,
        lacks=lacks,
        note="ours: the whole view, warm; the peers: topics and states, parsed; Java's are warm",
        least=SIZE // 100,
    )


RACES: Final = (
    a_race("a thousand at once", 8, by_kazoo(many_at_once), "kazoo, get_async, 1,000 in flight"),
    a_race("Java, ten at once", 4, by_java(10), "ZooKeeper's client, 10 in flight, as Kafka", lacks=no_compiler),
)
