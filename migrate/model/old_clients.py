"""Requests of clients that Kafka 4 does not answer any more, as a broker of 3.9 counts them (KIP-896)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OldRequests:
    """Of one version of one request, by one client software; "unknown" where a client does not say what it is."""

    request: str
    version: int
    client: str
    client_version: str
    count: int


@dataclass(frozen=True, slots=True)
class OldClients:
    """What one broker has counted since its process started (ISO date); nothing where none came."""

    since: str
    requests: tuple[OldRequests, ...]
