"""`--json-lines`: what a program reads of a run: the journal's own events, each once, with its numbers and step ids."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from migrate.cli.apply import all_of
from migrate.cli.progress import SCHEMA, EventLines, LineWriter, ProgressLines
from migrate.cli.report import read_report
from migrate.model.history import Event
from migrate.report.run_values import run_json
from migrate.run.carry_out import RunFolder
from tests.cli.commands import inventory_in
from tests.run.gated import Gated
from tests.testing import worlds


class Tells:
    """Hands each event on to a listener, where a run keeps a list."""

    def __init__(self, listener: object) -> None:
        self._listener = listener

    def append(self, event: Event) -> None:
        """Tell it."""
        self._listener(event)  # type: ignore[operator] # a listener of an engine


def told(run: Gated) -> list[dict[str, object]]:
    """One session's lines, and those behind its end."""
    out = io.StringIO()
    lines = EventLines(run.planned(), run.folder / "journal.jsonl", LineWriter(out))
    run.said = Tells(lines)  # type: ignore[assignment] # a run only appends
    try:
        run.session()
    finally:
        lines.close()
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.slow
def test_every_event_of_the_journal_is_told_once_in_its_place(tmp_path: Path) -> None:
    """Those that no listener hears of, too: the first line, and the facts that are noted."""
    run = Gated(tmp_path, worlds.playbook())
    lines = told(run)
    assert [(line["n"], line["event"], line["data"]) for line in lines] == [
        (event.number, event.name, dict(event.data)) for event in run.events
    ]
    assert [line["time"] for line in lines] == [event.time for event in run.events]
    assert {line["schema"] for line in lines} == {SCHEMA}
    assert {line["run"] for line in lines} == {run.planned().short}


@pytest.mark.slow
def test_steps_have_the_ids_of_plan_and_report(tmp_path: Path) -> None:
    """So that a line, the journal, the plan and the report can be laid side by side."""
    run = Gated(tmp_path, worlds.playbook())
    lines = told(run)
    named = {str(line["step"]) for line in lines} - {""}
    assert named == {step.id for step in run.planned().steps}
    inventory_in(tmp_path)
    plan = run.planned()
    object.__setattr__(plan, "inventory", str(tmp_path / "inventory.yaml"))
    report = json.loads(run_json(read_report(plan, RunFolder(tmp_path))))
    assert named == {step["id"] for step in report["steps"]}


@pytest.mark.slow
def test_two_sessions_into_one_file_give_every_event_once(tmp_path: Path) -> None:
    """A run that is stopped and goes on begins where it stopped."""
    run = Gated(tmp_path, worlds.playbook())
    run.each_look = lambda: setattr(run.request, "by", "Ctrl-C" if run.stopped() == ["0"] else "")
    with pytest.raises(Exception, match="parked before migration-mode/1"):
        told(run)
    first = len(run.events)
    run.each_look = lambda: None
    run.request.by = ""
    lines = told(run)
    assert [line["n"] for line in lines] == list(range(first, len(run.events)))
    assert lines[-1]["event"] == "end"


@pytest.mark.slow
def test_what_is_journalled_at_the_end_without_telling_comes_with_the_close(tmp_path: Path) -> None:
    """An interrupt's words stand behind the last event that a listener heard."""
    run = Gated(tmp_path, worlds.playbook())
    run.session()
    out = io.StringIO()
    lines = EventLines(run.planned(), tmp_path / "journal.jsonl", LineWriter(out))
    lines.close()
    assert out.getvalue() == "", "of an earlier session"
    lines._next = len(run.events) - 2
    lines.close()
    assert [json.loads(line)["event"] for line in out.getvalue().splitlines()] == ["conclude", "end"]


def test_control_characters_never_reach_a_terminal(tmp_path: Path) -> None:
    """A line is ASCII, whatever a log said."""
    out = io.StringIO()
    run = Gated(tmp_path, worlds.playbook())
    lines = EventLines(run.planned(), tmp_path / "journal.jsonl", LineWriter(out))
    lines(Event(0, 1.0, "stop", {"reason": "\x1b[2J\u202eevil\n", "code": ""}))
    text = out.getvalue()
    assert text.isascii()
    assert text.rstrip("\n").isprintable()
    assert json.loads(text)["data"]["reason"] == "\x1b[2J\u202eevil\n"


def test_both_listeners_hear_each_event(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program reads stdout, a person stderr."""
    run = Gated(tmp_path, worlds.playbook())
    out = io.StringIO()
    tell = all_of(ProgressLines(), EventLines(run.planned(), tmp_path / "journal.jsonl", LineWriter(out)))
    tell(Event(0, 1.0, "stage", {"stage": "copy"}))
    assert "stage copy" in capsys.readouterr().err
    assert json.loads(out.getvalue())["event"] == "stage"


GONE = """
import sys
from pathlib import Path
from migrate.cli.progress import EventLines, LineWriter
from tests.run.gated import Gated
from tests.testing import worlds

run = Gated(Path(sys.argv[1]), worlds.playbook())
writer = LineWriter(sys.stdout)
lines = EventLines(run.planned(), run.folder / "journal.jsonl", writer)
run.said = type("Tells", (), {"append": lambda self, event: lines(event)})()
sys.stdin.read()
run.session()
lines.close()
assert writer.gone
print("into nowhere")
"""


@pytest.mark.slow
def test_a_reader_that_goes_away_does_not_stop_the_run(tmp_path: Path) -> None:
    """`kraft-migrate apply ... --json-lines | head -1` must not park a cluster half rolled."""
    child = subprocess.Popen(
        [sys.executable, "-c", GONE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stdin is not None
    child.stdin.close()
    assert child.stderr is not None
    said = child.stderr.read().decode()
    child.stderr.close()
    assert (child.wait(60), said) == (0, "")
    assert [event.name for event in Gated(tmp_path, worlds.playbook()).events][-1] == "end"
