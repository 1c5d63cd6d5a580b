"""Proofs of the demo that inspect the lab outside of the engine: the metadata log, the folders, the clients."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from migrate.errors import LabProofFailed
from migrate.java.jars import Progress
from migrate.kafka.tls import cluster_config
from migrate.kraft.dump import file_lines
from migrate.kraft.files import find
from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.lab.seed_data import seed_of
from migrate.lab.topology import Topology
from migrate.model.ids import MIGRATING, UNASSIGNED
from migrate.model.inventory import Inventory
from migrate.model.outcome import Refused, Unknown, Verified
from migrate.model.world import Need
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.load import load_inventory
from migrate.steps.cleanup import ProveFinal

RECORDS: Final = 50
UNTOLD: Final = (str(MIGRATING), str(UNASSIGNED))
SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class SeededBefore:
    """One broker in the metadata log: replicas whose directory stood there before its KRaft registration."""

    broker: int
    registered_at: int  # offset of its first KRaft registration, -1 for none
    replicas: int
    assigned_before: int  # to a directory that this very registration lists
    elsewhere: int = 0  # LOST, or another's; topics made in hybrid are UNASSIGNED until the broker reports (KIP-858)
    later: int = 0  # not among `replicas`: of topics created after the look that policy drive sent from


@dataclass(frozen=True, slots=True)
class _Partition:
    """A partition in the metadata log: the offset of the record that created it, its replicas and their directories."""

    created: int
    replicas: list[int]
    directories: list[str]

    def of(self, broker: int) -> str:
        return self.directories[self.replicas.index(broker)]


def strays(topology: Topology, listed: Collection[str]) -> list[str]:
    """Folders that a broker renamed `-stray` (`TOPIC-PARTITION.UUID-stray`), of seeded topics and of these that exist.

    A topic that a client deletes while one of its brokers is down leaves such folders, too (KAFKA-15605): nobody
    lacks them.
    """
    topics = {*listed, *(topic.name for topic in seed_of(topology).topics)}
    return [
        str(path)
        for broker in topology.brokers
        for directory in broker.log_dirs
        for path in Path(directory).glob("*-stray")
        if path.name.rpartition(".")[0].rpartition("-")[0] in topics
    ]


def set_aside(lab: Lab) -> list[str]:
    """`strays` of a cluster that runs."""
    return strays(lab.topology, AdminClient(quiet_clients(lab.clients_inventory)).list_topics(timeout=SECONDS).topics)


def metadata_records(topology: Topology) -> Iterator[dict[str, Any]]:
    """Every record of the first controller's log segments, as the dump spells them."""
    folder = Path(topology.controllers[0].metadata_directory, "__cluster_metadata-0")
    for segment in find(folder).segments:
        for line in file_lines(segment.path, show_secrets=False):
            yield json.loads(line)


def seeded_before(
    records: Iterable[dict[str, Any]], brokers: Sequence[int], sent_from: Mapping[int, int]
) -> list[SeededBefore]:
    """For each broker: how many of its replicas had a real directory when it first registered as a KRaft broker.

    Replicas count that exist at the registration.  For a broker in `sent_from` (broker -> metadata offset of the look
    that policy drive sent from) only those created at or before that offset count: no request could name the others.
    """
    partitions: dict[tuple[str, int], _Partition] = {}
    found: dict[int, SeededBefore] = {}
    for record in records:
        data = record.get("data", {})
        match record["type"]:
            case "PARTITION_RECORD":
                _placed(partitions, data, record["offset"])
            case "PARTITION_CHANGE_RECORD":
                _changed(partitions, data)
            case "REMOVE_TOPIC_RECORD":
                for key in [key for key in partitions if key[0] == data["topicId"]]:
                    del partitions[key]
            case "REGISTER_BROKER_RECORD" if not data["isMigratingZkBroker"] and data["brokerId"] not in found:
                last = sent_from.get(data["brokerId"], record["offset"])
                found[data["brokerId"]] = _count(partitions.values(), data, record["offset"], last)
            case _:
                continue
    return [found.get(broker, SeededBefore(broker, -1, 0, 0)) for broker in brokers]


def _placed(partitions: dict[tuple[str, int], _Partition], data: dict[str, Any], offset: int) -> None:
    replicas = data["replicas"]
    directories = data.get("directories") or [str(MIGRATING)] * len(replicas)
    partitions[data["topicId"], data["partitionId"]] = _Partition(offset, replicas, directories)


def _changed(partitions: dict[tuple[str, int], _Partition], data: dict[str, Any]) -> None:
    key = (data["topicId"], data["partitionId"])
    if key not in partitions:
        raise LabProofFailed(f"the metadata log lacks its beginning: partition {key} is changed, never made")
    known = partitions[key]
    replicas, directories = data.get("replicas") or known.replicas, data.get("directories") or known.directories
    partitions[key] = _Partition(known.created, replicas, directories)


def _count(partitions: Iterable[_Partition], registration: dict[str, Any], offset: int, last: int) -> SeededBefore:
    """`last`: a partition created at a higher offset does not count."""
    broker, own = registration["brokerId"], set(registration.get("logDirs", ()))
    mine = [entry for entry in partitions if broker in entry.replicas]
    due = [entry.of(broker) for entry in mine if entry.created <= last]
    assigned = sum(directory in own for directory in due)
    elsewhere = sum(entry.of(broker) not in own and entry.of(broker) not in UNTOLD for entry in mine)
    return SeededBefore(broker, offset, len(due), assigned, elsewhere, len(mine) - len(due))


def works_without_zookeeper(lab: Lab) -> str:
    """Create a topic, restart a broker, write and read; LabProofFailed where something does not work."""
    inventory = lab.clients_inventory
    name = f"after-zookeeper-{secrets.token_hex(4)}"
    admin = AdminClient(quiet_clients(inventory))
    admin.create_topics([NewTopic(name, 3, min(3, len(lab.topology.brokers)))])[name].result(SECONDS)
    broker, producer = lab.topology.brokers[0], steady_producer(quiet_clients(inventory))
    lab.supervisor.stop(broker.name, SECONDS)
    lab.supervisor.start(broker.name)
    ready.wait_until("the restarted broker", lambda: ready.brokers_agree(lab.topology), lab.supervisor, [broker.name])
    write_records(producer, name)
    read = read_records(quiet_clients(inventory), name)
    if read != RECORDS:
        raise LabProofFailed(f"{read} of {RECORDS} records came back from {name}", where=str(lab.topology.directory))
    return f"topic {name} created, broker {broker.id} restarted, {read} records written and read"


def starts_from_its_files(lab: Lab, progress: Progress) -> str:
    """Stop every broker and controller, start them all at once, and prove the cluster whole, as its cleanup did.

    Raises:
        LabNotReady: a process died, or a partition did not become whole.
        LabProofFailed: what the run proved at its end does not hold any more.
    """
    began = time.monotonic()
    lab.stop_nodes(progress)
    stopped = time.monotonic()
    lab.up(progress)
    evidence = _proven_again(lab)
    name = f"started-again-{secrets.token_hex(4)}"
    admin = AdminClient(quiet_clients(lab.clients_inventory))
    admin.create_topics([NewTopic(name, 3, min(3, len(lab.topology.brokers)))])[name].result(SECONDS)
    write_records(steady_producer(quiet_clients(lab.clients_inventory)), name)
    read = read_records(quiet_clients(lab.clients_inventory), name)
    if read != RECORDS:
        raise LabProofFailed(f"{read} of {RECORDS} records came back from {name}", where=str(lab.topology.directory))
    nodes, now = len(lab.topology.brokers) + len(lab.topology.controllers), time.monotonic()
    times = f"stopped in {stopped - began:.0f} s, whole again {now - stopped:.0f} s later"
    return f"{nodes} processes {times}; {'; '.join(evidence)}; {read} records written and read"


def _proven_again(lab: Lab) -> tuple[str, ...]:
    """The evidence of the run's last proof, repeated until it holds, without ZooKeeper."""
    step, deadline = ProveFinal(), time.monotonic() + SECONDS
    needs = step.proof_needs - {Need.SPARK_LEDGER} | {Need.LEDGER}
    inventory = replace(load_inventory(lab.inventory_path), zookeeper="")
    observer = ClusterObserver(Sources(inventory, Unknown("not needed"), None))
    try:
        while not isinstance(found := step.verify(observer.observe(needs, {})), Verified):
            if isinstance(found, Refused) or time.monotonic() > deadline:
                raise LabProofFailed(f"behind the start of everything: {found}", where=str(lab.topology.directory))
            threading.Event().wait(0.3)
        return found.evidence
    finally:
        observer.close()


def quiet_clients(inventory: Inventory) -> dict[str, Any]:
    """confluent-kafka's settings for the lab's administrator."""
    # librdkafka would write each lost connection to stderr, and a broker is restarted here; what fails is raised
    return {**cluster_config(inventory), "log_level": 0}


def steady_producer(config: dict[str, Any]) -> Producer:
    """An idempotent one: it asks for its id at once, in turns of half a second, and writes when it has it."""
    # a broker that is restarted meanwhile is not waited for longer than it takes
    return Producer({**config, "enable.idempotence": True, "acks": "all", "reconnect.backoff.max.ms": 200})


def write_records(producer: Producer, topic: str) -> None:
    """RECORDS records into three partitions, each acknowledged by all; LabProofFailed otherwise."""
    for number in range(RECORDS):
        producer.produce(topic, str(number).encode(), partition=number % 3)
    left = producer.flush(SECONDS)
    if left:
        raise LabProofFailed(f"{left} of {RECORDS} records were not acknowledged", where=topic)


def read_records(config: dict[str, Any], topic: str) -> int:
    """How many of them can be read; it stops after RECORDS."""
    consumer = Consumer(
        {**config, "group.id": f"{topic}-proof", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    read = 0
    try:
        while read < RECORDS:
            message = consumer.poll(SECONDS)
            if message is None:
                return read
            if message.error() is None:
                read += 1
        return read
    finally:
        consumer.close()
