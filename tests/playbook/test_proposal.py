"""An inventory written from a cluster: what it told stands there, what it did not is a gap that no command takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import DocumentInvalid, UsageWrong
from migrate.model.ids import NodeId
from migrate.model.secrets import Digester
from migrate.model.views import ZkBroker, ZookeeperView
from migrate.playbook.load import load_inventory
from migrate.playbook.proposal import Given, common_listener, controller_ids, propose_inventory, unregistered
from migrate.zookeeper.read import view_of
from tests.testing.clusters import zookeeper_view
from tests.testing.golden_trees import golden

ANSWERS = {
    "controller_listener": "CTRL",
    "inbox": "inbox",
    "kafka_home": "/opt/kafka",
    "unit": "kafka.service",
    "protocol": "PLAINTEXT",
    "config": "/etc/kafka/server.properties",
    "metadata_directory": "/kafka/metadata",
    "username": "admin",
}


def real() -> ZookeeperView:
    """A captured cluster of three brokers."""
    return view_of(golden("zk-before"), "zk1:2181,zk2:2181/a/b", Digester(b"k" * 32))


def broker(number: int, endpoints: dict[str, str], protocols: dict[str, str], rack: str | None = None) -> ZkBroker:
    """A registration."""
    return ZkBroker(NodeId(number), 1, tuple(f"{name}://{at}" for name, at in endpoints.items()), rack, 7, protocols)


def with_brokers(*brokers: ZkBroker) -> ZookeeperView:
    """A cluster of these."""
    return replace(zookeeper_view(), brokers={entry.id: entry for entry in brokers})


def filled(text: str, free_port: int = 7000) -> str:
    """The file with every gap filled in by its key."""
    lines = []
    for number, line in enumerate(text.splitlines()):
        key = re.match(r" *(?:- )?([a-z_]+):", line)
        value = ANSWERS.get(key[1] if key else "", f"host{number}")
        if key and key[1] == "address":
            value = f"host{number}:{free_port + number}"
        lines.append(re.sub(r'"<fill in.*>"', value, line))
    return "\n".join(lines)


def test_a_real_cluster_gives_its_brokers_chroot_and_id(tmp_path: Path) -> None:
    """Nothing of it is assumed; filled in, it loads."""
    view = real()
    path = tmp_path / "inventory.yaml"
    path.write_text(filled(propose_inventory(view, "payments", "manual")))
    found = load_inventory(path)
    assert found.zookeeper == "zk1:2181,zk2:2181/a/b"
    assert found.expect_cluster_id == view.cluster_id
    assert [node.id for node in found.brokers] == sorted(view.brokers)
    assert len(found.controllers) == 3
    assert not {node.id for node in found.brokers} & {node.id for node in found.controllers}


def test_a_broker_that_is_down_is_not_left_out(tmp_path: Path) -> None:
    """It holds replicas and is registered nowhere: an inventory without it would say nothing of its disks."""
    view = real()
    down = min(view.brokers)
    seen = replace(view, brokers={node: entry for node, entry in view.brokers.items() if node != down})
    assert unregistered(view) == []
    assert unregistered(seen) == [int(down)]
    text = propose_inventory(seen, "payments")
    assert f"- id: {int(down)}   # holds replicas, and is not registered in ZooKeeper" in text
    path = tmp_path / "inventory.yaml"
    path.write_text(filled(text))
    assert {node.id for node in load_inventory(path).brokers} == set(view.brokers)


def test_each_gap_that_is_left_is_told_with_its_line(tmp_path: Path) -> None:
    """All of them at once, and what belongs there."""
    path = tmp_path / "inventory.yaml"
    text = propose_inventory(real(), "payments")
    path.write_text(text)
    with pytest.raises(DocumentInvalid) as caught:
        load_inventory(path)
    assert len(caught.value.problems) == text.count('"<fill in') > 5
    told = [problem.what for problem in caught.value.problems]
    assert any("server.properties" in what for what in told)
    assert all(str(path) in problem.where for problem in caught.value.problems)


def test_one_gap_left_is_one_problem(tmp_path: Path) -> None:
    """The rest of the file may be right."""
    path = tmp_path / "inventory.yaml"
    whole = filled(propose_inventory(real(), "payments", "manual"))
    path.write_text(whole.replace("inbox: inbox", 'inbox: "<fill in: the folder>"'))
    with pytest.raises(DocumentInvalid, match=r"spec\.executor\.inbox is not filled in: the folder"):
        load_inventory(path)


@pytest.mark.parametrize(
    ("protocols", "expected"),
    [
        ({"IN": "PLAINTEXT"}, "IN"),
        ({"IN": "SASL_PLAINTEXT", "OUT": "SSL"}, "IN"),
        ({"IN": "PLAINTEXT", "OUT": "SASL_PLAINTEXT"}, None),
        ({"IN": "SSL"}, None),
        ({}, None),
    ],
)
def test_a_listener_is_taken_only_where_there_is_no_choice(protocols: dict[str, str], expected: str | None) -> None:
    """Its name says nothing; its protocol in the registration does."""
    ends = {name: f"h1:{9000 + index}" for index, name in enumerate(protocols)}
    assert common_listener([broker(1, ends, protocols), broker(2, ends, protocols)]) == expected


def test_brokers_that_differ_in_a_listener_have_none_in_common() -> None:
    """By name, and by protocol."""
    one = broker(1, {"A": "h:1"}, {"A": "PLAINTEXT"})
    assert common_listener([one, broker(2, {"B": "h:2"}, {"B": "PLAINTEXT"})]) is None
    assert common_listener([one, broker(2, {"A": "h:2"}, {"A": "SASL_PLAINTEXT"})]) is None
    assert common_listener([]) is None


def test_where_there_is_a_choice_the_listeners_are_named_beside_the_gap() -> None:
    """So that a person can choose."""
    both = broker(1, {"IN": "h1:9092", "OUT": "h1:9093"}, {"IN": "PLAINTEXT", "OUT": "SASL_PLAINTEXT"}, 'r"1\n')
    text = propose_inventory(with_brokers(both), "x")
    assert "IN (PLAINTEXT), OUT (SASL_PLAINTEXT)" in text
    assert "one of IN://h1:9092, OUT://h1:9093" in text
    assert 'host: "h1"' in text
    assert 'rack: "r\\"1\\n"' in text


def test_sasl_asks_for_a_user() -> None:
    """And for the file of its password, never the password."""
    text = propose_inventory(with_brokers(broker(1, {"A": "h:1"}, {"A": "SASL_PLAINTEXT"})), "x")
    assert "mechanism: PLAIN" in text
    assert "username:" in text
    assert "password: { file:" in text


def test_proposed_ids_are_nobodys() -> None:
    """Neither a broker's nor an id in a replica list."""
    view = with_brokers(*(broker(number, {"A": "h:1"}, {"A": "PLAINTEXT"}) for number in (3000, 3002)))
    view.partitions.replicas.append([3001])
    assert controller_ids(view) == [3003, 3004, 3005]


def test_what_is_given_is_no_gap_and_stands_once(tmp_path: Path) -> None:
    """Of thirty brokers with two listeners, and of the controllers; a listener that one of them lacks is refused."""
    endpoints, protocols = {"A": "h:1", "B": "h:2"}, {"A": "PLAINTEXT", "B": "PLAINTEXT"}
    own = [{name: at.replace("h", f"h{number}") for name, at in endpoints.items()} for number in range(30)]
    view = with_brokers(*(broker(number, own[number], protocols) for number in range(30)))
    given = Given("/etc/kafka/server.properties", "kafka.service", "B", ("kc1:9090", "kc2", "kc3"))
    text = propose_inventory(view, "x", "ssh", given=given)
    gaps = re.findall(r" *(.*): \"<fill in", text)
    assert gaps == ["kafka_home", "metadata_directory", "unit"]  # what neither ZooKeeper nor a default answers
    assert text.count("server.properties") == 1
    path = tmp_path / "inventory.yaml"
    path.write_text(filled(text))
    found = load_inventory(path)
    assert {(node.config, node.unit) for node in found.brokers} == {("/etc/kafka/server.properties", "kafka.service")}
    assert [node.address for node in found.brokers[:2]] == ["h0:2", "h1:2"]
    assert [node.address for node in found.controllers] == ["kc1:9090", "kc2:9093", "kc3:9093"]
    assert {node.config for node in found.controllers} == {"/etc/kafka/controller.properties"}
    assert (found.controller_listener, found.controller_access.protocol) == ("CONTROLLER", "PLAINTEXT")
    with pytest.raises(UsageWrong, match="not every broker has listener C"):
        propose_inventory(view, "x", given=Given(listener="C"))


def test_nothing_is_proposed_that_a_broker_has() -> None:
    """Its listener's name, its port, a protocol where there are several."""
    had = {"Controller": "h:9093", "A": "h:1"}
    view = with_brokers(broker(0, had, {"Controller": "SSL", "A": "PLAINTEXT"}))
    text = propose_inventory(view, "x", given=Given("/etc/kafka/broker.properties", controllers=("kc1",)))
    kept = text.partition("  controllers:")
    assert 'controller_listener: "<fill in' in kept[0]
    for key in ("protocol", "config", "address"):
        assert f'{key}: "<fill in' in kept[2]
