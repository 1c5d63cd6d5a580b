"""SASL on a fresh connection (KIP-43, KIP-152): handshake, then the mechanism's tokens.

PLAIN and SCRAM are spoken.  A further mechanism is one more entry of `MECHANISMS`: a generator that yields the client's
tokens and is sent the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Final, Protocol

from migrate.errors import AccessRefused, AccessUnsupported
from migrate.kafka import codes
from migrate.kafka.codes import Code
from migrate.kafka.scram import HASHES, ScramBroken, scram
from migrate.kafka.secret_files import read_secret
from migrate.model.inventory import Access
from migrate.protocol.fields import Values
from migrate.protocol.messages import SASL_AUTHENTICATE, SASL_HANDSHAKE, Api

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
