"""How a run is stopped: by a signal, by a terminal that is closed, and by `--until`; the same command goes on."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.model.history import Event
from migrate.report.plan_json import plan_to_json
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from tests.cli.commands import kraft_migrate, playbook_in
from tests.run.gated import Gated
from tests.testing import worlds

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from pathlib import Path
from migrate.cli.main import main
from migrate.run import carry_out
from migrate.run.clock import SystemClock
from migrate.run.interrupts import parking_on_interrupt
from tests.run.gated import Gated
from tests.testing import worlds

folder, clock = Path(sys.argv[1]), SystemClock()
run = Gated(folder, worlds.playbook())
if sys.stdin.isatty():
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # the leader of a session gets it as its controlling terminal
stop = run.cluster.stop

def slow(node, timeout):
    if int(node) == 1:
        (folder / "stopping").touch()
        while not (folder / "go-on").exists():
            clock.sleep(0.02)
    stop(node, timeout)

class Slow:
    def __init__(self, cluster):
        self._cluster = cluster
    def __getattr__(self, name):
        return slow if name == "stop" else getattr(self._cluster, name)

def carried_out(plan, sources, options):
    run.plan, run.until, run.cluster = plan, options.until, Slow(run.cluster)
    run.folder = carry_out.folder_of(sources.inventory, plan).path
    run.folder.mkdir(parents=True, exist_ok=True)
    run.said = type("Tells", (), {"append": lambda self, event: options.listen(event)})()
    with parking_on_interrupt(run.request, options.say):
        run.session()

carry_out.carry_out = carried_out
sys.argv = ["kraft-migrate", "apply", str(folder / "plan.json"), *sys.argv[2:]]
main()
"""


def plan_in(folder: Path) -> str:
    """A plan of the simulated cluster, for the playbook in that folder; its short name."""
    playbook_in(folder)
    run = Gated(folder, worlds.playbook())
    plan = replace(run.planned(), inventory=str(folder / "inventory.yaml"), playbook=str(folder / "playbook.yaml"))
    (folder / "plan.json").write_text(plan_to_json(plan), encoding="utf-8")
    return plan.short


@contextmanager
def applying(folder: Path, stream: int, *words: str, ignores: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """`apply` as a process that leads its session, until it stops broker 1; it goes on with `go_on`."""
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" * ignores + PROGRAM
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), *words],
        stdin=stream,
        stdout=stream,
        stderr=stream,
        start_new_session=True,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    try:
        until(folder / "stopping", process)
        yield process
    finally:
        process.kill()
        process.wait()


def until(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait for that file."""
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        SystemClock().sleep(0.02)


def go_on(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """The stop of broker 1 takes no longer; how the process ended."""
    (folder / "go-on").touch()
    return process.wait(120)


def events(folder: Path, short: str) -> tuple[Event, ...]:
    """The journal."""
    return journals.read(folder / "runs" / short / "journal.jsonl").events


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_parks_a_real_process_and_the_same_command_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    """The broker in progress is brought up and proven, the next one is never touched; exit code 130, then 0."""
    short = plan_in(tmp_path)
    with (tmp_path / "said").open("wb") as said, applying(tmp_path, said.fileno()) as process:
        process.send_signal(number)
        if number == signal.SIGHUP:
            process.send_signal(number)  # as a shell does it, behind the terminal's own
        assert go_on(tmp_path, process) == 130
    name = "Ctrl-C" if number == signal.SIGINT else number.name
    last = events(tmp_path, short)[-1]
    assert (last.name, last.data["code"]) == ("stop", "E-PARK-02")
    assert last.data["reason"] == f"parked before migration-mode/2: {name} asked for it"
    text = (tmp_path / "said").read_text()
    assert f"{name}: the run parks at the next safe point" in text
    assert "E-PARK-02" in text


@pytest.mark.slow
def test_a_closed_terminal_parks_the_run(tmp_path: Path) -> None:
    """With its board on it: nothing that cannot be written any more ends the run otherwise; the report is written."""
    short = plan_in(tmp_path)
    ours, theirs = pty.openpty()
    closed = threading.Event()
    reader = threading.Thread(target=_read, args=(ours, closed))
    reader.start()
    with applying(tmp_path, theirs) as process:
        os.close(theirs)
        SystemClock().sleep(1.5)  # the board is drawn
        closed.set()
        reader.join()
        os.close(ours)
        assert go_on(tmp_path, process) == 130
    last = events(tmp_path, short)[-1]
    assert last.data == {"reason": "parked before migration-mode/2: SIGHUP asked for it", "code": "E-PARK-02"}
    assert (tmp_path / "runs" / short / "report.html").exists()


def _read(terminal: int, closed: threading.Event) -> None:
    while not closed.is_set():
        if select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 65536)


@pytest.mark.slow
def test_a_run_under_nohup_goes_on_without_its_terminal(tmp_path: Path) -> None:
    """Whoever started it so wanted that."""
    short = plan_in(tmp_path)
    with (tmp_path / "said").open("wb") as said, applying(tmp_path, said.fileno(), ignores=True) as process:
        process.send_signal(signal.SIGHUP)
        assert go_on(tmp_path, process) == 0
    assert events(tmp_path, short)[-1].name == "end"


@pytest.mark.slow
def test_until_a_step_parks_a_real_process(tmp_path: Path) -> None:
    """Exit code 5, with how it goes on."""
    short = plan_in(tmp_path)
    words = ("--until", "migration-mode/1")
    with (tmp_path / "said").open("wb") as said, applying(tmp_path, said.fileno(), *words) as process:
        assert go_on(tmp_path, process) == 5
    assert events(tmp_path, short)[-1].data["reason"] == (
        "parked before migration-mode/2: --until migration-mode/1 asked for it"
    )
    assert "without --until, or with a later one" in (tmp_path / "said").read_text()


def test_a_name_that_the_plan_has_not_is_refused_before_anything(tmp_path: Path) -> None:
    """64: the stages and steps are named, and there is no run's folder."""
    plan_in(tmp_path)
    for name, says in (("hybird", "its stages: "), ("migration-mode", "--until copy/copy")):
        ended = kraft_migrate("apply", tmp_path / "plan.json", "--until", name)
        assert ended.code == 64
        assert says in ended.err
        assert not (tmp_path / "runs").exists()
