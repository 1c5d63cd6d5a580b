"""The class archive of Spark's driver: kept whole or not at all, used only where it fits, never in the way."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from migrate.java import archive as archives
from migrate.java.archive import DriverArchive, driver_archive
from migrate.java.find import Java
from migrate.java.gateway import DriverRequest, driver_argv, jar_files
from tests.cli.commands import kraft_migrate

WRITTEN = archives.MAGIC.to_bytes(4, sys.byteorder) + b"classes" * 1000


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(archives.VARIABLE, raising=False)
    return tmp_path / "cache"


def runtime(folder: Path, base: str = archives.BASES[0]) -> Java:
    """A runtime with a base archive."""
    binary = folder / "jdk" / "bin" / "java"
    for path in (binary, folder / "jdk" / "release", folder / "jdk" / base):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return Java(str(binary), 17, "PATH")


def jars(folder: Path) -> tuple[str, ...]:
    """A class path."""
    (folder / "jars").mkdir(exist_ok=True)
    (folder / "jars" / "b.jar").write_bytes(b"b")
    (folder / "jars" / "a.jar").write_bytes(b"a")
    return jar_files(folder / "jars")


def asked(folder: Path, options: tuple[str, ...] = ("-XX:+UseSerialGC",)) -> DriverArchive:
    """The archive of that folder's runtime and jars, which there is to be."""
    found = driver_archive(runtime(folder), jars(folder), options)
    assert found is not None
    return found


@pytest.fixture
def kept(tmp_path: Path) -> DriverArchive:
    """One that a driver has written and that was kept."""
    java, path = runtime(tmp_path), jars(tmp_path)  # files are made once: their times count
    found = driver_archive(java, path, ())
    assert found is not None
    assert not found.used
    found.partial.write_bytes(WRITTEN)
    assert found.keep()
    return found


def again(folder: Path) -> DriverArchive:
    """What the next driver is told."""
    found = driver_archive(Java(str(folder / "jdk" / "bin" / "java"), 17, "PATH"), jar_files(folder / "jars"), ())
    assert found is not None
    return found


def test_the_first_driver_writes_what_the_next_one_maps(tmp_path: Path, kept: DriverArchive) -> None:
    """Under a name of its own process until it is whole."""
    assert kept.options[0] == f"-XX:ArchiveClassesAtExit={kept.partial}"
    found = again(tmp_path)
    assert found.used
    assert found.path == kept.path
    assert f"-XX:SharedArchiveFile={found.path}" in found.options
    assert not kept.partial.exists()
    assert found.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("harm", ["bit", "cut", "longer", "no-sum", "sum-of-another", "empty", "other-file"])
def test_a_damaged_archive_is_made_again(tmp_path: Path, kept: DriverArchive, harm: str) -> None:
    """The JVM itself sums nothing: damage behind a right header would be run."""
    summed = kept.path.with_suffix(".sum")
    match harm:
        case "bit":
            raw = bytearray(WRITTEN)
            raw[3000] ^= 1
            kept.path.write_bytes(raw)
        case "cut":
            kept.path.write_bytes(WRITTEN[:-1])
        case "longer":
            kept.path.write_bytes(WRITTEN + b"x")
        case "no-sum":
            summed.unlink()
        case "sum-of-another":
            summed.write_text('{"size": 7004, "crc32c": 1}')
        case "empty":
            kept.path.write_bytes(b"")
        case _:
            kept.path.write_bytes(b"PK" + WRITTEN[2:])
    found = again(tmp_path)
    assert not found.used
    found.partial.write_bytes(WRITTEN)
    assert found.keep()
    assert again(tmp_path).used


def test_an_archive_that_others_may_write_is_not_used(tmp_path: Path, kept: DriverArchive) -> None:
    """What is in it runs as us."""
    kept.path.chmod(0o666)
    assert not again(tmp_path).used
    kept.path.chmod(0o600)
    assert again(tmp_path).used
    kept.path.parent.chmod(0o777)
    assert driver_archive(runtime(tmp_path), jars(tmp_path), ()) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_another_users_archive_is_not_used(tmp_path: Path, kept: DriverArchive) -> None:
    """As above, by its owner."""
    os.chown(kept.path, 65_534, 65_534)
    assert not again(tmp_path).used


def test_another_java_other_jars_or_options_have_another_archive(tmp_path: Path, kept: DriverArchive) -> None:
    """The JVM would refuse a foreign one, at each start anew."""
    paths = {kept.path}
    (tmp_path / "jdk" / "release").write_text("another")
    paths.add(again(tmp_path).path)
    (tmp_path / "jars" / "c.jar").write_bytes(b"c")
    paths.add(again(tmp_path).path)
    java = Java(str(tmp_path / "jdk" / "bin" / "java"), 17, "PATH")
    other = driver_archive(java, jar_files(tmp_path / "jars"), ("-XX:+UseG1GC",))
    assert other is not None
    paths.add(other.path)
    assert len(paths) == 4


def test_what_a_driver_did_not_write_is_not_kept(tmp_path: Path) -> None:
    """No file, or one that is no archive; nothing stays."""
    found = asked(tmp_path)
    assert not found.keep()
    found.partial.write_bytes(b"half")
    assert not found.keep()
    assert list(found.path.parent.iterdir()) == []


def test_what_a_process_that_is_gone_left_behind_is_removed(tmp_path: Path) -> None:
    """Another that lives may be writing."""
    found = asked(tmp_path)
    gone, alive = (found.path.with_name(f"{found.path.stem}.{pid}.partial") for pid in (2**22 + 1, os.getppid()))
    for path in (gone, alive):
        path.write_bytes(b"half")
    asked(tmp_path)
    assert not gone.exists()
    assert alive.exists()


def test_old_archives_are_not_gathered(tmp_path: Path, kept: DriverArchive) -> None:
    """Each is large; the newest ones stay."""
    for number in range(5):
        old = kept.path.with_name(f"spark-{number}.jsa")
        old.write_bytes(b"x")
        os.utime(old, (number, number))
    found = again(tmp_path)
    found.partial.write_bytes(WRITTEN)
    assert found.keep()
    assert {path.name for path in kept.path.parent.glob("*.jsa")} == {kept.path.name, "spark-4.jsa", "spark-3.jsa"}


@pytest.mark.parametrize("said", ["off", "no", "0", "FALSE"])
def test_who_wants_none_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """By the environment."""
    monkeypatch.setenv(archives.VARIABLE, said)
    assert driver_archive(runtime(tmp_path), jars(tmp_path), ()) is None


def test_who_wants_none_can_say_so_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """For all that this process starts."""
    monkeypatch.setenv(archives.VARIABLE, "")
    kraft_migrate("--no-class-archive", "playbook", "show", "--help")
    assert not archives.is_enabled()


def test_a_java_without_a_base_archive_and_a_cache_that_cannot_be_written_do_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slower, and no error."""
    java = runtime(tmp_path)
    (java.home / archives.BASES[0]).unlink()
    assert driver_archive(java, jars(tmp_path), ()) is None
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert driver_archive(runtime(tmp_path), jars(tmp_path), ()) is None


def test_with_an_archive_the_class_path_is_the_jars_one_by_one(tmp_path: Path, kept: DriverArchive) -> None:
    """An archive is bound to it; a wildcard's order is the folder's own."""
    request = DriverRequest(Java("/java", 17, "test"), tmp_path / "jars", {}, tmp_path, "512m", archive=again(tmp_path))
    argv = driver_argv(request)
    assert argv[argv.index("-cp") + 1] == f"{tmp_path}/jars/a.jar:{tmp_path}/jars/b.jar"
    assert argv.index(f"-XX:SharedArchiveFile={kept.path}") < argv.index("-cp")
