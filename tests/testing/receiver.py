"""A receiver of webhooks: a real HTTP server on a free port of this host, which checks signatures as one should."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "canary-webhook-secret"


@dataclass
class Receiver:
    """Answers with these codes in turn, then with 200; `hangs`: with nothing, until it is let go."""

    answers: list[int] = field(default_factory=list)
    hangs: bool = False
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)
    port: int = 0

    @property
    def url(self) -> str:
        """Where it listens; the path is one that nobody should be shown."""
        return f"http://127.0.0.1:{self.port}/canary-path?canary=query"

    @property
    def taken(self) -> list[dict[str, Any]]:
        """The bodies of all requests, each of which was signed."""
        for _, headers, body in self.requests:
            assert genuine(headers, body)
        return [json.loads(body) for _, _, body in self.requests]

    def wait_for(self, number: int) -> None:
        """Until so many requests came."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= number, timeout=120)


def genuine(headers: dict[str, str], body: bytes) -> bool:
    """As docs/notifications.md says it."""
    signed = headers["X-Kraft-Migrate-Timestamp"].encode() + b"." + body
    expected = "sha256=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, headers["X-Kraft-Migrate-Signature"])


@contextmanager
def receiving(*answers: int, hangs: bool = False, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver, as long as the block lasts."""
    receiver = Receiver(list(answers), hangs)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with receiver.changed:
                receiver.requests.append((self.path, dict(self.headers), body))
                receiver.changed.notify_all()
                code = receiver.answers.pop(0) if receiver.answers else 200
            if receiver.hangs:
                receiver.let_go.wait()
                return
            self.send_response(code)
            if code in (302, 307):
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients that refuse us are part of the tests
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()
