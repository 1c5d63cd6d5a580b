"""Ports of controllers to come: planned apart, free before the start; what was not seen is said."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.checks import NEVER
from migrate.checks.quorum import port_of, voteless
from migrate.hosts.properties import parse
from migrate.model.config_keys import QuorumKind
from migrate.model.findings import Severity
from migrate.model.ids import NodeId
from migrate.model.inventory import Access
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ControllerRegistration, Running
from tests.checks.bends import bound, of, placed, then, values
from tests.checks.cases import misplaced, on_disk
from tests.testing import worlds
from tests.testing.clusters import uuid
from tests.testing.worlds import with_kraft, with_live, world_at

PLAIN = world_at(Stage.PREPARE)


@pytest.mark.parametrize(
    ("address", "port"),
    [
        ("b1:9092", 9092),
        ("[::1]:9092", 9092),
        (":9092", 9092),
        ("b1:0", None),
        ("b1", None),
        ("b1:99999", None),
        ("b:x", None),
    ],
)
def test_the_port_of_an_address(address: str, port: int | None) -> None:
    """As listeners are written; nothing is made up."""
    assert port_of(address) == port


@pytest.mark.parametrize(
    ("host", "address", "says"),
    [
        ("b1", "b1:9092", "the listener INTERNAL of broker 1"),
        ("b1", "b1:9093", "the listener CLIENT of broker 1"),
        ("B1", "b1:9092", "the listener INTERNAL of broker 1"),
        ("zk1", "zk1:2181", "the client port of ZooKeeper server zk1:2181"),
        ("c3000", "c3000:9090", "the controller listener of controller 3001"),
    ],
)
def test_who_has_the_port_already_is_named(host: str, address: str, says: str) -> None:
    """Brokers by their files, ZooKeeper by its address, each other."""
    (found,) = of(placed(3001, host=host, address=address)(PLAIN), "B-NET-03")
    assert says in found.message


@pytest.mark.parametrize(("host", "address"), [("b1", "b1:9094"), ("b9", "b9:9092"), ("zk1", "zk1:2182")])
def test_another_port_or_another_host_is_fine(host: str, address: str) -> None:
    """A controller beside a broker is usual."""
    assert of(placed(3001, host=host, address=address)(PLAIN), "B-NET-03") == []


def test_jmx_ports_are_planned_too() -> None:
    """Of two controllers on one host, and against their listeners."""
    two = then(placed(3000, host="h", jmx="h:7000"), placed(3001, host="h", address="h:9091", jmx="h:7000"))
    (found,) = of(two(PLAIN), "B-NET-03")
    assert found.message == ("port 7000 of h is the JMX port of controller 3000 and the JMX port of controller 3001")


def test_a_broker_without_listeners_in_its_file_has_the_inventorys_port() -> None:
    """Kafka's default listener is not guessed; the address that answers is known."""
    world = then(values(1, listeners=None), placed(3001, host="b1", address="b1:9092"))(PLAIN)
    assert "the listener of broker 1" in of(world, "B-NET-03")[0].message


def test_a_file_that_was_not_read_is_a_blind_spot_where_a_controller_is_beside() -> None:
    """And none elsewhere."""
    assert not isinstance(PLAIN.configs, Unknown)
    dark = replace(PLAIN, configs={**PLAIN.configs, NodeId(1): Unknown("denied")})
    assert of(dark, "B-NET-03") == []
    (found,) = of(placed(3001, host="b1", address="b1:9099")(dark), "B-NET-03")
    assert found.severity is Severity.BLIND_SPOT


@pytest.mark.parametrize(
    ("address", "listens", "hit"),
    [
        ("c3000:9090", "0.0.0.0", True),
        ("c3000:9090", "::", True),
        ("c3000:9090", "10.0.0.7", True),
        ("c3000:9090", "127.0.0.1", False),
        ("127.0.0.1:9090", "127.0.0.1", True),
        ("localhost:9090", "::1", True),
        ("localhost:9090", "10.0.0.7", False),
        ("localhost:9090", "127.0.1.1", False),
        ("localhost:9090", "127.0.0.1", True),
        ("127.0.0.1:9090", "127.0.0.2", False),
        ("127.0.0.1:9090", "0.0.0.0", True),
        ("10.0.0.7:9090", "10.0.0.7", True),
        ("10.0.0.7:9090", "10.0.0.8", False),
        ("[::1]:9090", "::1", True),
    ],
)
def test_a_socket_bars_the_controller_where_both_would_bind_the_same(address: str, listens: str, hit: bool) -> None:
    """One on loopback leaves other addresses free."""
    world = then(placed(3000, address=address), bound(3000, listens, 9090))(PLAIN)
    assert bool(of(world, "B-NET-04")) is hit


def test_a_controllers_own_socket_is_no_stranger() -> None:
    """It runs: the port is its own."""
    assert not isinstance(PLAIN.services, Unknown)
    running = replace(PLAIN, services={**PLAIN.services, NodeId(3000): Running(1, 0.0, None)})
    assert of(bound(3000, "0.0.0.0", 9090)(running), "B-NET-04") == []


def test_hosts_that_were_not_asked_are_told_and_bar_nothing() -> None:
    """Nor is a process that nobody saw taken for stopped."""
    assert not isinstance(PLAIN.services, Unknown)
    bend = bound(3000, "0.0.0.0", 9090)
    unseen = of(replace(PLAIN, ports=Unknown("not asked")), "B-NET-04")
    hidden = of(bend(replace(PLAIN, services={**PLAIN.services, NodeId(3000): Unknown("dark")})), "B-NET-04")
    assert [(found.severity, found.blocks_from) for found in (*unseen, *hidden)] == [(Severity.BLIND_SPOT, NEVER)] * 2


def test_a_broker_can_be_unregistered_and_a_controller_of_3_9_cannot() -> None:
    """`kafka-cluster unregister` is for brokers alone (W-QRM-07)."""
    world = world_at(Stage.HYBRID)
    view = worlds.kraft(world)
    ghost = ControllerRegistration(NodeId(3009), uuid(2), migration_ready=True)
    brokers = {**view.brokers, NodeId(9): replace(view.brokers[NodeId(1)], id=NodeId(9))}
    bent = with_kraft(world, brokers=brokers, controllers={**view.controllers, NodeId(3009): ghost})
    broker, controller = of(bent, "W-QRM-07")
    assert (broker.about, controller.about) == ("broker 9", "controller 3009")
    assert "kafka-cluster.sh unregister --bootstrap-server" in broker.fix
    assert "no command of Kafka 3.9 to 4.3" in controller.fix
    assert "4.4-IV2" in controller.fix


def test_a_file_with_other_voters_is_told_by_the_key_that_it_has() -> None:
    """A dynamic quorum's node finds it by voters where it has no other key: what is wrong is not the missing one."""
    bent = values(3001, controller__quorum__voters="3000@other:1", controller__quorum__bootstrap__servers=None)
    world = bent(world_at(Stage.MIGRATION_MODE))
    world = replace(world, inventory=replace(world.inventory, quorum=QuorumKind.DYNAMIC))
    (found,) = (entry for entry in of(world, "B-QRM-01") if "3000@other:1" in entry.message)
    wanted = "controller.quorum.bootstrap.servers=c3000:9090,c3001:9090,c3002:9090"
    assert found.message == f"controller.quorum.voters is 3000@other:1, the inventory gives {wanted}"


def test_the_printed_commands_log_in_where_the_controllers_ask_for_it() -> None:
    """To add one, Kafka takes the login and the controller's own settings from one file."""
    quorum, world = misplaced(observed=True), replace(world_at(Stage.MIGRATION_MODE), disks=Unknown("no host answers"))
    ((_, _, plain),) = voteless(quorum, world)
    assert "admin.properties" not in plain
    access = Access("SASL_SSL", "PLAIN", "admin")
    ((_, _, cure),) = voteless(quorum, replace(world, inventory=replace(world.inventory, controller_access=access)))
    remove, merged, add, gone = cure.split("`")[1::2]
    assert " --command-config admin.properties remove-controller " in remove
    (config,) = {node.config for node in world.inventory.controllers if node.id == 3001}
    assert merged == f"(umask 077; {{ cat {config}; echo; cat admin.properties; }} > joining.properties)"
    assert add.endswith(" --command-config joining.properties add-controller")
    assert gone == "rm joining.properties"


@pytest.mark.parametrize("config", ["node.id=3001", "node.id=3001\n"])
def test_the_login_begins_a_line_of_its_own(config: str, tmp_path: Path) -> None:
    """A file without a final newline is a good file, and its last line and the login's first would be one."""
    (tmp_path / "own").write_text(config)
    (tmp_path / "admin.properties").write_text("sasl.mechanism=PLAIN\n")
    world = placed(3001, config="own")(replace(world_at(Stage.MIGRATION_MODE), disks=Unknown("no host answers")))
    inventory = replace(world.inventory, controller_access=Access("SASL_SSL", "PLAIN", "admin"))
    ((_, _, cure),) = voteless(misplaced(observed=True), replace(world, inventory=inventory))
    (merged,) = (word for word in cure.split("`") if "umask" in word)
    subprocess.run(["sh", "-c", merged], cwd=tmp_path, check=True)
    made = tmp_path / "joining.properties"
    assert parse(made.read_bytes()) == {"node.id": "3001", "sasl.mechanism": "PLAIN"}
    assert made.stat().st_mode & 0o777 == 0o600


def test_a_controller_that_was_only_formatted_is_started_before_it_gets_its_vote() -> None:
    """Kafka adds only one that has caught up; on its disk is another directory id, and nobody has seen it fetch."""
    world = on_disk(world_at(Stage.MIGRATION_MODE))
    ((said, cure),) = ((said, cure) for node, said, cure in voteless(misplaced(observed=False), world) if node == 3001)
    assert "its metadata directory has" in said
    start, remove, add = (cure.index(word) for word in ("start it if it does not run", "remove-", "add-controller"))
    assert start < remove < add


def test_the_printed_commands_are_whole_however_long() -> None:
    """A path may be long, and a command that is cut somewhere may do something else."""
    config = f"/{'etc/' * 100}controller.properties"
    world = with_live(placed(3001, config=config)(world_at(Stage.MIGRATION_MODE)), quorum=misplaced(observed=True))
    (found,) = (entry for entry in of(world, "B-QRM-05") if entry.about == "controller 3001")
    assert f"--command-config {config} add-controller`" in found.fix
