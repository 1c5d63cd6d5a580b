"""How processes of this host were started, on real processes; and what is not seen is Unknown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.errors import HostCommandUnknown
from migrate.hosts.executors import Executor, executor_of
from migrate.hosts.launches import launches
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Completed
from migrate.hosts.systemd import Service, SystemdServices
from migrate.model.ids import NodeId
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
from migrate.model.views import Running, ServiceState, Stopped
from tests.testing import worlds

NODE = NodeId(0)
WAITING = "import sys; print('up', flush=True); sys.stdin.read()"


@contextmanager
def process(*words: str, **environment: str) -> Iterator[int]:
    """A process that waits, with words behind its own."""
    argv = [sys.executable, "-c", WAITING, *words]
    with subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == b"up\n"
        try:
            yield child.pid
        finally:
            child.stdin.close()


def here(tmp_path: Path) -> Executor:
    """Processes of this host, as the supervisor has them."""
    return executor_of(replace(worlds.inventory(), executor_options={"state": str(tmp_path)}))


def running(pid: int) -> dict[NodeId, ServiceState]:
    """One node's process."""
    return {NODE: Running(pid, 0.0, None)}


def test_a_process_of_this_host_is_read_with_its_environment(tmp_path: Path) -> None:
    """Words and names; values of the environment stay where they are."""
    words = ("kafka.Kafka", "/etc/b0.properties", "--override", "num.io.threads=3")
    with process(*words, KAFKA_CFG_LOG_DIRS="canary", KAFKA_OPTS="canary") as pid:
        found = launches(here(tmp_path), running(pid))[NODE]
    assert isinstance(found, Launch)
    assert (found.main_class, found.config) == ("kafka.Kafka", "/etc/b0.properties")
    assert found.overrides == {"num.io.threads": "3"}
    assert found.environment == ("KAFKA_CFG_LOG_DIRS",)
    assert found.unit is None
    assert "canary" not in repr(found)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (Stopped(0), "it does not run"),
        (Unknown("no such record"), "no such record"),
        (Running(2**22 + 7, 0.0, None), ""),
    ],
)
def test_what_does_not_run_or_cannot_be_seen_is_unknown(tmp_path: Path, state: ServiceState, says: str) -> None:
    """A process that ended in between, too."""
    found = launches(here(tmp_path), {NODE: state})[NODE]
    assert isinstance(found, Unknown)
    assert says in found.reason


class Host:
    """A host program that knows one process; without one its host is out of reach."""

    host = "b0"

    def __init__(self, pid: int | None = None) -> None:
        self.pid = pid

    def run(self, words: Sequence[str], *, stdin: bytes = b"", seconds: float = 1.0) -> Completed:
        """As the host program answers."""
        del stdin, seconds
        match tuple(words), self.pid:
            case (_, None):
                raise HostCommandUnknown("no answer", where="b0")
            case (("process", "kafka.service", pid), mine):
                known = int(pid) == mine
                refused = Completed(65, b"", f"kraft-migrate-host: process {pid}: it is not the main process")
                return Completed(0, Path(f"/proc/{pid}/cmdline").read_bytes(), "") if known else refused
            case (("unit-show", "kafka.service"), _):
                return Completed(0, b"LoadState=loaded\nActiveState=active\nNeedDaemonReload=yes\n", "")
        raise AssertionError(words)


def there(tmp_path: Path, host: Host) -> Executor:
    """The same process as a unit of that host."""
    service = Service(NODE, "kafka.service", "/etc/b0.properties", host, RemoteFiles({NODE: host}))
    services = SystemdServices({NODE: service}, None)  # type: ignore[arg-type]
    return replace(here(tmp_path), runners={NODE: host}, services=services)


def test_a_process_on_a_host_is_read_by_the_host_program_alone(tmp_path: Path) -> None:
    """Its environment is not fetched; an unreachable host is Unknown, not an error."""
    with process("kafka.Kafka", "/etc/b0.properties", KAFKA_CFG_A="x") as pid:
        found = launches(there(tmp_path, Host(pid)), running(pid))[NODE]
    assert isinstance(found, Launch)
    assert found.config == "/etc/b0.properties"
    assert isinstance(found.environment, Unknown)
    assert found.unit is not None
    gone = launches(there(tmp_path, Host(pid)), running(2**22 + 7))[NODE]
    far = launches(there(tmp_path, Host()), running(1))[NODE]
    assert isinstance(gone, Unknown)
    assert "not the main process" in gone.reason
    assert isinstance(far, Unknown)
    assert "no answer" in far.reason
