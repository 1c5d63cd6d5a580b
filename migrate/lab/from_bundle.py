"""A lab in the shape of a bundle: what is taken of the real cluster, what is scaled, what a lab cannot have.

`shape_of` decides (pure); every difference is a `Change`, which `lab up` shows.  A bundle is other people's text: only
names that Kafka takes go on, nothing of it becomes a path, and each kind of entry has an upper bound.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from migrate.lab import seed_data as data
from migrate.lab.seed_data import LONGEST, Change, Seed, SeedAcl, SeedConfig, SeedQuota, SeedToken, SeedTopic
from migrate.lab.topology import Topology
from migrate.model.availability import MIN_ISR
from migrate.model.columns import EntityColumns, PartitionColumns
from migrate.model.config_keys import DEFAULT_ENTITY
from migrate.model.ids import NodeId
from migrate.model.kafka_values import entries
from migrate.model.outcome import Unknown
from migrate.model.secrets import is_password_config
from migrate.model.views import BrokerDisks, ConfigFile, PartlyRead
from migrate.model.words import plural
from migrate.model.world import World

MOST_BROKERS: Final = 5
MOST_PARTITIONS: Final = 300
MOST_DIRECTORIES: Final = 32  # per broker
MOST_ENTRIES: Final = 500  # of configurations, quotas, users, ACLs, tokens each
BROKER_MB: Final = 400
OTHERS_MB: Final = 1300  # three controllers, ZooKeeper, and the command with Spark
TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}")
KAFKAS_OWN: Final = ("__consumer_offsets", "__transaction_state")
_TOPICS: Final = """\
cleanup.policy compression.type delete.retention.ms file.delete.delay.ms flush.messages flush.ms index.interval.bytes
max.compaction.lag.ms max.message.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms
message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas retention.bytes retention.ms
segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable"""
# none that names a listener, a class, a file or a broker, and none that sizes threads or memory
_BROKERS: Final = """\
compression.type follower.replication.throttled.rate leader.replication.throttled.rate log.cleaner.backoff.ms
log.cleaner.delete.retention.ms log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleanup.policy log.flush.interval.messages
log.flush.interval.ms log.index.interval.bytes log.message.timestamp.type log.retention.bytes log.retention.ms
log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms message.max.bytes min.insync.replicas
replica.alter.log.dirs.io.max.bytes.per.second unclean.leader.election.enable"""
_QUOTAS: Final = """\
producer_byte_rate consumer_byte_rate request_percentage controller_mutation_rate connection_creation_rate"""
TOPIC_CONFIGS, BROKER_CONFIGS = frozenset(_TOPICS.split()), frozenset(_BROKERS.split())
QUOTAS: Final = frozenset(_QUOTAS.split())
ENTITY: Final = re.compile("(user|client-id|ip)=.+")
ACL: Final = re.compile(  # librdkafka knows no other resources and operations
    r"(TOPIC|GROUP|CLUSTER|TRANSACTIONAL_ID)\|(LITERAL|PREFIXED)\|[^|]+\|[^|:]+:[^|]+\|[^|]+\|"
    r"(ALL|READ|WRITE|CREATE|DELETE|ALTER|DESCRIBE|CLUSTER_ACTION|DESCRIBE_CONFIGS|ALTER_CONFIGS|IDEMPOTENT_WRITE)\|"
    r"(ALLOW|DENY)"
)
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS: Final = range(4096, 16385)
LOAD: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}  # every record is counted
NEVER_COPIED: Final = (
    "passwords: users and tokens get new ones, which nobody knows",
    "listeners, TLS, Kerberos, logins: the lab's own (--secured: SASL_SSL)",
    "hosts, racks, ports, server.properties: the lab's own; all nodes are processes of this host",
    "sizes: a few records per partition, folders of one disk; durations of the lab say nothing about the cluster's",
    "records, consumer groups, offsets, topic ids, which broker and directory holds which replica: made anew",
    "versions of Kafka, ZooKeeper and Java, the ZooKeeper ensemble: one server, and the versions that the lab starts",
    "controllers: the lab's three",
)
NOT_KNOWN: Final = "not known, and left out"
LOAD_PARTITIONS: Final = 3
WHOLE: Final = re.compile("[0-9]{1,9}")
NUMBER: Final = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?(e[+-][0-9]{1,2})?")
T = TypeVar("T")
Row = tuple[str, str, str]  # key, name, value


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large the lab may be; `free_mb` is the memory that is left on this host."""

    brokers: int
    partitions: int
    free_mb: int | Unknown


@dataclass(frozen=True, slots=True)
class BundleShape:
    """The lab to make: log directories of each broker, and what it is seeded with."""

    disks: tuple[int, ...]
    seed: Seed


class _Notes(dict[str, list[str]]):
    """How the lab differs -> the entries that it is about."""

    def add(self, what: str, *names: str) -> None:
        self.setdefault(what, []).extend(names)

    def add_if_any(self, what: str, names: Iterable[str]) -> None:
        if found := list(names):
            self.add(what, *found)


def shape_of(world: World, bounds: Bounds) -> BundleShape:
    """The shape of a lab for what the bundle holds, within the bounds (pure)."""
    view, notes = world.zookeeper, _Notes()
    if isinstance(view, PartlyRead):
        notes.add(f"{NOT_KNOWN}: what malformed znodes hold", view.reason)
        view = view.view
    registered = set[int]() if isinstance(view, Unknown) else set(map(int, view.brokers))
    found = sorted({int(node.id) for node in world.inventory.brokers} | registered)
    kept, disks = _brokers(world, found, bounds, notes)
    partitions, entities = PartitionColumns(), EntityColumns()
    if isinstance(view, Unknown):
        notes.add(f"{NOT_KNOWN}: topics, configurations, quotas, users, ACLs, tokens", view.reason)
    else:
        partitions, entities = view.partitions, view.entities
        notes.add_if_any(NOT_KNOWN, view.blind_spots)
    rows: dict[str, list[Row]] = defaultdict(list)
    for kind, key, name, value in zip(entities.kind, entities.key, entities.name, entities.value, strict=True):
        rows[kind].append((key, name, value))
    configs = _broker_configs(rows["broker-config"], kept, len(found), notes)
    seed = Seed(
        topics=_topics(partitions, rows["topic-config"], len(disks), bounds.partitions, notes),
        configs=_most("broker configurations", configs, lambda one: (one.name, one.key), notes),
        quotas=_most("quotas", _quotas(rows["client-quota"], notes), lambda one: _kinds(one.entity), notes),
        users=_most("SCRAM credentials", _users(rows["scram"], notes), lambda one: one[1:], notes),
        acls=_most("ACLs", _acls(rows["acl"], notes), lambda one: (one.resource, one.pattern, one.operation), notes),
        tokens=_most("delegation tokens", _tokens(rows["delegation-token"], notes), lambda one: one.renewers, notes),
        password=any(is_password_config(name) for _, name, _ in rows["broker-config"]),
        groups={},
        transaction_topic=data.LOAD_TOPICS[0],
    )
    return BundleShape(disks, replace(seed, changes=tuple(Change(what, tuple(about)) for what, about in notes.items())))


# -- brokers -------------------------------------------------------------------------------------------------------
def _brokers(
    world: World, found: Sequence[int], bounds: Bounds, notes: _Notes
) -> tuple[dict[int, int], tuple[int, ...]]:
    """Id in the bundle -> id in the lab, and log directories of each broker of the lab."""
    if not found:
        notes.add("brokers: none known, the lab has one")
    counts = {broker: _directories(world, NodeId(broker)) for broker in found}
    most = min(bounds.brokers, len(found))
    if isinstance(bounds.free_mb, Unknown):
        notes.add("the memory of this host was not compared with what the brokers take", bounds.free_mb.reason)
    elif (room := max(1, (bounds.free_mb - OTHERS_MB) // BROKER_MB)) < most:
        notes.add(f"memory: {bounds.free_mb:,} MB are free, enough for {plural(room, 'broker')}")
        most = room
    some = sorted(_some(found, most, lambda broker: str(counts[broker])))
    kept = {broker: number for number, broker in enumerate(some)}
    if most < len(found):
        notes.add(f"brokers: {most} of {len(found):,}")
    notes.add_if_any("ids of brokers", (f"{one} is {number}" for one, number in kept.items() if one != number))
    disks = list[int]()
    for broker in some:
        count = counts[broker]
        if isinstance(count, Unknown):
            notes.add("log directories not known, the lab has one", f"broker {broker}: {count.reason}")
        elif count > MOST_DIRECTORIES:
            notes.add(f"log directories: {MOST_DIRECTORIES}", f"broker {broker}: {count:,}")
        disks.append(1 if isinstance(count, Unknown) else min(count, MOST_DIRECTORIES))
    return kept, tuple(disks) or (1,)


def _directories(world: World, broker: NodeId) -> int | Unknown:
    """How many log directories it has: by what was seen on its host, else by its file."""
    absent = Unknown("not in the bundle")
    disks = world.disks if isinstance(world.disks, Unknown) else world.disks.get(broker, absent)
    if isinstance(disks, BrokerDisks) and disks.directories:
        return len(disks.directories)
    file = absent if isinstance(world.configs, Unknown) else world.configs.get(broker, absent)
    named = (file.values.get("log.dirs") or file.values.get("log.dir", "")) if isinstance(file, ConfigFile) else ""
    return len(entries(named)) or (disks if isinstance(disks, Unknown) else absent)


def _some(entries: Iterable[T], most: int, kind: Callable[[T], Hashable]) -> list[T]:
    """At most so many entries: first one of each kind, then the others, in their order."""
    seen = set[Hashable]()
    first, others = list[T](), list[T]()
    for entry in entries:
        (others if kind(entry) in seen else first).append(entry)
        seen.add(kind(entry))
    return [*first, *others][:most]


# -- topics --------------------------------------------------------------------------------------------------------
def _topics(
    columns: PartitionColumns, configs: Iterable[Row], brokers: int, bound: int, notes: _Notes
) -> tuple[SeedTopic, ...]:
    """The bundle's topics and those of the load, with `bound` partitions in all, for so many brokers."""
    factors: dict[str, list[int]] = {}
    for name, replicas, adding in zip(columns.topic, columns.replicas, columns.adding, strict=True):
        factors.setdefault(name, []).append(max(1, len(replicas) - len(adding)))
    internal = [name for name in KAFKAS_OWN if factors.pop(name, None)]
    notes.add_if_any("as the lab's brokers make them", internal)
    odd = [name for name in factors if not TOPIC_NAME.fullmatch(name)]
    notes.add_if_any("left out, names that Kafka does not take", odd)
    wide = {name: len(found) for name, found in sorted(factors.items()) if name not in odd}
    settings: dict[str, dict[str, str]] = {name: {} for name in wide}
    for name, key, value in configs:
        if name in settings and key in TOPIC_CONFIGS and _plain(value) and (key != MIN_ISR or WHOLE.fullmatch(value)):
            settings[name][key] = value
        elif name not in internal:
            notes.add("left out, topic configurations", f"{key} of {name}")
    load = [name for name in data.LOAD_TOPICS if name not in wide]
    notes.add_if_any("added, for the load of `lab demo`", load)
    bound = max(1, bound - len(load) * LOAD_PARTITIONS)
    some = set(_some(wide, bound, lambda name: (max(factors[name]), frozenset(settings[name]))))
    notes.add_if_any(f"left out, as {bound:,} partitions are enough for no more", sorted(wide.keys() - some))
    wide = {name: count for name, count in wide.items() if name in some}
    most = bisect_right(range(1, max(wide.values(), default=1) + 1), bound, key=lambda n: _total(wide, n))
    spare = bound - _total(wide, most)
    counts = {name: min(count, most) for name, count in wide.items()}
    for name in [name for name, count in wide.items() if count > most][:spare]:
        counts[name] += 1
    fewer = (f"{name} {counts[name]} of {count:,}" for name, count in wide.items() if count > counts[name])
    notes.add_if_any(f"partitions: {sum(counts.values()):,} of {sum(wide.values()):,}", fewer)
    topics = list[SeedTopic]()
    for name, count in counts.items():
        before, own = max(factors[name]), settings[name]
        after = min(before, brokers)
        if min(factors[name]) < before:
            notes.add("several replication factors in one topic, the largest is taken", name)
        if after < before:
            notes.add(f"replication factor {after}, as there are no more brokers", f"{name} {before}")
        if MIN_ISR in own and own[MIN_ISR] != (least := _least(own[MIN_ISR], before, after)):
            notes.add(f"{MIN_ISR} lowered, as there are fewer replicas", f"{name} {own[MIN_ISR]} is {least}")
            own[MIN_ISR] = least
        topics.append(SeedTopic(name, count, after, own))
    factor = min(3, brokers)
    added = LOAD | {MIN_ISR: str(max(1, factor - 1))}
    return (*topics, *(SeedTopic(name, LOAD_PARTITIONS, factor, added) for name in load))


def _total(wide: Mapping[str, int], most: int) -> int:
    return sum(min(count, most) for count in wide.values())


def _least(text: str, before: int, after: int) -> str:
    """min.insync.replicas where `before` replicas became `after`: one may be down where one might."""
    spare = int(text) < before and after < before
    return str(min(int(text), max(1, after - 1) if spare else after))


# -- everything else -----------------------------------------------------------------------------------------------
def _most(what: str, entries: Iterable[T], kind: Callable[[T], Hashable], notes: _Notes) -> tuple[T, ...]:
    """The entries, up to the upper bound of their number."""
    found = list(entries)
    in_order = _some(found, len(found), kind)
    notes.add_if_any(f"left out, {what} beyond {MOST_ENTRIES}", map(_words, in_order[MOST_ENTRIES:]))
    return tuple(in_order[:MOST_ENTRIES])


def _kinds(entity: Iterable[tuple[str, str | None]]) -> Hashable:
    return tuple((kind, name is None) for kind, name in entity)


def _words(entry: Any) -> str:
    return " ".join(map(str, entry if isinstance(entry, tuple) else astuple(entry)))


def _plain(*texts: str) -> bool:
    """Is that text that Kafka's clients carry, and no redacted secret?"""
    return all(text.isprintable() and 0 < len(text) <= LONGEST and not text.startswith("hmac:") for text in texts)


def _broker_configs(rows: Iterable[Row], kept: Mapping[int, int], before: int, notes: _Notes) -> Iterator[SeedConfig]:
    names = {str(old): str(new) for old, new in kept.items()} | {DEFAULT_ENTITY: ""}
    for broker, key, told in rows:
        value = told
        if key == MIN_ISR and WHOLE.fullmatch(told):
            value = _least(told, before, max(1, len(kept)))
            if value != told:
                notes.add(f"{MIN_ISR} lowered, as there are fewer brokers", f"{broker} {told} is {value}")
        if broker in names and key in BROKER_CONFIGS and _plain(value) and (key != MIN_ISR or WHOLE.fullmatch(value)):
            yield SeedConfig("broker", names[broker], key, value)
        elif is_password_config(key):
            notes.add("broker configurations that are passwords: one that is made up", f"{key} of {broker}")
        else:
            notes.add("left out, broker configurations", f"{key} of {broker}")


def _quotas(rows: Iterable[Row], notes: _Notes) -> Iterator[SeedQuota]:
    found: dict[str, dict[str, float]] = {}
    for entity, key, value in rows:
        if key in QUOTAS and NUMBER.fullmatch(value) and all(map(ENTITY.fullmatch, entity.split("/"))):
            found.setdefault(entity, {})[key] = float(value)
        else:
            notes.add("left out, quotas", f"{key} of {entity}")
    for entity, limits in found.items():
        parts = [part.partition("=")[::2] for part in entity.split("/")]
        names = [(kind, None if name == DEFAULT_ENTITY else unquote(name)) for kind, name in parts]
        if _plain(*(name for _, name in names if name is not None)):
            yield SeedQuota(tuple(names), limits)
        else:
            notes.add("left out, quotas", f"all of {entity}")


def _users(rows: Iterable[Row], notes: _Notes) -> Iterator[tuple[str, str, int]]:
    for user, name, value in rows:
        mechanism, _, what = name.rpartition(".")
        if what != "iterations":
            continue
        if _plain(user) and mechanism in MECHANISMS and WHOLE.fullmatch(value) and int(value) in ITERATIONS:
            yield user, mechanism, int(value)
        else:
            notes.add("left out, SCRAM credentials", f"{mechanism} of {user}")


def _acls(rows: Iterable[Row], notes: _Notes) -> Iterator[SeedAcl]:
    for key, *_ in rows:
        if ACL.fullmatch(key) and _plain(*(words := [unquote(part) for part in key.split("|")])):
            kind, pattern, name, principal, host, operation, permission = words
            yield SeedAcl(kind.lower(), name, pattern.lower(), principal, host, operation.lower(), permission.lower())
        else:
            notes.add("left out, ACLs", key)


def _tokens(rows: Iterable[Row], notes: _Notes) -> Iterator[SeedToken]:
    told: dict[str, dict[str, str]] = defaultdict(dict)
    for key, name, value in rows:
        told[key][name] = value
    seen = set[SeedToken]()
    for values in told.values():
        users = [values.get("owner", ""), *filter(None, values.get("renewers", "").split(","))]
        owner, *renewers = (user.removeprefix("User:") for user in users)
        token = SeedToken(owner, tuple(renewers))
        if token not in seen and _plain(owner, *renewers) and all(user.startswith("User:") for user in users):
            seen.add(token)
            yield token
        else:
            notes.add("left out, delegation tokens that are no users', or equal to another", users[0])


# -- the host, and the lab's files ---------------------------------------------------------------------------------
def free_memory(proc: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup/memory.max")) -> int | Unknown:
    """MB that new processes of this host, or of this container, may take."""
    try:
        found = re.search(r"^MemAvailable: +(\d+) kB$", proc.read_text(encoding="ascii"), re.MULTILINE)
        limit = group.read_text(encoding="ascii").strip() if group.exists() else "max"
    except (OSError, ValueError) as error:
        return Unknown(f"the free memory of this host cannot be read: {error}")
    if found is None:
        return Unknown(f"{proc} does not say how much memory is free")
    free = int(found[1]) // 1024
    return min(free, int(limit) // 2**20) if limit.isdecimal() else free


def playbook_text(shipped: str, topology: Topology, seed: Seed) -> str:
    """The demo's playbook for that lab: the last broker is driven, and what a restart makes unavailable is accepted.

    Only that of the lab: its user reads there, by name, what the real playbook has to accept.
    """
    default = max(["1", *(config.value for config in seed.configs if config.key == MIN_ISR)], key=int)
    factor = min(3, len(topology.brokers))
    own = (SeedTopic(KAFKAS_OWN[0], 1, factor), SeedTopic(KAFKAS_OWN[1], 1, factor, {MIN_ISR: "1"}))
    names = [
        topic.name.replace(".", "[.]")
        for topic in (*seed.topics, *own)
        if topic.replication <= max(1, int(topic.configs.get(MIN_ISR, default)))
    ]
    accepted = "".join(f"        - '{name}'\n" for name in names)
    head, line, tail = shipped.partition("        - 'single-.*'")
    rest = tail.partition("\n")[2]
    last = min(2, len(topology.brokers) - 1)
    head = re.sub(r"(?m)^( +default: observe).*\n(.*\n) +2: drive.*", rf"\1\n\2        {last}: drive", head)
    return f"{head}{line}\n{accepted}{rest}"
