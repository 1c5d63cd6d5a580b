"""A whole tree in one file: gzip of JSON lines, one znode a line, a head line and a last line that counts.

The file holds everything (credentials too), so it is made with mode 0600.  It can be read back as a tree.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from migrate.errors import BackupUnreadable, WorldError
from migrate.model import limits, strict_json
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import child
from migrate.zookeeper.znode import Absent, Znode

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
        digest = _sha256(part)
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
        for line in _walk(client):
            packed.write(_line(line))
            znodes += 1
            denied += "denied" in line
            if znodes % 50_000 == 0:
                LOG.info("backup: %d znodes", znodes)
        packed.write(_line({"end": True, "znodes": znodes}))
    return {"znodes": str(znodes), "denied": str(denied), "zxid": str(client.zxid())}


def _line(values: Line) -> bytes:
    return json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _walk(client: ZookeeperClient) -> Iterator[Line]:
    """Every znode, level by level."""
    level = ["/"]
    while level:
        below: list[str] = []
        for start in range(0, len(level), BATCH):
            paths = level[start : start + BATCH]
            parents: list[str] = []
            for path, znode, acl in zip(paths, client.data(paths), client.acls(paths), strict=True):
                if znode is Absent.MISSING or acl is Absent.MISSING:
                    continue  # it went while we were reading
                if isinstance(znode, Absent):
                    yield {"path": path, "denied": True}
                    parents.append(path)
                    continue
                yield _znode_line(path, znode, () if isinstance(acl, Absent) else acl)
                if znode.children:
                    parents.append(path)
            for path, names in zip(parents, client.children(parents), strict=True):
                if not isinstance(names, Absent):
                    below += [child(path.rstrip("/"), name) for name in names]
        level = [path for path in below if path != OWN_TREE]


def _znode_line(path: str, znode: Znode, acl: Sequence[tuple[int, str, str]]) -> Line:
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


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        """Data and stat of each path, in order."""
        return [self.znodes.get(path, Absent.MISSING) for path in paths]

    def children(self, paths: Sequence[str]) -> list[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order."""
        return [
            Absent.DENIED if self.znodes.get(path) is Absent.DENIED else self._below.get(path, Absent.MISSING)
            for path in paths
        ]

    def zxid(self) -> int:
        """The newest transaction in the file."""
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

    Raises:
        BackupUnreadable: it is torn, not ours, or holds what no backup of ours holds.
    """
    try:
        lines = [strict_json.mapping(line) for line in _lines(path)]
        head, *middle, last = lines
        if head["format"] != FORMAT or last != {"end": True, "znodes": len(middle)}:
            raise BackupUnreadable("the file is not a whole backup of ours", where=path)
        znodes = dict(_read_line(line) for line in middle)
        if len(znodes) != len(middle):
            raise BackupUnreadable("a znode stands twice", where=path)
        acls = {str(line["path"]): _read_acl(line["acl"]) for line in middle if not line.get("denied")}
        return BackupTree(str(head["connect"]), znodes, acls)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupUnreadable(f"the file cannot be read ({type(error).__name__})", where=path) from error


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


def _read_acl(entries: Sequence[Sequence[Any]]) -> Acl:
    return tuple((int(permissions), str(scheme), str(identity)) for permissions, scheme, identity in entries)


__all__ = ["Acl", "BackupTree", "load_backup", "write_backup"]
