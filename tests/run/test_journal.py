"""The journal survives what a kill or a bad disk does to it, or says that it was damaged."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.errors import JournalDamaged, JournalUnwritable
from migrate.model.history import COPY_CHECKED, SHAPES, Event, concluded, misshapen
from migrate.report.run_board import board
from migrate.report.run_events import tell
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from migrate.run.engine import since_last_roll
from migrate.run.interrupts import half_done
from migrate.run.journal import Journal
from tests.report import story

ROOT = Path(__file__).parents[2]


def written(folder: Path, events: int = 4) -> tuple[Path, list[int]]:
    """A journal of some events, and the file's size after each line."""
    path = folder / "journal.jsonl"
    journal = Journal.begin(path, 1.0, {"plan": "p" * 64, "tool": "1"})
    sizes = [path.stat().st_size]
    for number in range(events):
        journal.append(2.0 + number, "intend", {"step": f"s/{number}", "stage": "prepare", "title": "ä\n\u202e"})
        sizes.append(path.stat().st_size)
    journal.close()
    return path, sizes


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    """Numbers, times, names and data are those that were written."""
    path, sizes = written(tmp_path)
    reading = journals.read(path)
    assert [event.number for event in reading.events] == list(range(len(sizes)))
    assert reading.events[0].name == "run"
    assert reading.events[-1].data["title"] == "ä\n\u202e"
    assert not reading.torn


@pytest.mark.slow
def test_a_journal_cut_at_any_byte_keeps_every_whole_line(tmp_path: Path) -> None:
    """A torn last line is what a kill leaves: the lines before it hold, and the run can go on."""
    path, sizes = written(tmp_path)
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        reading = journals.read(path)
        assert len(reading.events) == sum(size <= cut for size in sizes)
        assert reading.torn == (cut not in (0, *sizes))


def test_a_resumed_journal_cuts_the_torn_line_off_and_goes_on(tmp_path: Path) -> None:
    """After resuming, the chain is whole again."""
    path, _ = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-7])
    journal = Journal.resume(path)
    journal.append(9.0, "note", {"key": "k", "value": "v"})
    journal.close()
    reading = journals.read(path)
    assert not reading.torn
    assert [event.name for event in reading.events] == ["run", "intend", "intend", "intend", "note"]


@pytest.mark.slow
def test_a_flipped_bit_before_the_last_line_is_refused(tmp_path: Path) -> None:
    """No line but the last may be wrong: the chain says so."""
    path, sizes = written(tmp_path)
    whole = bytearray(path.read_bytes())
    for position in range(sizes[-2]):
        changed = bytes(whole[:position]) + bytes([whole[position] ^ 1]) + bytes(whole[position + 1 :])
        path.write_bytes(changed)
        with pytest.raises(JournalDamaged) as caught:
            journals.read(path)
        assert caught.value.where == str(path)


@pytest.mark.slow
def test_every_bit_of_every_byte_is_a_valid_prefix_or_a_refusal(tmp_path: Path) -> None:
    """In the last line too: it may pass for torn, and never for another line.  No other error, no other event."""
    path, sizes = written(tmp_path, events=2)
    whole = path.read_bytes()
    true = journals.read(path).events
    for position in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ (1 << bit)]) + whole[position + 1 :])
            try:
                reading = journals.read(path)
            except JournalDamaged:
                continue
            assert reading.events == true[: len(reading.events)]
            assert reading.torn
            assert position >= sizes[-2], "only the last line passes for torn"


@pytest.mark.slow
def test_cut_and_flipped_at_once_is_still_one_or_the_other(tmp_path: Path) -> None:
    """A crash in front of a bad disk."""
    path, _ = written(tmp_path, events=2)
    whole = path.read_bytes()
    true = journals.read(path).events
    for cut in range(1, len(whole), 7):
        for position in range(0, cut, 11):
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 : cut])
            try:
                reading = journals.read(path)
            except JournalDamaged:
                continue
            assert reading.events == true[: len(reading.events)]


def test_a_line_taken_out_is_refused(tmp_path: Path) -> None:
    """Each line names the hash of the one before it."""
    path, _ = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(JournalDamaged):
        journals.read(path)


def test_a_line_written_anew_with_a_checksum_that_fits_is_refused(tmp_path: Path) -> None:
    """Number, length and checksum are right; the line behind it remembers another one."""
    path, _ = written(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    body = json.loads(lines[1][journals.HEAD :])
    lines[1] = journals._line(1, body["t"] + 1.0, body["event"], body["data"], body["prev"])
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalDamaged, match="line 3: it does not follow"):
        journals.read(path)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("intend", {}, "data lacks step"),
        ("intend", {"step": 7}, "data.step is no str"),
        ("conclude", {"step": "a", "outcome": None}, "data.outcome is no str"),
        ("conclude", {"step": "a", "outcome": "Verified", "evidence": "all"}, "data.evidence is no list"),
        ("effect", {"step": "a", "effect": "stop", "node": "x", "detail": ""}, "no node's"),
        ("effect", {"step": "a", "effect": "stop", "node": "9" * 5000, "detail": ""}, "no node's"),
        ("ledger", {"step": "a", "offset": 1, "engine": "", "cells": [7]}, "data.cells is no object"),
        ("ledger", {"step": "a", "offset": "1", "engine": "", "cells": []}, "data.offset is no int"),
        ("diff", {"offset": 1, "lag": 0, "counts": {"a": []}, "unexcused": 0, "expected": {}}, "data.counts is no"),
        ("copy-check", {"at_end": True}, "data lacks zxid"),
        ("units", {"nodes": [{}]}, "data.nodes lacks node"),
        ("note", {"key": "k", "value": 1}, "data.value is no str"),
        ("waiting", {"step": "a"}, "data lacks what"),
    ],
)
def test_an_event_of_another_kind_is_damage(tmp_path: Path, name: str, data: dict[str, Any], says: str) -> None:
    """Its sums fit, and no reader is made to guess: a typed error with the line."""
    path = tmp_path / "journal.jsonl"
    Journal.begin(path, 1.0, {"plan": "ab"}).append(2.0, name, data)
    with pytest.raises(JournalDamaged, match="line 2: ") as caught:
        journals.read(path)
    assert says in caught.value.what


@pytest.mark.parametrize("time", [-1.0, 1e12, 1e18])
def test_a_time_that_no_calendar_has_is_damage(tmp_path: Path, time: float) -> None:
    """Reports show it."""
    path = tmp_path / "journal.jsonl"
    Journal.begin(path, time, {"plan": "ab"})
    with pytest.raises(JournalDamaged, match="its time"):
        journals.read(path)


TEXTS = st.text(max_size=3)
LEAVES: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers(-5, 2**40) | st.floats(-5, 5) | TEXTS
KEYS = sorted({key.removesuffix("?") for shape in (*SHAPES.values(), COPY_CHECKED) for key in shape} | {"x", "node"})
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=2), inner),
    max_leaves=6,
)
NAMES = st.sampled_from([*SHAPES, "fault", "approved", "end", "stage", "other"])


@pytest.mark.slow
@given(st.lists(st.tuples(NAMES, st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4)), max_size=4))
@settings(max_examples=300, deadline=None)
def test_whatever_a_journal_lets_pass_can_be_told(drawn: list[tuple[str, dict[str, Any]]]) -> None:
    """The reader refuses it, or the report, the board and a new run understand it."""
    events = tuple(Event(number, float(number), name, data) for number, (name, data) in enumerate(drawn))
    if any(misshapen(event) for event in events):
        return
    tell((), events)
    board(story.plan(), events)
    assert isinstance(half_done(events), str)
    assert journals.notes(events) is not None
    assert len(concluded(events)) <= len(events)
    since_last_roll(events, SystemClock())


def test_a_name_that_is_no_utf_8_does_not_make_the_journal_unreadable(tmp_path: Path) -> None:
    """A path of a host as Python has it, a lone surrogate in it: the run must be able to go on."""
    path = tmp_path / "journal.jsonl"
    journal = Journal.begin(path, 1.0, {"plan": "ab"})
    written = journal.append(2.0, "note", {"key": "k", "value": os.fsdecode(b"/data/\xff")})
    assert written.data["value"] == "/data/?"
    assert journals.read(path).events == journal.events


def test_a_line_is_on_the_disk_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the file, then its folder; behind the point at which a kill may tear it, and before the event counts."""
    path, _ = written(tmp_path)
    journal, order, fsync = Journal.resume(path), list[str](), os.fsync

    def told(handle: int) -> None:
        order.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        order.append(str(len(journal.events)))
        fsync(handle)

    journal.between = order.append
    before = str(len(journal.events))
    monkeypatch.setattr(os, "fsync", told)
    journal.append(9.0, "note", {"key": "k", "value": "v"})
    journal.close()
    assert order == ["unsynced:note", "file", before, "folder", before]


def test_a_line_that_did_not_reach_the_disk_was_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An fsync that fails is an error; the next line stands where this one stood."""
    path, _ = written(tmp_path)
    journal, whole = Journal.resume(path), path.read_bytes()

    def lost(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", lost)
        with pytest.raises(JournalUnwritable, match="Input/output error"):
            journal.append(9.0, "note", {"key": "k", "value": "v"})
    assert path.read_bytes() == whole
    journal.append(9.0, "note", {"key": "k", "value": "w"})
    journal.close()
    assert journals.notes(journals.read(path).events)["k"] == "w"


def test_the_journal_is_for_its_owner_alone(tmp_path: Path) -> None:
    """Mode 0600: it names hosts and paths."""
    path, _ = written(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_with_an_id(tmp_path: Path) -> None:
    """A run without a writable journal does nothing."""
    path, _ = written(tmp_path)
    journal = Journal.resume(path)
    journal._file.close()
    journal._file = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115 - closed with the journal
    with pytest.raises(JournalUnwritable):
        journal.append(9.0, "note", {"key": "k", "value": "v"})
    journal.close()


FULL = """
import resource, sys
from pathlib import Path
from migrate.errors import JournalUnwritable
from tests.run.test_engine import plan_for, run
from tests.testing.simulated import SimulatedCluster
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
cluster = SimulatedCluster.in_zookeeper_mode()
plan = plan_for(cluster)
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    run(cluster, plan, folder)
except JournalUnwritable as error:
    print(error.id, len(cluster.done), cluster.done[-1:] or "nothing")
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 100, 600, 3000, 12_000])
def test_without_room_for_the_journal_nothing_more_is_done(limit: int, tmp_path: Path) -> None:
    """The kernel refuses to let the file grow: every effect that happened has its intent on disk."""
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(limit)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.stdout.startswith("E-RUN-02"), ended.stderr
    done = int(ended.stdout.split()[1])
    path = tmp_path / "journal.jsonl"
    events = journals.read(path).events if path.exists() else ()
    acts = ("write-config", "format", "stop", "start", "assign-directories")
    intents = sum(event.name == "effect" and event.data["effect"] in acts for event in events)
    assert done <= intents
    assert done > 0 or limit < 12_000


def test_concluded_steps_are_those_that_ended_well(tmp_path: Path) -> None:
    """Failed, refused and unknown steps are looked at again."""
    journal = Journal.begin(tmp_path / "j", 0.0, {})
    for step, outcome in (("a", "Verified"), ("b", "Failed"), ("c", "AlreadyDone"), ("d", "Unknown")):
        journal.append(1.0, "intend", {"step": step})
        journal.append(2.0, "conclude", {"step": step, "stage": "prepare", "outcome": outcome})
    journal.append(3.0, "note", {"key": "x", "value": "1"})
    journal.append(3.0, "note", {"key": "x", "value": "2"})
    assert concluded(journal.events) == {"a", "c"}
    assert journals.begun(journal.events) == {"a", "b", "c", "d"}
    assert journals.notes(journal.events) == {"x": "2"}
    journal.close()


@pytest.mark.parametrize("left", [None, b"", b"0000", b'0000004b 12345678 {"data":{'])
def test_a_journal_that_has_no_first_line_yet_gets_it(left: bytes | None, tmp_path: Path) -> None:
    """Never begun, or killed while it was: both begin with the header, and a second opening adds nothing."""
    path = tmp_path / "j"
    if left is not None:
        path.write_bytes(left)
    for _ in range(2):
        Journal.opened(path, 1.0, {"plan": "p"}).close()
    assert [(event.name, event.data) for event in journals.read(path).events] == [("run", {"plan": "p"})]


def test_lines_can_be_read_by_eye(tmp_path: Path) -> None:
    """Behind length and checksum stands JSON."""
    path, _ = written(tmp_path)
    for line in path.read_text(encoding="ascii").splitlines():
        assert json.loads(line[journals.HEAD :])["event"] in ("run", "intend")
