"""A migrated cluster read without our own readers: Kafka's dump of the metadata log, and the folders on the disks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from migrate.java.find import find_java
from migrate.java.jars import kafka_jars
from migrate.java.run import run_tool
from migrate.lab.cluster import Lab
from migrate.model.ids import MIGRATING


def dumped_by_kafka(folder: Path) -> list[dict[str, Any]]:
    """Every record of a metadata log's segments, as Kafka's own tool prints them."""
    files = ",".join(sorted(str(path) for path in folder.glob("*.log")))
    java, jars = find_java(), kafka_jars()
    words = ["--cluster-metadata-decoder", "--skip-record-metadata", "--files", files]
    done = run_tool(java, jars.classpath, "kafka.tools.DumpLogSegments", words, 120)
    return [json.loads(line.split("payload: ", 1)[1]) for line in done.stdout.splitlines() if "payload: {" in line]


def assignments_in_the_log(records: list[dict[str, Any]], broker: int) -> Counter[tuple[str, int]]:
    """(topic id, partition) -> how often the broker's directory was changed by a record."""
    now: dict[tuple[str, int], tuple[list[int], list[str]]] = {}
    found = Counter[tuple[str, int]]()
    for record in records:
        if record["type"] not in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            continue
        data, key = record["data"], (record["data"]["topicId"], record["data"]["partitionId"])
        replicas, before = now.get(key, ([], []))
        replicas = data["replicas"] if data.get("replicas") is not None else replicas
        after = data["directories"] if data.get("directories") else before or [str(MIGRATING)] * len(replicas)
        now[key] = (replicas, after)
        if broker in replicas and before and after[replicas.index(broker)] != before[replicas.index(broker)]:
            found[key] += 1
    return found


def directories_in_the_log(records: list[dict[str, Any]]) -> dict[tuple[str, int, int], str]:
    """(topic id, partition, broker) -> directory id, where the log ends."""
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    for record in records:
        data = record["data"]
        if record["type"] == "PARTITION_RECORD":
            partitions[data["topicId"], data["partitionId"]] = data
        elif record["type"] == "PARTITION_CHANGE_RECORD":
            known = partitions[data["topicId"], data["partitionId"]]
            known.update({key: data[key] for key in ("replicas", "directories") if data.get(key) is not None})
        elif record["type"] == "REMOVE_TOPIC_RECORD":
            partitions = {key: value for key, value in partitions.items() if key[0] != data["topicId"]}
    return {
        (topic, number, broker): directory
        for (topic, number), data in partitions.items()
        for broker, directory in zip(data["replicas"], data["directories"], strict=True)
    }


def directories_on_the_disks(lab: Lab) -> dict[tuple[str, int, int], str]:
    """(topic id, partition, broker) -> directory.id of the folder's meta.properties, but for folders `-delete`."""
    found: dict[tuple[str, int, int], str] = {}
    for broker in lab.topology.brokers:
        for path in map(Path, broker.log_dirs):
            meta = dict(
                line.split("=", 1) for line in (path / "meta.properties").read_text().splitlines() if "=" in line
            )
            for metadata in path.glob("*/partition.metadata"):
                if metadata.parent.name.startswith("__cluster_metadata") or metadata.parent.name.endswith("-delete"):
                    continue
                topic_id = metadata.read_text().split("topic_id:")[1].strip()
                key = (topic_id, int(metadata.parent.name.rsplit("-", 1)[1]), broker.id)
                assert key not in found, f"{metadata.parent} appears twice"
                found[key] = meta["directory.id"]
    return found
