"""The command of `--on-event`: whatever it does, a run neither waits for it nor ends by it; what is lost is told."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrate.hosts.runner import LocalRunner
from migrate.run import on_event as module
from migrate.run.clock import SystemClock
from migrate.run.on_event import EventCommand

SECRET = "canary-word"


@dataclass
class Tried:
    """A command that is this script, and what was said of it."""

    folder: Path
    text: str
    said: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """The script."""
        return self.folder / "command"

    def begun(self) -> EventCommand:
        """It waits for events."""
        self.path.write_text(f"#!/bin/sh\n{self.text}\n")
        self.path.chmod(0o700)
        return EventCommand((str(self.path), SECRET), SystemClock(), self.said.append)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is less than a second."""
    monkeypatch.setattr(module, "SECONDS", 0.4)
    monkeypatch.setattr(module, "AT_THE_END", 0.8)


def until(holds: Callable[[], bool]) -> None:
    """Wait until it does."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        SystemClock().sleep(0.01)


def test_each_event_is_one_line_in_order(tmp_path: Path) -> None:
    """Its words are as they were given: no shell reads them."""
    command = Tried(tmp_path, f'cat >> {tmp_path}/got; echo "$1 $#" >> {tmp_path}/words').begun()
    lines = [json.dumps({"n": number}) for number in range(5)]
    for line in lines:
        command(line)
    assert command.close() == ""
    assert (tmp_path / "got").read_text() == "".join(f"{line}\n" for line in lines)
    assert set((tmp_path / "words").read_text().splitlines()) == {f"{SECRET} 1"}


HANGS = "sleep 600 & sleep 600"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HANGS, "no end after 0 s"),
        ("exit 3", "it ended with 3"),
        ("kill -9 $$", "it ended with -9"),
        ("yes", ("no end after 0 s", "it answered with more than")),  # whichever comes first
        ("echo -e '\\033[1mno route' >&2; exit 7", "it ended with 7"),
    ],
)
@pytest.mark.usefixtures("short")
def test_a_run_neither_waits_for_a_command_nor_ends_by_it(
    tmp_path: Path, text: str, why: str | tuple[str, ...]
) -> None:
    """It is told once, and at the end with the numbers; no word of the command is."""
    tried = Tried(tmp_path, text)
    command, began = tried.begun(), time.monotonic()
    for number in range(100):
        command(str(number))
    assert time.monotonic() - began < 0.4
    until(lambda: bool(tried.said))
    missed = command.close()
    assert time.monotonic() - began < 10
    first, last = tried.said
    told = f"--on-event: {tried.path} failed, the run continues: "
    assert first.removeprefix(told).startswith(why)
    assert first.startswith(told)
    assert last == f"--on-event: {missed}"
    assert missed.startswith(f"{tried.path} did not take each of 100 events: ")
    assert missed.partition(" failed (the first: ")[2].startswith(why)
    assert SECRET not in first + last
    assert first.isprintable()


@pytest.mark.usefixtures("short")
def test_one_that_writes_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it has written more than any answer has, not when its time is over."""
    monkeypatch.setattr(module, "SECONDS", 600.0)
    monkeypatch.setattr("migrate.hosts.runner.limits.most", lambda _: 1 << 16)
    tried = Tried(tmp_path, "yes")
    command = tried.begun()
    command("1")
    until(lambda: bool(tried.said))
    assert "it answered with more than 65536 bytes, and was ended" in tried.said[0]


@pytest.mark.parametrize(("word", "why"), [("/nowhere/command", "it ended with 127"), ("/tmp", "it ended with 126")])
def test_one_that_cannot_be_started_is_told(word: str, why: str) -> None:
    """As a shell numbers it."""
    said: list[str] = []
    command = EventCommand((word,), SystemClock(), said.append)
    command("1")
    command("2")
    assert command.close() == f"{word} did not take each of 2 events: 2 failed (the first: {why})"
    assert len(said) == 2


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_what_has_no_room_is_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that hangs for a night fills no memory."""
    monkeypatch.setattr(module, "MOST_WAITING", 10)
    tried = Tried(tmp_path, HANGS)
    command = tried.begun()
    command("0")
    until(lambda: command._lines.qsize() == 0)
    for number in range(13):
        command(str(number))
    assert command._lines.qsize() == 10
    missed = command.close()
    failed, dropped = re.findall(r"(\d+) (?:failed|dropped)", missed)
    assert int(dropped) >= 3
    assert int(failed) + int(dropped) == 14


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_no_process_outlives_its_time(tmp_path: Path) -> None:
    """Nor does what it started, also of the one that runs when the session ends."""
    tried = Tried(tmp_path, f"sleep 600 & echo $! >> {tmp_path}/pids; echo $$ >> {tmp_path}/pids; wait")
    command = tried.begun()
    command("1")
    until(lambda: (tmp_path / "pids").exists() and len((tmp_path / "pids").read_text().split()) == 2)
    command.close()
    until(lambda: not any(runs(int(pid)) for pid in (tmp_path / "pids").read_text().split()))


def runs(pid: int) -> bool:
    """Is there such a process, and is it more than a name in the table?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_end_is_bounded_where_a_process_cannot_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that waits for a disk that is gone: it is left to itself, and what waits behind it is dropped."""
    monkeypatch.setattr(module, "AT_THE_END", 0.1)
    monkeypatch.setattr(LocalRunner, "run", lambda *_, **__: SystemClock().sleep(3))
    command = Tried(tmp_path, "").begun()
    for number in range(3):
        command(str(number))
    until(lambda: command._lines.qsize() == 2)
    assert command.close() == f"{tmp_path}/command did not take each of 3 events: 3 dropped"


def test_one_that_fails_at_first_is_given_the_next_event(tmp_path: Path) -> None:
    """A mail server comes back."""
    tried = Tried(tmp_path, f"mkdir {tmp_path}/first && exit 1; cat >> {tmp_path}/got")
    command = tried.begun()
    for number in range(3):
        command(str(number))
    assert command.close() == f"{tried.path} did not take each of 3 events: 1 failed (the first: it ended with 1)"
    assert (tmp_path / "got").read_text() == "1\n2\n"


def test_what_comes_behind_the_end_is_not_given(tmp_path: Path) -> None:
    """And the end is told once."""
    tried = Tried(tmp_path, "exit 1")
    command = tried.begun()
    command("1")
    missed = command.close()
    command("2")
    assert command.close() == missed
    assert len(tried.said) == 2


def test_a_defect_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told by its kind."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LocalRunner, "run", broken)
    tried = Tried(tmp_path, "")
    command = tried.begun()
    command("1")
    assert command.close().endswith("(the first: ZeroDivisionError)")


def test_its_session_is_its_own(tmp_path: Path) -> None:
    """Ctrl-C and a closed terminal reach the run, and not the mail that it sends."""
    command = Tried(tmp_path, f"ps -o sid= -p $$ > {tmp_path}/sid").begun()
    command("1")
    assert command.close() == ""
    assert int((tmp_path / "sid").read_text()) != os.getsid(0)
