"""Trees of znodes that real Kafka 3.9.2 clusters wrote, and trees made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrate.zookeeper.backup import BackupTree, load_backup
from migrate.zookeeper.layout import Znode

FOLDER = Path(__file__).parent.parent / "data" / "zookeeper"
STAGES = (
    "zk-before",
    "controllers-up",
    "hybrid-after-copy",
    "first-broker-kraft",
    "all-brokers-kraft",
    "finalized",
)
TOPIC_ID = "b1X1a2lVTUuEZKTmypRKzw"


def golden(stage: str) -> BackupTree:
    """The tree at one stage of a real migration: 24 topics, 212 partitions, quotas, SCRAM, ACLs."""
    return load_backup(str(FOLDER / f"{stage}.jsonl.gz"))


def tree_of(znodes: Mapping[str, Any]) -> BackupTree:
    """A tree from path -> data (bytes, None, text, or a value to write as JSON); parents come by themselves."""
    found: dict[str, Znode] = {"/": Znode(b"", 0, 0, 0, 0)}
    for number, (path, value) in enumerate(znodes.items(), start=100):
        for end in [index for index, letter in enumerate(path) if letter == "/" and index]:
            found.setdefault(path[:end], Znode(None, 0, 1, 1, 0))
        found[path] = Znode(_data(value), 0, number, number, 0)
    return BackupTree("test", found)


def _data(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def minimal(**more: Any) -> dict[str, Any]:
    """The least that a cluster has: an id, no broker, no topic.  `more` is merged by path."""
    return {
        "/cluster/id": {"version": "1", "id": "REh233dFSJKhrlnVHSnalQ"},
        "/brokers/ids": None,
        "/brokers/topics": None,
        **more,
    }
