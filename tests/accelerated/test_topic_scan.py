"""A scan says of topics what the whole image says of them: of a snapshot, of a log, and of both."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest

from migrate.accelerated import choice, topic_scan
from migrate.accelerated.topic_scan import Scan, Source, _entities, ahead, scan
from migrate.errors import MigrateError, ReplayError
from migrate.kraft.files import ONE_DIRECTORY, Segment, Snapshot, load, read_batches_at
from migrate.kraft.files import find as find_files
from migrate.kraft.image import Image, entity_columns
from migrate.kraft.rules import State, partition_columns
from migrate.model.fingerprints import topic_fingerprints
from migrate.protocol import records
from migrate.protocol.batches import Batch, split
from migrate.protocol.loader import Struct
from migrate.protocol.primitives import uuid_text
from tests.kraft.damage import mutated_file
from tests.kraft.drawn import (
    DIGESTER,
    END,
    EPOCH,
    Writer,
    bracketed,
    drawn_log,
    log_of,
    made,
    on_disk,
    partition,
    snapshot,
    uuid,
)
from tests.kraft.logs import captured_log
from tests.testing.encoding import build, encode_control, encode_record


@pytest.fixture(autouse=True)
def _chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loads its kernel itself."""
    monkeypatch.setattr(choice, "_failed", {})
    monkeypatch.setattr(choice, "_asked", Counter())


def image_of(source: Source) -> State | MigrateError:
    """By the reference; the error where it refuses."""
    image = Image(DIGESTER)
    try:
        if source.snapshot is not None:
            raw = source.snapshot.path.read_bytes()
            image.load_snapshot(raw, source.snapshot.end_offset, source.snapshot.epoch, str(source.snapshot.path))
        for segment in source.segments:
            image.apply(split(segment.path.read_bytes(), where=str(segment.path)), below=source.below)
    except MigrateError as error:
        return error
    held_back = image.offset + 1 < image.next_offset
    return ReplayError("a transaction is open") if held_back else image.state


def held(found: Scan, wanted: State) -> None:
    """A scan says what the image says, of all topics, and of some when they are read again."""
    listed = found.topics
    alive = list(listed.alive())
    by_id = {uuid_text(listed.ids[number]): listed.names[number] for number in alive}
    assert by_id == {topic_id: topic.name for topic_id, topic in wanted.topics.items()}
    assert found.partitions() == {topic.name: len(topic.partitions) for topic in wanted.topics.values()}
    assert found.fingerprints() == topic_fingerprints(partition_columns(wanted))
    left = (found.state.settings, found.state.features, found.state.brokers, found.state.controllers)
    assert left == (wanted.settings, wanted.features, wanted.brokers, wanted.controllers)
    assert (found.state.acls, found.state.migration_state) == (wanted.acls, wanted.migration_state)
    rows, due = _entities(found), entity_columns(wanted)
    assert rows_of(rows) == rows_of(due)
    for numbers in ([], alive[:1], alive[-1:], alive[::3], alive):
        some = found.with_topics(numbers, DIGESTER)
        chosen = {uuid_text(listed.ids[number]) for number in numbers}
        assert some.topics == {key: topic for key, topic in wanted.topics.items() if key in chosen}


def rows_of(columns: object) -> set[tuple[str, ...]]:
    """Entity rows, with where each stands."""
    lists = [getattr(columns, name) for name in ("kind", "key", "name", "value", "where")]
    return set(zip(*lists, strict=True))


def agrees(source: Source) -> bool:
    """Nothing, or what the reference says; is it something?"""
    found, wanted = scan(source, DIGESTER), image_of(source)
    if found is None:
        return False
    assert isinstance(wanted, State), wanted
    held(found, wanted)
    return True


def segment(folder: Path, raw: bytes, base: int = 0) -> Segment:
    """A segment's file."""
    path = folder / f"{base:020d}.log"
    path.write_bytes(raw)
    return Segment(path, base)


# -- a snapshot --------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("odd", [0.0, 0.1, 0.5])
def test_a_snapshots_topics_and_fingerprints_are_known(odd: float, tmp_path: Path) -> None:
    """Of an odd topic too: the rules of the image compute that."""
    told = [agrees(Source(on_disk(tmp_path, made(seed, odd)))) for seed in range(30)]
    assert sum(told) > (29 if odd == 0 else 5)


@pytest.mark.slow
def test_a_scan_of_damage_says_nothing_false(tmp_path: Path) -> None:
    """What the reference refuses is left to it."""
    draw = random.Random(3)
    told = set()
    for seed in range(120):
        told.add(agrees(Source(on_disk(tmp_path, mutated_file(draw, made(seed % 5 + 100, 0.05))))))
        told.add(agrees(Source(None, (segment(tmp_path, mutated_file(draw, drawn_log(seed % 5, 0.3))),))))
    assert told == {True, False}


@pytest.mark.parametrize("values", [["same", "same"], ["one", "two"]], ids=["names", "ids"])
def test_two_topics_of_one_name_or_one_id_are_the_references(values: list[str], tmp_path: Path) -> None:
    """Which refuses them."""
    draw = random.Random(1)
    first = uuid(draw)
    ids = [first, uuid(draw) if values[0] == values[1] else first]
    both = [
        encode_record(records.TOPIC, 0, {"name": name, "topicId": topic_id})
        for name, topic_id in zip(values, ids, strict=True)
    ]
    for source in (
        Source(on_disk(tmp_path, snapshot(draw, both, 5))),
        Source(None, (segment(tmp_path, log_of(draw, both, 5)),)),
    ):
        refused = image_of(source)
        assert isinstance(refused, ReplayError)
        assert "created twice" in refused.what
        assert scan(source, DIGESTER) is None


# -- a log ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("odd", [0.0, 0.3, 0.8])
def test_a_logs_topics_and_fingerprints_are_known(odd: float, tmp_path: Path) -> None:
    """Topics that go and come again under their name, changes, configs, transactions: in batches of any size."""
    told = [agrees(Source(None, (segment(tmp_path, drawn_log(seed, odd)),))) for seed in range(60)]
    assert sum(told) > 30


@pytest.mark.slow
@pytest.mark.parametrize("odd", [0.0, 0.3, 0.8])
def test_a_snapshot_and_the_log_behind_it_are_one(odd: float, tmp_path: Path) -> None:
    """In segments that begin before the snapshot ends, too."""
    told = 0
    for seed in range(40):
        draw = random.Random(seed)
        writer = Writer(draw, 0)
        first = [record for _ in range(draw.choice([0, 1, 5])) for record in writer.topic()]
        writer.odd = odd
        behind = bracketed(draw, list(writer.records()))
        old = build(END - 2, EPOCH, [(None, encode_record(records.NO_OP, 0, {}))] * 2)
        raw = old + log_of(draw, behind, draw.choice([1, 7, 1000]), END)
        source = Source(on_disk(tmp_path, snapshot(draw, first, 50)), (segment(tmp_path, raw, END - 2),))
        told += agrees(source)
    assert told > 20


@pytest.mark.slow
def test_a_cut_at_a_batchs_end_is_held_and_one_within_a_batch_is_the_references(tmp_path: Path) -> None:
    """Records at a high watermark or above it are in no fingerprint."""
    known = set()
    for seed in range(30):
        raw = drawn_log(seed, 0.3)
        ends = {batch.last_offset + 1 for batch in split(raw, where="l")}
        for below in range(max(ends, default=0) + 2):
            told = agrees(Source(None, (segment(tmp_path, raw),), below))
            known.add((told, below in ends))
    assert (True, True) in known
    assert (False, False) in known


def test_a_real_migrations_log_is_known_whole(tmp_path: Path) -> None:
    """From the first controller's first record; no snapshot was needed."""
    source = Source(None, (segment(tmp_path, captured_log()),))
    assert agrees(source)
    found = scan(source, DIGESTER)
    assert found is not None
    assert sum(found.partitions().values()) > 200


def test_topics_with_configs_are_not_read_again(tmp_path: Path) -> None:
    """As a copy from ZooKeeper writes them, before a topic's partitions: only records of a topic make it odd."""
    draw = random.Random(9)
    writer = Writer(draw, 0)
    values = [record for _ in range(20) for record in writer.topic()]
    source = Source(None, (segment(tmp_path, log_of(draw, values, 7)),))
    found = scan(source, DIGESTER)
    assert found is not None
    assert found.mentions == {}
    assert agrees(source)


@pytest.mark.parametrize(
    "last",
    [
        [records.ABORT_TRANSACTION],
        [],
        [records.BEGIN_TRANSACTION],
        [records.END_TRANSACTION, records.END_TRANSACTION],
    ],
)
def test_a_transaction_that_does_not_end_as_it_should_is_the_references(last: Sequence[Struct], tmp_path: Path) -> None:
    """What stands in it may not count, and was gathered."""
    draw = random.Random(5)
    marks = {records.BEGIN_TRANSACTION: {"name": "x"}, records.ABORT_TRANSACTION: {"reason": "x"}}
    bracket = [encode_record(records.BEGIN_TRANSACTION, 0, {"name": "x"})]
    ending = [encode_record(table, 0, marks.get(table, {})) for table in last]
    raw = log_of(draw, [*bracket, *Writer(draw, 0).topic(), *ending], 50)
    assert scan(Source(None, (segment(tmp_path, raw),)), DIGESTER) is None


def test_a_record_of_all_topics_is_the_references(tmp_path: Path) -> None:
    """ClearElrRecord names a topic by its name, or none: the scan keeps no partition that it could change."""
    raw = log_of(random.Random(5), [encode_record(records.CLEAR_ELR, 0, {"topicName": ""})], 50)
    assert scan(Source(None, (segment(tmp_path, raw),)), DIGESTER) is None


# -- reading again -------------------------------------------------------------------------------------------------
def a_large_snapshot(folder: Path) -> Source:
    """Twelve topics of forty partitions, in batches of ten records."""
    draw = random.Random(2)
    values = []
    for number in range(12):
        topic_id = uuid(draw)
        values.append(encode_record(records.TOPIC, 0, {"name": f"t-{number}", "topicId": topic_id}))
        values += [partition(draw, topic_id, row, odd=False) for row in range(40)]
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    raw, offset = build(0, EPOCH, [header], control=True), 1
    while values:
        raw += build(offset, EPOCH, [(None, value) for value in values[:10]])
        offset, values = offset + len(values[:10]), values[10:]
    raw += build(offset, EPOCH, [encode_control("SNAPSHOT_FOOTER", {"version": 0})], control=True)
    return Source(on_disk(folder, raw))


def test_only_the_batches_of_a_topic_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five or six of fifty for forty partitions."""
    source = a_large_snapshot(tmp_path)
    found = scan(source, DIGESTER)
    assert found is not None
    read: list[int] = []

    def counted(path: Path, positions: Collection[int]) -> Iterator[Batch]:
        read.extend(positions)
        return read_batches_at(path, positions)

    monkeypatch.setattr(topic_scan, "read_batches_at", counted)
    assert len(next(iter(found.with_topics([7], DIGESTER).topics.values())).partitions) == 40
    assert len(read) in {5, 6}
    assert len(found.places) == 50


@pytest.mark.parametrize("change", ["shorter", "gone", "another cluster's"])
def test_files_that_change_meanwhile_are_refused(change: str, tmp_path: Path) -> None:
    """Nothing is taken from what was not scanned."""
    source = a_large_snapshot(tmp_path)
    found = scan(source, DIGESTER)
    assert found is not None
    assert isinstance(source.snapshot, Snapshot)
    path = source.snapshot.path
    if change == "gone":
        path.unlink()
    elif change == "shorter":
        path.write_bytes(path.read_bytes()[:4000])
    else:
        raw, kept = path.read_bytes(), list(split(path.read_bytes(), where="s"))
        for batch in kept[1:-1]:
            values = [(None, encode_record(records.NO_OP, 0, {}))] * (batch.last_offset - batch.base_offset + 1)
            new = build(batch.base_offset, EPOCH, values)
            raw = raw[: batch.position] + new + raw[batch.position + len(new) :]
        path.write_bytes(raw)
    with pytest.raises(MigrateError):
        found.with_topics([7], DIGESTER)


def test_a_directory_with_a_log_alone_is_its_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a controller has it until its first snapshot; an empty one has none, whatever its bootstrap says."""
    monkeypatch.setattr(topic_scan, "ready", lambda *_: True)
    place = tmp_path / "__cluster_metadata-0"
    place.mkdir()
    segment(place, captured_log())
    files = find_files(tmp_path)
    found = topic_scan.topic_prints(files, DIGESTER)
    assert found is not None
    whole = load(files, DIGESTER).view("", ONE_DIRECTORY, str(tmp_path))
    seen = found.view(list(found.counts))
    assert (seen.offset, seen.epoch, seen.partitions) == (whole.offset, whole.epoch, whole.partitions)
    assert rows_of(seen.entities) == rows_of(whole.entities)
    assert (seen.brokers, seen.controllers, seen.features) == (whole.brokers, whole.controllers, whole.features)
    assert len(found.view().partitions) == 0
    segment(place, b"")
    assert topic_scan.topic_prints(find_files(tmp_path), DIGESTER) is None


def test_what_a_log_holds_counts_for_whether_a_kernel_pays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what lies before the snapshot's end."""
    asked: list[int] = []

    def refused(_name: str, size: int, _least: int) -> bool:
        asked.append(size)
        return False

    monkeypatch.setattr(topic_scan, "ready", refused)
    place = tmp_path / "__cluster_metadata-0"
    place.mkdir()
    raw = snapshot(random.Random(1), [], 5)
    on_disk(place, raw)
    for base, size in ((0, 100), (END - 5, 10), (END + 5, 1)):
        segment(place, b"x" * size, base)
    assert topic_scan.topic_prints(find_files(tmp_path), DIGESTER) is None
    assert asked == [len(raw) + 10 + 1]


def test_the_same_items_come_in_the_same_order() -> None:
    """None, one and many."""
    for size in (0, 1, 7):
        assert list(ahead(iter(range(size)))) == list(range(size))


def test_what_is_raised_comes_behind_the_items_before_it() -> None:
    """As without."""

    def two() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("cut")

    reading = ahead(two())
    assert [next(reading), next(reading)] == [1, 2]
    with pytest.raises(ValueError, match="cut"):
        next(reading)


def test_the_next_one_is_read_while_one_is_worked_on() -> None:
    """And no further one."""
    asked = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for number, event in enumerate(asked):
            event.set()
            yield number

    reading = ahead(items())
    assert next(reading) == 0
    assert asked[1].wait(20)
    assert not asked[2].is_set()
    reading.close()
    assert not asked[2].is_set()


def test_who_stops_early_leaves_no_thread() -> None:
    """The thread ends with the iteration."""
    before = threading.active_count()
    reading = ahead(iter(range(10)))
    next(reading)
    reading.close()
    assert threading.active_count() == before
