"""meta.properties, read as Kafka 3.9 reads it, and by default with more doubt than Kafka has.

Source: `metadata/.../metadata/properties/MetaProperties.Builder`, `MetaPropertiesVersion`, `PropertiesUtils`,
`clients/.../common/Uuid.fromString`.  What Kafka cannot read makes the directory a failed one (an *error log dir*).
Kafka takes an empty file, NUL bytes or a file torn between two keys for a version 0 without ids, and gives that
directory a *new* directory.id at the next start: all its replicas would lose their place.

Names of replica folders and partition.metadata follow `LogFileUtils.java`, `LocalLog.scala` and `UnifiedLog.scala`
(name forms), and `PartitionMetadataFile.java`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

import javaproperties

from migrate.errors import BadProperties
from migrate.hosts import properties
from migrate.model.columns import UNREADABLE_TOPIC_ID
from migrate.model.ids import DirectoryId, TopicId
from migrate.model.views import MetaBroken, MetaProperties

CURRENT: Final = "current"
KINDS: Final = {"future": "future", "delete": "deleted", "stray": "stray"}
NO_TOPIC_ID: Final = "A" * 22
_MARKED = re.compile(r"(?P<replica>\S+)\.(?P<unique>[^\s.]+)-(?P<mark>delete|future|stray)")
_REPLICA = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")
_METADATA = re.compile(r"version:\s+0\ntopic_id:\s+(?P<id>\S+)\n?")
_REMEMBERED: Final = 2**17  # a replica's names are on several brokers, and in each look of a run again


@dataclass(frozen=True, slots=True)
class ReplicaFolder:
    """What a folder's name says.  A deleted or stray one may carry a shortened topic name (255 bytes at most)."""

    topic: str
    partition: int
    kind: str


@functools.lru_cache(_REMEMBERED)
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


@functools.lru_cache(_REMEMBERED)
def decode_partition_metadata(raw: bytes) -> str:
    """The topic id; "?" for a file that Kafka cannot read either (torn, another version, the zero id)."""
    try:
        found = _METADATA.fullmatch(raw.decode("utf-8").replace("\r\n", "\n"))
        topic_id = TopicId(found["id"]) if found else None
    except ValueError:  # a bad UUID, or bytes that are no UTF-8
        return UNREADABLE_TOPIC_ID
    return UNREADABLE_TOPIC_ID if topic_id is None or topic_id == NO_TOPIC_ID else str(topic_id)


META_PROPERTIES: Final = "meta.properties"
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_FORGETS: Final = "Kafka would take it for a file without ids and give the directory a new directory.id"
_JAVA_INT: Final = re.compile(r"[+-]?\d+")
_JAVA_UUID: Final = re.compile(r"(?P<id>[A-Za-z0-9_-]{22})(==)?")
_JAVA_SPACE: Final = "".join(map(chr, range(0x21)))  # what String.trim() takes away
_INT_RANGE: Final = range(-(2**31), 2**31)
_BMP: Final = 0x10000
_LONGEST: Final = 4000  # characters: Python refuses to convert more digits than about that


class _BrokenError(Exception):
    """Why the file is not read, or not trusted (never leaves this module)."""


def decode(raw: bytes, *, strict: bool = True) -> MetaProperties | MetaBroken:
    """The file's content as a value, or why not (pure; never raises).

    `strict`: what Kafka takes in silence, and loses ids by, is broken too.  Else exactly Kafka's reading, in which a
    node id may be negative and a directory.id reserved: Kafka reads those, and then refuses them.
    """
    try:
        if strict:
            _doubt_bytes(raw)
        values = properties.load(raw)
        if strict:
            _doubt_values(raw, values)
        version = _version(values)
        found = MetaProperties(version, _cluster_id(values, version), _node_id(values, version), _directory_id(values))
    except BadProperties as error:
        return MetaBroken(error.what)
    except _BrokenError as error:
        return MetaBroken(str(error))
    if strict and found.directory_id is not None and found.directory_id.reserved:
        return MetaBroken(f"directory.id {found.directory_id} is reserved: Kafka refuses to start")
    return found


# -- Kafka's reading -----------------------------------------------------------------------------------------------
def _version(values: dict[str, str]) -> int:
    text = values.get("version", "0").strip(_JAVA_SPACE)
    try:
        number = _java_int(text)
    except ValueError:
        raise _BrokenError(f"version {text!r} is no number") from None
    if number not in (0, 1):
        raise _BrokenError(f"version {number} is neither 0 nor 1")
    return number


def _node_id(values: dict[str, str], version: int) -> int | None:
    key = "node.id" if version else "broker.id"
    if key not in values:
        if version:
            raise _BrokenError("version 1 without node.id")
        return None
    try:
        return _java_int(values[key])
    except ValueError:
        raise _BrokenError(f"{key} {values[key]!r} is no number") from None


def _cluster_id(values: dict[str, str], version: int) -> str | None:
    found = values.get("cluster.id")
    if version and found is None:
        raise _BrokenError("version 1 without cluster.id")
    return found


def _java_int(text: str) -> int:
    """Integer.parseInt: any Unicode digits of the basic plane, one sign, no blanks, 32 bits."""
    if not _JAVA_INT.fullmatch(text) or any(ord(char) >= _BMP for char in text) or len(text) > _LONGEST:
        raise ValueError(text)
    number = int(text)
    if number not in _INT_RANGE:
        raise ValueError(text)
    return number


def _directory_id(values: dict[str, str]) -> DirectoryId | None:
    text = values.get("directory.id")
    if text is None:
        return None
    found = _JAVA_UUID.fullmatch(text)
    if found is None:
        raise _BrokenError(f"directory.id {text!r} is no UUID")
    # Kafka ignores padding and the last four bits: two spellings of one id must be one value
    return DirectoryId.from_bytes(DirectoryId(found["id"]).raw)


# -- what Kafka takes in silence -----------------------------------------------------------------------------------
def _doubt_bytes(raw: bytes) -> None:
    if not raw.strip():
        raise _BrokenError(f"empty: {_FORGETS}")
    if b"\0" in raw:
        raise _BrokenError(f"holds NUL bytes: {_FORGETS}")
    if raw.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")):
        raise _BrokenError(f"begins with a byte order mark, which Kafka reads as part of the first key: {_FORGETS}")


def _doubt_values(raw: bytes, values: dict[str, str]) -> None:
    pairs: list[tuple[str, str]] = javaproperties.loads(raw, object_pairs_hook=list)
    for key, value in pairs:
        if values[key] != value:
            raise _BrokenError(f"{key} appears twice with different values: Kafka would use the last")
    if "version" not in values:
        raise _BrokenError(f"no version, which Kafka always writes: torn? {_FORGETS}")
    _doubt_number(values, "version")
    version = _version(values)
    node_key, other_key = ("node.id", "broker.id") if version else ("broker.id", "node.id")
    if other_key in values and node_key not in values:
        raise _BrokenError(f"version {version} with {other_key} instead of {node_key}: Kafka would not see the id")
    _doubt_number(values, node_key)
    if values.get("cluster.id") == "":
        raise _BrokenError("cluster.id is empty")


def _doubt_number(values: dict[str, str], key: str) -> None:
    text = values.get(key)
    if text is not None and (not _NUMBER.fullmatch(text) or not 0 <= int(text) < 2**31):
        raise _BrokenError(f"{key} {text!r} is no id")


def as_version_0(raw: bytes) -> bytes | None:
    """A version 1 file as version 0, with the same ids; None where it has version 0, or cannot be trusted.

    `kafka-storage format` writes version 1 on a replaced disk; a broker in plain ZooKeeper mode starts on 0 only
    (KAFKA-20762).
    """
    found = decode(raw)
    if isinstance(found, MetaBroken) or found.version == 0:
        return None
    if not (found.cluster_id or "").isascii() or not (found.cluster_id or "").isprintable():
        return None  # no cluster's id, and not to be written without escapes
    ids = {"broker.id": found.node_id, "cluster.id": found.cluster_id, "directory.id": found.directory_id}
    lines = ["version=0", *(f"{key}={value}" for key, value in ids.items() if value is not None)]
    return "".join(f"{line}\n" for line in lines).encode("latin-1")
