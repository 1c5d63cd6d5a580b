"""Things of every kind, made while a migration is half way: what a rollback, and a second migration, must not lose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from confluent_kafka.admin import AdminClient

from migrate.errors import LabProofFailed
from migrate.lab import ready, seed
from migrate.lab.cluster import Lab
from migrate.lab.proofs import RECORDS, SECONDS, quiet_clients, read_records, steady_producer, write_records
from migrate.lab.seed_data import DURABLE, SeedAcl, SeedQuota, SeedTopic
from migrate.zookeeper import layout
from migrate.zookeeper.backup import BackupTree

PREFIX: Final = "made-"
BROKER_CONFIG: Final = ("background.threads", "3")  # at most double what it is
TOPIC_CONFIG: Final = ("retention.ms", "7200001")
PARTITIONS: Final = 24  # enough for some whose first changes KRaft makes at once, so that dual write writes them once


def name_of(stage: str) -> str:
    """Topic, user and client id that are made at that stage."""
    return f"{PREFIX}{stage}"


def make(lab: Lab, stage: str) -> str:
    """A topic with records and a dynamic configuration, a broker's configuration, quotas, a SCRAM user, ACLs.

    Called again, nothing is made twice but the records, of which the first RECORDS count.  Answers what was made.

    Raises:
        SeedRefused, LabProofFailed: the cluster refused something.
    """
    name, topology = name_of(stage), lab.topology
    admin = AdminClient(quiet_clients(lab.inventory))
    seed.create_topics(admin, (SeedTopic(name, PARTITIONS, 3, DURABLE),))
    names = [broker.name for broker in topology.brokers]
    ready.wait_until("waiting for the new topic", lambda: ready.brokers_agree(topology), lab.supervisor, names)
    broker, port = str(topology.brokers[-1].id), _controller_port(lab, admin)
    wanted = {("topic", name): dict([TOPIC_CONFIG]), ("broker", broker): dict([BROKER_CONFIG])}
    seed.alter_configs(topology, wanted, port)
    seed.alter_quotas(
        topology,
        (
            SeedQuota((("user", name),), {"producer_byte_rate": 1048577.0}),
            SeedQuota((("client-id", name),), {"consumer_byte_rate": 1048579.0}),
        ),
        port,
    )
    seed.create_users(admin, ((name, "SCRAM-SHA-256", 4096),))
    seed.create_acls(
        admin,
        (
            SeedAcl("topic", name, "literal", f"User:{name}", "*", "read", "allow"),
            SeedAcl("topic", f"{name}-", "prefixed", f"User:{name}", "*", "write", "allow"),
        ),
    )
    write_records(steady_producer(quiet_clients(lab.inventory)), name)
    return f"topic {name} with {RECORDS} records, 2 configurations, 2 quotas, a SCRAM user, 2 ACLs"


def _controller_port(lab: Lab, admin: AdminClient) -> int:
    """The INTERNAL port of the broker that the cluster names as controller.

    Half of the first roll is a trap: a broker in migration mode forwards such requests, and a controller in plain
    ZooKeeper mode closes the connection on them ("sent an `Envelope` request even though forwarding has not been
    enabled", seen), until the client's time is over.
    """
    named = admin.list_topics(timeout=SECONDS).controller_id
    found = [broker.internal_port for broker in lab.topology.brokers if broker.id == named]
    return found[0] if found else lab.topology.brokers[0].internal_port


def left_out(tree: BackupTree, stage: str, broker: int) -> Iterator[str]:
    """What of it a tree of ZooKeeper lacks: a backup, or the live one."""
    name = name_of(stage)
    wanted = {
        f"topic {name}": (f"{layout.TOPICS}/{name}", b'"topic_id"'),
        f"configuration of topic {name}": (f"{layout.TOPIC_CONFIGS}/{name}", TOPIC_CONFIG[1].encode()),
        f"configuration of broker {broker}": (f"{layout.BROKER_CONFIGS}/{broker}", BROKER_CONFIG[0].encode()),
        f"quota of user {name}": (f"{layout.USER_CONFIGS}/{name}", b"producer_byte_rate"),
        f"SCRAM user {name}": (f"{layout.USER_CONFIGS}/{name}", b"SCRAM-SHA-256"),
        f"quota of client id {name}": (f"{layout.CLIENT_CONFIGS}/{name}", b"consumer_byte_rate"),
        f"ACL of topic {name}": (f"{layout.LITERAL_ACLS}/Topic/{name}", name.encode()),
        f"ACL of topics {name}-*": (f"{layout.PREFIXED_ACLS}/Topic/{name}-", name.encode()),
    }
    for what, (path, part) in wanted.items():
        data = getattr(tree.znodes.get(path), "data", None)
        if not data or part not in data:
            yield what


def require_records(lab: Lab, stage: str) -> str:
    """Read the topic's records; LabProofFailed where one is missing."""
    name = name_of(stage)
    read = read_records(quiet_clients(lab.inventory), name)
    if read < RECORDS:
        raise LabProofFailed(f"{read} of {RECORDS} records came back from {name}", where=str(lab.topology.directory))
    return f"{read} records of {name} read"
