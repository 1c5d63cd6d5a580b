"""ZooKeeper's tree after a rollback against the one before the migration: what has no reason to differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from migrate.lab.rollback_proofs import BROKER_CONFIG
from migrate.zookeeper.backup import NEVER_BELOW, Standing, ZnodeDifference, inside
from migrate.zookeeper.layout import Znode

NOTIFICATIONS: Final = tuple(parent for parent in NEVER_BELOW if parent != "/kraft-migrate")
# new since, each with its reason; a name that was made meanwhile explains itself
NEW: Final = (
    # the lock's parent, and the fence that counts its holders: were it gone, an old holder could not be told from a new
    re.compile(r"/kraft-migrate(/lock-fence)?"),
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
        return "created again" not in entry.why
    if entry.standing is Standing.LIVE_ONLY:
        below = any(entry.path != parent and inside(entry.path, parent) for parent in NOTIFICATIONS)
        return below or any(pattern.fullmatch(entry.path) for pattern in NEW)
    if entry.standing is not Standing.DIFFERS or entry.live is None or entry.kept is None:
        return False
    return made.encode() in (entry.live.data or b"") or _but_for_made(entry.kept, entry.live)


def _but_for_made(kept: Znode, live: Znode) -> bool:
    """Is it a broker's configuration with nothing more than the one key that was made meanwhile?"""
    try:
        before, now = (json.loads(one.data or b"") for one in (kept, live))
        return bool({**before, "config": {**before["config"], BROKER_CONFIG[0]: BROKER_CONFIG[1]}} == now)
    except (ValueError, KeyError, TypeError):
        return False
