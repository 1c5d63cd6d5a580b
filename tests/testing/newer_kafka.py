"""Releases of Kafka after 3.9, which a cluster may have after its migration: their jars are locked as those of 3.9."""

from __future__ import annotations

from pathlib import Path

from migrate.java.jars import THIS, Release

LISTS = Path(__file__).parents[1] / "data" / "kafka"
LOGGING = {"4.3.1": "2.25.4", "4.4.0": "2.25.5"}
NEWER = tuple(LOGGING)
KAFKAS = {THIS.version: THIS} | {
    version: Release(
        version, ("org.apache.logging.log4j", "log4j-slf4j-impl", binding), LISTS / f"kafka-{version}.sha256.txt"
    )
    for version, binding in LOGGING.items()
}
