"""Names of replica folders and the content of partition.metadata: decoding without I/O.

Sources: `storage/.../storage/internals/log/LogFileUtils.java`, `core/.../kafka/log/LocalLog.scala` and
`UnifiedLog.scala` (name forms), `server-common`/`storage` `PartitionMetadataFile.java`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from migrate.model.columns import UNREADABLE_TOPIC_ID
from migrate.model.ids import TopicId

CURRENT: Final = "current"
KINDS: Final = {"future": "future", "delete": "deleted", "stray": "stray"}
NO_TOPIC_ID: Final = "A" * 22
_MARKED = re.compile(r"(?P<replica>\S+)\.(?P<unique>[^\s.]+)-(?P<mark>delete|future|stray)")
_REPLICA = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")
_METADATA = re.compile(r"version:\s+0\ntopic_id:\s+(?P<id>\S+)\n?")


@dataclass(frozen=True, slots=True)
class ReplicaFolder:
    """What a folder's name says.  A deleted or stray one may carry a shortened topic name (255 bytes at most)."""

    topic: str
    partition: int
    kind: str


def decode_folder(name: str) -> ReplicaFolder | None:
    """The replica that the folder belongs to; None for a name that is no replica's (Kafka refuses to start on it)."""
    kind, replica = CURRENT, name
    if name.endswith(tuple(f"-{mark}" for mark in KINDS)):
        marked = _MARKED.fullmatch(name)
        if marked is None:
            return None
        kind, replica = KINDS[marked["mark"]], marked["replica"]
    found = _REPLICA.fullmatch(replica)
    if found is None or found["topic"] in (".", "..") or int(found["partition"]) >= 2**31:
        return None
    return ReplicaFolder(found["topic"], int(found["partition"]), kind)


def decode_partition_metadata(raw: bytes) -> str:
    """The topic id; "?" for a file that Kafka cannot read either (torn, another version, the zero id)."""
    try:
        found = _METADATA.fullmatch(raw.decode("utf-8").replace("\r\n", "\n"))
        topic_id = TopicId(found["id"]) if found else None
    except ValueError:  # a bad UUID, or bytes that are no UTF-8
        return UNREADABLE_TOPIC_ID
    return UNREADABLE_TOPIC_ID if topic_id is None or topic_id == NO_TOPIC_ID else str(topic_id)
