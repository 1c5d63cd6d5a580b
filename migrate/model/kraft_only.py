"""What KRaft accepts and Kafka 3.9 cannot write to ZooKeeper.

In dual write such an object is missing in ZooKeeper, and a new active controller does not get past SYNC_KRAFT_TO_ZK
while it exists.  After finalize it is an object like any other.  Seen on 3.9.2.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from migrate.model.columns import EntityColumns

ACL_OPTIONS: Final = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}
WRITTEN_CONFIGS: Final = ("topic-config", "broker-config")
ACL_PARTS: Final = 7  # resource, pattern, name, principal, host, operation, permission
LISTED: Final = 3


@dataclass(frozen=True, slots=True)
class KraftOnly:
    """One such object: `about` names it, `remove` is the command that deletes it."""

    kind: str
    about: str
    remove: str

    @property
    def told(self) -> str:
        """What is wrong with it and what to do, in one sentence."""
        return (
            "Kafka 3.9 cannot write it to ZooKeeper, and no new active controller gets past SYNC_KRAFT_TO_ZK while it "
            f"exists; note it, and delete it until the migration is finalized: `{self.remove}`"
        )


def is_kraft_only(kind: str, key: str) -> bool:
    """Can Kafka not write this entity to ZooKeeper?  `kind` and `key` as both views spell them."""
    if kind == "acl":
        parts = key.split("|")
        return len(parts) == ACL_PARTS and not _names_a_znode(unquote(parts[2]))
    return kind not in WRITTEN_CONFIGS and (kind.endswith("-config") or kind.startswith("config-"))


def kraft_only(entities: EntityColumns) -> tuple[KraftOnly, ...]:
    """Return each such object of the metadata once, in the metadata's order; the ACLs of one resource are one."""
    names: dict[tuple[str, str], list[str]] = {}
    for kind, key, name in zip(entities.kind, entities.key, entities.name, strict=True):
        if is_kraft_only(kind, key):
            names.setdefault((kind, key), []).append(name)
    return tuple(dict.fromkeys(_object(kind, key, found) for (kind, key), found in names.items()))


def summary(objects: tuple[KraftOnly, ...]) -> str:
    """Name the first objects with their commands, and say how many there are besides."""
    more = f" (and {len(objects) - LISTED} more)" if len(objects) > LISTED else ""
    return "; ".join(f"{entry.about}: {entry.told}" for entry in objects[:LISTED]) + more


def _names_a_znode(name: str) -> bool:
    """Can an ACL's resource name be a znode's name?  As ZooKeeper's `PathUtils.validatePath` decides, in UTF-16."""
    return name not in ("", ".", "..") and all(_allowed(ord(letter)) for letter in name)


def _allowed(code: int) -> bool:
    if code == ord("/") or code <= 0x1F or 0x7F <= code <= 0x9F:
        return False
    return not (0xD800 <= code <= 0xF8FF or code >= 0xFFF0)  # a letter above U+FFFF is two surrogates to Java


def _object(kind: str, key: str, names: list[str]) -> KraftOnly:
    if kind == "acl":
        resource, pattern, name = key.split("|")[:3]
        option = f"{ACL_OPTIONS.get(resource, '--topic')} {_quoted(unquote(name))}"
        tool = f"kafka-acls --bootstrap-server HOST:PORT --remove --force {option}"
        about = f"ACL of {resource} {unquote(name)} ({pattern})"
        return KraftOnly(kind, about, f"{tool} --resource-pattern-type {pattern.lower()}")
    # a broker in ZooKeeper mode refuses to describe such configurations, which the tools do first: so the controllers
    entity = {"client-metrics-config": "client-metrics", "group-config": "groups"}.get(kind, kind)
    tool = f"kafka-configs --bootstrap-controller HOST:PORT --alter --entity-type {entity}"
    about = f"{kind} {key}"
    return KraftOnly(kind, about, f"{tool} --entity-name {_quoted(key)} --delete-config {','.join(names)}")


def _quoted(name: str) -> str:
    """Quote a name for a shell; what cannot be printed in bash's own spelling."""
    if name.isprintable():
        return shlex.quote(name)
    letters = (letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in name)
    return "$'" + "".join({"'": "\\'", "\\": "\\\\"}.get(letter, letter) for letter in letters) + "'"
