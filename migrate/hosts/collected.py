"""Decode the collector's answers (`collect_disks.py`) into disks and configuration files.

The collector reports raw facts; this module decides what they mean, for every executor and for collected files.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from migrate.errors import BadProperties, CollectedDamaged, CollectedForNobody, CollectedOtherVersion
from migrate.hosts import meta_properties, properties
from migrate.hosts.collect_disks import FORMAT, VERSION
from migrate.hosts.files import read_no_follow
from migrate.hosts.properties import spell_as_broker
from migrate.model import limits, strict_json
from migrate.model.columns import UNREADABLE_TOPIC_ID, ReplicaColumns, unswept
from migrate.model.disk_trouble import FULL, NO_REPLICA, NOT_MOUNTED
from migrate.model.ids import METADATA_TOPIC, NodeId
from migrate.model.outcome import Unknown, unknown
from migrate.model.views import NOT_THERE, BrokerDisks, ConfigFile, Directory, MetaBroken, MetaMissing, MetaProperties

ROOM_A_BYTE: Final = 4
NOT_PROBED: Final = "the collector ran without --probe, so it was not tried whether a block can be written"
METADATA_FOLDER: Final = f"{METADATA_TOPIC}-0"
MAX_ODDITIES: Final = 20
ROOM_BYTES: Final = 2**20  # below it a segment's next batches end in ENOSPC
ROOM_FILES: Final = 16  # a new segment takes four
_VOLATILE: Final = ("tmpfs", "ramfs")
_DENIED: Final = (errno.EACCES, errno.EPERM)


@dataclass(frozen=True, slots=True)
class Collected:
    """One node as its collector saw it.  `taken` is the host's clock, in seconds since 1970."""

    path: str
    node: NodeId
    host: str
    taken: int
    disks: BrokerDisks | Unknown
    config: ConfigFile | Unknown | None  # None: the collector was given no properties file


class _DeniedError(Exception):
    """The collector's user lacks a permission that the broker may have: this says nothing about the disk."""


def read_collected(path: str) -> Collected:
    """Read one answer of the collector.

    Raises:
        CollectedDamaged: it cannot be read, or is not what the collector wrote.
        CollectedOtherVersion: another format's version.
        CollectedForNobody: it does not say of which node it is.
    """
    return decode_collected(read_raw(path), path)


def read_raw(path: str) -> bytes:
    """One answer's bytes; raises CollectedDamaged."""
    try:
        return read_no_follow(path, limit=limits.most("collected"))
    except OSError as error:
        raise CollectedDamaged(f"cannot be read: {error.strerror or error}", where=path) from error


def room_of(raw: bytes) -> int:
    """Memory for the values of an answer of that size: a folder takes 1,100 bytes, its text 400."""
    return max(strict_json.ROOM, ROOM_A_BYTE * len(raw))


def decode_collected(raw: bytes, path: str) -> Collected:
    """Decode a collector's answer (pure); `path` is its source.  Raises as `read_collected`."""
    with unswept():
        body = body_of(raw, path)
        with refuse_odd_content(path):
            return collected_of(body, path)


@contextlib.contextmanager
def refuse_odd_content(path: str) -> Iterator[None]:
    """Raise CollectedDamaged for what decoding a body raises where the collector did not write it."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        raise CollectedDamaged(
            f"its content is not what the collector writes: {type(error).__name__} {error}", where=path
        ) from error


def read_all(paths: Iterable[str], known: Iterable[NodeId] | None) -> dict[NodeId, Collected]:
    """Read the collector's files by node, one per node of the inventory (`known`); a folder stands for its *.json.

    Without an inventory any node may have one.

    Raises:
        CollectedForNobody: a node that is not in the inventory, or two files of one node.
    """
    found: dict[NodeId, Collected] = {}
    nodes = None if known is None else frozenset(known)
    for path in _files(paths):
        entry = read_collected(path)
        if nodes is not None and entry.node not in nodes:
            raise CollectedForNobody(f"it is of node {int(entry.node)}, which the inventory does not have", where=path)
        if entry.node in found:
            raise CollectedForNobody(f"{found[entry.node].path} is of node {int(entry.node)}, too", where=path)
        found[entry.node] = entry
    return found


def _files(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        try:
            inside = sorted(map(str, Path(path).iterdir())) if Path(path).is_dir() else None
        except OSError as error:  # a folder that cannot be read is not one without answers
            raise CollectedDamaged(f"cannot be read: {error.strerror or error}", where=path) from error
        if inside is None:
            yield path
            continue
        inside = [entry for entry in inside if entry.endswith(".json")]
        if not inside:
            raise CollectedDamaged("a folder without a *.json file", where=path)
        yield from inside


def body_of(raw: bytes, path: str) -> Mapping[str, Any]:
    """The body of an answer, proven by its hash; raises CollectedDamaged or CollectedOtherVersion."""
    try:
        document = strict_json.loads(raw, room=room_of(raw), surrogates=True)
    except strict_json.NotStrictJson as error:
        raise CollectedDamaged(str(error), where=path) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT or "body" not in document:
        raise CollectedDamaged("no answer of the collector", where=path)
    if document.get("version") != VERSION:
        raise CollectedOtherVersion(f"version {document.get('version')!r}, this release reads {VERSION}", where=path)
    try:
        proven = any(document.get("sha256") == hashlib.sha256(text).hexdigest() for text in _body(raw, document))
    except (ValueError, RecursionError) as error:
        raise CollectedDamaged(f"no sum can be made of its body: {error}", where=path) from error
    if not proven:
        raise CollectedDamaged("its SHA-256 is not that of its body: it was cut, damaged or edited", where=path)
    if not isinstance(document["body"], dict):
        raise CollectedDamaged("its body is no object", where=path)
    return document["body"]


def _body(raw: bytes, document: Mapping[str, Any]) -> Iterator[bytes]:
    """The body's text as it stands in an answer of the collector, and as the collector would write it."""
    rest = {key: value for key, value in document.items() if key != "body"}
    begin, end = b'{"body":', f",{_written(rest)[1:]}\n".encode()
    if raw.startswith(begin) and raw.endswith(end):  # half the time of writing it anew
        yield raw[len(begin) : -len(end)]
    yield _written(document["body"]).encode()


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def collected_of(body: Mapping[str, Any], path: str) -> Collected:
    looks = {spell_as_broker(_text(entry["path"])): entry for entry in body["directories"]}
    own_user = any(entry.get("own") is True for entry in looks.values())
    found: dict[str, Directory] = {}
    denied = ""
    for place, entry in looks.items():
        try:
            found[place] = _directory(entry, place, probed=body["probed"] is True, own_user=own_user)
        except _DeniedError as error:
            denied = denied or str(error)
    node = _node(body, found.values(), path)
    log_dirs = [spell_as_broker(_text(entry)) for entry in body["log_dirs"]]
    apart = None if body["metadata_dir"] is None else spell_as_broker(_text(body["metadata_dir"]))
    disks: BrokerDisks | Unknown = Unknown(denied)
    if not denied:
        whole = tuple(found[entry] for entry in log_dirs)
        disks = BrokerDisks(node, whole, None if apart is None else found[apart])
    return Collected(path, node, _text(body["host"]), _number(body["taken"]), disks, _config(body["config"], node))


def _node(body: Mapping[str, Any], found: Iterable[Directory], path: str) -> NodeId:
    if body["node"] is not None:
        return NodeId(_number(body["node"]))
    ids = {entry.meta.node_id for entry in found if isinstance(entry.meta, MetaProperties)} - {None}
    if len(ids) != 1:
        said = "no meta.properties does either" if not ids else f"its meta.properties name {sorted(map(str, ids))}"
        raise CollectedForNobody(f"it does not say of which node it is, and {said}", where=path)
    return NodeId(ids.pop() or 0)


def _config(entry: Mapping[str, Any] | None, node: NodeId) -> ConfigFile | Unknown | None:
    if entry is None:
        return None
    raw, path = base64.b64decode(entry["raw"], validate=True), _text(entry["path"])
    try:
        values = properties.parse(raw, path)
    except BadProperties as error:
        return unknown(error)
    return ConfigFile(node, path, raw, hashlib.sha256(raw).hexdigest(), values)


# -- one directory -------------------------------------------------------------------------------------------------
def _directory(entry: Mapping[str, Any], path: str, *, probed: bool, own_user: bool) -> Directory:
    """Decode one directory; `own_user`: a directory of the broker belongs to the collector's user."""
    if entry.get("late"):
        late = "did not store one block in time" if probed else "did not answer in time"
        return Directory(path, late, MetaMissing(), ReplicaColumns(), False)
    own = own_user or entry["own"] is True
    replicas, oddities = ReplicaColumns(), list[str]()
    meta: MetaProperties | MetaMissing | MetaBroken = MetaMissing()
    problem, metadata_log = _unusable(entry, own, path), -1
    if not problem:
        if "not_written" in entry:
            problem = f"cannot be written: {_why(entry['not_written'], own, path)}"
        try:
            meta = _meta(entry.get("meta", {}), own, path)
            metadata_log = _scan(entry, (replicas, oddities), own, path)
            problem = problem or _text(entry.get("gone", ""))
        except _UnreadableError as error:
            problem = problem or f"cannot be read: {error}"
        problem = problem or no_room(_number(entry.get("free_bytes", -1)), _number(entry.get("free_files", -1)))
    if entry["link"] is not None:
        oddities.append(f"the directory is a link to {entry['link']}")
    if entry["filesystem"] in _VOLATILE:
        oddities.append(f"is in memory ({entry['filesystem']}): its content is lost with the host")
    if len(oddities) > MAX_ODDITIES:
        oddities.sort(key=lambda one: not one.startswith(NO_REPLICA))  # what stops a start is never cut off
        oddities[MAX_ODDITIES:] = [f"and {len(oddities) - MAX_ODDITIES} more"]
    return Directory(
        path=path,
        problem=problem,
        meta=meta,
        replicas=replicas,
        holds_metadata_log=metadata_log >= 0,
        oddities=tuple(oddities),
        mount=_text(entry["mount"]),
        filesystem=_text(entry["filesystem"]),
        free_bytes=_number(entry.get("free_bytes", -1)),
        unproven="" if probed or problem else NOT_PROBED,
        metadata_log_bytes=metadata_log,
    )


class _UnreadableError(Exception):
    """Why a directory's content could not be read (never leaves this module)."""


def _why(error: list[Any], own: bool, path: str) -> str:
    """The reason; a denial concerns the collector's user, not the disk, unless a folder of the broker is theirs."""
    number, text = error
    if number in _DENIED and not own:
        raise _DeniedError(f"{path}: the collector's user may not look into it ({text})")
    return _text(text)


def _unusable(entry: Mapping[str, Any], own: bool, path: str) -> str:
    if not entry["absolute"]:
        return "is no absolute path: which folder it names depends on where Kafka was started"
    if unmounted := entry.get("unmounted"):
        return not_mounted(*map(_text, unmounted))
    if "unreachable" in entry:
        if entry["unreachable"][0] == errno.ENOENT:
            return NOT_THERE
        return f"cannot be reached: {_why(entry['unreachable'], own, path)}"
    return "" if entry["is_folder"] is True else "is no folder"


def _meta(entry: Mapping[str, Any], own: bool, path: str) -> MetaProperties | MetaMissing | MetaBroken:
    if "error" in entry:
        return MetaBroken(f"cannot be read: {_why(entry['error'], own, path)}")
    return meta_properties.decode(base64.b64decode(entry["raw"], validate=True)) if "raw" in entry else MetaMissing()


def _scan(directory: Mapping[str, Any], into: tuple[ReplicaColumns, list[str]], own: bool, path: str) -> int:
    """Add replicas and oddities; the bytes of the metadata log's segments, -1 where it is not there."""
    if "not_read" in directory:
        raise _UnreadableError(_why(directory["not_read"], own, path))
    columns, oddities = into
    metadata_log = -1
    for entry in directory["entries"]:
        name = _text(entry["name"])
        replica = meta_properties.decode_folder(name)
        if entry.get("link"):
            oddities.append(f"link, not followed: {name}")
            if "metadata" not in entry:  # to no folder: Kafka does not see it
                continue
        if replica is None:
            oddities.append(f"{NO_REPLICA}{name}")
            continue
        if "error" in entry:
            raise _UnreadableError(_why(entry["error"], own, path))
        if entry["other_owner"]:
            oddities.append(f"another owner than the log directory's: {name}")
        if name == METADATA_FOLDER:
            metadata_log = _number(entry["bytes"])
            continue
        oddities.extend(f"link, not followed: {name}/{link}" for link in entry["links"])
        columns.topic.append(replica.topic)
        columns.partition.append(replica.partition)
        columns.topic_id.append(_topic_id(entry["metadata"], own, f"{path}/{name}"))
        columns.kind.append(replica.kind)
        columns.folder.append(name)
        columns.size.append(_number(entry["bytes"]))
    return metadata_log


def _topic_id(entry: Mapping[str, Any], own: bool, path: str) -> str:
    if "error" in entry:
        _why(entry["error"], own, path)
        return UNREADABLE_TOPIC_ID
    if "raw" not in entry:
        return ""
    return meta_properties.decode_partition_metadata(base64.b64decode(entry["raw"], validate=True))


def no_room(free_bytes: int, free_files: int) -> str:
    """The problem of a directory that still stores a block, but no further segment; "" for none."""
    if 0 <= free_bytes < ROOM_BYTES:
        return f"{FULL}: {free_bytes // 1024} KiB are left, besides the file system's reserve for root"
    if 0 <= free_files < ROOM_FILES:
        return f"{FULL}: {free_files} inodes are left, each file takes one"
    return ""


def not_mounted(point: str, wanted_by: str) -> str:
    """The problem of a directory whose disk is not mounted: its folder belongs to another file system."""
    return f"{NOT_MOUNTED} {point} ({wanted_by} has a file system there)"


# -- values --------------------------------------------------------------------------------------------------------
def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"{value!r} is no text"
        raise TypeError(message)
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        message = f"{value!r} is no number"
        raise TypeError(message)
    return value
