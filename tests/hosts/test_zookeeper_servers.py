"""Units of ZooKeeper's servers under the real host program: stopped, masked, never started, never another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.errors import HostCommandRefused, ProcessNotStopped
from migrate.hosts import host_program, host_setup
from migrate.hosts.commands import HostAccess
from migrate.hosts.runner import LocalRunner, ProgramHolder
from migrate.hosts.zookeeper_servers import UnitServers
from migrate.model.ensemble import ServerUnit
from migrate.model.inventory import ZookeeperServer
from migrate.model.outcome import Unknown
from tests.testing.host_installation import Installation, broker, install

ADDRESS = "zk1:2181"
UNIT = "zookeeper.service"
RUNS = "LoadState=loaded\nActiveState=active\nSubState=running\nFragmentPath={}\n"


class Waits:
    """Time passes by sleeping; `done` is called once."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """A minute at once."""
        self.now += max(seconds, 61.0)


@pytest.fixture
def installed(tmp_path: Path) -> Installation:
    """A host with a broker and a server of ZooKeeper, whose unit a package has brought."""
    found = install(tmp_path / "program", [broker(tmp_path / "server.properties")])
    shows(found, RUNS.format("/usr/lib/systemd/system/zookeeper.service"))
    return found


def shows(found: Installation, text: str) -> None:
    """What `systemctl show` says of the server's unit."""
    (found.folder / "bin" / UNIT).write_text(text)


def servers(found: Installation) -> UnitServers:
    """Reached as by the executor `local`, without sudo."""
    holder = ProgramHolder(LocalRunner(), HostAccess(str(found.program), sudo=False))
    return UnitServers({ADDRESS: ZookeeperServer("zk1", ADDRESS, UNIT)}, {ADDRESS: holder}, Waits())


def test_a_packages_unit_is_disabled_and_masked(installed: Installation) -> None:
    """Links of its targets go, and the mask keeps others from starting it."""
    found = servers(installed)
    assert found.look(ADDRESS) == ServerUnit("zookeeper.service on zk1", runs=True, word="disabled")
    found.mask(ADDRESS)
    assert installed.given == ["disable -- zookeeper.service", "mask -- zookeeper.service"]


def test_an_administrators_own_unit_is_disabled_alone(installed: Installation) -> None:
    """Systemd refuses a mask where the unit's file lies."""
    shows(installed, RUNS.format("/etc/systemd/system/zookeeper.service"))
    servers(installed).mask(ADDRESS)
    assert installed.given == ["disable -- zookeeper.service"]


def test_a_unit_that_is_masked_already_is_seen(installed: Installation) -> None:
    """Systemd calls it masked instead of loaded."""
    shows(installed, "LoadState=masked\nActiveState=inactive\nSubState=dead\n")
    found = servers(installed).look(ADDRESS)
    assert isinstance(found, ServerUnit)
    assert found.stays_down


def test_a_server_that_lives_on_is_not_stopped(installed: Installation) -> None:
    """The run stops there; nothing is killed."""
    with pytest.raises(ProcessNotStopped, match="still running after 60 s"):
        servers(installed).stop(ADDRESS)
    assert installed.given == ["stop --no-block -- zookeeper.service"]


def test_a_unit_that_is_not_there_is_unknown(installed: Installation) -> None:
    """It may have another name: nothing is taken for stopped."""
    shows(installed, "LoadState=not-found\nActiveState=inactive\n")
    found = servers(installed).look(ADDRESS)
    assert isinstance(found, Unknown)
    assert "systemd says that this unit is not-found" in found.reason
    with pytest.raises(HostCommandRefused):
        servers(installed).stop(ADDRESS)


@pytest.mark.parametrize(
    "words",
    [
        ("unit-start", UNIT),
        ("unit-enable", UNIT),
        ("process", UNIT, "1"),
        ("unit-mask", "kafka.service"),
        ("unit-mask", "sshd.service"),
        ("unit-stop", "sshd.service"),
    ],
)
def test_the_program_starts_no_server_and_masks_no_node(words: tuple[str, ...], installed: Installation) -> None:
    """Each verb has its own units."""
    done = installed.run(*words)
    assert done.code == host_program.NOT_CONFIGURED
    assert installed.given == []


def test_a_host_of_servers_alone_gets_the_program(tmp_path: Path) -> None:
    """Its configuration has no node, and its script nothing to ask of one."""
    from dataclasses import replace

    from tests.testing import worlds

    inventory = replace(worlds.inventory(), zookeeper_servers=(ZookeeperServer("zk1", ADDRESS, UNIT),))
    found = host_setup.configuration(inventory, "zk1", "ops")
    assert (found["nodes"], found["zookeeper"]) == ([], [UNIT])
    assert "for node in ; do" in host_setup.set_up(inventory, "zk1", "ops")
    assert host_setup.configuration(inventory, "b0")["zookeeper"] == []
