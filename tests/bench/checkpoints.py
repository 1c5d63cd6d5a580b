"""Races of reading a KRaft checkpoint, each side started anew: Kafka's dump tool, Kafka's own classes.

Ours checks every batch, decodes every partition, fingerprints each topic, and keeps nothing but topics.
"""

from __future__ import annotations

import json
import random  # noqa: TID251 - seeded
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import google_crc32c
import numpy as np

from migrate.accelerated.metadata_columns import PARTITION
from migrate.accelerated.plain_batches import PlainBatch, PlainBatches
from migrate.java.find import find_java
from migrate.kraft.files import read_batches
from migrate.protocol.batches import MAGIC
from migrate.protocol.primitives import uuid_text
from migrate.protocol.records import FEATURE_LEVEL
from tests.bench.javac import classpath, compiled, no_compiler
from tests.bench.races import ROOT, Race, Side, Work
from tests.testing.encoding import build, encode_control, encode_record

EPOCH, END = 5, 10**6
CHECKPOINT: Final = f"{END:020d}-{EPOCH:010d}.checkpoint"
PARTITIONS, BROKERS, DIRECTORIES = 50, 100, 12
RECORDS_A_BATCH: Final = 67_584  # as many as Kafka puts into its 8 MiB
WHOLE: Final = struct.Struct(">3si16sB3iB3iH3iB16s16s16sB")
SHRUNK: Final = struct.Struct(">3si16sB3iB2iH3iB16s16s16sB")
Row = tuple[str, int, list[int], list[int], int, int, int, list[str]]


# -- the file --------------------------------------------------------------------------------------------------------
def varint(value: int) -> bytes:
    """Zigzag of what is not negative."""
    value <<= 1
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def values(size: int) -> Iterator[bytes]:
    """The records of that many partitions: factor 3, 2% of the ISRs shrunk."""
    chance = random.Random(size)
    directories = [chance.randbytes(16) for _ in range(BROKERS * DIRECTORIES)]
    pick, head = chance.random, b"\1\3\1"
    yield encode_record(FEATURE_LEVEL, 0, {"name": "metadata.version", "featureLevel": 20})
    for topic in range(-(-size // PARTITIONS)):
        name, topic_id = f"team-{topic % 97}.events-{topic}".encode(), chance.randbytes(16)
        yield b"\1\2\0" + bytes([len(name) + 1]) + name + topic_id + b"\0"
        for number in range(min(PARTITIONS, size - topic * PARTITIONS)):
            drawn = int(pick() * (1 << 50))
            first, step = drawn % BROKERS, 1 + (drawn >> 8) % 30
            second, third = (first + step) % BROKERS, (first + 2 * step) % BROKERS
            lie = [directories[broker * DIRECTORIES + (drawn >> 16) % DIRECTORIES] for broker in (first, second, third)]
            state = (0x0101, first, (drawn >> 20) % 50, (drawn >> 30) % 200, 4, *lie, 0)
            if (drawn >> 40) % 50:
                yield WHOLE.pack(head, number, topic_id, 4, first, second, third, 4, first, second, third, *state)
            else:
                yield SHRUNK.pack(head, number, topic_id, 4, first, second, third, 3, first, second, *state)


def write(path: Path, size: int) -> None:
    """A checkpoint: header, batches, footer."""
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    numbers = [varint(number) for number in range(1 << 12)]
    with path.open("wb") as file:
        file.write(build(0, EPOCH, [header], control=True))
        offset, records = 1, values(size)
        for first in records:
            body, count = bytearray(), 0
            for value in chain([first], records):
                delta = numbers[count] if count < len(numbers) else varint(count)
                length = varint(len(value))
                body += varint(len(value) + len(length) + len(delta) + 4)
                body += b"\0\0" + delta + b"\1" + length + value + b"\0"
                count += 1
                if count == RECORDS_A_BATCH:
                    break
            file.write(batch(offset, bytes(body), count))
            offset += count
        file.write(build(offset, EPOCH, [footer], control=True))


def batch(offset: int, body: bytes, count: int) -> bytes:
    """A data batch around records."""
    tail = struct.pack(">hiqqqhii", 0, count - 1, 7, 7, -1, -1, -1, count) + body
    return struct.pack(">qiibI", offset, len(tail) + 9, EPOCH, MAGIC, google_crc32c.value(tail)) + tail


@contextmanager
def a_checkpoint(folder: Path, size: int) -> Iterator[None]:
    """The file of all."""
    write(folder / CHECKPOINT, size)
    yield


# -- what is told ----------------------------------------------------------------------------------------------------
def told(rows: Iterable[Row]) -> str:
    """How many partitions, and a sum over them."""
    count = total = 0
    for row in rows:
        count += 1
        total += zlib.crc32(repr(row).encode())
    return f"{count} {total:x}"


def once(folder: Path, side: str, tell: Callable[[], str]) -> Callable[[Any], str]:
    """The answer of a side, computed once for all rounds: it takes longer than the work."""

    def answer(_: Any) -> str:
        kept = folder / f"{side}.answer"
        if not kept.exists():
            kept.write_text(tell())
        return kept.read_text()

    return answer


# -- ours ------------------------------------------------------------------------------------------------------------
SCAN: Final = """
import sys
from pathlib import Path
from migrate.kraft.files import snapshot_of
from migrate.accelerated.topic_scan import Source, scan
from migrate.model.secrets import Digester
found = scan(Source(snapshot_of(Path(sys.argv[1]))), Digester())
print(len(found.topics.names), int(found.counts.sum()))
"""


def batches_of(path: Path) -> Iterator[PlainBatch]:
    """What the kernel makes of each batch."""
    decoder = PlainBatches()
    for one in read_batches(path):
        if not one.control:
            plain = decoder.decode(one)
            assert plain is not None
            yield plain


def our_rows(path: Path) -> Iterator[Row]:
    """What our kernel found, in full."""
    topic_id = ""
    for plain in batches_of(path):
        rows = plain.partitions(0, len(plain.rows))
        for number, count in enumerate(plain.counts):
            topic_id = uuid_text(plain.ids[number - 1]) if number else topic_id
            for partition, row in islice(rows, count):
                yield (
                    topic_id,
                    partition,
                    row.replicas,
                    row.isr,
                    row.leader,
                    row.leader_epoch,
                    row.partition_epoch,
                    row.directories,
                )


def our_sums(path: Path) -> str:
    """As the Java program sums."""
    topics = partitions = total = 0
    for plain in batches_of(path):
        topics, partitions = topics + len(plain.names), partitions + len(plain.rows)
        for _, row in plain.partitions(0, len(plain.rows)):
            total += row.leader + row.leader_epoch + row.partition_epoch + sum(row.replicas) + 3 * sum(row.isr)
        total += int(plain.rows[:, PARTITION].sum(dtype=np.int64))
    return f"{topics} {partitions} {total}"


def process(folder: Path, command: Sequence[str]) -> Callable[[], str]:
    """A new process, from its start to its end."""

    def timed() -> str:
        done = subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
        return f"{folder} {done.returncode}"

    return timed


def cold(side: str, program: str, tell: Callable[[Path], str]) -> Callable[[Path, int], AbstractContextManager[Work]]:
    """A Python program, given the checkpoint, in a new process."""

    @contextmanager
    def work(folder: Path, _size: int) -> Iterator[Work]:
        path = folder / CHECKPOINT
        command = [sys.executable, "-c", program, str(path)]
        yield Work(process(folder, command), once(folder, side, lambda: tell(path)), cold=True)

    return work


def row_of(found: dict[str, Any]) -> Row:
    """From a PartitionRecord's values."""
    names = ("topicId", "partitionId", "replicas", "isr", "leader", "leaderEpoch", "partitionEpoch", "directories")
    topic_id, *rest = (found[name] for name in names)
    return (topic_id, *rest)


# -- Kafka -----------------------------------------------------------------------------------------------------------
@contextmanager
def by_dump_tool(folder: Path, _size: int) -> Iterator[Work]:
    """kafka-dump-log; its text is thrown away where time is measured."""
    tool = ["kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(folder / CHECKPOINT)]
    command = [find_java().path, "-cp", classpath(), *tool]

    def tell() -> str:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as dump:
            assert dump.stdout is not None
            return told(dumped(dump.stdout))

    yield Work(process(folder, command), once(folder, "dump", tell), cold=True)


def dumped(lines: Iterable[str]) -> Iterator[Row]:
    """The partitions in the tool's text."""
    for line in lines:
        _, found, payload = line.partition("payload: ")
        if found and '"PARTITION_RECORD"' in payload:
            yield row_of(json.loads(payload)["data"])


@contextmanager
def by_kafkas_classes(folder: Path, _size: int) -> Iterator[Work]:
    """A Java program that keeps nothing; compiled before it is measured."""
    command = [*compiled(folder, "ReadCheckpoint"), str(folder / CHECKPOINT)]

    def tell() -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    yield Work(process(folder, command), once(folder, "classes", tell), cold=True)


# every batch checked, every partition decoded and fingerprinted; nothing is kept but topics
ours = cold("ours", SCAN, lambda path: told(our_rows(path)))
ours_summed = cold("sums", SCAN, our_sums)  # told as the Java program tells


def a_race(name: str, promise: float, peer: Side, *, us: Side = ours, note: str = "") -> Race:
    """Ours from its process' start, against one."""
    return Race(
        name,
        1_000_000,
        promise=promise,
        at_most=False,
        around=a_checkpoint,
        sides={"ours": us, "peer": peer},
        note=note,
        goal="P2",
        peer=name.partition(", ")[2],
        megabytes=200,
        lacks=no_compiler if us is ours_summed else str,
    )


RACES: Final = (
    a_race("checkpoint, dump tool", 8.0, by_dump_tool, note="kafka-dump-log --cluster-metadata-decoder to /dev/null"),
    a_race("checkpoint, Kafka's classes", 1.5, by_kafkas_classes, us=ours_summed, note="no text; needs a JDK"),
)
