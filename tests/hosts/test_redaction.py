"""What leaves a host of a configuration: what is known to be no secret, and digests of all else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from migrate.hosts import properties
from migrate.hosts.collect_disks import HIDDEN, PASSWORDS, PUBLIC, keyed, redact, redacted_value
from migrate.model.secrets import PASSWORD_CONFIGS, without_digits
from tests.testing.kafka_jvm import kafka_jvm

CANARY = "c4n4ry"
OF_PLUGINS = (  # key of a class that people put into brokers, and the shape of its value
    ("confluent.license", "eyJhbGciOi.{}"),
    ("confluent.license.topic.replication.factor.note", "{}"),
    ("confluent.metadata.basic.auth.user.info", "u:{}"),
    ("confluent.metadata.http.auth.credentials.provider", "BASIC-{}"),
    ("confluent.metrics.reporter.sasl.jaas.config", 'a.B required username="u" password="{}";'),
    ("confluent.metrics.reporter.ssl.keystore.password", "{}"),
    ("confluent.schema.registry.url", "https://u:{}@sr.example.com"),
    ("confluent.telemetry.api.key", "{}"),
    ("confluent.telemetry.api.secret", "{}"),
    ("confluent.tier.s3.aws.access.key.id", "AKIA{}"),
    ("confluent.tier.s3.aws.secret.access.key", "{}"),
    ("confluent.tier.gcs.cred.file.path", "/etc/{}.json"),
    ("schema.registry.basic.auth.user.info", "u:{}"),
    ("basic.auth.user.info", "u:{}"),
    ("bearer.auth.token", "{}"),
    ("ldap.java.naming.security.credentials", "{}"),
    ("ldap.java.naming.security.principal", "cn={},dc=example"),
    ("ldap.java.naming.provider.url", "ldap://u:{}@ldap:389"),
    ("ldap.bindpw", "{}"),
    ("ldap.bind.pw", "{}"),
    ("ldap.bind.dn.and.word", "cn=admin {}"),
    ("rsm.config.storage.aws.access.key.id", "{}"),
    ("rsm.config.storage.aws.secret.access.key", "{}"),
    ("rsm.config.storage.s3.endpoint.url", "https://{}@s3.example.com"),
    ("rsm.config.storage.azure.account.key", "{}=="),
    ("rsm.config.storage.azure.account.name", "acc{}"),
    ("rsm.config.storage.azure.connection.string", "AccountName=a;AccountKey={}=="),
    ("rsm.config.storage.azure.sas.token", "sv=2022&sig={}"),
    ("rsm.config.storage.azure.endpoint.url", "https://a.blob.example.com/?sig={}"),
    ("rsm.config.storage.gcs.credentials.json", '{{"private_key": "{}"}}'),
    ("rsm.config.storage.proxy.password", "{}"),
    ("rsm.config.storage.proxy.username", "u{}"),
    ("rsm.config.encryption.public.key.file", "/k/{}.pem"),
    ("rlm.s3.accesskey", "{}"),
    ("rlmm.config.remote.log.metadata.common.client.sasl.jaas.config", "{}"),
    ("rlmm.config.remote.log.metadata.consumer.ssl.key.password", "{}"),
    ("opa.authorizer.url", "http://t:{}@opa:8181/v1/data"),
    ("opa.authorizer.token", "{}"),
    ("opa.authorizer.truststore.password", "{}"),
    ("strimzi.authorization.client.secret", "{}"),
    ("strimzi.authorization.token.endpoint.uri", "https://c:{}@sso"),
    ("strimzi.authorization.ssl.truststore.password", "{}"),
    ("oauth.client.secret", "{}"),
    ("oauth.client.assertion", "ey{}"),
    ("oauth.refresh.token", "{}"),
    ("ranger.plugin.kafka.policy.rest.url", "http://r:{}@ranger"),
    ("ranger.plugin.kafka.ambari.cluster.name", "prod-{}"),
    ("xasecure.audit.destination.db.password", "{}"),
    ("xasecure.audit.destination.solr.urls", "http://{}@solr"),
    ("xasecure.audit.jaas.Client.option.principal", "{}@REALM"),
    ("cruise.control.metrics.reporter.sasl.jaas.config", "a.B required password={};"),
    ("cruise.control.metrics.reporter.ssl.truststore.password", "{}"),
    ("cruise.control.metrics.reporter.bootstrap.servers", "b:9092?{}"),
    ("datadog.appkey", "{}"),
    ("datadog.apikey", "{}"),
    ("kafka.datadog.metrics.host", "{}"),
    ("kafka.graphite.metrics.host", "{}.example.com"),
    ("external.kafka.statsd.tag", "env:{}"),
    ("kafka.influxdb.password", "{}"),
    ("kafka.influxdb.connectstring", "http://i:{}@influx"),
    ("newrelic.licence", "{}"),
    ("slack.webhook.url", "https://hooks.example.com/services/T0/B0/{}"),
    ("pagerduty.routing.id", "{}"),
    ("http.reporter.headers", "Authorization: Basic {}"),
    ("http.reporter.extra", "Bearer {}"),
    ("config.providers.vault.param.token", "s.{}"),
    ("config.providers.vault.param.uri", "https://{}@vault"),
    ("config.providers.aws.param.secret.id", "{}"),
    ("apicurio.auth.client.secret", "{}"),
    ("apicurio.registry.auth.password", "{}"),
    ("signing.hmac", "{}"),
    ("gateway.pin", "4711"),
    ("sentry.dsn", "https://{}@sentry.example.com/1"),
    ("jdbc.url", "jdbc:postgresql://db/kafka?user=k&password={}"),
    ("instaclustr.user", "ic_{}"),
    ("aws.sts.external.id", "{}"),
)
IN_KAFKAS = (  # keys that Kafka holds for public, with a secret in the value
    ("sasl.oauthbearer.token.endpoint.url", "https://c:{}@sso/token"),
    ("sasl.oauthbearer.jwks.endpoint.url", "https://{}@sso/jwks"),
    ("metric.reporters", "password={}"),
    ("listener.name.x.oauthbearer.sasl.oauthbearer.token.endpoint.url", "https://sso/token?access_token={}"),
)
STAY = (
    ("log.dirs", "/d0,/d1"),
    ("listeners", "PLAINTEXT://b1:9092,SSL://:9093"),
    ("super.users", "User:CN=admin,OU=a"),
    ("controller.quorum.voters", "1@c1:9093,2@c2:9093"),
    ("zookeeper.connect", "zk1:2181,zk2:2181/kafka"),
    ("listener.name.internal.ssl.keystore.location", "/etc/kafka/b.p12"),
    ("listener.name.internal.scram-sha-256.sasl.server.callback.handler.class", "a.B"),
    ("password.encoder.iterations", "4096"),
    ("delegation.token.expiry.time.ms", "86400000"),
    ("ssl.principal.mapping.rules", "RULE:^CN=(.*?),.*$/$1/L,DEFAULT"),
    ("sasl.kerberos.principal.to.local.rules", "RULE:[1:$1@$0](.*@EXAMPLE.COM)s/@.*//,DEFAULT"),
    ("authorizer.class.name", "org.openpolicyagent.kafka.OpaAuthorizer"),
    ("opa.authorizer.cache.maximum.size", "50000"),
    ("opa.authorizer.allow.on.error", "false"),
    ("config.providers", "vault,env"),
    ("config.providers.vault.class", "a.Vault"),
    ("ssl.key.password", "${vault:secret/kafka:pw}"),
    ("opa.authorizer.token", "${env:OPA_TOKEN}"),
)
KEY = keyed(b"k" * 32)


@pytest.mark.parametrize(("name", "shape"), [*OF_PLUGINS, *IN_KAFKAS])
def test_what_may_be_a_secret_leaves_neither_a_host_nor_the_plan(name: str, shape: str) -> None:
    """As a digest alone; in a file's lines, changed or around what changed, however the line is spelled."""
    value = shape.format(CANARY)
    assert redacted_value(name, value, KEY) != value
    for line in (f"{name}={value}\n", f"{name} : {value}\n", f"#{name}={value}\n", f"  {name}=\\\n   {value}\n"):
        raw = line.encode()
        for text in (redact(raw, KEY).decode(), "\n".join(properties.diff(raw, raw + b"node.id=1\n", "f"))):
            assert CANARY not in text
            assert f"={value}" not in text
    assert (
        redacted_value(name, value, KEY) == redacted_value(name, value, KEY) != redacted_value(name, value + "x", KEY)
    )


@pytest.mark.parametrize(("name", "value"), STAY)
def test_what_is_known_to_be_no_secret_stays_as_it_is(name: str, value: str) -> None:
    """Reviewers read it, and checks judge it."""
    assert redacted_value(name, value, KEY) == value
    assert redact(f"{name}={value}\n".encode(), KEY) == f"{name}={value}\n".encode()


def test_a_name_in_braces_is_a_reference_only_with_its_provider() -> None:
    """`${word}` is what somebody chose as a password."""
    assert redacted_value("ssl.key.password", "${c4n4ry}", KEY) != "${c4n4ry}"


def test_what_stands_in_a_secrets_place_is_shown_as_the_secret_is() -> None:
    """So a plan from a bundle says what a plan of the cluster says."""
    for place in (HIDDEN, KEY("canary")):
        assert properties.for_people("ssl.key.password", place) == properties.for_people("ssl.key.password", "canary")
        assert properties.plain_value("ssl.key.password", place) is None
        shown = properties.diff(b"", f"ssl.key.password={place}\nopa.url={place}\n".encode(), "f")
        live = properties.diff(b"", b"ssl.key.password=canary\nopa.url=canary\n", "f")
        assert [*map(without_digits, shown)] == [*map(without_digits, live)]


def test_the_two_lists_of_passwords_are_one() -> None:
    """The collector stands alone on a host, and has its own copy."""
    assert frozenset(PASSWORD_CONFIGS) == PASSWORDS


@pytest.fixture(scope="module")
def defined() -> Iterator[dict[str, str]]:
    """Type of each key that Kafka 3.9 defines for nodes and topics, by its own classes."""
    with kafka_jvm() as gateway:
        found: dict[str, str] = {}
        for made in (
            gateway.jvm.kafka.server.KafkaConfig.configDef(),
            gateway.jvm.org.apache.kafka.storage.internals.log.LogConfig.configDefCopy(),
        ):
            for entry in made.configKeys().entrySet():
                key: Any = entry.getValue()
                found[entry.getKey()] = key.getClass().getField("type").get(key).toString()
        yield found


@pytest.mark.kafka
def test_the_collectors_lists_are_what_kafka_defines(defined: dict[str, str]) -> None:
    """A key of a type that Kafka hides stands in the one list, every other in the other."""
    assert {name for name, kind in defined.items() if kind == "PASSWORD"} == PASSWORDS
    more = {"config.providers", "interval.ms", "match", "metrics"}  # AbstractConfig; ClientMetricsConfigs
    more |= {"super.users", "allow.everyone.if.no.acl.found"}  # StandardAuthorizer
    assert {name for name, kind in defined.items() if kind != "PASSWORD"} | more == PUBLIC


def test_a_login_of_one_long_word_is_hidden_in_no_time() -> None:
    """Found by damaged files: 64 KiB took minutes, as each letter was tried as the beginning of an option's name."""
    login = b"a" * 400_000 + b' required password="' + CANARY.encode() + b'";'
    shown = redact(b"sasl.jaas.config=" + login + b"\n", lambda _: HIDDEN)
    assert CANARY.encode() not in shown
    assert shown.startswith(b"sasl.jaas.config=aaaa")
