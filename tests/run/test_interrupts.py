"""Ctrl-C in a real process: the first parks behind the broker in progress, the second says what it leaves half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrate.errors import RunInterrupted
from migrate.model.history import Event
from migrate.run import journal as journals
from migrate.run.interrupts import ParkRequest, half_done, parking_on_interrupt

PROGRAM = """
import sys, threading
from pathlib import Path
from migrate.errors import MigrateError
from migrate.run.interrupts import half_done, parking_on_interrupt
from tests.run.gated import Gated
from tests.testing import worlds

run = Gated(Path(sys.argv[1]), worlds.playbook())
stop = run.cluster.stop
def slow(node, timeout):
    print("stopping", int(node), flush=True)
    if int(node) == 1:
        sys.stdin.readline()
    stop(node, timeout)
cluster = run.cluster
class Slow:
    def __getattr__(self, name):
        return slow if name == "stop" else getattr(cluster, name)
run.cluster = Slow()
say = lambda text: print(text, flush=True)
try:
    with parking_on_interrupt(run.request, say):
        run.session()
except MigrateError as error:
    say(f"{error.id} {error}")
    sys.exit(error.exit_code)
except KeyboardInterrupt:
    say(half_done(run.events))
    sys.exit(130)
"""


@contextmanager
def migrating(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run of its own, which waits in the middle of broker 1 for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], text: str) -> str:
    """The next line of it with that text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line.strip()
    raise AssertionError(f"it never said {text!r}")


@pytest.mark.slow
def test_the_first_ctrl_c_parks_behind_the_broker_under_way(tmp_path: Path) -> None:
    """Broker 1 is brought up and proven, broker 2 is never touched; exit code 130."""
    with migrating(tmp_path) as process:
        until(process, "stopping 1")
        process.send_signal(signal.SIGINT)
        until(process, "Ctrl-C: the run parks at the next safe point")
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        line = until(process, RunInterrupted.id)
        assert "parked before migration-mode/2: Ctrl-C asked for it" in line
        assert process.wait(60) == 130
    events = journals.read(tmp_path / "journal.jsonl").events
    assert [event.data["step"] for event in events if event.name == "conclude"][-1] == "migration-mode/1"
    assert half_done(events) == "no step is half done"


@pytest.mark.slow
def test_the_second_ctrl_c_stops_now_and_says_what_is_half_done(tmp_path: Path) -> None:
    """The step and the effect that was begun; the journal is whole."""
    with migrating(tmp_path) as process:
        until(process, "stopping 1")
        process.send_signal(signal.SIGINT)
        until(process, "once more stops it now")
        process.send_signal(signal.SIGINT)
        line = until(process, "half done:")
        assert line == "step migration-mode/1 is half done: stop of 1 was begun and not seen to end"
        assert process.wait(60) == 130
    assert not journals.read(tmp_path / "journal.jsonl").torn


def test_sigterm_parks_as_well_and_handlers_are_given_back() -> None:
    """Whoever calls a run from a program gets its own handlers again."""
    request, said = ParkRequest(), list[str]()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with parking_on_interrupt(request, said.append):
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.by == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert len(said) == 1


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ((), "no step is half done"),
        (("intend",), "between two effects, or not proven yet"),
        (("intend", "effect"), "stop of 1 was begun and not seen to end"),
        (("intend", "effect", "effected"), "between two effects"),
        (("intend", "effect", "effected", "conclude"), "no step is half done"),
    ],
)
def test_what_is_half_done_is_read_from_the_journal(names: tuple[str, ...], says: str) -> None:
    """By its last intent and effect."""
    data = {"step": "roll/1", "effect": "stop", "node": "1"}
    assert says in half_done(tuple(Event(number, 0.0, name, data) for number, name in enumerate(names)))
