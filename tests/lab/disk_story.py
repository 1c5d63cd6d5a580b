"""A migration whose disks fail on the way: a run that a disk stops, what `status` says, the mend, and the way on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from migrate.lab.cluster import Lab
from migrate.lab.topology import Shape
from migrate.run import journal as journals
from tests.lab.commands import SECONDS, environment, kraft_migrate
from tests.lab.faults import DiskFault
from tests.lab.sick_broker import SickBroker

REFUSED, NO_PROGRESS, PLANNED, KILLED = 3, 5, 2, -9  # exit codes
LOOK: Final = 0.02  # seconds between two looks into the journal


@dataclass
class Stop:
    """Where a run stopped because of a disk, what was said, and how it went on."""

    code: int
    said: str
    trouble: dict[str, Any]
    files: dict[int, str]  # broker -> the mode of its file, then
    ran: bool  # did the broker run, then?


@dataclass
class Story:
    """All of it, in order."""

    lab: Lab
    stops: dict[str, Stop] = field(default_factory=dict)
    ended: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)

    # -- commands ------------------------------------------------------------------------------------------------
    def demo(self, until: str) -> None:
        """`lab demo --until STAGE`."""
        ended = kraft_migrate("lab", "demo", "--dir", self.lab.topology.directory, "--until", until, "--no-load")
        assert ended.returncode == 0, ended.stderr[-3000:]

    def plan(self, stage: str) -> Path:
        """A plan to that stage."""
        ended = kraft_migrate("plan", str(self.lab.playbook_path), "--stage", stage, "--output", "json")
        assert ended.returncode == PLANNED, ended.stderr[-3000:] + ended.stdout[-3000:]
        fingerprint: str = json.loads(ended.stdout)["fingerprint"]
        return Path(self.lab.inventory.runs) / fingerprint[:8] / "plan.json"

    # -- a disk dies, the run stops, the words are followed ----------------------------------------------------------
    def stop_by(self, name: str, plan: Path, sick: SickBroker, fault: DiskFault, rolled: int, way: str) -> None:
        """The disk dies when `rolled` was told to stop, before it is started; the run's end, `status`, and the mend.

        The run holds still meanwhile: to fill a disk takes longer than to stop a broker.
        """
        before = len(stops_of(plan, rolled))
        command = [sys.executable, "-m", "migrate", "apply", str(plan)]
        run = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.until(run, lambda: len(stops_of(plan, rolled)) > before)
            run.send_signal(signal.SIGSTOP)
            sick.break_now(fault)
            run.send_signal(signal.SIGCONT)
            said = run.communicate(timeout=SECONDS)[1]
        finally:
            run.kill()
        self.stopped(name, sick, run.returncode, said, way)

    def stopped(self, name: str, sick: SickBroker, code: int, said: str, way: str) -> None:
        """What is seen then; and the mend."""
        status = sick.status()
        files = {row["node"]: row["file"] for row in status["processes"]}
        print(f"{name}: {code}: {said[-1500:]}\n{json.dumps(status['disks'], indent=1)}", file=sys.stderr, flush=True)
        (trouble,) = status["disks"]
        self.stops[name] = Stop(code, said, trouble, files, sick.runs())
        sick.follow(trouble, way)
        assert sick.disks() == []

    def killed_then(
        self, name: str, plan: Path, sick: SickBroker, fault: DiskFault, point: str, way: str = "old"
    ) -> None:
        """The run is killed at that point, the disk fails, its broker notices where it lives; then `apply` again."""
        killed = kraft_migrate("apply", str(plan), crash=point)
        assert killed.returncode == KILLED, killed.stderr[-3000:]
        sick.break_now(fault)
        if sick.runs():
            sick.until("the broker notices", lambda: not sick.runs() or sick.offline())
        again = kraft_migrate("apply", str(plan))
        self.stopped(name, sick, again.returncode, again.stderr, way)

    def until(self, run: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
        """While the run goes on."""
        began = time.monotonic()
        while not reached():
            assert run.poll() is None, run.communicate()[1][-3000:]
            assert time.monotonic() - began < SECONDS
            threading.Event().wait(LOOK)

    def apply(self, name: str, plan: Path, *words: str) -> None:
        """To its end."""
        self.ended[name] = kraft_migrate("apply", str(plan), *words)


def stops_of(plan: Path, broker: int) -> list[Any]:
    """The orders to stop that broker, in the run's journal."""
    path = plan.parent / "journal.jsonl"
    if not path.exists():
        return []
    events = journals.read(path).events
    return [e for e in events if e.name == "effect" and e.data["effect"] == "stop" and e.data["node"] == str(broker)]


@contextmanager
def story_in(directory: Path) -> Iterator[Story]:
    """A lab of two disks a broker, at its beginning; ended with every disk in its place."""
    lab = Lab.create(directory, Shape(directories=2))
    text = lab.playbook_path.read_text()
    lab.playbook_path.write_text(text.replace("no_progress_timeout: 3m", "no_progress_timeout: 30s"))
    try:
        yield Story(lab)
    finally:
        lab.down()
        SickBroker(lab, 0).made_whole()
