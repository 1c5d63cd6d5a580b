"""A run on a terminal: its lines, and below them a live board; on no terminal the lines alone."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from migrate.cli.live_board import LiveBoard, board_table
from migrate.cli.progress import ProgressLines
from migrate.model.history import Event
from migrate.model.work import Work
from migrate.report.run_board import Board, Cell
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
    assert text.count("migration-mode ┃") > 3, "once at each of three stages, and at the end"
    assert "\x1b[1A" in said, "the board is drawn over itself"
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l"), "the cursor is there"
    last = text[text.rindex("run ", 0, text.index("behind the board")) :]
    assert "ended: the plan is carried out" in last
    final = text[text.rindex("┏") : text.index("behind the board")]
    assert [line.split("│")[1].strip() for line in final.splitlines() if line.startswith("│")] == [
        "cluster",
        *("0", "1", "2", "3000", "3001", "3002"),
    ]
    assert "now" not in final.split("└")[0]


def test_without_a_terminal_there_are_only_the_lines(
    tmp_path: Path, done: Gated, capsys: pytest.CaptureFixture[str]
) -> None:
    """No table, no control sequence."""
    lines = ProgressLines()
    with lines.following(done.planned(), done.folder / "journal.jsonl"):
        for event in done.events:
            lines(event)
    said = capsys.readouterr()
    assert said.out == ""
    assert "the plan is complete: soak" in said.err
    assert "\x1b" not in said.err
    assert "┃" not in said.err


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
    rows = {line.split("│")[1].strip(): line for line in text.splitlines() if line.startswith("│")}
    assert "done" in rows["0"]
    assert "stop" in rows["1"]
    assert "." in rows["2"]
    assert "now      " in text
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


@pytest.mark.parametrize("event", ["effect", "waiting", "paused", "intend"])
def test_the_cell_under_way_says_what_happens(event: str, done: Gated) -> None:
    """The effect's name, `waits`, `paused`, or that it is in progress."""
    events = done.events
    begin = next(e for e in events if e.name == "intend" and e.data["step"] == "migration-mode/1")
    wait = {"step": "migration-mode/1", "what": "w", "owner": "o", "next": "n", "progress": ""}
    effect = {"step": "migration-mode/1", "effect": "stop", "node": "1", "detail": ""}
    data = {"effect": effect, "waiting": wait, "paused": {**wait, "by": "by root"}, "intend": dict(begin.data)}[event]
    heard = LiveBoard(done.planned(), done.folder / "journal.jsonl", lambda: 0.0)
    heard.hear(begin)
    heard.hear(Event(begin.number + 1, begin.time, event, data))
    text = drawn(heard.page(Console(width=200, height=60)), width=200)
    (row,) = [line for line in text.splitlines() if line.startswith("│") and line.split("│")[1].strip() == "1"]
    assert {"effect": "stop", "waiting": "waits", "paused": "paused", "intend": "now"}[event] in row


def fleet(done: Gated, brokers: int) -> Board:
    """The board of a bigger cluster, its second half to do, one broker in progress."""
    stages = ("assess", "prepare", "controllers", "migration-mode", "copy", "hybrid", "kraft-mode", "soak")
    half = brokers // 2

    def row(number: int) -> tuple[str, tuple[Cell, ...]]:
        state = Cell.DONE if number < half else Cell.NOW if number == half else Cell.TO_DO
        empty = Cell.NONE
        return str(number), (empty, empty, empty, state, empty, empty, Cell.TO_DO, empty)

    cluster = (Cell.DONE, Cell.DONE, Cell.NONE, Cell.NONE, Cell.TO_DO, Cell.TO_DO, Cell.NONE, Cell.TO_DO)
    found = LiveBoard(done.planned(), done.folder / "journal.jsonl")
    found.hear(done.events[-1])
    assert found._board is not None
    rows = (("cluster", cluster), *(row(number) for number in range(brokers)))
    return replace(found._board, columns=stages, rows=rows, doing="stop")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_a_narrow_terminal_shows_the_stages_around_the_present_one(width: int, done: Gated) -> None:
    """No line is longer than the terminal; the stage in progress is there, and what is left out is counted."""
    text = drawn(board_table(fleet(done, 6), width=width, rows=30), width=width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "stop" in text
    assert "…" not in text
    assert ("after)" in text or "before" in text) == (width < 100)


@pytest.mark.parametrize("rows", [-5, 5, 12, 40])
def test_a_low_terminal_shows_the_nodes_under_way_and_counts_the_others(rows: int, done: Gated) -> None:
    """Of sixty brokers, the one in progress is always there, then the next ones."""
    text = drawn(board_table(fleet(done, 60), width=200, rows=rows), width=200)
    shown = [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")]
    assert "30" in shown
    assert len(shown) == max(rows, 3)
    assert f"and {61 - len(shown)} more nodes: " in " ".join(text.split())
    assert drawn(board_table(fleet(done, 6), width=200, rows=40), width=200).count("more node") == 0


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
    assert ("┃" in "".join(shown)) is (height >= 14), "where there is no room the lines are told without the table"


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
