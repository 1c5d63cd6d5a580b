"""The supervisor with real small processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.errors import ProcessNotStarted, ProcessNotStopped, ProcessSpecUnreadable
from migrate.lab.supervisor import ProcessSpec, Supervisor, write_spec
from migrate.lab.units import Record, boot_id, is_alive, parse_record, parse_stat, read_stat
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.views import Running, Stopped

OBEDIENT = "import signal; signal.sigwait({signal.SIGTERM})"
STUBBORN = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], 'w').write('deaf')
signal.sigwait({signal.SIGUSR1})
"""


class Stage:
    """A state folder with processes of our making, all ended at the end of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.supervisor = Supervisor(folder)

    def add(
        self, name: str, script: str = OBEDIENT, *args: str, node: int | None = None, **changes: object
    ) -> ProcessSpec:
        """Describe a process; `changes` replace fields of its description."""
        config = self.folder / f"{name}.properties"
        config.write_text("a=1\n")
        facts: dict[str, object] = {
            "name": name,
            "node": node,
            "argv": (sys.executable, "-S", "-c", script, *args),
            "directory": str(self.folder),
            "log": str(self.folder / f"{name}.log"),
            "output": str(self.folder / f"{name}.out"),
            "config": str(config),
            "environment": {"PATH": "/usr/bin:/bin"},
            **changes,
        }
        spec = ProcessSpec(**facts)  # type: ignore[arg-type]
        write_spec(self.folder, spec)
        return spec

    def pid(self, name: str) -> int:
        """The pid of a process that must run."""
        state = self.supervisor.state(name)
        assert isinstance(state, Running)
        return state.pid

    def sweep(self) -> None:
        """End whatever still runs."""
        for path in self.folder.glob("*.running"):
            with contextlib.suppress(ProcessSpecUnreadable):
                state = self.supervisor.state(path.name.removesuffix(".running"))
                if isinstance(state, Running):
                    os.kill(state.pid, signal.SIGKILL)
                    await_end(state.pid)
                    self.supervisor.state(path.name.removesuffix(".running"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A state folder of its own."""
    stage = Stage(tmp_path)
    yield stage
    stage.sweep()


def await_end(pid: int) -> None:
    """Wait for the end of a process without polling."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(20_000)
    os.close(descriptor)


def await_file(path: Path) -> None:
    """Wait until the file has content."""
    for _ in range(2000):
        if path.exists() and path.read_text():
            return
        select.select([], [], [], 0.01)
    pytest.fail(f"{path} was not written")


def test_a_started_process_runs_in_its_own_session_with_its_record(stage: Stage) -> None:
    """So that a terminal's Ctrl-C does not reach it, and the next run finds it."""
    spec = stage.add("broker-0", node=0)
    stage.supervisor.start(NodeId(0))
    state = stage.supervisor.state(NodeId(0))
    assert isinstance(state, Running)
    assert os.getsid(state.pid) == state.pid
    assert state.config_sha256 == hashlib.sha256(Path(spec.config).read_bytes()).hexdigest()


def test_the_record_keeps_the_configuration_that_the_process_was_started_with(stage: Stage) -> None:
    """A file edited later does not make an old process look like a new one."""
    spec = stage.add("broker-0")
    stage.supervisor.start("broker-0")
    before = stage.supervisor.state("broker-0")
    Path(spec.config).write_text("a=2\n")
    assert stage.supervisor.state("broker-0") == before


def test_a_configuration_that_is_missing_at_the_start_is_told_as_none(stage: Stage) -> None:
    """No hash is made up."""
    stage.add("broker-0", config="/nonexistent/file")
    stage.supervisor.start("broker-0")
    state = stage.supervisor.state("broker-0")
    assert isinstance(state, Running)
    assert state.config_sha256 is None


def test_stop_waits_until_the_process_is_gone_and_knows_its_exit_code(stage: Stage) -> None:
    """After stop returns, nothing of it is left, no zombie either."""
    stage.add("broker-0")
    stage.supervisor.start("broker-0")
    pid = stage.pid("broker-0")
    stage.supervisor.stop("broker-0", 20)
    assert stage.supervisor.state("broker-0") in {Stopped(0), Stopped(-signal.SIGTERM)}
    assert not Path(f"/proc/{pid}").exists()


def test_stopping_what_does_not_run_is_nothing(stage: Stage) -> None:
    """The same command may be given twice."""
    stage.add("broker-0")
    stage.supervisor.stop("broker-0", 1)
    assert stage.supervisor.state("broker-0") == Stopped(None)


@pytest.mark.slow
def test_a_process_that_ignores_sigterm_is_never_killed(stage: Stage, tmp_path: Path) -> None:
    """A typed error says that it lives on, with the end of its log."""
    deaf = tmp_path / "deaf"
    spec = stage.add("broker-0", STUBBORN, str(deaf))
    Path(spec.log).write_text("one\ntwo\nthree\nfour\n")
    stage.supervisor.start("broker-0")
    await_file(deaf)
    with pytest.raises(ProcessNotStopped, match="still runs") as caught:
        stage.supervisor.stop("broker-0", 0.2)
    assert "four" in caught.value.why
    assert isinstance(stage.supervisor.state("broker-0"), Running)


def test_a_process_is_not_started_twice(stage: Stage) -> None:
    """Two brokers on one log directory would be worse than none."""
    stage.add("broker-0")
    stage.supervisor.start("broker-0")
    pid = stage.pid("broker-0")
    with pytest.raises(ProcessNotStarted, match=f"runs already .pid {pid}"):
        stage.supervisor.start("broker-0")
    assert stage.pid("broker-0") == pid


def test_a_dead_process_is_started_again(stage: Stage) -> None:
    """The record of the dead one is replaced."""
    stage.add("broker-0")
    stage.supervisor.start("broker-0")
    first = stage.pid("broker-0")
    os.kill(first, signal.SIGKILL)
    await_end(first)
    assert stage.supervisor.state("broker-0") == Stopped(-signal.SIGKILL)
    stage.supervisor.start("broker-0")
    assert stage.pid("broker-0") != first


def test_another_supervisor_of_this_process_reaps_too(stage: Stage) -> None:
    """A zombie is dead, whichever object started it."""
    stage.add("broker-0")
    stage.supervisor.start("broker-0")
    pid = stage.pid("broker-0")
    os.kill(pid, signal.SIGKILL)
    await_end(pid)
    assert Supervisor(stage.folder).state("broker-0") == Stopped(-signal.SIGKILL)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_processes_outlive_a_killed_run_and_the_next_adopts_them(stage: Stage) -> None:
    """The run that started them is killed with SIGKILL; they go on, known and stoppable."""
    stage.add("broker-0")
    script = (
        "import os, sys; from migrate.lab.supervisor import Supervisor;"
        "Supervisor(sys.argv[1]).start('broker-0'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(stage.folder)], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
    pid = stage.pid("broker-0")
    stage.supervisor.stop("broker-0", 20)
    await_end(pid)
    assert isinstance(stage.supervisor.state("broker-0"), Stopped)


def test_another_process_with_the_recorded_pid_is_never_touched(stage: Stage) -> None:
    """Pids are used again: a record whose start time differs is not that process."""
    stage.add("broker-0")
    with subprocess.Popen([sys.executable, "-S", "-c", OBEDIENT]) as innocent:
        line = Path(f"/proc/{innocent.pid}/stat").read_text()
        head, _, tail = line.rpartition(")")
        fields = tail.split()
        fields[19] = str(int(fields[19]) - 1)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        record = stage.folder / "broker-0.running"
        record.write_text(f"{boot} 1.0 -\n{head}) {' '.join(fields)}\n")
        assert isinstance(stage.supervisor.state("broker-0"), Stopped)
        stage.supervisor.stop("broker-0", 0.1)
        assert innocent.poll() is None
        innocent.kill()


def test_a_record_of_another_boot_is_no_process(stage: Stage) -> None:
    """Start times count from the boot, so after one they may be equal by chance."""
    stage.add("broker-0")
    line = Path(f"/proc/{os.getpid()}/stat").read_text()
    (stage.folder / "broker-0.running").write_text(f"another-boot 1.0 -\n{line}")
    assert isinstance(stage.supervisor.state("broker-0"), Stopped)


def test_a_torn_record_is_unknown_and_stops_nothing(stage: Stage) -> None:
    """Unknown is never read as stopped: nothing is started beside it, nothing ended."""
    stage.add("broker-0")
    (stage.folder / "broker-0.running").write_text("half a li")
    assert isinstance(stage.supervisor.state("broker-0"), Unknown)
    with pytest.raises(ProcessNotStopped):
        stage.supervisor.stop("broker-0", 1)
    with pytest.raises(ProcessNotStarted):
        stage.supervisor.start("broker-0")


def test_a_program_that_is_not_there_ends_at_once_and_its_output_says_why(stage: Stage) -> None:
    """The complaint of the shell is in the process's output."""
    stage.add("broker-0", argv=("/nonexistent/java", "-version"))
    stage.supervisor.start("broker-0")
    state = stage.supervisor.state("broker-0")
    if isinstance(state, Running):
        await_end(state.pid)
        state = stage.supervisor.state("broker-0")
    assert state == Stopped(127)
    assert "/nonexistent/java" in "\n".join(stage.supervisor.last_words("broker-0", 5))


def test_a_folder_that_is_not_there_is_a_typed_error(stage: Stage) -> None:
    """What could not even be launched is told at once."""
    stage.add("broker-0", directory="/nonexistent/folder")
    with pytest.raises(ProcessNotStarted) as caught:
        stage.supervisor.start("broker-0")
    assert "/nonexistent/folder" in caught.value.why


def test_only_the_described_environment_reaches_the_process(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to be set in our shell decides nothing."""
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", "hush")
    stage.add("broker-0", "import os; print(sorted(os.environ))", environment={"PATH": "/usr/bin:/bin", "LAB": "1"})
    stage.supervisor.start("broker-0")
    await_file(stage.folder / "broker-0.out")
    words = (stage.folder / "broker-0.out").read_text()
    assert "LAB" in words
    assert "PYSPARK" not in words


def test_last_words_are_the_logs_end(stage: Stage) -> None:
    """Of the log if there is one, of the output otherwise; nothing where neither is."""
    spec = stage.add("broker-0")
    assert list(stage.supervisor.last_words("broker-0", 2)) == []
    Path(spec.output).write_text("a\nb\nc\n")
    assert list(stage.supervisor.last_words("broker-0", 2)) == ["b", "c"]
    Path(spec.log).write_text("x\ny\n")
    assert list(stage.supervisor.last_words("broker-0", 1)) == ["y"]


def test_whoever_asks_for_many_lines_gets_what_lies_far_back(stage: Stage) -> None:
    """A broker that cannot reach its controller says so forty times a second, and buries what it said before."""
    spec = stage.add("broker-0")
    again = f"[2026-11-22 13:45:24,698] INFO {'x' * 200}\n"
    Path(spec.log).write_text("a thread died\n" + again * 20_000)
    assert stage.supervisor.last_words("broker-0", 50_000)[0] == "a thread died"
    assert len(stage.supervisor.last_words("broker-0", 2_000)) == 2_000


def test_a_node_that_is_not_described_is_a_typed_error(stage: Stage) -> None:
    """Neither by id nor by name."""
    with pytest.raises(ProcessSpecUnreadable):
        stage.supervisor.state(NodeId(7))
    with pytest.raises(ProcessSpecUnreadable):
        stage.supervisor.state("broker-7")


def test_a_description_survives_the_disk(stage: Stage) -> None:
    """What is read is what was written; what is not ours is refused."""
    spec = stage.add("broker-0", node=0, format_argv=("a", "b"))
    assert Supervisor(stage.folder).specs() == {"broker-0": spec}
    (stage.folder / "broker-0.process.json").write_text('{"name": "broker-0"}')
    with pytest.raises(ProcessSpecUnreadable):
        stage.supervisor.spec("broker-0")


@pytest.mark.parametrize(
    "change", [..., b"", b"[]", b"[" * 100_000, {"argv": "sh -c x"}, {"argv": [1]}, {"environment": {"A": 1}}, {"x": 1}]
)
def test_a_description_of_another_kind_is_refused_by_name(tmp_path: Path, change: object) -> None:
    """Nothing is started by it."""
    write_spec(tmp_path, ProcessSpec("a", None, ("true",), "/", "/l", "/o", "/c"))
    (path,) = tmp_path.iterdir()
    whole = json.loads(path.read_bytes())
    if change is ...:
        del whole["name"]
    raw = change if isinstance(change, bytes) else json.dumps({**whole, **(change if isinstance(change, dict) else {})})
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    with pytest.raises(ProcessSpecUnreadable) as caught:
        Supervisor(tmp_path).specs()
    assert caught.value.where == str(path)


LINE = "17 (a ) b (c) S 4 17 17 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 998877 100 200\n"


def test_a_command_name_may_hold_spaces_and_parentheses() -> None:
    """The last closing parenthesis ends it (proc(5))."""
    stat = parse_stat(LINE)
    assert (stat.pid, stat.state, stat.parent, stat.start) == (17, "S", 4, 998877)


@pytest.mark.parametrize("text", ["", "17", "17 (sh) S 4", "x (sh) " + "1 " * 22])
def test_what_is_no_stat_line_is_refused(text: str) -> None:
    """A torn line is never half believed."""
    with pytest.raises(ValueError, match=r".+"):
        parse_stat(text)


def test_a_record_holds_boot_start_and_configuration() -> None:
    """Three words, then the stat line."""
    assert parse_record("boot 12.5 abc\n" + LINE) == Record("boot", 12.5, "abc", 17, 998877)
    assert parse_record("boot 12.5 -\n" + LINE).config_sha256 is None


@pytest.mark.parametrize("text", ["", "boot 12.5\n" + LINE, "boot x abc\n" + LINE, "boot 1 abc\nhalf"])
def test_what_is_no_record_is_refused(text: str) -> None:
    """So that its state is unknown, not stopped."""
    with pytest.raises(ValueError, match=r".+"):
        parse_record(text)


def test_this_very_process_is_alive_and_no_other_is_taken_for_it() -> None:
    """pid, start and boot must all agree."""
    me = read_stat(os.getpid())
    assert me is not None
    record = Record(boot_id(), 0.0, None, me.pid, me.start)
    assert is_alive(record)
    assert not is_alive(Record(boot_id(), 0.0, None, me.pid, me.start + 1))
    assert not is_alive(Record("another", 0.0, None, me.pid, me.start))


def test_a_pid_that_is_not_there_is_none() -> None:
    """The largest pid the kernel hands out is below this number."""
    limit = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert read_stat(limit + 1) is None
