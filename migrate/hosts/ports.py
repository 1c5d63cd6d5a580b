"""What listens on a host: /proc/net/tcp and tcp6, read here or on the host (proc(5))."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from migrate.errors import MigrateError
from migrate.hosts import commands
from migrate.hosts.executors import Executor
from migrate.hosts.runner import Runner
from migrate.model.ids import NodeId
from migrate.model.outcome import Unknown
from migrate.model.ports_seen import Listening

TABLES: Final = ("tcp", "tcp6")  # below /proc/net
LISTEN: Final = "0A"


def parse_listening(text: str) -> tuple[Listening, ...]:
    """The listening sockets of one table (pure).

    Raises:
        ValueError: it is no such table.
    """
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


def listening(executor: Executor, nodes: Iterable[NodeId]) -> dict[NodeId, tuple[Listening, ...] | Unknown]:
    """What listens on each node's host; a host is asked once."""
    found: dict[str, tuple[Listening, ...] | Unknown] = {}
    answers: dict[NodeId, tuple[Listening, ...] | Unknown] = {}
    for node in nodes:
        runner = executor.runners.get(node)
        host = "" if runner is None else runner.host
        if host not in found:
            found[host] = _here() if runner is None else _there(runner)
        answers[node] = found[host]
    return answers


def _here() -> tuple[Listening, ...] | Unknown:
    try:
        tables = [Path("/proc/net", table) for table in TABLES]
        texts = [table.read_text(encoding="ascii") for table in tables if table.exists()]
    except OSError as error:
        return Unknown(f"the sockets of this host cannot be read: {error.strerror or error}")
    return _decoded(texts, "this host")


def _there(runner: Runner) -> tuple[Listening, ...] | Unknown:
    try:
        done = {table: runner.run(commands.sockets(table)) for table in TABLES}
    except MigrateError as error:
        return Unknown(f"{error.id} {error}")
    for table, entry in done.items():
        without_ipv6 = table == TABLES[1] and "No such file" in entry.says
        if entry.code and not without_ipv6:
            return Unknown(f"{runner.host}: {entry.says}")
    texts = [entry.output.decode(errors="replace") for entry in done.values() if not entry.code]
    return _decoded(texts, runner.host)


def _decoded(texts: Iterable[str], host: str) -> tuple[Listening, ...] | Unknown:
    try:
        return tuple(entry for text in texts for entry in parse_listening(text))
    except ValueError as error:
        return Unknown(f"{host}: {error}")
