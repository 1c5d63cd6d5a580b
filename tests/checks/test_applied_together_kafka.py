"""What a KRaft broker does not take of dynamic values beside its file: Kafka's own classes say it, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError

from migrate.checks.stored_values import refused_together
from tests.testing.kafka_jvm import kafka_jvm

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """Kafka's classes."""
    with kafka_jvm(release=False) as gateway:
        yield gateway.jvm


RETENTION: Final[tuple[dict[str, str], ...]] = (
    {},
    {"log.retention.ms": "-1"},
    {"log.retention.minutes": "7"},
    {"log.retention.hours": "2"},
)
LOCAL: Final = ("-2", "-1", "0", "420000", "420001", "7200000", "604800000", "604800001")
TOGETHER: Final = (  # dynamic values, and a file's
    *(({"log.local.retention.ms": text}, file) for text in LOCAL for file in RETENTION),
    *(({"log.retention.ms": text}, {"log.local.retention.ms": "1000"}) for text in ("-1", "-5", "0", "999", "1000")),
    *(({"log.local.retention.bytes": text}, {"log.retention.bytes": "9"}) for text in ("-2", "-1", "0", "9", "10")),
    *(({"log.retention.bytes": text}, {"log.local.retention.bytes": "9"}) for text in ("-5", "-1", "0", "8", "9")),
    ({"log.segment.bytes": "1000"}, {"log.local.retention.ms": "9", "log.retention.ms": "8"}),
    ({"min.insync.replicas": "2"}, {"log.local.retention.ms": "9", "log.retention.ms": "8"}),
    ({"log.cleaner.backoff.ms": "2"}, {"log.local.retention.ms": "9", "log.retention.ms": "8"}),
    ({"log.cleaner.delete.retention.ms": "2"}, {"log.local.retention.ms": "9", "log.retention.ms": "8"}),
    ({"log.segment.bytes": "1000"}, {"log.segment.bytes": "01000", "log.local.retention.ms": "-1"}),
    ({"log.roll.ms": "0"}, {}),
    ({"log.roll.ms": "1"}, {}),
    ({"log.roll.jitter.ms": "-1"}, {}),
    ({"log.roll.jitter.ms": "0"}, {}),
    ({"log.cleaner.threads": "2"}, {"log.cleaner.dedupe.buffer.size": "2097152"}),
    ({"log.cleaner.threads": "2"}, {"log.cleaner.dedupe.buffer.size": "2097153"}),
    ({"log.cleaner.threads": "2"}, {"log.cleaner.dedupe.buffer.size": "2097154"}),
    ({"log.cleaner.dedupe.buffer.size": "1048576"}, {}),
    ({"log.cleaner.dedupe.buffer.size": "1048577"}, {}),
)


@pytest.mark.parametrize(("dynamic", "file"), TOGETHER, ids=map(str, TOGETHER))
def test_values_that_kafka_does_not_take_together_are_named(
    jvm: Any, dynamic: dict[str, str], file: dict[str, str]
) -> None:
    """As a KRaft broker takes them, which learns the dynamic ones after its start."""
    plain = {"node.id": "0", "process.roles": "broker", "controller.quorum.voters": "1@c:1"}
    plain |= {"controller.listener.names": "CTL", "listeners": "PLAINTEXT://h:1"}
    plain |= {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CTL:PLAINTEXT"}

    def read(values: dict[str, str]) -> Any:
        given = jvm.java.util.Properties()
        for key, value in values.items():
            given.setProperty(key, value)
        return jvm.kafka.server.KafkaConfig.fromProps(given, False)

    before = read(plain | file)
    logs = jvm.kafka.server.DynamicLogConfig(None, None)
    try:
        after = read(plain | file | dynamic)
        changed = {key for key in dynamic if before.values().get(key) != after.values().get(key)}
        if changed & set(logs.reconfigurableConfigs().mkString(" ").split()):
            logs.validateReconfiguration(after)
    except Py4JJavaError:
        taken = False
    else:
        taken = True
    assert taken is (list(refused_together(dynamic, file)) == [])
