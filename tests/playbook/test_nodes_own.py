"""What one node of an inventory may have for itself: its Kafka, its access, how its host is worked."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import migrate
from migrate.errors import DocumentInvalid
from migrate.model.inventory import Access, OwnExecutor, SecretFile, Store
from migrate.playbook.load import dump_inventory, load_inventory

INVENTORY = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {name: c}
spec:
  zookeeper: zk:2181/kafka
  controller_listener: CTL
  executor: {kind: KIND}
  brokers:
    access: {protocol: SSL}
    nodes:
      - {id: 1, host: h1, address: "h1:9092", config: /c/1, unit: k.service}
      - {id: 2, host: h2, address: "h2:9092", config: /c/2, unit: k.service, OWN}
  controllers:
    access: {protocol: SSL}
    nodes:
      - {id: 3000, host: h3, address: "h3:9093", config: /c/3, metadata_directory: /m/3, unit: c.service, CONTROLLER}
"""
KINDS = {
    "ssh": "ssh, kafka_home: /opt/kafka, sudo: false",
    "local": "local, kafka_home: /opt/kafka",
    "manual": "manual, inbox: inbox",
}
SCRAM = "access: {protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: ops, password: {file: pw}}"


def written(folder: Path, own: str, controller: str = "jmx: 'h3:9999'", kind: str = "ssh") -> Path:
    """An inventory on disk, with keys for broker 2 and for the controller."""
    text = INVENTORY.replace("KIND", KINDS[kind]).replace("OWN", own).replace("CONTROLLER", controller)
    path = folder / "inventory.yaml"
    path.write_text(text)
    return path


def test_a_nodes_own_settings_take_the_place_of_what_is_said_for_all(tmp_path: Path) -> None:
    """Whole: of an access nothing is mixed with the others'; what is not said is as for the others."""
    path = written(
        tmp_path,
        f"kafka_home: /srv/k, {SCRAM}, executor: {{kind: local, host_program: /p/host, sudo: true}}",
        "access: {protocol: SSL, keystore: {path: k.pem, type: PEM}}, executor: {sudo: true}",
    )
    found = load_inventory(path)
    first, second, third = found.nodes
    assert [found.kafka_home_of(node) for node in found.nodes] == ["/opt/kafka", "/srv/k", "/opt/kafka"]
    assert found.access_of(first) == Access("SSL")
    assert found.access_of(second) == Access("SASL_SSL", "SCRAM-SHA-512", "ops", SecretFile(f"{tmp_path}/pw"))
    assert found.access_of(third) == Access("SSL", keystore=Store(f"{tmp_path}/k.pem", "PEM"))
    assert [found.executor_of(node) for node in found.nodes] == ["ssh", "local", "ssh"]
    assert [found.options_of(node)["sudo"] for node in found.nodes] == ["no", "yes", "yes"]
    assert found.options_of(second)["host_program"] == "/p/host"
    assert second.executor == OwnExecutor("local", "/p/host", sudo=True)
    assert found.cluster_access == ((first,), Access("SSL"))


def test_they_are_written_and_read_back_and_change_the_inventorys_sum(tmp_path: Path) -> None:
    """A bundle holds them; a plan is bound to them."""
    plain = load_inventory(written(tmp_path, "rack: r"))
    path = written(tmp_path, f"rack: r, kafka_home: /srv/k, {SCRAM}, executor: {{kind: local, sudo: false}}")
    found = load_inventory(path)
    assert found.sha256 != plain.sha256
    path.write_text(dump_inventory(found))
    assert load_inventory(path) == found
    path.write_text(dump_inventory(replace(found, brokers=plain.brokers)))
    assert load_inventory(path) == plain


@pytest.mark.parametrize("kind", ["local", "ssh", "manual"])
def test_wherever_an_executor_names_kafka_a_node_may_name_another(kind: str, tmp_path: Path) -> None:
    """Instructions to people name it too."""
    found = load_inventory(written(tmp_path, "kafka_home: /srv/k", kind=kind))
    assert found.kafka_home_of(found.brokers[1]) == "/srv/k"


@pytest.mark.parametrize(
    ("own", "kind", "line", "says"),
    [
        ("kafka_home: srv/k", "ssh", 12, "kafka_home is no absolute path"),
        ("executor: {host_program: host}", "ssh", 12, "host_program is no absolute path"),
        ("executor: {kind: ssh}", "local", 12, "node 2 has ssh beside local"),
        ("executor: {kind: local}", "manual", 12, "node 2 has an executor of its own beside manual"),
        ("executor: {kind: manual}", "ssh", 12, "manual"),
        ("executor: {state: x}", "ssh", 12, "state"),
        ("access: {protocol: SASL_SSL, mechanism: PLAIN, username: a}", "ssh", 12, "password is missing"),
        ("access: {protocol: PLAINTEXT, username: a}", "ssh", 12, "username without SASL"),
    ],
)
def test_what_cannot_be_is_refused_at_its_line(own: str, kind: str, line: int, says: str, tmp_path: Path) -> None:
    """Before anything is reached."""
    with pytest.raises(DocumentInvalid) as caught:
        load_inventory(written(tmp_path, own, kind=kind))
    assert says in str(caught.value)
    assert f"inventory.yaml:{line}:" in str(caught.value)


def test_only_local_and_ssh_are_mixed_and_the_refusal_says_so(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(DocumentInvalid) as caught:
        load_inventory(written(tmp_path, "executor: {sudo: false}", kind="manual"))
    assert caught.value.why == "manual works every node; only `local` and `ssh` can be mixed"
    with pytest.raises(DocumentInvalid) as caught:
        load_inventory(written(tmp_path, "executor: {kind: ssh}", kind="local"))
    assert "make spec.executor `kind: ssh`" in caught.value.next_step


@pytest.mark.parametrize("own", ["executor: {sudo: true}", "executor: {host_program: /p/x}", "executor: {kind: local}"])
def test_nodes_of_one_host_are_worked_in_one_way(own: str, tmp_path: Path) -> None:
    """It has one host program."""
    path = written(tmp_path, own)
    path.write_text(path.read_text().replace("host: h3", "host: h2"))
    with pytest.raises(DocumentInvalid, match="node 3000 has another executor than node 2 of the same host h2"):
        load_inventory(path)
    path.write_text(path.read_text().replace("jmx: 'h3:9999'", own))
    assert {node.host for node in load_inventory(path).nodes if node.executor} == {"h2"}


def test_the_host_of_the_tool_is_one(tmp_path: Path) -> None:
    """Two hosts cannot both be this one."""
    with pytest.raises(DocumentInvalid, match="node 3000 on h3 is local, and so is node 2"):
        load_inventory(written(tmp_path, "executor: {kind: local}", "executor: {kind: local}"))


def test_the_controllers_listener_has_one_protocol(tmp_path: Path) -> None:
    """Every file names it for that listener; user and stores may differ."""
    with pytest.raises(DocumentInvalid, match="controller 3000 has PLAINTEXT, the controllers have SSL"):
        load_inventory(written(tmp_path, "rack: r", "access: {protocol: PLAINTEXT}"))


def test_only_the_inventory_decides_what_opens_a_node() -> None:
    """Whoever connects asks `access_of`: what is said for all is read in two places, but for the quorum's protocol."""
    for_all = re.compile(r"\.(broker|controller)_access\b(?!\.protocol)")
    package = Path(migrate.__file__).parent
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if for_all.search(path.read_text())}
    assert found == {"model/inventory.py", "playbook/inventory.py"}
