"""What has changed in the tree since one looked: a persistent, recursive watch (ZOOKEEPER-1416, since 3.6).

kazoo knows no such watch.  The request goes through its own queue (as `migrate.zookeeper.multiread`), and the events
are taken where kazoo's connection reads them: in the order of the connection, so that whoever has the answer to a
`sync` has every event of the transactions before it.  A watch is the connection's.  Where that ended, or where an event
is none that we know, something may have been missed, and `take` says so.

Two things no event tells: a change of an ACL, and whatever happens to a znode that this identity may not read
(CVE-2024-23944, since 3.9.2).  But each is a transaction, and since 3.9 each event names its own (ZOOKEEPER-4655):
where the events' transactions are all that there were, nothing else happened.
"""

from __future__ import annotations

import threading
from struct import Struct
from typing import Any, Final, NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooState
from kazoo.protocol.serialization import Watch, int_struct, write_buffer

from migrate.zookeeper.client import ZookeeperClient, translated

PERSISTENT_RECURSIVE: Final = 1  # org.apache.zookeeper.AddWatchMode
HEADER: Final = Struct(">iqi")  # of an answer: which one, the transaction, an error
KNOWN: Final = frozenset({1, 2, 3})  # created, deleted, changed: org.apache.zookeeper.Watcher.Event.EventType


class AddWatch:
    """One request, in the shape of kazoo's own."""

    type = 106

    def __init__(self, path: bytes) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"AddWatch({self.path!r})"

    def serialize(self) -> bytes:
        """The request's body."""
        body: bytes = write_buffer(self.path) + int_struct.pack(PERSISTENT_RECURSIVE)
        return body

    def deserialize(self, raw: bytes, offset: int) -> bool:
        """True; raises kazoo's exception for an error."""
        (code,) = int_struct.unpack_from(raw, offset)
        if code:
            raise kazoo_errors.EXCEPTIONS[code]
        return True


class Changes(NamedTuple):
    """Paths that changed, and the transactions that named themselves."""

    paths: frozenset[str]
    zxids: frozenset[int]


class TreeWatch:
    """Paths below a client's chroot that changed since they were taken last; made by `watch`."""

    def __init__(self, client: ZookeeperClient) -> None:
        self.client = client
        self._changed: set[str] = set()
        self._zxids: set[int] = set()
        self._missed = False
        self.names_transactions = True  # until an event does not: before 3.9
        self._lock = threading.Lock()
        connection: Any = client.kazoo._connection  # noqa: SLF001 - kazoo has no public seam for events
        self._others = connection._read_watch_event  # noqa: SLF001
        connection._read_watch_event = self._event  # noqa: SLF001
        client.kazoo.add_listener(self._state_changed)

    def take(self) -> Changes | None:
        """What changed since it was taken last; None, from then on for ever, where something may have been missed."""
        with self._lock:
            if self._missed:
                return None
            found = Changes(frozenset(self._changed), frozenset(self._zxids))
            self._changed, self._zxids = set(), set()
            return found

    # -- in kazoo's connection thread ----------------------------------------------------------------------------
    def _state_changed(self, state: str) -> None:
        if state != KazooState.CONNECTED:
            self._miss()

    def _miss(self) -> None:
        with self._lock:
            self._missed = True
            self._changed = set()

    def _event(self, raw: bytes, offset: int) -> None:
        try:
            event, _ = Watch.deserialize(raw, offset)
            _, zxid, _ = HEADER.unpack_from(raw, offset - HEADER.size)
            chroot = str(self.client.kazoo.chroot)
            inside = event.path == chroot or event.path.startswith(f"{chroot}/")
        except Exception:  # noqa: BLE001 - whatever it was, it was not understood
            self._miss()
            return
        if event.type not in KNOWN or not inside:
            self._miss()
            return
        with self._lock:
            if not self._missed:
                self._changed.add(event.path[len(chroot) :] or "/")
                self._zxids.add(zxid)
                self.names_transactions &= zxid > 0
        self._others(raw, offset)


def watch(client: ZookeeperClient) -> TreeWatch | None:
    """Watch all below the client's chroot; None where the server has no such watch.

    What changes from now on is taken by `TreeWatch.take`.  Raises ZookeeperSessionLost.
    """
    where = str(client.kazoo.chroot) or "/"
    found = TreeWatch(client)
    client.pace.take(1)
    with translated(where):
        result = client.kazoo.handler.async_result()
        client.kazoo._call(AddWatch(where.encode()), result)  # noqa: SLF001 - as for MultiRead
        try:
            result.get(timeout=3 * client.session_timeout)
        except (kazoo_errors.UnimplementedError, kazoo_errors.BadArgumentsError, kazoo_errors.NoAuthError):
            return None
    return found
