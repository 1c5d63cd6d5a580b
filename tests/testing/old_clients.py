"""Requests as clients from before Kafka 2.1 send them: nothing that is installed here does."""

from __future__ import annotations

import socket
import struct

API_VERSIONS, LIST_OFFSETS = 18, 2


def text(value: str) -> bytes:
    """A string with its length before it."""
    return struct.pack(">h", len(value)) + value.encode()


def compact(value: str) -> bytes:
    """A string of the flexible versions."""
    return bytes([len(value) + 1]) + value.encode()


def ask(connection: socket.socket, key: int, version: int, body: bytes) -> None:
    """Send one request, and read its answer away."""
    flexible = b"\0" if key == API_VERSIONS and version > 2 else b""
    request = struct.pack(">hhi", key, version, 7) + text("old") + flexible + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    left = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
    assert struct.unpack(">i", connection.recv(left, socket.MSG_WAITALL)[:4]) == (7,)


def come(address: str, name: str = "", version: str = "") -> None:
    """Ask a broker for the offsets of no topic in ListOffsets v0, after saying who we are, where there is a name."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        if name:
            ask(connection, API_VERSIONS, 3, compact(name) + compact(version) + b"\0")
        ask(connection, LIST_OFFSETS, 0, struct.pack(">ii", -1, 0))
