"""Connections that are kept from one look to the next: a TLS handshake and a login cost a node more than the look.

A kept connection proves nothing by being there: before it is used its node is asked for its versions again, and
whatever goes wrong with that is settled by a connection that is opened anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from migrate.errors import MigrateError
from migrate.kafka.connection import DEFAULT_LIMITS, Connection, Limits
from migrate.model.inventory import Access

Key = tuple[str, Access, Limits]


class KeptConnections:
    """One for each address, access and limits at most; any number of threads may ask for them."""

    def __init__(self) -> None:
        self._idle: dict[Key, Connection] = {}
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def connection(self, address: str, access: Access, limits: Limits = DEFAULT_LIMITS) -> Iterator[Connection]:
        """A connection whose `about` is of this moment; afterwards it is kept, where no error closed it.

        Raises:
            What opening a `Connection` raises.
        """
        key = (address, access, limits)
        found = self._kept(key) or Connection(address, access, limits)
        try:
            yield found
        finally:
            self._keep(key, found)

    def close(self) -> None:
        """Close all; one that is in use now is closed when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, {}
        for connection in idle.values():
            connection.close()

    def _kept(self, key: Key) -> Connection | None:
        with self._lock:
            found = self._idle.pop(key, None)
        if found is None:
            return None
        try:
            found.ask_again()
        except MigrateError:
            found.close()
            return None  # its process may have ended, or closed what was idle: a new connection tells
        return found

    def _keep(self, key: Key, connection: Connection) -> None:
        with self._lock:
            if not self._closed and connection.is_open and key not in self._idle:
                self._idle[key] = connection
                return
        connection.close()
