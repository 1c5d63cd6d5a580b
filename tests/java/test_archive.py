"""Class archives: built once, used, and never in the way."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from migrate.java import archive
from migrate.java.archive import archive_options, archive_path
from migrate.java.find import Java, find_java
from migrate.java.jars import KafkaJars, kafka_jars
from migrate.java.run import java_argv


@pytest.fixture
def jars(tmp_path: Path) -> KafkaJars:
    """A class path of one empty file."""
    (tmp_path / "a.jar").write_bytes(b"")
    return KafkaJars((str(tmp_path / "a.jar"),), "3.9.2")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fake_java(tmp_path: Path, script: str) -> Java:
    """A runtime whose `java` is a shell script."""
    binary = tmp_path / "jdk" / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return Java(str(binary), 17, "PATH")


WRITES = 'for word; do case $word in -XX:SharedArchiveFile=*) echo built >> "${word#*=}";; esac; done'


def test_an_archive_is_built_once(tmp_path: Path, own_cache: Path, jars: KafkaJars) -> None:
    """The second call uses it as it is."""
    java = fake_java(tmp_path, WRITES)
    said: list[str] = []
    options = archive_options(java, jars, said.append)
    assert options[0] == f"-XX:SharedArchiveFile={archive_path(java, jars)}"
    assert len(said) == 1
    assert archive_options(java, jars, said.append) == options
    assert archive_path(java, jars).read_text() == "built\n"
    assert len(said) == 1


def test_an_archive_that_others_may_write_is_not_used(tmp_path: Path, own_cache: Path, jars: KafkaJars) -> None:
    """The JVM would run what they put into it."""
    java = fake_java(tmp_path, WRITES)
    assert archive_options(java, jars)
    archive_path(java, jars).chmod(0o666)
    assert archive_options(java, jars) == ()
    archive_path(java, jars).chmod(0o600)
    archive_path(java, jars).parent.chmod(0o777)
    assert archive_options(java, jars) == ()


@pytest.mark.parametrize("script", ["exit 1", "exit 0", "kill -9 $$"])
def test_a_failure_is_told_and_never_raised(
    tmp_path: Path, own_cache: Path, jars: KafkaJars, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A lab without an archive works; no half of a file stays under the final name."""
    java = fake_java(tmp_path, script)
    said: list[str] = []
    assert archive_options(java, jars, said.append) == ()
    assert "slower" in said[-1]
    assert "no class archive" in caplog.text
    assert not archive_path(java, jars).exists()


def test_another_java_or_other_jars_have_another_archive(tmp_path: Path, own_cache: Path, jars: KafkaJars) -> None:
    """The JVM would refuse a foreign one."""
    java = fake_java(tmp_path, WRITES)
    first = archive_path(java, jars)
    (java.home / "release").write_text("JAVA_VERSION=x")
    second = archive_path(java, jars)
    Path(jars.classpath[0]).write_bytes(b"more")
    assert len({first, second, archive_path(java, jars)}) == 3


def test_another_list_of_classes_has_another_archive(
    tmp_path: Path, own_cache: Path, jars: KafkaJars, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was built with an older list lacks what is new."""
    java = fake_java(tmp_path, WRITES)
    first = archive_path(java, jars)
    shorter = tmp_path / "shorter"
    shorter.mkdir()
    (shorter / archive.CLASSES).write_text("kafka/server/KafkaServer\n")
    monkeypatch.setattr(archive, "files", lambda _package: shorter)
    assert archive_path(java, jars) != first


def test_the_class_list_names_plain_classes_only() -> None:
    """Java 21 crashes on the lambda lines that Java 17 writes into such lists."""
    lines = (Path(archive.__file__).parent / archive.CLASSES).read_text().splitlines()
    assert not [line for line in lines if line.startswith(("@", "#")) or " " in line]
    assert "kafka/server/KafkaServer" in lines
    assert "kafka/server/ControllerServer" in lines
    assert "sun/security/ssl/SSLEngineImpl" in lines
    assert "org/apache/zookeeper/server/ZooKeeperServer" in lines
    assert lines == sorted(set(lines))


@pytest.mark.kafka
def test_kafkas_classes_come_from_the_archive() -> None:
    """With the real jars: the JVM says that a class came from the shared file."""
    java = find_java()
    found = kafka_jars(java=java)
    options = [*archive_options(java, found)[:1], "-Xlog:class+load"]
    assert options[0].startswith("-XX:SharedArchiveFile=")
    argv = java_argv(java, found.classpath, "kafka.tools.StorageTool", ["random-uuid"], options)
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if "kafka.utils.Logging " in line)
    assert "shared objects file" in line
