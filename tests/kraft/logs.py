"""Small metadata logs and snapshots for tests, and the captured log of a real migration."""

from __future__ import annotations

import gzip
from pathlib import Path

from migrate.protocol.batches import split
from migrate.protocol.loader import Struct, Values
from migrate.protocol.records import PARTITION, PARTITION_CHANGE, REGISTER_BROKER, TOPIC, decode_control, decode_record
from tests.testing.encoding import build, encode_control, encode_record

DATA = Path(__file__).parents[1] / "data" / "metadata"

# how much of the captured log was written when each stage was reached, in bytes and in metadata records
STAGES = {
    "controllers-up": (11975, 163),
    "hybrid-after-copy": (40713, 654),
    "first-broker-kraft": (73428, 1218),
    "all-brokers-kraft": (137405, 2320),
    "finalized": (142911, 2392),
}

T1, T2 = "FgyzRFHJRC2kVDVxAIvi7A", "4tsyDgjgR4W6aLHiZ_kuDQ"
D1, D2, D3 = "KTrqWH4lRM-UvsdWOyCZfw", "dK02AL0ITg6j5LTzzYxpMw", "b1X1a2lVTUuEZKTmypRKzw"
Entry = tuple[Struct, Values] | tuple[Struct, Values, int]


def captured_log() -> bytes:
    """The metadata log that a real cluster wrote from its first controller to finalized KRaft."""
    return gzip.decompress((DATA / "finalized.log.gz").read_bytes())


def captured_dump() -> list[str]:
    """What Kafka's own dump tool says of it: the payload of each metadata record."""
    return gzip.decompress((DATA / "finalized.dump.gz").read_bytes()).decode().splitlines()


def batch(*entries: Entry, base: int = 0, epoch: int = 1) -> bytes:
    """One batch of metadata records; the version is the newest unless an entry names one."""
    values = []
    for table, fields, *version in entries:
        newest = version[0] if version else min(table.versions.high, 1 if table in NEWER_THAN_3_9 else 99)
        values.append((None, encode_record(table, newest, fields)))
    return build(base, epoch, values)


NEWER_THAN_3_9 = {PARTITION, PARTITION_CHANGE}  # version 2 is written from 4.0 on only


def log(*entries: Entry, base: int = 0, epoch: int = 1) -> bytes:
    """A log of one batch a record: what lies at which offset is plain to see."""
    return b"".join(batch(entry, base=base + index, epoch=epoch) for index, entry in enumerate(entries))


def leader_change(base: int, epoch: int, leader: int = 3000, voters: tuple[int, ...] = ()) -> bytes:
    """The control batch with which each epoch begins."""
    named = [{"voterId": voter} for voter in voters or (leader,)]
    values = {"version": 0, "leaderId": leader, "voters": named, "grantingVoters": []}
    return build(base, epoch, [encode_control("LEADER_CHANGE", values)], control=True)


def snapshot(*entries: Entry, epoch: int = 3) -> bytes:
    """A whole snapshot: header, data, footer."""
    header = encode_control("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 7})
    footer = encode_control("SNAPSHOT_FOOTER", {"version": 0})
    return (
        build(0, epoch, [header], control=True)
        + (batch(*entries, base=1, epoch=epoch) if entries else b"")
        + build(1 + len(entries), epoch, [footer], control=True)
    )


def topic(name: str, topic_id: str) -> Entry:
    """A TopicRecord."""
    return TOPIC, {"name": name, "topicId": topic_id}


def partition(topic_id: str, number: int, replicas: list[int], directories: list[str]) -> Entry:
    """A PartitionRecord of version 1 with all replicas in sync and the first as leader."""
    return (
        PARTITION,
        {
            "partitionId": number,
            "topicId": topic_id,
            "replicas": replicas,
            "isr": replicas,
            "leader": replicas[0],
            "leaderEpoch": 4,
            "partitionEpoch": 9,
            "directories": directories,
        },
    )


def change(topic_id: str, number: int, **fields: object) -> Entry:
    """A PartitionChangeRecord."""
    return PARTITION_CHANGE, {"partitionId": number, "topicId": topic_id, **fields}


def register(broker: int, epoch: int, log_dirs: list[str], **fields: object) -> Entry:
    """A RegisterBrokerRecord with one endpoint."""
    return (
        REGISTER_BROKER,
        {
            "brokerId": broker,
            "brokerEpoch": epoch,
            "incarnationId": T1,
            "endPoints": [{"name": "INTERNAL", "host": "127.0.0.1", "port": 9000 + broker, "securityProtocol": 0}],
            "rack": None,
            "fenced": True,
            "logDirs": log_dirs,
            **fields,
        },
    )


def rewritten(raw: bytes, where: str) -> bytes:
    """All batches decoded and encoded again: control records, metadata records, frames, batches."""
    rebuilt = bytearray()
    for found in split(raw, where=where):
        records: list[tuple[bytes | None, bytes | None]] = []
        for _, key, value in found.records():
            if found.control:
                name, _, _, values = decode_control(key, value)
                records.append(encode_control(name, values))
            else:
                records.append((None, encode_record(*decode_record(value))))
        rebuilt += build(found.base_offset, found.epoch, records, control=found.control, timestamp=found.timestamp)
    return bytes(rebuilt)
