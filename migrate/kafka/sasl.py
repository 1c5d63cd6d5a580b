"""SASL on a fresh connection (KIP-43, KIP-152): handshake, then the mechanism's tokens.

PLAIN and SCRAM are spoken.  A further mechanism is one more entry of `MECHANISMS`: a generator that yields the client's
tokens and is sent the server's.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Final, Protocol

from migrate.errors import AccessRefused, AccessUnsupported
from migrate.kafka import codes
from migrate.kafka.codes import Code
from migrate.kafka.secret_files import read_secret
from migrate.model.inventory import Access
from migrate.protocol.fields import Values
from migrate.protocol.messages import SASL_AUTHENTICATE, SASL_HANDSHAKE, Api

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


HANDSHAKE_VERSION: Final = 1  # from this version on tokens travel in SaslAuthenticate requests
AUTHENTICATE_VERSION: Final = 2
Tokens = Generator[bytes, bytes, None]


class Exchange(Protocol):
    """Send one request in one version, get its answer."""

    def __call__(self, api: Api, version: int, body: Values) -> Values:
        """The answer's body."""


def _password(access: Access) -> str:
    if access.password is None:
        raise AccessUnsupported(f"{access.mechanism} needs the password's file", where=access.username)
    return read_secret(access.password)


def plain(access: Access) -> Tokens:
    """RFC 4616: no authorization id, user, password."""
    yield b"\0".join((b"", access.username.encode(), _password(access).encode()))


def salted(mechanism: str, access: Access) -> Tokens:
    """RFC 5802: neither side tells the other the password."""
    yield from scram(mechanism, access.username, _password(access))


MECHANISMS: Final[Mapping[str, Callable[[Access], Tokens]]] = {
    "PLAIN": plain,
    **{mechanism: partial(salted, mechanism) for mechanism in HASHES},
}


def authenticate(exchange: Exchange, access: Access, where: str) -> None:
    """Go through handshake and tokens.

    Raises:
        AccessUnsupported: a mechanism that we do not speak, or no password for one that needs it.
        AccessRefused: the listener does not offer the mechanism, or refuses user or password.
        SecretUnreadable: the password's file.
    """
    if access.mechanism not in MECHANISMS:
        raise AccessUnsupported(f"SASL mechanism {access.mechanism!r} is not spoken yet", where=where)
    tokens = MECHANISMS[access.mechanism](access)
    token = next(tokens)
    answer = exchange(SASL_HANDSHAKE, HANDSHAKE_VERSION, {"mechanism": access.mechanism})
    if answer["errorCode"] != Code.NONE:
        offered = ", ".join(answer["mechanisms"])
        raise AccessRefused(f"the listener offers {offered}, not {access.mechanism}", where=where)
    while True:
        answer = exchange(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, {"authBytes": token})
        if answer["errorCode"] != Code.NONE:
            raise AccessRefused(
                f"user {access.username} was refused: {codes.name(answer['errorCode'])}",
                where=where,
                why=answer["errorMessage"] or "",
            )
        try:
            token = tokens.send(answer["authBytes"])
        except StopIteration:
            return
        except ScramBroken as error:
            raise AccessRefused(f"{access.mechanism} with the listener failed: {error}", where=where) from None
