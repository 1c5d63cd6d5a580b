"""Class-data archives (AppCDS): a JVM that maps its classes instead of parsing them needs a third less CPU to start.

Kafka's is built once for each runtime, class path and list of classes, and cached.  `kafka-3.9.2.classes.txt` names the
classes that ZooKeeper, brokers of every stage and controllers load, in a secured lab (TLS, SASL, the ciphers) too.
Plain names only: Java 21 crashes on the lambda lines that Java 17 writes.

Spark's driver writes a dynamic archive when the first driver of a user ends well, of the classes that it has loaded;
later ones of the same Java, jars and options map it.  Dynamic, because it then contains Scala's lambdas, which a list
of classes cannot name.  `KRAFT_MIGRATE_CLASS_ARCHIVE=off` or `--no-class-archive` turn it off.

Nothing depends on either: an archive that is damaged (its sum is checked before each use), another user's, or refused
by the JVM is not used, and a failure is reported and never raised.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import google_crc32c

from migrate.errors import MigrateError
from migrate.java.find import Java
from migrate.java.jars import KAFKA_VERSION, KafkaJars, Progress, fingerprint, locked, silent
from migrate.java.run import child_environment
from migrate.model import strict_json
from migrate.model.trusted import cache_directory, distrust_of

LOG: Final = logging.getLogger("migrate.java")
DUMP_SECONDS: Final = 300.0
CLASSES: Final = f"kafka-{KAFKA_VERSION}.classes.txt"


def archive_path(java: Java, jars: KafkaJars) -> Path:
    # changes with the runtime's own files and with the jars (the JVM would refuse the archive), and with the list
    listed = hashlib.sha256(files("migrate.java").joinpath(CLASSES).read_bytes()).hexdigest()
    key = hashlib.sha256("\n".join([jars.fingerprint, listed, *runtime_facts(java)]).encode()).hexdigest()[:20]
    return cache_directory() / "archives" / f"{key}.jsa"


def runtime_facts(java: Java) -> list[str]:
    """A value that changes with the runtime's own files."""
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
            java.path, "-Xshare:dump", "-XX:+UseSerialGC", f"-XX:SharedClassListFile={classes}",
            f"-XX:SharedArchiveFile={partial}", f"-XX:ErrorFile={path.with_suffix('.crash')}", "-Xlog:disable",
            "-cp", os.pathsep.join(jars.classpath),
        ]  # fmt: skip
        subprocess.run(
            argv, check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=DUMP_SECONDS,
            env=child_environment(),
            pass_fds=(lock,),  # an orphan of a killed run keeps the lock while it still writes
        )  # fmt: skip
    partial.rename(path)


VARIABLE: Final = "KRAFT_MIGRATE_CLASS_ARCHIVE"
OFF: Final = ("off", "no", "0", "false")
MAGIC: Final = 0xF00BABA8  # `CDS_DYNAMIC_ARCHIVE_MAGIC` of HotSpot, in the machine's own order
BASES: Final = ("lib/server/classes.jsa", "lib/server/classes_nocoops.jsa")
SUM_BLOCK: Final = 1 << 22
MOST: Final = 3  # archives that are kept


def use_no_archive() -> None:
    """Turn archives off for drivers of this process and its children."""
    os.environ[VARIABLE] = OFF[0]


def is_enabled() -> bool:
    return os.environ.get(VARIABLE, "").strip().lower() not in OFF


@dataclass(frozen=True, slots=True)
class DriverArchive:
    """What a driver does with the archive: it maps `path` (`used`), or writes it for later ones when it ends."""

    path: Path
    used: bool

    @property
    def partial(self) -> Path:
        """The path that a driver of this process writes."""
        return self.path.with_name(f"{self.path.stem}.{os.getpid()}.partial")

    @property
    def options(self) -> tuple[str, ...]:
        """The JVM's options; it runs without an archive that it refuses, and logs nothing."""
        if self.used:
            return ("-Xshare:auto", f"-XX:SharedArchiveFile={self.path}", "-Xlog:disable")
        return (f"-XX:ArchiveClassesAtExit={self.partial}", "-Xlog:disable")

    def keep(self) -> bool:
        """Keep the archive of a driver that ended well, with its checksum beside it.  False: there is none."""
        try:
            if not _is_archive(self.partial):
                self.partial.unlink(missing_ok=True)
                return False
            self.partial.chmod(0o600)
            summed = json.dumps(_sum(self.partial))
            note = self.partial.with_suffix(".sum")
            note.write_text(summed, encoding="utf-8")
            self.partial.rename(self.path)  # the sum last: an archive without its own sum is never used
            note.rename(_sum_of(self.path))
            # each is up to 150 MB, and those of an old Java or old jars are never used again
            found = self.path.parent.glob("spark-*.jsa")
            for old in sorted(found, key=lambda one: one.stat().st_mtime_ns, reverse=True)[MOST:]:
                _sum_of(old).unlink(missing_ok=True)
                old.unlink(missing_ok=True)
        except OSError as error:
            LOG.info("the class archive of Spark's driver was not kept: %s", error)
            return False
        LOG.info("a class archive of Spark's driver is kept: later ones start faster (%s)", self.path)
        return True

    def discard(self) -> None:
        """Remove it: a driver did not start with it."""
        for path in (_sum_of(self.path), self.path, self.partial):
            path.unlink(missing_ok=True)


def driver_archive(java: Java, classpath: Sequence[str], options: Sequence[str]) -> DriverArchive | None:
    """The archive for that driver, to be used or written; None where it is turned off or unsafe.

    `classpath` are jars alone (an archive is bound to them, in their order), `options` those of the JVM.
    """
    if not is_enabled() or not any((java.home / name).exists() for name in BASES):
        return None
    facts = "\n".join([fingerprint(classpath), *runtime_facts(java), *options])
    folder = cache_directory() / "archives"
    path = folder / f"spark-{hashlib.sha256(facts.encode()).hexdigest()[:20]}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if why := distrust_of(folder):
            LOG.info("no class archive: %s", why)
            return None
        for unfinished in folder.glob("spark-*.partial"):
            if not Path("/proc", unfinished.name.split(".")[1]).exists():
                unfinished.unlink(missing_ok=True)
        return DriverArchive(path, used=_whole(path))
    except OSError as error:
        LOG.info("no class archive for Spark's driver: %s", error)
        return None


def _whole(path: Path) -> bool:
    """Is the archive this user's, and unchanged?  Its code runs in the driver: another's is never mapped."""
    try:
        if distrust_of(path) or not _is_archive(path):
            return False
        return bool(strict_json.loads(_sum_of(path).read_text(encoding="utf-8")) == _sum(path))
    except (OSError, ValueError):
        return False


def _is_archive(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return int.from_bytes(file.read(4), sys.byteorder) == MAGIC
    except FileNotFoundError:
        return False


def _sum(path: Path) -> dict[str, int]:
    """Size and CRC-32C."""
    found = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for start in range(0, len(content), SUM_BLOCK):
            found = google_crc32c.extend(found, content[start : start + SUM_BLOCK])
        return {"size": len(content), "crc32c": found}


def _sum_of(path: Path) -> Path:
    return path.with_suffix(".sum")
