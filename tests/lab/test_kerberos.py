"""A cluster with Kerberos on real Kafka, to KRaft mode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.hosts.properties import parse
from migrate.lab.cluster import Lab
from migrate.lab.topology import CONTROLLER, INTERNAL, Shape
from tests.lab.by_kerberos import NODE, TOOL, by_kerberos
from tests.lab.commands import kraft_migrate
from tests.lab.one_topic import make_topic
from tests.testing.kerberos import needs_kdc, running_kdc

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]


def test_a_cluster_with_kerberos_migrates_to_kraft_mode(directory: Path, tmp_path: Path) -> None:
    """Brokers among themselves, controllers and the tool log in by GSSAPI; a JAAS file has the nodes' login."""
    needs_kdc()
    with running_kdc(tmp_path / "kerberos", NODE, TOOL) as kdc:
        lab = Lab.create(directory, Shape(controller_host="localhost"))
        access = by_kerberos(lab, kdc)
        with pytest.MonkeyPatch.context() as patched:  # the lab itself waits for its brokers by their INTERNAL listener
            patched.setattr("migrate.lab.ready.inner_access", lambda _: access)
            patched.setattr("migrate.lab.ready.HOST", "localhost")
            lab.up()
            make_topic(lab)
        ended = kraft_migrate("plan", str(lab.playbook_path), "--to", "kraft-mode", "--output", "json")
        assert ended.returncode == 2, ended.stdout[-3000:] + ended.stderr[-3000:]
        plan = Path(lab.inventory.runs) / json.loads(ended.stdout)["fingerprint"][:8] / "plan.json"
        ended = kraft_migrate("apply", str(plan))
        assert ended.returncode == 0, ended.stderr[-4000:]
        names = [broker.name for broker in lab.topology.brokers] + [node.name for node in lab.topology.controllers]
        for name in names:
            values = parse(lab.topology.config(name).read_bytes())
            kinds = dict(entry.split(":") for entry in values["listener.security.protocol.map"].split(","))
            assert (kinds[INTERNAL], kinds[CONTROLLER]) == ("SASL_PLAINTEXT", "SASL_PLAINTEXT"), name
            assert values["sasl.mechanism.controller.protocol"] == "GSSAPI"
        for words in (("directories", "verify"), ("diff",)):
            said = kraft_migrate(*words, "--inventory", str(lab.inventory_path))
            assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-2000:]
