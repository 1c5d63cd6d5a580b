"""Clusters with known truth: both sides equal, then bent by plants that say which rows must come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random  # noqa: TID251 - the type alone: the test seeds it
from typing import Final

from migrate.diff.compare import Question
from migrate.model.difference import DifferenceClass
from migrate.model.ids import NodeId
from migrate.model.inventory import AcceptedDifference
from migrate.model.views import KraftView, PendingWork, Registration, ZkBroker, ZookeeperView
from tests.testing.clusters import Partition, endpoint, kraft_view, registration, topic_id, zookeeper_view

Row = tuple[str, str, str, str, str]  # kind, key, field, class, rule or ticket
EntityKey = tuple[str, str, str]
TICKET: Final = "CHG-1"
SIDES: Final = ("zookeeper", "kraft")
ONLY: Final = {"zookeeper": DifferenceClass.ONLY_ZK.value, "kraft": DifferenceClass.ONLY_KRAFT.value}
OTHER: Final = {"zookeeper": "kraft", "kraft": "zookeeper"}
DIFFERS: Final = DifferenceClass.DIFFERS.value
# Each kind has a row a slot: two plants in one cluster never touch the same object.
ENTITIES: Final[tuple[tuple[str, tuple[str, str], str, str], ...]] = (
    ("topic", ("t0", "t1"), "topic_id", topic_id(0)),
    ("topic-config", ("t0", "t1"), "retention.ms", "3600000"),
    ("broker-config", ("0", "<default>"), "log.cleaner.backoff.ms", "14000"),
    ("broker-config", ("1", "2"), "ssl.keystore.password", "hmac:0123"),
    ("client-quota", ("user=alice", "user=<default>,client-id=a"), "producer_byte_rate", "1000000.0"),
    ("client-quota", ("ip=10.0.0.1", "ip=<default>"), "connection_creation_rate", "10.0"),
    ("scram", ("carol", "dave"), "SCRAM-SHA-512.salt", "hmac:4567"),
    ("scram", ("erin", "frank"), "SCRAM-SHA-256.iterations", "4096"),
    ("acl", ("TOPIC|LITERAL|orders|User:alice|*|READ|ALLOW", "GROUP|PREFIXED|g|User:b|*|ALL|DENY"), "present", "true"),
    ("delegation-token", ("hmac:89ab", "hmac:cdef"), "owner", "User:alice"),
    ("feature", ("group.version", "other.version"), "level", "1"),
)
PRODUCER: Final[EntityKey] = ("producer-ids", "", "next_producer_id")


@dataclass(slots=True)
class Side:
    """What one side holds."""

    partitions: list[Partition]
    entities: dict[EntityKey, str]
    brokers: dict[int, tuple[str, str, str | None]]  # id -> mode, endpoint, rack


@dataclass(slots=True)
class Truth:
    """Both sides, and what else the comparison is told."""

    zookeeper: Side
    kraft: Side
    deletions: list[str] = field(default_factory=list)
    accepted: list[AcceptedDifference] = field(default_factory=list)

    def side(self, name: str) -> Side:
        """The side of that name."""
        return self.zookeeper if name == "zookeeper" else self.kraft

    def question(self) -> Question:
        """As views."""
        return Question(zookeeper_side(self), kraft_side(self.kraft), tuple(self.accepted))


def zookeeper_side(truth: Truth) -> ZookeeperView:
    """ZooKeeper's view: it has znodes for brokers in ZooKeeper mode alone."""
    side = truth.zookeeper
    view = zookeeper_view(side.partitions, [(*key, value) for key, value in side.entities.items()])
    brokers = {NodeId(n): ZkBroker(NodeId(n), 10, (where,), rack, 1) for n, (_, where, rack) in side.brokers.items()}
    return replace(view, brokers=brokers, pending=PendingWork(deletions=tuple(truth.deletions)))


def kraft_side(side: Side) -> KraftView:
    """KRaft's view: features stand as values there."""
    rows = [(*key, value) for key, value in side.entities.items() if key[0] != "feature"]
    features = {key[1]: int(value) for key, value in side.entities.items() if key[0] == "feature"}
    return replace(kraft_view(side.partitions, rows, map(registered, side.brokers.items())), features=features)


def registered(broker: tuple[int, tuple[str, str, str | None]]) -> Registration:
    """A registration of that mode."""
    number, (mode, where, rack) = broker
    return replace(registration(number, (), migrating=mode == "zookeeper"), endpoints=(where,), rack=rack)


def agreeing(random: Random) -> Truth:
    """A cluster in which both sides say the same; its size varies."""
    partitions = [
        Partition(f"t{topic}", topic_id(topic), number, [0, 1, 2], leader_epoch=random.randint(0, 9))
        for topic in range(random.randint(2, 4))
        for number in range(random.randint(1, 3))
    ]
    entities = {(kind, key, name): value for kind, keys, name, value in ENTITIES for key in keys}
    entities[PRODUCER] = "3000"
    brokers: dict[int, tuple[str, str, str | None]] = {n: ("zookeeper", endpoint(n), "r1") for n in range(3)}
    side = Side(partitions, entities, brokers)
    return Truth(side, deepcopy(side))


Plant = Callable[[Truth, int], set[Row]]  # the slot keeps two plants of one cluster apart


# -- partitions --------------------------------------------------------------------------------------------------
VALUES: Final[dict[str, object]] = {
    "topic_id": topic_id(77),
    "replicas": [0, 2, 1],
    "isr": [0, 1],
    "adding": [4],
    "removing": [2],
    "leader": 2,
    "leader_epoch": 44,
    "recovery_state": 1,
}


def first_of(side: Side, slot: int) -> Partition:
    """The slot's own partition: one of t0, or one of t1."""
    return next(partition for partition in side.partitions if partition.topic == f"t{slot}")


def bent_partition(name: str, where: str) -> Plant:
    """One field of one partition on one side."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        found = first_of(truth.side(where), slot)
        if name == "replicas":
            found.isr, found.leader = [0, 1, 2], 0
        setattr(found, name, VALUES[name])
        return {("partition", f"t{slot}-0", name, DIFFERS, "")}

    return plant


def lost_partition(where: str) -> Plant:
    """A partition that one side lacks."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        side = truth.side(where)
        side.partitions.remove(first_of(side, slot))
        return {("partition", f"t{slot}-0", "", ONLY[OTHER[where]], "")}

    return plant


def turned_sets(truth: Truth, slot: int) -> set[Row]:
    """Sets in another order are equal."""
    first_of(truth.kraft, slot).isr = [2, 0, 1]
    return set()


# -- everything else ---------------------------------------------------------------------------------------------
def entity_of(number: int, slot: int) -> EntityKey:
    """That kind's row of the slot."""
    kind, keys, name, _ = ENTITIES[number]
    return kind, keys[slot], name


def bent_entity(number: int, where: str) -> Plant:
    """Another value on one side."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        key = entity_of(number, slot)
        truth.side(where).entities[key] = "7"
        return {(*key, DIFFERS, "")}

    return plant


def lost_entity(number: int, where: str) -> Plant:
    """A row that one side lacks."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        key = entity_of(number, slot)
        del truth.side(where).entities[key]
        return {(*key, ONLY[OTHER[where]], "")}

    return plant


def accepted_entity(number: int) -> Plant:
    """Another value, accepted by its exact name."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        key = entity_of(number, slot)
        truth.kraft.entities[key] = "7"
        truth.accepted.append(AcceptedDifference(DIFFERS, *key, "why", TICKET, "2099-01-01"))
        return {(*key, DifferenceClass.ACCEPTED.value, TICKET)}

    return plant


def bent_broker(place: int, value: str, where: str) -> Plant:
    """A listener, or a rack, that one side has otherwise."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        found = list(truth.side(where).brokers[slot])
        found[place] = value
        truth.side(where).brokers[slot] = (str(found[0]), str(found[1]), found[2])
        return {("broker", str(slot), ("mode", "endpoints", "rack")[place], DIFFERS, "")}

    return plant


def lost_broker(where: str) -> Plant:
    """A broker in ZooKeeper mode that only one side knows."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        del truth.side(where).brokers[slot]
        return {("broker", str(slot), name, ONLY[OTHER[where]], "") for name in ("mode", "endpoints", "rack")}

    return plant


# -- rules, and what is nearly one ---------------------------------------------------------------------------------
def kraft_mode(truth: Truth, slot: int) -> set[Row]:
    """X-BROKER-01: it has left /brokers/ids."""
    truth.kraft.brokers[slot] = ("kraft", endpoint(slot), "r1")
    del truth.zookeeper.brokers[slot]
    return {("broker", str(slot), "mode", "EXPECTED", "X-BROKER-01")}


def kraft_mode_with_znode(truth: Truth, slot: int) -> set[Row]:
    """Nearly X-BROKER-01: its znode is still there."""
    truth.kraft.brokers[slot] = ("kraft", endpoint(slot), "r1")
    only = {("broker", str(slot), name, ONLY["zookeeper"], "") for name in ("endpoints", "rack")}
    return {("broker", str(slot), "mode", DIFFERS, ""), *only}


def pending_deletion(truth: Truth, slot: int) -> set[Row]:
    """X-TOPIC-01: a topic of this slot that is being deleted, with its configuration."""
    topic = f"doomed{slot}"
    truth.deletions.append(topic)
    return {(*row[:3], "EXPECTED", "X-TOPIC-01") for row in uncopied(truth, topic)}


def uncopied_topic(truth: Truth, slot: int) -> set[Row]:
    """Nearly X-TOPIC-01: nobody deletes it, here or by that name elsewhere."""
    truth.deletions.append(f"uncopied{slot}-not")
    return uncopied(truth, f"uncopied{slot}")


def uncopied(truth: Truth, topic: str) -> set[Row]:
    """A topic that ZooKeeper alone has."""
    truth.zookeeper.partitions.append(Partition(topic, topic_id(50), 0, [0, 1]))
    keys: list[EntityKey] = [("topic", topic, "topic_id"), ("topic-config", topic, "segment.ms")]
    truth.zookeeper.entities.update(dict.fromkeys(keys, "1"))
    return {(*key, ONLY["zookeeper"], "") for key in [*keys, ("partition", f"{topic}-0", "")]}


def doomed_in_kraft_alone(truth: Truth, slot: int) -> set[Row]:
    """Nearly X-TOPIC-01: the topic is being deleted, and the metadata alone has it."""
    topic = f"left{slot}"
    truth.deletions.append(topic)
    truth.kraft.entities["topic", topic, "topic_id"] = topic_id(51)
    return {("topic", topic, "topic_id", ONLY["kraft"], "")}


def feature(name: str, level: str, rule: str, where: str) -> Plant:
    """A feature of KRaft alone: that rule's where the metadata has it, a difference where ZooKeeper does."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        key = ("feature", name, "level")
        truth.side(where).entities[key] = level
        return {(*key, "EXPECTED", rule) if where == "kraft" else (*key, ONLY[where], "")}

    return plant


def producer_block(ahead: int) -> Plant:
    """X-PRODUCER-01 where ZooKeeper is ahead by exactly 1,000."""

    def plant(truth: Truth, slot: int) -> set[Row]:
        truth.zookeeper.entities[PRODUCER] = str(3000 + ahead)
        return {(*PRODUCER, "EXPECTED", "X-PRODUCER-01") if ahead == 1000 else (*PRODUCER, DIFFERS, "")}

    return plant


ALONE: Final[tuple[Plant, ...]] = (  # these have one object a cluster: never two of one group in a pair
    *(feature("metadata.version", "21", "X-FEATURE-01", where) for where in SIDES),
    *(feature("kraft.version", "1", "X-FEATURE-02", where) for where in SIDES),
    *map(producer_block, (1000, -1000, 999, 1001, 2000)),
)
PLANTS: Final[tuple[Plant, ...]] = (
    *(bent_partition(name, where) for name, where in product(VALUES, SIDES)),
    *map(lost_partition, SIDES),
    turned_sets,
    *(bent_entity(number, where) for number, where in product(range(len(ENTITIES)), SIDES) if number != 8),
    *(lost_entity(number, where) for number, where in product(range(len(ENTITIES)), SIDES)),
    *(accepted_entity(number) for number in (1, 4, 9)),
    *(bent_broker(1, "PLAINTEXT://10.9.9.9:1", where) for where in SIDES),
    *(bent_broker(2, "r9", where) for where in SIDES),
    *map(lost_broker, SIDES),
    kraft_mode,
    kraft_mode_with_znode,
    pending_deletion,
    uncopied_topic,
    doomed_in_kraft_alone,
)


def planted(random: Random, clusters: int) -> Iterator[tuple[Truth, set[Row]]]:
    """Every plant alone, in either slot; then random pairs."""
    singles: list[tuple[tuple[Plant, int], ...]] = [((plant, slot),) for plant in PLANTS for slot in (0, 1)]
    singles += [((plant, 0),) for plant in ALONE]
    for number in range(clusters):
        if number < len(singles):
            chosen = singles[number]
        else:
            chosen = ((random.choice(PLANTS), 0), (random.choice([*PLANTS, *ALONE]), 1))
        truth = agreeing(random)
        expected: set[Row] = set()
        for plant, slot in chosen:
            expected |= plant(truth, slot)
        yield truth, expected
