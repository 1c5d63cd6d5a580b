"""A listener that dies, or changes, in the second roll stops the run before the next broker: TLS with PEM and PKCS12.

In ZooKeeper mode broker 0's listener EXTERNAL lives by a dynamic key store alone (KAFKA-17431), broker 1's by its file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from migrate.hosts.files import replace_file
from migrate.hosts.properties import edit, parse
from migrate.kafka.listeners import meet
from migrate.lab.cluster import Lab
from migrate.lab.secured import Authority
from migrate.lab.seed import create_topics, settings_for
from migrate.lab.seed_data import SeedTopic
from migrate.lab.topology import HOST, Shape, free_ports
from migrate.model.broker_modes import node_mode
from migrate.model.listeners import Served
from migrate.run import journal as journals
from tests.lab.commands import kraft_migrate

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

REFUSED, PLANNED = 3, 2
PASSWORD = "of-the-store"
PREFIX = "listener.name.external.ssl.keystore"
HOSTS = ("localhost", HOST)
LEFT_OUT = {  # by Kafka, in ZooKeeper mode and in KRaft mode: with any of it a broker's listener would be dead
    "<default>": {f"{PREFIX}.location": "/nowhere", "listeners": "NEW://nowhere:1"},
    1: {"ssl.keystore.location": "/nowhere"},
}


@dataclass
class Story:
    """What was seen, in order."""

    lab: Lab
    before: dict[int, Served]
    dead: subprocess.CompletedProcess[str]
    modes: dict[int, str]  # of the files, when the run stopped
    after_dead: Served
    changed: subprocess.CompletedProcess[str]
    ended: subprocess.CompletedProcess[str]
    evidence: str


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All of it, once."""
    lab = Lab.create(tmp_path_factory.mktemp("listeners") / "lab", Shape(brokers=2, controllers=1))
    try:
        yield tell(lab)
    finally:
        lab.down()


def tell(lab: Lab) -> Story:
    """Roll 2 with a dead listener, its repair, a replaced store, and the way on."""
    authority, stores = Authority.make("an authority"), lab.topology.folder("stores")
    stores.mkdir()
    pem, p12 = stores / "zero.pem", stores / "one.p12"
    good, other = authority.issue("one", HOSTS), authority.issue("one", ("localhost",))
    replace_file(str(pem), authority.issue("zero", HOSTS).pem)
    replace_file(str(p12), good.pkcs12(PASSWORD))
    add_listener(lab, {1: {f"{PREFIX}.type": "PKCS12", f"{PREFIX}.location": str(p12), f"{PREFIX}.password": PASSWORD}})
    text = lab.playbook_path.read_text().replace("[3000, 3001, 3002]", "[3000]")
    lab.playbook_path.write_text(re.sub(r"\n      brokers:\n        2: drive.*", "", text))
    lab.up()
    only_dynamic = {f"{PREFIX}.type": "PEM", f"{PREFIX}.location": str(pem)}
    set_dynamic(lab, 0, only_dynamic)
    for entity, left_out in LEFT_OUT.items():
        set_dynamic(lab, entity, left_out)
    restart(lab, 0)
    restart(lab, 1)
    before = {broker: external(lab, broker) for broker in (0, 1)}
    create_topics(AdminClient(settings_for(lab.topology)), [SeedTopic("kept", 4, 2)])
    refused = kraft_migrate("plan", str(lab.playbook_path), "--to", "kraft-mode")
    said = refused.stdout + refused.stderr
    assert re.findall(r"B-SEC-20 +broker (\d)", said) == ["0"], said
    path = plan(lab, "tests.lab.unchecked")
    dead = kraft_migrate("apply", str(path), module="tests.lab.unchecked")
    print(dead.stderr[-6000:], file=sys.stderr)
    modes = {broker: str(node_mode(values(lab, broker))) for broker in (0, 1)}
    after_dead = external(lab, 0)
    # as the next step says
    change(lab, 0, only_dynamic)
    restart(lab, 0)
    replace_file(str(p12), other.pkcs12(PASSWORD))
    changed = kraft_migrate("apply", str(path))
    replace_file(str(p12), good.pkcs12(PASSWORD))
    restart(lab, 1)
    ended = kraft_migrate("apply", str(path))
    events = journals.read(path.parent / "journal.jsonl").events
    told = [e.data["evidence"] for e in events if e.name == "conclude" and e.data["step"] == "kraft-mode/1"]
    return Story(lab, before, dead, modes, after_dead, changed, ended, "\n".join(told[-1]))


def values(lab: Lab, broker: int) -> dict[str, str]:
    """Of its file."""
    return parse(lab.topology.config(f"broker-{broker}").read_bytes())


def external(lab: Lab, broker: int) -> Served:
    """What its listener serves now."""
    return meet(lab.inventory.brokers[broker], values(lab, broker))["EXTERNAL"]


def change(lab: Lab, broker: int, lines: dict[str, str]) -> None:
    """In its file."""
    path = lab.topology.config(f"broker-{broker}")
    replace_file(str(path), edit(path.read_bytes(), lines, ()))


def add_listener(lab: Lab, stores: dict[int, dict[str, str]]) -> None:
    """EXTERNAL, of protocol SSL, on each broker."""
    for broker, port in zip((0, 1), free_ports(2), strict=True):
        now = values(lab, broker)
        listeners = f"{now['listeners']},EXTERNAL://{HOST}:{port}"
        protocols = f"{now['listener.security.protocol.map']},EXTERNAL:SSL"
        lines = {"listeners": listeners, "listener.security.protocol.map": protocols}
        change(lab, broker, lines | stores.get(broker, {}))


def set_dynamic(lab: Lab, broker: object, config: dict[str, str]) -> None:
    """As `kafka-configs --zookeeper` did: before the broker starts."""
    client = KazooClient(hosts=lab.topology.zookeeper)
    client.start()
    try:
        client.create(f"/config/brokers/{broker}", json.dumps({"version": 1, "config": config}).encode())
    finally:
        client.stop()
        client.close()


def restart(lab: Lab, broker: int) -> None:
    """By hand."""
    lab.supervisor.stop(f"broker-{broker}", 60)
    lab.supervisor.start(f"broker-{broker}")
    lab.up()


def plan(lab: Lab, module: str) -> Path:
    """To the end of the second roll."""
    made = kraft_migrate("plan", str(lab.playbook_path), "--to", "kraft-mode", "--output", "json", module=module)
    assert made.returncode == PLANNED, made.stderr[-3000:] + made.stdout[-3000:]
    fingerprint: str = json.loads(made.stdout)["fingerprint"]
    return Path(lab.inventory.runs) / fingerprint[:8] / "plan.json"


def test_both_listeners_served_before(story: Story) -> None:
    """By the dynamic key store, and by the file's."""
    assert {broker: found.certificate.subject for broker, found in story.before.items() if found.certificate} == {
        0: "CN=zero",
        1: "CN=one",
    }


def test_a_dead_listener_stops_the_run_before_the_next_broker(story: Story) -> None:
    """It says which, what it served, what it serves, why, and what to do."""
    assert story.dead.returncode == REFUSED, story.dead.stderr[-3000:]
    for words in (
        "step kraft-mode/0",
        "listener EXTERNAL served SSL, certificate CN=zero",
        "it serves now nothing",
        "Per-broker configs of 0 could not be applied",
        "KAFKA-17431",
        "broker-0.properties",
        "give the same command again",
    ):
        assert words in story.dead.stderr, story.dead.stderr[-3000:]
    assert story.after_dead.refused
    assert story.modes == {0: "kraft", 1: "migration"}


def test_a_store_that_was_replaced_by_another_stops_it_too(story: Story) -> None:
    """A name of the certificate is missing."""
    assert story.changed.returncode == REFUSED, story.changed.stderr[-3000:]
    assert "listener EXTERNAL served SSL, certificate CN=one, for 127.0.0.1, localhost" in story.changed.stderr
    assert "it serves now SSL, certificate CN=one, for localhost" in story.changed.stderr


def test_repaired_as_told_the_same_command_goes_on(story: Story) -> None:
    """With all of its listeners proven."""
    assert story.ended.returncode == 0, story.ended.stderr[-3000:]
    assert "listeners that serve what they served: CLIENT, EXTERNAL, INTERNAL" in story.evidence
