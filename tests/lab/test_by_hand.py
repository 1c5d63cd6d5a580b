"""The lab's person does what the text says; what goes wrong is said, so that no run waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.hosts.manual.desk import COULD_NOT, FOLDER
from migrate.lab.topology import Topology, plan_topology
from tests.lab.by_hand import HOST, INBOX, Person

README = "BY HAND, first: in the file `content` replace the placeholder behind a.secret= by that key's value in h:{}\n"


@pytest.fixture
def lab(tmp_path: Path) -> Topology:
    """Its folder, with an inbox and a host."""
    found = plan_topology(tmp_path)
    for place in ("runs", HOST, INBOX):
        found.folder(place).mkdir(parents=True, exist_ok=True)
    return found


def until(what: str, reached: Callable[[], bool]) -> None:
    """Ask until it is so."""
    deadline, pause = time.monotonic() + 60, threading.Event()
    while not reached():
        assert time.monotonic() < deadline, what
        pause.wait(0.05)


def instruction(lab: Topology, commands: str, readme: str = "") -> Path:
    """A folder as the desk renders it."""
    folder = lab.folder("runs") / FOLDER / "001-0-write"
    folder.mkdir(parents=True)
    (folder / "README.txt").write_text(readme)
    (folder / "commands.txt").write_text(commands)
    return folder


def test_lines_are_run_in_order_and_the_answer_is_brought(lab: Topology) -> None:
    """Once."""
    instruction(lab, "printf one > first\nprintf '{}' > answer-1.json\n")
    with Person(lab, print):
        until("an answer", (lab.folder(INBOX) / "answer-1.json").exists)
    assert (lab.folder(HOST) / "instructions/001-0-write/first").read_text() == "one"


@pytest.mark.parametrize(
    ("commands", "readme", "says"),
    [("false\ntouch behind\n", "", "false: "), ("true\n", README.format("/nowhere"), "FileNotFoundError")],
)
def test_what_cannot_be_done_is_said_and_nothing_behind_it_is_run(
    lab: Topology, commands: str, readme: str, says: str
) -> None:
    """A command that fails, and a file that is not where the text says."""
    folder = instruction(lab, commands, readme)
    told: list[str] = []
    with Person(lab, told.append):
        until("a refusal", (folder / COULD_NOT).exists)
    assert says in (folder / COULD_NOT).read_text()
    assert told
    assert not (lab.folder(HOST) / "instructions/001-0-write/behind").exists()
