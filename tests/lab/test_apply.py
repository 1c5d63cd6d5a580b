"""A user's way on a real lab: plan, apply, and what is refused - with the cluster untouched by every refusal.

A command gets each event of each session.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.lab.cluster import Lab
from migrate.model.history import Event
from migrate.run import journal as journals
from migrate.run.locks import LockFile
from tests.lab.commands import kraft_migrate
from tests.lab.one_topic import make_topic

pytestmark = pytest.mark.kafka
STAGES = ("prepare", "controllers")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A real cluster in ZooKeeper mode, not seeded."""
    made = Lab.create(tmp_path_factory.mktemp("apply") / "lab")
    try:
        made.up()
        make_topic(made)
        yield made
    finally:
        made.down()


@dataclass(frozen=True)
class Applied:
    """One stage: its plan, how `apply` ended, and what came of it."""

    planned: int  # exit code
    fingerprint: str
    code: int
    said: str
    restarted: set[str]  # processes of the cluster
    events: tuple[Event, ...]  # the journal
    told: list[dict[str, Any]]  # what the command got


@pytest.fixture(scope="module")
def applied(lab: Lab) -> list[Applied]:
    """The first stages, each by a plan and an `apply` of its own."""
    return [_applied(lab, stage) for stage in STAGES]


def _applied(lab: Lab, stage: str) -> Applied:
    code, plan = planned(lab, "--stage", stage)
    path, before = saved(lab, plan["fingerprint"]), pids(lab)
    file = path.parent / "told"
    ended = kraft_migrate("apply", str(path), "--on-event", f"tee -a {file}")
    after = pids(lab)
    return Applied(
        code,
        plan["fingerprint"],
        ended.returncode,
        ended.stderr,
        {name for name in ("broker-0", "broker-1", "broker-2", "zookeeper") if after[name] != before[name]},
        journals.read(path.parent / "journal.jsonl").events,
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()],
    )


def planned(lab: Lab, *words: str) -> tuple[int, Any]:
    """`plan`'s exit code and its JSON."""
    ended = kraft_migrate("plan", str(lab.playbook_path), *words, "--output", "json")
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def saved(lab: Lab, fingerprint: str) -> Path:
    """Where that plan was saved."""
    return Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"


def pids(lab: Lab) -> dict[str, Any]:
    """Which processes run."""
    return {name: lab.supervisor.state(name) for name in lab.supervisor.specs()}


def test_stages_are_planned_and_applied_one_by_one(lab: Lab, applied: list[Applied]) -> None:
    """Prepare, then controllers: each plan says 2, each apply 0, and nothing is restarted."""
    for stage in applied:
        assert (stage.planned, stage.code) == (2, 0), stage.said
        assert stage.restarted == set()
    ended = kraft_migrate("status", "--inventory", str(lab.inventory_path), "--output", "json")
    assert json.loads(ended.stdout)["stage"] == "controllers"


def test_a_command_gets_the_journal_of_each_session(applied: list[Applied]) -> None:
    """Each line of it once, in its order, from the first to the end."""
    for stage in applied:
        assert [(line["n"], line["time"], line["event"]) for line in stage.told] == [
            (event.number, event.time, event.name) for event in stage.events
        ]
        assert {line["run"] for line in stage.told} == {stage.fingerprint[:8]}
        assert "end" in [line["event"] for line in stage.told]
        assert "--on-event" not in stage.said


def test_a_stage_that_is_not_the_next_is_refused(lab: Lab) -> None:
    """It says which one is."""
    ended = kraft_migrate("plan", str(lab.playbook_path), "--stage", "kraft-mode")
    assert ended.returncode == 3
    assert "migration-mode" in ended.stderr


def test_a_plan_is_refused_when_a_file_changed_since(lab: Lab) -> None:
    """Exit code 6, the file named, no process touched."""
    _, plan = planned(lab, "--stage", "migration-mode")
    path = lab.topology.config("broker-0")
    original = path.read_bytes()
    before = pids(lab)
    try:
        path.write_bytes(original + b"num.io.threads=7\n")
        ended = kraft_migrate("apply", str(saved(lab, plan["fingerprint"])))
    finally:
        path.write_bytes(original)
    assert ended.returncode == 6, ended.stderr
    assert f"{path} of broker 0" in ended.stderr
    assert pids(lab) == before


def test_a_second_run_is_refused_while_one_holds_the_lock(lab: Lab) -> None:
    """Exit code 7; `lab up` and `lab down` stand back as well."""
    _, plan = planned(lab, "--stage", "migration-mode")
    before = pids(lab)
    lock = LockFile(Path(lab.inventory.runs) / "lock")
    try:
        assert kraft_migrate("apply", str(saved(lab, plan["fingerprint"]))).returncode == 7
        assert kraft_migrate("lab", "down", "--dir", str(lab.topology.directory)).returncode == 7
    finally:
        lock.release()
    assert pids(lab) == before


def test_a_plan_to_the_end_needs_its_fingerprint(lab: Lab) -> None:
    """Exit code 4, nothing done."""
    _, plan = planned(lab)
    before = pids(lab)
    ended = kraft_migrate("apply", str(saved(lab, plan["fingerprint"])), "--confirm", plan["fingerprint"][:8])
    assert ended.returncode == 4
    assert plan["fingerprint"] not in ended.stderr
    assert pids(lab) == before


AT_A_TERMINAL = """
import os, sys
from migrate.cli.main import main
os.close(os.open(os.ttyname(0), os.O_RDWR))  # the leader of a session gets it as its controlling terminal
sys.argv = ["kraft-migrate", *sys.argv[1:]]
main()
"""


def test_a_closed_terminal_parks_a_real_run_and_the_same_command_goes_on(lab: Lab) -> None:
    """Closed while a broker is stopped: that broker is brought up and proven, the next one is not touched."""
    closed_while_a_broker_is_down(lab, "migration-mode")


def closed_while_a_broker_is_down(lab: Lab, stage: str) -> None:
    """Apply that stage at a terminal, close it in the middle of the first restart, and give the command again."""
    _, plan = planned(lab, "--stage", stage)
    path = saved(lab, plan["fingerprint"])
    journal, before = path.parent / "journal.jsonl", pids(lab)
    said, (ours, theirs) = b"", pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", AT_A_TERMINAL, "apply", str(path)],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        while not journal.exists() or '"effect":"stop"' not in journal.read_text(encoding="utf-8"):
            assert process.poll() is None, said.decode(errors="replace")
            if select.select([ours], [], [], 0.2)[0]:
                with suppress(OSError):  # it has ended
                    said += os.read(ours, 65536)
        os.close(ours)
        assert process.wait(300) == 130
    finally:
        process.kill()
        process.wait()
    last = journals.read(journal).events[-1]
    assert last.name == "note", "whether the rollback is open"
    stops = [event.data for event in journals.read(journal).events if event.name == "stop"]
    assert stops[-1] == {"reason": f"parked before {stage}/1: SIGHUP asked for it", "code": "E-PARK-02"}
    assert {name for name, state in pids(lab).items() if state != before[name]} == {"broker-0"}
    again = kraft_migrate("apply", str(path))
    assert again.returncode == 0, again.stderr
    assert {name for name, state in pids(lab).items() if state != before[name]} == {"broker-0", "broker-1", "broker-2"}
