"""The controllers' logins for ZooKeeper, from real JAAS files, tried at a real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.executors import executor_of
from migrate.hosts.files import LocalFiles
from migrate.hosts.launches import launches
from migrate.hosts.supervisor import ProcessSpec, write_spec
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, ZookeeperLogin
from migrate.model.launch import Launch, NoZookeeperClient, ZookeeperClient
from migrate.model.outcome import Unknown
from migrate.model.views import Stopped
from migrate.observe.zookeeper_logins import with_zookeeper_clients
from tests.testing import worlds
from tests.testing.secured_zookeeper import MODULE, login, sasl_server
from tests.testing.zookeeper_server import ZookeeperServer

NODE = NodeId(3000)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """It knows `kafka`."""
    with sasl_server(tmp_path_factory.mktemp("zookeeper"), {"kafka": "right", "tool": "t"}) as found:
        yield found


def known(server: ZookeeperServer, ours: ZookeeperLogin | None = None) -> Inventory:
    """An inventory with that ZooKeeper."""
    return replace(worlds.inventory(), zookeeper=server.address, zookeeper_login=ours or ZookeeperLogin())


def looked(launch: Launch | Unknown, inventory: Inventory) -> object:
    """What is known of controller 3000's login."""
    found = with_zookeeper_clients({NODE: launch}, inventory, LocalFiles())[NODE]
    return found.zookeeper_client if isinstance(found, Launch) else found


def jaas(folder: Path, options: str, section: str = "Client", module: str = MODULE) -> str:
    """A JAAS file on disk."""
    path = folder / "kafka.jaas"
    path.write_text(f"{section} {{ {module} required {options}; }};\n")
    return str(path)


@pytest.mark.zookeeper
@pytest.mark.parametrize(("password", "accepted"), [("right", True), ("canary-wrong", False)])
def test_a_login_is_tried_at_zookeeper_itself(
    server: ZookeeperServer, tmp_path: Path, password: str, accepted: bool
) -> None:
    """Told by user and answer; the password stays in the file."""
    path = jaas(tmp_path, f'username="kafka" password="{password}"')
    found = looked(Launch("/c", jaas_file=path), known(server, login(tmp_path, "tool", "t")))
    assert found == ZookeeperClient("kafka", accepted)
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    ("launch", "says"),
    [
        (Launch("/c"), "no -Djava.security.auth.login.config"),
        (Launch("/c", jaas_file="/nowhere/jaas"), "does not exist"),
        (Launch("/c", jaas_file="{file}", zookeeper_section="Other"), "no section Other"),
        (Launch("/c", jaas_file="{file}", zookeeper_section=""), "sasl.client=false"),
        (Launch("/c", jaas_file="{broken}"), "word 1 begins no section"),
        (Launch("/c", jaas_file="{nameless}"), "names no username"),
    ],
)
def test_a_process_without_a_login_is_told_by_what_it_lacks(tmp_path: Path, launch: Launch, says: str) -> None:
    """Known, not unknown: such a controller would wait for ever."""
    (tmp_path / "broken").write_text("canary")
    (tmp_path / "nameless").write_text(f"Client {{ {MODULE} required password=canary; }};")
    places = {"{file}": jaas(tmp_path, 'username="u" password="canary"')}
    places |= {"{broken}": str(tmp_path / "broken"), "{nameless}": str(tmp_path / "nameless")}
    launch = replace(launch, jaas_file=places.get(launch.jaas_file or "", launch.jaas_file))
    found = looked(launch, worlds.inventory())
    assert isinstance(found, NoZookeeperClient)
    assert says in found.reason
    assert "canary" not in repr(found)


def test_what_cannot_be_read_or_spoken_is_unknown(tmp_path: Path) -> None:
    """A folder in the file's place; Kerberos."""
    kerberos = jaas(tmp_path, "useKeyTab=true", module="com.sun.security.auth.module.Krb5LoginModule")
    for launch in (Launch("/c", jaas_file=str(tmp_path)), Launch("/c", jaas_file=kerberos), Unknown("not seen")):
        assert isinstance(looked(launch, worlds.inventory()), Unknown)


def test_a_controller_that_does_not_run_yet_is_known_by_how_it_will_be_started(tmp_path: Path) -> None:
    """The supervisor's description has its words."""
    words = ("java", "-Djava.security.auth.login.config=/etc/kafka.jaas", "kafka.Kafka", "/etc/c.properties")
    spec = ProcessSpec("controller-3000", 3000, words, "/", "/log", "/out", "/etc/c.properties")
    write_spec(tmp_path, spec)
    executor = executor_of(replace(worlds.inventory(), executor_options={"state": str(tmp_path)}))
    found = launches(executor, {NODE: Stopped(None)})[NODE]
    assert isinstance(found, Launch)
    assert (found.jaas_file, found.config) == ("/etc/kafka.jaas", "/etc/c.properties")
    assert isinstance(found.zookeeper_client, Unknown)
