"""meta.properties, decoded as Kafka 3.9 does, and doubted where Kafka is too trusting.

Rules: `metadata/.../metadata/properties/MetaProperties.java`, `MetaPropertiesVersion.java`.  Kafka takes an empty file,
NUL bytes or one torn between two keys for a version 0 without ids, and gives that directory a *new* directory.id at
the next start: all its replicas would lose their place.  Such files are `MetaBroken` here.
"""

from __future__ import annotations

import re
from typing import Final

import javaproperties

from migrate.errors import BadProperties
from migrate.hosts import properties
from migrate.model.ids import DirectoryId
from migrate.model.views import MetaBroken, MetaProperties

META_PROPERTIES: Final = "meta.properties"
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_FORGETS: Final = "Kafka would take it for a file without ids and give the directory a new directory.id"


class _BrokenError(Exception):
    """Why the file is not trusted (never leaves this module)."""


def decode(raw: bytes) -> MetaProperties | MetaBroken:
    """The file's content as a value, or why it is not to be trusted (pure; never raises)."""
    try:
        return _decode(raw)
    except _BrokenError as error:
        return MetaBroken(str(error))


def _decode(raw: bytes) -> MetaProperties:
    if not raw.strip():
        raise _BrokenError(f"empty: {_FORGETS}")
    if b"\0" in raw:
        raise _BrokenError(f"holds NUL bytes: {_FORGETS}")
    if raw.startswith((b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe")):
        raise _BrokenError(f"begins with a byte order mark, which Kafka reads as part of the first key: {_FORGETS}")
    values = _values(raw)
    version = _version(values)
    node_key, other_key = ("node.id", "broker.id") if version else ("broker.id", "node.id")
    if other_key in values and node_key not in values:
        raise _BrokenError(f"version {version} with {other_key} instead of {node_key}: Kafka would not see the id")
    node_id = _number(values, node_key)
    cluster_id = values.get("cluster.id")
    if version and (node_id is None or cluster_id is None):
        raise _BrokenError(f"version 1 without {'node.id' if node_id is None else 'cluster.id'}")
    if cluster_id == "":
        raise _BrokenError("cluster.id is empty")
    return MetaProperties(version, cluster_id, node_id, _directory_id(values))


def _values(raw: bytes) -> dict[str, str]:
    try:
        values = properties.load(raw)
    except BadProperties as error:
        raise _BrokenError(str(error)) from error
    pairs: list[tuple[str, str]] = javaproperties.loads(raw, object_pairs_hook=list)
    for key, value in pairs:
        if values[key] != value:
            raise _BrokenError(f"{key} stands twice with different values: Kafka would use the last")
    return values


def _version(values: dict[str, str]) -> int:
    if "version" not in values:
        raise _BrokenError(f"no version, which Kafka always writes: torn? {_FORGETS}")
    number = _number(values, "version")
    if number not in (0, 1):
        raise _BrokenError(f"version {values['version']!r} is neither 0 nor 1")
    return number


def _number(values: dict[str, str], key: str) -> int | None:
    text = values.get(key)
    if text is None:
        return None
    if not _NUMBER.fullmatch(text) or not 0 <= int(text) < 2**31:
        raise _BrokenError(f"{key} {text!r} is no id")
    return int(text)


def _directory_id(values: dict[str, str]) -> DirectoryId | None:
    text = values.get("directory.id")
    if text is None:
        return None
    try:
        # Kafka ignores padding and the last four bits: two spellings of one id must be one value
        found = DirectoryId.from_bytes(DirectoryId(text.removesuffix("==")).raw)
    except ValueError as error:
        raise _BrokenError(f"directory.id {text!r} is no UUID") from error
    if found.reserved:
        raise _BrokenError(f"directory.id {text} is reserved: Kafka refuses to start")
    return found


def mended(raw: bytes) -> bytes | None:
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
