"""A listener that is none of those it is taken for: it answers whatever comes with the same bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

MOST: Final = 10_000  # bytes of a request that are read; what is left unread would reset the connection


@dataclass(frozen=True, slots=True)
class Answering:
    """Where it listens."""

    address: str


@contextmanager
def answering(answer: bytes | None) -> Iterator[Answering]:
    """Every connection gets the bytes, and is closed; None: it is taken and nothing is said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return
                if answer is not None:
                    kept[-1].recv(MOST)
                    kept[-1].sendall(answer)
                    kept[-1].close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Answering(f"127.0.0.1:{server.getsockname()[1]}")
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()
