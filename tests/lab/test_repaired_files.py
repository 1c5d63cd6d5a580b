"""Real brokers that do not start with their planned file: each printed next step is typed as it stands, and leads on.

The fault is one that nobody sees before the start: a name that the node's host does not know.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from migrate.hosts.properties import edit, parse
from migrate.lab.cluster import Lab
from migrate.model.views import Stopped
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate
from tests.lab.one_topic import make_topic
from tests.lab.test_other_hands import planned

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
KEY: Final = "max.connections.per.ip.overrides"
FAULT: Final = {KEY: "no-such-host.invalid:1"}  # resolved on the node alone, as it opens its sockets (ConnectionQuotas)
REPAIR: Final = {KEY: "127.0.0.9:1"}
VOTERS: Final = "controller.quorum.voters"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A running lab with a topic; stopped at the end."""
    found = Lab.create(tmp_path / "lab")
    try:
        found.up()
        make_topic(found)
        yield found
    finally:
        kraft_migrate("lab", "down", "--dir", str(tmp_path / "lab"))


def change(lab: Lab, node: str, values: dict[str, str]) -> None:
    """Edit a node's file as a person does."""
    path = lab.topology.config(node)
    path.write_bytes(edit(path.read_bytes(), values))


def value(lab: Lab, node: str, key: str) -> str:
    """What its file has."""
    return parse(lab.topology.config(node).read_bytes())[key]


def fails(ended: subprocess.CompletedProcess[str], lab: Lab, node: str) -> None:
    """The run stopped because that node's process was over, and said in Kafka's words why, and what leads on."""
    assert ended.returncode == 3, ended.stderr
    said = " ".join(ended.stderr.split())
    assert "UnknownHostException: no-such-host.invalid" in said
    assert "Repair what its last lines name, in its file too, but in no key that this run writes there" in said
    assert "the same command starts it" in said
    assert isinstance(lab.supervisor.state(node), Stopped)


def told(plan: Path, node: int) -> str:
    """What the journal notes of a repair."""
    notes = journals.notes(journals.read(plan.parent / "journal.jsonl").events)
    return "\n".join(text for key, text in notes.items() if key.startswith(f"repaired:{node}:"))


def to_controllers(lab: Lab) -> None:
    """A quorum in PRE_MIGRATION."""
    for stage in ("prepare", "controllers"):
        ended = kraft_migrate("apply", str(planned(lab, stage)))
        assert ended.returncode == 0, ended.stderr


@pytest.mark.long
def test_the_first_roll_and_its_rollback_go_on_with_repaired_files(lab: Lab) -> None:
    """Forward by the same command, a key of the migration put back as it is printed; back, started by hand."""
    to_controllers(lab)
    change(lab, "broker-1", FAULT)
    plan = planned(lab, "migration-mode")
    fails(kraft_migrate("apply", str(plan)), lab, "broker-1")

    change(lab, "broker-1", REPAIR | {VOTERS: value(lab, "broker-1", VOTERS).replace("@", "@elsewhere.", 1)})
    refused = kraft_migrate("apply", str(plan))
    assert refused.returncode == 6, refused.stderr
    back = re.search(
        r"put these keys back \(([^=]+)=(\S+)\) and give the same command", " ".join(refused.stderr.split())
    )
    assert back is not None, refused.stderr
    change(lab, "broker-1", {back[1]: back[2]})
    ended = kraft_migrate("apply", str(plan))
    assert ended.returncode == 0, ended.stderr
    assert f"was repaired by a person, in {KEY}" in told(plan, 1)
    assert f"was repaired by a person, in {KEY}" in (plan.parent / "report.json").read_text()

    found = json.loads(kraft_migrate("status", str(lab.playbook_path), "--output", "json").stdout)["rollback"]
    assert found["readiness"] != "NOT READY", found
    assert any(KEY in one["what"] for one in found["reasons"] if one["name"] == "file-edited")
    change(lab, "broker-1", FAULT)
    made = kraft_migrate("rollback", "plan", str(lab.playbook_path), "--output", "json")
    fingerprint = json.loads(made.stdout)["fingerprint"]
    plan = Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"
    command = ("rollback", "apply", str(plan), "--confirm", fingerprint)
    fails(kraft_migrate(*command), lab, "broker-1")
    change(lab, "broker-1", REPAIR)
    lab.supervisor.start("broker-1")
    ended = kraft_migrate(*command)
    assert ended.returncode == 0, ended.stderr
    assert f"was repaired by a person, in {KEY}" in told(plan, 1)
    assert value(lab, "broker-1", KEY) == REPAIR[KEY]
    assert "controller.quorum.voters" not in parse(lab.topology.config("broker-1").read_bytes())
