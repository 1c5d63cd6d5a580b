"""A wire between a client and a server of this machine that a test makes slow, silent, or cuts."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PART = 4096
AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: close by a reset, and nothing that was sent is waited for


class Link:
    """Forwards every connection to `target` on loopback; both ways, as long as it is told nothing else."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._both: list[tuple[socket.socket, socket.socket]] = []
        self._flows = {"out": threading.Event(), "back": threading.Event()}
        self._rate = 0.0  # bytes a second; 0: as fast as it goes
        self._delay = 0.0  # seconds that each part is in progress
        self._left = -1  # bytes until the wire is cut; -1: it is not
        self._sign: Callable[[], bool] | None = None
        self._ended = threading.Event()
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()

    # -- what a test does to it --------------------------------------------------------------------------------------
    def heal(self) -> None:
        """New connections and old ones flow; what was held comes through."""
        self._rate, self._delay, self._left, self._sign = 0.0, 0.0, -1, None
        for flow in self._flows.values():
            flow.set()

    def hold(self, *ways: str) -> None:
        """Nothing comes through any more (`out`: to the server; `back`: from it), and nobody is told."""
        for way in ways or ("out", "back"):
            self._flows[way].clear()

    def slow(self, rate: float, delay: float = 0.0) -> None:
        """Bytes a second each way, and seconds that each part is in progress."""
        self._rate, self._delay = rate, delay

    def cut_after(self, count: int) -> None:
        """Reset all connections once so many bytes more went to the server."""
        self._left = count

    def cut_once(self, sign: Callable[[], bool]) -> None:
        """Reset all connections in place of the first answer that comes back when the sign is there."""
        self._sign = sign

    def cut(self) -> None:
        """Reset every connection that there is; new ones are taken."""
        both, self._both = self._both, []
        for end in (end for pair in both for end in pair):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                end.shutdown(socket.SHUT_RDWR)
        for end in (end for pair in both for end in pair):
            end.close()

    def close(self) -> None:
        """No more."""
        self._ended.set()
        self.heal()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    # -- how it works ------------------------------------------------------------------------------------------------
    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target), 5)
                except OSError:
                    client.close()
                    continue
                server.settimeout(None)
                self._both.append((client, server))
                for way, source, sink in (("out", client, server), ("back", server, client)):
                    threading.Thread(target=self._pump, args=(way, source, sink), daemon=True).start()

    def _pump(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(PART):
                if wait := self._delay + (len(part) / self._rate if self._rate else 0.0):
                    self._ended.wait(wait)
                self._flows[way].wait()
                if way == "back" and self._sign is not None and self._sign():
                    self._sign = None
                    self.cut()
                    return
                if way == "out" and self._left >= 0:
                    self._left -= len(part)
                    if self._left < 0:
                        self._left = -1
                        self.cut()
                        return
                sink.sendall(part)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def link_to(target: int) -> Iterator[Link]:
    """A link to that port, closed at the end."""
    link = Link(target)
    try:
        yield link
    finally:
        link.close()
