"""The user that Kafka makes of a Kerberos principal, as Kafka's own classes make it."""

from __future__ import annotations

from typing import Any

import pytest

from migrate.model.kerberos_names import short_name
from tests.testing.kafka_jvm import kafka_jvm

REALM = "LAB.TEST"
PRINCIPALS = (
    "kafka@LAB.TEST",
    "kafka/b1.lab.test@LAB.TEST",
    "Admin/x@LAB.TEST",
    "kafka/b1@OTHER.TEST",
    "alice@OTHER.TEST",
    "svc-kafka-prod@LAB.TEST",
    "a/b@",
)
RULES = (
    "",
    "DEFAULT",
    "RULE:[1:$1@$0](.*@OTHER.TEST)s/@.*//,DEFAULT",
    "RULE:[2:$1](kafka)s/.*/brokers/,DEFAULT",
    "RULE:[2:$1;$2]s/;.*//g/L",
    "RULE:[1:$1]/U,RULE:[2:$1]/L",
    "RULE:[2:$1/$2](.*)",
    "RULE:[1:$1](svc-.*)s/svc-(kafka)-prod/kafka/,DEFAULT",
    "RULE:[2:$2-$1-$0],DEFAULT",
    "RULE:[1:$1]s/a/X/g,RULE:[2:$1]s/a/X/",
    "RULE:[1:$1](x*)s/x*/y/g,DEFAULT",
    "  RULE:[2:$1]  ,  DEFAULT ",
    "RULE:[3:$1],DEFAULT",
    "DEFAULT/L",
    "RULE:[1:$4]",
    "RULE:[:$1]",
    "RULE:[2:$1](k)(a)",
    "nonsense",
    "DEFAULT,",
    "RULE:[1:$1](a,b)",
)


@pytest.mark.kafka
def test_short_names_are_what_kafkas_own_class_makes_of_them() -> None:
    """Each principal by each list of rules; where it throws, there is no name, or we do not know one."""
    with kafka_jvm() as gateway:
        kerberos: Any = gateway.jvm.org.apache.kafka.common.security.kerberos
        wrong = []
        for rules in RULES:
            listed = gateway.jvm.org.apache.kafka.common.config.ConfigDef.parseType(
                "rules", rules, gateway.jvm.org.apache.kafka.common.config.ConfigDef.Type.LIST
            )
            for principal in PRINCIPALS:
                try:
                    namer = kerberos.KerberosShortNamer.fromUnparsedRules(REALM, listed if rules else None)
                    wanted: str | None = namer.shortName(kerberos.KerberosName.parse(principal))
                except Exception:  # noqa: BLE001 - whatever Java throws
                    wanted = None
                try:
                    found = short_name(principal, rules, REALM)
                except ValueError:
                    found = None
                if found != wanted:
                    wrong.append((principal, rules, found, wanted))
    assert not wrong


def test_a_replacement_with_groups_is_not_guessed() -> None:
    """Java's are rare there, and are a blind spot."""
    with pytest.raises(ValueError, match=r"\$1"):
        short_name("kafka@LAB.TEST", "RULE:[1:$1]s/(k)a/$1/", REALM)
