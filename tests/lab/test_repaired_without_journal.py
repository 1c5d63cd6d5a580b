"""Real Kafka without the journal, and in finalize: what is printed is typed as it stands, and leads on."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from migrate.lab.cluster import Lab
from migrate.model.views import Running, Stopped
from tests.lab.commands import kraft_migrate
from tests.lab.test_other_hands import planned
from tests.lab.test_repaired_files import FAULT, KEY, REPAIR, change, fails, lab, to_controllers, told, value

__all__ = ["lab"]
pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def typed(lab: Lab, ended: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Do what the output says: start the processes that it names, then give the command that it prints."""
    text = " ".join(ended.stderr.split())
    for node in dict.fromkeys(re.findall(r"on \S+: start (broker \d+)", text)):
        lab.supervisor.start(node.replace(" ", "-"))
    command = re.search(r"`kraft-migrate ([^`]+)`", text)
    assert command is not None, text
    return kraft_migrate(*shlex.split(command[1]), "--output", "json")


def applied(lab: Lab, made: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Apply the plan that a command has just made."""
    fingerprint = json.loads(made.stdout)["fingerprint"]
    plan = Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"
    return kraft_migrate("apply", str(plan), "--confirm", fingerprint)


@pytest.mark.long
def test_a_controllers_file_that_is_gone_with_every_run_is_made_again(lab: Lab) -> None:
    """What `status` prints is typed, then what the stop prints; the controller starts with the file that it had."""
    to_controllers(lab)
    path = lab.topology.config("controller-3000")
    was = path.read_bytes()
    lab.supervisor.stop("controller-3000", 60.0)
    path.unlink()
    shutil.rmtree(lab.inventory.runs)
    ended = kraft_migrate("status", str(lab.playbook_path))
    command = re.findall(r"^next +kraft-migrate (.+)$", ended.stdout, re.MULTILINE)
    assert command, ended.stdout
    made = kraft_migrate(*shlex.split(command[-1]), "--output", "json")
    refused = applied(lab, made)
    text = " ".join(refused.stderr.split())
    copied = re.search(r"put it back: copy (/\S+) to (\S+) on \S+, readable for its user alone; then", text)
    assert copied is not None, text
    shutil.copy(copied[1], copied[2])
    assert path.read_bytes() == was
    lab.supervisor.start("controller-3000")  # as the run asks, which waits for it
    ended = applied(lab, made)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.long
def test_the_second_roll_goes_on_without_its_journal_and_finalize_with_a_repaired_file(lab: Lab) -> None:
    """What is printed is typed: the start of the broker, and the command of a new plan.  Then a controller."""
    to_controllers(lab)
    ended = kraft_migrate("apply", str(planned(lab, "migration-mode")))
    assert ended.returncode == 0, ended.stderr
    change(lab, "broker-2", FAULT)
    plan = planned(lab, "kraft-mode")
    fails(kraft_migrate("apply", str(plan)), lab, "broker-2")
    change(lab, "broker-2", REPAIR)
    (plan.parent / "journal.jsonl").unlink()
    refused = kraft_migrate("apply", str(plan))
    assert refused.returncode == 6, refused.stderr
    made = typed(lab, refused)
    assert isinstance(lab.supervisor.state("broker-2"), Running)
    ended = applied(lab, made)
    assert ended.returncode == 0, ended.stderr
    for node in ("broker-1", "broker-2"):
        assert value(lab, node, "process.roles") == "broker"
    assert value(lab, "broker-2", KEY) == REPAIR[KEY]

    for one in lab.topology.controllers:
        change(lab, one.name, FAULT)
    plan = planned(lab, "finalize")
    fingerprint = json.loads(plan.read_text())["fingerprint"]
    command = ("apply", str(plan), "--confirm", fingerprint, "--confirm-cluster", lab.inventory.name)
    for _ in lab.topology.controllers:
        ended = kraft_migrate(*command)
        [down] = [one for one in lab.topology.controllers if isinstance(lab.supervisor.state(one.name), Stopped)]
        fails(ended, lab, down.name)
        change(lab, down.name, REPAIR)
    ended = kraft_migrate(*command)
    assert ended.returncode == 0, ended.stderr
    for one in lab.topology.controllers:
        assert f"was repaired by a person, in {KEY}" in told(plan, one.id)
