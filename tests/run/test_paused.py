"""A run that is paused past its session, or cut off, acts no more; two that start at once never both act.

Real processes and a real ZooKeeper; the cluster is in memory, and each process writes down what it did.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from migrate.cli.errors import EXIT_LOCK_LOST
from migrate.errors import LockHeld, LockLost
from migrate.run import journal as journals
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.lock import LOCK_PATH, ZookeeperLock, acquire
from tests.testing.zookeeper_server import ZookeeperServer, running_server

pytestmark = pytest.mark.zookeeper
ROOT = Path(__file__).parents[2]
SECONDS = 120

RUNNER = """
import os, signal, sys
from pathlib import Path
from migrate.errors import MigrateError
from migrate.zookeeper.client import connect
from migrate.zookeeper.lock import acquire
from tests.run.test_engine import plan_for, run
from tests.testing.simulated import KillAt, SimulatedCluster

address, folder, pause = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

class Pause(KillAt):
    def reach(self, label):
        if label == pause:
            os.kill(os.getpid(), signal.SIGSTOP)

client = connect(address, session_timeout=1.0)
lock = acquire(client, "runner", "plan")
cluster = SimulatedCluster.in_zookeeper_mode()
plan = plan_for(cluster)
code = 0
try:
    run(cluster, plan, folder, Pause(), lock)
except MigrateError as error:
    print(error.id, error, flush=True)
    code = error.exit_code
(folder / "done").write_text("\\n".join(cluster.done))
os._exit(code)
"""

RACER = """
import sys
from migrate.errors import LockHeld, LockLost
from migrate.zookeeper.client import connect
from migrate.zookeeper.lock import acquire
client = connect(sys.argv[1], session_timeout=10.0)
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "race":
        try:
            lock = acquire(client, "racer", "")
            lock.still_ours()
            print("won", lock.fence.version, flush=True)
        except LockHeld:
            print("held", flush=True)
    elif line.strip() == "release":
        lock.release()
        print("released", flush=True)
"""


@contextmanager
def python(code: str, *words: str, stdin: bool = False) -> Iterator[subprocess.Popen[str]]:
    """A process of its own, gone at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()


def stopped(process: subprocess.Popen[str]) -> None:
    """Wait until it has paused itself."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), status


def gone(client: ZookeeperClient, path: str = LOCK_PATH) -> None:
    """Wait for the znode's deletion by a watch."""
    event = threading.Event()
    if client.kazoo.exists(path, watch=lambda _: event.set()):
        assert event.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperServer]:
    """One for this page."""
    with running_server(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def chroot(server: ZookeeperServer, tmp_path: Path) -> str:
    """A chroot of its own."""
    path = f"/{tmp_path.name.replace('[', '-').replace(']', '')}"
    with server.client() as root:
        root.kazoo.create(path)
    return path


@pytest.mark.parametrize(
    ("label", "before"),
    [
        ("before:stop:1", "start 0 migration"),
        ("after:stop:1", "stop 1"),
        ("proof:migration-mode/0", "start 0 migration"),
    ],
    ids=["in front of an effect", "behind an effect", "between two steps"],
)
def test_a_run_that_is_paused_past_its_session_does_nothing_more(
    label: str, before: str, server: ZookeeperServer, chroot: str, tmp_path: Path
) -> None:
    """SIGSTOP, another run takes the lock, SIGCONT: no further effect, and an exit code of its own."""
    with server.client(chroot) as client, python(RUNNER, server.address + chroot, str(tmp_path), label) as runner:
        stopped(runner)
        gone(client)
        other = acquire(client, "the second run", "plan")
        done = journals.read(tmp_path / "journal.jsonl").events
        runner.send_signal(signal.SIGCONT)
        said, _ = runner.communicate(timeout=SECONDS)
        assert runner.returncode == EXIT_LOCK_LOST == LockLost.exit_code
        assert said.startswith("E-LOCK-02")
        other.still_ours()
    after = journals.read(tmp_path / "journal.jsonl").events[len(done) :]
    assert [event.name for event in after if event.name in ("effect", "effected", "intend")] in (
        [],
        ["effected"],  # behind the effect: it had happened already
    )
    assert after[-1].name == "stop"
    effects = (tmp_path / "done").read_text().splitlines()
    assert effects[-1] == before


def test_of_two_processes_that_race_200_times_one_wins_each(server: ZookeeperServer, chroot: str) -> None:
    """Real processes; the fence counts each acquisition once."""
    address = server.address + chroot
    with python(RACER, address, stdin=True) as one, python(RACER, address, stdin=True) as two:
        racers = (one, two)

        def tell(process: subprocess.Popen[str], word: str) -> None:
            assert process.stdin is not None
            process.stdin.write(word + "\n")
            process.stdin.flush()

        def said(process: subprocess.Popen[str]) -> str:
            assert process.stdout is not None
            return process.stdout.readline().strip()

        assert [said(racer) for racer in racers] == ["ready", "ready"]
        fences, winners = [], []
        for _ in range(200):
            for racer in racers:
                tell(racer, "race")
            answers = [said(racer) for racer in racers]
            (winner,) = [number for number, answer in enumerate(answers) if answer.startswith("won")]
            assert answers[1 - winner] == "held"
            fences.append(int(answers[winner].split()[1]))
            winners.append(winner)
            tell(racers[winner], "release")
            assert said(racers[winner]) == "released"
    assert fences == list(range(fences[0], fences[0] + 200))
    assert set(winners) == {0, 1} or len(set(winners)) == 1


def test_a_connection_that_breaks_and_comes_back_is_survived_and_a_server_that_stays_away_is_not(
    tmp_path: Path,
) -> None:
    """The run goes on where its session lived on; where it did not, the lock is lost."""
    with running_server(tmp_path / "server") as server, server.client(session=20) as client:
        lock = acquire(client, "me", "")
        server.stop()
        server.start()  # the same server, moved: it comes back with its data within the session
        lock.still_ours()
        server.stop()
        with server_away(lock), pytest.raises(LockLost):
            lock.still_ours()


@contextmanager
def server_away(lock: ZookeeperLock) -> Iterator[None]:
    """So short a patience that the test need not wait for a whole session."""
    patience, lock.client.session_timeout = lock.client.session_timeout, 0.5
    try:
        yield
    finally:
        lock.client.session_timeout = patience


def test_a_second_run_is_told_who_acts(server: ZookeeperServer, chroot: str, tmp_path: Path) -> None:
    """While the first one sleeps in its own session it holds the lock: by name, and at once."""
    with server.client(chroot) as client, server.client(chroot) as second:
        acquire(client, "night shift", "plan-7")
        with pytest.raises(LockHeld, match="night shift"):
            acquire(second, "day shift", "plan-8")
    assert json.dumps(LockHeld.exit_code) == "7"
