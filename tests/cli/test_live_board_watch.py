"""`status --watch`: the cluster and the board of a run, lines where there is no terminal, and idle almost nothing."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from migrate.cli.live_board import RunFile, folded, page, watch
from migrate.model.history import Event
from migrate.model.plan import Direction
from migrate.model.stage import Stage
from migrate.report.run_board import board, lines
from tests.plan.test_schedule import NIGHTS
from tests.run.gated import EVENING, Gated, parked_behind_broker_0
from tests.testing.simulated import FakeClock


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Gated:
    """A run that parked behind broker 0 of the first roll; its plan lies beside its journal."""
    return parked_behind_broker_0(tmp_path_factory.mktemp("runs") / "run")


def test_the_board_says_how_far_a_run_is_and_how_it_ended(parked: Gated) -> None:
    """Steps that are done, of all; the reason of a stop."""
    found = board(parked.planned(), parked.events)
    assert found.done == len({event.data["step"] for event in parked.events if event.name == "conclude"})
    assert found.steps == len(parked.planned().steps)
    assert found.state.startswith("stopped: ")
    assert "parked before migration-mode/1: Ctrl-C asked for it" in found.state


def test_while_a_broker_restarts_the_board_says_so(parked: Gated) -> None:
    """Cut anywhere inside the step, the board shows it in progress, with what was done before."""
    events = parked.events
    begin = next(n for n, e in enumerate(events) if e.name == "intend" and e.data["step"] == "migration-mode/0")
    found = board(parked.planned(), events[: begin + 2])
    assert found.state == "running"
    (now,) = [line for line in lines(found, events[begin].time + 65.0) if line.startswith("now")]
    assert now.endswith("[migration-mode/0], for 1 min 05 s")
    assert any(line.startswith("then     ") for line in lines(found, 0.0))


def test_a_wait_says_what_for_since_when_who_owns_it_and_what_to_do(parked: Gated) -> None:
    """The first time that the same was waited for counts."""
    data = {"step": "migration-mode/1", "what": "full ISRs", "owner": "the brokers", "next": "look", "progress": "1"}
    later = {**data, "progress": "2"}
    events = (*parked.events[:-1], Event(90, 100.0, "waiting", data), Event(91, 110.0, "waiting", later))
    found = board(parked.planned(), events)
    text = lines(found, 130.0)
    for wanted in ("waits    for full ISRs, for 30 s", "owner    the brokers", "if it lasts  look"):
        assert wanted in text


def test_the_board_of_a_rollback_says_where_to(parked: Gated) -> None:
    """A stage's name says nothing of it."""
    plan = replace(parked.planned(), target=Stage.ASSESS, direction=Direction.BACK)
    assert " to ZooKeeper mode, as before the migration: " in lines(board(plan, parked.events), 130.0)[0]
    assert " to stage soak: " in lines(board(parked.planned(), parked.events), 130.0)[0]


def said(events: Sequence[Event], run: Gated, now: float, label: str) -> str:
    """The board's line of that label."""
    found = board(run.planned(), events, replace(run.playbook, windows={"default": NIGHTS}))
    return next((line for line in lines(found, now) if line.startswith(label)), "")


def test_the_board_says_what_is_done_of_the_step_each_since_its_own_beginning(parked: Gated) -> None:
    """Checked, acted on, verified: the proof's seconds do not count from the step's beginning."""
    events = parked.events
    names = [(e.name, e.data.get("step")) for e in events]
    begin, end = names.index(("intend", "migration-mode/0")), names.index(("conclude", "migration-mode/0"))
    stop = next(n for n in range(begin, end) if events[n].name == "effect" and events[n].data["effect"] == "stop")
    proof = max(n for n in range(begin, end) if events[n].name == "effected")
    assert said(events[:begin], parked, events[begin - 1].time + 7, "now").endswith(
        "[migration-mode/0]: checking whether it may begin, for 7 s"
    )
    assert said(events[: stop + 1], parked, events[stop].time + 20, "now").endswith(
        "[migration-mode/0]: stop 0, for 20 s"
    )
    assert said(events[: proof + 1], parked, events[proof].time + 12, "now").endswith(
        "[migration-mode/0]: verifying, for 12 s"
    )


def test_the_board_says_how_long_it_takes_and_when_the_window_ends(parked: Gated) -> None:
    """The time so far, an estimate of the rest, and the end of the change window in its own zone."""
    events = parked.events
    begin = next(n for n, e in enumerate(events) if e.name == "intend" and e.data["step"] == "migration-mode/0")
    now = next(e.time for e in events if e.name == "session") + 225.0
    assert re.fullmatch(
        r"time     3 min 45 s so far; about .+ left \(p50 to p90, \d+ steps measured\)",
        said(events[:begin], parked, now, "time"),
    )
    assert said(events[:begin], parked, EVENING + 600, "window") == (
        "window   nights: open until Tue 2026-12-08 05:00 UTC, for 7 h 50 min"
    )
    assert "; it opens Mon 2026-12-07 21:00 UTC" in said(events[:begin], parked, EVENING - 7200, "window")
    assert re.fullmatch("time     .* in all", said(events, parked, now + 9e6, "time"))


def test_after_a_resume_nothing_is_counted_from_the_killed_process(parked: Gated) -> None:
    """Killed while a broker was stopped, continued the next morning."""
    events = parked.events
    stop = next(n for n, e in enumerate(events) if e.name == "effect" and e.data["effect"] == "stop")
    wait = {"step": events[stop].data["step"], "what": "w", "owner": "o", "next": "n", "progress": ""}
    morning = events[stop].time + 40_000.0
    session = Event(stop + 2, morning, "session", {"resumed": True})
    for killed in (events[: stop + 1], (*events[: stop + 1], Event(stop + 1, events[stop].time, "waiting", wait))):
        resumed = (*killed, session)
        assert said(resumed, parked, morning + 5, "now").endswith(": looking how far it got, for 5 s")
        assert said(resumed, parked, morning + 5, "time").startswith("time     5 s so far")
        assert said(resumed, parked, morning + 5, "waits") == ""
        later = (*resumed, Event(stop + 3, morning + 6, "waiting", wait))
        assert said(later, parked, morning + 8, "waits") == "waits    for w, for 2 s"


def test_every_prefix_of_a_journal_has_a_board(parked: Gated) -> None:
    """Whoever looks while it is written sees something true."""
    events = parked.events
    counts = [board(parked.planned(), events[:number]).done for number in range(len(events) + 1)]
    assert counts == sorted(counts)
    assert board(parked.planned(), ()).state == "not begun"


def answers(times: list[float]) -> Mapping[str, Any]:
    """What the cluster says; only the time moves."""
    times.append(0.0)
    return {"cluster": "lab", "time": float(len(times)), "stage": "prepare"}


def test_lines_are_said_when_something_changed_and_not_before(
    parked: Gated, capsys: pytest.CaptureFixture[str]
) -> None:
    """An hour of the same is one answer; the cluster is looked at twice a minute, the journal's size each second."""
    times: list[float] = []
    run, clock = RunFile(parked.folder.parent), FakeClock()
    watch(lambda: answers(times), lambda answer: f"stage {answer['stage']}", run, clock, output="text", turns=3600)
    out = capsys.readouterr().out
    assert out.count("stage prepare") == 1
    assert "parked before migration-mode/1" in out
    assert len(times) == 120


def test_as_json_it_is_a_line_an_answer(parked: Gated, capsys: pytest.CaptureFixture[str]) -> None:
    """For whoever reads it with a program."""
    watch(lambda: answers([]), str, RunFile(parked.folder.parent), FakeClock(), output="json", turns=5)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["run"][0].startswith("run ")


def test_a_terminal_shows_the_cluster_and_the_run(parked: Gated) -> None:
    """And how to end it."""
    found = RunFile(parked.folder.parent).read()
    console = Console(file=io.StringIO(), width=160, force_terminal=False)
    console.print(page({"stage": "x"}, lambda _: "cluster lab", found, 0.0, (160, 60)))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for part in ("cluster lab", "steps done", "migration-mode/1", "Ctrl-C ends the watching, not the run"):
        assert part in text


@pytest.mark.parametrize("cluster", [1, 8, 30, 90])
@pytest.mark.parametrize("height", [6, 12, 24, 40, 60])
def test_the_screen_is_lower_than_the_terminal_and_the_runs_lines_are_whole(
    height: int, cluster: int, parked: Gated
) -> None:
    """Of a higher one the first lines stood there twice after Ctrl-C, and the run's lines were not seen at all."""
    found = RunFile(parked.folder.parent).read()
    assert found is not None
    console = Console(file=io.StringIO(), width=80, height=height, force_terminal=True, color_system=None)
    answer = "\n".join(f"line {number}" for number in range(cluster))
    drawn = console.render_lines(page({}, lambda _: answer, found, 0.0, (80, height)), pad=False)
    shown = ["".join(piece.text for piece in row) for row in drawn]
    assert len(shown) < height
    assert shown[-1] == "Ctrl-C ends the watching, not the run"
    if height >= 12:
        said = [piece.plain for piece in folded(lines(found, 0.0), 80)]
        assert shown[-1 - len(said) : -1] == said
    missing = cluster - sum(line.startswith("line ") for line in shown)
    assert missing == 0 or f"... {missing} more lines: `status` without --watch" in shown or height < 12


def test_a_journal_is_not_read_again_while_it_does_not_grow(parked: Gated) -> None:
    """A thousand idle looks cost less than a second of a core."""
    run = RunFile(parked.folder.parent)
    first = run.read()
    began = time.process_time()
    assert all(run.read() is first for _ in range(1000))
    assert time.process_time() - began < 5.0


def test_without_a_run_there_is_only_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And with a damaged journal, too."""
    watch(lambda: answers([]), lambda _: "cluster lab", RunFile(tmp_path), FakeClock(), output="text", turns=2)
    assert capsys.readouterr().out == "cluster lab\n"
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "journal.jsonl").write_text("damaged\nand more\n")
    (tmp_path / "r" / "plan.json").write_text("{}")
    assert RunFile(tmp_path).read() is None
