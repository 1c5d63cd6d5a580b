"""A whole tree in one file, and its comparison with the live tree.

The file is gzip of JSON lines, one per znode, with a head line and a last line that counts.  It contains everything
(credentials too), so it is created with mode 0600.  It can be read back as a tree.

The comparison says, znode by znode, what could be restored, and what never is, with the reason.  Nothing is ever
deleted, and what only moves forward (epochs, partition states, counters of ids) is never reset.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import logging
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Final

from migrate.errors import BackupUnreadable, WorldError
from migrate.model import limits, strict_json
from migrate.zookeeper import layout
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import Absent, Znode, child

LOG: Final = logging.getLogger("migrate.zookeeper")
FORMAT: Final = "kraft-migrate/zookeeper-tree/v1"
BATCH: Final = 5_000
UNPACKED_AT_MOST: Final = 100  # times the file: what is gained by gzip is 5 to 20
FREE_BYTES: Final = 4 * 2**20
OWN_TREE: Final = "/zookeeper"  # ZooKeeper's own quotas and configuration, at the root of an ensemble

Line = dict[str, Any]
Acl = tuple[tuple[int, str, str], ...]


def write_backup(client: ZookeeperClient, destination: str) -> Mapping[str, str]:
    """Write the whole tree below the chroot; facts: path, znodes, denied, zxid, sha256 (of the file).

    The file appears only when it is complete and on disk.  A znode that may not be read is a line without data, and is
    counted in `denied`: the backup is then not whole.
    """
    target = Path(destination)
    part = target.with_name(target.name + ".part")
    client.sync()
    try:
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw:
            counts = _write_lines(client, raw)
            raw.flush()
            os.fsync(raw.fileno())
        with part.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        part.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise WorldError(f"the backup cannot be written ({error.strerror})", where=destination) from error
    finally:
        part.unlink(missing_ok=True)
    return {"path": destination, **counts, "sha256": digest}


def _write_lines(client: ZookeeperClient, raw: IO[bytes]) -> dict[str, str]:
    znodes = denied = 0
    with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=6) as packed:
        packed.write(_line({"format": FORMAT, "connect": client.connect_string}))
        for path, znode, acl in _walk(client, "/"):
            packed.write(_line(_znode_line(path, znode, acl)))
            znodes += 1
            denied += isinstance(znode, Absent)
            if znodes % 50_000 == 0:
                LOG.info("backup: %d znodes", znodes)
        packed.write(_line({"end": True, "znodes": znodes}))
    return {"znodes": str(znodes), "denied": str(denied), "zxid": str(client.zxid())}


def _line(values: Line) -> bytes:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _walk(client: ZookeeperClient, below: str) -> Iterator[tuple[str, Znode | Absent, Acl]]:
    """Every znode at or under `below`, level by level, but for ZooKeeper's own: data (or DENIED) and ACL."""
    level = [below]
    while level:
        under: list[str] = []
        for start in range(0, len(level), BATCH):
            paths = level[start : start + BATCH]
            parents: list[str] = []
            for path, znode, acl in zip(paths, client.data(paths), client.acls(paths), strict=True):
                if znode is Absent.MISSING or acl is Absent.MISSING:
                    continue  # it went while we were reading
                yield path, znode, () if isinstance(acl, Absent) else acl
                if isinstance(znode, Absent) or znode.children:
                    parents.append(path)
            for path, names in zip(parents, client.children(parents), strict=True):
                if not isinstance(names, Absent):
                    under += [child(path.rstrip("/"), name) for name in names]
        level = [path for path in under if path != OWN_TREE]


def _znode_line(path: str, znode: Znode | Absent, acl: Acl) -> Line:
    if isinstance(znode, Absent):
        return {"path": path, "denied": True}
    return {
        "path": path,
        "data": None if znode.data is None else base64.b64encode(znode.data).decode(),
        "stat": {
            "version": znode.version,
            "czxid": znode.czxid,
            "mzxid": znode.mzxid,
            "ephemeralOwner": znode.ephemeral_owner,
        },
        "acl": [list(entry) for entry in acl],
    }


class BackupTree:
    """A backup file as a tree that can be read like a live one (a TreeReader)."""

    def __init__(
        self, connect: str, znodes: Mapping[str, Znode | Absent], acls: Mapping[str, Acl] | None = None
    ) -> None:
        self.connect = connect
        self.znodes = znodes
        self.acls: Mapping[str, Acl] = acls or {}  # (permissions, scheme, id) of each znode that could be read
        below: dict[str, list[str]] = {path: [] for path in znodes}
        for path in znodes:
            if path != "/":
                below.setdefault(path.rpartition("/")[0] or "/", []).append(path.rpartition("/")[2])
        self._below = {path: tuple(sorted(names)) for path, names in below.items()}

    def data(self, paths: Sequence[str]) -> list[Znode | Absent]:
        return [self.znodes.get(path, Absent.MISSING) for path in paths]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        return [
            Absent.DENIED if self.znodes.get(path) is Absent.DENIED else self._below.get(path, Absent.MISSING)
            for path in paths
        ]

    def zxid(self) -> int:
        return max((znode.mzxid for znode in self.znodes.values() if isinstance(znode, Znode)), default=0)


def _lines(path: str) -> Iterator[bytes]:
    """The lines of a backup, none longer than a znode can be, all together in proportion to the file's size."""
    longest = limits.most("backup-line")
    left = min(limits.most("backup"), FREE_BYTES + UNPACKED_AT_MOST * Path(path).stat().st_size)
    with gzip.open(path, "rb") as file:
        while line := file.readline(longest + 1):
            left -= len(line)
            if len(line) > longest or left < 0:
                raise BackupUnreadable("it holds more than a backup of its size does", where=path)
            yield line


def load_backup(path: str) -> BackupTree:
    """The tree in a backup file.

    Raises BackupUnreadable: it is torn, not ours, or holds what no backup of ours holds.
    """
    try:
        lines = [strict_json.mapping(line) for line in _lines(path)]
        head, *middle, last = lines
        if head["format"] != FORMAT or last != {"end": True, "znodes": len(middle)}:
            raise BackupUnreadable("the file is not a whole backup of ours", where=path)
        znodes = dict(_read_line(line) for line in middle)
        if len(znodes) != len(middle):
            raise BackupUnreadable("a znode appears twice", where=path)
        acls = {
            str(line["path"]): tuple((int(bits), str(scheme), str(identity)) for bits, scheme, identity in line["acl"])
            for line in middle
            if not line.get("denied")
        }
        return BackupTree(str(head["connect"]), znodes, acls)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise BackupUnreadable(f"the file cannot be read: {why}", where=path) from error


def _read_line(line: Line) -> tuple[str, Znode | Absent]:
    if line.get("denied"):
        return str(line["path"]), Absent.DENIED
    stat = line["stat"]
    try:
        data = None if line["data"] is None else base64.b64decode(line["data"], validate=True)
    except binascii.Error as error:
        raise ValueError from error
    numbers = (stat["version"], stat["czxid"], stat["mzxid"], stat["ephemeralOwner"])
    return str(line["path"]), Znode(data, *map(int, numbers))


NEVER: Final[Mapping[str, str]] = {
    layout.CONTROLLER: "who is controller is decided by what runs",
    layout.CONTROLLER_EPOCH: "an epoch goes forward only",
    layout.MIGRATION: "it is a position of the dual write: an old one empties ZooKeeper in the next migration",
    layout.CLUSTER_ID: "it tells clusters apart",
    layout.FEATURE: "the controller writes it from its own version",
    layout.PRODUCER_IDS: "producer ids would be given out twice",
    "/brokers/seqid": "broker ids would be given out twice",
}
NEVER_BELOW: Final[Mapping[str, str]] = {
    layout.BROKER_IDS: "a live broker registers itself",
    "/admin": "it is work that was in progress then",
    layout.CONFIG_CHANGES: "it is a notification of that time",
    layout.LOG_DIR_EVENTS: "it is a notification of that time",
    "/isr_change_notification": "it is a notification of that time",
    "/kafka-acl-changes": "it is a notification of that time",
    "/kafka-acl-extended-changes": "it is a notification of that time",
    "/delegation_token/token_changes": "it is a notification of that time",
    "/kraft-migrate": "it is this tool's own lock",
    OWN_TREE: "it is ZooKeeper's own",
}
STATE: Final = re.compile(r"/brokers/topics/[^/]+/partitions/\d+/state")
TOPIC: Final = re.compile(r"/brokers/topics/(?P<name>[^/]+)(?P<below>/.*)?")


class Standing(StrEnum):
    SAME = "same"
    MISSING = "missing"  # would be created
    DIFFERS = "differs"  # would be set
    LIVE_ONLY = "not in the backup"  # is left alone
    NEVER = "never put back"
    DENIED = "not readable"


@dataclass(frozen=True, slots=True)
class ZnodeDifference:
    """One znode: how it stands, why it is never put back, and both sides (None: not there)."""

    path: str
    standing: Standing
    why: str
    kept: Znode | None
    live: Znode | None
    acl: Acl
    live_acl: Acl

    @property
    def restorable(self) -> bool:
        return self.standing in (Standing.MISSING, Standing.DIFFERS)

    @property
    def acl_differs(self) -> bool:
        """Does the live ACL differ?  It is reported, and left unchanged: a restore writes data."""
        return self.live is not None and self.kept is not None and set(self.acl) != set(self.live_acl)


def inside(path: str, below: str) -> bool:
    return below in ("/", path) or path.startswith(below.rstrip("/") + "/")


def compare(tree: BackupTree, client: ZookeeperClient, below: str = "/") -> tuple[ZnodeDifference, ...]:
    """Every znode of either side at or under `below` (and missing parents of what would be created), by path.

    Raises BackupUnreadable: the backup has no such znode, or is of another cluster.
    """
    client.sync()
    of_backup, of_live = tree.znodes.get(layout.CLUSTER_ID), client.data([layout.CLUSTER_ID])[0]
    if not isinstance(of_backup, Znode):
        raise BackupUnreadable("the backup does not say of which cluster it is", where=tree.connect)
    if isinstance(of_live, Znode) and of_live.data != of_backup.data:  # a tree without it may be an emptied one
        raise BackupUnreadable(
            "the backup is of another cluster", where=tree.connect, why="the ids in /cluster/id are not the same"
        )
    if below not in tree.znodes:
        raise BackupUnreadable(f"the backup has no znode {below}", where=tree.connect)
    kept = [path for path in tree.znodes if inside(path, below)]
    kept += [parent for parent in _parents(below) if parent in tree.znodes]
    live: dict[str, Znode | Absent] = {}
    acls: dict[str, Acl | Absent] = {}
    for path, znode, acl in _walk(client, below):
        live[path], acls[path] = znode, acl
    others = [path for path in kept if path not in live]
    live.update(zip(others, client.data(others), strict=True))
    acls.update(zip(others, client.acls(others), strict=True))
    paths = sorted(live, key=lambda path: (0 if path == "/" else path.count("/"), path))  # parents come first
    found = [_one(path, tree, live, acls) for path in paths]
    return tuple(entry for entry in found if inside(entry.path, below) or entry.standing is Standing.MISSING)


def fingerprint(differences: Iterable[ZnodeDifference]) -> str:
    """SHA-256 (hex) over everything that a restore would write, and the versions that it expects."""
    rows = []
    for entry in differences:
        if entry.restorable:
            digest = "" if entry.kept is None else hashlib.sha256(entry.kept.data or b"").hexdigest()
            rows.append([entry.path, entry.standing.value, digest, -1 if entry.live is None else entry.live.version])
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def _parents(path: str) -> Iterator[str]:
    while (path := path.rpartition("/")[0]) != "":
        yield path


def _one(
    path: str, tree: BackupTree, live: Mapping[str, Znode | Absent], acls: Mapping[str, Acl | Absent]
) -> ZnodeDifference:
    kept, now, acl = tree.znodes.get(path), live[path], acls[path]
    sides = (
        kept if isinstance(kept, Znode) else None,
        now if isinstance(now, Znode) else None,
        tree.acls.get(path, ()),
        () if isinstance(acl, Absent) else acl,
    )
    if kept is None:
        return ZnodeDifference(path, Standing.LIVE_ONLY, "", *sides)
    if isinstance(kept, Absent) or now is Absent.DENIED:
        side = "the backup could not read it" if isinstance(kept, Absent) else "we may not read it"
        return ZnodeDifference(path, Standing.DENIED, side, *sides)
    if isinstance(now, Znode) and (now.data or b"") == (kept.data or b""):  # null data and none are one to Kafka
        return ZnodeDifference(path, Standing.SAME, "", *sides)
    why = never(path, kept) or _topic(path, tree, live)
    if why:
        return ZnodeDifference(path, Standing.NEVER, why, *sides)
    return ZnodeDifference(path, Standing.DIFFERS if isinstance(now, Znode) else Standing.MISSING, "", *sides)


def never(path: str, kept: Znode) -> str:
    """Why this znode is never put back, whatever is live; "" if it may be."""
    if kept.ephemeral_owner:
        return "it is ephemeral: it belonged to a session"
    if path in NEVER:
        return NEVER[path]
    for parent, why in NEVER_BELOW.items():
        if path != parent and inside(path, parent):
            return why
    return "" if not inside(path, "/kraft-migrate") else NEVER_BELOW["/kraft-migrate"]


def _topic(path: str, tree: BackupTree, live: Mapping[str, Znode | Absent]) -> str:
    """What must not be done to a topic that lives: its states go forward only, and another id is another topic."""
    match = TOPIC.fullmatch(path)
    if match is None:
        return ""
    root = layout.child(layout.TOPICS, match["name"])
    kept, now = tree.znodes.get(root), live.get(root)
    if not isinstance(kept, Znode) or not isinstance(now, Znode):
        return ""
    before, after = _json(kept.data), _json(now.data)
    if after.get("topic_id") not in (None, before.get("topic_id")):
        return "the topic was deleted and created again since: it has another id"
    if path == root and (after.get("topic_id") or before.get("partitions") != after.get("partitions")):
        return "a live topic's assignment is changed by kafka-reassign-partitions; only a lost topic_id is put back"
    if STATE.fullmatch(path) and isinstance(live.get(path), Znode):
        return "a partition's state goes forward only: its leader epoch would go back"
    return ""


def _json(data: bytes | None) -> Mapping[str, Any]:
    try:
        found = strict_json.loads(data or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
