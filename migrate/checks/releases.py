"""VER and OPS: which software this is, as far as it shows, and what this tool does not migrate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from migrate.checks.advisor import FETCH, applying, features_in_use, least_release
from migrate.checks.registry import ALWAYS, BEFORE_COPY, UNTIL_FINALIZED, Blind, Hit, Result, check
from migrate.checks.sight import (
    Sight,
    broker_answers,
    broker_configs,
    broker_launches,
    controller_answers,
    inventory,
    readable_zookeeper,
)
from migrate.model.findings import CodeDoc
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.launch import Launch
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, NodeAnswer, ZookeeperView
from migrate.model.words import plural
from migrate.model.world import World

WANTED: Final = "3.9"
KUBERNETES: Final = re.compile(r"://[^/]*\.svc(\.|:)")
CONFLUENT_TOPIC: Final = re.compile(r"_{1,2}confluent[-_.].*")

Answers = dict[NodeId, NodeAnswer]
Configs = dict[NodeId, ConfigFile]


def by_release(answers: Answers) -> dict[str, list[int]]:
    """Line of releases -> brokers, of those that told their API versions."""
    found: dict[str, list[int]] = {}
    for node, answer in answers.items():
        line = least_release(answer)
        if line is not None:
            found.setdefault(line, []).append(int(node))
    return found


def _untold(brokers: Iterable[NodeId]) -> Iterator[Blind]:
    return (Blind(f"the release of broker {node}", "its API versions do not tell it") for node in brokers)


@check(
    CodeDoc(
        "B-VER-05",
        "a broker's software is older than 3.9",
        "Several log directories are migrated from 3.9 on; older releases have no way to it, or lose replicas'"
        " directories on it. This tool refuses them.",
        "The software was not upgraded: the API versions that the broker tells end before those of 3.9.",
        "Upgrade every broker to the newest 3.9.x first (still on ZooKeeper), then"
        " inter.broker.protocol.version=3.9, then run assess again.",
        "ApiVersions: Fetch v17 came with 3.9 (KIP-853), v16 with 3.7; KAFKA-16162, KAFKA-16297",
    ),
    sees=broker_answers,
    blocks_from=Stage.PREPARE,
    when=ALWAYS,
)
def software_is_new_enough(answers: Answers, world: World) -> Result:
    """A bound is all that the wire tells."""
    yield from _untold(node for node, answer in answers.items() if least_release(answer) is None)
    for line, nodes in sorted(by_release(answers).items()):
        if line != WANTED:
            highest = sorted({answers[NodeId(node)].apis[FETCH] for node in nodes})
            yield Hit(
                f"brokers {sorted(nodes)}",
                f"their software is older than 3.9 ({line} at best guess)",
                f"highest version of Fetch: {highest}",
            )


@check(
    CodeDoc(
        "B-VER-06",
        "the brokers run different software",
        "Mixed releases are not migrated: each would bring other bugs into the same copy.",
        "A rolling upgrade was not finished.",
        "Finish the upgrade on every broker, then run assess again.",
        "ApiVersions: ranges of API versions differ",
    ),
    sees=broker_answers,
    blocks_from=Stage.PREPARE,
    when=BEFORE_COPY,
)
def software_is_one(answers: Answers, world: World) -> Result:
    """Any difference in the ranges; patch releases of one line do not show."""
    yield from _untold(node for node, answer in answers.items() if not answer.apis)
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for node, answer in answers.items():
        if answer.apis:
            groups.setdefault(tuple(sorted(answer.apis.items())), []).append(int(node))
    if len(groups) > 1:
        told = " and ".join(str(sorted(nodes)) for nodes in sorted(groups.values()))
        yield Hit("the brokers' software", f"brokers {told} tell different API versions", told)


@check(
    CodeDoc(
        "B-VER-15",
        "a controller's software is not of the brokers' line of releases",
        "The controllers write what the brokers read, and lead the copy: an older line lacks its fixes, 4.0 and later "
        "cannot migrate at all.",
        "The controllers' hosts were provisioned with another package.",
        "Install the brokers' release on every controller's host, before the first roll; no metadata is lost by it.",
        "ApiVersions: Fetch v17 came with 3.9; the names of the jars in the command line (kafka-clients-*.jar)",
    ),
    sees=controller_answers,
    blocks_from=Stage.MIGRATION_MODE,
)
def controllers_are_of_the_line(answers: Answers, world: World) -> Result:
    """By the versions of their APIs, and by their class paths where those can be seen."""
    for node, answer in answers.items():
        line = least_release(answer)
        if line is None:
            yield Blind(f"the release of controller {node}", "its API versions do not tell it")
        elif line != WANTED:
            yield Hit(f"controller {node}", f"its software is older than {WANTED} ({line} at best guess)")
    for node, told in _releases(world, [node.id for node in world.inventory.controllers]).items():
        if not told.startswith(f"{WANTED}."):
            yield Hit(f"controller {node}", f"its class path has Kafka {told}, the brokers are of {WANTED}", told)


@check(
    CodeDoc(
        "W-VER-16",
        "nodes run different builds of Kafka",
        "A fix of the migration that one build has and another lacks depends on which node is active or restarts next.",
        "An upgrade to a patch release was not finished, or the controllers were installed later.",
        "Run one build, 3.9.2 or later, on every broker and controller before the migration.",
        "the names of the jars in the command line (kafka-clients-*.jar); KAFKA-19480",
    ),
    sees=broker_launches,
)
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
    CodeDoc(
        "I-VER-10",
        "a later release fixed something that this cluster may need",
        "The brokers' exact release is on no wire: a build of this line may be without the fix, and the cluster uses"
        " what it is about.",
        "The line of releases, by the API versions that the brokers tell, begins before the fix.",
        "Run the newest 3.9.x on every broker and controller (3.9.2 or later) before the migration; where you do, this"
        " says nothing to you.",
        "Kafka's release notes; shipped as data in migrate/checks/data/advisor.json",
    ),
    sees=broker_answers,
    when=BEFORE_COPY,
)
def later_fixes(answers: Answers, world: World) -> Result:
    """Filtered by features in use."""
    lines = sorted(by_release(answers), key=lambda line: [int(part) for part in line.split(".")])
    for fix in applying(lines[0], features_in_use(world)) if lines else ():
        if fix.fixed:
            yield Hit(
                fix.id,
                f"{fix.effect}; fixed in {' and '.join(fix.fixed)}",
                f"the brokers' software is {lines[0]} or later",
                fix.advice,
            )


@check(
    CodeDoc(
        "I-VER-11",
        "a known fault of Kafka is open in every release",
        "No release helps; the tool works around it, and the way is named.",
        "Apache Kafka has no fix in the 3.9 line.",
        "Read what is named with it.",
        "Kafka's issues; shipped as data in migrate/checks/data/advisor.json",
    ),
    sees=inventory,
    when=UNTIL_FINALIZED,
)
def open_faults(seen: Inventory, world: World) -> Result:
    """Filtered by features in use."""
    for fix in applying(WANTED, features_in_use(world)):
        if not fix.fixed:
            yield Hit(fix.id, fix.effect, "", fix.advice)


@check(
    CodeDoc(
        "B-OPS-01",
        "the brokers live in Kubernetes",
        "An operator owns those pods: it would put back every file that this tool writes, and restart what it stopped.",
        "The brokers' addresses are names of services (*.svc).",
        "Use the operator's own migration (Strimzi 0.45: the annotation strimzi.io/kraft=migration; Confluent for"
        " Kubernetes: KRaftMigrationJob).",
        "strimzi-kafka-operator: KafkaReconciler; KRaftMigrationJob",
    ),
    sees=readable_zookeeper,
    blocks_from=Stage.PREPARE,
    when=BEFORE_COPY,
)
def in_kubernetes(view: ZookeeperView, world: World) -> Result:
    """By the registered endpoints."""
    for node, broker in sorted(view.brokers.items()):
        named = [entry for entry in broker.endpoints if KUBERNETES.search(entry)]
        if named:
            yield Hit(f"broker {node}", f"its address is of a Kubernetes service: {named[0]}", ", ".join(named))


@check(
    CodeDoc(
        "B-OPS-02",
        "a broker runs Confluent's own software",
        "Confluent Server keeps metadata of its own (cluster links, tiers, balancer) that Apache's copy does not know.",
        "The file has keys of Confluent's packages.",
        "Use Confluent's own procedure (cp-ansible, or its documentation) for these packages; Apache Kafka's packages"
        " are what this tool is for.",
        "Confluent Platform: ZooKeeper to KRaft migration",
    ),
    sees=broker_configs,
    blocks_from=Stage.PREPARE,
    when=BEFORE_COPY,
)
def confluents_server(configs: Configs, world: World) -> Result:
    """Keys and classes; the values are not shown."""
    for node, file in configs.items():
        keys = sorted(key for key, value in file.values.items() if _is_confluents(key, value))
        if keys:
            yield Hit(f"broker {node}: {file.path}", f"it has {', '.join(keys[:3])}", f"{len(keys)} keys")


def _is_confluents(key: str, value: str) -> bool:
    return key.startswith("confluent.") or value.strip().startswith("io.confluent.")


@check(
    CodeDoc(
        "W-OPS-03",
        "a part of Confluent's software works on this cluster",
        "Brokers of Confluent's own packages are not migrated by this tool; Control Center or Schema Registry beside"
        " Apache's brokers are no obstacle.",
        "There are topics that Confluent's software makes.",
        "See which software makes them; where the brokers are Confluent Server, use Confluent's own procedure.",
        "topics _confluent-*",
    ),
    sees=readable_zookeeper,
    when=BEFORE_COPY,
)
def confluents_topics(view: ZookeeperView, world: World) -> Result:
    """By the topics' names."""
    names = sorted({topic for topic in view.partitions.topic if CONFLUENT_TOPIC.fullmatch(topic)})
    if names:
        yield Hit(plural(len(names), "topic"), f"named as Confluent's software names its own: {', '.join(names[:3])}")


REFUSALS: Final[Mapping[str, str]] = {
    "brokers in Kubernetes": "their operator migrates (B-OPS-01)",
    "Confluent's own packages": "Confluent's procedure (B-OPS-02)",
    "mixed releases, or older than 3.9 with several directories": "upgrade first (B-VER-05, B-VER-06)",
    "nodes with both roles": "controllers of their own (B-CFG-02)",
    "GSSAPI on the controller listener": "PLAIN or TLS there (B-SEC-03)",
    "dynamic quorums": "controller.quorum.voters (B-QRM-02)",
}


@check(
    CodeDoc(
        "I-OPS-04",
        "what this tool refuses to migrate",
        "Each of these has another owner, or nobody has tried it. inter.broker.protocol.version and metadata.version"
        " are never raised by this tool.",
        "By design.",
        "Where one of them is your cluster, do what is named with it.",
        "the README",
    ),
    sees=inventory,
    when=BEFORE_COPY,
)
def refusals(seen: Inventory, world: World) -> Result:
    """Said once, whatever can be seen."""
    told = "; ".join(f"{what}: {instead}" for what, instead in REFUSALS.items())
    yield Hit("this tool", "it refuses what is named here, and says what to do instead", "", told)


def zookeeper_clients(world: World) -> Sight[ZookeeperView]:
    """The tree with its list of sessions, where the servers told it."""
    found = readable_zookeeper(world)
    if found.value is not None and isinstance(found.value.clients, Unknown):
        return Sight(None, (*found.missing, ("who else uses this ZooKeeper", found.value.clients.reason)))
    return found


@check(
    CodeDoc(
        "W-ZKN-20",
        "somebody else has a session with this ZooKeeper",
        "After the migration nobody writes there: old tools that read topics or brokers from it go blind, and one that"
        " writes would be overwritten in dual write.",
        "Monitors, partition tools, old consumers, another Kafka cluster on the same ensemble.",
        "Find out who it is by the address, and move it to Kafka's own APIs before finalize.",
        "ZooKeeper's four letter word cons, minus the sessions of /brokers/ids",
    ),
    sees=zookeeper_clients,
    when=BEFORE_COPY,
)
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
