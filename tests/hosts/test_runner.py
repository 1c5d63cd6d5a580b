"""A command that stays: it answers, it has ended, or nobody knows; and it never outlives us."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from migrate.errors import HostCommandRefused, HostCommandUnknown
from migrate.hosts import runner
from migrate.hosts.runner import HeldCommand, LocalRunner

SECONDS = 20.0


def test_it_answers_with_the_line_as_often_as_it_is_asked() -> None:
    """Each line once, in order, however long."""
    held = LocalRunner().hold(("cat",))
    lines = [b"a\n", b"\n", b"x" * 5000 + b"\n", bytes(range(32, 127)) + b"\n"]
    assert all(held.answers(line, SECONDS) for line in lines)
    assert held.end().code == 0


def test_one_that_says_something_else_does_not_answer() -> None:
    """What it holds is not what we think."""
    held = LocalRunner().hold(("sh", "-c", "read line; echo other; cat"))
    assert not held.answers(b"mine\n", SECONDS)
    held.end()


def test_one_that_has_ended_does_not_answer_and_tells_why() -> None:
    """Its own code and its own words."""
    held = LocalRunner().hold(("sh", "-c", "echo no such lock >&2; exit 7"))
    assert not held.answers(b"a\n", SECONDS)
    assert not held.answers(b"a\n", SECONDS)
    done = held.end()
    assert (done.code, done.says) == (7, "no such lock")


@pytest.mark.slow
def test_silence_is_unknown_and_neither_yes_nor_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may live; in the end it is killed on this side."""
    monkeypatch.setattr(runner, "END_SECONDS", 0.1)
    held = LocalRunner().hold(("sleep", "60"))
    with pytest.raises(HostCommandUnknown, match="does not answer"):
        held.answers(b"a\n", 0.1)
    assert held.end().code == -signal.SIGKILL


HOLDS_PIPES = "setsid sleep 20 & echo $!; wait"  # as root's program does behind a sudo that is killed


@pytest.mark.slow
def test_what_goes_on_behind_a_killed_command_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pipes stay open; it is left, and ended here alone by the test."""
    monkeypatch.setattr(runner, "END_SECONDS", 0.1)
    before = time.monotonic()
    for end in (HeldCommand.end, HeldCommand.kill):
        held = LocalRunner().hold(("sh", "-c", HOLDS_PIPES))
        left = int(held.line(before + SECONDS))
        end(held)
        os.kill(left, signal.SIGKILL)
    assert time.monotonic() - before < 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_command_that_is_not_ours_to_kill_is_unknown_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As sudo is root's, or a process that a dead disk holds: nobody knows what it still does."""

    def not_ours(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(runner, "ENDS_WITHIN", 0.1)
    monkeypatch.setattr(subprocess.Popen, "send_signal", not_ours)
    before = time.monotonic()
    with pytest.raises(HostCommandUnknown, match="no end after"):
        LocalRunner().run(("sleep", "4"), seconds=0.1)
    assert time.monotonic() - before < 3


def test_a_command_is_heard_beside_a_thousand_open_files() -> None:
    """As those of many hosts are: select(2) takes no descriptor above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2000, hard), hard))
    kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1050)]
    try:
        held = LocalRunner().hold(("cat",))
        assert held.answers(b"a\n", SECONDS)
        held.end()
    finally:
        for each in kept:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_program_that_is_not_there_is_refused() -> None:
    """Before anything is held."""
    with pytest.raises(HostCommandRefused, match="no-such-program did not start"):
        LocalRunner().hold(("no-such-program",))


@pytest.mark.slow
def test_it_ends_with_us_and_not_with_a_signal_from_the_terminal(tmp_path: Path) -> None:
    """A session of its own: Ctrl-C passes it by.  Our end ends its input."""
    said = tmp_path / "said"
    program = f"""
        import os, signal
        from migrate.hosts.runner import LocalRunner
        held = LocalRunner().hold(("sh", "-c", "cat; echo ended > {said}"))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGINT)
        assert held.answers(b"a\\n", 20)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    os.mkfifo(said)
    words = [sys.executable, "-c", textwrap.dedent(program)]
    process = subprocess.Popen(words, start_new_session=True, cwd=Path(runner.__file__).parents[2])
    assert said.read_text() == "ended\n", "it writes when its input has ended"
    assert process.wait(SECONDS) == -signal.SIGKILL
