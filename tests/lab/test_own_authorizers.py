"""Authorizers of somebody else's on real Kafka: there, back, and there again to the end of a migration.

The classes are compiled here (`Policies.java`); alice is nobody to them.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.hosts.files import replace_file
from migrate.hosts.properties import edit, parse
from migrate.lab.cluster import Lab
from migrate.lab.configure import secret_path
from migrate.lab.seed import settings_for
from migrate.lab.supervisor import write_spec
from migrate.lab.topology import Shape
from tests.lab.commands import kraft_migrate, to_its_end
from tests.lab.one_topic import make_topic
from tests.testing.tiers import parts

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
ADMITTED: Final = "User:ANONYMOUS;User:admin"
SAME: Final = "example.Policies"
CLASSES: Final = {  # kind -> class in ZooKeeper mode, class in KRaft mode
    "same": (SAME, SAME),
    "successor": (f"{SAME}$OfZookeeper", f"{SAME}$OfKraft"),
}
SAID: Final = {
    "same": "own_classes: [example.Policies]",
    "successor": f"authorizer: {{kraft: {{class: {SAME}$OfKraft, properties: {{policies.of.kraft: '{ADMITTED}'}}}}}}",
}


def with_classes(directory: Path, kind: str) -> Lab:
    """A lab whose brokers ask such a class, up, with one topic; its jar is on every node's class path."""
    lab = Lab.create(directory, Shape())
    built = directory / "classes"
    built.mkdir()
    source, jars = Path(__file__).with_name("Policies.java"), os.pathsep.join(lab.topology.classpath())
    words = ("javac", "--release", "11", "-cp", jars, "-d", str(built), str(source))
    subprocess.run(words, check=True, capture_output=True, timeout=300)
    for spec in lab.supervisor.specs().values():
        if spec.node is not None:
            at = spec.argv.index("-cp") + 1
            argv = (*spec.argv[:at], f"{built}{os.pathsep}{spec.argv[at]}", *spec.argv[at + 1 :])
            write_spec(lab.topology.processes, replace(spec, argv=argv))
    own = {"authorizer.class.name": CLASSES[kind][0], "policies.admitted": ADMITTED}
    for broker in lab.topology.brokers:
        file = lab.topology.config(broker.name)
        replace_file(str(file), edit(file.read_bytes(), own, ()))
    lab.up()
    make_topic(lab)
    return lab


def decides(lab: Lab, topic: str) -> None:
    """The administrator makes a topic, alice does not: whoever is asked, a broker or a controller."""
    ours = settings_for(lab.topology)
    alice = {
        **ours,
        "sasl.username": "alice",
        "sasl.password": secret_path(lab.topology, "alice").read_text(encoding="ascii").strip(),
    }
    nobody, admin = AdminClient(alice), AdminClient(ours)
    with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
        nobody.create_topics([NewTopic(topic, 3, 3)])[topic].result(60)
    admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(60)


def carried_out(lab: Lab, *words: str, back: bool = False) -> None:
    """Planned and applied, to its end."""
    verb = ("rollback",) if back else ()
    ended = kraft_migrate(*verb, "plan", str(lab.playbook_path), *words, "--output", "json")
    assert ended.returncode == 2, ended.stdout[-3000:] + ended.stderr[-3000:]
    plan = json.loads(ended.stdout)
    path = Path(lab.inventory.runs) / plan["fingerprint"][:8] / "plan.json"
    confirm = ("--confirm", plan["fingerprint"], *(() if back else ("--confirm-cluster", lab.inventory.name)))
    ended = to_its_end(Path(lab.topology.directory), *verb, "apply", str(path), *confirm)
    assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]


def classes(lab: Lab) -> tuple[set[str], set[str]]:
    """What stands in the brokers' files, and in the controllers'."""
    brokers, controllers = (
        {parse(lab.topology.config(node.name).read_bytes())["authorizer.class.name"] for node in nodes}
        for nodes in (lab.topology.brokers, lab.topology.controllers)
    )
    return brokers, controllers


@pytest.mark.parametrize("kind", parts(CLASSES, each_commit=()))
def test_a_cluster_with_an_authorizer_of_its_own_goes_back_and_then_to_its_end(directory: Path, kind: str) -> None:
    """Without an answer no plan is ready; back from the second roll; the whole way; rights hold at every turn."""
    before, after = CLASSES[kind]
    lab = with_classes(directory, kind)
    decides(lab, "in-zookeeper-mode")
    ended = kraft_migrate("plan", str(lab.playbook_path))
    assert ended.returncode == 3, ended.stdout[-3000:] + ended.stderr[-3000:]
    assert f"class {before}" in ended.stdout
    text = lab.playbook_path.read_text(encoding="utf-8")
    assert text.count("\n  policy:\n") == 1
    lab.playbook_path.write_text(text.replace("\n  policy:\n", f"\n  policy:\n    {SAID[kind]}\n"), encoding="utf-8")
    originals = [lab.topology.config(broker.name).read_bytes() for broker in lab.topology.brokers]
    carried_out(lab, "--to", "hybrid")
    assert classes(lab) == ({before}, {after})
    decides(lab, "in-hybrid")
    carried_out(lab, "--to", "kraft-mode")
    assert classes(lab) == ({after}, {after})
    decides(lab, "in-kraft-mode")
    carried_out(lab, back=True)
    assert [lab.topology.config(broker.name).read_bytes() for broker in lab.topology.brokers] == originals
    decides(lab, "back")
    carried_out(lab)
    assert classes(lab) == ({after}, {after})
    decides(lab, "at-the-end")
