"""A user's way on a real lab: plan, apply, and what is refused - with the cluster untouched by every refusal.

A webhook and a hook are told of all of it, and each `apply` keeps its metrics in a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from migrate.lab.cluster import Lab
from migrate.model.history import Event
from migrate.model.stage import Stage
from migrate.run import journal as journals
from migrate.run.deliver import TIMESTAMP
from migrate.run.locks import LockFile
from tests.lab.commands import kraft_migrate
from tests.lab.one_topic import make_topic
from tests.playbook.test_notifications import written
from tests.report.test_metrics import one, read
from tests.run.test_deliver import program
from tests.testing.certificates import secret
from tests.testing.receiver import SECRET, Receiver, receiving

pytestmark = pytest.mark.kafka
STAGES = ("prepare", "controllers")
EVENTS = "events: [begins, stopped, ended]"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """Where the webhook's requests arrive."""
    with receiving() as listens:
        yield listens


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Lab]:
    """A real cluster in ZooKeeper mode, not seeded; its playbook names who is told."""
    made = Lab.create(tmp_path_factory.mktemp("apply") / "lab")
    try:
        made.up()
        make_topic(made)
        _name_who_is_told(made, receiver)
        yield made
    finally:
        made.down()


def _name_who_is_told(lab: Lab, receiver: Receiver) -> None:
    folder = lab.playbook_path.parent
    secret(folder, SECRET, "pager.key")
    program(folder, f"cat >> {folder}/told; echo >> {folder}/told")
    webhook = f"{{name: pager, url: '{receiver.url}', secret: {{file: pager.key}}, {EVENTS}}}"
    hook = f"{{name: channel, command: ['{folder}/hook'], {EVENTS}}}"
    written(folder, f"  webhooks:\n    - {webhook}\n  hooks:\n    - {hook}\n")
    named = lab.playbook_path.read_text(encoding="utf-8") + "  notifications: notifications.yaml\n"
    lab.playbook_path.write_text(named, encoding="utf-8")


@dataclass(frozen=True)
class Applied:
    """One stage: its plan, how `apply` ended, and what came of it."""

    planned: int  # exit code
    fingerprint: str
    code: int
    said: str
    restarted: set[str]  # processes of the cluster
    events: tuple[Event, ...]  # the journal
    told: list[dict[str, Any]]  # by the webhook
    metrics: str


@pytest.fixture(scope="module")
def applied(lab: Lab, receiver: Receiver) -> list[Applied]:
    """The first stages, each by a plan and an `apply` of its own."""
    return [_applied(lab, receiver, stage) for stage in STAGES]


def _applied(lab: Lab, receiver: Receiver, stage: str) -> Applied:
    code, plan = planned(lab, "--stage", stage)
    path, file = saved(lab, plan["fingerprint"]), lab.topology.folder("kraft_migrate.prom")
    before, told = pids(lab), len(receiver.requests)
    ended = kraft_migrate("apply", str(path), "--metrics", str(file))
    after = pids(lab)
    return Applied(
        code,
        plan["fingerprint"],
        ended.returncode,
        ended.stderr,
        {name for name in ("broker-0", "broker-1", "broker-2", "zookeeper") if after[name] != before[name]},
        journals.read(path.parent / "journal.jsonl").events,
        receiver.taken[told:],
        file.read_text(encoding="utf-8"),
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


def test_a_webhook_and_a_hook_are_told_of_each_session(lab: Lab, applied: list[Applied], receiver: Receiver) -> None:
    """That it begins, then that it ended: signed within the five minutes that a receiver allows, the same to both."""
    for stage, name in zip(applied, STAGES, strict=True):
        begins, ended = stage.told
        assert (begins["event"], ended["event"], ended["stage"]) == ("begins", "ended", name)
        for told, event in ((begins, "session"), (ended, "end")):
            line = stage.events[told["n"]]
            assert (line.name, line.time) == (event, told["time"])
            assert told["run"] == stage.fingerprint[:8]
            assert told["cluster_id"] == stage.events[0].data["cluster_id"]
        assert "was not delivered" not in stage.said
    heard = lab.topology.folder("told").read_bytes().splitlines()
    assert [body for _, _, body in receiver.requests] == heard
    for (_, headers, _), told in zip(receiver.requests, receiver.taken, strict=True):
        assert abs(int(headers[TIMESTAMP]) - told["time"]) < 300


def test_the_metrics_of_each_session_say_how_it_ended(applied: list[Applied]) -> None:
    """All steps done, nothing rolled, nothing lost."""
    for stage, name in zip(applied, STAGES, strict=True):
        found, last = read(stage.metrics), stage.events[-1]
        assert one(found, "state") == "ended"
        assert (found["stage", ""], found["step_info", f"{name} "]) == (Stage.from_label(name), 1.0)
        assert found["steps", ""] == found["steps_done", ""] > 0
        assert found["wait_seconds", ""] == found["half_rolled_seconds", ""] == 0.0
        assert found["last_event_time_seconds", ""] == last.time <= found["written_time_seconds", ""]


def test_a_stage_that_is_not_the_next_is_refused(lab: Lab) -> None:
    """It says which one is."""
    ended = kraft_migrate("plan", str(lab.playbook_path), "--stage", "kraft-mode")
    assert ended.returncode == 3
    assert "migration-mode" in ended.stderr


def test_a_plan_is_refused_when_a_file_changed_since(lab: Lab, receiver: Receiver) -> None:
    """Exit code 6, the file named, no process touched; the webhook is told."""
    _, plan = planned(lab, "--stage", "migration-mode")
    path = lab.topology.config("broker-0")
    original = path.read_bytes()
    before, told = pids(lab), len(receiver.requests)
    try:
        path.write_bytes(original + b"num.io.threads=7\n")
        ended = kraft_migrate("apply", str(saved(lab, plan["fingerprint"])))
    finally:
        path.write_bytes(original)
    assert ended.returncode == 6, ended.stderr
    assert f"{path} of broker 0" in ended.stderr
    assert pids(lab) == before
    begins, stopped = receiver.taken[told:]
    assert (begins["event"], stopped["event"], stopped["code"]) == ("begins", "stopped", "E-PLAN-02")
    assert f"{path} of broker 0" in stopped["text"]


def test_a_second_run_is_refused_while_one_holds_the_lock(lab: Lab, receiver: Receiver) -> None:
    """Exit code 7, and nobody is told; `lab up` and `lab down` stand back as well."""
    _, plan = planned(lab, "--stage", "migration-mode")
    before, told = pids(lab), len(receiver.requests)
    lock = LockFile(Path(lab.inventory.runs) / "lock")
    try:
        assert kraft_migrate("apply", str(saved(lab, plan["fingerprint"]))).returncode == 7
        assert kraft_migrate("lab", "down", "--dir", str(lab.topology.directory)).returncode == 7
    finally:
        lock.release()
    assert pids(lab) == before
    assert len(receiver.requests) == told


def test_a_plan_to_the_end_needs_its_fingerprint(lab: Lab, receiver: Receiver) -> None:
    """Exit code 4, nothing done; nobody is told, for whoever confirms sees it."""
    _, plan = planned(lab)
    before, told = pids(lab), len(receiver.requests)
    ended = kraft_migrate("apply", str(saved(lab, plan["fingerprint"])), "--confirm", plan["fingerprint"][:8])
    assert ended.returncode == 4
    assert plan["fingerprint"] in ended.stderr
    assert pids(lab) == before
    assert len(receiver.requests) == told
