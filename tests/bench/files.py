"""Large inputs for benchmarks: a KRaft snapshot and a ZooKeeper snapshot of the same made-up cluster, from a seed.

50 partitions a topic, three replicas, 100 brokers of 12 directories, 2% shrunk ISRs.  Written in Kafka's and in
ZooKeeper's own formats, checksums and seals included.
"""

from __future__ import annotations

import base64
import json
import random  # noqa: TID251 - seeded: the same cluster each time
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from migrate.protocol.records import FEATURE_LEVEL, PARTITION, TOPIC
from tests.testing.encoding import build, encode_control, encode_record

PARTITIONS_A_TOPIC: Final = 50
RECORDS_A_BATCH: Final = 2_000
EPOCH: Final = 5
STAT: Final = struct.Struct(">qqqqiiiqq")
OPEN: Final = 1  # the ACL that every znode has
SECONDS: Final = 1_700_000_000_000


class Partition(NamedTuple):
    """One partition as both sides hold it."""

    number: int
    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int
    partition_epoch: int


class Topic(NamedTuple):
    """One topic."""

    name: str
    id: str
    partitions: list[Partition]


def cluster(partitions: int, seed: int = 1) -> Iterator[Topic]:
    """The topics of a cluster with that many partitions."""
    chance = random.Random(seed)
    for number in range(-(-partitions // PARTITIONS_A_TOPIC)):
        rows = []
        for partition in range(min(PARTITIONS_A_TOPIC, partitions - number * PARTITIONS_A_TOPIC)):
            first, step = chance.randrange(100), 1 + chance.randrange(30)
            replicas = [first, (first + step) % 100, (first + 2 * step) % 100]
            isr = replicas[:2] if chance.random() < 0.02 else replicas
            rows.append(Partition(partition, replicas, isr, first, chance.randrange(50), chance.randrange(200)))
        yield Topic(f"team-{number % 97}.events-{number}", uuid(chance), rows)


def uuid(chance: random.Random) -> str:
    """A random UUID as Kafka spells it."""
    return base64.urlsafe_b64encode(chance.randbytes(16))[:22].decode()


# -- KRaft ---------------------------------------------------------------------------------------------------------
def checkpoint(path: Path, partitions: int) -> None:
    """A snapshot of the metadata: header, topics with their partitions, footer."""
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    records = _records(partitions)
    with path.open("wb") as file:
        offset = _batch(file, 0, [header], control=True)
        while some := list(islice(records, RECORDS_A_BATCH)):
            offset += _batch(file, offset, [(None, record) for record in some])
        _batch(file, offset, [footer], control=True)


def _batch(file: BinaryIO, offset: int, records: Sequence[tuple[bytes | None, bytes]], *, control: bool = False) -> int:
    file.write(build(offset, EPOCH, records, control=control))
    return len(records)


def _records(partitions: int) -> Iterator[bytes]:
    chance = random.Random(2)
    directories = [[uuid(chance) for _ in range(12)] for _ in range(100)]
    yield encode_record(FEATURE_LEVEL, 0, {"name": "metadata.version", "featureLevel": 20})
    for topic in cluster(partitions):
        yield encode_record(TOPIC, 0, {"name": topic.name, "topicId": topic.id})
        for row in topic.partitions:
            values = {
                "partitionId": row.number,
                "topicId": topic.id,
                "replicas": row.replicas,
                "isr": row.isr,
                "leader": row.leader,
                "leaderEpoch": row.leader_epoch,
                "partitionEpoch": row.partition_epoch,
                "directories": [chance.choice(directories[replica]) for replica in row.replicas],
            }
            yield encode_record(PARTITION, 1, values)


# -- ZooKeeper -----------------------------------------------------------------------------------------------------
class _Sealed:
    """A file that is summed as it is written (Adler32)."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.sum = file, 1

    def write(self, *parts: bytes) -> None:
        """Append, and sum."""
        raw = b"".join(parts)
        self.sum = zlib.adler32(raw, self.sum)
        self.file.write(raw)

    def seal(self) -> None:
        """The sum so far, and the path that ends it."""
        self.write(struct.pack(">q", self.sum), _buffer(b"/"))


def _buffer(raw: bytes | None) -> bytes:
    return struct.pack(">i", -1 if raw is None else len(raw)) + (raw or b"")


def zookeeper_snapshot(path: Path, partitions: int) -> int:
    """A snapshot with that cluster's topics in it (and little else); how many znodes it holds."""
    with path.open("wb", buffering=1 << 20) as file:
        out = _Sealed(file)
        out.write(b"ZKSN", struct.pack(">iqi", 2, -1, 0))
        out.write(struct.pack(">iqii", 1, OPEN, 1, 31), _buffer(b"world"), _buffer(b"anyone"))
        zxid = 0
        for zxid, (name, data) in enumerate(_znodes(partitions), start=1):
            stat = STAT.pack(zxid, zxid, SECONDS, SECONDS, 0, 0, 0, 0, zxid)
            out.write(_buffer(name.encode()), _buffer(data), struct.pack(">q", OPEN), stat)
        out.write(_buffer(b"/"))
        out.seal()
        out.write(struct.pack(">q", zxid))
        out.seal()
    return zxid


def _znodes(partitions: int) -> Iterator[tuple[str, bytes | None]]:
    yield "", b""
    for path in ("/brokers", "/brokers/ids", "/brokers/topics", "/cluster"):
        yield path, None
    yield "/cluster/id", b'{"version":"1","id":"REh233dFSJKhrlnVHSnalQ"}'
    for path, data in topic_znodes(partitions):
        yield path, data


def topic_znodes(partitions: int) -> Iterator[tuple[str, bytes | None]]:
    """(path, data) of every topic's znodes, parents first, as a broker writes them."""
    for topic in cluster(partitions):
        base = f"/brokers/topics/{topic.name}"
        assignment = {
            "removing_replicas": {},
            "partitions": {str(row.number): row.replicas for row in topic.partitions},
            "topic_id": topic.id,
            "adding_replicas": {},
            "version": 3,
        }
        yield base, _json(assignment)
        yield f"{base}/partitions", None
        for row in topic.partitions:
            state = {
                "controller_epoch": 37,
                "leader": row.leader,
                "version": 1,
                "leader_epoch": row.leader_epoch,
                "isr": row.isr,
            }
            yield f"{base}/partitions/{row.number}", None
            yield f"{base}/partitions/{row.number}/state", _json(state)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
