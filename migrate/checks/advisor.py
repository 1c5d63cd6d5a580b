"""Which fixes of Apache Kafka matter to this cluster: `data/advisor.json`, by release and by features in use.

The release itself is on no wire (a node sends its ranges of API versions, no name of a build), so the advice is given
for every release that the ranges allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from migrate.model import strict_json
from migrate.model.outcome import Unknown
from migrate.model.secrets import is_password_config
from migrate.model.views import BrokerDisks, ConfigFile, NodeAnswer, PartlyRead, ZookeeperView
from migrate.model.world import World

ALWAYS: Final = "always"
FEATURES: Final = frozenset(
    {ALWAYS, "jbod", "scram", "quotas", "acls", "tokens", "transactions", "policies", "passwords", "deletions"}
    | {"reassignments", "quota-callback"}
)
POLICIES: Final = ("alter.config.policy.class.name", "create.topic.policy.class.name")
KINDS: Final[Mapping[str, str]] = {
    "scram": "scram",
    "client-quota": "quotas",
    "acl": "acls",
    "delegation-token": "tokens",
    "producer-ids": "transactions",
}
FETCH: Final = 1  # api key
# highest version of Fetch -> the releases with it (FetchRequest.json: 16 KIP-951, 17 KIP-853)
RELEASES_BY_FETCH: Final = ((17, "3.9"), (16, "3.7"), (15, "3.5"), (0, "0.8"))

Release = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """One issue of Kafka, by its JIRA where it has one.

    `fixed` are the first releases with the fix, a line each; empty while it is open.
    """

    id: str
    fixed: tuple[str, ...]
    features: frozenset[str]
    effect: str
    advice: str = ""


def release(text: str) -> Release:
    """`3.9.2` as numbers."""
    return tuple(int(part) for part in text.split("."))


@cache
def fixes() -> tuple[Fix, ...]:
    """The shipped list."""
    raw = strict_json.loads((files("migrate.checks") / "data" / "advisor.json").read_text(encoding="utf-8"))
    return tuple(
        Fix(
            entry["id"],
            tuple(entry["fixed"]),
            frozenset(entry["features"]),
            entry["effect"],
            entry.get("advice", ""),
        )
        for entry in raw["fixes"]
    )


def least_release(answer: NodeAnswer) -> str | None:
    """The oldest line of releases (`3.9`) that a node with these API versions can be of; None where it told none."""
    highest = answer.apis.get(FETCH)
    return None if highest is None else next(line for least, line in RELEASES_BY_FETCH if highest >= least)


def lacks(fix: Fix, line: str) -> bool:
    """Can a build of that line of releases (or its first one, `3.9.0`) be without the fix?"""
    if not fix.fixed:
        return True
    first = (*release(line), 0)[:3]
    return first < min(release(entry) for entry in fix.fixed)


def applying(line: str, in_use: Iterable[str]) -> list[Fix]:
    """The fixes that a build of that line may lack and that touch something in use, newest first."""
    used = frozenset(in_use)
    found = [fix for fix in fixes() if fix.features & used and lacks(fix, line)]
    return sorted(found, key=lambda fix: (not fix.fixed, fix.fixed and release(fix.fixed[-1]), fix.id), reverse=True)


def features_in_use(world: World) -> frozenset[str]:
    """What the cluster is known to use; what cannot be seen is not in it."""
    used = {ALWAYS}
    zookeeper = world.zookeeper.view if isinstance(world.zookeeper, PartlyRead) else world.zookeeper
    if not isinstance(zookeeper, Unknown):
        used |= _by_znodes(zookeeper)
    if not isinstance(world.configs, Unknown):
        for file in world.configs.values():
            if isinstance(file, ConfigFile):
                used |= _by_file(file.values)
    disks = () if isinstance(world.disks, Unknown) else world.disks.values()
    if any(isinstance(entry, BrokerDisks) and len(entry.directories) > 1 for entry in disks):
        used.add("jbod")
    return frozenset(used)


def _by_znodes(view: ZookeeperView) -> set[str]:
    used = {KINDS[kind] for kind in set(view.entities.kind) & KINDS.keys()}
    rows = view.entities
    if any(
        kind == "broker-config" and is_password_config(name) for kind, name in zip(rows.kind, rows.name, strict=True)
    ):
        used.add("passwords")
    if "__transaction_state" in view.partitions.topic:
        used.add("transactions")
    if view.pending.deletions:
        used.add("deletions")
    if view.pending.reassignments:
        used.add("reassignments")
    return used


def _by_file(values: Mapping[str, str]) -> set[str]:
    used = set()
    if len([path for path in values.get("log.dirs", "").split(",") if path.strip()]) > 1:
        used.add("jbod")
    if any(values.get(key, "").strip() for key in POLICIES):
        used.add("policies")
    if values.get("client.quota.callback.class", "").strip():
        used.add("quota-callback")
    return used
