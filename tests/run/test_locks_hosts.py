"""The lock of a cluster without ZooKeeper: a file beside each broker's configuration, on its host."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrate.cli.unlock import unlock
from migrate.errors import LockLost, LockNotDead, RunLocked
from migrate.hosts.remote_files import HostLock
from migrate.hosts.runner import LocalRunner, ProgramHolder
from migrate.model.ids import NodeId
from migrate.run.locks import HOST_SUFFIX, of_brokers
from tests.cli.commands import kraft_migrate
from tests.playbook.test_directories import SPEC, lay
from tests.testing import worlds
from tests.testing.host_program import broker, installed
from tests.testing.ssh_server import ssh_server

ON_HOSTS = """\
apiVersion: kraft-migrate/v1
kind: Inventory
metadata: {{name: lab}}
spec:
  controller_listener: CTL
  executor: {{kind: ssh, kafka_home: /opt/kafka, ssh_config: {ssh}, sudo: false, host_program: {program}}}
  brokers:
    nodes:
      - {{id: 0, host: kafka-2, address: 'b0:9092', config: {conf}/b0, unit: kafka.service}}
      - {{id: 1, host: kafka-1, address: 'b1:9092', config: {conf}/b1, unit: kafka.service}}
  controllers:
    nodes:
      - {{id: 3000, host: c0, address: 'c0:9090', config: {conf}/c0, unit: c.service, metadata_directory: /data/c0}}
"""


@dataclass
class Held:
    """A lock file of a host, as an executor holds it."""

    where: str
    owner: str
    there: bool = True
    given_back: int = 0

    def still_there(self) -> bool:
        """As it was set."""
        return self.there

    def release(self) -> None:
        """Count it."""
        self.given_back += 1


class Hosts:
    """Takes lock files on hosts; `refuses` is a node whose lock another run holds."""

    def __init__(self, refuses: int | None = None) -> None:
        self.refuses, self.taken = refuses, list[Held]()

    def take(self, node: NodeId, place: str, owner: str) -> Held:
        """One more."""
        if int(node) == self.refuses:
            raise RunLocked("another process holds this run", where=place)
        self.taken.append(Held(f"{int(node)}:{place}", owner))
        return self.taken[-1]


def test_the_lock_of_a_cluster_is_beside_every_brokers_configuration_on_its_host() -> None:
    """Each names the same run; no other run has the same line, not even one of this process."""
    inventory = worlds.inventory()
    hosts, later = Hosts(), Hosts()
    lock = of_brokers(inventory, hosts.take)
    assert [held.where for held in hosts.taken] == [f"{n.id}:{n.config}{HOST_SUFFIX}" for n in inventory.brokers]
    (owner,) = {held.owner for held in hosts.taken}
    of_brokers(inventory, later.take)
    assert owner not in {held.owner for held in later.taken}
    assert len(json.loads(owner)["token"]) >= 8
    assert json.loads(owner)["pid"] == os.getpid()
    lock.still_ours()
    lock.release()
    assert [held.given_back for held in hosts.taken] == [1] * len(inventory.brokers)


def test_a_lock_that_one_host_refuses_is_given_back_on_the_others() -> None:
    """And it is said which one refused."""
    inventory = worlds.inventory()
    hosts = Hosts(refuses=int(inventory.brokers[-1].id))
    with pytest.raises(RunLocked) as caught:
        of_brokers(inventory, hosts.take)
    assert caught.value.where == inventory.brokers[-1].config + HOST_SUFFIX
    assert [held.given_back for held in hosts.taken] == [1] * (len(inventory.brokers) - 1)


@pytest.mark.parametrize("number", [0, 2])
def test_one_host_whose_lock_is_gone_is_a_lost_lock(number: int) -> None:
    """Another run could hold that one by now; the first and the last count alike."""
    hosts = Hosts()
    lock = of_brokers(worlds.inventory(), hosts.take)
    hosts.taken[number].there = False
    with pytest.raises(LockLost, match="deleted or replaced") as caught:
        lock.still_ours()
    assert caught.value.where == hosts.taken[number].where


@pytest.mark.slow
def test_unlock_shows_the_hosts_locks_and_removes_none(tmp_path: Path) -> None:
    """The kernel frees them; a living owner is told by exit code 7."""
    path = lay(tmp_path, SPEC + "  directories: {add: [/disk2]}\n")
    (tmp_path / "conf").mkdir()
    access = installed(tmp_path / "program", [broker(node, tmp_path / "conf" / f"b{node}") for node in (0, 1)])
    here = ON_HOSTS.replace("kind: ssh", "kind: local").replace(" ssh_config: {ssh},", "")
    (tmp_path / "inventory.yaml").write_text(here.format(conf=tmp_path / "conf", program=access.program))
    place = str(tmp_path / "conf" / f"b1{HOST_SUFFIX}")
    held = HostLock(ProgramHolder(LocalRunner(), access), NodeId(1), place, "run 7")
    with pytest.raises(LockNotDead, match="the owner is running") as caught:
        CliRunner().invoke(unlock, [str(path)], standalone_mode=False, catch_exceptions=False)
    assert caught.value.where.endswith(place)
    held.release()
    assert states(path) == [("", "nobody"), ("", "nobody"), ("run 7", "is dead")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")
def test_unlock_asks_the_hosts_where_the_files_are_theirs(tmp_path: Path) -> None:
    """Over SSH: held, given back, never locked; a host that does not answer is not taken for a free one."""
    path = lay(tmp_path, SPEC + "  directories: {add: [/disk2]}\n")
    (tmp_path / "conf").mkdir()
    with ssh_server(tmp_path / "ssh") as (server, connections):
        access = installed(tmp_path / "program", [broker(node, tmp_path / "conf" / f"b{node}") for node in (0, 1)])
        (tmp_path / "inventory.yaml").write_text(
            ON_HOSTS.format(conf=tmp_path / "conf", ssh=server.config, program=access.program)
        )
        place = str(tmp_path / "conf" / f"b1{HOST_SUFFIX}")
        held = HostLock(ProgramHolder(connections.runner("kafka-1"), access), NodeId(1), place, "run 7")
        with pytest.raises(LockNotDead) as caught:
            CliRunner().invoke(unlock, [str(path)], standalone_mode=False, catch_exceptions=False)
        assert caught.value.where == f"kafka-1:{tmp_path}/conf/b1{HOST_SUFFIX}"
        held.release()
        assert states(path) == [("", "nobody"), ("", "nobody"), ("run 7", "is dead")]
    said = states(path)
    assert [alive for _, alive in said] == ["nobody", *["cannot be seen from here"] * 2]
    assert all("E-HOST-22" in owner for owner, _ in said[1:])


def states(path: Path) -> list[tuple[str, str]]:
    """What is said of each file."""
    said = kraft_migrate("unlock", path, "-o", "json")
    return [(row["owner"], row["alive"]) for row in json.loads(said.out)["files"]]
