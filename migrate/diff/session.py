"""One Spark session for a whole run, started in the background while the views are read.

    spark = SparkHandle.start(workdir=run_folder)
    ...                                      # read the views
    report = compare(spark.get(timeout=120), ...)
    spark.stop()

Local by default; elsewhere by `--spark-master` and `--spark-conf`.  pyspark knows one session per process, so a process
has one handle at a time.

On a Spark Connect server (`sc://HOST:PORT`) there is no driver and no Java here: plans go there over gRPC.  It needs
the extra `connect`.  Only settings that a session may change are requested.  A token, where the server requires one, is
pyspark's `SPARK_CONNECT_AUTHENTICATE_TOKEN`.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import migrate
from migrate.errors import MigrateError, NoJava, SparkDidNotStart, SparkGone
from migrate.java.archive import DriverArchive, driver_archive
from migrate.java.find import find_java
from migrate.java.gateway import DriverJvm, DriverRequest, jar_files, start_driver
from migrate.model.difference import SparkWhere
from migrate.model.requirements import package_missing, require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOG = logging.getLogger("migrate.diff")
LEAST_HEAP, MOST_HEAP = 512, 4096  # MiB; a small cluster leaves most of it untouched
LOCAL: Final = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "localhost"}
# glibc gives each of the driver's threads a heap of its own for what is not Java's, and those grow from job to job
ARENAS: Final = "MALLOC_ARENA_MAX"
ARCHIVING_SECONDS: Final = 120.0  # a driver may take to write its class archive when it ends
SMALL_DRIVER: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:MaxMetaspaceSize=256m")
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
    base = {
        "spark.master": master,
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
        self._jvm: DriverJvm | None = None
        self._session: SparkSession | None = None
        self._failure: MigrateError | None = None
        self._archive: DriverArchive | None = None
        self._stopped = False
        self._shipped = False
        self.seconds = 0.0  # from start to the end of the first job
        self.waited = 0.0  # of them, somebody waited for it in `get`
        self._thread = threading.Thread(target=self._run, name="spark-start", daemon=True)

    @classmethod
    def start(cls, workdir: Path, where: SparkWhere | None = None) -> SparkHandle:
        """Start a session in the background.  `workdir` is the run's folder (it must exist).  Raises PackageMissing."""
        where = where or SparkWhere()
        require("pyspark", "pyarrow", *(("grpc", "pandas") if where.is_connect else ()))
        handle = cls(where, workdir)
        handle._thread.start()
        return handle

    def get(self, timeout: float = 180.0) -> SparkSession:
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
        if self._jvm is not None and not self._jvm.alive:
            raise SparkGone("Spark's driver is gone", where=self._where.master, why=self._jvm.complaint())
        return self._session

    def ship_package(self) -> SparkSession:
        """The session, once its executors have this package, which those elsewhere need not have.

        Raises what `get` raises.
        """
        require("pandas")  # or mapInArrow would refuse, by an error of its own
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

        A start that is in progress is broken off: what was not comparable is not waited for.
        """
        self._stopped = True
        if not self._ready.is_set() and (starting := self._jvm) is not None:
            starting.stop(0.0)
        self._thread.join()
        with self._lock:
            session, self._session = self._session, None
            jvm, self._jvm = self._jvm, None
            if session is not None:
                close_session(session) if jvm is None else _close(session, alive=jvm.alive)
            if jvm is not None:
                self._end(jvm, well=session is not None)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, jvm: DriverJvm, *, well: bool) -> None:
        """End the driver; its class archive is kept for later ones."""
        archive = self._archive if well else None
        if archive is None or archive.used:
            jvm.stop()
            return
        jvm.stop(ARCHIVING_SECONDS)
        if jvm.ended_well:
            archive.keep()
        else:
            archive.partial.unlink(missing_ok=True)  # another process may have written a whole one meanwhile

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

    def _come_up(self) -> None:
        """Driver, session, first job; once more without the class archive where the driver dies with it."""
        if self._where.is_connect:
            self._session = open_session(self._where)
            _warm(self._session)
            return
        request = self._request()
        self._archive = archive = request.archive
        try:
            self._up(request)
        except Exception as error:
            alone = self._jvm is None or not self._jvm.alive
            if archive is None or not archive.used or not alone or self._stopped or isinstance(error, NoJava):
                raise
            LOG.info("Spark's driver did not come up with its class archive: once more without (%s)", _short(error))
            if self._session is not None:
                _close(self._session, alive=False)
            self._jvm = self._session = self._archive = None
            self._up(replace(request, archive=None))
            archive.discard()

    def _up(self, request: DriverRequest) -> None:
        self._jvm = start_driver(request, unwanted=lambda: self._stopped)
        if self._stopped:
            return
        self._session = _connect(self._jvm, request.environment["PYSPARK_PYTHON"])
        if self._stopped:
            return
        _warm(self._session)

    def _did_not_come_up(self, error: Exception) -> SparkDidNotStart:
        """The error, with the reason in its message: an Unknown keeps nothing else."""
        said = "" if self._jvm is None else self._jvm.complaint()
        return SparkDidNotStart(
            f"the Spark session did not come up at {self._where.master}: {said or _short(error)}",
            where=self._where.master,
        )

    def _request(self) -> DriverRequest:
        conf = settings(self._where.master, self._folder, self._where.conf)
        memory = conf.pop("spark.driver.memory", "") or f"{_heap()}m"
        quiet = self._folder / "log4j2.properties"
        quiet.write_text(QUIET_LOG, encoding="utf-8")
        local, java, jars = self._where.is_local, find_java(), _spark_home() / "jars"
        folders = _configuration_folders()
        return DriverRequest(
            java=java,
            jars=jars,
            conf=conf,
            folder=self._folder,
            memory=memory,
            options=(
                *(SMALL_DRIVER if local else ()),
                f"-XX:ErrorFile={self._folder / 'spark-driver.crash'}",  # else it would lie where we were started
                f"-Dlog4j2.configurationFile={quiet.as_uri()}",
            ),
            extra_classpath=folders,
            archive=driver_archive(java, jar_files(jars), SMALL_DRIVER) if local and not folders else None,
            environment={
                "PYSPARK_PYTHON": conf["spark.pyspark.python"],
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                **({**LOCAL, ARENAS: os.environ.get(ARENAS, "2")} if local else {}),
            },
        )


def _heap() -> int:
    """The default heap of the driver in MiB: a sixteenth of the machine's memory, within bounds."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return min(max(machine // 16, LEAST_HEAP), MOST_HEAP)


def _spark_home() -> Path:
    import pyspark  # noqa: PLC0415 - importing this module must not cost what pyspark costs

    return Path(pyspark.__file__).parent


def _configuration_folders() -> tuple[str, ...]:
    """Folders with the operator's own Spark, Hadoop and YARN settings, for masters other than local."""
    named = (os.environ.get(name, "") for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    return tuple(folder for folder in named if folder and Path(folder).is_dir())


def _connect(jvm: DriverJvm, python: str) -> SparkSession:
    """A session in that driver.  pyspark takes port and secret from the environment; they leave it at once."""
    from pyspark import SparkContext  # noqa: PLC0415 - see _spark_home
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkContext._gateway is not None:  # noqa: SLF001 - pyspark has no public way to ask
        raise SparkDidNotStart("this process has a Spark session already", why="pyspark knows one session a process")
    # Py4J logs a traceback for whatever interrupts a call, Ctrl-C too; what matters comes back as an exception
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(NOTHING_OF_PY4J)  # again is nothing
    os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"] = python, sys.executable
    os.environ.update({"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret})
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    try:
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as SparkContext(gateway=...) does
        session: SparkSession = SparkSession.builder.getOrCreate()
    except BaseException:
        gateway.shutdown()
        _forget()
        raise
    return session


def _warm(session: SparkSession) -> None:
    """A first job of the kind that follows, so that its classes are loaded and its code paths compiled."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    left = session.range(8).select(F.col("id"), F.array("id").alias("a"))
    right = session.range(8).select(F.col("id"), F.array("id").alias("b"))
    joined = left.join(right, "id", "full_outer").where(~F.col("a").eqNullSafe(F.col("b")))
    joined.groupBy("id").count().toArrow()


def _close(session: SparkSession, *, alive: bool) -> None:
    """Stop the session and forget the gateway, so that this process may have another session later."""
    from pyspark import SparkContext  # noqa: PLC0415 - see _spark_home

    gateway = SparkContext._gateway  # noqa: SLF001 - pyspark never gives a gateway back by itself
    try:
        if alive:
            session.stop()
    except Exception as error:  # noqa: BLE001 - we are ending it; a driver that dies meanwhile is gone as well
        LOG.debug("stopping the Spark session: %s", _short(error))
    finally:
        if gateway is not None:
            gateway.shutdown()
        _forget()


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
