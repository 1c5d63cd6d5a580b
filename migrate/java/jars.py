"""Kafka's jars: the operator's own distribution, or the locked set of 3.9.2, fetched once and checked.

The lock list (`kafka-3.9.2.sha256.txt`, in the form that `sha256sum -c` reads) names every jar that may reach a class
path.  A jar that is missing, changed or unknown to it never does.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from migrate.errors import JarSumWrong, JarsUnavailable, KafkaHomeUnusable
from migrate.java import ivy
from migrate.java.cache import Progress, locked, silent, staged
from migrate.java.find import Java, find_java
from migrate.model.trusted import cache_directory, distrust_of

KAFKA_VERSION: Final = "3.9.2"
MIGRATING_LINE: Final = "3.9."  # the last line of Kafka that can migrate
BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """A class path of explicit files, sorted (class archives ask for exactly that), and Kafka's version."""

    classpath: tuple[str, ...]
    version: str

    @property
    def fingerprint(self) -> str:
        """Changes with names, order, sizes and times of the jars: what a class archive is bound to."""
        return fingerprint(self.classpath)


def fingerprint(classpath: Sequence[str]) -> str:
    """Of names, order, sizes and times of these files."""
    stats = ((path, Path(path).stat()) for path in classpath)
    facts = "\n".join(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats)
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def lock_list() -> dict[str, str]:
    """File name -> SHA-256 of every jar of Kafka 3.9.2."""
    text = files("migrate.java").joinpath(f"kafka-{KAFKA_VERSION}.sha256.txt").read_text(encoding="utf-8")
    return parse_lock_list(text)


def parse_lock_list(text: str) -> dict[str, str]:
    """Lines of `<sha256>  <name>` (pure)."""
    pairs = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {name.strip(): digest for digest, name in pairs}


def jars_directory(sums: Mapping[str, str]) -> Path:
    """The locked set's folder in the cache: named after the list, so that another list never finds it."""
    digest = hashlib.sha256(repr(sorted(sums.items())).encode()).hexdigest()[:12]
    return cache_directory() / f"kafka-{KAFKA_VERSION}-{digest}"


def kafka_jars(kafka_home: str | None = None, progress: Progress = silent, *, java: Java | None = None) -> KafkaJars:
    """Return the jars to run Kafka with; fetched on a user's first call, then from the cache.

    Raises:
        KafkaHomeUnusable: `kafka_home` is given and holds no Kafka 3.9.
        JarsUnavailable: they are not cached and could not be fetched.
        JarSumWrong: a jar, fetched or cached, is not the one of the lock list.
    """
    if kafka_home is not None:
        return from_home(Path(kafka_home))
    sums = lock_list()
    folder = jars_directory(sums)
    if not folder.is_dir():
        _install(folder, sums, java or find_java(), progress)
    return check_jars(folder, sums)


def cached_jars() -> KafkaJars | None:
    """The locked set if it is in the cache (sums not read again), else None."""
    sums = lock_list()
    folder = jars_directory(sums)
    return _ours(folder, sums) if folder.is_dir() else None


def _ours(folder: Path, sums: Mapping[str, str]) -> KafkaJars:
    jars = [folder / name for name in sorted(sums)]
    try:
        why = distrust_of(folder, *jars)
    except FileNotFoundError as error:
        raise JarSumWrong("a jar is not there", where=str(error.filename)) from error
    if why:
        raise KafkaHomeUnusable(
            why,
            where=str(folder),
            why="its jars are run as you, and others could have changed them",
            next_step="remove that folder: it is fetched again",
        )
    return KafkaJars(tuple(map(str, jars)), KAFKA_VERSION)


def from_home(home: Path) -> KafkaJars:
    """The jars of an unpacked distribution, as they are: its sums are the operator's own business."""
    jars = sorted(str(path.resolve()) for path in (home / "libs").glob("*.jar"))
    names = (re.fullmatch(r"kafka_2\.1[23]-([0-9][^-]*)\.jar", Path(path).name) for path in jars)
    version = next((found[1] for found in names if found), None)
    if version is None:
        raise KafkaHomeUnusable("no kafka_2.13-<version>.jar there", where=str(home / "libs"))
    if not version.startswith(MIGRATING_LINE):
        raise KafkaHomeUnusable(
            f"this is Kafka {version}", where=str(home), why="only 3.9 migrates brokers with several log directories"
        )
    return KafkaJars(tuple(jars), version)


def check_jars(folder: Path, sums: Mapping[str, str]) -> KafkaJars:
    """The class path of `folder`, every jar of the list compared with its sum.

    Raises:
        JarSumWrong: a jar is missing or changed; its name is in the message.
        KafkaHomeUnusable: others may change them after they were compared.
    """
    for name, expected in sorted(sums.items()):
        actual = _sha256(folder / name)
        if actual != expected:
            what = f"{name} is not there" if actual is None else f"{name} has a wrong SHA-256"
            raise JarSumWrong(what, where=str(folder), why=f"expected {expected}, found {actual or 'no file'}")
    return _ours(folder, sums)


def _sha256(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def _install(folder: Path, sums: Mapping[str, str], java: Java, progress: Progress) -> None:
    """Fetch into a work folder, check there, and show the whole under its final name: complete or not at all."""
    work = folder.with_name(folder.name + ".work")
    with locked(folder.with_name("jars.lock"), progress) as lock:
        if folder.is_dir():
            return  # another run was first
        progress(f"fetching Apache Kafka {KAFKA_VERSION}: {len(sums)} jars, 57 MB, once a user")
        try:
            fetched = ivy.fetch(java, work, len(sums), lock, progress)
            missing = [name for name in sums if not (fetched / name).is_file()]
            if missing:
                raise JarsUnavailable(
                    f"{len(missing)} jars were not found: {', '.join(sorted(missing)[:5])}", where=str(fetched)
                )
            check_jars(fetched, sums)
        except JarSumWrong:
            shutil.rmtree(work, ignore_errors=True)  # a wrong jar must not be found again in Ivy's own cache
            raise
        with staged(folder) as stage:
            for name in sums:
                (fetched / name).rename(stage / name)
        shutil.rmtree(work, ignore_errors=True)
    progress(f"Apache Kafka {KAFKA_VERSION} is in {folder}")
