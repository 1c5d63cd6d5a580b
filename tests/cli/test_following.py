"""Followers of a run hear each event in their own thread; the run neither waits for them nor ends by them."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from migrate.cli.following import Follower, Following, MetricsFile, Notifier
from migrate.errors import PlanStopped
from migrate.model.history import Event
from migrate.model.inventory import Recipient
from migrate.model.notifications import LASTING, Happening
from migrate.observe.sources import Sources
from migrate.report.notices import RunState
from migrate.run import carry_out
from migrate.run.carry_out import Options, folder_of
from migrate.run.clock import SystemClock
from migrate.run.journal import Journal
from migrate.run.locks import LockFile
from tests.cli.commands import kraft_migrate, playbook_in
from tests.cli.test_apply import make
from tests.cli.test_progress_event_lines import Tells
from tests.playbook.test_notifications import written
from tests.report.test_metrics import one, read
from tests.run.gated import HOUR, Gated, gated
from tests.run.test_deliver import pager, program
from tests.testing import worlds
from tests.testing.receiver import receiving
from tests.testing.simulated import FakeClock

ALL = frozenset(Happening) - {*LASTING, Happening.TEST}


@dataclass
class Hears:
    """A follower that keeps what it hears, and may be made to wait or to fail."""

    heard: list[Event] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)
    fails: bool = False
    closed: bool = False

    def hear(self, event: Event) -> None:
        """Keep it."""
        self.go_on.wait()
        if self.fails:
            raise ZeroDivisionError
        self.heard.append(event)

    def tick(self) -> None:
        """As often as it comes."""

    def close(self) -> None:
        """Remember it."""
        self.closed = True


@dataclass
class SetClock(SystemClock):
    """A clock whose time of day the test sets."""

    time: float = 0.0

    def now(self) -> float:
        """What was set."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """No test waits."""


def follow(run: Gated, follower: Callable[[Iterable[Event]], Follower]) -> Following:
    """The run's listener from now on."""
    following = Following(run.folder / "journal.jsonl", follower)
    run.said = Tells(following)  # type: ignore[assignment] # a run only appends
    return following


def chosen(one: Recipient, **longer_than: float) -> Recipient:
    """The same, told of everything."""
    named = {Happening(name.replace("_", "-")): seconds for name, seconds in longer_than.items()}
    return Recipient(one.name, one.to, ALL, named)


def test_a_run_does_not_wait_for_who_follows_it(tmp_path: Path) -> None:
    """It is over before the follower has heard the first event; then all are heard, those without a listener too."""
    run, hears = Gated(tmp_path, worlds.playbook()), Hears()
    following = follow(run, lambda _: hears)
    run.session()
    assert hears.heard == []
    hears.go_on.set()
    following.close()
    assert hears.closed
    assert hears.heard == list(run.events)


def test_a_follower_that_fails_or_hangs_ends_nothing(tmp_path: Path) -> None:
    """The run is carried out, and its end waits no longer than it is told to."""
    run, hears = Gated(tmp_path, worlds.playbook()), Hears(fails=True)
    following = follow(run, lambda _: hears)
    assert run.session()[-1].name == "end"
    following.close(0.0)
    assert not hears.closed
    hears.go_on.set()
    following.close()
    assert hears.closed


def test_a_run_of_somebody_else_is_not_told_as_ours(tmp_path: Path) -> None:
    """Refused by the lock, say: what the journal got meanwhile belongs to the run that holds it."""
    hears = Hears()
    hears.go_on.set()
    following = Following(tmp_path / "journal.jsonl", lambda _: hears)
    other = Journal.begin(tmp_path / "journal.jsonl", 1.0, {"plan": "p"})
    other.append(2.0, "stop", {"reason": "of the other one", "code": ""})
    other.close()
    following.close()
    assert hears.closed
    assert hears.heard == []


def test_a_wait_that_lasts_is_told_while_it_lasts(tmp_path: Path) -> None:
    """By the clock, where no event comes: the thread looks by itself."""
    journal = tmp_path / "journal.jsonl"
    run = gated(tmp_path)
    begun = Journal.begin(journal, 1000.0, {"plan": "p"})
    clock = SetClock(1000.0)
    step = run.planned().steps[0].id
    with receiving() as receiver:
        webhook = chosen(pager(tmp_path, receiver.url), waits_longer_than=HOUR)
        following = Following(journal, partial(Notifier, RunState(run.planned()), (webhook,), clock=clock, say=print))
        following(begun.append(1000.0, "session", {"pid": 1, "host": "h", "resumed": False}))
        wait = {"step": step, "what": "broker 1", "owner": "o", "next": "n", "progress": ""}
        following(begun.append(1001.0, "waiting", wait))
        receiver.wait_for(1)
        clock.time = 1002.0 + HOUR
        receiver.wait_for(2)
        following.close()
        begun.close()
    assert [body["event"] for body in receiver.taken] == ["begins", "waits-longer-than"]
    assert receiver.taken[1]["seconds"] == HOUR + 1


def test_apply_tells_whom_its_playbook_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command, with a run that stops: its error is as without anybody who is told."""
    playbook = playbook_in(tmp_path)
    playbook.write_text(playbook.read_text() + "  notifications: notifications.yaml\n")
    program(tmp_path, f"cat >> {tmp_path}/told; exit 3")
    hook = f"{{name: bell, command: ['{tmp_path}/hook'], events: [begins, stopped, ended]}}"
    written(tmp_path, f"  hooks:\n    - {hook}\n")
    plan, path = make(tmp_path)

    def stops(_: object, sources: Sources, options: Options) -> None:
        folder = folder_of(sources.inventory, plan)
        folder.path.mkdir(parents=True)
        journal = Journal.begin(folder.journal, 1.0, {"plan": plan.fingerprint})
        options.listen(journal.append(2.0, "session", {"pid": 1, "host": "h", "resumed": False}))
        journal.append(3.0, "stop", {"reason": "interrupted", "code": ""})  # as by Ctrl-C: no listener hears of it
        journal.close()
        raise PlanStopped("it went wrong", where="step x")

    monkeypatch.setattr(carry_out, "carry_out", stops)
    ended = kraft_migrate("apply", path)
    assert ended.code == 3
    assert "E-RUN-04" in ended.err
    decoder, text = json.JSONDecoder(), (tmp_path / "told").read_text()
    first, at = decoder.raw_decode(text)
    second, _ = decoder.raw_decode(text, at)
    assert [first["event"], second["event"]] == ["begins", "stopped"]
    for event in ("begins", "stopped"):
        assert f"notification {event} was not delivered: hook bell ({tmp_path}/hook): it ended with 3" in unfolded(
            ended.err
        )


# -- metrics -----------------------------------------------------------------------------------------------------
def test_a_run_keeps_its_metrics_in_a_file_that_others_can_read(tmp_path: Path) -> None:
    """Whatever the umask; the last state stays."""
    run, path, said = Gated(tmp_path, worlds.playbook()), tmp_path / "k.prom", list[str]()
    following = follow(run, partial(MetricsFile, RunState(run.planned()), path, clock=run.clock, say=said.append))
    before = os.umask(0o077)
    try:
        run.session()
        following.close()
    finally:
        os.umask(before)
    assert one(read(path.read_text()), "state") == "ended"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert said == []
    assert [entry.name for entry in tmp_path.glob("*k.prom*")] == ["k.prom"]


def test_a_wait_grows_in_the_file_where_no_event_comes(tmp_path: Path) -> None:
    """By ten seconds of the clock; between them it is left alone."""
    run, path, clock = gated(tmp_path), tmp_path / "k.prom", FakeClock(1000.0)
    file = MetricsFile(RunState(run.planned()), path, (), clock, print)
    file.close()
    assert not path.exists()  # nothing was heard: what may be there is of another session
    wait = {"step": run.planned().steps[0].id, "what": "broker 1", "owner": "o", "next": "n", "progress": ""}
    file.hear(Event(0, 1000.0, "session", {"resumed": False}))
    file.tick()
    file.hear(Event(1, 1000.0, "waiting", wait))
    for passed, shown in ((0.5, 0.0), (1.5, 1.5), (9.0, 1.5), (11.5, 11.5)):
        clock.time = 1000.0 + passed
        file.tick()
        assert read(path.read_text())["wait_seconds", ""] == shown


def test_metrics_that_cannot_be_written_are_said_once_and_end_nothing(tmp_path: Path) -> None:
    """Until they can be written again."""
    run, folder, said = gated(tmp_path), tmp_path / "collector", list[str]()
    file = MetricsFile(RunState(run.planned()), folder / "k.prom", (), FakeClock(), said.append)
    for _ in range(2):
        file.hear(Event(0, 1.0, "session", {"resumed": False}))
        file.close()
    assert len(said) == 1
    assert "the metrics were not written, the run continues" in said[0]
    folder.mkdir()
    file.close()
    assert (folder / "k.prom").exists()


def test_a_refused_apply_leaves_the_metrics_as_they_are(tmp_path: Path) -> None:
    """It has nothing to say of the run; a name that the collector skips is refused at once, of both commands."""
    _, plan = make(tmp_path)
    (tmp_path / "k.prom").write_text("kept")
    assert kraft_migrate("apply", plan, "--metrics", tmp_path / "k.prom").code == 1  # nobody answers there
    assert (tmp_path / "k.prom").read_text() == "kept"
    for command in (("apply",), ("rollback", "apply")):
        ended = kraft_migrate(*command, plan, "--metrics", tmp_path / "k.txt")
        assert ended.code == 64
        assert "end in .prom" in ended.err or "ends in .prom" in ended.err


def test_an_apply_that_is_refused_calls_somebody(tmp_path: Path) -> None:
    """At 21:00, by a timer: nobody answers at the cluster.  One that another run locks out tells nobody."""
    playbook = playbook_in(tmp_path)
    playbook.write_text(playbook.read_text() + "  notifications: notifications.yaml\n")
    program(tmp_path, f"cat >> {tmp_path}/told")
    written(tmp_path, f"  hooks:\n    - {{name: bell, command: ['{tmp_path}/hook'], events: [begins, stopped]}}\n")
    plan, path = make(tmp_path)
    (tmp_path / "runs").mkdir()
    lock = LockFile(tmp_path / "runs" / "lock")
    assert kraft_migrate("apply", path).code == 7
    lock.release()
    assert not (tmp_path / "told").exists()
    ended = kraft_migrate("apply", path)
    told = json.loads((tmp_path / "told").read_text())
    assert (told["event"], told["n"], told["run"], told["step"]) == ("stopped", -1, plan.short, "")
    assert ended.err.startswith(f"{told['code']}: ") or f"\n{told['code']}: " in ended.err
    assert "it was refused, nothing was begun" in told["text"]


def unfolded(text: str) -> str:
    """Lines of a run as one."""
    return " ".join(text.split())
