"""Reads the load's partitions whole: one assigned consumer, from the first offset to the end, committed only."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from migrate.errors import LoadNotRead, Retryable
from migrate.kafka.admin import bootstrap_servers, client_config
from migrate.lab.load_history import record_id
from migrate.model.inventory import Inventory

LOG: Final = logging.getLogger("migrate.lab.load")
STALL_SECONDS: Final = 60.0
BATCH: Final = 2000
WAIT_SECONDS: Final = 0.25  # consume() waits as long for a batch that does not fill
_FROM_THE_FIRST: Final = -2  # OFFSET_BEGINNING


def read_values(inventory: Inventory, topics: Mapping[str, int], tag: bytes) -> Iterator[tuple[int, int]]:
    """(epoch, sequence) of every record of the load in the topics' partitions (name -> number of partitions).

    The ends are taken first, so that the reading is finite.  Records of others are passed over.

    Raises:
        LoadNotRead: an end is not known, or nothing came for a minute.
    """
    if not topics:
        return
    settings: dict[str, Any] = client_config(bootstrap_servers(inventory), inventory.broker_access) | {
        "group.id": "kraft-migrate-load-check",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": 16384,
    }
    consumer = Consumer(settings, logger=LOG)
    try:
        pending = _ends(consumer, topics)
        total = sum(end - start for start, end in pending.values())
        LOG.info("reading %d partitions whole: %d offsets", len(pending), total)
        pending = {place: bounds for place, bounds in pending.items() if bounds[1] > bounds[0]}
        consumer.assign([TopicPartition(*place, _FROM_THE_FIRST) for place in pending])
        heard = time.monotonic()
        while pending:
            messages = consumer.consume(BATCH, WAIT_SECONDS)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > STALL_SECONDS:
                name, partition = next(iter(pending))
                raise LoadNotRead(
                    f"nothing came for {STALL_SECONDS:g} s; {len(pending)} partitions are not read to their end",
                    where=f"{name}-{partition}",
                )
            found = (_take(message, pending, tag) for message in messages)
            yield from (one for one in found if one is not None)
    except KafkaException as error:
        raise LoadNotRead(f"reading the load failed: {error.args[0]}") from error
    finally:
        consumer.close()


def _ends(consumer: Consumer, topics: Mapping[str, int]) -> dict[tuple[str, int], tuple[int, int]]:
    """First and end offset of each partition."""
    return {
        (name, partition): _bounds(consumer, name, partition)
        for name, count in topics.items()
        for partition in range(count)
    }


@retry(
    retry=retry_if_exception_type(Retryable), stop=stop_after_delay(STALL_SECONDS), wait=wait_fixed(0.5), reraise=True
)
def _bounds(consumer: Consumer, name: str, partition: int) -> tuple[int, int]:
    """The same of one: a leader that has just changed answers OFFSET_NOT_AVAILABLE until its followers have fetched."""
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=30)
    except KafkaException as error:
        raise LoadNotRead(f"reading the load failed: {error.args[0]}", where=f"{name}-{partition}") from error
    return first, end


def _take(message: Message, pending: dict[tuple[str, int], tuple[int, int]], tag: bytes) -> tuple[int, int] | None:
    """The id in a message, None for another's; a partition that is read to its end leaves `pending`."""
    place = (str(message.topic()), int(message.partition() or 0))
    error = message.error()
    offset = int(message.offset() or 0)
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
            raise KafkaException(error)
        if place in pending and offset >= pending[place][1]:
            del pending[place]
        return None
    if place in pending and offset + 1 >= pending[place][1]:
        del pending[place]
    return record_id(message.value(), tag)
