"""A snapshot in columns is what the reference makes of it: the same image, the same fingerprints, the same errors."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import MigrateError
from migrate.kernels import choice
from migrate.kraft import replay
from migrate.kraft.files import Snapshot, load, read_batches
from migrate.kraft.files import find as find_files
from migrate.kraft.plain_batches import PlainBatches
from migrate.kraft.plain_snapshot import PlainReplay, Scan, scan
from migrate.kraft.state import State, partition_columns
from migrate.model.fingerprints import topic_fingerprints
from migrate.model.secrets import Digester
from migrate.protocol.batches import build, split
from migrate.protocol.fields import Values
from migrate.protocol.primitives import uuid_text
from migrate.protocol.records import settings, topics
from migrate.protocol.records.control import encode_control
from migrate.protocol.records.frame import encode_record
from tests.kraft.damage import mutated_file, snapshot_64k

END, EPOCH = 1000, 7
DIGESTER = Digester(b"k" * 32)
Outcome = tuple[str, str] | State


@pytest.fixture(autouse=True)
def _chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loads its kernel itself."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_told", set())
    monkeypatch.setattr(choice, "_failed", {})


def uuid(draw: random.Random) -> str:
    """Any."""
    return uuid_text(draw.randbytes(16))


def partition(draw: random.Random, topic_id: str, number: int, *, odd: bool) -> bytes:
    """A PartitionRecord, plain or odd in one of many ways."""
    replicas = draw.sample(range(2000), draw.choice([1, 3, 3, 3, 5]))
    values: Values = {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": replicas,
        "isr": draw.sample(replicas, draw.randint(0, len(replicas))),
        "leader": draw.choice([-1, replicas[0]]),
        "leaderEpoch": draw.randrange(1 << 31),
        "partitionEpoch": draw.randrange(300),
        "directories": [uuid(draw) for _ in replicas],
        "leaderRecoveryState": draw.choice([0, 0, 0, 1, -1]),
    }
    version, more = draw.choice([1, 1, 2]), dict[str, Any]()
    if odd:
        oddities: list[tuple[int, Values]] = [
            (0, {"directories": []}),
            (1, {"directories": []}),
            (1, {"addingReplicas": replicas[:1], "removingReplicas": replicas[-1:]}),
            (1, {"replicas": list(range(200)), "isr": list(range(150)), "directories": [uuid(draw)] * 200}),
            (1, {"isr": [replicas[0], replicas[0]]}),
            (2, {"eligibleLeaderReplicas": replicas}),
            (2, {"lastKnownElr": [], "leaderRecoveryState": 1}),
            (1, {"partitionId": draw.choice([-1, 1 << 17, (1 << 31) - 1])}),
            (1, {"replicas": [], "isr": [], "directories": []}),
            (1, {"directories": values["directories"][1:]}),  # the reference refuses it, mostly
        ]
        version, more = draw.choice(oddities)
    return encode_record(topics.PARTITION, version, values | more)


def records(draw: random.Random, odd: float) -> Iterator[bytes]:
    """The records of a made-up snapshot, of which that share is odd."""
    known: list[str] = []
    for index in range(draw.choice([0, 1, 8])):
        topic_id = uuid(draw)
        name = draw.choice(["t", "a.longer_name-", "ünïcode-", "x" * 300]) + str(index)
        yield encode_record(topics.TOPIC, 0, {"name": name, "topicId": topic_id})
        known.append(topic_id)
        for number in range(draw.choice([0, 1, 5, 40])):
            strange = draw.random() < odd
            whose = draw.choice(known) if strange and draw.random() < 0.3 else topic_id
            yield partition(draw, whose, number, odd=strange)
            if draw.random() < odd / 4:
                yield partition(draw, topic_id, number, odd=False)  # once more: the last one counts
            if draw.random() < odd / 4:
                yield encode_record(
                    settings.CONFIG, 0, {"resourceType": 2, "resourceName": name, "name": "a", "value": "1"}
                )
    yield encode_record(settings.FEATURE_LEVEL, 0, {"name": "metadata.version", "featureLevel": 21})


def snapshot(draw: random.Random, values: Sequence[bytes], most: int) -> bytes:
    """Framed as Kafka does it, in batches of up to so many records."""
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    raw, offset = build(0, EPOCH, [header], control=True), 1
    while values:
        size = draw.randint(1, most)
        raw += build(offset, EPOCH, [(None, value) for value in values[:size]])
        offset, values = offset + len(values[:size]), values[size:]
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    return raw + build(offset, EPOCH, [footer], control=True)


def made(seed: int, odd: float) -> bytes:
    """A snapshot from a seed."""
    draw = random.Random(seed)
    return snapshot(draw, list(records(draw, odd)), draw.choice([1, 7, 1000]))


def outcome(raw: bytes, *, plain: bool, epoch: int = EPOCH) -> Outcome:
    """The state, or the error's id and text."""
    state = State()
    apply = PlainReplay().apply_data if plain else replay.apply_data
    try:
        for batch in replay.data_batches(split(raw, where="s"), epoch, state, "s"):
            apply(state, batch, f"snapshot {END}-{EPOCH}", DIGESTER)
    except MigrateError as error:
        return error.id, str(error)
    return state


def share_in_columns(raw: bytes) -> tuple[int, int]:
    """Rows that the kernel decoded, and records that it listed."""
    decoder, rows, others = PlainBatches(), 0, 0
    for batch in split(raw, where="s"):
        if not batch.control:
            plain = decoder.decode(batch)
            assert plain is not None
            rows, others = rows + len(plain.rows), others + len(plain.others)
    return rows, others


@pytest.mark.parametrize("odd", [0.0, 0.1, 0.6])
def test_the_image_is_the_references(odd: float) -> None:
    """Whatever the batches hold and wherever they are cut."""
    seen = [outcome(made(seed, odd), plain=True) for seed in range(40)]
    assert seen == [outcome(made(seed, odd), plain=False) for seed in range(40)]
    assert sum(isinstance(found, State) for found in seen) > (39 if odd == 0 else 8)


def test_what_is_plain_is_decoded_in_columns() -> None:
    """All but the feature: recovery states, leaders that are none, names that are long or not ASCII."""
    totals = [share_in_columns(made(seed, 0)) for seed in range(40)]
    assert sum(rows for rows, _ in totals) > 1000
    assert all(others == 1 for _, others in totals)


@pytest.mark.parametrize("seed", range(6))
def test_damage_ends_as_the_reference_ends(seed: int) -> None:
    """Each mutation stands behind a CRC that is right again; the same error at the same place, or the same image."""
    draw = random.Random(seed)
    whole = snapshot_64k() if seed % 2 else made(seed + 100, 0.05)
    epoch = next(iter(split(whole, where="s"))).epoch
    ended = set()
    for _ in range(120):
        raw = mutated_file(draw, whole)
        found = outcome(raw, plain=True, epoch=epoch)
        assert found == outcome(raw, plain=False, epoch=epoch)
        ended.add(found[0] if isinstance(found, tuple) else "image")
    assert len(ended) > 3


def on_disk(folder: Path, raw: bytes) -> Snapshot:
    """A checkpoint's file."""
    path = folder / f"{END:020d}-{EPOCH:010d}.checkpoint"
    path.write_bytes(raw)
    return Snapshot(path, END, EPOCH)


def held(found: Scan, wanted: State) -> None:
    """A scan says what the image says."""
    assert found.names == [topic.name for topic in wanted.topics.values()]
    assert [uuid_text(row.tobytes()) for row in found.ids] == list(wanted.topics)
    assert found.counts.tolist() == [len(topic.partitions) for topic in wanted.topics.values()]
    assert found.fingerprints() == topic_fingerprints(partition_columns(wanted))
    assert (found.state.settings, found.state.features) == (wanted.settings, wanted.features)
    for numbers in ([], [0], range(len(found.names))):
        some = found.with_topics([number for number in numbers if number < len(found.names)], DIGESTER)
        ids = [list(wanted.topics)[number] for number in numbers if number < len(found.names)]
        assert some.topics == {
            topic_id: wanted.topics[topic_id]._replace(where=some.topics[topic_id].where) for topic_id in ids
        }


def agrees(found: Scan | None, wanted: Outcome) -> None:
    """Nothing, or what the reference says."""
    if found is not None:
        assert isinstance(wanted, State)
        held(found, wanted)


@pytest.mark.parametrize("odd", [0.0, 0.1, 0.5])
def test_a_scan_knows_topics_and_fingerprints_and_reads_some_of_them(odd: float, tmp_path: Path) -> None:
    """Of an odd topic too: the reference computes that."""
    told = []
    for seed in range(30):
        raw = made(seed, odd)
        told.append(scan(on_disk(tmp_path, raw), DIGESTER))
        agrees(told[-1], outcome(raw, plain=False))
    assert sum(isinstance(found, Scan) for found in told) > (29 if odd == 0 else 5)


def test_a_scan_of_damage_says_nothing_false(tmp_path: Path) -> None:
    """What the reference refuses is left to it."""
    draw = random.Random(3)
    for seed in range(150):
        raw = mutated_file(draw, made(seed % 5 + 100, 0.05))
        agrees(scan(on_disk(tmp_path, raw), DIGESTER), outcome(raw, plain=False))


@pytest.mark.parametrize("values", [["same", "same"], ["one", "two"]], ids=["names", "ids"])
def test_two_topics_of_one_name_or_one_id_are_the_references(values: list[str], tmp_path: Path) -> None:
    """Which refuses them."""
    draw = random.Random(1)
    first = uuid(draw)
    ids = [first, uuid(draw) if values[0] == values[1] else first]
    made_records = [
        encode_record(topics.TOPIC, 0, {"name": name, "topicId": topic_id})
        for name, topic_id in zip(values, ids, strict=True)
    ]
    raw = snapshot(draw, made_records, 5)
    wanted = outcome(raw, plain=False)
    assert isinstance(wanted, tuple)
    assert "created twice" in wanted[1]
    assert outcome(raw, plain=True) == wanted
    assert scan(on_disk(tmp_path, raw), DIGESTER) is None


def test_a_large_snapshot_of_a_directory_is_read_in_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small one is not; both are one image."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    on_disk(folder, made(2, 0.0))
    used: list[int] = []
    real = PlainReplay.apply_data

    def noted(self: PlainReplay, *arguments: Any) -> None:
        used.append(1)
        real(self, *arguments)

    monkeypatch.setattr(PlainReplay, "apply_data", noted)
    files = find_files(tmp_path)
    small = load(files, DIGESTER).view("c", END, "s")
    assert not used
    monkeypatch.setattr(replay, "LARGE", 1)
    assert load(files, DIGESTER).view("c", END, "s") == small
    assert used
    used.clear()
    monkeypatch.setenv(choice.VARIABLE, "off")
    assert load(files, DIGESTER).view("c", END, "s") == small
    assert not used


def test_batches_come_from_the_file_one_at_a_time(tmp_path: Path) -> None:
    """The arrays grow with the largest batch, not with the file."""
    draw = random.Random(4)
    file = on_disk(tmp_path, snapshot(draw, list(records(draw, 0)), 3))
    decoder = PlainBatches()
    rooms = set()
    for batch in read_batches(file.path):
        if not batch.control and decoder.decode(batch) is not None and decoder._columns is not None:
            rooms.add(len(decoder._columns.rows))
    assert max(rooms) <= 5
