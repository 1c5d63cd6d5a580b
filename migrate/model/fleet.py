"""Many clusters in one answer: which ones, and what was found of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Target(StrEnum):
    """What a fleet's file names a cluster by; each stands for the same option of `assess` or `diff`."""

    INVENTORY = "inventory"
    PLAYBOOK = "playbook"
    ZOOKEEPER = "zookeeper"
    BUNDLE = "bundle"


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of a fleet: `where` is an absolute path, or ZooKeeper's connect string."""

    name: str
    target: Target
    where: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """The clusters of one file, in its order; their names are unique."""

    name: str
    path: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class NotRead:
    """A cluster that gave no answer: the error's fields.  It is never counted as well."""

    id: str
    what: str
    where: str
    why: str
    next_step: str
    exit_code: int
