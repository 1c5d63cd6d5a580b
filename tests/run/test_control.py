"""The control file: one request, whole or refused, and an abort that counts once."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import ControlUnreadable, ControlUnwritable
from migrate.model.stage import MIGRATION
from migrate.run import control
from migrate.run.control import Control, Request
from migrate.run.locks import LockFile
from tests.testing.full_disk import fill, small_disk
from tests.testing.no_room import no_room

NAMED = '{"pid": 1, "host": "h"}'
FULL = Control(Request.PAUSE, "copy", "alice", "desk", 5.5, "lunch")


def written(folder: Path, **changes: Any) -> Path:
    """A control file of ours with these fields changed; None takes a field out."""
    path = control.write(folder, FULL)
    body = {**json.loads(path.read_text("utf-8")), **changes}
    path.write_text(json.dumps({name: value for name, value in body.items() if value is not None}), "utf-8")
    return path


def test_a_request_is_read_as_it_was_written_and_no_file_is_none(tmp_path: Path) -> None:
    """For its owner alone, and nothing else lies beside it."""
    assert control.read(tmp_path) == Control(time=0.0)
    control.write(tmp_path, Control())
    assert control.read(tmp_path) == Control()
    path = control.write(tmp_path, FULL)
    assert control.read(tmp_path) == FULL
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "kraft-migrate/control/v2"},
        {"format": None},
        {"request": "stop"},
        {"request": None},
        {"hold_after": "nowhere"},
        {"hold_after": 3},
        {"by": None},
        {"reason": ["a"]},
        {"time": "soon"},
        {"time": None},
        {"time": float("inf")},
        {"time": "inf"},
        {"time": "5"},
        {"time": True},
        {"wish": "run"},
        {"more": ""},
    ],
)
def test_a_field_that_is_none_of_ours_is_no_request_at_all(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Nobody knows what was meant: it may have been a pause."""
    written(tmp_path, **changes) if "format" not in changes or changes["format"] else written(tmp_path, format=None)
    with pytest.raises(ControlUnreadable, match="it is no control file"):
        control.read(tmp_path)


def test_a_time_is_a_number_whole_or_not(tmp_path: Path) -> None:
    """And a request without a hold holds nothing."""
    written(tmp_path, time=7, hold_after="")
    assert control.read(tmp_path) == replace(FULL, time=7.0, hold_after="")


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"\xff", b" " * 100_000 + b"{}"])
def test_what_is_no_object_of_ours_is_refused(tmp_path: Path, content: bytes) -> None:
    """Never taken as no request."""
    (tmp_path / control.NAME).write_bytes(content)
    with pytest.raises(ControlUnreadable):
        control.read(tmp_path)


def test_a_request_without_a_time_is_of_no_time() -> None:
    """As nobody said when."""
    assert Control().time == 0.0


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Here a folder in its place."""
    (tmp_path / control.NAME).mkdir()
    with pytest.raises(ControlUnreadable, match="it cannot be read"):
        control.read(tmp_path)


def test_a_request_that_the_earlier_version_wrote_still_holds(tmp_path: Path) -> None:
    """It named the request otherwise: a run must not lose a pause to an upgrade."""
    written = control.write(tmp_path, FULL)
    written.write_bytes(written.read_bytes().replace(b'"request"', b'"wish"'))
    assert control.read(tmp_path) == FULL


def test_an_abort_counts_once_and_a_newer_request_stays(tmp_path: Path) -> None:
    """A person may have changed their mind in between."""
    abort = replace(FULL, request=Request.ABORT)
    control.write(tmp_path, abort)
    control.clear_abort(tmp_path, abort)
    assert control.read(tmp_path) == replace(abort, request=Request.RUN)
    control.write(tmp_path, FULL)
    control.clear_abort(tmp_path, abort)
    assert control.read(tmp_path) == FULL


def test_a_hold_is_behind_its_stage_and_not_before(tmp_path: Path) -> None:
    """The stage itself is carried out; without a hold nothing is held."""
    held = [stage.label for stage in MIGRATION if FULL.holds_before(stage)]
    labels = [stage.label for stage in MIGRATION]
    assert held == labels[labels.index("copy") + 1 :]
    assert not any(Control().holds_before(stage) for stage in MIGRATION)


def test_who_requested_it_is_said_as_far_as_it_is_known() -> None:
    """Nobody is left unnamed in silence."""
    assert FULL.said == "by alice on desk: lunch"
    assert Control().said == "by somebody on an unnamed host"


def test_on_a_full_disk_a_pause_names_the_signal_that_stops_the_run(tmp_path: Path) -> None:
    """On a real one: the earlier request still holds, no draft is left, and the owner of the lock is named."""
    with small_disk(tmp_path / "disk") as disk:
        folder = disk / "runs" / "0123abcd"
        folder.mkdir(parents=True)
        control.write(folder, Control(hold_after="copy", time=1.0))
        lock = LockFile(disk / "runs" / "lock")
        fill(disk)
        try:
            with pytest.raises(ControlUnwritable, match="No space left on device") as raised:
                control.write(folder, FULL)
            assert f"`kill -TERM {os.getpid()}` on {socket.gethostname()}" in raised.value.next_step
            with pytest.raises(ControlUnwritable) as resumed:
                control.write(folder, Control())
            assert "kill" not in resumed.value.next_step
        finally:
            lock.release()
        assert control.read(folder) == Control(hold_after="copy", time=1.0)
        assert [path.name for path in folder.iterdir()] == ["control.json"]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"pid": "1", "host": "h"}', '{"pid": 1}', NAMED])
def test_without_a_run_that_holds_the_lock_no_process_is_named(tmp_path: Path, text: str | None) -> None:
    """A dead owner's number may be another process by now."""
    folder = tmp_path / "0123abcd"
    folder.mkdir()
    if text is not None:
        (tmp_path / "lock").write_text(text)
    with no_room(), pytest.raises(ControlUnwritable) as raised:
        control.write(folder, FULL)
    assert "kill" not in raised.value.next_step
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (NAMED, True),
        ('{"pid": "1; reboot", "host": "h"}', False),
        ('{"pid": true, "host": "h"}', False),
        ('{"pid": 1, "host": 5}', False),
        ('{"host": "h"}', False),
        ('{"pid": 1}', False),
        ("[]", False),
        ("{", False),
    ],
)
def test_only_a_number_and_a_host_of_a_held_lock_become_a_command(tmp_path: Path, text: str, named: bool) -> None:
    """What is printed may be typed as it stands: a lock file that is none of ours gives no command."""
    folder = tmp_path / "0123abcd"
    folder.mkdir()
    lock = tmp_path / "lock"
    lock.write_text(text)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with no_room(), pytest.raises(ControlUnwritable) as raised:
            control.write(folder, FULL)
    assert ("`kill -TERM 1` on h," in raised.value.next_step) is named
    assert ("kill" in raised.value.next_step) is named
