"""Damaged metadata for tests: seeded mutations of bytes, records and whole files, and how reading them ended."""

from __future__ import annotations

import contextlib
import json
import random  # noqa: TID251 - seeded: the same damage each time
import resource
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import google_crc32c

from migrate.errors import InputError
from migrate.kraft.files import PARTITION_DIRECTORY
from migrate.kraft.image import Image
from migrate.kraft.rules import State, apply_record
from migrate.model.codec import encode
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.model.views import KraftView
from migrate.observe.metadata_logs import read_metadata
from migrate.protocol.batches import HEADER, HEADER_SIZE, split
from migrate.protocol.loader import Struct, Values
from migrate.protocol.records import CONFIG, PARTITION, RECORDS, TOPIC, decode_record
from tests.kraft.logs import D1, D2, D3, captured_log
from tests.testing.encoding import build, encode_control, encode_record

KIBI = 1024
MOST_MEMORY = 256 * KIBI * KIBI
MOST_SECONDS = 2.0
SNAPSHOT_BYTES = 64 * KIBI
EPOCH, END = 7, 5000
DIGESTER = Digester(b"k" * 32)
VARINTS = (b"\x00", b"\x01", b"\x7f", b"\x80\x01", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80" * 5)
NUMBERS = (b"\x00" * 4, b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\x80" + b"\x00" * 3, b"\xff" * 8)
Mutation = Callable[[random.Random, bytearray, bytes], None]


# -- what is damaged ---------------------------------------------------------------------------------------------
@cache
def captured_records() -> tuple[bytes, ...]:
    """The records of the captured migration, each type many times."""
    batches = split(captured_log(), where="captured")
    return tuple(value for found in batches if not found.control for _, _, value in found.records() if value)


@cache
def by_type() -> tuple[tuple[bytes, ...], ...]:
    """The same by type, so that rare types are damaged as often as frequent ones; and bare ones of every version."""
    kinds: dict[int, list[bytes]] = {}
    for table in RECORDS.values():
        for version in range(table.versions.low, table.versions.high + 1):
            kinds.setdefault(table.key, []).append(encode_record(table, version, table.defaults(version)))
    for value in captured_records():
        kinds.setdefault(value[1], []).append(value)
    return tuple(tuple(values) for _, values in sorted(kinds.items()))


def _standing() -> list[tuple[Struct, int, Values]]:
    """What a snapshot of the captured log may hold: the records that are not folded away."""
    found: dict[str, tuple[Struct, int, Values]] = {}
    folded = ("Change", "Remove", "Unregister", "Transaction", "NoOp", "Fence", "Unfence")
    for value in captured_records():
        table, version, values = decode_record(value)
        if table.name.startswith(folded) or any(word in table.name for word in ("Change", "Transaction")):
            continue
        key = json.dumps([table.name, *(values.get(name) for name in _IDENTITY)], default=str)
        found[key] = (table, version, values)
    return list(found.values())


_IDENTITY = ("brokerId", "controllerId", "topicId", "partitionId", "resourceName", "name", "entity", "key", "id")


@cache
def snapshot_64k() -> bytes:
    """A snapshot of exactly 64 KiB as Kafka writes it: header, all records in one batch, footer."""
    records = [encode_record(*found) for found in _standing()]
    spare, number = "4tsyDgjgR4W6aLHiZ_kuDQ", 0
    records.append(encode_record(TOPIC, 0, {"name": "filler", "topicId": spare}))
    while len(_snapshot(records)) < SNAPSHOT_BYTES - 400:
        part = {"partitionId": number, "topicId": spare, "replicas": [0, 1, 2], "isr": [0, 1, 2], "leader": 0}
        records.append(encode_record(PARTITION, 1, {**part, "directories": [D1, D2, D3]}))
        number += 1
    for length in range(400):
        values = {"resourceType": 2, "resourceName": "filler", "name": "filler", "value": "x" * length}
        whole = _snapshot([*records, encode_record(CONFIG, 0, values)])
        if len(whole) == SNAPSHOT_BYTES:
            return whole
    raise AssertionError(len(whole))


def _snapshot(values: Sequence[bytes | None]) -> bytes:
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    return (
        build(0, EPOCH, [header], control=True)
        + build(1, EPOCH, [(None, value) for value in values])
        + build(1 + len(values), EPOCH, [footer], control=True)
    )


def flipped(raw: bytes, bit: int) -> bytes:
    """The bytes with one bit flipped."""
    return raw[: bit >> 3] + bytes([raw[bit >> 3] ^ (1 << (bit & 7))]) + raw[(bit >> 3) + 1 :]


# -- mutations ---------------------------------------------------------------------------------------------------
def _bits(draw: random.Random, raw: bytearray, _: bytes) -> None:
    for _flip in range(draw.choice((1, 1, 1, 2, 5))):
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)


def _byte(draw: random.Random, raw: bytearray, _: bytes) -> None:
    raw[draw.randrange(len(raw))] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)))


def _insert(draw: random.Random, raw: bytearray, _: bytes) -> None:
    at = draw.randrange(len(raw) + 1)
    raw[at:at] = draw.choice((*VARINTS, *NUMBERS, draw.randbytes(draw.randrange(1, 9))))


def _overwrite(draw: random.Random, raw: bytearray, _: bytes) -> None:
    at, piece = draw.randrange(len(raw)), draw.choice((*VARINTS, *NUMBERS))
    raw[at : at + len(piece)] = piece


def _delete(draw: random.Random, raw: bytearray, _: bytes) -> None:
    at = draw.randrange(len(raw))
    del raw[at : at + draw.randrange(1, 9)]


def _cut(draw: random.Random, raw: bytearray, _: bytes) -> None:
    del raw[draw.randrange(len(raw)) :]


def _repeat(draw: random.Random, raw: bytearray, _: bytes) -> None:
    at, size = draw.randrange(len(raw)), draw.randrange(1, 40)
    raw[at:at] = raw[at : at + size] * draw.choice((1, 2, 500))


def _splice(draw: random.Random, raw: bytearray, other: bytes) -> None:
    raw[draw.randrange(len(raw)) :] = other[draw.randrange(len(other)) :]


MUTATIONS: tuple[Mutation, ...] = (_bits, _bits, _byte, _byte, _insert, _overwrite, _delete, _cut, _repeat, _splice)


def mutated(draw: random.Random, value: bytes) -> bytes:
    """A record's value after one to three mutations; the type in its head is mostly kept."""
    kept = draw.choice((0, 2, 3, 3))
    raw = bytearray(value[kept:] or b"\0")
    other = draw.choice(captured_records())
    for _ in range(draw.choice((1, 1, 2, 3))):
        draw.choice(MUTATIONS)(draw, raw, other)
        if not raw:
            break
    return value[:kept] + bytes(raw)


def mutated_file(draw: random.Random, raw: bytes) -> bytes:
    """A log or snapshot after some mutations of its batches, each behind a CRC that is right again."""
    batches = [bytes(found.raw) for found in split(raw, where="whole")]
    for _ in range(draw.choice((1, 1, 2, 4))):
        if not batches:
            break
        at = draw.randrange(len(batches))
        draw.choice((_record_of, _record_of, _record_of, _body_of, _header_of, _order_of))(draw, batches, at)
    return b"".join(batches)


def _values(raw: bytes) -> tuple[list[tuple[bytes | None, bytes | None]], int, int, bool] | None:
    with contextlib.suppress(InputError):
        (batch,) = split(raw, where="one")
        found = [(key, value) for _, key, value in batch.records()]
        return found, batch.base_offset, batch.epoch, batch.control
    return None


def _record_of(draw: random.Random, batches: list[bytes], at: int) -> None:
    parts = _values(batches[at])
    if parts is None:
        return
    records, base, epoch, control = parts
    index = draw.randrange(len(records))
    key, value = records[index]
    match draw.randrange(6):
        case 0 if len(records) > 1:
            del records[index]
        case 1:
            records.insert(index, draw.choice(records))
        case 2:
            records[index] = (draw.choice((None, key, b"", b"\0\0\0\3")), draw.choice((None, value, b"")))
        case 3:
            draw.shuffle(records)
        case _:
            records[index] = (key, mutated(draw, value or b"\0"))
    batches[at] = build(base, epoch, records, control=control)


def _body_of(draw: random.Random, batches: list[bytes], at: int) -> None:
    body = bytearray(batches[at][HEADER_SIZE:]) or bytearray(b"\0")
    draw.choice(MUTATIONS)(draw, body, draw.choice(captured_records()))
    batches[at] = sealed(batches[at][:HEADER_SIZE] + bytes(body))


def _header_of(draw: random.Random, batches: list[bytes], at: int) -> None:
    head = list(HEADER.unpack(batches[at][:HEADER_SIZE]))
    place = draw.choice((0, 2, 5, 6, 7, 8, 9, 10, 11, 12))
    size = {0: 64, 2: 32, 5: 16, 6: 32, 7: 64, 8: 64, 9: 64, 10: 16, 11: 32, 12: 32}[place]
    edge = draw.choice((0, 1, -1, 2 ** (size - 1) - 1, -(2 ** (size - 1)), head[place] + 1, head[place] ^ 1))
    with contextlib.suppress(struct.error):  # one above the largest
        head[place] = edge
        batches[at] = sealed(HEADER.pack(*head) + batches[at][HEADER_SIZE:])


def _order_of(draw: random.Random, batches: list[bytes], at: int) -> None:
    match draw.randrange(4):
        case 0:
            del batches[at]
        case 1:
            batches.insert(at, batches[at])
        case 2:
            batches.insert(draw.randrange(len(batches)), batches.pop(at))
        case _:
            batches[at] = build(*_moved(batches[at]))


def _moved(raw: bytes) -> tuple[int, int, list[tuple[bytes | None, bytes | None]]]:
    """The batch's records as a data batch, whatever it was."""
    parts = _values(raw)
    return (parts[1], parts[2], parts[0]) if parts is not None else (0, 1, [(None, b"\1\0\0")])


def sealed(raw: bytes) -> bytes:
    """A batch with the length and the CRC that its bytes have."""
    whole = bytearray(raw)
    struct.pack_into(">i", whole, 8, len(whole) - 12)
    struct.pack_into(">I", whole, 17, google_crc32c.value(bytes(whole[21:])))
    return bytes(whole)


# -- how it ended ------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Tally:
    """How many ended how; the longest wall time that one took, in seconds.

    On a busy machine a process may stand still for seconds.  What took too long is read again: an input that is slow by
    itself is slow each time.  `read_again` counts those, so that they are seen.
    """

    ended: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0
    read_again: int = 0

    def run(self, read: Callable[[bytes], KraftView | None], raw: bytes) -> str:
        """Read damaged bytes; anything but a typed error of the input, or a valid image, is raised as it is."""
        how, took = timed(read, raw)
        for _ in range(2):
            if took < MOST_SECONDS:
                break
            self.read_again += 1
            took = min(took, timed(read, raw)[1])
        assert took < MOST_SECONDS, (how, took)
        self.slowest = max(self.slowest, took)
        self.ended[how] = self.ended.get(how, 0) + 1
        return how


def timed(read: Callable[[bytes], KraftView | None], raw: bytes) -> tuple[str, float]:
    """How it ended, and after how many seconds; what it takes to keep a valid image counts too."""
    began, how = time.perf_counter(), "image"
    try:
        view = read(raw)
    except InputError as error:
        how = error.id
    else:
        if view is not None:
            check(view)
    return how, time.perf_counter() - began


def check(view: KraftView) -> None:
    """A valid image: its columns belong together, each replica has a directory, and it can be kept."""
    columns = view.partitions
    assert {len(getattr(columns, name)) for name in columns.__slots__} == {len(columns)}
    assert all(len(a) == len(b) for a, b in zip(columns.replicas, columns.directories, strict=True))
    rows = list(zip(view.entities.kind, view.entities.key, view.entities.name, strict=True))
    assert len(rows) == len(set(rows))
    assert all(isinstance(value, str) for value in view.entities.value)
    json.dumps(encode(view))


@cache
def _before() -> Image:
    """The captured image, on which single damaged records are tried."""
    image = Image(DIGESTER)
    image.apply_batches(captured_log(), below=None)
    return image


def read_snapshot(raw: bytes) -> KraftView:
    """The view of a snapshot's bytes, whose name says EPOCH and END."""
    image = Image(DIGESTER)
    image.load_snapshot(raw, END, EPOCH)
    return image.view("cluster", Unknown("a test"), "a test")


def log_reader(folder: Path) -> Callable[[bytes], KraftView]:
    """Reads a log's bytes as the segment of a metadata directory in that folder."""
    partition = folder / PARTITION_DIRECTORY
    partition.mkdir()

    def read(raw: bytes) -> KraftView:
        (partition / "00000000000000000000.log").write_bytes(raw)
        return read_metadata([folder], DIGESTER).view

    return read


def read_record(raw: bytes) -> None:
    """Decode a record; what can be decoded re-encodes to something equal, and is applied to an image."""
    table, version, values = decode_record(raw)
    again = decode_record(encode_record(table, version, values))
    assert repr(again) == repr((table, version, values))  # NaN is not equal to itself
    state = _copied(table, values)
    apply_record(state, table, values, "a record", DIGESTER)


def _copied(table: Struct, values: Values) -> State:
    """A state in which the record may have something to say: the captured one, its dicts copied."""
    state = _before().state
    copied = State(**{name: getattr(state, name) for name in State.__slots__})
    for name in ("topics", "topic_ids", "brokers", "controllers", "features", "acls"):
        setattr(copied, name, dict(getattr(state, name)))
    copied.settings = {key: dict(names) for key, names in state.settings.items()}
    if table.name.startswith("Partition") and values.get("topicId") in copied.topics:
        topic = copied.topics[values["topicId"]]
        copied.topics[values["topicId"]] = topic._replace(partitions=dict(topic.partitions))
    return copied


@contextlib.contextmanager
def limited(more: int = MOST_MEMORY) -> Iterator[None]:
    """Within this, the process may grow by `more` bytes of address space; beyond that is a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
