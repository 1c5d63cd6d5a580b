"""What listens on a host, by the kernel's tables of sockets."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.runner import Runner, run_all
from migrate.model.launch import Listening
from migrate.model.outcome import Unknown, unknown

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


def listening_on(runner: Runner) -> tuple[Listening, ...] | Unknown:
    """What listens on that host, by its tables of sockets."""
    try:
        done = dict(zip(TABLES, run_all(runner, [commands.sockets(table) for table in TABLES]), strict=True))
    except MigrateError as error:
        return unknown(error)
    for table, entry in done.items():
        without_ipv6 = table == TABLES[1] and "No such file" in entry.says
        if entry.code and not without_ipv6:
            return Unknown(f"{runner.host}: {entry.says}")
    texts = [entry.output.decode(errors="replace") for entry in done.values() if not entry.code]
    return decoded(texts, runner.host)


def decoded(texts: Iterable[str], host: str) -> tuple[Listening, ...] | Unknown:
    """What these tables of a host list; Unknown where one is none (pure)."""
    try:
        return tuple(entry for text in texts for entry in parse_listening(text))
    except ValueError as error:
        return Unknown(f"{host}: {error}")
