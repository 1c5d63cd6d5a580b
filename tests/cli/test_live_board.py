"""A run on a terminal: its lines, and below them a live board; on no terminal the lines alone."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from migrate.cli.live_board import LiveBoard
from migrate.cli.progress import ProgressLines
from migrate.model.history import Event
from migrate.model.work import Work
from tests.cli.terminals import on_terminal, plain
from tests.run.gated import Gated
from tests.testing import worlds

RUN = """
import logging, sys
from pathlib import Path
from threading import Semaphore
from migrate.cli.live_board import LiveBoard
from migrate.cli.progress import ProgressLines
from tests.run.gated import Gated
from tests.testing import worlds

said = logging.StreamHandler()
logging.getLogger("migrate").addHandler(said)
run = Gated(Path(sys.argv[1]), worlds.playbook())
lines = ProgressLines()
drawn, page = Semaphore(0), LiveBoard.page

def counted(board, console):
    answer = page(board, console)
    drawn.release()
    return answer

LiveBoard.page = counted

class Tells:
    def append(self, event):
        if event.name == "stage" and event.data["stage"] in ("migration-mode", "copy", "hybrid"):
            while drawn.acquire(blocking=False):
                pass
            assert drawn.acquire(timeout=60), "the board is not drawn again"
        if event.name == "stage" and event.data["stage"] == "hybrid":
            logging.getLogger("migrate.run").warning("a part logs something")
        lines(event)

run.said = Tells()
with lines.following(run.planned(), run.folder / "journal.jsonl"):
    run.session()
assert said.stream is sys.stderr
lines.say("behind the board")
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Gated:
    """A run that went through, with its journal."""
    run = Gated(tmp_path_factory.mktemp("run"), worlds.playbook())
    run.session()
    return run


def drawn(page: object, width: int = 160, height: int = 40) -> str:
    """What a terminal of that size shows."""
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(page)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.slow
def test_on_a_terminal_the_board_stands_below_the_lines(tmp_path: Path) -> None:
    """In a process of its own, on a real terminal: lines are printed above, the board is drawn again and again."""
    said = on_terminal(tmp_path, code=RUN)
    text = plain(said)
    for part in ("stage migration-mode", "migration-mode/0: Verified", "the plan is complete: soak"):
        assert part in text
    assert "a part logs something" in text
    assert text.count("steps done; running") > 3, "once at each of three stages, and at the end"
    assert "\x1b[1A" in said, "the board is drawn over itself"
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l"), "the cursor is there"
    last = text[text.rindex("run ", 0, text.index("behind the board")) :]
    assert "ended: the plan is carried out" in last


@pytest.mark.slow
def test_without_a_terminal_there_are_only_the_lines(
    tmp_path: Path, done: Gated, capsys: pytest.CaptureFixture[str]
) -> None:
    """No board, no control sequence."""
    lines = ProgressLines()
    with lines.following(done.planned(), done.folder / "journal.jsonl"):
        for event in done.events:
            lines(event)
    said = capsys.readouterr()
    assert said.out == ""
    assert "the plan is complete: soak" in said.err
    assert "\x1b" not in said.err
    assert "steps done" not in said.err


def test_a_session_that_goes_on_shows_what_was_done_before(done: Gated) -> None:
    """The first event that is heard brings the journal's earlier ones."""
    at = [0.0]
    work = Work(lambda: at[0])
    heard = LiveBoard(done.planned(), done.folder / "journal.jsonl", lambda: 0.0, work=lambda: work)
    assert drawn(heard.page(Console())) == ""
    events = done.events
    begin = next(e.number for e in events if e.name == "intend" and e.data["step"] == "kraft-mode/1")
    effect = next(e.number for e in events[begin:] if e.name == "effect")
    for event in events[begin : effect + 1]:
        heard.hear(event)
    text = drawn(heard.page(Console(width=160, height=50)))
    finished = len({event.data["step"] for event in events[:begin] if event.name == "conclude"})
    assert f": {finished} of {len(done.planned().steps)} steps done; running" in text
    assert "[kraft-mode/1]: stop 1" in text
    assert "then     " in text
    assert "looks    " not in text
    with work.part("comparing 1,195 fields"):
        at[0] = 12.4
        assert "looks    comparing 1,195 fields (12 s)" in drawn(heard.page(Console(width=160)))


def test_a_journal_that_cannot_be_read_costs_only_the_past(tmp_path: Path, done: Gated) -> None:
    """The run is not stopped by its picture."""
    heard = LiveBoard(done.planned(), tmp_path / "none", lambda: 0.0)
    heard.hear(done.events[5])
    assert "run " in drawn(heard.page(Console()))


@pytest.mark.slow
@pytest.mark.parametrize("height", [6, 10, 14, 17, 24, 50])
def test_the_picture_leaves_a_line_of_the_terminal_and_room_for_a_ctrl_c(height: int, done: Gated) -> None:
    """The `^C` that a terminal writes behind the last line would scroll a full one: the title stood there twice."""
    heard = LiveBoard(done.planned(), done.folder / "journal.jsonl", lambda: 0.0, playbook=worlds.playbook())
    events = done.events
    for event in events[
        : next(e.number for e in events if e.name == "intend" and e.data["step"] == "kraft-mode/1") + 1
    ]:
        heard.hear(event)
    console = Console(width=80, height=height, file=io.StringIO(), force_terminal=True, color_system=None)
    rows = console.render_lines(heard.page(console), pad=False)
    shown = ["".join(piece.text for piece in row) for row in rows]
    assert len(shown) < height
    assert len(shown[-1].rstrip()) <= 76
    assert shown[0].startswith("run "), "what is left out is at the end"
    assert any(line.startswith("now ") for line in shown)
    assert any(line.startswith("then ") for line in shown)


def test_a_board_that_cannot_be_made_or_drawn_stops_nothing(done: Gated) -> None:
    """An event of a later release, a console without a size: there is no picture then."""
    heard = LiveBoard(done.planned(), done.folder / "journal.jsonl", lambda: 0.0)
    heard.hear(Event(0, 0.0, "waiting", {"none": "of its words"}))
    assert drawn(heard.page(Console())) == ""
    heard.hear(done.events[-1])
    assert heard.page(None).renderables == []  # type: ignore[arg-type] # what no console is


GONE = """
import signal, sys
from pathlib import Path
from migrate.cli.progress import ProgressLines
from tests.run.gated import Gated
from tests.testing import worlds

signal.signal(signal.SIGHUP, signal.SIG_IGN)
run = Gated(Path(sys.argv[1]), worlds.playbook())
lines = ProgressLines()
lines.say("it begins")
sys.stdin.read()
run.said = type("Tells", (), {"append": lambda self, event: lines(event)})()
with lines.following(run.planned(), run.folder / "journal.jsonl"):
    run.session()
"""


@pytest.mark.slow
def test_a_terminal_that_goes_away_does_not_stop_a_run(tmp_path: Path) -> None:
    """With nohup, or in a tmux whose server died: the journal has it all."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", GONE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    ) as child:
        os.close(theirs)
        said = b""
        while b"it begins" not in said:
            said += os.read(ours, 1000)
        os.close(ours)
        child.communicate(timeout=120)
    assert [event.name for event in Gated(tmp_path, worlds.playbook()).events][-1] == "end"
    assert child.returncode in (0, 120), "120: what was buffered could not be written at the interpreter's end"
