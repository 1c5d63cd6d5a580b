"""Apache Kafka 4.x as it comes after a migration: locked sets of its jars, fetched and kept as 3.9.2's are."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from migrate.java import jars
from migrate.java.jars import KafkaJars

LISTS = Path(__file__).parents[1] / "data" / "jars"
LOG4J = {"4.3.1": "2.25.4", "4.4.0": "2.25.5"}  # the release of log4j-core that Kafka's tools ask for
RELEASES = tuple(LOG4J)


def newer_jars(release: str, *, fetch: bool = True) -> KafkaJars | None:
    """The jars of that release; None where they are not fetched yet and shall not be."""
    sums = jars.parse_lock_list((LISTS / f"kafka-{release}.sha256.txt").read_text(encoding="utf-8"))
    modules = (
        ("org.apache.kafka", "kafka_2.13", release),
        ("org.apache.kafka", "kafka-tools", release),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J[release]),
    )
    with (
        patch.object(jars, "KAFKA_VERSION", release),
        patch.object(jars, "MODULES", modules),
        patch.object(jars, "lock_list", lambda: sums),
    ):
        return jars.kafka_jars() if fetch else jars.cached_jars()
