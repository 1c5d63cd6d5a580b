"""A snapshot, or a log, in columns is what the reference makes of it: the same image, the same errors."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import MigrateError
from migrate.kernels import choice
from migrate.kraft import replay
from migrate.kraft.files import find as find_files
from migrate.kraft.files import load, read_batches
from migrate.kraft.plain_batches import PlainBatches
from migrate.kraft.plain_replay import PlainLog, PlainReplay
from migrate.kraft.replay import Replayer
from migrate.kraft.state import State, TouchedRows
from migrate.protocol.batches import split
from migrate.protocol.records import NO_OP, PARTITION, REMOVE_TOPIC, TOPIC, decode_record
from tests.kraft.damage import mutated_file, snapshot_64k
from tests.kraft.drawn import DIGESTER, END, EPOCH, drawn_log, made, on_disk, records, snapshot
from tests.kraft.logs import D1, T1, T2, captured_log, partition, topic
from tests.kraft.logs import batch as batch_of
from tests.testing.encoding import build, encode_record

Outcome = tuple[str, str] | State


@pytest.fixture(autouse=True)
def _chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loads its kernel itself."""
    monkeypatch.delenv(choice.VARIABLE, raising=False)
    monkeypatch.setattr(choice, "_told", set())
    monkeypatch.setattr(choice, "_failed", {})


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


@pytest.mark.slow
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


# -- logs ------------------------------------------------------------------------------------------------------------
LOG_SEEDS = range(60)
Stand = tuple[State, TouchedRows | None, int, int, int, int]


@pytest.fixture(params=[True, False], ids=["touched rows are noted", "nobody asks for them"])
def noting(request: pytest.FixtureRequest) -> bool:
    """As an incremental check does it, or not."""
    return bool(request.param)


def stands(raw: bytes, cuts: Sequence[int | None], *, plain: bool, noting: bool) -> Stand | tuple[str, str]:
    """Where a replayer stands that was given the log with these high watermarks, or the error's id and text."""
    replayer = Replayer(DIGESTER, State(touched=TouchedRows() if noting else None))
    replayer.plain = PlainLog() if plain else None
    try:
        for below in cuts:
            replayer.apply(split(raw, where="l"), below=below)
    except MigrateError as error:
        return error.id, str(error)
    at = replayer
    return at.state, at.state.touched, at.next_offset, at.fetched_epoch, at.offset, at.epoch


@pytest.fixture
def _no_kernel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replayer that has none does not load one."""
    monkeypatch.setattr(replay, "repaid", lambda *_: False)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_kernel_of_its_own")
@pytest.mark.parametrize("odd", [0.0, 0.3, 0.8])
def test_the_image_of_a_log_is_the_references(odd: float, noting: bool) -> None:
    """Transactions, topics that go and come again, changes; wherever batches and high watermarks are."""
    whole = 0
    for seed in LOG_SEEDS:
        raw, draw = drawn_log(seed, odd), random.Random(seed)
        last = max((batch.last_offset for batch in split(raw, where="l")), default=0)
        for cuts in ([None], [draw.randint(0, last + 1), draw.randint(0, last + 1), None]):
            found = stands(raw, cuts, plain=True, noting=noting)
            assert found == stands(raw, cuts, plain=False, noting=noting)
            whole += len(found) > 2
    assert whole > (len(LOG_SEEDS) if odd < 0.5 else 20)


@pytest.mark.usefixtures("_no_kernel_of_its_own")
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_whose_last_record_is_not_committed_is_not_applied_whole(seed: int) -> None:
    """A high watermark at each batch's last record, and behind it: in columns not one record more is taken."""
    raw = drawn_log(seed, 0.0)
    for batch in split(raw, where="l"):
        for below in (batch.last_offset, batch.last_offset + 1):
            found = stands(raw, [below], plain=True, noting=False)
            assert found == stands(raw, [below], plain=False, noting=False)
            assert len(found) > 2
            assert found[2] == below


@pytest.mark.usefixtures("_no_kernel_of_its_own")
def test_a_topic_that_went_in_a_batch_that_was_cut_has_no_more_partitions(noting: bool) -> None:
    """The high watermark was in the middle of it: what follows is held to the image, not to the batch before."""
    gone = (REMOVE_TOPIC, {"topicId": T1})
    raw = batch_of(topic("t", T1), partition(T1, 0, [1], [D1])) + batch_of((NO_OP, {}), gone, base=2)
    raw += batch_of(partition(T1, 1, [1], [D1]), base=4)
    found = stands(raw, [3, None], plain=True, noting=noting)
    assert found == stands(raw, [3, None], plain=False, noting=noting)
    assert isinstance(found[0], str), "there is no such topic"


@pytest.mark.usefixtures("_no_kernel_of_its_own")
def test_a_last_batch_that_is_not_plain_is_not_passed_over() -> None:
    """A topic whose name is no text: nothing behind it would notice."""
    odd = encode_record(TOPIC, 0, {"name": "name", "topicId": T2}).replace(b"name", b"n\xff\xfee")
    raw = batch_of(topic("t", T1), partition(T1, 0, [1], [D1])) + build(2, 1, [(None, odd)])
    found = stands(raw, [None], plain=True, noting=False)
    assert found == stands(raw, [None], plain=False, noting=False)
    assert isinstance(found[0], str)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_kernel_of_its_own")
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_log_ends_as_the_reference_ends(seed: int) -> None:
    """The same error at the same place, or the same image."""
    draw = random.Random(seed)
    whole = captured_log() if seed % 2 else drawn_log(seed + 7, 0.3)
    ended = set()
    for _ in range(60):
        raw = mutated_file(draw, whole)
        found = stands(raw, [None], plain=True, noting=False)
        assert found == stands(raw, [None], plain=False, noting=False)
        ended.add(found[0] if isinstance(found[0], str) else "image")
    assert len(ended) > 2


@pytest.mark.usefixtures("_no_kernel_of_its_own")
def test_the_log_of_a_real_migration_is_read_the_same(noting: bool) -> None:
    """Its copy stands in one transaction."""
    raw = captured_log()
    found = stands(raw, [None], plain=True, noting=noting)
    assert isinstance(found[0], State)
    assert len(found[0].topics) > 20
    assert found == stands(raw, [None], plain=False, noting=noting)


def test_what_a_real_copy_wrote_is_decoded_in_columns() -> None:
    """All 212 partitions: in the version without directories, with their topics' configs before them."""
    decoder, rows = PlainBatches(), 0
    for batch in split(captured_log(), where="l"):
        if not batch.control and rows < 212:
            plain = decoder.decode(batch)
            assert plain is not None
            assert PARTITION not in {decode_record(record.value)[0] for record in plain.others}
            rows += len(plain.rows)
    assert rows == 212


def test_a_long_log_is_read_in_columns_from_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short one is not; nor is any where references are asked for."""
    raw = drawn_log(3, 0.3)
    monkeypatch.setattr(choice, "_spent", {})

    def used() -> bool:
        replayer = Replayer(DIGESTER)
        replayer.apply(split(raw, where="l"))
        return replayer.plain is not None

    assert not used()
    monkeypatch.setattr(replay, "LARGE", 1)
    monkeypatch.setattr(replay, "LEAST_BATCH", 1)
    assert used()
    monkeypatch.setenv(choice.VARIABLE, "off")
    assert not used()
