"""How long Kafka itself takes to copy ZooKeeper's metadata, and how long we take to say that both are equal.

    python -m tests.bench.copying [--partitions N] [--rounds N] [--json FILE]

A real ZooKeeper with that many partitions (the benchmarks' snapshot, which its server loads) and a real controller of
Kafka 3.9 with the migration enabled.  The hundred brokers of that cluster are registrations alone: a controller begins
to copy when each of them is registered, and asks nothing else of them.  Kafka's figure is its own: the line of its log
in which it says how long the copy took.  Ours is `metadata compare` on the files that both left, each time a new
process, checked to say "equal"; of a copy at whose end Kafka has written no snapshot yet, so that all of it lies in log
segments.  A size that was not run is not told: what one reckons from these, one says.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient

from migrate.errors import MigrateError
from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.java.run import java_argv
from migrate.kafka.connection import Connection
from migrate.lab.topology import free_ports
from migrate.model.inventory import Access
from migrate.protocol.messages import BROKER_REGISTRATION
from migrate.protocol.primitives import uuid_text
from tests.bench import files
from tests.bench.races import ROOT, Race, Work, machine
from tests.testing.kraft_cluster import LOG4J, wait_for
from tests.testing.zookeeper_server import ZookeeperServer

CONTROLLER: Final = 3000
BROKERS: Final = 100  # that `files.cluster` assigns partitions to
CLUSTER_ID: Final = "REh233dFSJKhrlnVHSnalQ"  # as `files.zookeeper_snapshot` writes it
DONE: Final = re.compile(
    r"Completed migration of metadata.*?(\d+) records were generated in (\d+) ms across (\d+) batches"
)
PROMISE: Final = 0.03
START_SECONDS: Final = 300.0
COPY_SECONDS: Final = 1_200.0
BOTH_EQUAL: Final = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """What Kafka's log says of a copy, and our seconds for the check, a round each."""

    partitions: int
    records: int
    batches: int
    kafka_seconds: float
    ours_seconds: tuple[float, ...]

    @property
    def share(self) -> float:
        """Ours / Kafka's."""
        return statistics.median(self.ours_seconds) / self.kafka_seconds


@contextmanager
def zookeeper(folder: Path, partitions: int) -> Iterator[ZookeeperServer]:
    """A server that has loaded the cluster, and the znodes without which no controller takes over."""
    data = folder / "data" / "version-2"
    data.mkdir(parents=True)
    zxid = files.zookeeper_snapshot(folder / "made", partitions)
    (folder / "made").rename(data / f"snapshot.{zxid:x}")
    heap = f"-Xmx{512 + 5 * partitions // 1_000}m"
    # the benchmarks' snapshot carries no digest of its tree, which a server that keeps one would look for
    options = [heap, "-XX:TieredStopAtLevel=4", "-Dzookeeper.digest.enabled=false"]
    server = ZookeeperServer(folder, "snapCount=10000000\n", options)
    try:
        server.start()
        with server.client() as client:
            kazoo: KazooClient = client.kazoo
            for node in range(BROKERS):
                kazoo.create(f"/brokers/ids/{node}", registered(node))
            kazoo.create("/controller_epoch", b"37")
        yield server
    finally:
        server.stop()


def registered(node: int) -> bytes:
    """What a broker in migration mode writes into its znode."""
    value = {
        "features": {},
        "listener_security_protocol_map": {"INTERNAL": "PLAINTEXT"},
        "endpoints": [f"INTERNAL://127.0.0.1:{20_000 + node}"],
        "jmx_port": -1,
        "port": 20_000 + node,
        "host": "127.0.0.1",
        "version": 5,
        "timestamp": "1700000000000",
    }
    return json.dumps(value, separators=(",", ":")).encode()


@contextmanager
def controller(folder: Path, address: str, partitions: int) -> Iterator[tuple[Path, str]]:
    """A controller with the migration enabled: its log, and its address."""
    data, (port,) = folder / "metadata", free_ports(1)
    data.mkdir(parents=True)
    directory = uuid_text(bytes(14) + bytes([3, 77]))
    (data / "meta.properties").write_text(
        f"version=1\nnode.id={CONTROLLER}\ncluster.id={CLUSTER_ID}\ndirectory.id={directory}\n"
    )
    (folder / "log4j.properties").write_text(LOG4J)
    (folder / "controller.properties").write_text(
        f"process.roles=controller\nnode.id={CONTROLLER}\ncontroller.quorum.voters={CONTROLLER}@127.0.0.1:{port}\n"
        f"controller.listener.names=CTL\nlisteners=CTL://127.0.0.1:{port}\n"
        f"listener.security.protocol.map=CTL:PLAINTEXT,INTERNAL:PLAINTEXT\ninter.broker.listener.name=INTERNAL\n"
        f"log.dirs={data}\nzookeeper.metadata.migration.enable=true\nzookeeper.connect={address}\n"
    )
    options = (
        f"-Xmx{768 + 4 * partitions // 1_000}m",
        f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}",
    )
    argv = java_argv(
        find_java(), kafka_jars().classpath, "kafka.Kafka", (str(folder / "controller.properties"),), options
    )
    log = folder / "controller.log"
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out, cwd=folder) as process:
        try:
            yield log, f"127.0.0.1:{port}"
        finally:
            process.kill()


def register(address: str) -> None:
    """Register every broker, in migration mode."""
    with Connection(address, Access()) as connection:
        for node in range(BROKERS):
            listener = {"name": "INTERNAL", "host": "127.0.0.1", "port": 20_000 + node, "securityProtocol": 0}
            body = {
                "brokerId": node,
                "clusterId": CLUSTER_ID,
                "incarnationId": uuid_text(bytes(14) + bytes([1, node])),
                "listeners": [listener],
                "features": [
                    {"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 21},
                    {"name": "kraft.version", "minSupportedVersion": 0, "maxSupportedVersion": 1},
                ],
                "rack": None,
                "isMigratingZkBroker": True,
                "logDirs": [uuid_text(bytes(14) + bytes([2, node]))],
            }
            answer = connection.call(BROKER_REGISTRATION, body)
            if answer["errorCode"]:
                message = f"broker {node} is not registered: error {answer['errorCode']}"
                raise RuntimeError(message)


def answers(address: str) -> bool:
    """Does the controller take registrations?"""
    try:
        register(address)
    except (MigrateError, OSError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return False
    return True


def copied(partitions: int, rounds: int) -> Copied:
    """One copy, and our checks of what it left."""
    with tempfile.TemporaryDirectory(prefix="copying-") as scratch:
        folder = Path(scratch)
        records, milliseconds, batches = copy(folder, partitions)
        seconds = tuple(check(folder) for _ in range(rounds))
    return Copied(partitions, records, batches, milliseconds / 1_000, seconds)


def copy(folder: Path, partitions: int) -> tuple[int, int, int]:
    """Kafka's copy, whose files are left in that folder: records, milliseconds and batches, as its log says."""
    with (
        zookeeper(folder / "zookeeper", partitions) as server,
        controller(folder / "controller", server.address, partitions) as (log, address),
    ):
        wait_for("the controller to take registrations", lambda: answers(address), START_SECONDS)
        wait_for("the copy", lambda: DONE.search(log.read_text()) is not None, COPY_SECONDS)
        found = DONE.search(log.read_text())
        assert found is not None
        with server.client() as client:  # what dual write says of itself is there before anybody compares
            wait_for("/migration", lambda: client.kazoo.exists("/migration") is not None)
        records, milliseconds, batches = map(int, found.groups())
    if records <= partitions:
        raise RuntimeError(f"Kafka copied {records} records of {partitions} partitions")
    return records, milliseconds, batches


def check(folder: Path) -> float:
    """Seconds of our whole process; it must say "equal"."""
    command = [sys.executable, "-m", "migrate", "metadata", "compare", str(folder / "controller" / "metadata")]
    command += ["--zookeeper-files", str(folder / "zookeeper" / "data")]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    seconds = time.perf_counter() - begun
    if done.returncode != BOTH_EQUAL:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


# -- the race --------------------------------------------------------------------------------------------------------
@contextmanager
def a_copy(folder: Path, size: int) -> Iterator[None]:
    """What a copy left, for ours to check."""
    copy(folder, size)
    yield


@contextmanager
def our_check(folder: Path, _size: int) -> Iterator[Work]:
    """`metadata compare` in a new process."""
    yield Work(lambda: check(folder), lambda _: "equal", cold=True)


@contextmanager
def kafkas_copy(_folder: Path, size: int) -> Iterator[Work]:
    """One more copy, of a new ensemble to a new controller; its seconds are those that Kafka tells."""
    told = [0.0]
    with tempfile.TemporaryDirectory(prefix="copying-") as scratch:

        def timed() -> float:
            told[0] = copy(Path(scratch), size)[1] / 1_000
            return told[0]

        def answer(_: float) -> str:
            check(Path(scratch))
            return "equal"

        yield Work(timed, answer, tree=True, clock=lambda: told[0])


RACES: Final = (
    Race(
        "equal or not, against Kafka's copy",
        1_000_000,
        promise=PROMISE,
        at_most=True,
        around=a_copy,
        sides={"ours": our_check, "peer": kafkas_copy},
        once="five million would take Kafka's copy 20 minutes a round, and 20 GB",
        goal="P12",
        peer="Kafka's own copy of the metadata, as its log tells",
        note="ours is a new process; the copy lies in log segments, for Kafka writes its snapshot some seconds later",
        least=500,
    ),
)


def main() -> None:
    """Copy, check, print."""
    parser = argparse.ArgumentParser(description="Kafka's copy against our check of it.")
    parser.add_argument("--partitions", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    found = copied(options.partitions, options.rounds)
    sys.stdout.write(
        f"{machine()}\n\n{found.partitions:,} partitions: Kafka copied {found.records:,} records in {found.batches:,} "
        f"batches and {found.kafka_seconds:.1f} s; our check took {statistics.median(found.ours_seconds):.2f} s, "
        f"{100 * found.share:.1f} % of it (promised at 1,000,000: <= {100 * PROMISE:.0f} %)\n"
    )
    if options.json:
        options.json.write_text(json.dumps(asdict(found) | {"share": found.share}, indent=1) + "\n")


if __name__ == "__main__":
    main()
