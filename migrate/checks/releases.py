"""VER and OPS: which software and protocol version this is, as far as it shows, and what this tool does not migrate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from migrate.checks.registry import ALWAYS, BEFORE_COPY, UNTIL_FINALIZED, Blind, Hit, Result, check, placed
from migrate.checks.sight import (
    Configs,
    Sight,
    both,
    broker_answers,
    broker_configs,
    broker_launches,
    controller_answers,
    entities,
    inventory,
    readable_zookeeper,
)
from migrate.model import strict_json
from migrate.model.broker_modes import Mode, mode_of
from migrate.model.config_keys import IBP
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.kafka_values import elements, entries, version_name
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
from migrate.model.secrets import is_password_config
from migrate.model.stage import Stage
from migrate.model.views import BrokerDisks, ConfigFile, NodeAnswer, PartlyRead, ZookeeperView
from migrate.model.words import plural
from migrate.model.world import World

USED_BY_ALL: Final = "always"
FEATURES: Final = frozenset(
    {USED_BY_ALL, "jbod", "scram", "quotas", "acls", "tokens", "transactions", "policies", "passwords", "deletions"}
    | {"reassignments", "quota-callback"}
)
POLICIES: Final = ("alter.config.policy.class.name", "create.topic.policy.class.name")
KINDS: Final[Mapping[str, str]] = {
    "scram": "scram",
    "client-quota": "quotas",
    "acl": "acls",
    "delegation-token": "tokens",
    "producer-ids": "transactions",
}
FETCH: Final = 1  # api key
# highest version of Fetch -> the releases with it (FetchRequest.json: 16 KIP-951, 17 KIP-853)
RELEASES_BY_FETCH: Final = ((17, "3.9"), (16, "3.7"), (15, "3.5"), (0, "0.8"))

Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """One issue of Kafka, by its JIRA where it has one.

    `fixed` are the first releases with the fix, a line each; empty while it is open.
    """

    id: str
    fixed: tuple[str, ...]
    features: frozenset[str]
    effect: str
    advice: str = ""


def release(text: str) -> Release:
    """`3.9.2` as numbers."""
    return tuple(int(part) for part in text.split("."))


@cache
def fixes() -> tuple[Fix, ...]:
    raw = strict_json.loads((files("migrate.checks") / "data" / "advisor.json").read_text(encoding="utf-8"))
    return tuple(
        Fix(entry["id"], tuple(entry["fixed"]), frozenset(entry["features"]), entry["effect"], entry.get("advice", ""))
        for entry in raw["fixes"]
    )


def least_release(answer: NodeAnswer) -> str | None:
    """The oldest line of releases (`3.9`) that a node with these API versions can be of; None where it told none."""
    highest = answer.apis.get(FETCH)
    return None if highest is None else next(line for least, line in RELEASES_BY_FETCH if highest >= least)


def lacks(fix: Fix, line: str) -> bool:
    """Can a build of that line of releases (or its first one, `3.9.0`) be without the fix?"""
    if not fix.fixed:
        return True
    first = (*release(line), 0)[:3]
    return first < min(release(entry) for entry in fix.fixed)


def applying(line: str, in_use: Iterable[str]) -> list[Fix]:
    """The fixes that a build of that line may lack and that touch something in use, newest first."""
    used = frozenset(in_use)
    found = [fix for fix in fixes() if fix.features & used and lacks(fix, line)]
    return sorted(found, key=lambda fix: (not fix.fixed, fix.fixed and release(fix.fixed[-1]), fix.id), reverse=True)


def features_in_use(world: World) -> frozenset[str]:
    """What the cluster is known to use; what cannot be seen is not in it."""
    used = {USED_BY_ALL}
    zookeeper = world.zookeeper.view if isinstance(world.zookeeper, PartlyRead) else world.zookeeper
    if not isinstance(zookeeper, Unknown):
        pending = zookeeper.pending
        used |= {KINDS[kind] for kind in set(zookeeper.entities.kind) & KINDS.keys()}
        found = {
            "passwords": any(is_password_config(name) for _, name, *_ in entities(zookeeper, "broker-config")),
            "transactions": "__transaction_state" in zookeeper.partitions.topic,
            "deletions": bool(pending.deletions),
            "reassignments": bool(pending.reassignments),
        }
        used |= {feature for feature, seen in found.items() if seen}
    configs = {} if isinstance(world.configs, Unknown) else world.configs
    for values in (file.values for file in configs.values() if isinstance(file, ConfigFile)):
        found = {
            "jbod": len(entries(values.get("log.dirs", ""))) > 1,
            "policies": any(values.get(key, "").strip() for key in POLICIES),
            "quota-callback": bool(values.get("client.quota.callback.class", "").strip()),
        }
        used |= {feature for feature, seen in found.items() if seen}
    disks = () if isinstance(world.disks, Unknown) else world.disks.values()
    if any(isinstance(entry, BrokerDisks) and len(entry.directories) > 1 for entry in disks):
        used.add("jbod")
    return frozenset(used)


WANTED: Final = "3.9"
KUBERNETES: Final = re.compile(r"://[^/]*\.svc(\.|:)")
CONFLUENT_SERVER: Final = re.compile(r"-ce(?![a-z0-9])")
CONFLUENT_TOPIC: Final = re.compile(r"_{1,2}confluent[-_.].*")

Answers = dict[NodeId, NodeAnswer]


def by_release(answers: Answers) -> dict[str, list[int]]:
    """Line of releases -> brokers, of those that told their API versions."""
    found: dict[str, list[int]] = {}
    for node, answer in answers.items():
        line = least_release(answer)
        if line is not None:
            found.setdefault(line, []).append(int(node))
    return found


def brokers_release(world: World) -> str:
    """The release that the brokers' class paths name, else the line that their API versions tell; "" for neither."""
    named = set(_releases(world, [node.id for node in world.inventory.brokers]).values())
    if not named and not isinstance(world.live, Unknown):
        named = set(by_release({n: one for n, one in world.live.brokers.items() if isinstance(one, NodeAnswer)}))
    return " and ".join(sorted(named))


def _release_unknown(brokers: Iterable[NodeId]) -> Iterator[Blind]:
    return (Blind(f"the release of broker {node}", "its API versions do not show it") for node in brokers)


@check(
    "B-VER-05",
    "a broker's software is older than 3.9",
    "Several log directories are migrated from 3.9 on; older releases have no way to it, or lose replicas' directories "
    "on it. This tool refuses them.",
    "Upgrade every broker to the newest 3.9.x first (still on ZooKeeper), then inter.broker.protocol.version=3.9, then "
    "run assess again.",
    "ApiVersions: Fetch v17 came with 3.9 (KIP-853), v16 with 3.7; KAFKA-16162, KAFKA-16297",
).sees(broker_answers, blocks_from=Stage.PREPARE, when=ALWAYS)
def software_is_new_enough(answers: Answers, world: World) -> Result:
    """A bound is all that the wire tells."""
    yield from _release_unknown(node for node, answer in answers.items() if least_release(answer) is None)
    for line, nodes in sorted(by_release(answers).items()):
        if line != WANTED:
            highest = sorted({answers[NodeId(node)].apis[FETCH] for node in nodes})
            message = f"their software is older than 3.9 ({line} at best guess)"
            yield Hit(f"brokers {sorted(nodes)}", message, f"highest version of Fetch: {highest}")


@check(
    "B-VER-06",
    "the brokers run different software",
    "Mixed releases are not migrated: each would bring other bugs into the same copy.",
    "Finish the upgrade on every broker, then run assess again.",
    "ApiVersions: ranges of API versions differ",
).sees(broker_answers, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def software_is_one(answers: Answers, world: World) -> Result:
    """Any difference in the ranges; patch releases of one line do not show."""
    yield from _release_unknown(node for node, answer in answers.items() if not answer.apis)
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for node, answer in answers.items():
        if answer.apis:
            groups.setdefault(tuple(sorted(answer.apis.items())), []).append(int(node))
    if len(groups) > 1:
        told = " and ".join(str(sorted(nodes)) for nodes in sorted(groups.values()))
        yield Hit("the brokers' software", f"brokers {told} report different API versions", told)


@check(
    "B-VER-15",
    "a controller's software is not of the brokers' line of releases",
    "The controllers write what the brokers read, and lead the copy: an older line lacks its fixes, 4.0 and later "
    "cannot migrate at all.",
    "Install the brokers' release on every controller's host, before the first roll; no metadata is lost by it.",
    "ApiVersions: Fetch v17 came with 3.9; the names of the jars in the command line (kafka-clients-*.jar)",
).sees(controller_answers, blocks_from=Stage.MIGRATION_MODE)
def controllers_are_of_the_line(answers: Answers, world: World) -> Result:
    """By the versions of their APIs, and by their class paths where those can be seen."""
    for node, answer in answers.items():
        line = least_release(answer)
        if line is None:
            yield Blind(f"the release of controller {node}", "its API versions do not show it")
        elif line != WANTED:
            yield Hit(f"controller {node}", f"its software is older than {WANTED} ({line} at best guess)")
    for node, told in _releases(world, [node.id for node in world.inventory.controllers]).items():
        if not told.startswith(f"{WANTED}."):
            yield Hit(f"controller {node}", f"its class path has Kafka {told}, the brokers are of {WANTED}", told)


@check(
    "W-VER-16",
    "nodes run different builds of Kafka",
    "A fix of the migration that one build has and another lacks depends on which node is active or restarts next.",
    "Run one build, 3.9.2 or later, on every broker and controller before the migration.",
    "the names of the jars in the command line (kafka-clients-*.jar); KAFKA-19480",
).sees(broker_launches)
def one_build(seen: Mapping[NodeId, Launch], world: World) -> Result:
    """Of the nodes that run and whose class paths name their jars."""
    found: dict[str, list[int]] = {}
    for node, told in _releases(world, [node.id for node in world.inventory.nodes]).items():
        found.setdefault(told, []).append(int(node))
    if len(found) > 1:
        told = " and ".join(f"{release} on nodes {sorted(nodes)}" for release, nodes in sorted(found.items()))
        yield Hit("the nodes' software", f"their class paths name {told}", told)


def _releases(world: World, nodes: Iterable[NodeId]) -> dict[NodeId, str]:
    """Release by node, of those that are seen to run and to name it."""
    if isinstance(world.launches, Unknown):
        return {}
    launches = ((node, world.launches.get(node)) for node in nodes)
    return {node: launch.release for node, launch in launches if isinstance(launch, Launch) and launch.release}


@check(
    "I-VER-10",
    "a later release fixed something that this cluster may need",
    "The brokers' exact release is on no wire: a build of this line may be without the fix, and the cluster uses what "
    "it is about.",
    "Run the newest 3.9.x on every broker and controller (3.9.2 or later) before the migration; where you do, this "
    "says nothing to you.",
    "Kafka's release notes; shipped as data in migrate/checks/data/advisor.json",
).sees(broker_answers, when=BEFORE_COPY)
def later_fixes(answers: Answers, world: World) -> Result:
    lines = sorted(by_release(answers), key=lambda line: [int(part) for part in line.split(".")])
    for fix in applying(lines[0], features_in_use(world)) if lines else ():
        if fix.fixed:
            message = f"{fix.effect}; fixed in {' and '.join(fix.fixed)}"
            yield Hit(fix.id, message, f"the brokers' software is {lines[0]} or later", fix.advice)


@check(
    "I-VER-11",
    "a known fault of Kafka is open in every release",
    "No release helps; the tool works around it, and the way is named.",
    "Read what is named with it.",
    "Kafka's issues; shipped as data in migrate/checks/data/advisor.json",
).sees(inventory, when=UNTIL_FINALIZED)
def open_faults(seen: Inventory, world: World) -> Result:
    for fix in applying(WANTED, features_in_use(world)):
        if not fix.fixed:
            yield Hit(fix.id, fix.effect, "", fix.advice)


@check(
    "B-OPS-01",
    "the brokers live in Kubernetes",
    "An operator owns those pods: it would put back every file that this tool writes, and restart what it stopped.",
    "Use the operator's own migration (Strimzi 0.45: the annotation strimzi.io/kraft=migration; Confluent for "
    "Kubernetes: KRaftMigrationJob).",
    "strimzi-kafka-operator: KafkaReconciler; KRaftMigrationJob",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def in_kubernetes(view: ZookeeperView, world: World) -> Result:
    for node, broker in sorted(view.brokers.items()):
        named = [entry for entry in broker.endpoints if KUBERNETES.search(entry)]
        if named:
            yield Hit(f"broker {node}", f"its address is of a Kubernetes service: {named[0]}", ", ".join(named))


REPORTER: Final = "io.confluent.metrics.reporter.ConfluentMetricsReporter"
PLUGIN_KEYS: Final = ("confluent.metrics.reporter.", "confluent.support.")  # of that class, and of a start script's


def confluents_keys(values: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Keys of Confluent's that Apache Kafka runs with, for they are a plugin's own; and all the others.

    Nothing is known of the others but that Confluent Server, and software beside it, has keys that begin so.
    """
    plugins, others = [], []
    for key, value in sorted(values.items()):
        classes = {entry for entry in elements(value) if "io.confluent." in entry}
        if key.startswith(PLUGIN_KEYS) or (key == "metric.reporters" and classes == {REPORTER}):
            plugins.append(key)
        elif key.startswith("confluent.") or classes:
            others.append(key)
    return plugins, others


@check(
    "B-OPS-02",
    "a broker runs Confluent's own software",
    "Confluent Server keeps metadata of its own (cluster links, tiers, balancer) that Apache's copy does not know. A "
    "class of Confluent's in a key that controllers take over keeps them from starting. Apache Kafka ignores unknown "
    "keys, but which of Confluent's keys Confluent Server acts by is not known here: each blocks, but for the metrics "
    "reporter's (W-OPS-14).",
    "Use Confluent's own procedure (cp-ansible, or its documentation) for these packages; Apache Kafka's packages are "
    "what this tool is for. On Apache's packages take out the keys that nothing there reads.",
    "Confluent Platform: ZooKeeper to KRaft migration",
).sees(broker_configs, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def confluents_server(configs: Configs, world: World) -> Result:
    """Keys and classes; the values are not shown."""
    for about, file in placed("broker", configs):
        if keys := confluents_keys(file.values)[1]:
            yield Hit(about, f"it has {', '.join(keys[:3])}", f"{len(keys)} keys")


@check(
    "W-OPS-14",
    "a broker runs with Confluent's metrics reporter",
    "It is a plugin that Apache Kafka loads, and these keys are its own. They stay in the brokers' files, and each "
    "restart loads it again. No controller's file gets them: without the reporter's jar it would not start.",
    "Nothing, or take them out before the migration: this tool has not tried the reporter with brokers in KRaft mode. "
    "With policy.rollout.order: canary-first and a soak the first broker shows it.",
    "Confluent Metrics Reporter; MetricsReporter",
).sees(broker_configs)
def confluents_reporter(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", configs):
        if keys := confluents_keys(file.values)[0]:
            yield Hit(about, f"it has {', '.join(keys)}", f"{len(keys)} keys")


@check(
    "B-OPS-15",
    "a broker runs Confluent Server, or with keys of Confluent's and nobody sees whose software it is",
    "Confluent Server keeps metadata of its own, also where its file has no key of its own. Its jars' names end with "
    "-ce; those of Confluent's community package with -ccs, and that is Apache Kafka.",
    "Use Confluent's own procedure for Confluent Server. For Apache Kafka start the broker so that its command line "
    "names the jars, as kafka-server-start.sh does, or take Confluent's keys out.",
    "the names of the jars in the command line (kafka-clients-*.jar)",
).sees(both(broker_launches, broker_configs), blocks_from=Stage.PREPARE, when=BEFORE_COPY, proof=True)
def confluents_jars(seen: tuple[dict[NodeId, Launch], Configs], world: World) -> Result:
    launches, configs = seen
    for node, launch in launches.items():
        if CONFLUENT_SERVER.search(launch.release):
            yield Hit(f"broker {node}", f"it runs release {launch.release}, which is Confluent Server", launch.release)
        elif not launch.release and node in configs and any(confluents_keys(configs[node].values)):
            yield Hit(
                f"broker {node}", "its file has keys of Confluent's, and its command line names no jar of Kafka's"
            )


@check(
    "W-OPS-03",
    "a part of Confluent's software works on this cluster",
    "Brokers of Confluent's own packages are not migrated by this tool; Control Center or Schema Registry beside "
    "Apache's brokers are no obstacle.",
    "See which software makes them; where the brokers are Confluent Server, use Confluent's own procedure.",
    "topics _confluent-*",
).sees(readable_zookeeper, when=BEFORE_COPY)
def confluents_topics(view: ZookeeperView, world: World) -> Result:
    names = sorted({topic for topic in view.partitions.topic if CONFLUENT_TOPIC.fullmatch(topic)})
    if names:
        yield Hit(plural(len(names), "topic"), f"named as Confluent's software names its own: {', '.join(names[:3])}")


REFUSALS: Final[Mapping[str, str]] = {
    "brokers in Kubernetes": "their operator migrates (B-OPS-01)",
    "Confluent's own packages": "Confluent's procedure (B-OPS-02)",
    "mixed releases, or older than 3.9 with several directories": "upgrade first (B-VER-05, B-VER-06)",
    "nodes with both roles": "controllers of their own (B-CFG-02)",
}


@check(
    "I-OPS-04",
    "what this tool refuses to migrate",
    "Each of these has another owner, or nobody has tried it. metadata.version is never raised by this tool; "
    "inter.broker.protocol.version is by a ProtocolPlaybook alone, before the migration.",
    "Where one of them is your cluster, do what is named with it.",
    "docs/support.md",
).sees(inventory, when=BEFORE_COPY)
def refusals(seen: Inventory, world: World) -> Result:
    told = "; ".join(f"{what}: {instead}" for what, instead in REFUSALS.items())
    yield Hit("this tool", "it refuses what is named here, and says what to do instead", "", told)


def zookeeper_clients(world: World) -> Sight[ZookeeperView]:
    """The tree with its list of sessions, where the servers told it."""
    found = readable_zookeeper(world)
    if found.value is not None and isinstance(found.value.clients, Unknown):
        return Sight(None, (*found.missing, ("who else uses this ZooKeeper", found.value.clients.reason)))
    return found


@check(
    "W-ZKN-20",
    "somebody else has a session with this ZooKeeper",
    "After the migration nothing is written there: old tools that read topics or brokers from it see outdated data, "
    "and one that writes would be overwritten in dual write. Monitors, partition tools, old consumers or another Kafka "
    "cluster on the same ensemble have such sessions.",
    "Find out who it is by the address, and move it to Kafka's own APIs before finalize.",
    "ZooKeeper's four letter word cons, minus the sessions of /brokers/ids",
).sees(zookeeper_clients, when=BEFORE_COPY)
def other_clients(view: ZookeeperView, world: World) -> Result:
    """By address; brokers are known by their sessions, controllers by their hosts."""
    if isinstance(view.clients, Unknown):
        return
    sessions = {broker.session for broker in view.brokers.values()}
    hosts = {node.host for node in world.inventory.controllers}
    others: dict[str, int] = {}
    for client in view.clients:
        if client.session not in sessions and client.host not in hosts:
            others[client.host] = others.get(client.host, 0) + 1
    for host, count in sorted(others.items()):
        yield Hit(host, f"{plural(count, 'session')} of no broker")


PROTOCOL: Final = "3.9"
METADATA_VERSION_3_9: Final = 21  # MetadataVersion.IBP_3_9_IV0.featureLevel()


def zookeeper_mode(configs: Configs) -> Configs:
    """The brokers whose files still run them on ZooKeeper, with or without the flag."""
    return {node: file for node, file in configs.items() if mode_of(file.values) is not Mode.KRAFT}


@check(
    "I-VER-01",
    "the brokers' software release is not visible over the protocol",
    "Several log directories can be migrated from 3.9 on; mixed releases are not supported.",
    "See that every broker and controller runs one 3.9.x build, 3.9.2 or later at best.",
    "fixed before 3.9: KAFKA-16082, 16162, 16297; in 3.9.2: KAFKA-19480",
).sees(inventory, when=UNTIL_FINALIZED)
def release_is_not_visible(seen: Inventory, world: World) -> Result:
    """Said once, so that nobody takes silence for a pass."""
    yield Hit(seen.name or seen.zookeeper, "see for yourself that every process runs one build of 3.9.x")


@check(
    "B-VER-02",
    "inter.broker.protocol.version is not 3.9",
    "A broker with several log directories registers for migration from 3.7-IV2 on, and the controllers' "
    "metadata.version must equal the brokers' protocol version exactly; this tool migrates at 3.9 only.",
    "A ProtocolPlaybook raises it by a roll of its own, with a rollback (docs/playbooks.md). By hand: set "
    "inter.broker.protocol.version=3.9 in every broker's file and restart the brokers one by one.",
    "KIP-858; KAFKA-15450; ClusterControlManager.registerBroker; KafkaServer.scala",
).sees(broker_configs, blocks_from=Stage.CONTROLLERS)
def protocol_version(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", zookeeper_mode(configs)):
        value = file.values.get(IBP, "")
        if value and version_name(value) != PROTOCOL:
            yield Hit(about, f"{IBP} is {value}, not 3.9", value)


@check(
    "B-VER-03",
    "inter.broker.protocol.version is not written down",
    "Without the line a broker uses the newest protocol of its software: the next upgrade would raise it silently, "
    "in the middle of a migration, and the controllers would refuse that broker.",
    "Write inter.broker.protocol.version=3.9 into every broker's file and restart the brokers one by one.",
    "KafkaConfig.scala: interBrokerProtocolVersion defaults to the latest production version",
).sees(broker_configs, blocks_from=Stage.CONTROLLERS)
def protocol_version_explicit(configs: Configs, world: World) -> Result:
    for about, file in placed("broker", zookeeper_mode(configs)):
        if not file.values.get(IBP, ""):
            yield Hit(about, f"{IBP} is not set")


@check(
    "B-VER-04",
    "the brokers' files differ in inter.broker.protocol.version",
    "The controllers accept one version; brokers with another never register, and the copy waits indefinitely.",
    "A ProtocolPlaybook raises every broker to 3.9 (docs/playbooks.md). By hand: the same value in every broker's "
    "file, then one rolling restart.",
    "ClusterControlManager.registerBroker: the finalized metadata.version must lie in the broker's range",
).sees(broker_configs, blocks_from=Stage.CONTROLLERS)
def protocol_version_equal(configs: Configs, world: World) -> Result:
    values: dict[str, list[int]] = {}
    for node, file in zookeeper_mode(configs).items():
        if value := file.values.get(IBP, ""):
            values.setdefault(version_name(value), []).append(int(node))
    if len(values) > 1:
        told = "; ".join(f"{value} on brokers {nodes}" for value, nodes in sorted(values.items()))
        yield Hit("the brokers' files", f"{IBP} differs: {told}", told)


@check(
    "I-VER-14",
    "from the second roll on, a newly formatted log directory blocks the last step of a rollback",
    "kafka-storage format writes meta.properties of version 1, which a ZooKeeper-mode broker refuses.",
    "After replacing a disk during the migration, write its meta.properties with version=0, broker.id, cluster.id and "
    "directory.id; B-RBK-03 finds such files.",
    "KAFKA-20762; MetaPropertiesEnsemble",
).sees(inventory, when=UNTIL_FINALIZED)
def replaced_disks(seen: Inventory, world: World) -> Result:
    """A known limitation, said before it hurts."""
    if seen.brokers:
        yield Hit("every broker", "do not format a replaced disk with kafka-storage without reading this code's text")
