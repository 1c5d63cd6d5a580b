"""Which partitions suffer when one broker stops, whatever one does (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from migrate.model.columns import EntityColumns, PartitionColumns


def min_isr_by_topic(entities: EntityColumns) -> dict[str, int]:
    """min.insync.replicas of topics that set it themselves."""
    found: dict[str, int] = {}
    for kind, key, name, value in zip(entities.kind, entities.key, entities.name, entities.value, strict=True):
        if kind == "topic-config" and name == "min.insync.replicas":
            found[key] = int(value)
    return found


def default_min_isr(entities: EntityColumns, file_values: Mapping[str, str]) -> int:
    """min.insync.replicas of topics that do not: the dynamic cluster default, else the file's, else 1."""
    for kind, key, name, value in zip(entities.kind, entities.key, entities.name, entities.value, strict=True):
        if (kind, key, name) == ("broker-config", "<default>", "min.insync.replicas"):
            return int(value)
    return int(file_values.get("min.insync.replicas", "1"))


def unavoidable(
    partitions: PartitionColumns, entities: EntityColumns, file_values: Mapping[str, str], brokers: Iterable[int]
) -> dict[str, str]:
    """Topic -> why, for topics with a partition that cannot stay writable while one of its brokers is down."""
    own, default = min_isr_by_topic(entities), default_min_isr(entities, file_values)
    wanted, found = set(brokers), dict[str, str]()
    for topic, replicas in zip(partitions.topic, partitions.replicas, strict=True):
        if not wanted.intersection(replicas):
            continue
        if len(replicas) == 1:
            found[topic] = "one replica"
        elif len(replicas) <= own.get(topic, default):
            found.setdefault(topic, f"{len(replicas)} replicas and min.insync.replicas={own.get(topic, default)}")
    return found


def not_accepted(topics: Iterable[str], accepted: Iterable[str]) -> tuple[str, ...]:
    """The topics that no pattern of the playbook names (patterns match whole names)."""
    patterns = [re.compile(pattern) for pattern in accepted]
    return tuple(sorted(topic for topic in topics if not any(pattern.fullmatch(topic) for pattern in patterns)))
