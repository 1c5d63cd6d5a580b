"""`apply --on-event CMD`, on a simulated cluster: the command gets the journal, and the run is as without it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.model.history import Event
from migrate.observe.sources import Sources
from migrate.report.plan_json import plan_to_json
from migrate.run import carry_out
from migrate.run import on_event as module
from migrate.run.carry_out import Options, folder_of
from migrate.run.clock import SystemClock
from migrate.run.journal import Journal
from migrate.run.locks import LockFile, RunLock
from tests.cli.commands import kraft_migrate, playbook_in
from tests.cli.test_progress_event_lines import Tells
from tests.run.gated import Gated
from tests.testing import worlds

CANARIES = ("canary-of-a-key", "canary-of-a-login")
SECRETS = f"""
ssl.key.password={CANARIES[0]}
listener.name.internal.plain.sasl.jaas.config=a.Login required username="b" password="{CANARIES[1]}";
"""


class Simulated:
    """Takes the place of `carry_out`: a run behind its gatekeeper, which ends as a real one does."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        playbook_in(folder)
        self.folder = folder
        self.run = Gated(folder, worlds.playbook())
        for (node, path), raw in self.run.cluster.files.items():
            if path.endswith(".properties") and "meta" not in path:
                self.run.cluster.files[node, path] = raw + SECRETS.encode()
        plan = self.run.planned()
        self.run.plan = replace(plan, inventory=str(folder / "inventory.yaml"), playbook=str(folder / "playbook.yaml"))
        (folder / "plan.json").write_text(plan_to_json(self.run.plan), encoding="utf-8")
        monkeypatch.setattr(carry_out, "carry_out", self)

    def __call__(self, _: object, sources: Sources, options: Options) -> None:
        """One session, and what `carry_out` does behind it."""
        self.run.folder = folder_of(sources.inventory, self.run.planned()).path
        self.run.folder.mkdir(parents=True, exist_ok=True)
        self.run.said = Tells(options.listen)  # type: ignore[assignment] # a run only appends
        lock = RunLock(LockFile(self.run.folder.parent / "lock"), None)
        try:
            self.run.session()
        finally:
            journal = Journal.resume(self.run.folder / "journal.jsonl")
            carry_out._over(journal, lock, SystemClock(), options.untold)

    def apply(self, text: str, *words: str) -> Any:
        """The command, with that script for each event."""
        script = self.folder / "command"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o700)
        return kraft_migrate("apply", self.folder / "plan.json", "--on-event", f"'{script}' canary-word", *words)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What a command kept in a file."""
        return [json.loads(line) for line in (self.folder / "told").read_text().splitlines()]

    def park(self) -> None:
        """Ctrl-C after the first restart; none later."""
        run = self.run
        run.each_look = lambda: setattr(run.request, "by", "Ctrl-C" if run.stopped() == ["0"] else "")


def kept(events: tuple[Event, ...]) -> list[tuple[object, ...]]:
    """Number, name and data of each."""
    return [(event.number, event.time, event.name, json.loads(json.dumps(dict(event.data)))) for event in events]


@pytest.mark.slow
def test_a_command_gets_each_event_of_the_journal_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its order, over two sessions, those that no listener hears too; `--json-lines` prints the same lines."""
    simulated = Simulated(tmp_path, monkeypatch)
    simulated.park()
    parked = simulated.apply(f"cat >> {tmp_path}/told", "--json-lines")
    assert parked.code == 130
    assert simulated.told[-1]["event"] == "stop"
    simulated.run.each_look = lambda: None
    simulated.run.request.by = ""
    ended = simulated.apply(f"cat >> {tmp_path}/told", "--json-lines")
    assert ended.code == 0
    assert [(line["n"], line["time"], line["event"], line["data"]) for line in simulated.told] == kept(
        simulated.run.events
    )
    assert parked.out + ended.out == (tmp_path / "told").read_text()
    assert "--on-event" not in parked.err + ended.err


@pytest.mark.slow
def test_a_failure_is_told_once_and_noted_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice on the screen: as it happens, and with the sum at the end; the run is carried out."""
    simulated = Simulated(tmp_path, monkeypatch)
    ended = simulated.apply("echo no route >&2; exit 3")
    said = " ".join(ended.err.split())
    assert ended.code == 0
    assert said.count(f"{tmp_path}/command failed, the run continues: it ended with 3: no route") == 1
    last = simulated.run.events[-1]
    number = last.number
    missed = f"{tmp_path}/command did not take each of {number} events: {number} failed (the first: it ended with 3)"
    assert (last.name, dict(last.data)) == ("note", {"key": "on-event", "value": missed})
    assert said.count(missed) == 1
    assert [event.name for event in simulated.run.events[-2:]] == ["end", "note"]
    assert "canary-word" not in ended.err
    assert (simulated.run.folder / "report.html").exists()


@pytest.mark.slow
def test_a_command_that_hangs_delays_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is over before its first event is given up; at the end it has the time that is set for that."""
    monkeypatch.setattr(module, "SECONDS", 600.0)
    monkeypatch.setattr(module, "AT_THE_END", 0.5)
    simulated = Simulated(tmp_path, monkeypatch)
    ended = simulated.apply("sleep 600")
    assert ended.code == 0
    names = [event.name for event in simulated.run.events]
    assert names[-2:] == ["end", "note"]
    assert simulated.run.events[-1].data["value"].endswith(f"{len(names) - 1} dropped")


@pytest.mark.slow
def test_no_event_has_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with secrets are changed, and the changes are told."""
    simulated = Simulated(tmp_path, monkeypatch)
    assert simulated.apply(f"cat >> {tmp_path}/told").code == 0
    told = (tmp_path / "told").read_text()
    assert '"event":"diff-file"' in told
    assert "ssl.key.password" in told
    assert not [canary for canary in CANARIES if canary in told]


@pytest.mark.slow
def test_a_refused_apply_starts_no_command(tmp_path: Path) -> None:
    """Another run holds the lock: what its journal gets meanwhile is told by that run."""
    run = Gated(tmp_path, worlds.playbook())
    playbook_in(tmp_path)
    plan = replace(run.planned(), inventory=str(tmp_path / "inventory.yaml"), playbook=str(tmp_path / "playbook.yaml"))
    (tmp_path / "plan.json").write_text(plan_to_json(plan), encoding="utf-8")
    (tmp_path / "runs").mkdir()
    lock = LockFile(tmp_path / "runs" / "lock")
    ended = kraft_migrate("apply", tmp_path / "plan.json", "--on-event", f"touch {tmp_path}/ran")
    lock.release()
    assert ended.code in (6, 7), ended.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("group", [("apply",), ("rollback", "apply")])
@pytest.mark.parametrize(("text", "why"), [("", "names no command"), ("mail 'x", "is no command: No closing")])
def test_what_is_no_command_is_refused_at_once(group: tuple[str, ...], text: str, why: str, tmp_path: Path) -> None:
    """Before the plan is read."""
    (tmp_path / "plan.json").write_text("")
    ended = kraft_migrate(*group, tmp_path / "plan.json", "--on-event", text)
    assert ended.code == 64
    assert why in ended.err
