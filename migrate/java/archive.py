"""Class-data archives (AppCDS): a JVM that maps its classes instead of parsing them needs a third less CPU to start.

Built once for each runtime, class path and list of classes, and cached.  `kafka-3.9.2.classes.txt` names the classes
that ZooKeeper, brokers of every stage and controllers load, in a secured lab (TLS, SASL, the ciphers) too.  Plain names
only: Java 21 crashes on the lambda lines that Java 17 writes.  A lab without an archive works, only slower: a failure
is told and never raised.
"""

from __future__ import annotations

import hashlib
import logging
import os
import subprocess
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from migrate.errors import MigrateError
from migrate.java.cache import Progress, locked, silent
from migrate.java.find import Java
from migrate.java.jars import KAFKA_VERSION, KafkaJars
from migrate.java.run import child_environment
from migrate.model.trusted import distrust_of
from migrate.model.user_cache import cache_directory

LOG: Final = logging.getLogger("migrate.java")
DUMP_SECONDS: Final = 300.0
CLASSES: Final = f"kafka-{KAFKA_VERSION}.classes.txt"


def archive_path(java: Java, jars: KafkaJars) -> Path:
    """Where the archive of that runtime and class path lies, or would lie."""
    return cache_directory() / "archives" / f"{_key(java, jars)}.jsa"


def _key(java: Java, jars: KafkaJars) -> str:
    """Changes with the runtime's own files and with the jars (the JVM would refuse the archive), and with the list."""
    listed = hashlib.sha256(files("migrate.java").joinpath(CLASSES).read_bytes()).hexdigest()
    return hashlib.sha256("\n".join([jars.fingerprint, listed, *runtime_facts(java)]).encode()).hexdigest()[:20]


def runtime_facts(java: Java) -> list[str]:
    """What changes with the runtime's own files."""
    facts = [str(java.home)]
    for name in ("release", "lib/server/libjvm.so", "lib/modules"):
        path = java.home / name
        if path.exists():
            stat = path.stat()
            facts.append(f"{name} {stat.st_size} {stat.st_mtime_ns}")
    return facts


def archive_options(java: Java, jars: KafkaJars, progress: Progress = silent) -> tuple[str, ...]:
    """JVM options that use the archive, which is built first where it is missing; none where that fails."""
    path = archive_path(java, jars)
    if path.exists() and (why := distrust_of(path.parent, path)):
        LOG.warning("the class archive is not used, processes start slower: %s", why)
        return ()
    if not path.exists():
        try:
            with locked(path.parent / "archives.lock", progress) as lock:
                if not path.exists():
                    progress("building a class archive (once for each Java and set of jars)")
                    _build(java, jars, path, lock)
        except (OSError, MigrateError, subprocess.SubprocessError) as error:
            LOG.warning("no class archive, processes start slower: %s", error)
            progress("no class archive could be built: processes start slower")
            return ()
    return (f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off")


def _build(java: Java, jars: KafkaJars, path: Path, lock: int) -> None:
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with as_file(files("migrate.java").joinpath(CLASSES)) as classes:
        argv = [
            java.path,
            "-Xshare:dump",
            "-XX:+UseSerialGC",
            f"-XX:SharedClassListFile={classes}",
            f"-XX:SharedArchiveFile={partial}",
            f"-XX:ErrorFile={path.with_suffix('.crash')}",
            "-Xlog:disable",
            "-cp",
            os.pathsep.join(jars.classpath),
        ]
        subprocess.run(
            argv,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=DUMP_SECONDS,
            env=child_environment(),
            pass_fds=(lock,),  # an orphan of a killed run keeps the lock while it still writes
        )
    partial.rename(path)
