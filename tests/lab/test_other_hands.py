"""What real brokers, and other hands, do to a roll while it lasts: it stops by name, and no second broker is touched.

- `broker-start`: broker 1 crashes at its start, again and again, its own log lines are shown; mended, the same command
  goes on; broker 2 stands still behind its start, as one that recovers its logs for long, and the run waits for it.
- `copy-drops`: a configuration goes from ZooKeeper between the last look and the copy, and another one belongs to no
  topic: the first stops the run before the second roll, the second is told before the copy and afterwards.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from migrate.lab.cluster import Lab
from migrate.lab.seed import settings_for
from migrate.lab.topology import HOST
from migrate.model.views import Running, Stopped
from migrate.run import journal as journals
from migrate.run.clock import SystemClock
from migrate.zookeeper import layout
from migrate.zookeeper.client import connect
from migrate.zookeeper.lock import acquire
from tests.lab.commands import environment, kraft_migrate
from tests.lab.one_topic import make_topic

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
HANDS = ("broker-start", "copy-drops", "in-hybrid")
WAIT = 120.0


@pytest.mark.long
@pytest.mark.parametrize("part", HANDS)
def test_a_roll_stops_by_name_and_goes_on_when_it_is_mended(part: str, directory: Path) -> None:
    """Nothing else is stopped meanwhile."""
    {"broker-start": broker_start, "copy-drops": copy_drops, "in-hybrid": in_hybrid}[part](directory)


def planned(lab: Lab, stage: str, changes: int = 2) -> Path:
    """A saved plan of that stage alone; the exit code is 0 where it only looks."""
    ended = kraft_migrate("plan", str(lab.playbook_path), "--stage", stage, "--output", "json")
    assert ended.returncode == changes, ended.stderr
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
    make_topic(lab)
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
            assert "broker 1 does not run (its process on " in crashed.stderr
            assert "its process ended after the start" in crashed.stderr
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


ORPHANS = {
    "/config/topics/ghost": {"retention.ms": "1"},
    "/config/brokers/77": {"log.cleaner.threads": "2"},
    "/config/clients/nobody": {"producer_byte_rate": "1000"},
    "/config/users/nobody": {"producer_byte_rate": "1000"},
    "/config/ips/10.9.9.9": {"connection_creation_rate": "10"},
}


def config(values: dict[str, str]) -> bytes:
    """A configuration's znode as Kafka writes it."""
    return json.dumps({"version": 1, "config": values}).encode()


def copy_drops(directory: Path) -> None:
    """Told before, stopped by name although both sides are equal, by a new plan too; made again, it is proven."""
    lab = Lab.create(directory)
    lab.up()
    admin = AdminClient({**settings_for(lab.topology), "log_level": 3})
    admin.create_topics([NewTopic("kept", 3, 3, config={"retention.ms": "86400000"})])["kept"].result(30)
    with connect(lab.inventory.zookeeper) as client:
        for path, values in ORPHANS.items():
            client.kazoo.create(path, config(values))
    found = json.loads(kraft_migrate("assess", str(lab.playbook_path), "--output", "json").stdout)["findings"]
    assert [entry["about"] for entry in found if entry["code"] == "W-ZKN-21"] == ["/config/topics/ghost"]
    for stage in ("prepare", "controllers"):
        ended = kraft_migrate("apply", str(planned(lab, stage)))
        assert ended.returncode == 0, ended.stderr
    plan = planned(lab, "migration-mode")
    assert kraft_migrate("apply", str(plan), crash="after:start:2").returncode == -signal.SIGKILL
    with connect(lab.inventory.zookeeper) as client:  # the broker needs seconds to register
        client.kazoo.set("/config/topics/kept", config({}))
        assert client.kazoo.exists("/controller").ephemeralOwner
    stopped = kraft_migrate("apply", str(plan))
    assert stopped.returncode == 3, stopped.stderr
    said = " ".join(stopped.stderr.split())
    assert "topic-config kept (retention.ms)" in said
    assert f"zookeeper-before-copy.jsonl.gz of run {plan.parent.name}" in said
    hybrid = planned(lab, "hybrid", changes=0)
    refused = kraft_migrate("apply", str(hybrid))
    assert refused.returncode == 3, refused.stderr
    assert "topic-config kept (retention.ms)" in " ".join(refused.stderr.split())
    entry = ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    again = ConfigResource(ConfigResource.Type.TOPIC, "kept", incremental_configs=[entry])
    for future in admin.incremental_alter_configs([again]).values():
        future.result(30)
    for made in (plan, hybrid):
        ended = kraft_migrate("apply", str(made))
        assert ended.returncode == 0, ended.stderr
    (check,) = [
        event.data for event in journals.read(plan.parent / "journal.jsonl").events if event.name == "copy-check"
    ][-1:]
    assert (check["lost"], check["miscounted"]) == (0, [])
    assert check["known"] == {"W-ZKN-21": [["topic-config", "ghost", "retention.ms"]]}
    assert check["counts"]["client-quota"] == [3, 3]
    assert isinstance(check["driver"], dict)
    assert check["driver"]["TOPIC_RECORD"] == check["counts"]["topic"][1]


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
