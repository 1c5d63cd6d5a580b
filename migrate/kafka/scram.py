"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677) as Kafka speaks them, without channel binding."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import Final

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
FEWEST: Final = 4096  # ScramMechanism.minIterations: fewer would make the proof cheap to guess
MOST: Final = 10_000_000  # a listener cannot keep us busy for ever
NO_BINDING: Final = "n,,"


class ScramBroken(Exception):
    """The other side did not keep to the protocol, or does not know the password either."""


def scram(mechanism: str, username: str, password: str, nonce: str = "") -> Generator[bytes, bytes, None]:
    """Yields the client's messages, is sent the server's; ends once the server has proven that it knows the password.

    Raises:
        ScramBroken: it has not.
    """
    digest = HASHES[mechanism]
    nonce = nonce or secrets.token_urlsafe(24)
    first = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    server_first = (yield f"{NO_BINDING}{first}".encode()).decode("utf-8", "replace")
    said = _attributes(server_first)
    salt, iterations, whole_nonce = _decoded(said.get("s", "")), _number(said.get("i", "")), said.get("r", "")
    if not whole_nonce.startswith(nonce) or whole_nonce == nonce:
        raise ScramBroken("its nonce does not begin with ours")
    if not FEWEST <= iterations <= MOST:
        raise ScramBroken(f"it asks for {iterations} iterations, {FEWEST} to {MOST} are accepted")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    bare = f"c={base64.b64encode(NO_BINDING.encode()).decode()},r={whole_nonce}"
    message = f"{first},{server_first},{bare}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    last = (yield f"{bare},p={base64.b64encode(proof).decode()}".encode()).decode("utf-8", "replace")
    wanted = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(_decoded(_attributes(last).get("v", "")), wanted):
        raise ScramBroken("it has not proven that it knows the password: it may be another server")


def _attributes(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ScramBroken("its message is not base64 where it should be") from None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
