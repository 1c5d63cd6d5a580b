"""One connection: an answer, or a typed error, in time."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.errors import (
    AccessRefused,
    AccessUnsupported,
    AnswerBroken,
    AnswerTimeout,
    ConnectionClosed,
    KafkaRefused,
    MigrateError,
    NodeUnreachable,
    Retryable,
    SecretUnreadable,
)
from migrate.kafka.connection import Connection, Limits
from migrate.model.inventory import Access, SecretFile
from migrate.protocol.messages import ASSIGN_REPLICAS_TO_DIRS, DESCRIBE_CLUSTER, METADATA
from tests.kafka.fake_node import Close, FakeNode, OtherCorrelation, Raw, Silence, served

PLAIN = Access()
QUICK = Limits(connect_seconds=0.3, answer_seconds=0.3, answer_bytes=10_000)
CLUSTER = {"errorCode": 0, "clusterId": "c", "controllerId": 1, "brokers": [], "throttleTimeMs": 0}


@pytest.fixture
def node() -> Iterator[FakeNode]:
    """A node that serves everything and answers DescribeCluster."""
    with FakeNode({"DescribeCluster": lambda _version, _body: dict(CLUSTER)}) as found:
        yield found


def ask(node: FakeNode) -> str:
    """One connection, one question."""
    with Connection(node.address, PLAIN, QUICK) as connection:
        found: str = connection.call(DESCRIBE_CLUSTER, {"endpointType": 2})["clusterId"]
        return found


# -- answers -----------------------------------------------------------------------------------------------------
def test_a_request_gets_its_answer_in_the_highest_common_version(node: FakeNode) -> None:
    """ApiVersions first, in version 4 (which shows kraft.version); then the call."""
    assert ask(node) == "c"
    assert [(name, version) for name, version, _ in node.seen] == [("ApiVersions", 4), ("DescribeCluster", 1)]
    assert node.seen[1][2]["endpointType"] == 2


def test_an_older_node_is_asked_in_its_version(node: FakeNode) -> None:
    """The range of the other side counts."""
    keys = [{"apiKey": DESCRIBE_CLUSTER.key, "minVersion": 0, "maxVersion": 0}]
    node.scripts["ApiVersions"] = lambda _version, _body: {"errorCode": 0, "apiKeys": keys}
    with Connection(node.address, PLAIN, QUICK) as connection:
        connection.call(DESCRIBE_CLUSTER, {})
    assert node.seen[-1][:2] == ("DescribeCluster", 0)


def test_a_request_that_the_listener_does_not_serve_is_never_sent(node: FakeNode) -> None:
    """A real one would close the connection; we know beforehand, and say why."""
    node.scripts["ApiVersions"] = served("ApiVersions", "DescribeCluster")
    with Connection(node.address, PLAIN, QUICK) as connection:
        with pytest.raises(KafkaRefused, match="AssignReplicasToDirs is not served on this listener"):
            connection.call(ASSIGN_REPLICAS_TO_DIRS, {"brokerId": 0, "brokerEpoch": 1, "directories": []})
        assert connection.call(DESCRIBE_CLUSTER, {})["clusterId"] == "c"
    assert "AssignReplicasToDirs" not in [name for name, _, _ in node.seen]


def test_an_answer_may_come_in_many_pieces(node: FakeNode) -> None:
    """TCP promises bytes, not frames: half a megabyte comes whole."""
    brokers = [{"brokerId": number, "host": "h" * 200, "port": 1} for number in range(2500)]
    node.scripts["DescribeCluster"] = lambda _version, _body: CLUSTER | {"brokers": brokers}
    with Connection(node.address, PLAIN, Limits(answer_seconds=5)) as connection:
        assert len(connection.call(DESCRIBE_CLUSTER, {})["brokers"]) == 2500


# -- faults ------------------------------------------------------------------------------------------------------
def test_a_node_that_is_too_old_for_our_versions_is_told_so(node: FakeNode) -> None:
    """Before Kafka 3.9 there is no ApiVersions 4: the answer comes in version 0, with an error (KIP-511)."""
    body = b"\0\0\0\1" + b"\0\x23" + b"\0\0\0\1" + b"\0\x12\0\0\0\3"
    node.scripts["ApiVersions"] = lambda _version, _body: Raw(len(body).to_bytes(4, "big") + body)
    with pytest.raises(KafkaRefused, match="UNSUPPORTED_VERSION") as caught:
        ask(node)
    assert caught.value.why == "the node is older than Kafka 3.9"


def raw(*parts: bytes) -> Raw:
    """Bytes that end the conversation."""
    return Raw(b"".join(parts), close=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (Close(), ConnectionClosed, "closed instead of an answer to DescribeCluster"),
        (raw(b"\0\0"), ConnectionClosed, "closed"),
        (raw((100).to_bytes(4, "big"), b"\0" * 40), ConnectionClosed, "closed"),
        (Silence(), AnswerTimeout, "no answer to DescribeCluster in time"),
        (Raw((100).to_bytes(4, "big")), AnswerTimeout, "no answer"),
        (Raw((10_001).to_bytes(4, "big")), AnswerBroken, "says it has 10001 bytes"),
        (Raw((-1).to_bytes(4, "big", signed=True)), AnswerBroken, "says it has -1 bytes"),
        (Raw((3).to_bytes(4, "big") + b"\0\0\0"), AnswerBroken, "says it has 3 bytes"),
        (Raw((8).to_bytes(4, "big") + b"\0\0\0\2" + b"\xff" * 4), AnswerBroken, "cannot be decoded"),
        (Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), AnswerBroken, "says it has 1213486160 bytes"),
        (OtherCorrelation(CLUSTER), AnswerBroken, "an answer to request 9 came for 2"),
    ],
)
def test_every_fault_is_a_typed_error_that_names_the_node(
    node: FakeNode, said: Raw | Close | Silence, kind: type[MigrateError], message: str
) -> None:
    """Closing, half answers, silence, nonsense and too much: none is waited for longer than the limit."""
    node.scripts["DescribeCluster"] = lambda _version, _body: said
    began = time.monotonic()
    with pytest.raises(kind, match=message) as caught:
        ask(node)
    assert time.monotonic() - began < 10
    assert caught.value.where == node.address
    assert isinstance(caught.value, Retryable) == (kind is not AnswerBroken)


@pytest.mark.slow
def test_an_answer_that_drips_does_not_prolong_the_limit(node: FakeNode) -> None:
    """The limit is for the whole answer, not for each piece of it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        with pytest.raises(AnswerTimeout):
            Connection(f"127.0.0.1:{server.getsockname()[1]}", PLAIN, QUICK)
        assert 0.2 < time.monotonic() - began < 10


@pytest.mark.slow
def test_after_a_fault_the_connection_is_closed(node: FakeNode) -> None:
    """A late answer must never be taken for that of the next request."""
    node.scripts["DescribeCluster"] = lambda _version, _body: Silence()
    with Connection(node.address, PLAIN, QUICK) as connection:
        with pytest.raises(AnswerTimeout):
            connection.call(DESCRIBE_CLUSTER, {})
        with pytest.raises(ConnectionClosed):
            connection.call(DESCRIBE_CLUSTER, {})


@pytest.mark.parametrize("address", ["127.0.0.1:{closed}", "no.such.host.invalid:9092", "127.0.0.1:99999"])
def test_where_nobody_listens_the_node_is_unreachable(address: str) -> None:
    """Refused, unknown name, impossible port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    with pytest.raises(NodeUnreachable, match="no connection"):
        Connection(address.format(closed=closed), PLAIN, Limits(connect_seconds=2))


@pytest.mark.parametrize("address", ["localhost", ":9092", "localhost:", "localhost:x", "localhost:٣"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """It came from the inventory: what to correct is told."""
    with pytest.raises(AccessUnsupported, match="no host:port"):
        Connection(address, PLAIN, QUICK)


@pytest.mark.parametrize("protocol", ["TLS", "ssl", "plaintext", ""])
def test_a_protocol_that_is_not_spoken_is_refused_before_connecting(node: FakeNode, protocol: str) -> None:
    """Never in clear where TLS was asked for."""
    with pytest.raises(AccessUnsupported, match="is not spoken"):
        Connection(node.address, Access(protocol=protocol), QUICK)
    assert node.connections == 0


def test_an_error_code_becomes_an_error_with_kafkas_name(node: FakeNode) -> None:
    """Rights are told apart from the rest; success raises nothing."""
    with Connection(node.address, PLAIN, QUICK) as connection:
        connection.refuse(METADATA, 0)
        with pytest.raises(AccessRefused, match=r"CLUSTER_AUTHORIZATION_FAILED \(31\)"):
            connection.refuse(METADATA, 31)
        with pytest.raises(KafkaRefused, match=r"INVALID_REQUEST \(42\)") as caught:
            connection.refuse(METADATA, 42, "so")
        assert caught.value.why == "so"
        with pytest.raises(KafkaRefused, match="error 9999"):
            connection.refuse(METADATA, 9999)


# -- SASL --------------------------------------------------------------------------------------------------------
def secret(folder: Path, text: str = "canary-pw\n", mode: int = 0o600) -> SecretFile:
    """A secret's file."""
    path = folder / "password"
    path.write_text(text)
    path.chmod(mode)
    return SecretFile(str(path))


def sasl(password: SecretFile | None, mechanism: str = "PLAIN") -> Access:
    """Access by SASL."""
    return Access("SASL_PLAINTEXT", mechanism, "alice", password)


def authenticated(error: int = 0) -> dict[str, object]:
    """An answer to SaslAuthenticate."""
    return {"errorCode": error, "errorMessage": "Invalid" if error else None, "authBytes": b"", "sessionLifetimeMs": 0}


def test_plain_sends_user_and_password_once(node: FakeNode, tmp_path: Path) -> None:
    """RFC 4616's token in SaslAuthenticate, after a handshake; the secret's line end is no part of it."""
    node.scripts["SaslHandshake"] = lambda _version, _body: {"errorCode": 0, "mechanisms": ["PLAIN"]}
    node.scripts["SaslAuthenticate"] = lambda _version, _body: authenticated()
    with Connection(node.address, sasl(secret(tmp_path)), QUICK) as connection:
        connection.call(DESCRIBE_CLUSTER, {})
    names = [name for name, _, _ in node.seen]
    assert names == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "DescribeCluster"]
    assert node.seen[1][1:] == (1, {"mechanism": "PLAIN"})
    assert node.seen[2][2] == {"authBytes": b"\0alice\0canary-pw"}


def test_a_refused_password_is_told_without_the_password(node: FakeNode, tmp_path: Path) -> None:
    """The secret is in no text of the error, nor in what caused it."""
    node.scripts["SaslHandshake"] = lambda _version, _body: {"errorCode": 0, "mechanisms": ["PLAIN"]}
    node.scripts["SaslAuthenticate"] = lambda _version, _body: authenticated(58)
    with pytest.raises(AccessRefused, match=r"user alice was refused: SASL_AUTHENTICATION_FAILED \(58\)") as caught:
        Connection(node.address, sasl(secret(tmp_path)), QUICK)
    assert "canary" not in repr(caught.value) + str(vars(caught.value)) + repr(caught.value.__cause__)
    assert not isinstance(caught.value, Retryable)


def test_a_mechanism_that_is_not_offered_or_not_spoken_is_told(node: FakeNode, tmp_path: Path) -> None:
    """With what the listener does offer."""
    node.scripts["SaslHandshake"] = lambda _version, _body: {"errorCode": 33, "mechanisms": ["SCRAM-SHA-256", "GSSAPI"]}
    with pytest.raises(AccessRefused, match="offers SCRAM-SHA-256, GSSAPI, not PLAIN"):
        Connection(node.address, sasl(secret(tmp_path)), QUICK)
    with pytest.raises(AccessUnsupported, match="'OAUTHBEARER' is not spoken yet"):
        Connection(node.address, sasl(secret(tmp_path), "OAUTHBEARER"), QUICK)
    with pytest.raises(AccessUnsupported, match="needs the password's file"):
        Connection(node.address, sasl(None), QUICK)


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [("x", 0o640, "mode 0640"), ("x", 0o604, "mode 0604"), (" \n", 0o600, "empty"), ("x" * 70_000, 0o600, "larger")],
)
def test_a_secret_that_others_can_read_or_that_is_none_is_refused(
    node: FakeNode, tmp_path: Path, text: str, mode: int, message: str
) -> None:
    """Before anything of it is sent."""
    with pytest.raises(SecretUnreadable, match=message):
        Connection(node.address, sasl(secret(tmp_path, text, mode)), QUICK)
    assert "SaslAuthenticate" not in [name for name, _, _ in node.seen]


def test_a_secret_that_is_no_file_or_no_text_is_refused(node: FakeNode, tmp_path: Path) -> None:
    """A missing file, a FIFO (never waited for), bytes that are no UTF-8."""
    os.mkfifo(tmp_path / "fifo", 0o600)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "bytes").chmod(0o600)
    for name, message in (("none", "No such file"), ("fifo", "no regular file"), ("bytes", "not UTF-8")):
        with pytest.raises(SecretUnreadable, match=message) as caught:
            Connection(node.address, sasl(SecretFile(str(tmp_path / name))), QUICK)
        assert caught.value.where == str(tmp_path / name)
