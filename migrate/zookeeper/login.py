"""This tool's identity at ZooKeeper, and TLS to its servers."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from migrate.errors import MigrateError, Retryable
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import handshake, tls_context
from migrate.model.inventory import ZookeeperLogin


@dataclass(frozen=True, slots=True)
class ZookeeperAccess:
    """A digest or SASL (DIGEST-MD5) identity, and a TLS context.  Empty: neither."""

    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    digest: str = field(default="", repr=False)  # user:password
    context: ssl.SSLContext | None = field(default=None, repr=False)

    def options(self) -> dict[str, Any]:
        """Kazoo's arguments."""
        options: dict[str, Any] = {}
        if self.sasl_username:
            options["sasl_options"] = {
                "mechanism": "DIGEST-MD5",
                "username": self.sasl_username,
                "password": self.sasl_password,
            }
        if self.digest:
            options["auth_data"] = [("digest", self.digest)]
        if self.context is not None:
            options["use_ssl"] = True
        return options


def access_of(login: ZookeeperLogin) -> ZookeeperAccess:
    """Read the login's secrets.

    Raises:
        SecretUnreadable, StoreUnreadable.
    """
    return ZookeeperAccess(
        sasl_username=login.username,
        sasl_password=read_secret(login.password) if login.password else "",
        context=tls_context(login.truststore, login.keystore) if login.tls else None,
    )


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, with this tool's TLS: kazoo reads the key from files each time, and gives no reasons."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context
        self.last_error: MigrateError | None = None  # why no connection came about, where TLS was why

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: Any) -> socket.socket:
        """A connection with TLS on it, to the host that was named."""
        plain = socket.create_connection(address, timeout)
        try:
            found = handshake(plain, hostname, f"{hostname}:{address[1]}", self._context)
        except MigrateError as error:
            if not isinstance(error, Retryable):
                self.last_error = error
            raise OSError("no TLS session") from error
        self.last_error = None
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found.settimeout(None)
        return found
