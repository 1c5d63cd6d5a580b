"""Which topics suffer when a broker stops, whatever one does: one rule for checks, plans and gates (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.ids import NodeId
from migrate.model.kafka_values import number
from migrate.model.outcome import Unknown
from migrate.model.patterns import compiled
from migrate.model.views import ConfigFile, NoFile

MIN_ISR: Final = "min.insync.replicas"
KAFKAS_DEFAULT: Final = 1
LONGEST_TOPIC: Final = 249  # characters (Topic.MAX_NAME_LENGTH)
Configs = Mapping[NodeId, ConfigFile | NoFile | Unknown] | Unknown


@dataclass(frozen=True, slots=True)
class Suffering:
    """Topics that are not writable while one of the brokers is down, each with why."""

    topics: Mapping[str, str]
    unknown: str | None = None  # why topics without their own setting are not judged: none is known to be safe


def of_topics(entities: EntityColumns) -> dict[str, int | Unknown]:
    """min.insync.replicas of topics that set it themselves; Unknown where it is no number."""
    rows = zip(entities.kind, entities.key, entities.name, entities.value, strict=True)
    return {key: _number(value) for kind, key, name, value in rows if (kind, name) == ("topic-config", MIN_ISR)}


def of_brokers(entities: EntityColumns, configs: Configs, brokers: Collection[NodeId]) -> int | Unknown:
    """min.insync.replicas of topics that do not: the largest that a broker goes by.

    That is its own dynamic value (`DynamicLogConfig` takes one, until 4.0), else the dynamic default, else its file's,
    else 1.  The leader's decides, and any broker may lead: a file that cannot be read may ask for more.
    """
    rows = zip(entities.kind, entities.key, entities.name, entities.value, strict=True)
    dynamic = {key: value for kind, key, name, value in rows if (kind, name) == ("broker-config", MIN_ISR)}
    largest = KAFKAS_DEFAULT
    for broker in sorted(brokers):
        told = dynamic.get(str(int(broker)), dynamic.get("<default>"))
        found = _in_file(broker, configs) if told is None else _number(told)
        if isinstance(found, Unknown):
            return found
        largest = max(largest, found)
    return largest


def _in_file(broker: NodeId, configs: Configs) -> int | Unknown:
    if isinstance(configs, Unknown):
        return configs
    file = configs.get(broker, Unknown(f"the file of broker {int(broker)} was not read"))
    if isinstance(file, NoFile):
        return Unknown(f"{file.path} does not exist")
    found = file if isinstance(file, Unknown) else _number(file.values.get(MIN_ISR, str(KAFKAS_DEFAULT)))
    return Unknown(f"broker {int(broker)}: {found.reason}") if isinstance(found, Unknown) else found


def _number(text: str) -> int | Unknown:
    found = number(text)
    return Unknown(f"{MIN_ISR} is no number") if found is None or found < 0 else found


def suffering(
    partitions: PartitionColumns, entities: EntityColumns, default: int | Unknown, stopping: Iterable[int]
) -> Suffering:
    """What suffers when one of the `stopping` brokers is down; `default` is what `of_brokers` says."""
    own, wanted = of_topics(entities), frozenset(stopping)
    found, unknown = dict[str, str](), None
    for topic, replicas in zip(partitions.topic, partitions.replicas, strict=True):
        if not wanted.intersection(replicas):
            continue
        least = own.get(topic, default)
        if len(replicas) == 1:
            found[topic] = "one replica"
        elif isinstance(least, Unknown):
            if topic in own:
                found.setdefault(topic, f"{len(replicas)} replicas and a {MIN_ISR} that cannot be read")
            else:
                unknown = least.reason
        elif len(replicas) <= least:
            found.setdefault(topic, f"{len(replicas)} replicas and {MIN_ISR}={least}")
    return Suffering(found, unknown)


def not_accepted(topics: Iterable[str], accepted: Iterable[str]) -> tuple[str, ...]:
    """The topics that no pattern of the playbook names (patterns match whole names)."""
    patterns = [compiled(pattern) for pattern in accepted]
    return tuple(
        sorted(
            topic
            for topic in topics
            if len(topic) > LONGEST_TOPIC or not any(pattern.fullmatch(topic) for pattern in patterns)
        )
    )
