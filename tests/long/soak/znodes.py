"""ZooKeeper's tree after a rollback against the one before the migration: what has no reason to differ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from migrate.zookeeper.compare_backup import NEVER_BELOW, Standing, ZnodeDifference, inside

NOTIFICATIONS: Final = tuple(parent for parent in NEVER_BELOW if parent != "/kraft-migrate")
# new since, each with its reason; a name that was made meanwhile explains itself
NEW: Final = (
    re.compile(r"/kraft-migrate"),  # the lock's parent: an operator may have made it with ACLs of his own
    re.compile(r"/brokers/topics/__[a-z_]+/partitions(/\d+(/state)?)?"),  # Kafka's own topics, by their first use
    re.compile(r"/brokers/topics/__[a-z_]+"),
)


def unexplained(found: Iterable[ZnodeDifference], made: str) -> list[str]:
    """Every znode that is missing, another or new for no reason that is known; `made` names what was made meanwhile."""
    return [f"{entry.path} {entry.standing}" for entry in found if not _explained(entry, made)]


def _explained(entry: ZnodeDifference, made: str) -> bool:
    if entry.standing is Standing.SAME or made in entry.path:
        return True
    if entry.standing is Standing.NEVER:  # states, epochs, sessions: why stands in the entry
        return "made anew" not in entry.why
    if entry.standing is Standing.LIVE_ONLY:
        below = any(entry.path != parent and inside(entry.path, parent) for parent in NOTIFICATIONS)
        return below or any(pattern.fullmatch(entry.path) for pattern in NEW)
    return entry.standing is Standing.DIFFERS and made.encode() in ((entry.live.data if entry.live else b"") or b"")
