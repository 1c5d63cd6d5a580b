"""Lines of Kafka's logs that say why something waits: more evidence, never the ground of an explanation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from migrate.checks.registry import shown

KEPT: Final = 3  # lines a node
TELLING: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"Still waiting for ZK brokers",
        r"No brokers are (?:known to KRaft|registered in ZK)",
        r"Still waiting for all controller nodes",
        r"KRaft controller indicates an active migration",
        r"Staying in SYNC_KRAFT_TO_ZK",
        r"Performing a full metadata sync from KRaft to ZK",
        r"Unhandled error in SyncKRaftMetadataEvent",
        r"during event SyncKRaftMetadataEvent",
        r"Unknown config resource type",
        r"zk migration fault",
        r"Encountered ZooKeeper error",
        r"Error in topic consumer",
        r"NoSuchElementException: None\.get",
        r"Cannot register KRaft controller",
        r"Should not have ZK migrations enabled",
        r"Unable to register (?:the )?broker",
        r"(?:INVALID_REGISTRATION|INCONSISTENT_CLUSTER_ID|BROKER_ID_NOT_REGISTERED|DUPLICATE_BROKER_REGISTRATION)",
        r"UNSUPPORTED_VERSION",
        r"maybeSendAssignments: sending \d+ assignments",
        r"handleResponse: \d+ assignments failed",
        r"Connection to node -?\d+ .*could not be established",
        r"Shutdown broker because",
        r"Exiting Kafka",
    )
)


def telling(lines: Iterable[str]) -> tuple[str, ...]:
    """The last lines of that kind, each kind once, oldest first."""
    found: dict[str, str] = {}
    for line in lines:
        for pattern in TELLING:
            if pattern.search(line):
                found.pop(pattern.pattern, None)  # the newest of a kind stands last
                found[pattern.pattern] = shown(line.strip())
                break
    return tuple(found.values())[-KEPT:]
