"""Authorities, certificates and stores for tests of TLS, on disk as operators have them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from migrate.lab.secured import Authority, Issued, span
from migrate.model.inventory import SecretFile, Store

HOSTS = ("localhost", "127.0.0.1")
PASSWORD = "canary-store-pw"


def secret(folder: Path, text: str = PASSWORD, name: str = "store-password") -> SecretFile:
    """A secret's file."""
    path = folder / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return SecretFile(str(path))


def stored(folder: Path, name: str, content: bytes, kind: str = "PEM", password: SecretFile | None = None) -> Store:
    """A store on disk."""
    path = folder / name
    path.write_bytes(content)
    return Store(str(path), kind, password)


@dataclass
class Pki:
    """One authority, and another that nobody should trust."""

    folder: Path
    authority: Authority = field(default_factory=lambda: Authority.make("authority"))
    other: Authority = field(default_factory=lambda: Authority.make("other"))

    @property
    def truststore(self) -> Store:
        """The authority, PEM."""
        return stored(self.folder, "ca.pem", self.authority.pem)

    def server(self, how: str = "good", *, clients: bool = False) -> ssl.SSLContext:
        """What a listener presents: `good`, `expired`, `wrong name` `wrong authority`; `clients`: they must, too."""
        issued = {
            "good": lambda: self.authority.issue("node", HOSTS),
            "expired": lambda: self.authority.issue("node", HOSTS, span(-5)),
            "wrong name": lambda: self.authority.issue("node", ("another.example", "127.0.0.2")),
            "wrong authority": lambda: self.other.issue("node", HOSTS),
        }[how]()
        return self.presenting(issued, clients=clients)

    def presenting(self, issued: Issued, *, clients: bool = False) -> ssl.SSLContext:
        """A server's context."""
        file = self.folder / "server.pem"
        file.write_bytes(issued.pem)
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(file)
        if clients:
            found.verify_mode = ssl.CERT_REQUIRED
            found.load_verify_locations(cadata=self.authority.pem.decode())
        return found
