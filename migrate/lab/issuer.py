"""The issuer of a lab with OAUTHBEARER: signs tokens for clients' credentials, and serves the keys that check them.

As a process: `python -m migrate.lab.issuer CONF`, with a JSON file of port, lifetime and clients (name -> secret).
Each start makes a key of its own: tokens of an earlier one are worth nothing.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import sys
import time
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from migrate.lab.topology import HOST

AUDIENCE: Final = "kafka"
MOST: Final = 1 << 16  # bytes of a request


class Issuer(ThreadingHTTPServer):
    """`lifetime`: seconds of its tokens; `given` counts them."""

    daemon_threads = True

    def __init__(self, port: int, clients: Mapping[str, str], lifetime: float = 3600.0) -> None:
        super().__init__((HOST, port), _Handler)
        self.clients, self.lifetime, self.given = clients, lifetime, 0
        self.url = f"http://{HOST}:{self.server_address[1]}"
        self.rotate()

    def rotate(self) -> None:
        """Sign with another key from now on, and forget the old one."""
        self.key = RSAKey.generate_key(2048, {"kid": uuid.uuid4().hex, "use": "sig", "alg": "RS256"})

    def token(self, subject: str, **claims: Any) -> str:
        """A signed token for that subject; `claims` replace what it would say, None leaves one out."""
        now = int(time.time())
        said = {"sub": subject, "iss": self.url, "aud": AUDIENCE, "iat": now, "exp": now + int(self.lifetime)}
        said = {name: value for name, value in (said | claims).items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, said, self.key)


class _Handler(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        if self.path == "/jwks":
            self._answer(200, KeySet([self.server.key]).as_dict(private=False))
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "0")
        raw = self.rfile.read(min(int(size) if size.isdecimal() else 0, MOST))
        wanted = parse_qs(raw.decode("utf-8", "replace"))
        client, secret = _basic(self.headers.get("Authorization", ""))
        known = self.server.clients.get(client)
        if self.path != "/token":
            self._answer(404, {})
        elif wanted.get("grant_type") != ["client_credentials"]:
            self._answer(400, {"error": "unsupported_grant_type"})
        elif known is None or not hmac.compare_digest(known.encode(), secret.encode()):
            self._answer(401, {"error": "invalid_client", "error_description": "no such client, or another secret"})
        else:
            self.server.given += 1
            token = {"access_token": self.server.token(client), "token_type": "Bearer"}
            self._answer(200, token | {"expires_in": int(self.server.lifetime)})

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: a lab's issuer is asked all the time."""


def _basic(header: str) -> tuple[str, str]:
    """Client and secret of an Authorization header."""
    try:
        name, _, secret = base64.b64decode(header.removeprefix("Basic "), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return name, secret


if __name__ == "__main__":
    conf = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Issuer(conf["port"], conf["clients"], conf["lifetime"]).serve_forever()
