"""An operator's bad evening: what happens to hosts, units, processes, files and links while a run is at work.

A fault begins at a moment that the run's journal tells, and ends after its seconds.  The operator does what the stop
says, such as a restart, and gives the same command again.  `python -m tests.bed evening DIR --minutes N` draws faults
and moments until the time is over.
"""

from __future__ import annotations

import json
import random  # noqa: TID251 - drawn faults, from a seed that is printed
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from migrate.errors import MigrateError
from migrate.model.history import Event
from migrate.run import journal
from tests.bed.bed import Bed
from tests.bed.operator import Operator

POLL: Final = 0.1
SESSIONS: Final = 12  # of one command; a fault stops at most three of them
SESSION_SECONDS: Final = 1200
FAULTS_A_COMMAND: Final = 4
PAUSE: Final = 10.0  # before the operator gives the same command again
STOPS: Final = frozenset({0, 1, 3, 5, 6, 10, -9})  # exit codes that an announced stop has; -9: the run was killed
BROKER, CONTROLLER, FILE = "kafka.service", "kafka-controller.service", "/etc/kafka/server.properties"
TO_RESTART: Final = re.compile(r"restart it, on (h\d+): (systemctl restart [\w.@-]+\.service)")
BAD: Final = "/etc/systemd/system/{}.d/evening.conf"

Act = Callable[[Bed, str], object]


@dataclass(frozen=True, slots=True)
class Fault:
    """What begins on a host, and ends after so many seconds; `run`: the run itself is killed."""

    begin: Act
    end: Act = lambda _bed, _host: None
    seconds: float = 0.0
    run: bool = False


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def _root(script: str) -> Act:
    return lambda bed, host: bed.root(host, script)


def _fails(unit: str) -> Fault:
    drop = BAD.format(unit)
    begun = f"mkdir -p {drop.rpartition('/')[0]}; printf '[Service]\\nExecStartPre=/bin/false\\n' >{drop}"
    ended = f"rm -f {drop}; systemctl daemon-reload; systemctl reset-failed {unit}; systemctl start --no-block {unit}"
    return Fault(_root(f"{begun}; systemctl daemon-reload; systemctl kill -s KILL {unit}"), _root(ended), 45.0)


def _stopped(unit: str) -> Fault:
    return Fault(_root(f"systemctl stop {unit}"), _root(f"systemctl start --no-block {unit}"), 45.0)


def _delay(bed: Bed, _host: str) -> None:
    for host in bed.hosts:
        bed.delay(host, 100)


def _speak(bed: Bed, _host: str) -> None:
    for host in bed.hosts:
        bed.speak(host)


FAULTS: Final[dict[str, Fault]] = {
    "power-off": Fault(lambda bed, host: bed.power_off(host), lambda bed, host: bed.boot(host), 20.0),
    "broker-killed": Fault(_root(f"systemctl kill -s KILL {BROKER}")),
    "controller-killed": Fault(_root(f"systemctl kill -s KILL {CONTROLLER}")),
    "zookeeper-killed": Fault(lambda bed, _: bed.root("h1", "systemctl kill -s KILL zookeeper")),
    "broker-restarted": Fault(_root(f"systemctl restart --no-block {BROKER}")),
    "controller-restarted": Fault(_root(f"systemctl restart --no-block {CONTROLLER}")),
    "broker-stopped": _stopped(BROKER),
    "controller-stopped": _stopped(CONTROLLER),
    "broker-does-not-start": _fails(BROKER),
    "controller-does-not-start": _fails(CONTROLLER),
    "file-rewritten": Fault(
        _root(f"cp -a {FILE} /root/evening; echo '# managed' >>{FILE}"), _root(f"cat /root/evening >{FILE}"), 30.0
    ),
    "sshd-gone": Fault(_root("systemctl stop ssh; pkill -x sshd"), _root("systemctl start ssh"), 45.0),
    "silent": Fault(lambda bed, host: bed.silence(host), lambda bed, host: bed.speak(host), 40.0),
    "slow": Fault(_delay, _speak, 60.0),
    "run-killed": Fault(lambda _bed, _host: None, run=True),
}
KDC_GONE: Final = {"kdc-gone": Fault(lambda bed, _: bed.kdc_gone(), lambda bed, _: bed.kdc_back(), 40.0)}


@dataclass(frozen=True, slots=True)
class Moment:
    """The first event of that name in a step that matches, and so many seconds later."""

    event: str
    step: str
    after: float = 0.0

    def is_it(self, event: Event) -> bool:
        """Is it that one?"""
        return event.name == self.event and re.search(self.step, str(event.data.get("step", ""))) is not None


@dataclass(frozen=True, slots=True)
class Drawn:
    """One fault, where, and when."""

    name: str
    host: str
    moment: Moment

    def __str__(self) -> str:
        """In one line."""
        when = self.moment
        return f"{self.name} of {self.host} {when.after:.0f} s after {when.event} of {when.step}"


@dataclass(slots=True)
class Played:
    """What came of one command: each session's exit code and seconds, and what it said."""

    codes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    begun: list[Drawn] = field(default_factory=list)


class Evening:
    """Plays commands of one operator with faults; `tell` hears what happens."""

    def __init__(self, operator: Operator, tell: Callable[[str], None] = print) -> None:
        self.operator, self.bed, self._tell = operator, operator.bed, tell
        self._ends: list[threading.Thread] = []

    def play(self, folder: Path, words: Sequence[str], drawn: Sequence[Drawn]) -> Played:
        """The same command again and again, until it ends with 0; AssertionError where it stops without a reason."""
        played, left = Played(), list(drawn)
        while not played.codes or played.codes[-1] != 0:
            assert len(played.codes) < SESSIONS, f"{played.codes}: {played.said[-1][-3000:]}"
            if played.codes:
                _wait(PAUSE)
                for host, printed in sorted(set(TO_RESTART.findall(played.said[-1]))):
                    self._tell(f"as it says, on {host}: {printed}")
                    self.bed.root(host, printed)
            code, said = self._session(folder, words, left, played)
            assert code in STOPS, f"exit code {code}: {said[-3000:]}"
            assert "Traceback" not in said, said[-3000:]
        for thread in self._ends:
            thread.join()
        self._ends.clear()
        return played

    def _session(self, folder: Path, words: Sequence[str], left: list[Drawn], played: Played) -> tuple[int, str]:
        path, began = folder / "journal.jsonl", time.monotonic()
        seen = len(_events(path))
        log = self.operator.folder / "evening.log"
        command = self.bed.room.outside([sys.executable, "-m", "migrate", *words], self.operator.folder)
        with (
            log.open("w") as out,
            subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as run,
        ):
            while run.poll() is None:
                events = _events(path)
                for event in events[seen:]:
                    self._begin_at(event, left, played, run)
                seen = max(seen, len(events))
                _wait(POLL)
                assert time.monotonic() - began < SESSION_SECONDS, f"it hangs: {log.read_text()[-3000:]}"
        said = log.read_text()
        played.codes.append(run.returncode)
        played.seconds.append(time.monotonic() - began)
        played.said.append(said)
        self._tell(f"exit code {run.returncode} after {played.seconds[-1]:.0f} s")
        return run.returncode, said

    def _begin_at(self, event: Event, left: list[Drawn], played: Played, run: subprocess.Popen[bytes]) -> None:
        for drawn in [one for one in left if one.moment.is_it(event)]:
            left.remove(drawn)
            played.begun.append(drawn)
            thread = threading.Thread(target=self._happen, args=(drawn, run))
            thread.start()
            self._ends.append(thread)

    def _happen(self, drawn: Drawn, run: subprocess.Popen[bytes]) -> None:
        fault = (FAULTS | KDC_GONE)[drawn.name]
        _wait(drawn.moment.after)
        self._tell(f"fault: {drawn}")
        if fault.run:
            run.kill()
        try:
            fault.begin(self.bed, drawn.host)
        except AssertionError:  # another fault has taken its power
            self._tell(f"not begun: {drawn}")
            return
        _wait(fault.seconds)
        fault.end(self.bed, drawn.host)
        if fault.seconds:
            self._tell(f"over: {drawn.name} of {drawn.host}")


def _events(path: Path) -> Sequence[Event]:
    try:
        return journal.read(path).events
    except (OSError, MigrateError):
        return ()


def bag(chance: random.Random, bed: Bed) -> Iterator[str]:
    """Names of faults without end; each comes once before any comes again."""
    names = sorted(FAULTS | (KDC_GONE if bed.shape.kerberos else {}))
    while True:
        yield from chance.sample(names, len(names))


def draw(chance: random.Random, names: Iterator[str], bed: Bed, steps: Sequence[str], count: int) -> list[Drawn]:
    """So many faults, each at another step: most begin when the one before is dealt with."""
    chosen = sorted(chance.sample(range(len(steps)), min(count, len(steps))))
    events = ("intend", "effect", "effected", "conclude")
    return [
        Drawn(
            next(names),
            chance.choice(bed.hosts),
            Moment(chance.choice(events), f"^{re.escape(steps[at])}$", chance.uniform(0.0, 4.0)),
        )
        for at in chosen
    ]


def soak(operator: Operator, minutes: float, seed: int) -> list[str]:
    """There to a drawn stage and back, until the time is over, then there to the end: one row for each command."""
    chance, until, rows = random.Random(seed), time.monotonic() + minutes * 60, list[str]()
    names = bag(chance, operator.bed)
    evening = Evening(operator, tell=lambda text: print(f"{time.strftime('%H:%M:%S')} {text}", flush=True))

    def command(*planned: str, back: bool = False) -> None:
        plan, fingerprint = operator.plan(*planned, command=("rollback", "plan") if back else ("plan",))
        steps = [step["id"] for step in json.loads(plan.read_text())["plan"]["steps"]]
        late = [step for step in steps if not step.startswith(("discover", "assess"))]
        drawn = draw(chance, names, operator.bed, late, FAULTS_A_COMMAND)
        words = [*(("rollback",) if back else ()), "apply", str(plan), "--confirm", fingerprint]
        words += [] if back else ["--confirm-cluster", "prod"]
        what = " ".join(("rollback" if back else "apply", *planned))
        print(f"{what}: {'; '.join(map(str, drawn))}", flush=True)
        played = evening.play(plan.parent, words, drawn)
        operator.serving()
        begun = "; ".join(f"{one.name} ({one.moment.step.strip('^$')})" for one in played.begun)
        rows.append(f"| {what} | {begun} | {', '.join(map(str, played.codes))} | {sum(played.seconds):.0f} s |")
        print(rows[-1], flush=True)

    while time.monotonic() < until:
        command("--to", chance.choice(("controllers", "migration-mode", "hybrid", "kraft-mode")))
        command(back=True)
    command()
    return rows
