"""The files a lab starts with, and how its processes are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.hosts.properties import duplicates, parse
from migrate.java.find import Java
from migrate.java.jars import KafkaJars
from migrate.lab.configure import (
    LOG4J,
    LOG_FILES,
    USERS,
    broker_file,
    inventory_of,
    make_secrets,
    process_specs,
    secret_path,
    write_inventory,
    zookeeper_file,
)
from migrate.lab.topology import Shape, Topology, plan_topology
from migrate.model.inventory import Access
from migrate.playbook.load import load_inventory

JAVA = Java("/opt/java/bin/java", 17, "PATH")
JARS = KafkaJars(("/jars/a.jar", "/jars/b.jar"), "3.9.2")
PASSWORDS = {"encoder": "enc", "tokens": "tok", "admin": "adm", **{name: name + "-pw" for name in USERS}}


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    """A lab that exists on paper only."""
    return plan_topology(tmp_path)


def test_a_broker_is_in_zookeeper_mode_with_several_directories(topology: Topology) -> None:
    """Nothing of KRaft is in its file: the migration puts it there."""
    broker = topology.brokers[1]
    values = parse(broker_file(topology, broker, PASSWORDS).encode())
    assert values["broker.id"] == "1"
    assert values["zookeeper.connect"] == topology.zookeeper
    assert values["inter.broker.protocol.version"] == "3.9"
    assert values["log.dirs"].split(",") == list(broker.log_dirs)
    assert not [key for key in values if key.startswith(("process.", "node.", "controller.quorum"))]
    assert "zookeeper.metadata.migration.enable" not in values


def test_a_broker_listens_on_the_loopback_only_under_names_of_its_own(topology: Topology) -> None:
    """INTERNAL in clear text, CLIENT with a password."""
    values = parse(broker_file(topology, topology.brokers[0], PASSWORDS).encode())
    listeners = dict(entry.split("://") for entry in values["listeners"].split(","))
    assert set(listeners) == {"INTERNAL", "CLIENT"}
    assert all(address.startswith("127.0.0.1:") for address in listeners.values())
    assert values["listener.security.protocol.map"] == "INTERNAL:PLAINTEXT,CLIENT:SASL_PLAINTEXT"
    assert values["inter.broker.listener.name"] == "INTERNAL"


def test_rights_are_enforced_for_all_but_the_cluster_itself(topology: Topology) -> None:
    """Whoever has no ACL has no right; ANONYMOUS are brokers and controllers."""
    values = parse(broker_file(topology, topology.brokers[0], PASSWORDS).encode())
    assert values["authorizer.class.name"] == "kafka.security.authorizer.AclAuthorizer"
    assert values["allow.everyone.if.no.acl.found"] == "false"
    assert values["super.users"] == "User:ANONYMOUS;User:admin"
    jaas = values["listener.name.client.plain.sasl.jaas.config"]
    assert all(f'user_{name}="{PASSWORDS[name]}"' for name in ("admin", *USERS) if name in jaas)
    assert jaas.endswith(";")


def test_no_key_stands_twice_and_comments_are_there_to_be_kept(topology: Topology) -> None:
    """An edit must be seen to keep them."""
    text = broker_file(topology, topology.brokers[0], PASSWORDS)
    assert duplicates(text.encode()) == ()
    assert sum(line.startswith("#") for line in text.splitlines()) >= 5


def test_kafka_logs_by_the_labs_own_configuration(topology: Topology) -> None:
    """Nodes and the storage tool alike."""
    for spec in process_specs(topology, JAVA, JARS, {}):
        for argv in (spec.argv, *([spec.format_argv] if spec.format_argv else [])):
            (word,) = (word for word in argv if word.startswith("-Dlog4j"))
            assert word.startswith("-Dlog4j.conf")
            assert word.rpartition("/")[2] in LOG_FILES


def test_zookeeper_keeps_its_data_in_the_lab(topology: Topology) -> None:
    """On the loopback, without its admin server's extra port."""
    values = parse(zookeeper_file(topology).encode())
    assert Path(values["dataDir"]).is_relative_to(topology.directory)
    assert values["clientPortAddress"] == "127.0.0.1"
    assert values["admin.enableServer"] == "false"


def test_every_process_is_described_with_its_own_log(topology: Topology) -> None:
    """Controllers too, though their files are rendered later."""
    specs = process_specs(topology, JAVA, JARS, {"PATH": "/bin"})
    assert [spec.name for spec in specs] == [
        "zookeeper",
        *(f"broker-{number}" for number in range(3)),
        *(f"controller-{number}" for number in range(3000, 3003)),
    ]
    assert len({spec.log for spec in specs}) == len({spec.output for spec in specs}) == 7
    for spec in specs:
        assert spec.argv[0] == JAVA.path
        assert spec.argv[-1] == spec.config
        assert f"-Dlab.log={spec.log}" in spec.argv
        assert spec.environment == {"PATH": "/bin"}
    assert "${lab.log}" in LOG4J


def test_only_nodes_of_kafka_can_be_formatted(topology: Topology) -> None:
    """kafka-storage with the same Java and jars: of controllers, and of directories that a broker gets."""
    specs = {spec.name: spec for spec in process_specs(topology, JAVA, JARS, {})}
    assert specs["zookeeper"].format_argv == ()
    for name in ("controller-3000", "broker-0"):
        assert specs[name].format_argv[-2:] == ("kafka.tools.StorageTool", "format")
        assert "/jars/a.jar:/jars/b.jar" in specs[name].format_argv


def test_secrets_are_files_of_their_own_made_once(topology: Topology) -> None:
    """Mode 0600, none like another, kept by the next call."""
    first = make_secrets(topology)
    assert make_secrets(topology) == first
    assert len(set(first.values())) == len(first)
    for name, value in first.items():
        path = secret_path(topology, name)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text().strip() == value
    assert secret_path(topology, "").stat().st_mode & 0o777 == 0o700


def test_no_secret_stands_in_an_argv_an_environment_or_the_inventory(topology: Topology) -> None:
    """Everybody on the host reads those."""
    found = make_secrets(topology)
    write_inventory(inventory_of(topology))
    public = topology.inventory.read_text()
    public += repr(process_specs(topology, JAVA, JARS, {"PATH": "/bin"}))
    assert not [name for name, value in found.items() if value in public]


def test_jmx_is_offered_by_brokers_alone_and_stands_in_the_inventory(tmp_path: Path) -> None:
    """On the loopback interface, and only where the lab was made so."""
    lab = plan_topology(tmp_path, Shape(jmx=True))
    specs = {spec.name: " ".join(spec.argv) for spec in process_specs(lab, JAVA, JARS, {})}
    for broker in lab.brokers:
        assert f"-Dcom.sun.management.jmxremote.port={broker.jmx_port}" in specs[broker.name]
        assert "-Dcom.sun.management.jmxremote.host=127.0.0.1" in specs[broker.name]
    assert not [name for name, argv in specs.items() if "jmxremote" in argv and not name.startswith("broker-")]
    write_inventory(inventory_of(lab))
    found = load_inventory(lab.inventory)
    assert found == inventory_of(lab)
    assert [node.jmx for node in found.brokers] == [f"127.0.0.1:{broker.jmx_port}" for broker in lab.brokers]
    plain = process_specs(plan_topology(tmp_path / "plain"), JAVA, JARS, {})
    assert not [spec.name for spec in plain if "jmxremote" in " ".join(spec.argv)]


def test_the_inventory_reads_back_as_it_was_meant(topology: Topology) -> None:
    """By the same loader that every command uses, and from wherever it is called."""
    write_inventory(inventory_of(topology))
    found = load_inventory(topology.inventory)
    assert found == inventory_of(topology)
    assert found.broker_access.username == "admin"
    assert found.controller_access == Access()
    assert found.executor_options["host_program"] == str(topology.folder("host", "program", "host"))
    assert found.voters.startswith(f"3000@127.0.0.1:{topology.controllers[0].port},")
