"""A standalone cluster of Spark's on this host: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from migrate.java.find import find_java

HOME: Final = Path(pyspark.__file__).parent
DEADLINE: Final = 120.0
MASTER: Final = re.compile(r"Starting Spark master at (spark://\S+)")
WORKERS: Final = 2
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


class SparkCluster:
    """`master` is its URL; what it starts ends with the block of `standalone`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._run("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        self.master = self.said("master", MASTER)[1]
        for number in range(WORKERS):
            words = ("--host", "127.0.0.1", "--port", "0", "--cores", "1", "--memory", "512m")
            name = f"worker{number}"
            place = ("--work-dir", str(folder / name))
            self._run(name, "org.apache.spark.deploy.worker.Worker", *words, *place, self.master)
        for number in range(WORKERS):
            self.said(f"worker{number}", re.compile("Successfully registered with master"))

    def log(self, name: str) -> Path:
        """What that process says."""
        return self.folder / f"{name}.log"

    def said(self, name: str, words: re.Pattern[str]) -> re.Match[str]:
        """Wait until it has said so."""
        until = time.monotonic() + DEADLINE
        while not (found := words.search(self.log(name).read_text())):
            assert self.processes[name].poll() is None, self.log(name).read_text()[-2000:]
            assert time.monotonic() < until, self.log(name).read_text()[-2000:]
        return found

    def kill(self, name: str) -> None:
        """SIGKILL to that process and to the executors that it started."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait(30)

    def _run(self, name: str, main: str, *words: str) -> None:
        java = find_java()
        options = ("-Xmx256m", *MODULE_OPTIONS, "-cp", str(HOME / "jars" / "*"))
        home = {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",  # a worker looks for it in a source tree otherwise
            "JAVA_HOME": str(Path(java.path).parents[1]),
        }
        argv = [java.path, *options, main, *words, "--webui-port", "0"]
        with self.log(name).open("wb") as log:
            self.processes[name] = subprocess.Popen(
                argv, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **home}, start_new_session=True
            )


@contextmanager
def standalone(folder: Path) -> Iterator[SparkCluster]:
    """A cluster that runs while the block does."""
    cluster = SparkCluster(folder)
    try:
        yield cluster
    finally:
        for name, process in cluster.processes.items():
            if process.poll() is None:
                cluster.kill(name)


@contextmanager
def connect_server(folder: Path, port: int) -> Iterator[str]:
    """A Spark Connect server, as PySpark's package brings it; its URL, while the block runs."""
    java = find_java()
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
    }
    argv = [
        java.path,
        "-Xmx512m",
        *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *MODULE_OPTIONS,
        *(f"-D{name}={value}" for name, value in settings.items()),
        *("-cp", str(HOME / "jars" / "*"), "org.apache.spark.sql.connect.service.SparkConnectServer"),
    ]
    path = folder / "connect.log"
    with path.open("wb") as log:
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, env=env, start_new_session=True)
    try:
        until = time.monotonic() + DEADLINE
        while b"Spark Connect server started at" not in path.read_bytes():
            assert process.poll() is None, path.read_text()[-2000:]
            assert time.monotonic() < until, path.read_text()[-2000:]
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
