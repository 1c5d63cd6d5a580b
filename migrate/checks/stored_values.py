"""ZKN: configurations and quotas that ZooKeeper holds unchecked, judged as Kafka judges them when it applies them.

`kafka-configs --zookeeper`, of releases before 3.0, and hands wrote them past every check.  What cannot even be read
stands in `migrate.checks.zookeeper`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote

from migrate.checks.forms import RETENTION, definitions, fault, meaning, misfits
from migrate.checks.registry import BEFORE_COPY, Blind, Hit, Result, check
from migrate.checks.sight import Configs, both, broker_configs, entities, readable_zookeeper
from migrate.hosts.properties import for_people
from migrate.model import kafka_values
from migrate.model.config_keys import DEFAULT_ENTITY, base_name, is_at_start, left_out
from migrate.model.difference import Difference, DifferenceClass, DiffReport
from migrate.model.ids import NodeId
from migrate.model.outcome import Denied, Unknown
from migrate.model.secrets import is_password_config
from migrate.model.stage import Stage
from migrate.model.views import ConfigFile, KraftView, ZookeeperView
from migrate.model.world import World

STORED_APART: Final = "remote.storage.enable"
TIERED: Final = {  # what is refused where it is true, besides its form (`LogManager.updateTopicConfig`)
    STORED_APART: "a broker without remote.log.storage.system.enable does not start with it",
    "remote.log.copy.disable": "no broker of ZooKeeper mode starts with it",
    "remote.log.delete.on.disable": "no broker of ZooKeeper mode starts with it",
}
QUOTAS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
QUOTAS_OF_IPS: Final = frozenset({"connection_creation_rate"})


def ignored(entity: str, name: str, value: str) -> str:
    """Why a broker leaves out that dynamic configuration, in every mode alike; "" where it does not."""
    if left_out(entity, name):
        return "Kafka takes it for one broker, a store or a login for one of its listeners"
    return fault("broker", base_name(name), value)


@check(
    "B-ZKN-26",
    "a topic's configuration has a value that Kafka refuses",
    "A broker reads the configurations of all topics when it starts, and ends where it cannot take one: in ZooKeeper "
    "mode and in KRaft mode alike. A broker that runs has not been started since, so the first roll would stop at its "
    "first broker, which is down then. KRaft copies the value as it is. Nothing checks what is written into ZooKeeper "
    "by hand, or by kafka-configs --zookeeper of a release before 3.0.",
    "Delete the key, or set it again: kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic TOPIC "
    "--delete-config KEY. Where Kafka refuses that as well, correct the znode with zookeeper-shell, after a backup.",
    "LogManager.fetchTopicConfigOverrides; LogConfig.fromProps; seen on 3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE)
def refused_topic_value(view: ZookeeperView, world: World) -> Result:
    """Of topics that do not exist, too: a broker of ZooKeeper mode reads all that stand there."""
    without = _without_tiers(world)
    for topic, name, value, _ in entities(view, "topic-config"):
        about, why = f"/config/topics/{topic}", fault("topic", name, value)
        if not why and name in TIERED and kafka_values.boolean(value):
            if name == STORED_APART and isinstance(without, Unknown):
                yield Blind(f"whether brokers take {name} of topic {topic}", without.reason)
            elif name != STORED_APART or without:
                why = TIERED[name]
        if why:
            yield Hit(about, f"{name}={for_people(name, value)}: {why}", "no broker starts with it")


def _without_tiers(world: World) -> list[int] | Unknown:
    """Brokers whose files do not switch tiered storage on."""
    if isinstance(world.configs, Unknown):
        return world.configs
    files = {int(node.id): world.configs.get(node.id) for node in world.inventory.brokers}
    unread = [node for node, file in files.items() if not isinstance(file, ConfigFile)]
    if unread:
        return Unknown(f"the files of brokers {unread} were not read")
    return [
        node
        for node, file in files.items()
        if isinstance(file, ConfigFile) and not kafka_values.truth(file.values, "remote.log.storage.system.enable")
    ]


@check(
    "B-ZKN-27",
    "a quota is of a key or of an ip that Kafka cannot apply",
    "A broker of ZooKeeper mode resolves the name of each ip when it starts, and ends where it cannot: the first roll "
    "would stop at its first broker, which is down then. One of KRaft mode leaves that quota out, and all that are "
    "applied with it, and says so in its log alone. With a quota that Kafka does not define the copy is made, and the "
    "controllers never get from there to DUAL_WRITE: what clients change times out. kafka-configs encodes an IPv6 "
    "address (%3A for a colon), and a broker does not decode it.",
    "Set the quota for addresses, and delete it from the name. Delete one that Kafka does not define, or that is of an "
    "IPv6 address, with zookeeper-shell, after a backup; IPv6 addresses can have quotas again when no broker of "
    "ZooKeeper mode is left.",
    "IpConfigHandler; ClientQuotaMetadataManager.handleIpQuota; ZkConfigMigrationClient.writeClientQuotas; seen on "
    "3.9.2",
).sees(readable_zookeeper, blocks_from=Stage.PREPARE, when=BEFORE_COPY)
def quota_nobody_applies(view: ZookeeperView, world: World) -> Result:
    """Whether a name resolves on each broker, and at each of its starts, nobody knows: it is refused."""
    for entity, key, value, where in entities(view, "client-quota"):
        if key not in (QUOTAS_OF_IPS if entity.startswith("ip=") else QUOTAS):
            yield Hit(where or entity, f"{key}={value}: Kafka defines no such quota of {entity}", entity)
    for where, name in unresolved_ips(view):
        yield Hit(where, f"{name} is no address: a broker has to resolve it", name)


def unresolved_ips(view: ZookeeperView) -> Iterator[tuple[str, str]]:
    """Where quotas stand of an ip that is no address as its znode spells it, and that spelling."""
    for entity, _, _, where in entities(view, "client-quota"):
        name = where.rpartition("/")[2] if where else unquote(entity.removeprefix("ip="))
        if entity.startswith("ip=") and name != DEFAULT_ENTITY and not _is_address(name):
            yield where or entity, name


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


THREADS: Final = {  # Kafka's defaults
    "background.threads": 10,
    "log.cleaner.threads": 1,
    "num.io.threads": 8,
    "num.network.threads": 3,
    "num.recovery.threads.per.data.dir": 1,
    "num.replica.fetchers": 1,
}


LOGS: Final = frozenset(  # `DynamicLogConfig.ReconfigurableConfigs`, besides those that begin with log.
    {"compression.type", "message.max.bytes", "min.insync.replicas", "unclean.leader.election.enable"}
    | {f"compression.{codec}.level" for codec in ("gzip", "lz4", "zstd")}
)
OF_CLEANER: Final = ("log.cleaner.threads", "log.cleaner.dedupe", "log.cleaner.io", "log.cleaner.backoff")


@check(
    "B-CFG-38",
    "a dynamic configuration is refused together with the broker's file, and takes others with it",
    "A broker that refuses one leaves out every other dynamic configuration of that broker too, or of all brokers "
    "where it is the default of the cluster: limits, retention and stores fall back to the files, and kafka-configs "
    "refuses other changes until it is corrected. A KRaft broker starts with the file's number of threads, and changes "
    "it to no less than half and no more than double; and it holds local retention to the retention, as a running "
    "broker does. What breaks a rule of Kafka's is refused by the next start in every mode. Threads that kafka-configs "
    "changed step by step, or a file changed since, lead to it.",
    "Threads: write the number that holds into the broker's file, in the key that the finding names; no restart is "
    "needed for that, the next roll reads it. Else correct or delete the dynamic value.",
    "DynamicThreadPool, LogCleaner, SocketServer and DynamicLogConfig: validateReconfiguration; "
    "KafkaConfig.validateValues; seen on 3.9.2: 'Per-broker configs of 0 could not be applied'",
).sees(both(readable_zookeeper, broker_configs), blocks_from=Stage.MIGRATION_MODE)
def applied_together(seen: tuple[ZookeeperView, Configs], world: World) -> Result:
    """What each broker is to apply beside its file; the order in which Kafka applies numbers of threads is open."""
    view, configs = seen
    for node, file in configs.items():
        stored = to_apply(view, int(node))
        said = UNASKED if isinstance(world.applied, Unknown) else world.applied.get(node, UNASKED)
        if stored and isinstance(said, Denied):  # the proof of the second roll asks for it
            yield Blind(f"what broker {node} applies of its {len(stored)} dynamic configurations", said.reason)
        for key, why in refused_together({key: value for key, (_, value) in stored.items()}, file.values):
            entity, value = stored[key]
            of = "the default of the cluster" if entity == DEFAULT_ENTITY else "dynamic"
            yield Hit(f"broker {node}: {file.path}", f"{key}={value} ({of}), and {why}", key)


def refused_together(dynamic: Mapping[str, str], file: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The keys that a broker of that file does not take beside it, and why not (pure)."""
    for key in dynamic:
        if base_name(key) in THREADS:
            wanted, text = kafka_values.whole(dynamic[key]), file.get(key, file.get(base_name(key), ""))
            here = kafka_values.number(text) or THREADS[base_name(key)]
            if wanted != here and not max(1, here // 2) <= wanted <= 2 * here:
                yield key, f"the file has {here}"

    def number(key: str, default: int) -> int:
        found = meaning(key, dynamic.get(key, file.get(key, "")))
        return found if isinstance(found, int) else default

    alone = set(misfits(file))
    for reason in misfits({**file, **dynamic}):
        if reason not in alone:
            yield next((key for key in dynamic if key in reason), min(dynamic)), reason
    kept = next((key for key in RETENTION if key in dynamic or key in file), "")
    retention = number(kept, 168) * {"": 3_600_000, "hours": 3_600_000, "minutes": 60_000}.get(
        kept.rpartition(".")[2], 1
    )
    changed = {key for key in dynamic if meaning(key, dynamic[key]) != meaning(key, file.get(key, ""))}
    logs = [key for key in changed if key in LOGS or (key.startswith("log.") and not key.startswith(OF_CLEANER))]
    for local, whole in (
        ("log.local.retention.ms", max(retention, -1)),
        ("log.local.retention.bytes", number("log.retention.bytes", -1)),
    ):
        of = local.replace(".local", "")
        if logs and whole > -1 and number(local, -2) != -2 and not -1 < number(local, -2) <= whole:
            key = next((key for key in (local, of) if key in logs), min(logs))
            yield key, f"{local} is {number(local, -2)}: it must be -2, or 0 to {of}, which is {whole}"


APPLIED: Final = "applied-config"  # rows of the comparison: what a broker does not run with, and is stored for it
UNASKED: Final = Unknown("it was not asked")
SINGLE: Final = frozenset({"max.connections.per.ip.overrides", "metric.reporters"})  # dynamic, and of no listener


@dataclass(frozen=True, slots=True)
class NotApplied:
    """A dynamic configuration that is stored for a broker, and that it does not run with."""

    broker: NodeId
    entity: str  # the broker's id or <default>
    key: str
    stored: str
    runs_with: str | None

    @property
    def words(self) -> str:
        own = "its own value" if self.runs_with is None else for_people(self.key, self.runs_with)
        return f"{self.key}={for_people(self.key, self.stored)} of entity {self.entity} (it runs with {own})"


def to_apply(view: KraftView | ZookeeperView, broker: int) -> dict[str, tuple[str, str]]:
    """What that broker must run with, by key: the entity and the value.  Not what Kafka leaves out, and no password."""
    found: dict[str, tuple[str, str]] = {}
    rows = view.entities
    for entity in (DEFAULT_ENTITY, str(broker)):  # the broker's own values go first
        for kind, key, name, value in zip(rows.kind, rows.key, rows.name, rows.value, strict=True):
            if (kind, key) != ("broker-config", entity) or is_password_config(name) or ignored(entity, name, value):
                continue
            base = base_name(name)
            of_listener = base != name and is_at_start(entity, name)
            if base in definitions()["broker"] or base in SINGLE or of_listener:
                found[name] = (entity, value)
    return found


def not_applied(view: KraftView, broker: int, runs_with: Mapping[str, str]) -> tuple[NotApplied, ...]:
    """Where a broker's answer differs from what is stored for it."""
    return tuple(
        NotApplied(NodeId(broker), entity, key, value, runs_with.get(key))
        for key, (entity, value) in sorted(to_apply(view, broker).items())
        if key not in runs_with or meaning(key, value) != meaning(key, runs_with[key])
    )


def compare_applied(report: DiffReport, world: World) -> DiffReport:
    """The comparison, with what each broker runs with beside what is stored for it; one that did not say is named."""
    if isinstance(world.kraft, Unknown):
        return report
    rows, spots, equal = [], [], 0
    for node in world.inventory.brokers:
        stored = to_apply(world.kraft, int(node.id))
        said = world.applied if isinstance(world.applied, Unknown) else world.applied.get(node.id, UNASKED)
        if not stored:
            continue
        if isinstance(said, Unknown):
            spots.append(f"what broker {int(node.id)} applied of its dynamic configuration: {said.reason}")
            continue
        missing = not_applied(world.kraft, int(node.id), said)
        equal += len(stored) - len(missing)
        rows += [
            Difference(
                APPLIED,
                str(int(node.id)),
                one.key,
                DifferenceClass.ONLY_KRAFT,
                None,
                for_people(one.key, one.stored),
                kraft_where=f"entity {one.entity}; {one.words}",
            )
            for one in missing
        ]
    counts = {name: number for name, number in (("EQUAL", equal), ("ONLY_KRAFT", len(rows))) if number}
    return replace(
        report,
        counts={**report.counts, APPLIED: counts} if counts else report.counts,
        differences=(*report.differences, *rows),
        blind_spots=(*report.blind_spots, *spots),
    )
