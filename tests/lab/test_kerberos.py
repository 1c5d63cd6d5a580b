"""A cluster with Kerberos on real Kafka: there and back, with controllers by Kerberos or by a password; a KDC away."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.files import replace_file
from migrate.hosts.properties import parse
from migrate.lab import kdc, secured
from migrate.lab.cluster import Lab
from migrate.lab.configure import make_secrets
from migrate.lab.topology import CONTROLLER, INTERNAL, KDC, Shape
from migrate.playbook.inventory import dump_inventory
from migrate.run import journal as journals
from migrate.zookeeper.client import access_of, connect
from migrate.zookeeper.layout import USER_CONFIGS, Absent
from tests.lab.commands import environment, kraft_migrate, to_its_end
from tests.testing.kerberos import needs_kdc

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

KERBERIZED = Shape(secured=True, mechanism="GSSAPI")
DEMO = ("lab", "demo", "--secured", "--mechanism", "GSSAPI", "--keep")
AWAY = "no KDC of the realm answers"
LONGEST = 600.0
ROLL = "roll-to-migration-mode"


def controllers_by_password(lab: Lab) -> None:
    """Before the first start: the controllers' listener takes PLAIN alone, the brokers' Kerberos alone."""
    plain = replace(lab.topology, mechanism="PLAIN", kdc_port=0)
    for name, text in secured.added_files(plain, make_secrets(plain)).items():
        replace_file(str(lab.topology.folder("conf", name)), text.encode())
    inventory = replace(lab.inventory, controller_access=secured.access(lab.topology, "PLAIN"))
    replace_file(str(lab.inventory_path), dump_inventory(inventory).encode())


@pytest.mark.parametrize("controllers", ["GSSAPI", "PLAIN"])
def test_a_cluster_with_kerberos_goes_there_and_back_and_there_again(controllers: str, directory: Path) -> None:
    """Back from half of the second roll; ZooKeeper's znodes are the brokers' principal's, and stay it."""
    needs_kdc()
    lab = Lab.create(directory, KERBERIZED)
    if controllers == "PLAIN":
        controllers_by_password(lab)
    words = ("--dir", str(directory), "--rollback-from", "half-kraft-mode", "--until", "cleanup")
    ended = to_its_end(directory, *DEMO, *words)
    assert ended.returncode == 0, ended.stderr[-4000:]
    story = json.loads((directory / "runs" / "rehearsal.json").read_text())
    assert story["proven"] is True
    assert story["load"]["missing"] == story["load"]["duplicated"] == 0
    names = [broker.name for broker in lab.topology.brokers] + [node.name for node in lab.topology.controllers]
    for name in names:
        values = parse(lab.topology.config(name).read_bytes())
        kinds = dict(entry.split(":") for entry in values["listener.security.protocol.map"].split(","))
        assert (kinds[INTERNAL], kinds[CONTROLLER]) == ("SASL_SSL", "SASL_SSL"), name
        assert values["sasl.mechanism.inter.broker.protocol"] == "GSSAPI"
        assert values["sasl.mechanism.controller.protocol"] == controllers


@pytest.fixture
def parked(directory: Path) -> Lab:
    """A lab with Kerberos, seeded, its controllers started."""
    needs_kdc()
    ended = kraft_migrate(*DEMO, "--dir", str(directory), "--until", "controllers", "--no-load")
    assert ended.returncode == 0, ended.stderr[-4000:]
    return Lab.open(directory)


def test_no_broker_is_stopped_while_the_kdc_is_away(parked: Lab) -> None:
    """It ends when the first roll is concluded: the run waits for it by name, and goes on once it is back."""
    with connect(parked.inventory.zookeeper, access=access_of(parked.inventory.zookeeper_login)) as client:
        assert client.sasl_user == "kafka"
    with connect(parked.inventory.zookeeper) as nobody:
        assert nobody.data([USER_CONFIGS]) == [Absent.DENIED]
    planned = kraft_migrate("plan", str(parked.playbook_path), "--stage", "migration-mode", "--output", "json")
    assert planned.returncode == 2, planned.stderr[-3000:] + planned.stdout[-3000:]
    plan = Path(parked.inventory.runs) / json.loads(planned.stdout)["fingerprint"][:8] / "plan.json"
    command = [sys.executable, "-m", "migrate", "apply", str(plan)]
    run = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal = plan.parent / "journal.jsonl"

    def told(name: str, holds: Callable[[dict[str, str]], bool]) -> int:
        found = journals.read(journal).events if journal.exists() else ()
        return sum(event.name == name and holds(dict(event.data)) for event in found)

    def until(reached: Callable[[], object]) -> None:
        deadline = time.monotonic() + LONGEST
        while not reached():
            assert run.poll() is None, run.communicate()[1][-3000:]
            assert time.monotonic() < deadline
            threading.Event().wait(0.1)

    def stops() -> int:
        return told("effect", lambda data: data["effect"] == "stop")

    try:
        until(lambda: told("conclude", lambda data: data["kind"] == ROLL) == 1)
        parked.supervisor.stop(KDC, 20.0)
        until(lambda: told("waiting", lambda data: AWAY in str(data)))
        before = stops()
        threading.Event().wait(20.0)
        assert (stops(), run.poll()) == (before, None)
        parked.supervisor.start(KDC)
        said = run.communicate(timeout=LONGEST)[1]
    finally:
        run.kill()
    print(said[-4000:], file=sys.stderr)
    assert run.returncode == 0, said[-4000:]
    assert stops() == len(parked.topology.brokers)
    assert kdc.keytab(parked.topology, "tool").exists()
