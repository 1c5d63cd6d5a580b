"""A client of the cluster on a bed's hosts: `python -m tests.bed.client WORD...`, run where the hosts have names.

`seed`: topics, a SCRAM user; `write WORD COUNT`: acknowledged records into `orders`; `read`: all of them, a line each;
`whole SECONDS`: waits until every partition has a leader and its whole ISR, and prints what is not so at the end.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

BROKERS: Final = "kafka-1:9091,kafka-2:9091,kafka-3:9091"
TOPIC: Final = "orders"
PARTITIONS: Final = 12
SECONDS: Final = 60.0


def seed(admin: AdminClient) -> None:
    """`orders` with three replicas, `single` with one, and a SCRAM user."""
    orders = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=3, config={"retention.ms": "86400000"})
    for future in admin.create_topics([orders, NewTopic("single", num_partitions=3, replication_factor=1)]).values():
        future.result(SECONDS)
    told = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    wanted = UserScramCredentialUpsertion("alice", told, password=b"s3cr3t-canary")
    for future in admin.alter_user_scram_credentials([wanted]).values():
        future.result(SECONDS)


def write(word: str, count: int) -> None:
    """Records `WORD-0` and on, each acknowledged by every replica in sync."""
    refused: list[str] = []

    def answered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(str(error))

    producer = Producer({"bootstrap.servers": BROKERS, "acks": "all", "enable.idempotence": True})
    for number in range(count):
        producer.produce(TOPIC, f"{word}-{number}", on_delivery=answered)
        producer.poll(0)
    left = producer.flush(SECONDS)
    if left or refused:
        sys.exit(f"{left} not acknowledged; refused: {refused[:3]}")


def read() -> None:
    """Every record of `orders`, from each partition's first to its end of now."""
    consumer = Consumer({"bootstrap.servers": BROKERS, "group.id": "bed", "enable.auto.commit": False})
    try:
        for partition in range(PARTITIONS):
            place = TopicPartition(TOPIC, partition, 0)
            _, end = consumer.get_watermark_offsets(place, SECONDS)
            consumer.assign([place])
            count = 0
            while count < end:
                message = consumer.poll(SECONDS)
                if message is None or message.error():
                    sys.exit(f"partition {partition}: {count} of {end} read: {message and message.error()}")
                print((message.value() or b"").decode())
                count += 1
    finally:
        consumer.close()


def whole(admin: AdminClient, brokers: int, seconds: float) -> None:
    """Wait until nothing is missing."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            seen = admin.list_topics(timeout=5)
        except KafkaException as error:
            amiss = [str(error)]
        else:
            amiss = [] if len(seen.brokers) == brokers else [f"brokers {sorted(seen.brokers)}"]
            amiss += [
                f"{topic.topic}-{number}: leader {partition.leader}, ISR {partition.isrs} of {partition.replicas}"
                for topic in seen.topics.values()
                for number, partition in topic.partitions.items()
                if partition.leader < 0 or set(partition.isrs) != set(partition.replicas)
            ]
        if not amiss:
            return
        if time.monotonic() > deadline:
            sys.exit("; ".join(amiss[:10]))
        admin.poll(0.5)


def main(words: list[str]) -> None:
    """Do what the words say."""
    admin = AdminClient({"bootstrap.servers": BROKERS, "log_level": 0})
    match words:
        case ["seed"]:
            seed(admin)
        case ["write", word, count]:
            write(word, int(count))
        case ["read"]:
            read()
        case ["whole", brokers, seconds]:
            whole(admin, int(brokers), float(seconds))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
