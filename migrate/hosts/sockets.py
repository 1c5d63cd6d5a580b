"""What listens on a host, by the kernel's tables of sockets."""

from __future__ import annotations

import ipaddress
from typing import Final

from migrate.model.launch import Listening

TABLES: Final = ("tcp", "tcp6")  # below /proc/net
LISTEN: Final = "0A"


def parse_listening(text: str) -> tuple[Listening, ...]:
    """Parse the listening sockets of one table (pure).  Raises ValueError: it is no such table."""
    head, *lines = text.splitlines() or [""]
    if "local_address" not in head:
        message = f"not a table of sockets: {head[:80]!r}"
        raise ValueError(message)
    found: dict[Listening, None] = {}
    for line in lines:
        fields = line.split()
        if len(fields) < 4:
            message = f"not a socket: {line[:80]!r}"
            raise ValueError(message)
        if fields[3] == LISTEN:
            address, _, port = fields[1].partition(":")
            found[Listening(_address(address), int(port, 16))] = None
    return tuple(found)


def _address(text: str) -> str:
    """Words of 32 bits, each in the host's order; hosts that run Kafka are little endian."""
    raw = bytes.fromhex(text)
    ordered = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    found = ipaddress.ip_address(ordered)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
