"""The result of reading a znode: data with its stat, or why there is none; and the port for reading trees."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol


class Znode(NamedTuple):
    """One znode's data and the relevant parts of its stat.  `data` None is null data."""

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int
    children: int = 0


class Absent(Enum):
    """Why there is no value: MISSING (known not to exist) is never the same as the others (unknown).

    DENIED: we may not see it; MALFORMED: it is there, and is not what Kafka writes (no reader of trees answers this).
    """

    MISSING = "missing"
    DENIED = "denied"
    MALFORMED = "malformed"


class TreeReader(Protocol):
    """Reads znodes by path relative to the chroot: a live session, or a backup file."""

    def data(self, paths: Sequence[str]) -> Sequence[Znode | Absent]:
        """Data and stat of each path, in order."""

    def children(self, paths: Sequence[str]) -> Sequence[tuple[str, ...] | Absent]:
        """Sorted names of each path's children, in order."""

    def zxid(self) -> int:
        """The newest transaction that the reader has seen."""


class AclReader(Protocol):
    """Reads the ACLs of znodes by path relative to the chroot."""

    def acls(self, paths: Sequence[str]) -> Sequence[Sequence[tuple[int, str, str]] | Absent]:
        """(permissions, scheme, id) of each path, in order."""
