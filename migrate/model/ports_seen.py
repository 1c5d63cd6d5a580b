"""Ports of a host as it shows them: what listens, and on which address."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listening:
    """A listening TCP socket: `address` as text (`0.0.0.0`, `::`, `127.0.0.1`), IPv4 within IPv6 as IPv4."""

    address: str
    port: int
