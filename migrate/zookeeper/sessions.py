"""Who has a session: the four letter word `cons`, asked of each server of a connect string over a plain socket."""

from __future__ import annotations

import re
import socket
from typing import Final

from migrate.model.outcome import Unknown
from migrate.model.znodes import ZookeeperSession
from migrate.zookeeper.client import parse_connect_string

SECONDS: Final = 3.0  # a server, to connect and to answer
MOST_BYTES: Final = 4 << 20
DEFAULT_PORT: Final = 2181
NOT_ALLOWED: Final = "is not in the whitelist"
LINE: Final = re.compile(r"^ ?/?(?P<address>.+):(?P<port>[0-9]+)\[[0-9]*\]\((?P<facts>.*)\)$")
SESSION: Final = re.compile(r"\bsid=0x(?P<id>[0-9a-f]+)\b")


def sessions(connect: str, *, seconds: float = SECONDS) -> tuple[ZookeeperSession, ...] | Unknown:
    """The sessions of every server, sorted; Unknown where one does not tell (each knows only its own clients).

    A server allows the word by 4lw.commands.whitelist; the default allows none but `srvr`.
    """
    hosts, _ = parse_connect_string(connect)
    found: set[ZookeeperSession] = set()
    for server in hosts.split(","):
        answer = ask(server, seconds)
        if isinstance(answer, Unknown):
            return answer
        found.update(told(answer))
    return tuple(sorted(found, key=lambda entry: (entry.host, entry.session)))


def ask(server: str, seconds: float) -> str | Unknown:
    """The server's answer to `cons`."""
    host, colon, port = server.rpartition(":")
    address = (host.strip("[]"), int(port)) if colon and port.isdecimal() else (server, DEFAULT_PORT)
    try:
        with socket.create_connection(address, timeout=seconds) as connection:
            connection.sendall(b"cons")
            data = b""
            while len(data) <= MOST_BYTES and (part := connection.recv(1 << 16)):
                data += part
    except OSError as error:
        return Unknown(f"{server} does not answer cons: {error}")
    if len(data) > MOST_BYTES:
        return Unknown(f"{server} answers cons with more than {MOST_BYTES:,} bytes")
    text = data.decode("utf-8", "replace")
    if NOT_ALLOWED in text:
        return Unknown(f"{server} does not allow cons (4lw.commands.whitelist)")
    if not text.strip():
        return Unknown(f"{server} answers cons with nothing (TLS, or another service)")
    return text


def told(text: str) -> list[ZookeeperSession]:
    """The sessions in an answer; our own question, which has none, is left out (pure)."""
    found = []
    for line in text.splitlines():
        match = LINE.match(line.rstrip())
        session = match and SESSION.search(match["facts"])
        if match and session:
            host = match["address"].strip("[]").partition("%")[0]
            number = int(session["id"], 16)
            found.append(ZookeeperSession(host, number - (1 << 64) if number >= 1 << 63 else number))
    return found
