"""What real brokers, and other hands, do to a roll while it lasts: it stops by name, and no second broker is touched.

- `broker-start`: broker 1 crashes at its start, again and again, its own log lines are shown; mended, the same command
  goes on; broker 2 stands still behind its start, as one that recovers its logs for long, and the run waits for it.
- `in-hybrid`: a second orchestrator holds the lock; `/controller` is deleted under the controllers; mended, it goes on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.lab.cluster import Lab
from migrate.lab.topology import HOST
from migrate.model.views import Running, Stopped
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from migrate.zookeeper import layout
from migrate.zookeeper.client import connect
from migrate.zookeeper.lock import acquire
from tests.lab.commands import environment, kraft_migrate
from tests.testing.rotating import in_turn, rotated

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
WAIT = 120.0


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A lab's folder; whatever lives in it at the end is stopped."""
    yield tmp_path / "lab"
    if (tmp_path / "lab" / "lab.json").exists():
        kraft_migrate("lab", "down", "--dir", str(tmp_path / "lab"))


@in_turn("hands")
@pytest.mark.parametrize("part", rotated("hands", ("broker-start", "in-hybrid")))
def test_a_roll_stops_by_name_and_goes_on_when_it_is_mended(part: str, directory: Path) -> None:
    """Nothing else is stopped meanwhile."""
    {"broker-start": broker_start, "in-hybrid": in_hybrid}[part](directory)


def planned(lab: Lab, stage: str) -> Path:
    """A saved plan of that stage alone."""
    ended = kraft_migrate("plan", str(lab.playbook_path), "--stage", stage, "--output", "json")
    assert ended.returncode == 2, ended.stderr
    return Path(lab.inventory.runs) / str(json.loads(ended.stdout)["fingerprint"])[:8] / "plan.json"


def acted(plan: Path, effect: str, event: str = "effected") -> list[int]:
    """The nodes on which the run has done that, by its journal."""
    events = journals.read(plan.parent / "journal.jsonl").events
    return [int(one.data["node"]) for one in events if one.name == event and one.data["effect"] == effect]


def until(what: str, reached: Callable[[], Any]) -> None:
    """Ask until it is so."""
    deadline = time.monotonic() + WAIT
    while not reached():
        assert time.monotonic() < deadline, what
        SystemClock().sleep(0.1)


def broker_start(directory: Path) -> None:
    """Crash, crash again, mended; slow; then the stage is whole."""
    lab = Lab.create(directory)
    lab.up()
    for stage in ("prepare", "controllers"):
        ended = kraft_migrate("apply", str(planned(lab, stage)))
        assert ended.returncode == 0, ended.stderr
    plan = planned(lab, "migration-mode")
    assert kraft_migrate("apply", str(plan), crash="after:stop:1").returncode == -signal.SIGKILL
    port = lab.topology.brokers[1].internal_port
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
        taken.listen()
        for _ in range(2):
            crashed = kraft_migrate("apply", str(plan))
            assert crashed.returncode == 3, crashed.stderr
            assert "node 1 is not running: its process ended" in crashed.stderr
            assert "node 1 said: " in crashed.stderr
            assert "Address already in use" in crashed.stderr
            assert isinstance(lab.supervisor.state("broker-1"), Stopped)
            assert 2 not in acted(plan, "stop", "effect")
    notes = journals.notes(journals.read(plan.parent / "journal.jsonl").events)
    assert "Address already in use" in notes["last-words:1"]
    slow_to_its_end(lab, plan)


def slow_to_its_end(lab: Lab, plan: Path) -> None:
    """The same command: broker 1 starts; broker 2 stands still for a while, and the run with it."""
    command = [sys.executable, "-m", "migrate", "apply", str(plan)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(), text=True
    ) as run:
        try:
            until("broker 2 to be started", lambda: run.poll() is not None or 2 in acted(plan, "start"))
            state = lab.supervisor.state("broker-2")
            assert isinstance(state, Running), run.poll()
            os.kill(state.pid, signal.SIGSTOP)
            waits = [{"step": "migration-mode/2", "owner": "broker 2"}]
            until("the wait for broker 2", lambda: waiting_for(plan) in waits)
            with pytest.raises(subprocess.TimeoutExpired):  # longer than its sessions: it is neither dead nor done
                run.wait(10)
            assert acted(plan, "start") == [0, 1, 1, 1, 2]
            os.kill(state.pid, signal.SIGCONT)
            _, said = run.communicate(timeout=300)
        finally:
            run.kill()
    assert run.returncode == 0, said
    ended = kraft_migrate("status", str(lab.playbook_path), "--output", "json")
    assert json.loads(ended.stdout)["stage"] == "copy"


def waiting_for(plan: Path) -> dict[str, str] | None:
    """What the run waits for now, if its last word is a wait."""
    last = journals.read(plan.parent / "journal.jsonl").events[-1]
    return {"step": last.data["step"], "owner": last.data["owner"]} if last.name == "waiting" else None


def in_hybrid(directory: Path) -> None:
    """Exit code 7 while another one holds the lock; 3 while `/controller` is a broker's; then 0."""
    ended = kraft_migrate("lab", "demo", "--dir", str(directory), "--until", "hybrid", "--no-load")
    assert ended.returncode == 0, ended.stderr[-3000:]
    lab = Lab.open(directory)
    plan = planned(lab, "kraft-mode")
    with connect(lab.inventory.zookeeper) as client:
        lock = acquire(client, "another", "another plan")
        second = kraft_migrate("apply", str(plan))
        assert second.returncode == 7, second.stderr
        assert "another" in second.stderr
        lock.release()
        client.kazoo.delete(layout.CONTROLLER)  # a broker in migration mode takes it within a second
        until("a broker to claim /controller", lambda: client.kazoo.exists(layout.CONTROLLER))
    cleaned = kraft_migrate("apply", str(plan))
    assert cleaned.returncode == 3, cleaned.stderr
    assert "/controller is not a KRaft controller's" in cleaned.stderr
    assert acted(plan, "stop", "effect") == []
    lab.supervisor.stop(f"controller-{quorum(lab)}", WAIT)
    until("another leader, which claims it", lambda: quorum(lab) >= 0 and owner(lab) >= 3000)
    for controller in lab.topology.controllers:
        if isinstance(lab.supervisor.state(controller.name), Stopped):
            lab.supervisor.start(controller.name)
    mended = kraft_migrate("apply", str(plan))
    assert mended.returncode == 0, mended.stderr
    assert acted(plan, "stop") == [0, 1, 2]


def quorum(lab: Lab) -> int:
    """Who leads; -1 where nobody is known to."""
    ended = kraft_migrate("status", str(lab.playbook_path), "--output", "json")
    return int(json.loads(ended.stdout)["quorum"].get("leader", -1))


def owner(lab: Lab) -> int:
    """Whose /controller is."""
    with connect(lab.inventory.zookeeper) as client:
        return int(json.loads(client.kazoo.get(layout.CONTROLLER)[0])["brokerid"])
