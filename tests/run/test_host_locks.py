"""The lock of a cluster without ZooKeeper: a file beside each broker's configuration, on its host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrate.cli.unlock import unlock
from migrate.errors import LockLost, LockNotDead, RunLocked
from migrate.hosts.held_command import ProgramHolder
from migrate.hosts.host_locks import HostLock
from migrate.model.ids import NodeId
from migrate.run.locks import HOST_SUFFIX, HostLocks, LockFile, RunLock
from tests.playbook.test_directories import SPEC, lay
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


def configs(folder: Path) -> list[str]:
    """Two brokers' files."""
    return [str(folder / f"broker-{number}.properties") for number in range(2)]


def test_two_runs_of_two_folders_meet_on_the_hosts(tmp_path: Path) -> None:
    """Another inventory, another runs' folder, the same brokers: one of them is refused, and says who holds it."""
    first = HostLocks.acquire(configs(tmp_path))
    with pytest.raises(RunLocked, match=r"another process holds this run: .*pid"):
        HostLocks.acquire(configs(tmp_path))
    first.release()
    HostLocks.acquire(configs(tmp_path)).release()


def test_a_lock_that_cannot_be_had_whole_is_not_held_in_part(tmp_path: Path) -> None:
    """The second broker is held by another: the first one is given back."""
    names = configs(tmp_path)
    other = LockFile(Path(names[1] + HOST_SUFFIX))
    with pytest.raises(RunLocked):
        HostLocks.acquire(names)
    LockFile(Path(names[0] + HOST_SUFFIX)).release()
    other.release()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_file_that_was_deleted_or_replaced_is_lost(tmp_path: Path, replaced: bool) -> None:
    """The kernel's lock is on the old file: whoever locks the new one is alone, too."""
    held = HostLocks.acquire(configs(tmp_path))
    held.still_ours()
    path = Path(configs(tmp_path)[1] + HOST_SUFFIX)
    path.unlink()
    if replaced:
        path.touch()
    with pytest.raises(LockLost, match="deleted or replaced"):
        held.still_ours()
    held.release()


def test_it_is_asked_and_given_back_with_the_runs_own_file(tmp_path: Path) -> None:
    """As the znode is where there is one."""
    lock = RunLock(LockFile(tmp_path / "lock"), None).joined(HostLocks.acquire(configs(tmp_path)))
    lock.still_ours()
    Path(configs(tmp_path)[0] + HOST_SUFFIX).unlink()
    with pytest.raises(LockLost):
        lock.still_ours()
    lock.release()
    HostLocks.acquire(configs(tmp_path)).release()


def test_unlock_shows_the_hosts_locks_and_removes_none(tmp_path: Path) -> None:
    """The kernel frees them; a living owner is told by exit code 7."""
    path = lay(tmp_path, SPEC + "  directories: {add: [/disk2]}\n")
    (tmp_path / "conf").mkdir()
    held = HostLocks.acquire([str(tmp_path / "conf" / "b1.properties")])
    with pytest.raises(LockNotDead, match="the owner lives") as caught:
        CliRunner().invoke(unlock, [str(path)], standalone_mode=False, catch_exceptions=False)
    assert caught.value.where.endswith(f"b1.properties{HOST_SUFFIX}")
    held.release()
    said = CliRunner().invoke(unlock, [str(path), "-o", "json"], standalone_mode=False, catch_exceptions=False)
    states = [row["alive"] for row in json.loads(said.output)["files"]]
    assert states == ["nobody", "nobody", "is dead"]


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
    said = CliRunner().invoke(unlock, [str(path), "-o", "json"], standalone_mode=False, catch_exceptions=False)
    return [(row["owner"], row["alive"]) for row in json.loads(said.output)["files"]]
