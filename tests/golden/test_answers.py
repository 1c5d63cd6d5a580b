"""What each stage writes into a node's file, byte for byte.  UPDATE_GOLDEN=1 writes the files anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from migrate.hosts.properties import parse
from migrate.model.inventory import Access, AddedProperties
from migrate.steps import configuration
from tests.steps.test_configuration import BROKER, inventory
from tests.testing.golden import same_as_kept

FOLDER = Path(__file__).parent / "properties"
LINES = BROKER.splitlines(keepends=True)
SECURED = b"""broker.id = 1
listeners: INTERNAL://b1:9092,CLIENT://b1:9093
log.dirs=/d0, /d1 ,\\
  /d2
security.inter.broker.protocol=SASL_SSL
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
ssl.keystore.location=/etc/kafka/b1.p12
ssl.keystore.password=${file:/etc/kafka/secrets:keystore}
ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/,DEFAULT
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
listener.name.internal.scram-sha-512.sasl.jaas.config=of the brokers
listener.name.client.plain.sasl.jaas.config=of the clients
listener.name.ctl.ssl.client.auth=required
zookeeper.connect=zk1:2182,zk2:2182/kafka
zookeeper.set.acl=true
zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty
zookeeper.ssl.client.enable=true
zookeeper.ssl.truststore.location=/etc/kafka/zk.p12
zookeeper.max.in.flight.requests=20
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:admin
principal.builder.class=com.example.Principals
delegation.token.secret.key=hush
password.encoder.secret=hush
password.encoder.iterations=8192
inter.broker.protocol.version=3.9-IV0
broker.rack=a
reserved.broker.max.id=2000
advertised.listeners=INTERNAL://b1.example:9092,CLIENT://b1.example:9093
default.replication.factor=3
auto.leader.rebalance.enable=false
unclean.leader.election.enable=false
controller.quorum.election.timeout.ms=2000
metadata.max.retention.bytes=1000000
num.io.threads=16
log.retention.hours=24
log4j.none=\\u00e4 \\t kept
"""
GIVEN = {
    "whole": BROKER,
    "crlf": BROKER.replace(b"\n", b"\r\n"),
    "no-last-line-end": BROKER.rstrip(b"\n"),
    "spaces-around-equals": BROKER.replace(b"=", b" = "),
    "colons": BROKER.replace(b"=", b": ", 3),
    "secured": SECURED,
    "protocol-of-before": BROKER.replace(b"version=3.9", b"version=3.6"),
    "written-twice": BROKER + b"custom.key=kept\nlog.dirs=/d0,/d1,/d2\n",
    "own-authorizer": BROKER.replace(b"kafka.security.authorizer.AclAuthorizer", b"com.example.OwnAuthorizer"),
    **{f"without-line-{number:02}": b"".join(LINES[:number] + LINES[number + 1 :]) for number in range(len(LINES))},
}
ADDED = replace(  # what operators add, and a controller listener that is encrypted
    inventory(),
    controller_access=Access(protocol="SSL"),
    broker_properties=AddedProperties(
        "added.properties", {"num.network.threads": "8", "super.users": "User:admin;User:broker"}
    ),
    controller_properties=AddedProperties("added.properties", {"ssl.keystore.location": "/etc/kafka/controller.p12"}),
)


@pytest.mark.parametrize("name", GIVEN)
def test_what_the_stages_write_is_what_was_kept(name: str) -> None:
    """Both rolls of a broker, one after the other."""
    asked = inventory()
    first = configuration.migration_mode(GIVEN[name], asked)
    second = configuration.kraft_mode(first, asked, asked.brokers[0])
    for stage, found in (("migration-mode", first), ("kraft-mode", second)):
        same_as_kept(FOLDER / f"{name}.{stage}", found)


@pytest.mark.parametrize("name", GIVEN)
def test_the_controllers_file_is_what_was_kept(name: str) -> None:
    """Rendered from that broker's, and as finalize leaves it."""
    asked = inventory()
    rendered = configuration.controller(parse(GIVEN[name]), asked, asked.controllers[1])
    same_as_kept(FOLDER / f"{name}.controller", rendered)
    same_as_kept(FOLDER / f"{name}.finalized-controller", configuration.finalized_controller(rendered))


@pytest.mark.parametrize("name", ["whole", "secured"])
def test_what_operators_add_is_where_it_was_kept(name: str) -> None:
    """In every file of both rolls, and in the controllers', with an override of the playbook."""
    first = configuration.migration_mode(GIVEN[name], ADDED)
    second = configuration.kraft_mode(first, ADDED, ADDED.brokers[0])
    own = {"ssl.keystore.password": "of-this-host", "num.io.threads": "4"}
    rendered = configuration.controller(parse(GIVEN[name]), ADDED, ADDED.controllers[2], own)
    for stage, found in (("migration-mode", first), ("kraft-mode", second), ("controller", rendered)):
        same_as_kept(FOLDER / f"{name}-with-added.{stage}", found)


@pytest.mark.parametrize("name", ["whole", "secured", "crlf", "protocol-of-before", "without-line-05"])
def test_the_files_of_the_other_playbooks_are_what_was_kept(name: str) -> None:
    """The protocol version raised, and log directories added to a KRaft file and taken out again."""
    same_as_kept(FOLDER / f"{name}.with-protocol", configuration.with_protocol(GIVEN[name]))
    asked = inventory()
    kraft = configuration.kraft_mode(configuration.migration_mode(GIVEN[name], asked), asked, asked.brokers[0])
    more = configuration.with_directories(kraft, ("/d2/", "/e0", "/e1"))
    same_as_kept(FOLDER / f"{name}.with-directories", more)
    same_as_kept(FOLDER / f"{name}.without-directories", configuration.without_directories(more, ("/e0", "/e1")))
