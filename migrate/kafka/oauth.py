"""OAUTHBEARER: where the tool's own token comes from, what it says, and the messages that present it to a listener.

A token is an issuer's word: only the listener can check it.  What it says is read to renew it in time and to explain a
refusal, for a listener answers every bad token alike.  No message holds a token or a secret.

Source: RFC 6749 section 4.4 (client credentials), RFC 7628 (the mechanism), RFC 7519 (claims), KIP-768
(`HttpAccessTokenRetriever`: the client's id and secret travel in a Basic header, as they are spelled).
"""

from __future__ import annotations

import base64
import re
import ssl
import threading
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from migrate.errors import IssuerUnreachable, TokenRefused, TokenUnusable
from migrate.kafka.secrets import read_secret
from migrate.kafka.tls import tls_context
from migrate.model import strict_json
from migrate.model.inventory import Access, OAuth

SHARE: Final = 0.8  # of a token's or a session's life, after which there is to be a new one (as Kafka's own logins)
SECONDS: Final = 10.0  # for one answer of the endpoint
AGAIN: Final = 5.0  # seconds until an endpoint that did not answer is asked again
MOST: Final = 1 << 20  # bytes of it
BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750: b64token
END: Final = b"\x01"
USER_OF_URL: Final = re.compile(r"^(https?:?/*)[^/]*@")
DIRECT: Final = ProxyHandler({})  # Kafka asks no proxy of the environment, which would be given the client's secret
TOLD: Final = ("sub", "iss", "aud", "nbf", "iat", "exp")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, what it says of itself, and from when on another one is to be fetched (seconds since 1970)."""

    text: str = field(repr=False)
    claims: Mapping[str, Any]  # {} for one that only its issuer can read
    renew_at: float
    ends: float | None = None  # where anybody says so


_KNOWN: Final[dict[OAuth, Token]] = {}
_AWAY: Final[dict[OAuth, tuple[float, IssuerUnreachable]]] = {}  # until when it is not asked again, and why
_LOCK: Final = threading.Lock()


def token_of(access: Access) -> Token:
    """The token that the access logs in with now: the one that is known, or another where that one's end is near.

    Raises TokenUnusable, TokenRefused, IssuerUnreachable, SecretUnreadable, StoreUnreadable.
    """
    login = access.oauth
    assert login is not None
    with _LOCK:
        found = _KNOWN.get(login)
        if found is None or time.time() >= found.renew_at:
            found = _KNOWN[login] = _another(login, found)
    _check(found, access.username, time.time())
    return found


def _another(login: OAuth, known: Token | None) -> Token:
    """A new token, or the known one where that still holds and the endpoint is away, which is waited for once."""
    until, error = _AWAY.get(login, (0.0, None))
    if error is None or time.monotonic() >= until:
        try:
            text, seconds = (read_secret(login.token, fresh=True), None) if login.token is not None else _issued(login)
            return read(text, time.time(), seconds)
        except IssuerUnreachable as failed:
            error = failed
            _AWAY[login] = time.monotonic() + AGAIN, error
    if known is not None and known.ends is not None and time.time() < known.ends:
        return known
    raise IssuerUnreachable(error.what, where=error.where, why=error.why)


def forget(access: Access) -> str:
    """Fetch another token next time, for a listener has refused this one; answers what this one says of itself."""
    with _LOCK:
        found = _KNOWN.pop(access.oauth or OAuth(), None)
    return "" if found is None else f"; our token says {explained(found, time.time())}"


def read(text: str, now: float, seconds: float | None = None) -> Token:
    """A token with its claims; `seconds` is how long its issuer says that it holds.  Raises TokenUnusable."""
    if not BEARER.fullmatch(text):
        raise TokenUnusable("the token has letters that no token has", why="RFC 6750 names those of a b64token")
    claims: Any = {}
    try:
        middle = text.split(".")[1]
        claims = strict_json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (ValueError, IndexError):
        pass  # no JWT: its issuer alone can read it
    claims = claims if isinstance(claims, dict) else {}
    ends = _number(claims.get("exp"))
    ends = now + seconds if ends is None and seconds is not None else ends
    return Token(text, claims, now + (0.0 if ends is None else max(ends - now, 0.0) * SHARE), ends)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _check(token: Token, user: str, now: float) -> None:
    ends = _number(token.claims.get("exp"))
    if ends is not None and ends <= now:
        raise TokenUnusable(f"our token has ended: {explained(token, now)}")
    if token.claims and user not in token.claims.values():
        raise TokenUnusable(
            f"our token does not name user {user}: {explained(token, now)}",
            why="rights are judged by `username` of the access, and listeners go by the token",
            next_step="write the claim that the listeners take (sasl.oauthbearer.sub.claim.name, or sub) as `username`",
        )


def explained(token: Token, now: float) -> str:
    """What a token says of itself, for people: `sub=migrator, aud=kafka, exp=1700000000 (in 60 s)`."""
    if not token.claims:
        return "it is no JWT, only its issuer can read it"
    parts = []
    for name in TOLD:
        if name in token.claims:
            value, at = token.claims[name], _number(token.claims[name])
            away = "" if at is None else f" ({abs(at - now):.0f} s {'ahead' if at > now else 'ago'})"
            parts.append(f"{name}={value:.0f}{away}" if at is not None else f"{name}={value}")
    return ", ".join(parts) or "it has none of the usual claims"


def ask_endpoint(url: str) -> None:
    """A request without anything of ours: whatever the endpoint answers, also that it wants another one, it answers.

    A user, a password and a query in the URL are neither sent nor told.  Raises IssuerUnreachable.
    """
    url = re.split("[?#]", USER_OF_URL.sub(r"\1", url))[0]
    try:
        with build_opener(_NoRedirect, DIRECT).open(Request(url), timeout=SECONDS):  # noqa: S310 - of the node's file
            return
    except HTTPError as error:
        error.close()
        away = f"it answered {error.code}" if error.code in (502, 503, 504) else ""
    except (OSError, HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        away = "" if isinstance(reason, ssl.SSLError) else str(reason)  # whom a node trusts is its own matter
    if away:
        raise IssuerUnreachable(f"{url} does not answer", where="before a restart", why=away)


# -- the endpoint ------------------------------------------------------------------------------------------------
class _NoRedirect(HTTPRedirectHandler):
    """Another address would be given the client's secret."""

    def redirect_request(self, *_: object) -> None:
        return None


def _issued(login: OAuth) -> tuple[str, float | None]:
    """A token by the client's credentials, and how many seconds the endpoint says that it holds."""
    assert login.client_secret is not None
    client = base64.b64encode(f"{login.client_id}:{read_secret(login.client_secret)}".encode()).decode()
    wanted = {"grant_type": "client_credentials", **({"scope": login.scope} if login.scope else {})}
    headers = {"Accept": "application/json", "Authorization": f"Basic {client}"}
    where = login.endpoint or ""
    opener = build_opener(_NoRedirect, DIRECT, HTTPSHandler(context=tls_context(login.truststore, None)))
    try:
        with opener.open(Request(where, urlencode(wanted).encode(), headers), timeout=SECONDS) as answer:  # noqa: S310
            raw = answer.read(MOST)
    except HTTPError as error:
        with error:
            told = _error_of(error)
        if error.code >= 500:
            raise IssuerUnreachable(f"the token endpoint answered {error.code}", where=where, why=told) from None
        raise TokenRefused(
            f"the token endpoint refuses client {login.client_id}: HTTP {error.code}", where=where, why=told
        ) from None
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLError):
            raise TokenRefused(
                "no TLS session with the token endpoint",
                where=where,
                why=str(reason.reason or reason),
                next_step="name the authority of its certificate as `truststore` of `oauth`",
            ) from None
        raise IssuerUnreachable("the token endpoint does not answer", where=where, why=str(reason)) from None
    except ValueError as error:
        raise TokenRefused("the token endpoint cannot be asked", where=where, why=str(error)) from None
    try:
        found = strict_json.loads(raw)
        return str(found["access_token"]), _number(found.get("expires_in"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TokenRefused("the token endpoint's answer holds no access_token", where=where) from None


def _error_of(answer: HTTPError) -> str:
    """RFC 6749, 5.2: `error` and `error_description`; of any other answer, and of one that is cut short, nothing."""
    try:
        found = strict_json.loads(answer.read(MOST))
        return ": ".join(str(found[key])[:200] for key in ("error", "error_description") if key in found)
    except (OSError, HTTPException, ValueError, TypeError):
        return ""


# -- the mechanism -----------------------------------------------------------------------------------------------
def bearer(token: Token) -> Generator[bytes, bytes, None]:
    """Yield the client's messages; a listener that refuses says so in a message, and fails after our answer to it."""
    if (yield b"n,," + END + b"auth=Bearer " + token.text.encode() + END + END):
        yield END
