"""VER: what the next upgrade, to a release of Kafka 4, meets in this cluster (`assess --target`).

The lists are data (`data/next_release.json`), read from the configuration definitions of the releases that it names;
tests hold them to the definitions of 4.3.1 and 4.4.0.  Without a target there is nothing to see for these checks.
They block no stage: the migration itself stays on 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, TypeVar

from migrate.checks import processes
from migrate.checks.config import number
from migrate.checks.phase import Phase, no_quorum_yet, phase_of
from migrate.checks.registry import ALWAYS, Blind, Hit, Result, check
from migrate.checks.sight import (
    Configs,
    Sight,
    broker_configs,
    controller_configs,
    kraft,
    node_configs,
    node_launches,
    of_node,
    readable_zookeeper,
    remembered,
)
from migrate.model import strict_json
from migrate.model.broker_modes import Mode, has_flag, mode_of, roles_of, truth
from migrate.model.columns import EntityColumns
from migrate.model.config_keys import Fate, Moment, fate
from migrate.model.ids import NodeId
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
from migrate.model.world import World

T = TypeVar("T")
NEXT_RELEASE: Final = "next-release"  # a fact of the world: the line of releases that was asked for
RELEASES: Final = ("4.0", "4.1", "4.2", "4.3", "4.4")
JAVA: Final = 17  # what brokers of Kafka 4 need
OWN_FEATURES: Final = (
    "4.1"  # from here on `--release-version` raises eligible.leader.replicas.version and kraft.version
)
MIN_ISR: Final = "min.insync.replicas"
DEFAULT: Final = "<default>"  # the key of the dynamic configuration of all brokers
# a number behind one of these names in a path: java-11-openjdk, jdk1.8.0_292, temurin-21-jdk, zulu17.44
JAVA_IN_PATH: Final = re.compile(
    r"(?:java|jdk|jre|temurin|zulu|corretto|graalvm|semeru|liberica)-?(?:1\.)?(\d{1,2})(?!\d)"
)
READ_FROM: Final = "config definitions of Kafka 4.0.1, 4.1.2, 4.2.2, 4.3.1 and 4.4.0 compared with 3.9.2"


@dataclass(frozen=True, slots=True)
class NextRelease:
    """What one line of releases no longer has, and what it takes otherwise than 3.9.2."""

    removed: frozenset[str]
    topic_removed: frozenset[str]
    least: Mapping[str, int]  # smallest value that it accepts, where 3.9.2 accepts smaller ones
    topic_least: Mapping[str, int]
    lists: frozenset[str]  # lists in which it refuses an empty entry
    defaults: Mapping[str, tuple[str, str]]  # of 3.9.2, and of that line
    instead: Mapping[str, str]  # the key that does the work of one that is gone


@cache
def next_release(line: str) -> NextRelease:
    """What that line is known to change, with what the lines before it changed."""
    raw = strict_json.loads((files("migrate.checks") / "data" / "next_release.json").read_text(encoding="utf-8"))
    until = RELEASES[: RELEASES.index(line) + 1]

    def names(part: str) -> frozenset[str]:
        return frozenset(key for each in until for key in raw[part].get(each, ()))

    def table(part: str) -> dict[str, int]:
        return {key: least for each in until for key, least in raw[part].get(each, {}).items()}

    defaults = {key: (old, new) for each in until for key, (old, new) in raw["defaults"].get(each, {}).items()}
    return NextRelease(
        removed=names("removed"),
        topic_removed=names("topic_removed"),
        least=table("least"),
        topic_least=table("topic_least"),
        lists=names("lists"),
        defaults=defaults,
        instead=raw["instead"],
    )


# -- what is seen ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Settings:
    """A node's file with the words of its command line: what decides at its start.  `about` names node and file."""

    about: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """Files and dynamic configurations, as far as they are known; `dynamic` is None where they are not."""

    nodes: Mapping[NodeId, Settings]
    dynamic: EntityColumns | None


def when_asked(look: Callable[[World], Sight[T]]) -> Callable[[World], Sight[T]]:
    """The part where a target was named; else there is nothing to see."""
    return lambda world: look(world) if NEXT_RELEASE in world.facts else Sight(None)


def target(world: World) -> str:
    return world.facts[NEXT_RELEASE]


def changes(world: World) -> NextRelease:
    return next_release(target(world))


@remembered
def settings(world: World) -> Sight[dict[NodeId, Settings]]:
    """Each node with a file, whose command line is missing where it cannot be seen."""
    found = node_configs(world)
    missing, nodes = [*found.missing], {}
    for node, file in (found.value or {}).items():
        launch, name = of_node(world.launches, node), processes.name_of(world.inventory, node)
        if isinstance(launch, Unknown):
            missing.append((f"the command line of {name}", launch.reason))
        overrides = launch.overrides if isinstance(launch, Launch) else {}
        nodes[node] = Settings(f"{name}: {file.path}", {**file.values, **overrides})
    return Sight(nodes or None, tuple(missing))


@remembered
def dynamic(world: World) -> Sight[EntityColumns]:
    """What kafka-configs set, from the store that leads when all is over, else from ZooKeeper."""
    found = kraft(world) if phase_of(world) is Phase.FINALIZED else readable_zookeeper(world)
    return Sight(None if found.value is None else found.value.entities, found.missing)


@remembered
def everything(world: World) -> Sight[Seen]:
    files, rows = settings(world), dynamic(world)
    missing = tuple(dict.fromkeys((*files.missing, *rows.missing)))
    if files.value is None and rows.value is None:
        return Sight(None, missing)
    return Sight(Seen(files.value or {}, rows.value), missing)


def rows_of(rows: EntityColumns | None, kind: str) -> Iterator[tuple[str, str, str]]:
    """Key, name and value of each row of that kind, where any are known."""
    rows = rows or EntityColumns()
    for row in zip(rows.kind, rows.key, rows.name, rows.value, strict=True):
        if row[0] == kind:
            yield row[1:]


def of_broker(key: str) -> str:
    return "the dynamic configuration of " + ("all brokers" if key == DEFAULT else f"broker {key}")


# -- the checks ------------------------------------------------------------------------------------------------------
@check(
    "I-VER-28",
    "the brokers still need ZooKeeper, which the next release does not have",
    "Kafka 4 has no ZooKeeper mode: without process.roles it ends at its start (Missing required configuration "
    '"process.roles").',
    "The migration is not complete.",
    "Complete the migration, with `cleanup`, before the software is upgraded. The findings about the next release can "
    "be acted on before or after it, where their text does not say otherwise.",
    "seen on 4.3.1; KafkaConfig: process.roles has no default value",
).sees(when_asked(broker_configs), when=ALWAYS)
def migration_comes_first(configs: Configs, world: World) -> Result:
    for node, file in configs.items():
        if not roles_of(file.values):
            mode = mode_of(file.values).words
            yield Hit(f"broker {node}: {file.path}", f"it is in {mode}: Kafka {target(world)} does not start with it")


@check(
    "W-VER-20",
    "a configuration is set that the next release ignores",
    "Kafka 4 starts with keys that it does not have, and its log does not name them: what they did is not done any "
    "more, and nobody is told.",
    "The key was removed after 3.9. Keys that the migration itself removes from a file are not named before it has.",
    "After finalize, take the key out; set what is named in its place, if anything is, where the next release has it. "
    "Until finalize leave password.encoder.* and zookeeper.* in their files: the migration needs them.",
    f"{READ_FROM}; seen on 4.3.1: it starts, and logs none of them",
).sees(when_asked(everything), when=ALWAYS)
def ignored(seen: Seen, world: World) -> Result:
    line = changes(world)
    for entry in seen.nodes.values():
        controller = "controller" in roles_of(entry.values)
        moment = Moment.FINALIZE if controller else Moment.SECOND_ROLL
        later = has_flag(entry.values) if controller else mode_of(entry.values) is not Mode.KRAFT
        found = sorted(
            key for key in line.removed & entry.values.keys() if not (later and fate(key, moment) is Fate.REMOVED)
        )
        if found:
            yield Hit(entry.about, _gone(found, world))
    for key, name, _ in rows_of(seen.dynamic, "broker-config"):
        if name in line.removed:
            yield Hit(of_broker(key), _gone([name], world))
    for key, name, _ in rows_of(seen.dynamic, "topic-config"):
        if name in line.topic_removed:
            yield Hit(f"topic {key}", _gone([name], world))


def _gone(keys: list[str], world: World) -> str:
    instead = changes(world).instead
    named = (f"{key} (in its place: {instead[key]})" if key in instead else key for key in keys)
    return f"Kafka {target(world)} ignores {', '.join(named)}"


@check(
    "W-VER-21",
    "a value is set with which the next release does not start",
    "Kafka 3.9 accepts the value, and Kafka 4 refuses it at its start. A topic's segment.bytes that is too small ends "
    "every broker that has a replica of it, with 'Error starting LogManager'.",
    "Kafka 4 has stricter limits, and refuses empty entries of lists, such as the one that a comma at the end of "
    "log.dirs makes.",
    "Correct the value before the upgrade: 3.9 accepts the new one, too. For a topic: kafka-configs --alter "
    "--entity-type topics --entity-name TOPIC --add-config segment.bytes=1048576.",
    f"{READ_FROM}; seen on 4.3.1, files and a topic",
).sees(when_asked(everything), when=ALWAYS)
def refused(seen: Seen, world: World) -> Result:
    line, to = changes(world), f"Kafka {target(world)}"
    for entry in seen.nodes.values():
        for key, least in line.least.items():
            text = entry.values.get(key, "").strip()
            if text and number(text) is None:
                yield Blind(f"{key} of {entry.about}", "its value is no plain number")
            elif text and (number(text) or 0) < least:
                yield Hit(entry.about, f"{key} is {text}: {to} does not start below {least}")
        for key in sorted(line.lists & entry.values.keys()):
            parts = entry.values[key].split(",")
            if len(parts) > 1 and not all(part.strip() for part in parts):
                yield Hit(entry.about, f"{key} has an empty entry: {to} does not start with it")
    for key, name, value in rows_of(seen.dynamic, "broker-config"):
        found = number(value)
        if name in line.least and (found is None or found < line.least[name]):
            message = f"{name} is {value}: {to} takes {line.least[name]} or more; what a broker does then was not tried"
            yield Hit(of_broker(key), message)
    for key, name, value in rows_of(seen.dynamic, "topic-config"):
        found = number(value)
        if name in line.topic_least and (found is None or found < line.topic_least[name]):
            yield Hit(f"topic {key}", f"{name} is {value}: brokers of {to} do not start below {line.topic_least[name]}")


REPORTERS: Final = "metric.reporters"
JMX_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"


@check(
    "W-VER-22",
    "the next release ends a node's metrics in JMX",
    "Kafka 3.9 adds JmxReporter to the reporters that are named (auto.include.jmx.reporter); Kafka 4 has the named "
    "ones alone. Metrics of Kafka's common library, such as those of connections and of the quorum (raft-metrics), "
    "then leave JMX, and dashboards and alerts on them go silent.",
    "metric.reporters is set without JmxReporter.",
    f"Add {JMX_REPORTER} to metric.reporters. 3.9 accepts it too.",
    "CommonClientConfigs.metricsReporters of 3.9.2 and 4.3.1; KIP-830",
).sees(when_asked(everything), when=ALWAYS)
def jmx_reporter(seen: Seen, world: World) -> Result:
    named = [
        (entry.about, entry.values[REPORTERS])
        for entry in seen.nodes.values()
        if REPORTERS in entry.values and truth(entry.values, "auto.include.jmx.reporter", default=True)
    ]
    rows = rows_of(seen.dynamic, "broker-config")
    named += [(of_broker(key), value) for key, name, value in rows if name == REPORTERS]
    for about, value in named:
        if JMX_REPORTER not in (part.strip() for part in value.split(",")):
            yield Hit(about, f"{REPORTERS} is set without JmxReporter, which Kafka {target(world)} does not add")


@check(
    "I-VER-23",
    "the next release has another default for what no file sets",
    "The upgrade changes it without a change of a file. Of log.message.timestamp.after.max.ms it is more than a "
    "number: from Kafka 4.0 on, a record whose timestamp is more than an hour ahead of the broker's clock is refused "
    "(INVALID_TIMESTAMP), on every topic without its own message.timestamp.after.max.ms.",
    "The key is set neither in the broker's file nor by kafka-configs.",
    "Read the list. Where the old value is wanted, write it into the brokers' files before the upgrade.",
    f"{READ_FROM}; KIP-1030; the refused record was seen on 4.3.1",
).sees(when_asked(everything), when=ALWAYS)
def other_defaults(seen: Seen, world: World) -> Result:
    if seen.dynamic is None:
        return  # a blind spot says so
    everywhere = {(key, name) for key, name, _ in rows_of(seen.dynamic, "broker-config")}
    brokers = {node: seen.nodes[node].values for node in _brokers(world) if node in seen.nodes}
    for name, (old, new) in changes(world).defaults.items():
        unset = [
            int(node)
            for node, values in brokers.items()
            if name not in values and not {(DEFAULT, name), (str(int(node)), name)} & everywhere
            if not name.startswith("remote.") or truth(values, "remote.log.storage.system.enable", default=False)
        ]
        if unset:
            yield Hit(name, f"brokers {unset} do not set it: {new} in Kafka {target(world)}, {old} in 3.9", str(unset))


def _brokers(world: World) -> list[NodeId]:
    return [node.id for node in world.inventory.brokers]


@check(
    "W-VER-24",
    "a node runs with a Java that is too old for the next release",
    f"Brokers and controllers of Kafka 4 need Java {JAVA} or later; with an older one they do not start.",
    "The path of the Java in its command line names the version. A path that names none is a blind spot: what Java it "
    "leads to is not looked up.",
    f"Install Java {JAVA} on that host and let the unit's JAVA_HOME or PATH lead to it. Kafka 3.9 runs with it, so "
    "this can be done before the upgrade, with a restart of its own.",
    "Kafka 4.0's upgrade notes; class files of 4.3.1 (version 61)",
).sees(when_asked(node_launches), when=ALWAYS)
def old_java(seen: dict[NodeId, Launch], world: World) -> Result:
    for node, launch in seen.items():
        about = processes.name_of(world.inventory, node)
        named = JAVA_IN_PATH.findall(launch.java)
        if not named:
            said = f"the path {launch.java} names no version" if launch.java else "its command line shows no Java"
            yield Blind(f"the Java of {about}", said)
        elif int(named[-1]) < JAVA:
            yield Hit(about, f"it runs with Java {named[-1]}, by the path {launch.java}", launch.java)


@check(
    "W-VER-25",
    "a node is started with a configuration of log4j 1",
    "Kafka 4 logs with log4j 2, which does not read it: the process runs, and logs errors at most.",
    "-Dlog4j.configuration is in the command line; the start scripts of Kafka 3.9 put it there. What the scripts of "
    "the next release make of KAFKA_LOG4J_OPTS was not tried.",
    "Carry the loggers and files over into the config/log4j2.yaml of the new packages, and let KAFKA_LOG4J_OPTS say "
    "-Dlog4j2.configurationFile=... from the upgrade on; or leave KAFKA_LOG4J_OPTS unset.",
    "KAFKA-9366; seen on 4.3.1, started without its scripts",
).sees(when_asked(node_launches), when=ALWAYS)
def old_log4j(seen: dict[NodeId, Launch], world: World) -> Result:
    for node, launch in seen.items():
        if launch.log4j:
            yield Hit(processes.name_of(world.inventory, node), f"its command line has {launch.log4j}", launch.log4j)


@check(
    "W-VER-26",
    "eligible leader replicas replace the brokers' min.insync.replicas",
    "`kafka-features upgrade --release-version` switches eligible leader replicas on from 4.1 on. The controllers then "
    "delete min.insync.replicas of single brokers, and set one for all brokers from the active controller's file "
    "(1 if it has none), which takes the place of the brokers' files. Topics without a value of their own accept "
    "acks=all with fewer replicas than before, or refuse it.",
    "min.insync.replicas is set for a single broker by kafka-configs, or differs between the files of brokers and "
    "controllers, and no dynamic value for all brokers is set.",
    "Before the features are raised set the value for all brokers: kafka-configs --alter --entity-type brokers "
    "--entity-default --add-config min.insync.replicas=N, and delete those of single brokers.",
    "KIP-966; Feature.ELIGIBLE_LEADER_REPLICAS_VERSION.defaultLevel of 4.0.1 (0) and 4.1.2 (1); seen on 4.3.1",
).sees(when_asked(everything), when=ALWAYS)
def min_isr(seen: Seen, world: World) -> Result:
    if RELEASES.index(target(world)) < RELEASES.index(OWN_FEATURES):
        return
    rows = {key: value for key, name, value in rows_of(seen.dynamic, "broker-config") if name == MIN_ISR}
    for key, value in rows.items():
        if key != DEFAULT:
            yield Hit(of_broker(key), f"{MIN_ISR}={value} is deleted when eligible leader replicas are switched on")
    if DEFAULT in rows or seen.dynamic is None:
        return
    brokers, controllers = broker_configs(world).value, controller_configs(world).value
    wanted = sorted({file.values.get(MIN_ISR, "1").strip() for file in (brokers or {}).values()})
    for node, file in (controllers or {}).items():
        own = file.values.get(MIN_ISR, "1").strip()
        if brokers and wanted != [own]:
            message = f"{MIN_ISR} is {own} there and {' and '.join(wanted)} in the brokers' files"
            yield Hit(f"controller {node}: {file.path}", message)


def static_quorum(world: World) -> Sight[bool]:
    """Is the quorum static?  Before there is one: it will be, for this tool makes no other."""
    if no_quorum_yet(world):
        return Sight(value=True)
    found = kraft(world)
    static = None if found.value is None else found.value.features.get("kraft.version", 0) == 0
    return Sight(static, found.missing)


@check(
    "I-VER-27",
    "raising all features of the next release makes the quorum dynamic for good",
    "`kafka-features upgrade --release-version` raises kraft.version to 1 with the other features, and Kafka refuses "
    "the downgrade. The files still have controller.quorum.voters then, and no longer decide who votes.",
    "The quorum is static (kraft.version 0).",
    "Ask `kafka-features version-mapping --release-version RELEASE` for the levels, and raise the ones that are wanted "
    "by name: `kafka-features upgrade --feature metadata.version=N --feature group.version=1 --feature "
    "transaction.version=2`, without kraft.version.",
    "KAFKA-21426; KAFKA-16538; both commands were run on 4.3.1",
).sees(when_asked(static_quorum), when=ALWAYS)
def quorum_turns_dynamic(static: bool, world: World) -> Result:
    if not static:
        return
    if RELEASES.index(target(world)) < RELEASES.index(OWN_FEATURES):
        reason = "4.0 wants kraft.version 1 too, and cannot change a static quorum: what its command does was not tried"
        yield Blind("kafka-features upgrade --release-version 4.0", reason)
    else:
        message = f"`kafka-features upgrade --release-version {target(world)}` makes its voters dynamic"
        yield Hit("the static quorum", message)
