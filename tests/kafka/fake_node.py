"""A scripted node on a real socket: it speaks Kafka's frames with our tables and misbehaves on demand.

What real nodes say is tested against real ones; this serves the faults that they cannot be made to show.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from migrate.protocol.loader import Values
from tests.testing.encoding import APIS, decode_request, encode_response

BY_KEY = {api.key: api for api in APIS.values()}


@dataclass(frozen=True)
class Raw:
    """These bytes instead of an answer, then the connection is kept, or closed."""

    content: bytes
    close: bool = False


@dataclass(frozen=True)
class OtherCorrelation:
    """The answer to a request that nobody made."""

    body: Values


class Close:
    """Close the connection instead of an answer."""


class Silence:
    """Never answer."""


Said = Values | Raw | OtherCorrelation | Close | Silence
Script = Callable[[int, Values], Said]


def served(*names: str) -> Script:
    """An ApiVersions answer that lists these apis (all of them for none)."""
    apis = [APIS[name] for name in names] or list(APIS.values())
    keys = [{"apiKey": api.key, "minVersion": api.versions.low, "maxVersion": api.versions.high} for api in apis]
    return lambda _version, _body: {"errorCode": 0, "apiKeys": keys}


@dataclass
class FakeNode:
    """Answers each request by the script of its api's name; `seen` keeps (name, version, body)."""

    scripts: dict[str, Script] = field(default_factory=dict)
    seen: list[tuple[str, int, Values]] = field(default_factory=list)
    connections: int = 0
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self.scripts.setdefault("ApiVersions", served())
        self._stop = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for one in (self._server, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self.connections += 1
                self._open.append(client)
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.tls is not None:
                client = self.tls.wrap_socket(client, server_side=True)
        with contextlib.suppress(OSError), client:
            for request in requests(client):
                api = BY_KEY[int.from_bytes(request[:2], "big")]
                version, correlation_id, body = decode_request(api, request)
                self.seen.append((api.name, version, body))
                match self.scripts[api.name](version, body):
                    case Close():
                        return
                    case Silence():
                        self._stop.wait()
                    case Raw(content, close):
                        client.sendall(content)
                        if close:
                            return
                    case OtherCorrelation(said):
                        send(client, encode_response(api, version, correlation_id + 7, said))
                    case said:
                        send(client, encode_response(api, version, correlation_id, said))


def send(client: socket.socket, payload: bytes) -> None:
    """One frame."""
    client.sendall(len(payload).to_bytes(4, "big") + payload)


def requests(client: socket.socket) -> Iterator[bytes]:
    """The frames that come, until the other side closes."""
    with client.makefile("rb") as stream:
        while len(size := stream.read(4)) == 4:
            yield stream.read(int.from_bytes(size, "big"))
