"""The class archive of Spark's driver (dynamic AppCDS): the driver maps its classes instead of parsing them.

The first driver of a user that comes up and ends well writes it when it ends, of whatever it had loaded; every later
one of the same Java, jars and options maps it.  Dynamic, since it then holds the lambdas of Scala too, which a list of
classes cannot name.  Nothing depends on it: what is damaged (its sum is checked before each use), another user's, or
refused by the JVM is not used, and made again.  `KRAFT_MIGRATE_CLASS_ARCHIVE=off` or `--no-class-archive` do without.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import google_crc32c

from migrate.java.archive import runtime_facts
from migrate.java.find import Java
from migrate.java.jars import fingerprint
from migrate.model import strict_json
from migrate.model.trusted import distrust_of
from migrate.model.user_cache import cache_directory

LOG: Final = logging.getLogger("migrate.java")
VARIABLE: Final = "KRAFT_MIGRATE_CLASS_ARCHIVE"
OFF: Final = ("off", "no", "0", "false")
MAGIC: Final = 0xF00BABA8  # `CDS_DYNAMIC_ARCHIVE_MAGIC` of HotSpot, in the machine's own order
BASES: Final = ("lib/server/classes.jsa", "lib/server/classes_nocoops.jsa")
SUM_BLOCK: Final = 1 << 22
MOST: Final = 3  # archives that are kept


def use_no_archive() -> None:
    """From now on, in this process and in those that it starts, drivers load their classes from the jars."""
    os.environ[VARIABLE] = OFF[0]


def wanted() -> bool:
    """Has nobody said otherwise?"""
    return os.environ.get(VARIABLE, "").strip().lower() not in OFF


@dataclass(frozen=True, slots=True)
class DriverArchive:
    """What a driver does with the archive: it maps `path` (`used`), or writes it for later ones when it ends."""

    path: Path
    used: bool

    @property
    def partial(self) -> Path:
        """What a driver of this process writes."""
        return self.path.with_name(f"{self.path.stem}.{os.getpid()}.partial")

    @property
    def options(self) -> tuple[str, ...]:
        """The JVM's options; it says nothing of an archive that it refuses, and runs without."""
        if self.used:
            return ("-Xshare:auto", f"-XX:SharedArchiveFile={self.path}", "-Xlog:disable")
        return (f"-XX:ArchiveClassesAtExit={self.partial}", "-Xlog:disable")

    def keep(self) -> bool:
        """The driver ended well: give what it wrote its name, with its sum beside it.  False: there is nothing."""
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
            _forget_old(self.path)
        except OSError as error:
            LOG.info("the class archive of Spark's driver was not kept: %s", error)
            return False
        LOG.info("a class archive of Spark's driver is kept: later ones start faster (%s)", self.path)
        return True

    def discard(self) -> None:
        """Remove it: a driver did not come up with it."""
        for path in (_sum_of(self.path), self.path, self.partial):
            path.unlink(missing_ok=True)


def driver_archive(java: Java, classpath: Sequence[str], options: Sequence[str]) -> DriverArchive | None:
    """The archive for that driver, to be used or to be written; None where there is to be none.

    `classpath` are jars alone (an archive is bound to them, in their order), `options` those of the JVM.
    """
    if not wanted() or not any((java.home / name).exists() for name in BASES):
        return None
    facts = "\n".join([fingerprint(classpath), *runtime_facts(java), *options])
    folder = cache_directory() / "archives"
    path = folder / f"spark-{hashlib.sha256(facts.encode()).hexdigest()[:20]}.jsa"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if why := distrust_of(folder):
            LOG.info("no class archive: %s", why)
            return None
        _clear(folder)
        return DriverArchive(path, used=_whole(path))
    except OSError as error:
        LOG.info("no class archive for Spark's driver: %s", error)
        return None


def _whole(path: Path) -> bool:
    """Is there an archive of ours, as it was written?  Its code runs in our driver: another's is never mapped."""
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


def _forget_old(path: Path) -> None:
    """Keep the few newest: each is as large as 150 MB, and those of an old Java or of old jars are never asked for."""
    found = sorted(path.parent.glob("spark-*.jsa"), key=lambda one: one.stat().st_mtime_ns, reverse=True)
    for old in found[MOST:]:
        _sum_of(old).unlink(missing_ok=True)
        old.unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    """Remove what drivers of processes that are gone have left half-written."""
    for path in folder.glob("spark-*.partial"):
        pid = path.name.split(".")[1]
        if not Path(f"/proc/{pid}").exists():
            path.unlink(missing_ok=True)
