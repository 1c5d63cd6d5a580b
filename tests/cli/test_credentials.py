"""Mistakes with logins, TLS and their files: each is named, with the listener or file and what to change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from migrate.kafka.live import look
from migrate.model.inventory import Access, Inventory, SecretFile, Store
from migrate.model.stage import Stage
from migrate.protocol.loader import Values
from tests.cli.commands import Ended, inventory_in, kraft_migrate, playbook_in
from tests.kafka.fake_node import FakeNode, Script
from tests.steps.looks import whole
from tests.testing import worlds
from tests.testing.answering import Answering, answering
from tests.testing.certificates import Pki, secret
from tests.testing.kept import sources_of

CANARY = "canary-password"
ALERT = bytes.fromhex("15030300020250")  # what a TLS listener of Java answers in clear


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    """One authority for all tests here."""
    return Pki(tmp_path_factory.mktemp("pki"))


def said(**answer: object) -> Script:
    """This body, whatever is asked."""
    return lambda _version, _body: dict(answer)


def no_login() -> FakeNode:
    """A PLAINTEXT listener: Kafka answers a SaslHandshake there with ILLEGAL_SASL_STATE and no mechanism."""
    return FakeNode({"SaslHandshake": said(errorCode=34, mechanisms=[])})


def other_mechanism() -> FakeNode:
    """A listener of SCRAM alone."""
    return FakeNode({"SaslHandshake": said(errorCode=33, mechanisms=["SCRAM-SHA-512"])})


def wrong_password() -> FakeNode:
    """PLAIN is offered, and user or password refused."""
    refused: Values = {"errorCode": 58, "errorMessage": "Invalid", "authBytes": b"", "sessionLifetimeMs": 0}
    return FakeNode({"SaslHandshake": said(errorCode=0, mechanisms=["PLAIN"]), "SaslAuthenticate": said(**refused)})


Listener = Callable[[Pki], AbstractContextManager[FakeNode | Answering]]
MISTAKES: dict[str, tuple[Listener, Access, tuple[str, ...]]] = {
    "wrong password": (
        lambda _: wrong_password(),
        Access("SASL_PLAINTEXT", "PLAIN", "alice", SecretFile("password")),
        ("user alice was refused: SASL_AUTHENTICATION_FAILED (58)", "`username` and `password`", "for PLAIN"),
    ),
    "login on a listener without one": (
        lambda _: no_login(),
        Access("SASL_PLAINTEXT", "PLAIN", "alice", SecretFile("password")),
        ("the listener takes no SASL login", "`protocol: PLAINTEXT`"),
    ),
    "wrong mechanism": (
        lambda _: other_mechanism(),
        Access("SASL_PLAINTEXT", "PLAIN", "alice", SecretFile("password")),
        ("the listener offers SCRAM-SHA-512, not PLAIN", "`mechanism` of the inventory's access"),
    ),
    "missing password file": (
        lambda _: wrong_password(),
        Access("SASL_PLAINTEXT", "PLAIN", "alice", SecretFile("missing")),
        ("missing: the secret's file cannot be read: No such file or directory", "write the secret into it"),
    ),
    "TLS against a plaintext port": (
        lambda _: answering(b""),
        Access("SSL"),
        ("closed within the TLS handshake", "a listener without TLS", "`protocol` of the inventory's access"),
    ),
    "TLS against another protocol": (
        lambda _: answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        Access("SSL"),
        ("the listener does not use TLS", "`protocol` of the inventory's access"),
    ),
    "plaintext against a TLS port": (
        lambda _: answering(ALERT),
        Access(),
        ("it uses TLS, and the request was not encrypted", "`protocol: SSL`"),
    ),
    "a certificate that is not trusted": (
        lambda pki: FakeNode(tls=pki.server("wrong authority")),
        Access("SSL"),
        ("the listener's certificate is not accepted: unable to get local issuer", "`truststore`"),
    ),
    "a certificate of another name": (
        lambda pki: FakeNode(tls=pki.server("wrong name")),
        Access("SSL", truststore=Store("ca.pem", "PEM", None)),
        ("the listener's certificate is not accepted: IP address mismatch", "`address` as its certificate does"),
    ),
}


@contextmanager
def mistaken(mistake: str, pki: Pki, folder: Path) -> Iterator[Inventory]:
    """The inventory of three brokers at such a listener; its file is in the folder, with one broker."""
    listener, access, _ = MISTAKES[mistake]
    if isinstance(access.password, SecretFile):
        path = folder / access.password.path
        if path.name != "missing":
            secret(folder, CANARY, path.name)
        access = replace(access, password=SecretFile(str(path)))
    if access.truststore is not None:
        access = replace(access, truststore=pki.truststore)
    with listener(pki) as node:
        brokers = tuple(replace(entry, address=node.address) for entry in worlds.inventory().brokers)
        inventory_in(folder, brokers=brokers[2:], broker_access=access)
        yield replace(worlds.inventory(), brokers=brokers, broker_access=access)


def require_named(mistake: str, found: Inventory, ended: Ended) -> None:
    """What, where and the next step, and no success; no secret in any of it."""
    told = " ".join((ended.out + ended.err).split())
    assert ended.code != 0
    for part in MISTAKES[mistake][2]:
        assert part in told, told
    assert mistake == "missing password file" or found.brokers[0].address in told
    assert CANARY not in told


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("words", [("assess",), ("doctor", "--rights")], ids=lambda one: one[0])
def test_a_mistake_with_credentials_is_named_with_what_to_change(
    mistake: str, words: tuple[str, ...], pki: Pki, tmp_path: Path
) -> None:
    """By each command that looks at the brokers."""
    with mistaken(mistake, pki, tmp_path) as found:
        require_named(mistake, found, kraft_migrate(*words, "--inventory", tmp_path / "inventory.yaml"))


@pytest.mark.slow
def test_doctor_names_a_missing_password_file_without_asking_the_cluster(tmp_path: Path) -> None:
    """The file is read as a run reads it; what it holds is not shown."""
    access = Access("SASL_PLAINTEXT", "PLAIN", "alice", SecretFile(str(tmp_path / "missing")))
    inventory = inventory_in(tmp_path, broker_access=access)
    told = " ".join(kraft_migrate("doctor", "--inventory", inventory).out.split())
    assert f"credentials E-HOST-05: {tmp_path}/missing: the secret's file cannot be read: No such file" in told
    assert "-> write the secret into it (mode 0600), or correct its path in the inventory" in told
    secret(tmp_path, CANARY, "missing")
    told = " ".join(kraft_migrate("doctor", "--inventory", inventory).out.split())
    assert "ok credentials files for brokers and controllers: 1 file read" in told
    assert CANARY not in told


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_plan_names_a_mistake_with_credentials(
    mistake: str, pki: Pki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it could not see of the brokers is said with the same words, and it may not begin."""
    with mistaken(mistake, pki, tmp_path) as found:
        live = look(replace(found, controllers=()))
        playbook = playbook_in(tmp_path)
        monkeypatch.setattr("migrate.observe.sources.Sources", sources_of(replace(whole(Stage.ASSESS), live=live)))
        require_named(mistake, found, kraft_migrate("plan", playbook))
