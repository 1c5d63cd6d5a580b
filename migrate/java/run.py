"""Starts Java programs: the argv of a JVM, a tool that runs to its end, and keytool.

Long-lived processes are the lab's (`migrate.lab.supervisor`); they use `java_argv` too.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from migrate.errors import JavaToolFailed
from migrate.java.find import Java, find_java

# small and quick to start: the C1 compiler alone, the serial collector
SMALL_JVM: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")


def java_argv(
    java: Java, classpath: Sequence[str], main_class: str, args: Sequence[str] = (), options: Sequence[str] = ()
) -> tuple[str, ...]:
    """The argv of a JVM.  Never put secrets into `args` or `options`: everybody on the host can read them."""
    return (java.path, *SMALL_JVM, *options, "-cp", os.pathsep.join(classpath), main_class, *args)


def run_tool(
    java: Java, classpath: Sequence[str], main_class: str, args: Sequence[str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a Java program to its end and return its output, whatever its exit code.

    Raises:
        JavaToolFailed: it did not start, or lived longer than `timeout` seconds (it is killed then).
    """
    try:
        done = _run(java_argv(java, classpath, main_class, args), timeout)
    except subprocess.TimeoutExpired as error:
        raise JavaToolFailed(f"{main_class} did not end within {timeout:.0f} s", where=java.path) from error
    except OSError as error:
        raise JavaToolFailed(f"{main_class} did not start: {error.strerror}", where=java.path) from error
    return done


def _run(argv: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
    nothing = subprocess.DEVNULL
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, stdin=nothing)


def end_at_end_of_input(process: subprocess.Popen[bytes], timeout: float) -> None:
    """Close the stdin of a process that ends then; kill it where it has not after `timeout` seconds."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


SECONDS: Final = 60.0
LAST: Final = 300  # characters of what keytool said


def to_pkcs12(path: str, password: str, kind: str = "JKS") -> tuple[bytes, str]:
    """Convert a store to PKCS12, with a new password; passwords are passed in files of a folder of mode 0700.

    Raises:
        NoJava, JavaVersionUnsupported: there is no Java to do it with.
        JavaToolFailed: keytool refused (another password, another format) or did not end.
    """
    java = find_java()
    fresh = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="kraft-migrate-") as folder:
        given, wanted, target = Path(folder, "given"), Path(folder, "wanted"), Path(folder, "store.p12")
        for file, text in ((given, password), (wanted, fresh)):
            file.touch(mode=0o600)
            file.write_text(text + "\n", encoding="utf-8")
        argv = [str(java.keytool), "-importkeystore", "-noprompt", "-srckeystore", path, "-srcstoretype", kind]
        argv += ["-srcstorepass:file", str(given), "-destkeystore", str(target), "-deststoretype", "PKCS12"]
        argv += ["-deststorepass:file", str(wanted)]
        try:
            done = _run(argv, SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JavaToolFailed("keytool did not run to its end", where=str(java.keytool)) from error
        if done.returncode or not target.exists():
            said = (done.stdout + done.stderr).strip().replace(password, "(password)")
            raise JavaToolFailed("keytool does not open the store", where=path, why=said[-LAST:])
        return target.read_bytes(), fresh
