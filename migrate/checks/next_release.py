"""VER: what the next upgrade, to a release of Kafka 4, takes otherwise than 3.9 (`assess --target`).

The table is data (`data/next_release.json`), read from the configuration definitions of the releases that it names;
tests hold it to the definitions of 4.3.1 and 4.4.0.  Without a target there is nothing to see for these checks.  They
block no stage: the migration itself stays on 3.9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from migrate.checks import processes
from migrate.checks.phase import Phase, phase_of
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import Sight, kraft, node_configs, of_node, readable_zookeeper, remembered
from migrate.model import strict_json
from migrate.model.broker_modes import Mode, has_flag, mode_of, roles_of
from migrate.model.config_keys import DEFAULT_ENTITY, Fate, Moment, fate
from migrate.model.ids import NodeId
from migrate.model.kafka_values import elements, number, truth
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
from migrate.model.world import World

NEXT_RELEASE: Final = "next-release"  # a fact of the world: the line of releases that was asked for
RELEASES: Final = ("4.0", "4.1", "4.2", "4.3", "4.4")
READ_FROM: Final = "config definitions of Kafka 4.0.1, 4.1.2, 4.2.2, 4.3.1 and 4.4.0 compared with 3.9.2"


@cache
def next_release(line: str) -> Mapping[str, Mapping[str, Any]]:
    """What that line changes, with what the lines before it changed: by part of the table, by key.

    Parts: `removed` and `topic_removed` (what does the work now, or ""), `least` and `topic_least` (the smallest
    value), `lists` (no entry may be empty), `lost` (an entry of a list that 3.9 adds, and the key that decides that),
    `defaults` (of 3.9.2, and the new one), `allowed` (the system property that must list the URL).
    """
    raw = strict_json.loads((files("migrate.checks") / "data" / "next_release.json").read_text(encoding="utf-8"))
    until = RELEASES[: RELEASES.index(line) + 1]
    return {
        part: {key: value for each in until for key, value in raw[part].get(each, {}).items()}
        for part in ("removed", "topic_removed", "least", "topic_least", "lists", "lost", "defaults", "allowed")
    }


# -- what is seen ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Place:
    """Keys and values of a node's file and command line, or of a dynamic configuration."""

    about: str
    values: Mapping[str, str]
    node: NodeId | None = None  # whose file it is; None: a dynamic configuration
    topic: bool = False
    broker: str = ""  # of a dynamic configuration: its broker, or `DEFAULT_ENTITY`
    properties: Mapping[str, str] | None = None  # -Dorg.apache.kafka.* of its process; None: not known

    @property
    def needed_yet(self) -> frozenset[str]:
        """Keys of a file that the migration has still to remove."""
        if self.node is None:
            return frozenset()
        controller = "controller" in roles_of(self.values)
        moment = Moment.FINALIZE if controller else Moment.SECOND_ROLL
        later = has_flag(self.values) if controller else mode_of(self.values) is not Mode.KRAFT
        return frozenset(key for key in self.values if later and fate(key, moment) is Fate.REMOVED)


@dataclass(frozen=True, slots=True)
class Seen:
    """All places that are known; `dynamic`: the dynamic configurations are."""

    places: tuple[Place, ...]
    dynamic: bool


@remembered
def settings(world: World) -> Sight[Seen]:
    """Files with the words of command lines, and what kafka-configs set, from the store that leads; nothing unasked."""
    if NEXT_RELEASE not in world.facts:
        return Sight(None)
    configs = node_configs(world)
    missing, found = [*configs.missing], []
    for node, file in (configs.value or {}).items():
        launch, name = of_node(world.launches, node), processes.name_of(world.inventory, node)
        if isinstance(launch, Unknown):
            missing.append((f"the command line of {name}", launch.reason))
        overrides, properties = (
            (launch.overrides, launch.kafka_properties) if isinstance(launch, Launch) else ({}, None)
        )
        found.append(Place(f"{name}: {file.path}", {**file.values, **overrides}, node, properties=properties))
    store = kraft(world) if phase_of(world) is Phase.FINALIZED else readable_zookeeper(world)
    if store.value is not None:
        rows = store.value.entities
        dynamic: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
        for kind, key, name, value in zip(rows.kind, rows.key, rows.name, rows.value, strict=True):
            dynamic[kind, key][name] = value
        for (kind, key), values in dynamic.items():
            whose = "all brokers" if key == DEFAULT_ENTITY else f"broker {key}"
            if kind == "topic-config":
                found.append(Place(f"topic {key}", values, topic=True))
            elif kind == "broker-config":
                found.append(Place(f"the dynamic configuration of {whose}", values, broker=key))
    seen = None if configs.value is None and store.value is None else Seen(tuple(found), store.value is not None)
    return Sight(seen, tuple(dict.fromkeys((*missing, *store.missing))))


def target(world: World) -> tuple[str, Mapping[str, Mapping[str, Any]]]:
    """`Kafka 4.3`, and what it changes."""
    line = world.facts[NEXT_RELEASE]
    return f"Kafka {line}", next_release(line)


# -- the checks ------------------------------------------------------------------------------------------------------
@check(
    "W-VER-20",
    "a configuration is set that the next release ignores",
    "Kafka 4 starts with keys that it does not have, and its log does not name them: what they did is not done any "
    "more, and nobody is told. Keys that the migration itself removes from a file are not named before it has.",
    "After finalize, take the key out; set what is named in its place, if anything is, where the next release has it. "
    "Until finalize leave password.encoder.* and zookeeper.* in their files: the migration needs them.",
    f"{READ_FROM}; seen on 4.3.1: it starts, and logs none of them",
).sees(settings, when=ALWAYS)
def ignored(seen: Seen, world: World) -> Result:
    to, line = target(world)
    for place in seen.places:
        removed = line["topic_removed" if place.topic else "removed"]
        gone = sorted((removed.keys() & place.values.keys()) - place.needed_yet)
        if gone:
            named = (f"{key} (in its place: {removed[key]})" if removed[key] else key for key in gone)
            yield Hit(place.about, f"{to} ignores {', '.join(named)}")


@check(
    "W-VER-21",
    "a value is set with which the next release does not start",
    "Kafka 3.9 accepts the value, and Kafka 4 refuses it at its start. A topic's segment.bytes that is too small ends "
    "every broker that has a replica of it, with 'Error starting LogManager'. Kafka 4 has stricter limits, refuses "
    "empty entries of lists, such as the one that a comma at the end of log.dirs makes, and calls no URL of "
    "OAUTHBEARER that its command line does not allow.",
    "Correct the value before the upgrade: 3.9 accepts the new one, too. For a topic: kafka-configs --alter "
    "--entity-type topics --entity-name TOPIC --add-config segment.bytes=1048576. For a URL: add the property that the "
    "finding names to KAFKA_OPTS of the node's unit; 3.9 takes it, too. Tools that use such URLs need it as well.",
    f"{READ_FROM}; seen on 4.3.1, files and a topic; what a broker does with a dynamic value was not tried",
).sees(settings, when=ALWAYS)
def refused(seen: Seen, world: World) -> Result:
    to, line = target(world)
    for place in seen.places:
        for key, least in line["topic_least" if place.topic else "least"].items():
            text = place.values.get(key, "").strip()
            found = number(text)
            if text and found is None and place.node is not None:
                yield Blind(f"{key} of {place.about}", "its value is no plain number")
            elif text and (found is None or found < least):
                yield Hit(place.about, f"{key} is {text}: {to} does not start below {least}")
        for key in sorted(line["lists"].keys() & place.values.keys() if place.node is not None else ()):
            if not all(elements(place.values[key])):
                yield Hit(place.about, f"{key} has an empty entry: {to} does not start with it")
        yield from _urls(place, line["allowed"], to)


def _urls(place: Place, allowed: Mapping[str, str], to: str) -> Result:
    """URLs that 3.9 calls without being asked (ConfigurationUtils.validateUrl of 4.0)."""
    for key, url in place.values.items():
        wanted = next((name for known, name in allowed.items() if key == known or key.endswith(f".{known}")), None)
        if wanted is None or place.node is None or not url.strip():
            continue
        if place.properties is None:
            yield Blind(f"{key} of {place.about}", f"whether -D{wanted} allows it: its command line was not seen")
        elif url.strip() not in map(str.strip, place.properties.get(wanted, "").split(",")):
            yield Hit(place.about, f"{key} is a URL that -D{wanted} does not list: {to} does not start with it")


@check(
    "W-VER-22",
    "the next release ends a node's metrics in JMX",
    "Kafka 3.9 adds JmxReporter to the reporters that are named (auto.include.jmx.reporter); Kafka 4 has the named "
    "ones alone. Metrics of Kafka's common library, such as those of connections and of the quorum (raft-metrics), "
    "then leave JMX, and dashboards and alerts on them go silent.",
    "Add org.apache.kafka.common.metrics.JmxReporter to metric.reporters. 3.9 accepts it too.",
    "CommonClientConfigs.metricsReporters of 3.9.2 and 4.3.1; KIP-830",
).sees(settings, when=ALWAYS)
def added_no_more(seen: Seen, world: World) -> Result:
    to, line = target(world)
    for place in seen.places:
        for key, (entry, decides) in line["lost"].items():
            if entry not in elements(place.values.get(key, entry)) and truth(place.values, decides, default=True):
                yield Hit(place.about, f"{key} is set without {entry.rpartition('.')[2]}, which {to} does not add")


@check(
    "I-VER-23",
    "the next release has another default for what no file sets",
    "The upgrade changes it without a change of a file. Of log.message.timestamp.after.max.ms it is more than a "
    "number: from Kafka 4.0 on, a record whose timestamp is more than an hour ahead of the broker's clock is refused "
    "(INVALID_TIMESTAMP), on every topic without its own message.timestamp.after.max.ms.",
    "Read the list. Where the old value is wanted, write it into the brokers' files before the upgrade.",
    f"{READ_FROM}; KIP-1030; the refused record was seen on 4.3.1",
).sees(settings, when=ALWAYS)
def other_defaults(seen: Seen, world: World) -> Result:
    """By key; nothing where the dynamic configurations are not known, which is a blind spot."""
    to, line = target(world)
    ids = {node.id for node in world.inventory.brokers}
    brokers = {int(place.node): place.values for place in seen.places if place.node is not None and place.node in ids}
    for name, (old, new) in line["defaults"].items() if seen.dynamic else ():
        everywhere = {place.broker for place in seen.places if place.broker and name in place.values}
        unset = [
            node
            for node, values in brokers.items()
            if name not in values and not {DEFAULT_ENTITY, str(node)} & everywhere
            if not name.startswith("remote.") or truth(values, "remote.log.storage.system.enable", default=False)
        ]
        if unset:
            yield Hit(name, f"brokers {unset} do not set it: {new} in {to}, {old} in 3.9", str(unset))
