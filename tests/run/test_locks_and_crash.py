"""One run a folder at a time; and crash points kill where they are asked to."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.errors import LockLost, RunLocked
from migrate.run.effects import VARIABLE, CrashPoints
from migrate.run.journal import Journal
from migrate.run.locks import LockFile, RunLock


def test_a_second_holder_of_the_lock_file_is_refused_by_name(tmp_path: Path) -> None:
    """The refusal says who holds it."""
    first = LockFile(tmp_path / "runs" / "lock")
    with pytest.raises(RunLocked) as caught:
        LockFile(tmp_path / "runs" / "lock")
    assert str(os.getpid()) in str(caught.value)
    assert caught.value.exit_code == 7
    first.release()
    LockFile(tmp_path / "runs" / "lock").release()


def test_a_run_in_progress_is_named_with_person_host_and_step(tmp_path: Path) -> None:
    """Whoever comes second reads whom to ask, and what would be interrupted."""
    who = {"owner": "alice", "run": "164dcc01", "since": "2026-11-29T01:15:52+00:00"}
    first = LockFile(tmp_path / "lock", who)
    process = f"pid {os.getpid()} on {socket.gethostname()}"
    said = f"run 164dcc01 is in progress: alice, {process}, since 2026-11-29T01:15:52+00:00"
    with pytest.raises(RunLocked) as caught:
        LockFile(tmp_path / "lock")
    assert caught.value.what == said
    (tmp_path / "164dcc01").mkdir()
    journal = Journal.begin(tmp_path / "164dcc01" / "journal.jsonl", 1.0, {"plan": "164dcc01" * 8})
    journal.append(2.0, "conclude", {"step": "kraft-mode/0", "outcome": "verified"})
    journal.append(3.0, "note", {"key": "a", "value": "b"})
    journal.close()
    with pytest.raises(RunLocked) as caught:
        LockFile(tmp_path / "lock")
    assert caught.value.what == f"{said}, now at step kraft-mode/0"
    first.release()


def test_a_lock_file_is_made_for_its_owner_alone_wherever_it_is(tmp_path: Path) -> None:
    """With the folders above it; a second lock in the same folder is another lock."""
    place = tmp_path / "runs" / "of" / "lab"
    one, two = LockFile(place / "one"), LockFile(place / "two")
    assert stat.S_IMODE((place / "one").stat().st_mode) == 0o600
    one.release()
    two.release()


def test_a_refused_lock_leaves_no_file_open(tmp_path: Path) -> None:
    """A watcher may ask again and again for as long as the other run lasts."""
    held = LockFile(tmp_path / "lock")
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        with pytest.raises(RunLocked):
            LockFile(tmp_path / "lock")
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    held.release()


def test_the_lock_file_names_its_holder_alone(tmp_path: Path) -> None:
    """What an earlier holder with a longer name left is gone."""
    (tmp_path / "lock").write_text(json.dumps({"pid": 1, "host": "h" * 300}))
    lock = LockFile(tmp_path / "lock")
    assert json.loads((tmp_path / "lock").read_text()) == {"pid": os.getpid(), "host": socket.gethostname()}
    lock.release()


@pytest.mark.slow
def test_the_kernel_frees_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    """However the process ends."""
    code = (
        "import sys, os, signal, pathlib; from migrate.run.locks import LockFile;"
        "LockFile(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(tmp_path / "lock")], check=False)
    assert ended.returncode == -signal.SIGKILL
    LockFile(tmp_path / "lock").release()


class _Znode:
    def __init__(self) -> None:
        self.asked = self.released = 0

    def still_ours(self) -> None:
        self.asked += 1

    def release(self) -> None:
        self.released += 1


def test_after_releasing_zookeeper_the_file_holds_alone(tmp_path: Path) -> None:
    """The znode is asked until it is given back, and given back once."""
    znode = _Znode()
    lock = RunLock(LockFile(tmp_path / "lock"), znode)
    lock.still_ours()
    lock.release_zookeeper()
    lock.still_ours()
    lock.release()
    assert (znode.asked, znode.released) == (1, 1)


class _Gone(_Znode):
    def release(self) -> None:
        raise LockLost("the lock znode is missing")


def test_the_file_is_given_back_also_where_the_znode_was_lost(tmp_path: Path) -> None:
    """The next run must not be refused by a process that has ended its work."""
    lock = RunLock(LockFile(tmp_path / "lock"), None).joined(_Gone())
    with pytest.raises(LockLost):
        lock.release()
    LockFile(tmp_path / "lock").release()


def test_without_a_znode_the_file_alone_is_the_lock(tmp_path: Path) -> None:
    """Nothing else is asked or given back."""
    lock = RunLock(LockFile(tmp_path / "lock"), None)
    lock.still_ours()
    lock.release_zookeeper()
    with pytest.raises(RunLocked):
        LockFile(tmp_path / "lock")
    lock.release()


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["2", "before:stop:1"])
def test_a_crash_point_kills_the_process_at_its_number_or_label(wanted: str) -> None:
    """As nothing else could: SIGKILL."""
    code = (
        "from migrate.run.effects import CrashPoints; points = CrashPoints(); points.reach('before:start:1');"
        "print('passed', flush=True); points.reach('before:stop:1'); print('never')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, VARIABLE: wanted}, capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == b"passed\n"


def test_without_a_request_nothing_crashes() -> None:
    """Points are only counted."""
    points = CrashPoints("")
    points.reach("a")
    points.reach("b")
    assert points.passed == 2
