"""What a seeded lab contains: every kind of metadata that a migration must copy, in several forms each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrate.errors import LabFolderNotOurs, LabMissing
from migrate.hosts.files import replace_file
from migrate.lab.topology import SEED_FILE, Topology
from migrate.model import strict_json
from migrate.model.codec import NotDecodable, decode, encode


@dataclass(frozen=True, slots=True)
class SeedTopic:
    name: str
    partitions: int
    replication: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeedQuota:
    """Quotas of one entity: (`user` | `client-id` | `ip`, name or None for the default) pairs, and the limits."""

    entity: tuple[tuple[str, str | None], ...]
    limits: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SeedConfig:
    """A dynamic configuration: resource `topic` or `broker` ("" names the default of all brokers)."""

    kind: str
    name: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class SeedAcl:
    """An ACL: resource type, name, pattern, principal, host, operation, permission, in Kafka's own words."""

    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class SeedToken:
    """A delegation token: users, without `User:`."""

    owner: str
    renewers: tuple[str, ...]


DURABLE: Final = {"min.insync.replicas": "2"}
# the load of the demo writes these
LOAD_TOPICS: Final = ("load-orders", "load-clicks")

TOPICS: Final = (
    SeedTopic("orders.v1_eu-west", 12, 3, DURABLE | {"retention.ms": "3600000", "segment.bytes": "1048576"}),
    SeedTopic("payments", 10, 3, DURABLE | {"compression.type": "zstd"}),
    SeedTopic("compacted_topic", 8, 3, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.2"}),
    *(SeedTopic(f"events-{number:02d}", 6, 3) for number in range(8)),
    *(SeedTopic(f"clicks-{number:02d}", 5, 2, {"retention.bytes": str(10**8 + number)}) for number in range(4)),
    SeedTopic("a.b.c_d", 5, 2),
    SeedTopic("UPPER-case.Topic_1", 5, 2, {"message.timestamp.type": "LogAppendTime"}),
    # one replica: gone for as long as its broker restarts; playbooks accept that by name
    SeedTopic("single-ledger", 1, 1),
    SeedTopic("single-audit", 6, 1, {"cleanup.policy": "compact,delete"}),
    SeedTopic(LOAD_TOPICS[0], 6, 3, DURABLE),
    SeedTopic(LOAD_TOPICS[1], 6, 2),
)

CONFIGS: Final = (
    SeedConfig("topic", "events-03", "max.message.bytes", "2000000"),
    SeedConfig("topic", "payments", "max.compaction.lag.ms", "86400000"),
    SeedConfig("broker", "1", "log.cleaner.backoff.ms", "14000"),
    SeedConfig("broker", "2", "num.replica.fetchers", "2"),
    SeedConfig("broker", "", "message.max.bytes", "1300000"),
    SeedConfig("broker", "", "log.cleaner.io.buffer.size", "524289"),
)
# of type password: encoded in ZooKeeper, in clear text in KRaft; its value is a secret of the lab
PASSWORD_CONFIG: Final = ("0", "listener.name.client.ssl.keystore.password")

QUOTAS: Final = (
    SeedQuota((("user", "alice"),), {"producer_byte_rate": 1_000_000.0, "consumer_byte_rate": 2_000_000.0}),
    SeedQuota((("user", None),), {"request_percentage": 1500.0}),
    SeedQuota((("client-id", "batch 1/x"),), {"producer_byte_rate": 500_000.0}),
    SeedQuota((("client-id", None),), {"consumer_byte_rate": 90_000_000.0}),
    SeedQuota((("user", "bob@example.org"), ("client-id", "app")), {"consumer_byte_rate": 123_456.0}),
    SeedQuota((("user", "bob@example.org"), ("client-id", None)), {"controller_mutation_rate": 12.5}),
    SeedQuota((("user", None), ("client-id", None)), {"producer_byte_rate": 77_700_000.0}),
    SeedQuota((("ip", "10.0.0.1"),), {"connection_creation_rate": 50.0}),
    SeedQuota((("ip", None),), {"connection_creation_rate": 5000.0}),
)

SCRAM_USERS: Final = (
    ("alice", "SCRAM-SHA-256", 4096),
    ("carol", "SCRAM-SHA-512", 8192),
    ("alice", "SCRAM-SHA-512", 4096),
)

ACLS: Final = (
    SeedAcl("topic", "orders.v1_eu-west", "literal", "User:alice", "*", "read", "allow"),
    SeedAcl("topic", "orders.v1_eu-west", "literal", "User:alice", "*", "describe", "allow"),
    SeedAcl("group", "orders-readers", "literal", "User:alice", "*", "read", "allow"),
    SeedAcl("topic", "events-", "prefixed", "User:bob", "*", "write", "allow"),
    SeedAcl("topic", "events-", "prefixed", "User:bob", "127.0.0.1", "describe", "allow"),
    SeedAcl("transactional_id", "batch-", "prefixed", "User:bob", "*", "write", "allow"),
    SeedAcl("group", "*", "literal", "User:carol", "10.0.0.1", "read", "deny"),
    SeedAcl("cluster", "kafka-cluster", "literal", "User:carol", "*", "describe", "allow"),
)

# asked for by the administrator: an owner is another user than the requester, and has to be quoted in ZooKeeper
TOKENS: Final = (SeedToken("bob@example.org", ("alice", "carol")), SeedToken("admin", ()))

RECORDS_PER_PARTITION: Final = 5
RECORD_BYTES: Final = 1000
TRANSACTION_TOPIC: Final = "payments"
TRANSACTIONAL_ID: Final = "batch-seed"
GROUPS: Final = {"orders-readers": ("orders.v1_eu-west",), "click-counters": ("clicks-00", "clicks-01")}

ROOM: Final = 320_000_000  # bytes that a seed may take: the names that a large bundle's lab does not have
LONGEST: Final = 249  # characters of a name that are shown


@dataclass(frozen=True, slots=True)
class Change:
    """How a lab differs from the cluster of its bundle, and the entries that it is about."""

    what: str
    about: tuple[str, ...] = ()

    def text(self, most: int | None = None) -> str:
        """With all names, or so many of them."""
        more = len(self.about) - len(self.about[:most])
        names = ", ".join(name[:LONGEST] for name in self.about[:most]) + (f" and {more:,} more" if more else "")
        return f"{self.what}: {names}" if names else self.what


@dataclass(frozen=True, slots=True)
class Seed:
    """What `lab seed` puts into a lab: the seed of every lab, or the shape of a bundle (see from_bundle)."""

    topics: tuple[SeedTopic, ...] = TOPICS
    configs: tuple[SeedConfig, ...] = CONFIGS
    quotas: tuple[SeedQuota, ...] = QUOTAS
    users: tuple[tuple[str, str, int], ...] = SCRAM_USERS
    acls: tuple[SeedAcl, ...] = ACLS
    tokens: tuple[SeedToken, ...] = TOKENS
    password: bool = True  # is PASSWORD_CONFIG set?
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: dict(GROUPS))
    transaction_topic: str = TRANSACTION_TOPIC
    changes: tuple[Change, ...] = ()


def replicas(topics: Iterable[SeedTopic] = TOPICS) -> int:
    return sum(topic.partitions * topic.replication for topic in topics)


def keep_seed(topology: Topology, seed: Seed) -> None:
    """Write DIR/seed.json."""
    replace_file(str(topology.folder(SEED_FILE)), (json.dumps(encode(seed), indent=1) + "\n").encode())


def seed_of(topology: Topology) -> Seed:
    """What that lab is seeded with: DIR/seed.json of a lab from a bundle, else what every lab gets.

    Raises:
        LabMissing, LabFolderNotOurs: the lab is from a bundle, and the file is not there, or not readable.
    """
    if not topology.bundled:
        return Seed()
    path = topology.folder(SEED_FILE)
    try:
        return decode(Seed, strict_json.loads(path.read_bytes(), room=ROOM, surrogates=True), "seed")  # type: ignore[no-any-return] # by its first argument
    except FileNotFoundError as error:
        another = "make another with `kraft-migrate lab up --from-bundle FILE --dir DIR`"
        raise LabMissing("the shape of this lab is gone", where=str(path), next_step=another) from error
    except (OSError, NotDecodable, strict_json.NotStrictJson) as error:
        raise LabFolderNotOurs(f"{SEED_FILE} cannot be read", where=str(path), why=str(error)) from error
