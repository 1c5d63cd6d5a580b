"""Detached processes: they outlive their starter, are known by more than a pid, and are ended only when proven ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import ProcessStillRuns
from migrate.hosts.background import ProcessMark, lives, mark_of, start_detached, terminate, wait_for_end

PAUSE = "import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ProcessMark]:
    """A process that waits for a signal."""
    mark = start_detached([sys.executable, "-c", PAUSE], log=tmp_path / "log")
    yield mark
    if lives(mark):
        os.kill(mark.pid, signal.SIGKILL)
        wait_for_end(mark, 10)


def test_a_started_process_lives_in_a_session_of_its_own(sleeper: ProcessMark) -> None:
    """Ctrl-C and a closed terminal do not reach it."""
    assert lives(sleeper)
    assert os.getsid(sleeper.pid) == sleeper.pid != os.getsid(0)


def test_the_end_is_seen_and_leaves_no_zombie(sleeper: ProcessMark) -> None:
    """A terminated child is gone, not merely dead."""
    terminate(sleeper, 10)
    assert not lives(sleeper)
    assert not Path(f"/proc/{sleeper.pid}").exists()
    terminate(sleeper, 10)  # once more is nothing


def test_a_pid_alone_proves_nothing(sleeper: ProcessMark) -> None:
    """Another start time or another boot is another process, and is never signalled."""
    for other in (replace(sleeper, started=sleeper.started - 1), replace(sleeper, boot="another")):
        assert not lives(other)
        terminate(other, 10)
        assert wait_for_end(other, 10)
    assert lives(sleeper)


def test_a_mark_survives_its_file(sleeper: ProcessMark) -> None:
    """What stands in a pid file is the same process; anything else there is refused."""
    assert ProcessMark.parse(sleeper.text()) == sleeper == mark_of(sleeper.pid)
    for text in ("", "12", "a b c", "1 2 3 4"):
        with pytest.raises(ValueError, match=r"unpack|literal"):
            ProcessMark.parse(text)


def test_waiting_for_a_living_process_ends_in_time(sleeper: ProcessMark) -> None:
    """The answer is no, not a hang."""
    assert not wait_for_end(sleeper, 0.05)


def test_a_process_that_ignores_the_signal_is_never_killed(tmp_path: Path) -> None:
    """SIGKILL is a person's decision."""
    log = tmp_path / "log"
    mark = start_detached([sys.executable, "-c", DEAF], log=log)
    try:
        while "deaf" not in log.read_text():
            assert not wait_for_end(mark, 0.02)
        with pytest.raises(ProcessStillRuns):
            terminate(mark, 0.1)
        assert lives(mark)
    finally:
        os.kill(mark.pid, signal.SIGKILL)
        assert wait_for_end(mark, 10)


def test_output_is_appended_to_the_log(tmp_path: Path) -> None:
    """Both streams, after what stood there."""
    log = tmp_path / "log"
    log.write_text("before\n")
    program = "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    assert wait_for_end(start_detached([sys.executable, "-c", program], log=log), 20)
    assert log.read_text() == "before\nout\nerr\n"


def test_the_sparks_gateway_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret of the driver's gateway stays with us; what the caller adds arrives."""
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", "s3cret")
    log = tmp_path / "log"
    program = "import os; print(os.environ.get('PYSPARK_GATEWAY_SECRET'), os.environ['GIVEN'])"
    assert wait_for_end(start_detached([sys.executable, "-c", program], log=log, extra_env={"GIVEN": "x"}), 20)
    assert log.read_text() == "None x\n"


def test_it_lives_on_when_its_starter_is_killed(tmp_path: Path) -> None:
    """SIGKILL of the starter leaves the process alive, and its mark finds it."""
    file = tmp_path / "mark"
    program = (
        "import sys, pathlib, signal; from migrate.hosts.background import start_detached;"
        f"mark = start_detached([sys.executable, '-c', {PAUSE!r}], log=pathlib.Path({str(tmp_path / 'log')!r}));"
        f"pathlib.Path({str(file)!r}).write_text(mark.text()); print('started', flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        starter.kill()
    mark = ProcessMark.parse(file.read_text())
    assert lives(mark)
    terminate(mark, 10)
    assert not lives(mark)
