"""The Java peers: small programs on Kafka's and ZooKeeper's own classes, compiled before they are measured."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from migrate.java.find import find_java
from migrate.java.jars import kafka_jars


def no_compiler() -> str:
    """Why Java peers cannot be raced here, if they cannot."""
    return "" if shutil.which("javac") else "there is no javac on this machine"


def classpath() -> str:
    """Kafka's jars."""
    return os.pathsep.join(kafka_jars(java=find_java()).classpath)


def compiled(folder: Path, program: str, package: str = "", options: Sequence[str] = ()) -> list[str]:
    """The command that runs `program`, whose class now lies in that folder; `package` ends with a point."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise RuntimeError(no_compiler())
    jars = classpath()
    source = Path(__file__).parent / f"{program}.java"
    subprocess.run([compiler, "-cp", jars, "-d", str(folder), str(source)], check=True, capture_output=True)
    java = str(Path(compiler).resolve().parent / "java")
    return [java, *options, "-cp", os.pathsep.join([str(folder), jars]), f"{package}{program}"]
