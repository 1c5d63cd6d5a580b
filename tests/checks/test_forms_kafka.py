"""Which value a topic, a broker or a file cannot take, judged beside Kafka's own classes: key by key, text by text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import pytest
from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError

from migrate.checks.forms import READERS, definitions, fault
from tests.testing.kafka_jvm import kafka_jvm

pytestmark = pytest.mark.kafka

TEXTS = (
    *("", " ", "abc", "true", "TRUE ", "yes", "0", "1", "-1", "-2", "-3", "+5", " 7 ", "007", "1.5", "1e3", "1e400"),
    *("9", "10", "14", "22", "23", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "-0.1"),
    *("NaN", "Infinity", "0.5f", ".5", "5.", "0x10", "1_000", "\u0661", "compact", "compact, delete", "compact,"),
    *("foo", "Compact", "gzip", "GZIP", "producer", "CreateTime", "createtime", "*", "0:1,1:2", "0:1,", "0:1, *"),
    *("garbage", "0:a", "-1:0", "2.8", "2.8-IV1", "2.8.1", "3.9", "9.9", "4.0-IV1", "0.10.2", "0.8.2", "0.11"),
)
FORMS: Final = (
    "",
    "abc",
    "true",
    "TRUE ",
    "0",
    "-1",
    "+5",
    " 7 ",
    "1.5",
    "2147483648",
    "9223372036854775808",
    "a,,b",
    "a,",
)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Kafka's classes."""
    with kafka_jvm(release=False) as gateway:
        yield gateway.jvm


def refused(jvm: Any, kind: str, key: str, text: str) -> bool:
    """Does Kafka's own parser refuse it?"""
    properties = jvm.java.util.Properties()
    properties.setProperty(key, text)
    try:
        if kind == "topic":
            jvm.org.apache.kafka.storage.internals.log.LogConfig.fromProps(jvm.java.util.HashMap(), properties)
        elif kind == "broker":
            jvm.kafka.server.DynamicBrokerConfig.validateConfigs(properties, True)
        else:
            known = jvm.kafka.server.KafkaConfig.configDef().configKeys().get(key)
            found = jvm.org.apache.kafka.common.config.ConfigDef.parseType(key, text, get_field(known, "type"))
            validator = get_field(known, "validator")
            if validator is not None:
                validator.ensureValid(key, found)
    except Py4JJavaError:
        return True
    return False


def texts(kind: str, key: str) -> tuple[str, ...]:
    """What that key is tried with: of a file's many keys some forms, and what is next to its bounds and words."""
    form, *wanted = definitions()[kind][key].split()
    if form == "CLASS":  # its jars know the rest
        return ("", " ", "java.lang.Object")
    if kind != "file":
        return TEXTS
    numbers = [float(one) for one in wanted if form in ("INT", "LONG", "SHORT", "DOUBLE")]
    near = [f"{int(one) + step}" for one in numbers for step in (-1, 0, 1)]
    return (*FORMS, *near, *wanted, *map(str.swapcase, wanted), ", ".join(wanted[:2]))


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in definitions().items() for key in keys])
def test_a_value_is_refused_where_kafka_refuses_it(jvm: Any, kind: str, key: str) -> None:
    """Each text for each key; what Kafka takes, no finding names."""
    wrong = [text for text in texts(kind, key) if bool(fault(kind, key, text)) != refused(jvm, kind, key, text)]
    assert wrong == [], {text: fault(kind, key, text) for text in wrong}


def test_every_key_that_kafka_validates_is_known(jvm: Any) -> None:
    """The table has each key of a topic, and each dynamic one of a broker that is no plain text."""
    topics = jvm.org.apache.kafka.storage.internals.log.LogConfig.configDefCopy().configKeys()
    assert set(topics.keySet().toArray()) == set(definitions()["topic"])
    keys = jvm.kafka.server.KafkaConfig.configDef().configKeys()
    dynamic = jvm.kafka.server.DynamicBrokerConfig.AllDynamicConfigs().mkString(" ").split()
    plain = {"STRING", "PASSWORD", "CLASS", "LIST"}
    for key in keys.keySet().toArray():
        form, validator = str(get_field(keys.get(key), "type")), str(get_field(keys.get(key), "validator"))
        assert (key in definitions()["broker"]) is (key in dynamic and (form not in plain or validator != "None")), key
        free = form == "PASSWORD" or (form == "STRING" and validator in ("None", "non-null string"))
        assert (key in definitions()["file"]) is not (free or key in READERS), key


def test_what_kafka_does_not_define_it_takes(jvm: Any) -> None:
    """And applies nothing of it."""
    for kind, text in itertools.product(("topic", "broker"), ("bar", "")):
        assert fault(kind, "foo", text) == ""
        assert not refused(jvm, kind, "foo", text)
