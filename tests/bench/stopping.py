"""Race of stopped controllers' logs: how far a majority wrote, and the image of that, with no controller leading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Final, NamedTuple

from migrate.kraft.files import PARTITION_DIRECTORY, find, read_batches
from migrate.kraft.image import Image
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.secrets import Digester
from migrate.observe.metadata_logs import metadata_logs
from migrate.protocol import records
from migrate.protocol.batches import CRC_FROM
from migrate.protocol.records import LEADER_CHANGE, decode_control, decode_record
from tests.bench.races import Race, Work
from tests.kraft.logs import D1, T1, leader_change, log, partition, topic
from tests.testing.clusters import uuid
from tests.testing.encoding import build, encode_record

VOTERS: Final = (3000, 3001, 3002)
BEGIN: Final = leader_change(0, 1) + log(topic("a", T1), partition(T1, 0, [1], [D1]), base=1)
FIRST: Final = 3  # offset of the first NoOp
HALF_A_SECOND: Final = 500  # milliseconds between two NoOps
DIGESTER: Final = Digester(b"k" * 32)


@contextmanager
def a_soak(folder: Path, size: int) -> Iterator[None]:
    """Three equal logs with so many NoOps, a batch each, as a quiet quorum writes them."""
    noop = (None, encode_record(records.NO_OP, 0, {}))
    batches = (build(FIRST + at, 1, [noop], timestamp=1_700_000_000_000 + HALF_A_SECOND * at) for at in range(size))
    raw = BEGIN + b"".join(batches)
    voters = [{"voterId": voter} for voter in VOTERS]
    state = {"leaderId": 3000, "leaderEpoch": 1, "votedId": -1, "currentVoters": voters, "data_version": 0}
    for node, home in homes(folder).items():
        part = home / PARTITION_DIRECTORY
        part.mkdir(parents=True)
        (part / f"{0:020d}.log").write_bytes(raw)
        (part / "quorum-state").write_text(json.dumps(state), encoding="utf-8")
        ids = f"node.id={int(node)}\ncluster.id=c\ndirectory.id={uuid(int(node))}\n"
        (home / "meta.properties").write_text(f"version=1\n{ids}", encoding="utf-8")
    yield


def homes(folder: Path) -> Mapping[NodeId, Path]:
    """The metadata directories."""
    return {NodeId(node): folder / f"c{node}" for node in VOTERS}


def told(found: MetadataLogs | Unknown) -> str:
    """End and image."""
    assert isinstance(found, MetadataLogs)
    assert found.view is not None
    said = (found.end, found.state, found.epoch, found.view.offset, found.view.committed, found.view.entities)
    return hashlib.sha256(repr(said).encode()).hexdigest()


@contextmanager
def ours(folder: Path, _size: int) -> Iterator[Work]:
    """NoOps in columns."""
    yield Work(lambda: metadata_logs(homes(folder), DIGESTER), told, clock=process_time)


class Mark(NamedTuple):
    """What of each batch is held against the other logs."""

    base_offset: int
    last_offset: int
    epoch: int
    crc: bytes


def marks_of(home: Path) -> list[Mark]:
    """The first pass, of each log: batches without a gap, and epochs that only a leader change raises."""
    marks: list[Mark] = []
    for segment in find(home).segments:
        for batch in read_batches(segment.path):
            tables = [decode_control(key, value)[1] for _, key, value in batch.records()] if batch.control else []
            if marks:
                assert batch.base_offset == marks[-1].last_offset + 1
                assert (batch.epoch > marks[-1].epoch) == (LEADER_CHANGE in tables)
            marks.append(Mark(batch.base_offset, batch.last_offset, batch.epoch, batch.raw[CRC_FROM - 4 : CRC_FROM]))
    return marks


def shared(one: list[Mark], other: list[Mark]) -> int:
    """Up to where (exclusive) both are one history."""
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return min(mine.base_offset, theirs.base_offset)
    return min(one[-1].last_offset, other[-1].last_offset) + 1


def one_by_one(folder: Path) -> MetadataLogs:
    """Batch by batch, five passes: of each log its batches, of one its image, and the last record of content."""
    logs = [marks_of(home) for home in homes(folder).values()]
    ends = [sorted(shared(log, other) for other in logs)[len(logs) // 2] for log in logs]
    reference = logs[ends.index(max(ends))]
    end = max(ends)
    apart = [log for log in logs if shared(reference, log) < min(end, log[-1].last_offset + 1)]
    assert not apart
    segments = find(homes(folder)[NodeId(VOTERS[0])]).segments
    image = Image(DIGESTER)
    for segment in segments:
        image.apply(read_batches(segment.path), below=end)
    content = -1
    for batch in (batch for segment in segments for batch in read_batches(segment.path)):
        for offset, _, value in () if batch.control else batch.records():
            if decode_record(value)[0] is not records.NO_OP:
                content = offset
    assert content < FIRST
    view = image.view("c", end, "one by one")
    return MetadataLogs(VOTERS, end, view.migration_state, max(log[-1].epoch for log in logs), view=view)


@contextmanager
def peer(folder: Path, _size: int) -> Iterator[Work]:
    """Each batch by itself, five passes over a log."""
    yield Work(lambda: one_by_one(folder), told, clock=process_time)


RACES: Final = (
    Race(
        "stopped controllers' logs",
        60_000,
        promise=10,
        at_most=False,
        around=a_soak,
        sides={"ours": ours, "peer": peer},
        peer="batch by batch, five passes",
        growing=("ours",),
        note="N counts NoOps, 172,800 of which are written in a day; three controllers",
    ),
)
