"""SCRAM against the vectors of its RFCs, and against servers that cheat."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Generator
from pathlib import Path

import pytest

from migrate.errors import AccessRefused
from migrate.kafka.connection import HASHES, Connection, ScramBroken, scram
from migrate.model.inventory import Access
from migrate.protocol.loader import Values
from tests.kafka.fake_node import FakeNode, Script
from tests.testing.certificates import secret

SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def begun(nonce: str = "rOprNGfwEbeRWgbNEkqO") -> Generator[bytes, bytes, None]:
    """RFC 7677, section 3."""
    return scram("SCRAM-SHA-256", "user", "pencil", nonce)


def test_the_vector_of_rfc_7677_is_spoken_to_the_end() -> None:
    """Each message byte for byte."""
    talk = begun()
    assert next(talk) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert talk.send(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    with pytest.raises(StopIteration):
        talk.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (SERVER_FIRST.replace(b"r=rO", b"r=xO"), "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (SERVER_FIRST.replace(b"i=4096", b"i=4095"), "4095 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999"), "99999999 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=x"), "-1 iterations"),
        (SERVER_FIRST.replace(b"s=W22Z", b"s=!!!!"), "base64"),
        (b"", "nonce"),
        (b"\xff\xfe", "nonce"),
    ],
)
def test_a_first_message_that_breaks_the_rules_is_refused(first: bytes, message: str) -> None:
    """Before any proof is sent."""
    talk = begun()
    next(talk)
    with pytest.raises(ScramBroken, match=message):
        talk.send(first)


@pytest.mark.parametrize("last", [b"v=" + base64.b64encode(b"x" * 32), b"e=other-error", b""])
def test_a_server_that_does_not_know_the_password_is_refused(last: bytes) -> None:
    """It could be anybody who took the address."""
    talk = begun()
    next(talk)
    talk.send(SERVER_FIRST)
    with pytest.raises(ScramBroken, match="has not proven"):
        talk.send(last)


def test_a_name_with_commas_and_equal_signs_is_escaped() -> None:
    """RFC 5802: saslname."""
    assert next(scram("SCRAM-SHA-512", "a,b=c", "x", "n")) == b"n,,n=a=2Cb=3Dc,r=n"


def test_each_login_has_a_nonce_of_its_own() -> None:
    """What was heard once cannot be played again."""
    assert len({next(scram("SCRAM-SHA-256", "u", "p")) for _ in range(100)}) == 100


class Server:
    """The other side of RFC 5802 for one password, written from the RFC alone."""

    def __init__(self, mechanism: str, password: str) -> None:
        self.digest = HASHES[mechanism]
        self.salted = hashlib.pbkdf2_hmac(self.digest, password.encode(), b"salt", 4096)
        self.first = self.said = ""

    def answer(self, token: bytes) -> bytes | None:
        """Our message, or None where the proof is wrong."""
        text = token.decode()
        if text.startswith("n,,"):
            self.first = text[3:]
            self.said = f"r={text.partition('r=')[2]}more,s={base64.b64encode(b'salt').decode()},i=4096"
            return self.said.encode()
        bare, _, proof = text.rpartition(",p=")
        message = f"{self.first},{self.said},{bare}".encode()
        key = hmac.digest(self.salted, b"Client Key", self.digest)
        signature = hmac.digest(hashlib.new(self.digest, key).digest(), message, self.digest)
        if base64.b64decode(proof) != bytes(a ^ b for a, b in zip(key, signature, strict=True)):
            return None
        server = hmac.digest(self.salted, b"Server Key", self.digest)
        return b"v=" + base64.b64encode(hmac.digest(server, message, self.digest))


@pytest.mark.parametrize("mechanism", sorted(HASHES))
@pytest.mark.parametrize("right", [True, False])
def test_a_connection_logs_in_by_scram(tmp_path: Path, mechanism: str, right: bool) -> None:
    """Through the handshake and two rounds; a wrong password is Kafka's refusal."""
    server = Server(mechanism, "right" if right else "another")

    def authenticate(_version: int, body: Values) -> Values:
        said = server.answer(body["authBytes"])
        error = 58 if said is None else 0
        return {"errorCode": error, "errorMessage": None, "authBytes": said or b"", "sessionLifetimeMs": 0}

    scripts: dict[str, Script] = {
        "SaslHandshake": lambda _version, _body: {"errorCode": 0, "mechanisms": [mechanism]},
        "SaslAuthenticate": authenticate,
    }
    access = Access("SASL_PLAINTEXT", mechanism, "alice", secret(tmp_path, "right"))
    with FakeNode(scripts) as node:
        if right:
            Connection(node.address, access).close()
        else:
            with pytest.raises(AccessRefused, match="user alice was refused"):
                Connection(node.address, access)
        tokens = b"".join(body["authBytes"] for name, _, body in node.seen if name == "SaslAuthenticate")
        assert b"right" not in tokens
