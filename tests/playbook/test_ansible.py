"""Hosts of an Ansible inventory and brokers: what fits once is filled in, everything else is named and stays a gap."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import AnsibleInventoryUnusable
from migrate.playbook.ansible import AnsibleHost, Matched, match_hosts, read_hosts
from migrate.playbook.load import load_inventory
from migrate.playbook.proposal import hosts_advertised, propose_inventory
from tests.playbook.test_proposal import broker, filled, with_brokers

DATA = Path(__file__).parents[1] / "data" / "ansible"
LISTED = (DATA / "hosts.json").read_bytes()
BROKERS = {number: {f"kafka-{number}"} for number in (1, 2, 3)}


def host(name: str, **values: Any) -> AnsibleHost:
    """A host with its variables."""
    return AnsibleHost(name, values)


def listed(**groups: object) -> bytes:
    """A listing of these groups."""
    return json.dumps({"_meta": {"hostvars": {}}, **groups}).encode()


def matched(*hosts: AnsibleHost, brokers: dict[int, set[str]] | None = None) -> Matched:
    """Those hosts with brokers 1 to 3."""
    return match_hosts(hosts, brokers or BROKERS)


def is_gap(text: str) -> bool:
    """Is it to be filled in?"""
    return text.startswith("<fill in")


def test_a_listing_of_ansible_fills_in_hosts_paths_and_units() -> None:
    """By the id where it is a number, by the name where the id is a template that nobody resolved."""
    found = match_hosts(read_hosts(LISTED, "hosts.json"), BROKERS)
    assert [found.places[number].host for number in BROKERS] == ["10.0.0.1", "10.0.0.2", "kafka-3"]
    assert {place.unit for place in found.places.values()} == {"kafka.service"}
    assert found.places[1].config == "/etc/kafka/server.properties"
    assert found.kafka_home == "/opt/kafka"
    assert "by broker_id" in found.places[1].said
    assert "by name" in found.places[2].said
    assert "ansible_user deploy, ansible_port 2222" in found.places[2].said
    assert is_gap(found.places[3].config)
    assert "kafka_config_path: {{ kafka_home }}" in found.places[3].config


def test_a_host_that_matches_no_broker_is_named() -> None:
    """With the id that it gives, if it gives one."""
    notes = match_hosts(read_hosts(LISTED, "hosts.json"), BROKERS).notes
    assert "kafka-7 (broker_id: 7) matches no broker: ZooKeeper knows no such id" in notes
    assert "hosts that match no broker: web-1" in notes


def test_one_group_leaves_the_others_out() -> None:
    """With the groups below it; a group that is not there is told with those that are."""
    assert [one.name for one in read_hosts(LISTED, "x", "kafka_broker")] == ["kafka-1", "kafka-2", "kafka-3"]
    below = listed(top={"children": ["low", "top"]}, low={"hosts": ["a"]}, other={"hosts": ["b"]})
    assert [one.name for one in read_hosts(below, "x", "top")] == ["a"]
    with pytest.raises(AnsibleInventoryUnusable, match="no group kafka"):
        read_hosts(LISTED, "x", "kafka")


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b"- hosts: all",
        b'{"_meta": {"hostvars": []}}',
        b'{"_meta": {"hostvars": {"a": 1}}}',
        b'{"_meta": {"hostvars": {}}, "g": {"hosts": {"a": {}}}}',
        b'{"_meta": {"hostvars": {}}, "g": ["a"]}',
        b'{"_meta": {"hostvars": {}, "hostvars": {}}}',
        b'{"_meta": {"hostvars": {}}, "all": {"children": ["ungrouped"]}}',
    ],
)
def test_what_is_no_listing_is_refused(raw: bytes) -> None:
    """Another shape, a key twice, and a listing without any host."""
    with pytest.raises(AnsibleInventoryUnusable) as caught:
        read_hosts(raw, "hosts.json")
    assert caught.value.where == "hosts.json"


def test_a_broker_without_a_host_is_named_and_stays_a_gap() -> None:
    """What it advertises is not taken for it: that was not asked for."""
    found = matched(host("kafka-1"), host("kafka-2"))
    assert "broker 3 has no host" in found.notes
    assert is_gap(found.places[3].host)
    assert is_gap(found.places[3].unit)


def test_two_hosts_of_one_broker_are_both_named_and_neither_is_taken() -> None:
    """Two clusters in one inventory have the same ids."""
    found = matched(host("kafka-1", broker_id=1), host("staging-1", broker_id=1))
    assert "broker 1 has more than one host: kafka-1, staging-1" in found.notes
    assert is_gap(found.places[1].host)
    assert "kafka-1, staging-1" in found.places[1].host


def test_an_id_goes_before_a_name() -> None:
    """The host that fits by its name alone is named."""
    found = matched(host("kafka-1", broker_id=1), host("other", ansible_host="kafka-1"))
    assert found.places[1].host == "kafka-1"
    assert "not used, for broker 1 has a host by its id: other" in found.notes


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"broker_id": 2}, "contradicts ZooKeeper"),
        ({"broker_id": 1, "kafka_broker_id": 2}, "contradicts itself"),
        ({"broker_id": 9}, "matches no broker"),
    ],
)
def test_a_contradiction_is_no_match(values: dict[str, object], said: str) -> None:
    """Of the id and the name, and of two ids."""
    found = matched(host("kafka-1", **values))
    assert any(said in note for note in found.notes)
    assert all(is_gap(place.host) for place in found.places.values())


def test_an_id_that_no_name_confirms_is_told() -> None:
    """It may be of another cluster."""
    found = matched(host("b1.internal", broker_id=1))
    assert found.places[1].host == "b1.internal"
    assert "by broker_id alone: ZooKeeper has kafka-1, check it" in found.places[1].said


def test_a_name_of_several_brokers_is_no_match() -> None:
    """Two brokers on one host: only ids tell them apart."""
    found = matched(host("box"), brokers={1: {"box"}, 2: {"box"}})
    assert "box is advertised by brokers [1, 2], and has no variable with an id" in found.notes
    assert is_gap(found.places[1].host)


def test_names_are_compared_as_dns_does() -> None:
    """Whatever their case, a last dot, and brackets."""
    found = matched(host("A"), host("x", ansible_host="fe80::1"), brokers={1: {"a."}, 2: {"[FE80::1]"}})
    assert [found.places[number].host for number in (1, 2)] == ["A", "fe80::1"]


@pytest.mark.parametrize(
    "values",
    [
        {"ansible_connection": "docker"},
        {"ansible_host": "{{ lookup('env', 'X') }}"},
        {"ansible_host": "-oProxyCommand=x"},
        {"ansible_host": 5},
    ],
)
def test_a_host_that_ssh_would_not_reach_by_that_name_is_a_gap(values: dict[str, object]) -> None:
    """Another connection, a template, an option, no text."""
    assert is_gap(matched(host("kafka-1", broker_id=1, **values), brokers={1: set()}).places[1].host)


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ({"kafka_unit": "kafka"}, "kafka.service"),
        ({"kafka_unit": "kafka.service", "kafka_service": "kafka"}, "kafka.service"),
        ({"kafka_unit": "kafka", "kraft_migrate_unit": "broker@1"}, "broker@1.service"),
        ({"kafka_unit": "kafka", "kafka_service": "other"}, ""),
        ({"kafka_service": {"name": "kafka"}}, ""),
        ({"kafka_unit": "--now"}, ""),
        ({"kafka_unit": "{{ x }}"}, ""),
        ({}, ""),
    ],
)
def test_a_unit_is_taken_where_the_variables_agree(values: dict[str, object], unit: str) -> None:
    """One of ours decides alone; a text that is no unit is a gap with what stands there."""
    found = matched(host("kafka-1", **values)).places[1].unit
    assert found == unit if unit else is_gap(found)


def test_kafkas_folder_is_taken_where_all_hosts_have_it() -> None:
    """Else it is a gap: the inventory has one for all of them."""
    assert matched(host("kafka-1", kafka_home="/opt/k"), host("kafka-2", kafka_home="/opt/k")).kafka_home == "/opt/k"
    assert is_gap(matched(host("kafka-1", kafka_home="/opt/k"), host("kafka-2")).kafka_home)


def test_other_values_and_arguments_of_ssh_are_not_shown() -> None:
    """They may hold passwords; a name that tries to write lines is spelled out."""
    found = match_hosts([*read_hosts(LISTED, "x"), host("evil\nspec:\u202e")], BROKERS)
    assert "never-shown" not in repr(found)
    assert "ansible_ssh_common_args" in found.places[3].said
    assert all(note.isascii() and note.isprintable() for note in found.notes)


def test_the_file_says_where_its_values_are_from_and_loads_when_filled_in(tmp_path: Path) -> None:
    """Notes stand at its head, the match beside each broker, one that is not registered too."""
    view = with_brokers(
        *(broker(number, {"A": f"kafka-{number}:9092"}, {"A": "PLAINTEXT"}) for number in (1, 2)),
    )
    view.partitions.replicas.append([3])
    advertised = hosts_advertised(view)
    assert advertised[1] == {"kafka-1"}
    assert advertised[3] == set()
    text = propose_inventory(view, "payments", "ssh", matched=match_hosts(read_hosts(LISTED, "x"), advertised))
    assert "# Ansible: hosts that match no broker: web-1" in text
    assert "        # Ansible: kafka-1; by broker_id" in text
    assert '        host: "10.0.0.1"' in text
    path = tmp_path / "inventory.yaml"
    path.write_text(
        filled(text.replace('unit: "<fill in', 'unit: k.service # "<fill in')).replace("config: b.", "config: /b.")
    )
    found = load_inventory(path)
    assert {int(node.id): node.host for node in found.brokers if node.id in (1, 2, 3)} == {
        1: "10.0.0.1",
        2: "10.0.0.2",
        3: "kafka-3",
    }
    assert found.executor_options["kafka_home"] == "/opt/kafka"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ansible-inventory") is None, reason="ansible-core is not installed")
def test_the_kept_listing_is_what_ansible_prints() -> None:
    """The hosts, their groups and their variables."""
    words = ["ansible-inventory", "-i", str(DATA / "hosts.yml"), "--list"]
    printed = subprocess.run(words, check=True, capture_output=True, timeout=120).stdout
    assert read_hosts(printed, "now") == read_hosts(LISTED, "kept")
