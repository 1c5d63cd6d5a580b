"""Truststores and keystores of every format that operators have, made by Java's own tool where Java has its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from migrate.errors import SecretUnreadable, StoreUnreadable
from migrate.java.find import find_java
from migrate.kafka.admin import client_config
from migrate.kafka.stores import authorities, identity
from migrate.model.inventory import Access, SecretFile, Store
from tests.testing.certificates import HOSTS, PASSWORD, Pki, secret, stored


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """One authority for all tests here."""
    return Pki(tmp_path_factory.mktemp("pki"))


def keytool(*words: str) -> None:
    """Java's own tool, as operators use it."""
    subprocess.run([str(find_java().keytool), *words], check=True, capture_output=True, timeout=120)


def imported(pki: Pki, folder: Path, kind: str) -> Store:
    """A truststore made by `keytool -importcert`."""
    place = folder / f"trust.{kind.lower()}"
    words = ("-importcert", "-noprompt", "-alias", "ca", "-file", pki.truststore.path)
    keytool(*words, "-keystore", str(place), "-storetype", kind, "-storepass", PASSWORD)
    return Store(str(place), kind, secret(folder))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_truststore_of_javas_tool_gives_its_certificates(pki: Pki, tmp_path: Path, kind: str) -> None:
    """The same certificate as in PEM."""
    assert authorities(imported(pki, tmp_path, kind)) == authorities(pki.truststore)


@pytest.mark.slow
def test_a_keystore_of_javas_tool_gives_key_and_chain(pki: Pki, tmp_path: Path) -> None:
    """JKS: only Java opens its keys."""
    issued = pki.authority.issue("tool", HOSTS)
    source = tmp_path / "tool.p12"
    source.write_bytes(issued.pkcs12(PASSWORD))
    place = tmp_path / "tool.jks"
    words = ("-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12")
    ends = ("-srcstorepass", PASSWORD, "-destkeystore", str(place), "-deststoretype", "JKS", "-deststorepass", PASSWORD)
    keytool(*words, *ends)
    found = identity(Store(str(place), "JKS", secret(tmp_path)))
    own, issuer = x509.load_pem_x509_certificates(found.certificates)
    assert (own, issuer) == (issued.certificate, pki.authority.certificate)
    key = load_pem_private_key(found.key, None)
    assert key.public_key() == own.public_key()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_wrong_password_is_told_without_it(pki: Pki, tmp_path: Path, kind: str) -> None:
    """Neither the right nor the wrong one stands in the error."""
    store = imported(pki, tmp_path, kind)
    wrong = Store(store.path, kind, secret(tmp_path, "canary-wrong", "wrong"))
    with pytest.raises(StoreUnreadable, match="cannot be opened") as caught:
        authorities(wrong)
    assert caught.value.where == store.path
    assert "canary" not in f"{caught.value!r}{vars(caught.value)}{caught.value.__cause__!r}"


@pytest.mark.slow
def test_a_store_without_what_is_needed_is_told(pki: Pki, tmp_path: Path) -> None:
    """No key in a truststore, no certificate in an empty file, no password, nonsense, an unknown type."""
    password = secret(tmp_path)
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: identity(pki.truststore), "lacks a private key"),
        (lambda: authorities(stored(tmp_path, "empty", b"")), "holds no certificate"),
        (lambda: identity(imported(pki, tmp_path, "PKCS12")), "lacks a private key"),
        (lambda: authorities(stored(tmp_path, "a", b"x", "PKCS12")), "password is not given"),
        (lambda: authorities(stored(tmp_path, "b", b"x", "PKCS12", password)), "cannot be opened"),
        (lambda: authorities(stored(tmp_path, "c", b"x", "BKS", password)), "'BKS' cannot be read"),
        (lambda: authorities(Store(str(tmp_path / "none"))), "No such file"),
        (lambda: authorities(stored(tmp_path, "d", b"-----BEGIN CERTIFICATE-----\nx")), "certificate cannot be read"),
        (lambda: authorities(stored(tmp_path, "e", b"x" * (9 << 20))), "larger than 8 MiB"),
    ]
    for call, message in cases:
        with pytest.raises(StoreUnreadable, match=message):
            call()


def test_the_password_of_a_store_is_a_secret_like_others(tmp_path: Path) -> None:
    """Mode 0600, or it is not read."""
    password = secret(tmp_path)
    Path(password.path).chmod(0o644)
    with pytest.raises(SecretUnreadable, match="mode 0644"):
        authorities(stored(tmp_path, "trust.p12", b"x", "PKCS12", password))


def test_an_encrypted_pem_key_is_opened_by_its_password(pki: Pki, tmp_path: Path) -> None:
    """Without it, it is told."""
    plain = identity(stored(tmp_path, "plain.pem", pki.authority.issue("tool", HOSTS).pem))
    content = plain.encrypted(PASSWORD) + plain.certificates
    assert identity(stored(tmp_path, "tool.pem", content, "PEM", secret(tmp_path))).key == plain.key
    with pytest.raises(StoreUnreadable, match="private key cannot be opened"):
        identity(stored(tmp_path, "tool.pem", content))
    with pytest.raises(StoreUnreadable, match="private key cannot be opened"):
        identity(stored(tmp_path, "tool.pem", content, "PEM", secret(tmp_path, "another", "other")))


def test_a_key_is_not_shown(pki: Pki, tmp_path: Path) -> None:
    """Neither by repr nor by str."""
    found = identity(stored(tmp_path, "plain.pem", pki.authority.issue("tool", HOSTS).pem))
    assert "PRIVATE" not in f"{found!r}{found}"


def test_ordinary_clients_get_the_same_stores_and_verify_names(pki: Pki, tmp_path: Path) -> None:
    """As PEM in the settings: librdkafka reads no Java store."""
    keystore = stored(
        tmp_path, "tool.p12", pki.authority.issue("tool", HOSTS).pkcs12(PASSWORD), "PKCS12", secret(tmp_path)
    )
    settings = client_config("b:1", Access("SSL", truststore=pki.truststore, keystore=keystore))
    assert settings["ssl.ca.pem"] == pki.authority.pem.decode()
    assert settings["ssl.endpoint.identification.algorithm"] == "https"
    assert str(settings["ssl.key.pem"]).startswith("-----BEGIN PRIVATE KEY-----")
    assert str(settings["ssl.certificate.pem"]).count("BEGIN CERTIFICATE") == 2
    assert not [name for name in client_config("b:1", Access()) if name.startswith("ssl")]


def test_a_password_file_that_is_missing_is_told(tmp_path: Path) -> None:
    """By its path."""
    with pytest.raises(SecretUnreadable, match="No such file"):
        authorities(stored(tmp_path, "t.p12", b"x", "PKCS12", SecretFile(str(tmp_path / "none"))))
