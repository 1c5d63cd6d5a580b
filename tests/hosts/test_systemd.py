"""Units by `systemctl`: the stand-in of the lab drives real small processes, through the real SSH client too."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from migrate.errors import (
    HostCommandRefused,
    HostUnreachable,
    ProcessNotStarted,
    ProcessNotStopped,
    StorageNotFormatted,
    UnitNotUsable,
)
from migrate.hosts import systemd
from migrate.hosts.commands import HostAccess
from migrate.hosts.executors import executor_of
from migrate.hosts.remote_files import RemoteFiles
from migrate.hosts.runner import Completed, LocalRunner, ProgramHolder, Runner
from migrate.hosts.systemd import Service, SystemdServices, parse_unit, seconds
from migrate.model.ids import NodeId
from migrate.model.inventory import OwnExecutor
from migrate.model.outcome import Awaited, Unknown
from migrate.model.views import Running, Stopped
from tests.lab.test_supervisor import OBEDIENT, STUBBORN, Stage
from tests.testing import worlds
from tests.testing.host_program import broker, installed
from tests.testing.ssh_server import ssh_server

NODE = NodeId(7)
UNIT = "node-7.service"
CLUSTER = "-d3D4233dFSJKhrlnVHSna"


class FastWaits:
    """Real time; what was slept is told."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        """Seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Told, then waited."""
        self.slept.append(seconds)
        systemd_wait(seconds)


class Slept(FastWaits):
    """No time passes."""

    def sleep(self, seconds: float) -> None:
        """Told."""
        self.slept.append(seconds)


def systemd_wait(seconds: float) -> None:
    """Until the clock is past."""
    import threading

    threading.Event().wait(seconds)


@dataclass
class Bench:
    """A stage of processes, told as units, and the services over them."""

    stage: Stage
    runner: Runner
    waits: FastWaits

    def service(self, **changes: object) -> Service:
        """Node 7's unit."""
        config = str(self.stage.folder / "node-7.properties")
        made = Service(NODE, UNIT, config, self.runner, RemoteFiles({NODE: self.runner}))
        return replace(made, **changes)  # type: ignore[arg-type]

    def services(self, **changes: object) -> SystemdServices:
        """Over node 7 alone."""
        return SystemdServices({NODE: self.service(**changes)}, self.waits)


@pytest.fixture(params=["local", "ssh"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """The program of this host, directly and through SSH."""
    (tmp_path / "state").mkdir()
    stage = Stage(tmp_path / "state")
    nodes = [broker(7, stage.folder / "node-7.properties"), replace(broker(8, "/x"), unit="other.service")]
    access = installed(tmp_path / "program", nodes, state=stage.folder, kafka_home=stage.folder / "kafka")
    try:
        if request.param == "local":
            yield Bench(stage, ProgramHolder(LocalRunner(), access), FastWaits())
            return
        if shutil.which("ssh") is None:
            pytest.skip("no OpenSSH client on this machine")
        with ssh_server(tmp_path / "ssh") as (_server, connections):
            yield Bench(stage, ProgramHolder(connections.runner("kafka-1"), access), FastWaits())
    finally:
        for name in stage.supervisor.specs():
            stage.supervisor.kill(name)


@pytest.mark.slow
def test_a_unit_is_started_seen_and_stopped(bench: Bench) -> None:
    """With the file it was started with, proven by the kernel's times alone."""
    bench.stage.add("node-7", OBEDIENT, node=7)
    services = bench.services()
    assert isinstance(services.state(NODE), Stopped)
    services.start(NODE)
    state = services.state(NODE)
    assert isinstance(state, Running)
    assert state.config_sha256 == hashlib.sha256((bench.stage.folder / "node-7.properties").read_bytes()).hexdigest()
    assert abs(state.started_at - time.time()) < 60
    services.stop(NODE, 20)
    assert isinstance(services.state(NODE), Stopped)


@pytest.mark.slow
def test_a_file_that_was_just_written_grows_old_before_the_start(bench: Bench) -> None:
    """Else nobody could tell whether the process read the old or the new."""
    bench.stage.add("node-7", OBEDIENT, node=7)
    written = time.time()
    services = bench.services()
    services.start(NODE)
    assert sum(bench.waits.slept) <= systemd.OLD_ENOUGH
    state = services.state(NODE)
    assert isinstance(state, Running)
    assert state.config_sha256
    assert state.started_at - written >= systemd.OLD_ENOUGH - 0.2  # a clock tick, and the file's own coarse time


@pytest.mark.slow
def test_a_file_changed_under_a_running_process_is_not_the_one_it_was_started_with(bench: Bench) -> None:
    """Looked at for the first time after the change: which file the process has is not known; nothing is claimed."""
    bench.stage.add("node-7", OBEDIENT, node=7)
    first = bench.services()
    first.start(NODE)
    assert isinstance(before := first.state(NODE), Running)
    (bench.stage.folder / "node-7.properties").write_text("a=2\n")
    assert isinstance(state := bench.services().state(NODE), Running)
    assert state.config_sha256 is None
    again = first.state(NODE)  # who looked before goes on knowing what the process was started with
    assert isinstance(again, Running)
    assert again.config_sha256 == before.config_sha256


START: Final = 1000.0  # by the host's clock, which is at 1100 now


@pytest.mark.parametrize(
    ("changed", "noted", "proven"),
    [
        (999.996, 999.998, True),  # a tick of the kernel's clock before the note: no age is asked for
        (999.998, 999.998, False),  # in one tick with it: nobody knows which came first
        (1000.1, 999.998, False),
        (1099.0, 999.998, False),
        (1000.1, 1050.0, False),  # a note that was written again later is none of this start
        (930.0, 949.998, True),  # the clock was set forward by 50 s since: both stamps are from before that
        (960.0, 949.998, False),  # changed 10 s after the start, and by the clock of now 40 s before it
        (1000.1, 1010.0, False),  # the clock was set back by 10 s behind the start, and the file changed then
        (999.0, 999.998, False),  # a file system that keeps whole seconds
        (998.0, 999.998, True),
        (999.6, None, False),  # without a note half a second must lie between
        (999.4, None, True),
        (999.0, None, False),
        (998.0, None, True),
    ],
)
def test_a_file_is_proven_by_the_stamps_of_its_change_and_of_the_starts_note(
    changed: float, noted: float | None, proven: bool
) -> None:
    """What was changed behind the start is never taken as read, whatever was done to the clock."""

    class Stamped(Told):
        def run(self, words: tuple[str, ...], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
            """The clock, the file and the note."""
            if words[0] == "clock":
                return Completed(0, b"1100.0 200.0\n", "")
            if words[0] == "read":
                return Completed(0, b"a=1\n", "")
            stamp = noted if words[-1] == f"/run/systemd/units/invocation:{UNIT}" else changed
            if words[0] != "status" or stamp is None:
                return super().run(words, stdin=stdin, seconds=seconds)
            return Completed(0, f"regular file\n4\n644\n0:0\n{stamp:.9f}\n".encode(), "")

    runner = Stamped(ExecMainStartTimestampMonotonic="100000000")
    service = Service(NODE, UNIT, "/etc/x", runner, RemoteFiles({NODE: runner}))  # type: ignore[arg-type, dict-item]
    state = SystemdServices({NODE: service}, FastWaits()).state(NODE)
    assert isinstance(state, Running)
    assert state.started_at == START
    assert state.config_sha256 == (hashlib.sha256(b"a=1\n").hexdigest() if proven else None)


@pytest.mark.parametrize(
    ("name", "notes", "age", "waits"),
    [
        (UNIT, True, 0.02, 0.03),
        (UNIT, True, 0.3, None),
        (UNIT, False, 0.3, 0.7),  # a systemd before 235
        ("kafka.service", True, 0.3, 0.7),  # an alias: notes have the unit's own name
        (UNIT, True, -50.0, None),  # of a clock that was set back: no start waits for that
    ],
)
def test_a_start_waits_until_the_note_of_it_will_be_a_later_one(
    name: str, notes: bool, age: float, waits: float | None
) -> None:
    """A tick; where systemd notes nothing, a second."""

    class Stopped(Told):
        def run(self, words: tuple[str, ...], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
            """The clock, the file, the folder of notes, and the start."""
            if words[0] == "clock":
                return Completed(0, b"1100.25 200.0\n", "")
            if words[0] == "unit-start":
                return Completed(0, b"", "")
            if words[0] != "status" or (words[-1] == "/run/systemd/units" and not notes):
                return super().run(words, stdin=stdin, seconds=seconds)
            return Completed(0, f"regular file\n4\n644\n0:0\n{1100.25 - age:.9f}\n".encode(), "")

    runner, clock = Stopped(ActiveState="inactive", SubState="dead", MainPID="0", Id=name), Slept()
    service = Service(NODE, UNIT, "/etc/x", runner, RemoteFiles({NODE: runner}))  # type: ignore[arg-type, dict-item]
    SystemdServices({NODE: service}, clock).start(NODE)
    assert clock.slept == ([] if waits is None else [pytest.approx(waits)])


@pytest.mark.slow
def test_a_second_start_is_refused(bench: Bench) -> None:
    """Two brokers with one id would fight."""
    bench.stage.add("node-7", OBEDIENT, node=7)
    services = bench.services()
    services.start(NODE)
    with pytest.raises(ProcessNotStarted, match="runs already"):
        services.start(NODE)


@pytest.mark.slow
def test_a_process_that_lives_on_is_told_and_never_killed(bench: Bench) -> None:
    """A controlled shutdown takes as long as it takes."""
    bench.stage.add("node-7", STUBBORN, str(bench.stage.folder / "deaf"), node=7)
    services = bench.services()
    services.start(NODE)
    while not (bench.stage.folder / "deaf").exists():
        systemd_wait(0.02)
    with pytest.raises(ProcessNotStopped, match="still running after 1 s"):
        services.stop(NODE, 1)
    state = services.state(NODE)
    assert isinstance(state, Running)
    os.kill(state.pid, signal.SIGUSR1)


@pytest.mark.slow
def test_a_unit_that_systemd_does_not_know_is_unknown_not_stopped(bench: Bench) -> None:
    """A wrong name in the inventory must not look like a node that is down."""
    services = bench.services(unit="other.service")
    found = services.state(NODE)
    assert isinstance(found, Unknown)
    assert "not-found" in found.reason
    with pytest.raises(UnitNotUsable):
        services.stop(NODE, 1)
    with pytest.raises(ProcessNotStarted):
        services.start(NODE)


@pytest.mark.slow
def test_the_end_of_the_journal_is_told(bench: Bench) -> None:
    """As many lines as were asked for."""
    spec = bench.stage.add("node-7", OBEDIENT, node=7)
    Path(spec.log).write_text("\n".join(f"line {n}" for n in range(100)) + "\n")
    assert list(bench.services().last_words(NODE, 2)) == ["line 98", "line 99"]


@pytest.mark.slow
def test_format_runs_the_hosts_own_tool_and_tells_what_it_says(bench: Bench) -> None:
    """The cluster id stands in one word with its option: it may begin with a dash."""
    tool = bench.stage.folder / "kafka" / "bin" / "kafka-storage.sh"
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    tool.chmod(0o755)
    bench.stage.add("node-7", OBEDIENT, node=7)
    said = bench.services().format_storage(NODE, CLUSTER, "3.9", ignore_formatted=True)
    config = bench.stage.folder / "node-7.properties"
    assert said == f"format|--cluster-id={CLUSTER}|-c|{config}|--release-version|3.9|--ignore-formatted|"
    tool.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    with pytest.raises(StorageNotFormatted) as caught:
        bench.services().format_storage(NODE, CLUSTER, "3.9")
    assert caught.value.why == "no"


class Told:
    """A runner whose `systemctl show` says what the test wants; everything else is refused."""

    host = "told"

    def __init__(self, **properties: str) -> None:
        self.asked: list[str] = []
        base = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "MainPID": "1"}
        self._text = "\n".join(f"{name}={value}" for name, value in (base | properties).items())

    def run(self, words: tuple[str, ...], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
        """Told, and answered if it was `show`."""
        self.asked.append(" ".join(words))
        if words[0] == "unit-show":
            return Completed(0, self._text.encode(), "")
        return Completed(1, b"", "refused")


def told(**properties: str) -> tuple[SystemdServices, Told]:
    """Services over such a runner."""
    runner = Told(**properties)
    service = Service(NODE, UNIT, "/etc/x", runner, RemoteFiles({NODE: runner}))  # type: ignore[arg-type, dict-item]
    return SystemdServices({NODE: service}, FastWaits()), runner


@pytest.mark.parametrize("patience", ["1min 30s", "20s", "500ms"])
def test_a_unit_that_systemd_would_kill_too_soon_is_not_stopped(patience: str) -> None:
    """Systemd's default is 90 s, then SIGKILL: a broker may need longer, and a killed one recovers its logs."""
    services, runner = told(TimeoutStopUSec=patience, SendSIGKILL="yes")
    with pytest.raises(UnitNotUsable, match="would kill it") as caught:
        services.stop(NODE, 300)
    assert "TimeoutStopSec=330" in caught.value.next_step
    assert not [words for words in runner.asked if words.startswith("unit-stop")]


@pytest.mark.parametrize(
    "properties", [{"TimeoutStopUSec": "infinity"}, {"TimeoutStopUSec": "1s", "SendSIGKILL": "no"}]
)
def test_a_patient_unit_is_asked_to_stop(properties: Mapping[str, str]) -> None:
    """The refusal of systemctl itself is then told."""
    services, runner = told(**properties)
    with pytest.raises(ProcessNotStopped, match="systemctl stop: refused"):
        services.stop(NODE, 300)
    assert runner.asked[-1] == "unit-stop node-7.service"


@pytest.mark.parametrize("active", ["activating", "deactivating", "reloading", "maintenance"])
def test_a_unit_between_states_is_unknown(active: str) -> None:
    """`activating (auto-restart)`: a crash loop is neither running nor stopped."""
    services, _ = told(ActiveState=active, SubState="auto-restart", MainPID="0")
    found = services.state(NODE)
    assert isinstance(found, Awaited)
    assert "auto-restart" in found.reason
    assert "journalctl -u node-7.service" in found.next_step


@pytest.mark.parametrize(
    ("ended", "clock", "since"),
    [
        ("40000000", "1000.0 100.0", 940.0),  # 40 s after the boot, which was 100 s ago
        ("0", "1000.0 100.0", None),  # it never ran in this boot
        ("", "1000.0 100.0", None),  # a host set up for an earlier release
        ("40000000", "", None),
        ("140000000", "1000.0 100.0", None),  # that is in the future: nothing is claimed
    ],
)
def test_a_stopped_unit_is_told_with_the_time_that_systemd_knows(ended: str, clock: str, since: float | None) -> None:
    """By the host's own clock; nothing is claimed where it does not say."""

    class Ended(Told):
        def run(self, words: tuple[str, ...], *, stdin: bytes = b"", seconds: float = 1) -> Completed:
            """The clock, too."""
            if words[0] == "clock" and clock:
                return Completed(0, clock.encode(), "")
            return super().run(words, stdin=stdin, seconds=seconds)

    runner = Ended(ActiveState="failed", SubState="failed", MainPID="0", InactiveEnterTimestampMonotonic=ended)
    service = Service(NODE, UNIT, "/etc/x", runner, RemoteFiles({NODE: runner}))  # type: ignore[arg-type, dict-item]
    found = SystemdServices({NODE: service}, FastWaits()).state(NODE)
    assert isinstance(found, Stopped)
    assert found.since == since


def test_an_answer_that_is_none_is_no_state() -> None:
    """Neither empty nor something else."""
    for text in (b"", b"what", b"ActiveState=active"):
        with pytest.raises(ValueError, match="ActiveState"):
            parse_unit(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1min 30s", 90.0), ("infinity", None), ("5min", 300.0), ("1h 2min", 3720.0), ("0", 0.0), ("1.5s", 1.5)],
)
def test_time_spans_are_read_as_systemd_writes_them(text: str, expected: float | None) -> None:
    """systemd.time(7)."""
    assert seconds(text) == expected


def test_sudo_runs_one_program_and_never_asks_for_a_password() -> None:
    """`sudo -n`: a prompt in the night would wait for nobody."""
    assert HostAccess().words(("about",)) == ("sudo", "-n", "--", "/usr/local/libexec/kraft-migrate/host", "about")
    assert HostAccess("/x/host", sudo=False).words(("about",)) == ("/x/host", "about")


@pytest.mark.slow
def test_refused_by_systemctl_is_unknown(bench: Bench) -> None:
    """No bus, no rights: what the unit does is not known."""

    class NoBus(LocalRunner):
        def run(self, words: tuple[str, ...], *, stdin: bytes = b"", seconds: float = 1) -> Completed:  # type: ignore[override]
            return Completed(1, b"", "Failed to connect to bus: Host is down")

    found = bench.services(runner=NoBus()).state(NODE)
    assert isinstance(found, Unknown)
    assert HostCommandRefused.id in found.reason
    assert "Failed to connect to bus" in found.reason


def test_the_executor_is_the_inventorys() -> None:
    """Units are worked through the host program."""
    nodes = replace(worlds.inventory(), executor="ssh", executor_options={"kafka_home": "/opt/kafka"})
    made = executor_of(nodes)
    assert made.parallel
    assert isinstance(made.services, SystemdServices)
    made.close()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client on this machine")
def test_the_host_of_the_tool_is_worked_without_ssh_beside_hosts_that_need_it(tmp_path: Path) -> None:
    """One node is local with a program of its own; both answer, and the local one when no server does."""
    (tmp_path / "state").mkdir()
    here, there = (
        broker(7, tmp_path / "b7"),
        replace(broker(8, tmp_path / "b8"), host="kafka-2", address="kafka-2:9092"),
    )
    ways = []
    for node in (here, there):
        Path(node.config).write_text("broker.id=1\n")
        ways.append(installed(tmp_path / f"program-{node.id}", [node]))
    own = replace(here, executor=OwnExecutor("local", ways[0].program))
    with ssh_server(tmp_path / "ssh") as (server, _connections):
        options = {"kafka_home": "/k", "ssh_config": str(server.config), "host_program": ways[1].program, "sudo": "no"}
        brokers = (own, there)
        inventory = replace(
            worlds.inventory(), brokers=brokers, controllers=(), executor="ssh", executor_options=options
        )
        with closing(executor_of(inventory)) as made:
            assert made.runners[here.id].host == "this host"
            assert made.runners[there.id].host == "kafka-2"
            assert [made.files.read(node.id, node.config) for node in brokers] == [b"broker.id=1\n"] * 2
            assert isinstance(made.services.state(here.id), Stopped)
            server.stop()
        with closing(executor_of(inventory)) as made:
            assert made.files.read(here.id, here.config) == b"broker.id=1\n"
            with pytest.raises(HostUnreachable):
                made.files.read(there.id, there.config)
