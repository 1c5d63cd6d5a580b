"""The tool as a person calls it, again and again until the plan is carried out, with one fault on the way."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from migrate.cli.given import load_plan
from migrate.errors import MigrateError
from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.model.ids import NodeId
from migrate.model.plan import Plan
from tests.long.soak.account import Attempt, Leg, last_reason
from tests.long.soak.draw import step_at
from tests.long.soak.faults import PATIENT, Fault, Scene, never
from tests.testing.last_words import told_to_restart

CALLS: Final = 8  # of one plan, until it is called stuck
LOOK_AGAIN: Final = 60.0  # a person waits so long for a whole cluster before the same command again
ONE_CALL: Final = 1500.0
STALE: Final = 6


STOP: Final = 60.0


class NotCarriedOut(Exception):
    """The tool did not come to the end of its plan, however often it was called."""


@dataclass
class Caller:
    """Calls the tool for one lab.  `say` tells of what goes on; `current` is the call in progress."""

    lab: Lab
    scratch: Path  # for the tool's temporary files
    logs: Path
    ballast: Path
    say: Callable[[str], None]
    current: subprocess.Popen[str] | None = None
    calls: int = 0

    def environment(self) -> dict[str, str]:
        """Ours, with a folder of their own for temporary files."""
        return {**os.environ, "TMPDIR": str(self.scratch)}

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command to its end; its output is kept."""
        ended = subprocess.run(
            [sys.executable, "-m", "migrate", *words],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=ONE_CALL,
        )
        self.calls += 1
        log = self.logs / f"{self.calls:03d}-{words[0]}.log"
        log.write_text(f"{' '.join(words)}\n{ended.returncode}\n{ended.stdout}\n{ended.stderr}", encoding="utf-8")
        return ended

    def plan(self, *words: str) -> Path | None:
        """A plan saved; None where nothing is to be done.

        Raises:
            NotCarriedOut: there is none, and why.
        """
        ended = self.ask(*words, str(self.lab.playbook_path), "--output", "json")
        for _ in range(CALLS):
            if ended.returncode in (0, 2):
                break
            self.settle()  # what struck the leg before may still be seen: a person looks again
            ended = self.ask(*words, str(self.lab.playbook_path), "--output", "json")
        if ended.returncode == 0:
            return None
        if ended.returncode != 2:
            raise NotCarriedOut(f"{' '.join(words)}: {ended.returncode}: {last_reason(ended.stderr or ended.stdout)}")
        fingerprint = str(json.loads(ended.stdout)["fingerprint"])
        return Path(self.lab.inventory.runs) / fingerprint[:8] / "plan.json"

    def settle(self) -> str:
        """Wait a while for a whole cluster; what is still missing, "" for nothing."""
        deadline = time.monotonic() + LOOK_AGAIN
        while missing := ready.brokers_agree(self.lab.topology):
            if time.monotonic() > deadline:
                return missing
            never.wait(1.0)
        return ""

    # -- a plan, carried out -----------------------------------------------------------------------------------------
    def carry_out(self, again: Callable[[], Path | None], verb: Sequence[str], leg: Leg, fault: Fault | None) -> Path:
        """The plan to its end; `again` makes it, and makes it anew where it is stale.  The plan that reached the end.

        Raises:
            NotCarriedOut: CALLS calls were not enough.
        """
        path = again()
        for _ in range(CALLS):
            if path is None:
                return Path()
            attempt = self._call(path, verb, leg, fault)
            leg.attempts.append(attempt)
            self.say(f"  {leg.name}: {attempt.code} after {attempt.seconds:.0f} s: {attempt.said}")
            if fault is not None and fault.against:
                raise NotCarriedOut("; ".join(fault.against))
            if attempt.code == 0:
                return path
            self.settle()
            path = again() if attempt.code == STALE else path
        raise NotCarriedOut(f"{leg.name}: not carried out in {CALLS} calls: {leg.attempts[-1].said}")

    def _call(self, path: Path, verb: Sequence[str], leg: Leg, fault: Fault | None) -> Attempt:
        """One call, with the fault where it has not struck yet."""
        plan = load_plan(path)
        words = [sys.executable, "-m", "migrate", *verb, str(path), "--confirm", plan.fingerprint, "--json-lines"]
        words += [] if plan.kind.rolls_back else ["--confirm-cluster", plan.cluster]
        self.calls += 1
        began = time.monotonic()
        errors = self.logs / f"{self.calls:03d}-{verb[-1]}.log"
        with errors.open("w", encoding="utf-8") as stderr:
            tool = subprocess.Popen(
                words,
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            self.current = tool
            striker = None
            if fault is not None and not fault.told:
                scene = Scene(self.lab, tool, tuple(words), path, self.ballast, self.environment())
                striker = Striker(fault, scene, plan, leg, self.say)
            try:
                self._follow(tool, striker)
            finally:
                self.current = None
                if striker is not None:
                    striker.end()
        text = errors.read_text(encoding="utf-8") if tool.returncode else ""
        seconds = time.monotonic() - began
        for node in told_to_restart(text):
            self.say(f"  {leg.name}: broker {node} is restarted, as the tool says")
            self.lab.supervisor.stop(NodeId(node), STOP)
            self.lab.supervisor.start(NodeId(node))
        return Attempt(tool.returncode, last_reason(text) if text else "", seconds)

    def _follow(self, tool: subprocess.Popen[str], striker: Striker | None) -> None:
        assert tool.stdout is not None
        reader = threading.Thread(target=_read, args=(tool.stdout, striker), daemon=True)
        reader.start()
        try:
            tool.wait(ONE_CALL)
        except subprocess.TimeoutExpired:
            tool.kill()
            tool.wait()
        finally:
            if tool.poll() is None:  # we are being stopped
                tool.kill()
                tool.wait()
        reader.join(20.0)
        tool.stdout.close()


def _read(lines: IO[str], striker: Striker | None) -> None:
    with contextlib.suppress(ValueError):  # closed under us
        for line in lines:
            if striker is not None:
                with contextlib.suppress(ValueError, KeyError):
                    event = json.loads(line)
                    striker.saw(event["event"], event["step"])


class Striker:
    """Strikes when the run reaches the step, and mends when the fault's time is over, or the run."""

    def __init__(self, fault: Fault, scene: Scene, plan: Plan, leg: Leg, say: Callable[[str], None]) -> None:
        self._fault, self._scene, self._leg, self._say = fault, scene, leg, say
        self._places = {step.id: place for place, step in enumerate(plan.steps)}
        self._due = step_at(fault.drawn.share, [step.id for step in plan.steps])
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def saw(self, event: str, step: str) -> None:
        """An event of the run."""
        if self._thread is None and event in ("intend", "conclude") and self._places.get(step, -1) >= self._due:
            self._leg.step = step
            self._thread = threading.Thread(target=self._strike, daemon=True)
            self._thread.start()

    def _strike(self) -> None:
        drawn = self._fault.drawn
        if self._over.wait(drawn.delay):
            self._leg.step = ""
            return
        try:
            self._fault.strike(self._scene)
            self._leg.struck = self._fault.told
            self._say(f"  {self._leg.name}: at {self._leg.step}: {self._fault.told}")
            self._over.wait(None if drawn.fault in PATIENT else drawn.hold)
            self._fault.mend()
        except (MigrateError, OSError) as error:
            self._fault.told = self._leg.struck = f"{drawn.fault}: {error}"

    def end(self) -> None:
        """The run has ended: mend what is still broken, before anything else."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        with contextlib.suppress(MigrateError, OSError):  # what stays broken shows at the next call
            self._fault.mend()
