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
    FILES = "files"


@dataclass(frozen=True, slots=True)
class FilePair:
    """ZooKeeper's files of a cluster (dataDir, and dataLogDir where it has one) and its metadata directory.

    All are absolute paths; `chroot` is Kafka's in ZooKeeper's tree, "" for none.
    """

    zookeeper: tuple[str, ...]
    metadata: str
    chroot: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of a fleet: `where` is an absolute path, or ZooKeeper's connect string.

    Of a cluster that is named by files it is its metadata directory, and `files` is there.
    """

    name: str
    target: Target
    where: str
    files: FilePair | None = None


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
