"""Real Kafka at the start of its controllers: a move is waited for, and a wrong value of theirs has a way out.

Each printed next step is typed as it stands.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient

from migrate.hosts.properties import parse
from migrate.lab.cluster import Lab
from migrate.lab.seed import create_topics, settings_for
from migrate.lab.seed_data import SeedTopic
from migrate.model.views import Running
from tests.lab.commands import kraft_migrate
from tests.lab.test_other_hands import acted, planned
from tests.lab.test_repaired_files import FAULT, KEY, REPAIR, lab
from tests.lab.test_stuck import Cluster, kafka_tool
from tests.lab.throttled_move import begin, is_waited_for

TOPIC: Final = "moves"
__all__ = ["lab"]
pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def wants(lab: Lab, value: str) -> None:
    """The inventory's `controllers.properties`."""
    path, line = lab.inventory_path, f"    properties:\n      {KEY}: {json.dumps(value)}\n"
    text = re.sub(r"    properties:\n      .*\n", "", path.read_text())
    path.write_text(text.replace("  controllers:\n", f"  controllers:\n{line}", 1))


def plans(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    """As it is typed."""
    return kraft_migrate("plan", str(lab.playbook_path), *words, "--output", "json")


def moved_away(lab: Lab, refused: subprocess.CompletedProcess[str]) -> None:
    """What E-PLAN-04 says, on each host."""
    text = " ".join(refused.stderr.split())
    assert refused.returncode == 3, text
    assert "on each host move the file away (it may hold passwords), then plan again" in text
    named = re.findall(r"(\S+) exists with other content", text)
    assert named == [str(lab.topology.config(one.name)) for one in lab.topology.controllers]
    for path in map(Path, named):
        path.rename(path.with_suffix(".away"))


@pytest.mark.long
def test_controllers_wait_for_a_move_and_a_wrong_value_of_theirs_is_left_by_what_is_printed(lab: Lab) -> None:
    """No controller starts while a replica moves, nor with files that the inventory does not say any more."""
    cluster = Cluster(lab)
    ended = kraft_migrate("apply", str(planned(lab, "prepare")))
    assert ended.returncode == 0, ended.stderr
    tool = partial(kafka_tool, cluster)
    create_topics(AdminClient(settings_for(lab.topology)), (SeedTopic(TOPIC, 1, 2, {}),))
    begin(cluster, TOPIC)
    plan = is_waited_for(cluster, TOPIC, tool, "controllers")
    assert acted(plan, "start", "effect") == []

    wants(lab, FAULT[KEY])
    moved_away(lab, plans(lab, "--stage", "controllers"))
    made = plans(lab, "--to", "controllers")
    for _ in range(3):
        fingerprint = json.loads(made.stdout)["fingerprint"]
        plan = Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"
        ended = kraft_migrate("apply", str(plan), "--confirm", fingerprint)
        if ended.returncode == 0:
            break
        text = " ".join(ended.stderr.split())
        assert "UnknownHostException: no-such-host.invalid" in text
        assert "the inventory's controllers.properties" in text
        wants(lab, REPAIR[KEY])
        stale = " ".join(kraft_migrate("apply", str(plan), "--confirm", fingerprint).stderr.split())
        command = re.search(r"make a new plan: `kraft-migrate ([^`]+)`", stale)
        assert command is not None, stale
        moved_away(lab, kraft_migrate(*shlex.split(command[1])))
        made = kraft_migrate(*shlex.split(command[1]), "--output", "json")
    assert ended.returncode == 0, ended.stderr
    for one in lab.topology.controllers:
        assert isinstance(lab.supervisor.state(one.name), Running)
        assert parse(lab.topology.config(one.name).read_bytes())[KEY] == REPAIR[KEY]
