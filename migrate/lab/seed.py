"""Fills a lab: topics, configurations, quotas, users, ACLs, tokens, records, a transaction, consumer groups.

Ordinary clients do what they can, over the CLIENT listener with a password; client quotas go by our own codec, since
confluent-kafka has no call for them.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from migrate.errors import SeedRefused
from migrate.hosts.files import replace_file
from migrate.java.jars import Progress
from migrate.kafka.connection import Connection
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import cluster_config
from migrate.lab import seed_data as data
from migrate.lab.configure import KEYSTORE, clients_inventory, inner_access, secret_path
from migrate.lab.ready import brokers_agree, wait_until
from migrate.lab.supervisor import Supervisor
from migrate.lab.tokens import create_tokens
from migrate.lab.topology import Topology
from migrate.model.inventory import SecretFile
from migrate.model.words import plural
from migrate.protocol.messages import ALTER_CLIENT_QUOTAS, INCREMENTAL_ALTER_CONFIGS

SEEDED_FILE: Final = "seeded.json"
CALL_SECONDS: Final = 60.0
AT_ONCE: Final = 50  # topics in a request
_TOPIC: Final = 2  # ConfigResource.Type
_BROKER: Final = 4
_SET: Final = 0  # AlterConfigOp.OpType
_QUIET: Final = {"log_level": 3}  # librdkafka logs retries as warnings on stderr


@dataclass(frozen=True, slots=True)
class Seeded:
    """What was created in the lab, in numbers."""

    topics: int
    replicas: int
    configs: int
    quotas: int
    scram: int
    acls: int
    records: int
    groups: int
    tokens: int = 0  # of delegation


def seeded(topology: Topology) -> Seeded | None:
    """What an earlier, finished seed created; None without one."""
    path = topology.folder(SEEDED_FILE)
    return Seeded(**json.loads(path.read_bytes())) if path.exists() else None


def settings_for(topology: Topology) -> dict[str, Any]:
    """confluent-kafka's settings for the lab's administrator; they hold the password."""
    return cluster_config(clients_inventory(topology))


def seed_cluster(topology: Topology, progress: Progress) -> Seeded:
    """Create everything in the cluster; nothing where a seed has finished before.

    Raises:
        SeedRefused: the cluster refused something.
    """
    done = seeded(topology)
    if done is not None:
        progress("seeded already")
        return done
    seed = data.seed_of(topology)
    settings = settings_for(topology)
    admin = AdminClient(settings)
    for begin in range(0, len(seed.topics), AT_ONCE):
        create_topics(admin, seed.topics[begin : begin + AT_ONCE])
    replicas = data.replicas(seed.topics)
    progress(f"{len(seed.topics)} topics, {replicas} replicas")
    set_configs(topology, seed)
    alter_quotas(topology, seed.quotas)
    create_users(admin, seed.users)
    create_acls(admin, seed.acls)
    progress(f"configurations, {len(seed.quotas)} quotas, {len(seed.users)} SCRAM credentials, {len(seed.acls)} ACLs")
    tokens = create_tokens(topology, seed.tokens)
    progress(f"{tokens} delegation tokens")
    records = produce(settings, seed.topics)
    commit_transaction(settings, seed.transaction_topic)
    for group, topics in seed.groups.items():
        read_as_group(settings, group, topics)
    progress(f"{records} records, a transaction, {plural(len(seed.groups), 'consumer group')}")
    names = [broker.name for broker in topology.brokers]
    wait_until("waiting for whole partitions", lambda: brokers_agree(topology), Supervisor(topology.processes), names)
    found = Seeded(
        topics=len(seed.topics),
        replicas=replicas,
        configs=len(seed.configs) + seed.password,
        quotas=len(seed.quotas),
        scram=len(seed.users),
        acls=len(seed.acls),
        records=records,
        groups=len(seed.groups),
        tokens=tokens,
    )
    replace_file(str(topology.folder(SEEDED_FILE)), (json.dumps(asdict(found), indent=1) + "\n").encode())
    return found


# -- what each part is -------------------------------------------------------------------------------------------
def create_topics(admin: AdminClient, topics: Iterable[data.SeedTopic]) -> None:
    """Create topics in one request; existing ones stay unchanged."""
    wanted = [NewTopic(t.name, t.partitions, t.replication, config=dict(t.configs)) for t in topics]
    futures = admin.create_topics(wanted, operation_timeout=CALL_SECONDS)
    _settle("create topic", futures, allowed=(KafkaError.TOPIC_ALREADY_EXISTS,))


def set_configs(topology: Topology, seed: data.Seed) -> None:
    """Dynamic configurations of topics and brokers, of all brokers at once, and one of type password.

    By our own codec: librdkafka refuses the empty name that means all brokers.  Each broker sets its own.
    """
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    if seed.password:
        broker, key = data.PASSWORD_CONFIG
        wanted["broker", broker] = {key: read_secret(SecretFile(str(secret_path(topology, KEYSTORE))))}
    for config in seed.configs:
        wanted.setdefault((config.kind, config.name), {})[config.key] = config.value
    alter_configs(topology, wanted)


def alter_configs(
    topology: Topology, wanted: Mapping[tuple[str, str], Mapping[str, str]], port: int | None = None
) -> None:
    """(`topic` | `broker`, name) -> what to set there; waits until a topic that was just made is known.

    `port` is the INTERNAL one of the broker that is asked for everything but a broker's own: the first one's, if none.
    """
    ports = {str(node.id): node.internal_port for node in topology.brokers}
    watched, names = Supervisor(topology.processes), [node.name for node in topology.brokers]
    for (kind, name), values in wanted.items():
        resource = {
            "resourceType": _TOPIC if kind == "topic" else _BROKER,
            "resourceName": name,
            "configs": [{"name": key, "configOperation": _SET, "value": value} for key, value in values.items()],
        }
        asked = ports.get(name if kind == "broker" else "", port or topology.brokers[0].internal_port)
        what = f"configuration {', '.join(values)} of {kind} {name!r}"
        wait_until(f"setting {what}", partial(_set_config, topology, asked, resource, what), watched, names)


def _set_config(topology: Topology, port: int, resource: Mapping[str, Any], what: str) -> str:
    with Connection(f"{topology.host}:{port}", inner_access(topology)) as connection:
        body = {"resources": [resource], "validateOnly": False}
        answer = connection.call(INCREMENTAL_ALTER_CONFIGS, body, seconds=CALL_SECONDS)
    return not_yet(answer["responses"], what)


def not_yet(responses: Iterable[Mapping[str, Any]], what: str) -> str:
    """What is still missing, "" for nothing: a topic is made by one broker, and the others learn of it later (pure).

    Raises:
        SeedRefused: any other error.
    """
    for entry in responses:
        if entry["errorCode"] == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return str(entry["errorMessage"])
        if entry["errorCode"]:
            raise SeedRefused(f"{what} refused", why=f"{entry['errorCode']}: {entry['errorMessage']}")
    return ""


def alter_quotas(
    topology: Topology, quotas: Iterable[data.SeedQuota], port: int | None = None, *, remove: bool = False
) -> None:
    """Set, or remove, client quotas of users, client ids and IPs, with their defaults (AlterClientQuotas, KIP-546)."""
    entries = [
        {
            "entity": [{"entityType": kind, "entityName": name} for kind, name in quota.entity],
            "ops": [{"key": key, "value": value, "remove": remove} for key, value in quota.limits.items()],
        }
        for quota in quotas
    ]
    with Connection(
        f"{topology.host}:{port or topology.brokers[0].internal_port}", inner_access(topology)
    ) as connection:
        answer = connection.call(ALTER_CLIENT_QUOTAS, {"entries": entries, "validateOnly": False}, seconds=CALL_SECONDS)
    for entry in answer["entries"]:
        if entry["errorCode"]:
            raise SeedRefused(
                f"quota of {entry['entity']} refused", why=f"{entry['errorCode']}: {entry['errorMessage']}"
            )


def create_users(admin: AdminClient, users: Iterable[tuple[str, str, int]]) -> None:
    """Create SCRAM credentials of users that no client uses."""
    mechanisms = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
    for user, mechanism, iterations in users:  # one a call: a user may stand in a request only once
        info = ScramCredentialInfo(mechanisms[mechanism], iterations)
        wanted = UserScramCredentialUpsertion(user, info, secrets.token_bytes(24))
        _settle("create user", admin.alter_user_scram_credentials([wanted], request_timeout=CALL_SECONDS))


def create_acls(admin: AdminClient, acls: Iterable[data.SeedAcl]) -> None:
    bindings = [
        AclBinding(
            _RESOURCES[acl.resource],
            acl.name,
            ResourcePatternType.LITERAL if acl.pattern == "literal" else ResourcePatternType.PREFIXED,
            acl.principal,
            acl.host,
            getattr(AclOperation, acl.operation.upper()),
            getattr(AclPermissionType, acl.permission.upper()),
        )
        for acl in acls
    ]
    if bindings:  # librdkafka refuses none
        _settle("create ACL", admin.create_acls(bindings, request_timeout=CALL_SECONDS))


def produce(settings: Mapping[str, Any], topics: Iterable[data.SeedTopic]) -> int:
    """Records with keys into every partition, idempotent and acknowledged by all; how many."""
    producer = Producer({**settings, **_QUIET, "enable.idempotence": True, "linger.ms": 20})
    failures: list[str] = []
    count = 0

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            failures.append(str(error))

    for topic in topics:
        for partition in range(topic.partitions):
            for number in range(data.RECORDS_PER_PARTITION):
                value = secrets.token_bytes(data.RECORD_BYTES)
                producer.produce(topic.name, value, key=f"key-{number}", partition=partition, on_delivery=delivered)
                count += 1
        producer.poll(0)
    left = producer.flush(CALL_SECONDS)
    if left or failures:
        raise SeedRefused(
            f"{left + len(failures)} of {count} records were not acknowledged", why="; ".join(failures[:3])
        )
    return count


def commit_transaction(settings: Mapping[str, Any], topic: str) -> None:
    """One transaction: it makes __transaction_state, and takes a block of producer ids."""
    producer = Producer({**settings, **_QUIET, "transactional.id": data.TRANSACTIONAL_ID})
    try:
        producer.init_transactions(CALL_SECONDS)
        producer.begin_transaction()
        producer.produce(topic, b"committed", partition=0)
        producer.commit_transaction(CALL_SECONDS)
    except KafkaException as error:
        raise SeedRefused("the transaction was refused", why=str(error)) from error


def read_as_group(settings: Mapping[str, Any], group: str, topics: Iterable[str]) -> None:
    """A consumer group that has read something and committed where it stands."""
    consumer = Consumer(
        {**settings, **_QUIET, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    deadline = time.monotonic() + CALL_SECONDS
    try:
        consumer.subscribe(list(topics))
        read = 0
        while read < data.RECORDS_PER_PARTITION * 2:
            if time.monotonic() > deadline:
                raise SeedRefused(f"group {group} read {read} records in {CALL_SECONDS:.0f} s")
            read += len(consumer.consume(100, 0.2))
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        raise SeedRefused(f"group {group} was refused", why=str(error)) from error
    finally:
        consumer.close()


# -- helpers -----------------------------------------------------------------------------------------------------
_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.BROKER,  # librdkafka's name of the resource Cluster
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}


def _settle(what: str, futures: Mapping[Any, Future[Any]], allowed: Iterable[int] = ()) -> None:
    """Wait for every future; SeedRefused for the first that fails (with its name, never a value)."""
    for key, future in futures.items():
        try:
            future.result(CALL_SECONDS)
        except KafkaException as error:
            reason = error.args[0]
            if reason.code() not in allowed:
                raise SeedRefused(f"{what} {key}: {reason.name()}", why=reason.str()) from error
