"""The cache's lock and its all-or-nothing folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.errors import JarsUnavailable
from migrate.java.jars import locked, silent, staged

HOLDER = """
import os, sys
from pathlib import Path
from migrate.java.jars import locked, silent
with locked(Path(sys.argv[1]), silent) as lock:
    if sys.argv[2] == 'child':
        os.set_inheritable(lock, True)
        pid = os.posix_spawn('/bin/sh', ['sh', '-c', 'read line'], {})
    print(pid if sys.argv[2] == 'child' else 'held', flush=True)
    sys.stdin.read() if sys.argv[2] == 'alone' else os.kill(os.getpid(), 9)
"""


def hold(path: Path, how: str) -> subprocess.Popen[str]:
    """A process that has the lock (`alone`), or dies with it, leaving a child that inherited it (`child`)."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_a_lock_that_another_run_holds_is_waited_for_and_told(tmp_path: Path) -> None:
    """A wait names what it waits for; it ends in a typed error."""
    path = tmp_path / "jars.lock"
    said: list[str] = []
    with hold(path, "alone") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(JarsUnavailable, match="held the cache's lock"), locked(path, said.append, seconds=0.1):
            pytest.fail("two runs hold one lock")
        assert said == ["another run is filling the cache: waiting for it"]
        holder.communicate("")
    with locked(path, silent, seconds=0):
        pass


@pytest.mark.slow
def test_a_killed_run_leaves_no_lock(tmp_path: Path) -> None:
    """The kernel frees it."""
    path = tmp_path / "jars.lock"
    with hold(path, "alone") as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with locked(path, silent, seconds=0):
        pass


@pytest.mark.slow
def test_a_child_that_still_writes_keeps_a_killed_runs_lock(tmp_path: Path) -> None:
    """No other run writes beside an Ivy whose parent was killed."""
    path = tmp_path / "jars.lock"
    with hold(path, "child") as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        assert holder.wait(20) == -signal.SIGKILL
        descriptor = os.pidfd_open(child)
        try:
            with pytest.raises(JarsUnavailable), locked(path, silent, seconds=0.1):
                pytest.fail("the orphan's lock was given away")
        finally:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)
        holder.communicate()
    with locked(path, silent, seconds=20):
        pass


def test_a_folder_appears_complete(tmp_path: Path) -> None:
    """Under its final name all of it is there, at once."""
    final = tmp_path / "jars"
    with staged(final) as stage:
        (stage / "a").write_text("1")
        assert not final.exists()
    assert (final / "a").read_text() == "1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jars"]


def test_other_accounts_may_read_what_a_command_fetched(tmp_path: Path) -> None:
    """Commands make files for their owner alone; a broker that runs as another account has to read these."""
    before = os.umask(0o077)
    try:
        with staged(tmp_path / "jars") as stage:
            (stage / "a").write_text("1")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "jars", tmp_path / "jars" / "a")] == [0o755, 0o644]


def test_a_folder_that_failed_half_way_does_not_appear(tmp_path: Path) -> None:
    """Nor does anything of it stay."""
    final = tmp_path / "jars"
    with pytest.raises(FileNotFoundError), staged(final) as stage:
        (stage / "a").write_text((stage / "nothing").read_text())
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_cleared_first(tmp_path: Path) -> None:
    """Its half of the files is never mixed with ours."""
    final = tmp_path / "jars"
    left = tmp_path / "jars.partial"
    left.mkdir()
    (left / "torn").write_text("x")
    with staged(final) as stage:
        (stage / "whole").write_text("1")
    assert [path.name for path in final.iterdir()] == ["whole"]
