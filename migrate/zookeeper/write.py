"""Conditional changes of znodes (`ports.ZookeeperWrites`): each under a version, and under the fence of the lock.

Every change is one transaction.  kazoo hands a transaction's errors back in a list and raises nothing: each result is
looked at.  A version is always given and never negative; 0 is a version like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.client import TransactionRequest
from kazoo.security import ACL, Id

from migrate.errors import LockLost, WorldError, ZnodeChanged, ZookeeperDenied
from migrate.zookeeper.backup import Acl, write_backup
from migrate.zookeeper.client import ZookeeperClient
from migrate.zookeeper.layout import CONTROLLER, Absent, Znode
from migrate.zookeeper.lock import Fence

# what one operation of a transaction asks for (PrepRequestProcessor): of the znode, or of its parent
RIGHTS: Final = {"Create": "CREATE on its parent", "Delete": "DELETE on its parent", "SetData": "WRITE on it"}
WRITES_AT_ONCE: Final = 1000  # in a transaction: far below the megabyte that ZooKeeper takes


class ZookeeperWriter:
    """Writes through one session.  With a `fence`, ZooKeeper itself refuses the write once another run has the lock."""

    def __init__(self, client: ZookeeperClient, fence: Fence | None = None) -> None:
        self.client = client
        self.fence = fence

    def create(self, path: str, data: bytes, acl: Acl = ()) -> None:
        """Create a persistent znode; ZnodeChanged if there is one, or if its parent is missing.

        `acl` are (permissions, scheme, id); without any it is the session's default.
        """
        transaction = self._transaction()
        transaction.create(path, data, acl=[ACL(bits, Id(scheme, identity)) for bits, scheme, identity in acl] or None)
        self._commit(transaction, path)
        now = self._read_back(path)
        if isinstance(now, Absent) or (now.version == 0 and now.data != data):
            raise ZnodeChanged("what was created is not there any more", where=path)

    def set(self, path: str, data: bytes, version: int) -> None:
        transaction = self._transaction()
        transaction.set_data(path, data, _checked(version))
        self._commit(transaction, path)
        now = self._read_back(path)
        if isinstance(now, Absent) or (now.version == version + 1 and now.data != data):
            raise ZnodeChanged("what was written is not there any more", where=path)

    def delete(self, path: str, version: int) -> None:
        """Delete; ZnodeChanged unless the znode has that version.

        It may be there again at once: a ZooKeeper-mode broker claims /controller within 60 ms of its deletion.
        """
        before = self._read_back(path)
        transaction = self._transaction()
        transaction.delete(path, _checked(version))
        self._commit(transaction, path)
        now = self._read_back(path)
        if isinstance(now, Znode) and isinstance(before, Znode) and now.czxid == before.czxid:
            raise WorldError("the znode was deleted and is still there", where=path)

    def raise_versions(self, least: Mapping[str, int], owner: int | None) -> None:
        """Rewrite each znode's own bytes until it has that version; ZnodeChanged where another client writes.

        With `owner` /controller is deleted, under that version, in the transaction of the last write: what is raised
        without it is never all.  Nothing to raise: nothing is done.
        """
        self.client.sync()
        found = zip(least.items(), self.client.data([*least]), strict=True)
        writes: list[tuple[str, bytes, int]] = []  # path, data, version
        for (path, version), now in found:
            if isinstance(now, Absent) or now.data is None:
                raise ZnodeChanged("the znode whose version is to be raised is not there any more", where=path)
            writes += [(path, now.data, expected) for expected in range(now.version, version)]
        for start in range(0, len(writes), WRITES_AT_ONCE):
            some = writes[start : start + WRITES_AT_ONCE]
            transaction = self._transaction()
            for path, data, version in some:
                transaction.set_data(path, data, version)
            if owner is not None and start + WRITES_AT_ONCE >= len(writes):
                transaction.delete(CONTROLLER, _checked(owner))
            self._commit(transaction, some[0][0])

    def backup(self, destination: str) -> Mapping[str, str]:
        return write_backup(self.client, destination)

    def _transaction(self) -> TransactionRequest:
        transaction = self.client.kazoo.transaction()
        if self.fence is not None:
            transaction.check(self.fence.path, _checked(self.fence.version))
        return transaction

    def _commit(self, transaction: TransactionRequest, path: str) -> None:
        results = self.client.commit(transaction, path)
        if self.fence is not None and isinstance(results[0], kazoo_errors.BadVersionError | kazoo_errors.NoNodeError):
            raise LockLost("another run has taken the lock: ZooKeeper refused the write", where=path)
        check_results(results, len(transaction.operations), path, transaction.operations[-1])

    def _read_back(self, path: str) -> Znode | Absent:
        return self.client.data([path])[0]


def _checked(version: int) -> int:
    if version < 0:
        raise ValueError("a write needs the version that it expects; -1 would be unconditional")
    return version


def check_results(results: Sequence[Any], expected: int, path: str, operation: object = None) -> None:
    reasons = {
        kazoo_errors.BadVersionError: "it has another version",
        kazoo_errors.NodeExistsError: "it exists already",
        kazoo_errors.NoNodeError: "it, or its parent, does not exist",
        kazoo_errors.NotEmptyError: "it has children",
    }
    failures = [result for result in results if isinstance(result, Exception)]
    for failure in failures:
        if type(failure) in reasons:
            raise ZnodeChanged(f"the change was refused: {reasons[type(failure)]}", where=path)
        if isinstance(failure, kazoo_errors.NoAuthError):
            right = RIGHTS.get(type(operation).__name__, "a right on it")
            raise ZookeeperDenied(f"this identity may not change the znode: it needs {right}", where=path)
    if failures or len(results) != expected:
        names = ", ".join(type(failure).__name__ for failure in failures) or f"{len(results)} results of {expected}"
        raise WorldError(f"the transaction failed ({names})", where=path)
