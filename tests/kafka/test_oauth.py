"""OAUTHBEARER: tokens by credentials and by reference, their end, refusals explained, and nothing of a secret told."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrate.errors import AccessRefused, IssuerUnreachable, MigrateError, TokenRefused, TokenUnusable
from migrate.kafka import oauth
from migrate.kafka.connection import Connection
from migrate.lab.issuer import Issuer
from migrate.model.inventory import Access, OAuth, SecretCommand
from migrate.protocol.loader import Values
from migrate.protocol.messages import DESCRIBE_CLUSTER
from tests.kafka.fake_node import FakeNode, Script
from tests.testing.answering import answering
from tests.testing.certificates import Pki, secret

WORD = "canary-client-secret"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """One that knows `tool`; tokens hold for an hour."""
    oauth._KNOWN.clear()
    oauth._AWAY.clear()
    yield from _serving(Issuer(0, {"tool": WORD}))


def _serving(server: Issuer) -> Iterator[Issuer]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def access(folder: Path, issuer: Issuer, word: str = WORD, **more: Any) -> Access:
    """The tool's, by its credentials."""
    login = OAuth(endpoint=f"{issuer.url}/token", client_id="tool", client_secret=secret(folder, word), **more)
    return Access("SASL_PLAINTEXT", "OAUTHBEARER", "tool", oauth=login)


def by_file(folder: Path, text: str) -> Access:
    """A token that something else writes."""
    return Access("SASL_PLAINTEXT", "OAUTHBEARER", "tool", oauth=OAuth(token=secret(folder, text, "token")))


@pytest.mark.slow
def test_a_token_is_fetched_once_and_again_near_its_end(tmp_path: Path, issuer: Issuer) -> None:
    """At 80 % of its life."""
    mine = access(tmp_path, issuer)
    first = oauth.token_of(mine)
    assert oauth.token_of(mine) is first
    assert issuer.given == 1
    assert first.claims["sub"] == "tool"
    assert 0.79 * 3600 < first.renew_at - time.time() < 0.81 * 3600
    issuer.lifetime = 0.9  # the claim is in whole seconds
    oauth.forget(mine)
    with pytest.raises(TokenUnusable, match="our token has ended"):
        oauth.token_of(mine)
    issuer.lifetime = 60.0
    assert oauth.token_of(mine).text != first.text


def absent(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[OAuth]:
    """The endpoint is silent for that long; whose token was asked for."""
    asked: list[OAuth] = []

    def silent(login: OAuth) -> None:
        asked.append(login)
        threading.Event().wait(seconds)
        raise IssuerUnreachable("the token endpoint does not answer", where="issuer", why="timed out")

    monkeypatch.setattr(oauth, "_issued", silent)
    return asked


def test_a_token_that_still_holds_is_kept_while_its_endpoint_is_away(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 80 % of its life, until its end; the endpoint is asked each few seconds."""
    mine = access(tmp_path, issuer)
    first, issued = oauth.token_of(mine), oauth._issued
    now, began = time.time() + 0.9 * 3600, time.monotonic()
    asked, later = absent(monkeypatch), 0.0
    monkeypatch.setattr("migrate.kafka.oauth.time.time", lambda: now + later)
    monkeypatch.setattr("migrate.kafka.oauth.time.monotonic", lambda: began + later)
    for seconds, times in ((0.0, 1), (oauth.AGAIN - 1, 1), (oauth.AGAIN + 1, 2)):
        later = seconds
        assert oauth.token_of(mine) is first
        assert len(asked) == times
    later = 400.0
    with pytest.raises(IssuerUnreachable, match="does not answer") as caught:
        oauth.token_of(mine)
    assert caught.value.why == "timed out"
    later += oauth.AGAIN + 1
    monkeypatch.setattr(oauth, "_issued", issued)
    assert oauth.token_of(mine).text != first.text


def test_a_silent_endpoint_is_waited_for_once(tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once by each thread."""
    mine, asked = access(tmp_path, issuer), absent(monkeypatch, 0.2)

    def refused(_: int) -> bool:
        with pytest.raises(IssuerUnreachable):
            oauth.token_of(mine)
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(refused, range(4)))
    assert len(asked) == 1


@pytest.mark.slow
def test_a_token_of_a_file_is_read_again_near_its_end(tmp_path: Path, issuer: Issuer) -> None:
    """Whoever renews it replaces the file; one without an end is read at each login."""
    mine = by_file(tmp_path, issuer.token("tool", exp=None))
    first = oauth.token_of(mine).text
    by_file(tmp_path, issuer.token("tool"))
    assert oauth.token_of(mine).text != first


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"exp": 1}, "our token has ended.*exp=1 .* s ago"),
        ({"sub": "somebody"}, "does not name user tool: sub=somebody"),
    ],
)
def test_a_token_that_no_listener_can_take_is_not_sent(
    tmp_path: Path, issuer: Issuer, claims: dict[str, Any], message: str
) -> None:
    """With what it says of itself."""
    with pytest.raises(TokenUnusable, match=message):
        oauth.token_of(by_file(tmp_path, issuer.token("tool", **claims)))


def test_another_claim_may_name_the_user(tmp_path: Path, issuer: Issuer) -> None:
    """sasl.oauthbearer.sub.claim.name of the listeners."""
    assert oauth.token_of(by_file(tmp_path, issuer.token("4711", client_id="tool"))).claims["sub"] == "4711"


@pytest.mark.parametrize("text", ["a b", "a\x01b", "a\nb", "ä"])
def test_what_would_break_the_message_is_no_token(text: str) -> None:
    """Nothing of it is told."""
    with pytest.raises(TokenUnusable) as caught:
        oauth.read(text, 0.0)
    assert text not in str(caught.value)


@pytest.mark.parametrize("text", ["opaque", "a.b.c", "a.W10.c", "a." + base64.b64encode(b"[" * 99999).decode() + ".c"])
def test_a_token_without_claims_is_taken_as_it_is(text: str) -> None:
    """Its issuer alone can read it."""
    assert oauth.read(text, 100.0, 50.0) == oauth.Token(text, {}, 140.0, 150.0)


def test_an_endpoint_is_asked_whether_it_is_there_and_nothing_else(issuer: Issuer) -> None:
    """What it answers is its own matter, but that something before it answers in its place."""
    for path in ("/token", "/jwks", "/elsewhere"):
        oauth.ask_endpoint(f"{issuer.url}{path}")
    assert issuer.given == 0
    with pytest.raises(IssuerUnreachable, match=r"http://127\.0\.0\.1:1/token does not answer"):
        oauth.ask_endpoint("http://127.0.0.1:1/token")


@pytest.mark.parametrize(
    "url",
    ["http//issuer/jwks", "http://[bad/", f"http://{'a' * 64}.example/", "http://127.0.0.1:1/ä", "http://h:x/"],
)
def test_what_cannot_be_asked_does_not_answer(url: str) -> None:
    """A node's file holds what its writer wrote."""
    with pytest.raises(IssuerUnreachable, match="does not answer"):
        oauth.ask_endpoint(url)


def test_the_tools_own_endpoint_that_cannot_be_asked_is_told(tmp_path: Path, issuer: Issuer) -> None:
    """The inventory takes such a URL."""
    login = OAuth(endpoint="http://[bad/", client_id="tool", client_secret=secret(tmp_path, WORD))
    with pytest.raises(TokenRefused, match="cannot be asked"):
        oauth.token_of(Access("SASL_PLAINTEXT", "OAUTHBEARER", "tool", oauth=login))
    assert issuer.given == 0


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://canary-u:canary-p@127.0.0.1:1/jwks?key=canary-k#canary", "http://127.0.0.1:1/jwks"),
        ("http//canary-u:canary-p@issuer/jwks", "http//issuer/jwks"),
        ("http://canary-u:canary?p@[bad/", "http://[bad/"),
    ],
)
def test_an_endpoint_is_told_without_what_may_be_secret_in_it(url: str, shown: str) -> None:
    """Neither a user nor a password, nor a query; and the reason repeats none."""
    with pytest.raises(IssuerUnreachable) as caught:
        oauth.ask_endpoint(url)
    assert str(caught.value) == f"before a restart: {shown} does not answer"
    assert "canary" not in caught.value.why


def test_no_proxy_of_the_environment_stands_between(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka asks none, and one would be given the client's secret."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    oauth.ask_endpoint(f"{issuer.url}/jwks".replace("127.0.0.1", "localhost"))
    assert oauth.token_of(access(tmp_path, issuer)).claims["sub"] == "tool"


def test_an_endpoint_that_refuses_or_is_away_is_told_apart(tmp_path: Path, issuer: Issuer) -> None:
    """The second may come back; neither tells the secret."""
    wrong = access(tmp_path, issuer, "canary-wrong-secret")
    with pytest.raises(TokenRefused, match="refuses client tool: HTTP 401") as refused:
        oauth.token_of(wrong)
    assert refused.value.why == "invalid_client: no such client, or another secret"
    away = replace(wrong, oauth=replace(wrong.oauth, endpoint="http://127.0.0.1:1/token"))  # type: ignore[type-var]
    with pytest.raises(IssuerUnreachable, match="does not answer") as gone:
        oauth.token_of(away)
    elsewhere = replace(wrong, oauth=replace(wrong.oauth, endpoint=f"{issuer.url}/elsewhere"))  # type: ignore[type-var]
    with pytest.raises(TokenRefused, match="HTTP 404"):
        oauth.token_of(elsewhere)
    for error in (refused.value, gone.value):
        assert "canary" not in repr(error) + str(error.why)


@pytest.mark.parametrize("rest", [b"Content-Length: 9\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\nff\r\n{"])
def test_an_error_that_is_cut_short_is_of_an_endpoint_that_is_away(tmp_path: Path, issuer: Issuer, rest: bytes) -> None:
    """What a gateway says while it stops: nothing of it ends the run."""
    with answering(b"HTTP/1.1 502 Bad Gateway\r\n" + rest) as gateway:
        mine = access(tmp_path, issuer)
        assert mine.oauth is not None
        there = replace(mine, oauth=replace(mine.oauth, endpoint=f"http://{gateway.address}/token"))
        with pytest.raises(IssuerUnreachable, match="answered 502"):
            oauth.token_of(there)


@pytest.mark.slow
def test_an_endpoint_with_tls_is_believed_by_its_authority_alone(tmp_path: Path) -> None:
    """Ours is named; the host's do not know it."""
    pki = Pki(tmp_path)
    server = Issuer(0, {"tool": WORD})
    server.socket = pki.server().wrap_socket(server.socket, server_side=True)
    server.url = server.url.replace("http:", "https:")
    for known in _serving(server):
        assert oauth.token_of(access(tmp_path, known, truststore=pki.truststore)).claims["sub"] == "tool"
        with pytest.raises(TokenRefused, match="no TLS session"):
            oauth.token_of(access(tmp_path, known))


def listener(*, refuses: str = "", lifetime: int = 0) -> tuple[dict[str, Script], list[bytes]]:
    """A node that takes tokens, as RFC 7628 and Kafka do it, and the messages that it got."""
    got: list[bytes] = []

    def authenticate(_version: int, body: Values) -> Values:
        got.append(body["authBytes"])
        answer: Values = {"errorCode": 0, "errorMessage": None, "authBytes": b"", "sessionLifetimeMs": lifetime}
        if refuses and body["authBytes"] == b"\x01":
            return answer | {"errorCode": 58, "errorMessage": refuses}
        return answer | {"authBytes": refuses.encode()}

    return {
        "SaslHandshake": lambda _version, _body: {"errorCode": 0, "mechanisms": ["OAUTHBEARER"]},
        "SaslAuthenticate": authenticate,
        "DescribeCluster": lambda _version, _body: {"errorCode": 0, "clusterId": "c", "brokers": []},
    }, got


def test_a_connection_presents_the_token(tmp_path: Path, issuer: Issuer) -> None:
    """As RFC 7628 writes it."""
    scripts, got = listener()
    with FakeNode(scripts) as node:
        Connection(node.address, access(tmp_path, issuer)).close()
    assert got == [b"n,,\x01auth=Bearer " + next(iter(oauth._KNOWN.values())).text.encode() + b"\x01\x01"]


def test_a_refused_token_is_explained_and_not_shown(tmp_path: Path, issuer: Issuer) -> None:
    """Every bad token is answered alike: what ours says is told beside it; the next login has another token."""
    scripts, got = listener(refuses='{"status":"invalid_token"}')
    mine = access(tmp_path, issuer)
    with FakeNode(scripts) as node, pytest.raises(AccessRefused, match="user tool was refused") as caught:
        Connection(node.address, mine)
    assert got[1:] == [b"\x01"]
    why = caught.value.why or ""
    assert why.startswith('{"status":"invalid_token"}; our token says sub=tool, iss=http')
    assert "aud=kafka" in why
    assert "s ahead" in why
    assert got[0].split(b" ")[1][:40].decode() not in why + str(caught.value)
    assert not oauth._KNOWN


def test_a_refusal_is_told_where_no_other_token_can_be_had(tmp_path: Path, issuer: Issuer) -> None:
    """The token that was refused is explained, and no other is fetched for that."""
    scripts, _ = listener(refuses="no")
    mine = by_file(tmp_path, oauth.token_of(access(tmp_path, issuer)).text)

    def its_file_goes(_version: int, _body: Values) -> Values:
        (tmp_path / "token").unlink()
        for login, known in [*oauth._KNOWN.items()]:
            oauth._KNOWN[login] = replace(known, renew_at=0.0)
        return {"errorCode": 0, "mechanisms": ["OAUTHBEARER"]}

    scripts["SaslHandshake"] = its_file_goes
    with FakeNode(scripts) as node, pytest.raises(AccessRefused, match="was refused") as caught:
        Connection(node.address, mine)
    assert "our token says sub=tool" in (caught.value.why or "")


@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
def test_a_session_is_renewed_before_its_end(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """On the same connection, at 80 % of its life, by any mechanism; without an end never."""
    mine = access(tmp_path, issuer)
    if mechanism == "PLAIN":
        mine = Access("SASL_PLAINTEXT", mechanism, "tool", secret(tmp_path, "word"))
    clock = 1000.0
    monkeypatch.setattr("migrate.kafka.connection.time.monotonic", lambda: clock)
    for lifetime, logins in ((60_000, [1, 1, 2, 2, 3]), (0, [1] * 5)):
        scripts, got = listener(lifetime=lifetime)
        with FakeNode(scripts) as node, Connection(node.address, mine) as connection:
            seen = []
            for later in (0.0, 47.9, 0.2, 47.0, 2.0):
                clock += later
                connection.call(DESCRIBE_CLUSTER, {"endpointType": 1})
                seen.append(len(got))
            assert seen == logins
            assert node.connections == 1


@pytest.mark.slow
def test_what_cannot_be_renewed_closes_the_connection(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked as somebody whose session is over."""
    scripts, _ = listener(lifetime=60_000)
    with FakeNode(scripts) as node, Connection(node.address, access(tmp_path, issuer)) as connection:
        scripts["SaslAuthenticate"] = listener(refuses="no")[0]["SaslAuthenticate"]
        now = time.monotonic()
        monkeypatch.setattr("migrate.kafka.connection.time.monotonic", lambda: now + 60)
        with pytest.raises(MigrateError):
            connection.call(DESCRIBE_CLUSTER, {"endpointType": 1})
        assert not connection.is_open


@pytest.mark.slow
def test_a_tokens_command_is_asked_anew(tmp_path: Path, issuer: Issuer) -> None:
    """Its last answer may be what was refused."""
    program = tmp_path / "token"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/word\n")
    program.chmod(0o700)
    mine = Access("SASL_PLAINTEXT", "OAUTHBEARER", "tool", oauth=OAuth(token=SecretCommand((str(program),))))
    for _ in range(2):
        (tmp_path / "word").write_text(token := issuer.token("tool"))
        assert oauth.token_of(mine).text == token
        oauth.forget(mine)
        issuer.rotate()
