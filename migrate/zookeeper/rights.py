"""What ZooKeeper lets this identity do: by reads, and from the ACLs of the znodes that matter; nothing is written.

Before a rollback stops its first process ZooKeeper itself is asked, by requests that cannot change anything: ACLs do
not say what a super user may do, or as whom a certificate is known.
"""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from kazoo import exceptions as kazoo_errors

from migrate.errors import WorldError, ZookeeperDenied
from migrate.model.rights import SENSITIVE
from migrate.zookeeper import layout
from migrate.zookeeper.client import ZookeeperClient, translated
from migrate.zookeeper.layout import Absent

READ, WRITE, CREATE, DELETE, ADMIN = 1, 2, 4, 8, 16
NAMES: Final = {READ: "READ", WRITE: "WRITE", CREATE: "CREATE", DELETE: "DELETE", ADMIN: "ADMIN"}
NEVER: Final = 2**31 - 1  # a version that no znode has: a change under it is refused, whoever asks
Acls = Sequence[tuple[int, str, str]]


class For(StrEnum):
    LOOKING = "every command that looks"
    ACTING = "the run's lock: apply, rollback apply, directories assign and rescue"
    ROLLBACK = "rollback apply"


@dataclass(frozen=True, slots=True)
class Lack:
    operation: str
    path: str
    stops: For


@dataclass(frozen=True, slots=True)
class ZookeeperRights:
    """What this identity lacks."""

    identity: str
    lacks: tuple[Lack, ...]


def find_rights(client: ZookeeperClient, username: str, lock_path: str) -> ZookeeperRights:
    """Compare this identity with the table; `username` is its SASL name, "" for none.  A certificate's is unknown."""
    mine = frozenset({("world", "anyone")} | ({("sasl", username)} if username else set()))
    lacks = (*_unread(client), *_unwritten(client, mine, lock_path))
    return ZookeeperRights(f"sasl:{username}" if username else "nobody", lacks)


def _unread(client: ZookeeperClient) -> Iterator[Lack]:
    """By reading: what is denied counts, what is missing does not."""
    paths = layout.PLACES
    for path, data, names in zip(paths, client.data(paths), client.children(paths), strict=True):
        if Absent.DENIED in (data, names):
            yield Lack("READ", path, For.LOOKING)
            continue
        if path in SENSITIVE and names and not isinstance(names, Absent):
            below = f"{path}/{names[0]}"  # children have ACLs of their own
            if client.data([below])[0] is Absent.DENIED:
                yield Lack("READ", f"{path}/*", For.LOOKING)


def _unwritten(client: ZookeeperClient, mine: frozenset[tuple[str, str]], lock_path: str) -> Iterator[Lack]:
    parent = posixpath.dirname(lock_path) or "/"
    while parent != "/" and client.data([parent])[0] is Absent.MISSING:
        parent = posixpath.dirname(parent)
    fence = f"{lock_path}-fence"
    wanted = ((parent, CREATE | (0 if parent == "/" else DELETE), For.ACTING), (fence, WRITE, For.ACTING))
    back = (("/", DELETE, For.ROLLBACK), (layout.CONTROLLER_EPOCH, WRITE, For.ROLLBACK))
    known = _acls(client, (parent, fence, "/", layout.CONTROLLER_EPOCH))
    for path, bits, stops in (*wanted, *back):
        if path not in known:
            continue
        if known[path] is None:
            if path not in layout.PLACES:  # those were read already, and told
                yield Lack("READ", path, stops)
        elif missing := bits & ~_bits(known[path] or (), mine):
            yield Lack(_told(missing), path, stops)
    for path, acl in _acls(client, _states(client)).items():
        if acl is not None and not WRITE & _bits(acl, mine):
            yield Lack("WRITE", path, For.ROLLBACK)
            return  # one names what all of them need


def _states(client: ZookeeperClient) -> list[str]:
    """One partition state of each topic: those of a topic are made by one controller, under one ACL."""
    (topics,) = client.children([layout.TOPICS])
    return [] if isinstance(topics, Absent) else [layout.partition_states(topic, (0,))[0] for topic in topics]


def _acls(client: ZookeeperClient, paths: Sequence[str]) -> dict[str, Acls | None]:
    """Of those that exist; None where the ACL may not be seen."""
    answers = zip(paths, client.acls(paths), strict=True)
    return {
        path: None if isinstance(answer, Absent) else answer for path, answer in answers if answer is not Absent.MISSING
    }


def _bits(acl: Acls, who: Iterable[tuple[str, str]]) -> int:
    granted = 0
    for bits, scheme, identity in acl:
        granted |= bits if (scheme, identity) in set(who) else 0
    return granted


def _told(bits: int) -> str:
    return ", ".join(name for bit, name in NAMES.items() if bits & bit)


def require_rollback_rights(client: ZookeeperClient) -> None:
    """Return only if ZooKeeper would let this identity roll back: checked before anything is stopped for it.

    A znode that is not there is to be deleted, and /controller_epoch to be set under a version that it cannot have:
    rights are looked at first, so that one answer means no, and the other that only the change is impossible.
    Source: `PrepRequestProcessor.pRequest2Txn`, checkACL before the znode and before its version.

    Raises:
        ZookeeperDenied: DELETE on the chroot, or WRITE on /controller_epoch or on a partition's state, is missing.
        ZookeeperSessionLost, WorldError: there is no answer to go by.
    """
    seconds = 3 * client.session_timeout
    nothing = f"/kraft-migrate-asks-{secrets.token_hex(8)}"
    _asked(layout.CONTROLLER, "DELETE on its parent", lambda: client.kazoo.delete_async(nothing, NEVER).get(seconds))
    asked = [(path, client.kazoo.set_async(path, b"", NEVER)) for path in (layout.CONTROLLER_EPOCH, *_states(client))]
    for path, answer in asked:
        _asked(path, "WRITE on it", partial(answer.get, timeout=seconds))


def _asked(path: str, right: str, impossible: Callable[[], object]) -> None:
    """`impossible` ends in an error whoever asks: in which one is the answer."""
    with translated(path):
        try:
            impossible()
        except (kazoo_errors.NoNodeError, kazoo_errors.BadVersionError):
            return
        except kazoo_errors.NoAuthError as error:
            raise ZookeeperDenied(
                f"this identity may not change the znode: it needs {right}",
                where=path,
                why="the rollback would stop there, with the controllers stopped: nothing was stopped or changed",
                next_step="give the inventory's zookeeper_access the brokers' identity; `doctor --rights` lists all",
            ) from error
    raise WorldError("ZooKeeper carried out what cannot be carried out", where=path)
