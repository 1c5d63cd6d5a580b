"""Race of stopped controllers' logs: how far a majority wrote, and the image of that, with no controller leading."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Final
from unittest.mock import patch

from migrate.kraft.files import PARTITION_DIRECTORY, find, read_batches
from migrate.model.ids import NodeId
from migrate.model.metadata_logs import MetadataLogs
from migrate.model.outcome import Unknown
from migrate.model.secrets import Digester
from migrate.observe.metadata_logs import metadata_logs
from migrate.protocol.batches import build
from migrate.protocol.records import settings
from migrate.protocol.records.frame import decode_record, encode_record
from tests.bench.races import Race, Work
from tests.kraft.logs import D1, T1, leader_change, log, partition, topic

VOTERS: Final = (3000, 3001, 3002)
BEGIN: Final = leader_change(0, 1) + log(topic("a", T1), partition(T1, 0, [1], [D1]), base=1)
FIRST: Final = 3  # offset of the first NoOp
HALF_A_SECOND: Final = 500  # milliseconds between two NoOps
DIGESTER: Final = Digester(b"k" * 32)


@contextmanager
def a_soak(folder: Path, size: int) -> Iterator[None]:
    """Three equal logs with so many NoOps, a batch each, as a quiet quorum writes them."""
    noop = (None, encode_record(settings.NO_OP, 0, {}))
    batches = (build(FIRST + at, 1, [noop], timestamp=1_700_000_000_000 + HALF_A_SECOND * at) for at in range(size))
    raw = BEGIN + b"".join(batches)
    voters = [{"voterId": voter} for voter in VOTERS]
    state = {"leaderId": 3000, "leaderEpoch": 1, "votedId": -1, "currentVoters": voters, "data_version": 0}
    for node, home in homes(folder).items():
        part = home / PARTITION_DIRECTORY
        part.mkdir(parents=True)
        (part / f"{0:020d}.log").write_bytes(raw)
        (part / "quorum-state").write_text(json.dumps(state), encoding="utf-8")
        (home / "meta.properties").write_text(f"version=1\nnode.id={int(node)}\ncluster.id=c\n", encoding="utf-8")
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


def one_by_one(folder: Path) -> MetadataLogs | Unknown:
    """As it was before: each batch of each log by itself; of one log twice more, for image and last content."""
    with (
        patch("migrate.kraft.lineage.read_stretches", read_batches),
        patch("migrate.kraft.idle.read_stretches", read_batches),
    ):
        found = metadata_logs(homes(folder), DIGESTER)
    for segment in find(homes(folder)[NodeId(3000)]).segments:
        for batch in read_batches(segment.path):
            for _, _, value in () if batch.control else batch.records():
                decode_record(value)
    return found


@contextmanager
def peer(folder: Path, _size: int) -> Iterator[Work]:
    """Each batch by itself."""
    yield Work(lambda: one_by_one(folder), told, clock=process_time)


RACES: Final = (
    Race(
        "stopped controllers' logs",
        60_000,
        promise=10,
        at_most=False,
        around=a_soak,
        sides={"ours": ours, "peer": peer},
        peer="each batch by itself, as it was before",
        growing=("ours",),
        note="N counts NoOps, 172,800 of which are written in a day; three controllers",
    ),
)
