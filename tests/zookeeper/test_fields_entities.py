"""Rows of configurations, quotas, SCRAM, ACLs and tokens are spelled as both views spell them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.errors import MalformedZnode
from migrate.model.secrets import Digester
from migrate.zookeeper import fields
from migrate.zookeeper.password_encoder import EncoderSecrets
from tests.testing.kafka_encoder import encode

DIGESTER = Digester(b"k" * 32)
PATH = "/config/x"


def config(**values: str) -> bytes:
    """A configuration znode's data."""
    return json.dumps(
        {"version": 1, "config": {name.replace("__", "."): value for name, value in values.items()}}
    ).encode()


def test_a_quota_is_keyed_by_its_sorted_and_quoted_parts() -> None:
    """Names are desanitized and quoted anew; values are numbers in one spelling."""
    both = {"user": "bob%40x.y", "client-id": "a%20b%2Fc%3D"}
    assert [
        *fields.quotas(PATH, both, config(request_percentage="5e2")),
        *fields.quotas(PATH, {"ip": "10.0.0.1"}, config(connection_creation_rate="50")),
    ] == [
        ("client-quota", "client-id=a%20b%2Fc%3D/user=bob%40x.y", "request_percentage", "500.0"),
        ("client-quota", "ip=10.0.0.1", "connection_creation_rate", "50.0"),
    ]


def test_the_default_entity_cannot_be_confused_with_a_name() -> None:
    """A user called `<default>` has another znode, and another key."""
    assert fields.quota_entity(PATH, {"user": "<default>"}) == "user=<default>"
    assert fields.quota_entity(PATH, {"user": "%3Cdefault%3E"}) == "user=%3Cdefault%3E"


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_every_name_that_kafka_sanitizes_comes_back(name: str) -> None:
    """`Sanitizer.sanitize` is URLEncoder with %20 for blanks and %2A for stars."""
    from urllib.parse import quote_plus

    sanitized = quote_plus(name, safe="").replace("+", "%20").replace("*", "%2A").replace("~", "%7E")
    assert fields.desanitize(PATH, sanitized) == name


@pytest.mark.parametrize("name", ["%", "%4", "%zz", "a%ff", "%C3%28"])
def test_a_name_that_is_not_url_encoded_is_refused(name: str) -> None:
    """Java's URLDecoder refuses it, or makes a replacement character of it: neither is a name."""
    with pytest.raises(MalformedZnode):
        fields.desanitize(PATH, name)


def test_scram_parts_are_digests_of_their_bytes() -> None:
    """The same key in another base64 spelling could not differ; the iterations are no secret."""
    credential = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"
    data = json.dumps({"version": 1, "config": {"SCRAM-SHA-512": credential, "request_percentage": "7"}}).encode()
    scram = fields.scrams(PATH, "al%20ice", data, DIGESTER)
    assert [*scram, *fields.quotas(PATH, {"user": "al%20ice"}, data)] == [
        ("scram", "al ice", "SCRAM-SHA-512.salt", DIGESTER.digest(b"salt")),
        ("scram", "al ice", "SCRAM-SHA-512.stored_key", DIGESTER.digest(b"stored")),
        ("scram", "al ice", "SCRAM-SHA-512.server_key", DIGESTER.digest(b"server")),
        ("scram", "al ice", "SCRAM-SHA-512.iterations", "4096"),
        ("client-quota", "user=al%20ice", "request_percentage", "7.0"),
    ]


def test_a_broken_credential_is_not_shown() -> None:
    """The error says which part, never what stood there."""
    for credential in ("salt=SECRET", "salt=SECRET!,stored_key=AA==,server_key=AA==,iterations=1"):
        data = json.dumps({"version": 1, "config": {"SCRAM-SHA-256": credential}}).encode()
        with pytest.raises(MalformedZnode) as caught:
            list(fields.scrams(PATH, "u", data, DIGESTER))
        assert "SECRET" not in str(caught.value)


def test_a_password_is_compared_by_digest_when_the_secret_is_known() -> None:
    """The row holds the digest of the clear text, under whatever listener prefix."""
    secrets = fields.Secrets(DIGESTER, EncoderSecrets("s3cret"))
    name = "listener.name.internal.ssl.keystore.password"
    data = json.dumps({"version": 1, "config": {name: encode("clear", "s3cret", iterations=2), "a.b": "c"}}).encode()
    assert list(fields.broker_configs(PATH, "<default>", data, secrets)) == [
        ("broker-config", "<default>", name, DIGESTER.digest("clear")),
        ("broker-config", "<default>", "a.b", "c"),
    ]
    assert secrets.blind == []


@pytest.mark.parametrize(
    ("decoder", "stored", "reason"),
    [
        (None, encode("clear", "s3cret", iterations=2), "no password.encoder.secret was given"),
        (EncoderSecrets("other"), encode("clear", "s3cret", iterations=2), "cannot be decoded"),
        (EncoderSecrets("s3cret"), "clear", "is not encoded"),
    ],
    ids=["no-secret", "wrong-secret", "stored-in-clear"],
)
def test_a_password_that_cannot_be_decoded_is_a_blind_spot(
    decoder: EncoderSecrets | None, stored: str, reason: str
) -> None:
    """Never a row, and never shown; it is named with its znode and key."""
    import re

    data, secrets = config(ssl__key__password=stored), fields.Secrets(DIGESTER, decoder)
    assert list(fields.broker_configs("/config/brokers/1", "1", data, secrets)) == []
    (blind,) = secrets.blind
    assert "/config/brokers/1" in blind
    assert "ssl.key.password" in blind
    assert re.search(reason, blind)
    assert stored[:30] not in blind
    assert "clear" not in blind


def test_a_password_that_only_the_old_secret_opens_is_compared_and_named() -> None:
    """Its clear text is known, so it is no blind spot; but controllers cannot read it, and that is B-SEC-15's."""
    secrets = fields.Secrets(DIGESTER, EncoderSecrets("new", "old"))
    names = ["ssl.key.password", "ssl.keystore.password", "ssl.truststore.password"]
    values = [encode("clear", secret, iterations=2) for secret in ("old", "new", "lost")]
    data = json.dumps({"version": 1, "config": dict(zip(names, values, strict=True))}).encode()
    digest = DIGESTER.digest("clear")
    rows = list(fields.broker_configs("/config/brokers/1", "1", data, secrets))
    (blind,) = secrets.blind
    assert "ssl.truststore.password" in blind
    assert rows == [("broker-config", "1", name, digest) for name in names[:2]]
    old, lost = secrets.undecodable
    assert old == f"/config/brokers/1 {names[0]}{fields.ONLY_OLD}"
    assert lost == f"/config/brokers/1 {names[2]}"


@pytest.mark.parametrize("name", ["x", "-1", "2147483648", ""])
def test_a_broker_config_must_be_a_brokers(name: str) -> None:
    """An id or <default>."""
    with pytest.raises(MalformedZnode):
        list(fields.broker_configs(PATH, name, config(), fields.Secrets(DIGESTER, None)))


def test_acls_are_a_set_in_kafkas_enum_names() -> None:
    """Sorted, each once; blanks and bars in names are quoted, stars and colons are not."""
    entry = {"principal": "User:CN=a, O=b|c", "permissionType": "Deny", "operation": "ClusterAction", "host": "*"}
    other = {**entry, "operation": "All"}
    data = json.dumps({"version": 1, "acls": [entry, other, entry]}).encode()
    rows = list(fields.acls(PATH, "TransactionalId", "PREFIXED", "a b", data))
    prefix = "TRANSACTIONAL_ID|PREFIXED|a%20b|User:CN%3Da%2C%20O%3Db%7Cc|*|"
    assert rows == [("acl", f"{prefix}{end}|DENY", "present", "true") for end in ("ALL", "CLUSTER_ACTION")]


def test_an_acl_on_an_unknown_resource_type_is_refused() -> None:
    """It could not be compared."""
    with pytest.raises(MalformedZnode):
        list(fields.acls(PATH, "Planet", "LITERAL", "x", b'{"version":1,"acls":[]}'))


def test_a_token_is_keyed_by_a_digest_and_its_principals_are_desanitized() -> None:
    """Version 3; before it the owner is the requester."""
    token = {
        "version": 3,
        "owner": "User%3Aalice",
        "tokenRequester": "User%3Abob",
        "renewers": ["User%3Az", "User%3Ac"],
        "issueTimestamp": 1,
        "maxTimestamp": 3,
        "expiryTimestamp": 2,
        "tokenId": "id-1",
    }
    rows = list(fields.token(PATH, "id-1", json.dumps(token).encode(), DIGESTER))
    key = DIGESTER.digest("id-1")
    assert rows == [
        ("delegation-token", key, "owner", "User:alice"),
        ("delegation-token", key, "requester", "User:bob"),
        ("delegation-token", key, "renewers", "User:c,User:z"),
        ("delegation-token", key, "issue_timestamp", "1"),
        ("delegation-token", key, "max_timestamp", "3"),
        ("delegation-token", key, "expiration_timestamp", "2"),
    ]
    old = {name: value for name, value in token.items() if name != "tokenRequester"} | {"version": 2}
    older = {name: value for _, _, name, value in fields.token(PATH, "id-1", json.dumps(old).encode(), DIGESTER)}
    assert older["requester"] == "User:alice"
    assert not any("id-1" in value for row in rows for value in row)
