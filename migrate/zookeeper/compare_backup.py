"""A backup held against the live tree, znode by znode: what could be put back, and what never is, with the reason.

Nothing is ever deleted, and what goes forward only (epochs, partition states, counters of ids) never goes back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from migrate.errors import BackupUnreadable
from migrate.model import strict_json
from migrate.zookeeper import layout
from migrate.zookeeper.backup import OWN_TREE, Acl, BackupTree
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.znode import Absent, Znode

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
    "/admin": "it is work that was under way then",
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
    """How a znode of the backup stands to the live tree."""

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
        """Would a restore write it?"""
        return self.standing in (Standing.MISSING, Standing.DIFFERS)

    @property
    def acl_differs(self) -> bool:
        """Is the live ACL another?  It is told, and left as it is: a restore writes data."""
        return self.live is not None and self.kept is not None and set(self.acl) != set(self.live_acl)


def inside(path: str, below: str) -> bool:
    """Is that path `below` itself, or under it?"""
    return below in ("/", path) or path.startswith(below.rstrip("/") + "/")


def compare(tree: BackupTree, client: ZookeeperClient, below: str = "/") -> tuple[ZnodeDifference, ...]:
    """Every znode of either side at or under `below` (and missing parents of what would be created), by path.

    Raises:
        BackupUnreadable: the backup has no such znode, or is of another cluster.
    """
    client.sync()
    _same_cluster(tree, client)
    if below not in tree.znodes:
        raise BackupUnreadable(f"the backup has no znode {below}", where=tree.connect)
    kept = [path for path in tree.znodes if inside(path, below)]
    kept += [parent for parent in _parents(below) if parent in tree.znodes]
    live_paths = [path for path in _walk(client, below) if inside(path, below)]
    paths = sorted({*kept, *live_paths}, key=_depth)
    live = dict(zip(paths, client.data(paths), strict=True))
    acls = dict(zip(paths, client.acls(paths), strict=True))
    found = [_one(path, tree, live, acls) for path in paths]
    return tuple(entry for entry in found if inside(entry.path, below) or entry.standing is Standing.MISSING)


def fingerprint(differences: Iterable[ZnodeDifference]) -> str:
    """SHA-256 (hex) over everything that a restore would write, and the versions that it expects."""
    rows = [
        [entry.path, entry.standing.value, _digest(entry.kept), -1 if entry.live is None else entry.live.version]
        for entry in differences
        if entry.restorable
    ]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def _digest(znode: Znode | None) -> str:
    return "" if znode is None else hashlib.sha256(znode.data or b"").hexdigest()


def _depth(path: str) -> tuple[int, str]:
    """Parents come before their children."""
    return (0 if path == "/" else path.count("/"), path)


def _parents(path: str) -> Iterator[str]:
    while (path := path.rpartition("/")[0]) != "":
        yield path


def _walk(client: ZookeeperClient, below: str) -> Iterator[str]:
    level = [below]
    while level:
        under: list[str] = []
        for path, names in zip(level, client.children(level), strict=True):
            if names is Absent.MISSING:
                continue
            yield path
            if not isinstance(names, Absent):
                under += [layout.child(path.rstrip("/"), name) for name in names]
        level = [path for path in under if path != OWN_TREE]


def _same_cluster(tree: BackupTree, client: ZookeeperClient) -> None:
    """A tree without /cluster/id may be an emptied one; one with another id is another cluster's."""
    kept, live = tree.znodes.get(layout.CLUSTER_ID), client.data([layout.CLUSTER_ID])[0]
    if not isinstance(kept, Znode):
        raise BackupUnreadable("the backup does not say of which cluster it is", where=tree.connect)
    if isinstance(live, Znode) and live.data != kept.data:
        raise BackupUnreadable(
            "the backup is of another cluster", where=tree.connect, why="the ids in /cluster/id are not the same"
        )


def _one(
    path: str, tree: BackupTree, live: Mapping[str, Znode | Absent], acls: Mapping[str, Acl | Absent]
) -> ZnodeDifference:
    kept, now = tree.znodes.get(path), live[path]
    acl = acls[path]
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
        return "the topic was deleted and made anew since: it has another id"
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
