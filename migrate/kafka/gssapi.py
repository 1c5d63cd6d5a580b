"""SASL GSSAPI for clients (RFC 4752) with Kerberos, by ctypes on the system's MIT library: nothing to compile.

The library asks the KDC without a deadline of its own, so it is called in a thread that may be left behind.  Tickets
from a keytab live in this process's memory alone.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import secrets
import struct
import threading
import weakref
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeVar

from migrate.errors import KdcUnreachable, KerberosRefused, KerberosUnusable, MigrateError
from migrate.kafka.secrets import read_private
from migrate.model.inventory import Kerberos

LIBRARY: Final = "libgssapi_krb5.so.2"
KDC_SECONDS: Final = 10.0  # the library itself gives up after half a minute
T = TypeVar("T")


class _Buffer(ctypes.Structure):
    _fields_: ClassVar[Any] = [("length", c_size_t), ("value", c_void_p)]


class _Oid(ctypes.Structure):
    _fields_: ClassVar[Any] = [("length", c_uint32), ("elements", c_char_p)]


class _OidSet(ctypes.Structure):
    _fields_: ClassVar[Any] = [("count", c_size_t), ("elements", POINTER(_Oid))]


class _Pair(ctypes.Structure):
    _fields_: ClassVar[Any] = [("key", c_char_p), ("value", c_char_p)]


class _Store(ctypes.Structure):
    _fields_: ClassVar[Any] = [("count", c_uint32), ("elements", POINTER(_Pair))]


def _oid(text: bytes) -> _Oid:
    return _Oid(len(text), text)


# in DER: RFC 1964 (mechanism, a principal as it stands) and RFC 2743 (service@host)
KRB5: Final = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02")
PRINCIPAL: Final = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01")
SERVICE: Final = _oid(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04")
MUTUAL_INTEGRITY: Final = 2 | 8 | 32  # GSS_C_MUTUAL_FLAG, GSS_C_SEQUENCE_FLAG, GSS_C_INTEG_FLAG
INITIATE: Final = c_int(1)
CONTINUE: Final = 1
FAILED: Final = 0xFFFF0000
EXPIRED: Final = 11 << 16  # GSS_S_CREDENTIALS_EXPIRED
NO_LAYER: Final = 1  # RFC 4752: the security layer "none", the only one that Kafka offers

# errors of krb5 (krb5_err.et), without their table's base
BASE: Final = -1765328384
AWAY: Final = {156: "no KDC of the realm answers", 220: "the KDC's host name does not resolve"}
NO_SUCH_CLIENT: Final = 6
NO_SUCH_SERVICE: Final = 7
WRONG_KEY: Final = (24, 31)  # pre-authentication failed, decryption failed
SKEW: Final = 37
FROM_KDC: Final = 128  # below it are the errors that a KDC sends (RFC 4120, 7.5.9)
NO_REALM: Final = 154
TICKET_EXPIRED: Final = 32


@functools.cache
def library() -> Any:
    """The system's library.  Raises KerberosUnusable: it is not installed, or of another kind than MIT's."""
    try:
        found = ctypes.CDLL(LIBRARY)
        functions = (found.gss_acquire_cred_from, found.gss_init_sec_context, found.gss_import_name, found.gss_wrap)
    except (OSError, AttributeError) as error:
        raise KerberosUnusable(
            f"{LIBRARY} of MIT Kerberos cannot be used",
            where="this host",
            why=str(error),
            next_step="apt install libgssapi-krb5-2, or dnf install krb5-libs",
        ) from None
    for function in functions:
        function.restype = c_uint32
    return found


class _Handle:
    """A credential, name or context of the library, released when nobody refers to it."""

    def __init__(self, release: Callable[..., Any], *more: Any) -> None:
        self.pointer = c_void_p()
        # not at the end of the process: a thread that was left behind may use it
        weakref.finalize(self, release, byref(c_uint32()), byref(self.pointer), *more).atexit = False


class _Failed(Exception):
    """The library's own words, and its number without the table's base."""

    def __init__(self, major: int, minor: int) -> None:
        super().__init__(_words(minor, 2) if minor else _words(major, 1))
        self.number = ctypes.c_int32(minor).value - BASE
        self.expired = self.number == TICKET_EXPIRED or major & FAILED == EXPIRED


def _words(code: int, kind: int) -> str:
    more, said = c_uint32(), _Buffer()
    library().gss_display_status(byref(c_uint32()), c_uint32(code), c_int(kind), byref(KRB5), byref(more), byref(said))
    return _taken(said).decode(errors="replace")


def _called(function: Any, *arguments: Any) -> int:
    """The major status of a call that succeeded.  Raises _Failed."""
    minor = c_uint32()
    major = int(function(byref(minor), *arguments))
    if major & FAILED:
        raise _Failed(major, minor.value)
    return major


def _buffer(content: bytes) -> _Buffer:
    found = _Buffer(len(content), ctypes.cast(ctypes.c_char_p(content), c_void_p))
    found.kept = content  # for as long as the library may read it
    return found


def _taken(buffer: _Buffer) -> bytes:
    content = ctypes.string_at(buffer.value, buffer.length) if buffer.length else b""
    library().gss_release_buffer(byref(c_uint32()), byref(buffer))
    return content


def _name(text: str, kind: _Oid) -> _Handle:
    found = _Handle(library().gss_release_name)
    _called(library().gss_import_name, byref(_buffer(text.encode())), byref(kind), byref(found.pointer))
    return found


def principals(keytab: bytes) -> tuple[str, ...]:
    """The principals of a keytab (MIT's format 5.2), in its order.  Raises ValueError: it is none."""
    if keytab[:2] != b"\x05\x02":
        raise ValueError("its first bytes are not those of a keytab")
    found, at = [], 2
    while at + 4 <= len(keytab):
        (size,) = struct.unpack_from(">i", keytab, at)
        if size == 0:  # the library reads no further
            break
        entry, at = keytab[at + 4 : at + 4 + abs(size)], at + 4 + abs(size)
        if size < 0:  # what was removed
            continue
        if len(entry) < max(size, 4):
            raise ValueError("it ends within an entry")
        parts, place = [], 2
        for _ in range(1 + int.from_bytes(entry[:2], "big")):  # the realm, then the name's parts
            length = int.from_bytes(entry[place : place + 2], "big")
            parts.append(entry[place + 2 : place + 2 + length].decode(errors="replace"))
            place += 2 + length
        found.append(f"{'/'.join(parts[1:])}@{parts[0]}")
    return tuple(dict.fromkeys(found))


def _checked(login: Kerberos) -> None:
    """Look into the keytab: the library says only that there are no credentials."""
    if not login.keytab:
        return
    try:
        known = principals(read_private(login.keytab, "the keytab"))
    except ValueError as error:
        raise KerberosUnusable(f"this is no keytab: {error}", where=login.keytab) from None
    if login.principal not in known:
        raise KerberosUnusable(
            f"the keytab has no key of {login.principal}",
            where=login.keytab,
            why=f"it has keys of {', '.join(known) or 'nobody'}",
            next_step="correct `principal` of the inventory's kerberos, or name another keytab",
        )


def _credential(login: Kerberos, cache: str = "") -> _Handle:
    """The login's credential; from a keytab by a new ticket, where memory holds none that lasts.

    `cache` is added to the name of the cache in memory.
    """
    given = {b"ccache": login.ccache.encode()} if login.ccache else {}
    if login.keytab:
        known = hashlib.sha256(f"{login.keytab}\0{login.principal}".encode()).hexdigest()
        given = {b"client_keytab": login.keytab.encode(), b"ccache": f"MEMORY:kraft-migrate-{known}{cache}".encode()}
    pairs = (_Pair * len(given))(*(_Pair(key, value) for key, value in given.items()))
    found, mechanisms = _Handle(library().gss_release_cred), _OidSet(1, ctypes.pointer(KRB5))
    name = _name(login.principal, PRINCIPAL)  # kept until the call is over: without it any principal would do
    _called(
        library().gss_acquire_cred_from,
        name.pointer,
        c_uint32(0),
        byref(mechanisms),
        INITIATE,
        byref(_Store(len(given), pairs)) if given else None,
        byref(found.pointer),
        None,
        None,
    )
    return found


_ASKING: Final = threading.Lock()  # one at a time: a KDC that is silent holds one thread, not one of each node


def _in_time(work: Callable[[], T], login: Kerberos, where: str) -> T:
    """What `work` answers, in a thread of its own.  Raises KdcUnreachable: the KDC was silent for too long."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(error)
        finally:
            _ASKING.release()

    if _ASKING.acquire(timeout=KDC_SECONDS):
        threading.Thread(target=run, name="kerberos", daemon=True).start()
        try:
            return future.result(KDC_SECONDS)
        except TimeoutError:
            pass
    raise KdcUnreachable(
        f"no KDC of realm {_realm(login)} answered within {KDC_SECONDS:g} s", where=where, why=_for(login)
    )


def _realm(login: Kerberos) -> str:
    return login.principal.rpartition("@")[2]


def _for(login: Kerberos) -> str:
    source = login.keytab or login.ccache or "the default ticket cache"
    return f"a ticket is needed for {login.principal} ({source})"


def _told(error: _Failed, login: Kerberos, target: str, where: str) -> MigrateError:
    """What is wrong, and what to do about it, by the library's number."""
    number, said = error.number, str(error)
    if number in AWAY:
        return KdcUnreachable(f"{AWAY[number]}: {said}", where=where, why=_for(login))
    if number == SKEW:
        text, step = "the KDC refuses this host's clock", "set the clock: Kerberos allows five minutes of difference"
    elif number == NO_SUCH_CLIENT:
        text, step = f"the KDC knows no principal {login.principal}", "correct `principal`, or have it made"
    elif number in WRONG_KEY:
        text, step = f"the KDC has another key for {login.principal}", "have the keytab written anew: its key is old"
    elif number == NO_SUCH_SERVICE:
        text = f"the KDC knows no principal for {target}"
        step = (
            "name the host in `address` as the node's keytab does, not by its IP; correct `service` of the "
            "inventory's kerberos; where the KDC was asked for another host's name than that, write "
            "dns_canonicalize_hostname = false and rdns = false into [libdefaults] of this host's krb5.conf"
        )
    elif number == NO_REALM:
        return KerberosUnusable(
            f"krb5.conf names no KDC for realm {_realm(login)}", where=where, why=said, next_step="correct it"
        )
    elif 0 < number < FROM_KDC and not error.expired:
        text, step = f"the KDC gives {login.principal} no ticket", "have whoever runs the KDC see to what it says"
    else:
        where_from = "see whether `kinit -k -t KEYTAB PRINCIPAL` works here" if login.keytab else "kinit again"
        return KerberosUnusable(f"no credentials of {login.principal}", where=where, why=said, next_step=where_from)
    return KerberosRefused(text, where=where, why=said, next_step=step)


@dataclass(slots=True)
class _Context:
    """One login at one service."""

    login: Kerberos
    target: str
    where: str
    kind: _Oid = SERVICE

    def begun(self, cache: str = "") -> tuple[_Handle, _Handle, _Handle, bytes]:
        """Credential, name and context, with the first token: all that needs the KDC.

        Where an old ticket has ended and no new one comes, the library says the first: an empty cache has the reason.
        """
        try:
            credential, name = _credential(self.login, cache), _name(self.target, self.kind)
            context = _Handle(library().gss_delete_sec_context, None)
            token, _ = self.step(credential, name, context, b"")
        except _Failed as error:
            if error.expired and self.login.keytab and not cache:
                return self.begun(secrets.token_hex(8))
            raise _told(error, self.login, self.target, self.where) from None
        return credential, name, context, token

    def step(self, credential: _Handle, name: _Handle, context: _Handle, token: bytes) -> tuple[bytes, bool]:
        """Our next token, and whether more must come."""
        out = _Buffer()
        major = _called(
            library().gss_init_sec_context,
            credential.pointer,
            byref(context.pointer),
            name.pointer,
            byref(KRB5),
            c_uint32(MUTUAL_INTEGRITY),
            c_uint32(0),
            None,
            byref(_buffer(token)) if token else None,
            None,
            byref(out),
            None,
            None,
        )
        return _taken(out), bool(major & CONTINUE)


def ask_kdc(login: Kerberos) -> None:
    """Ask for a ticket that no cache holds, for a service that is none: whatever the KDC answers, it answers.

    Raises KdcUnreachable; KerberosUnusable or SecretUnreadable: there is nothing to ask with.
    """
    _checked(login)
    library()
    target = f"kraft-migrate/is-the-kdc-there@{_realm(login)}"
    with suppress(KerberosRefused):
        _in_time(_Context(login, target, "before a restart", PRINCIPAL).begun, login, "before a restart")


def gssapi(login: Kerberos, service: str, host: str, where: str) -> Generator[bytes, bytes, None]:
    """Yields the client's tokens, is sent the server's; ends after both have proven who they are.

    Raises KerberosUnusable, KerberosRefused, KdcUnreachable, SecretUnreadable.
    """
    _checked(login)
    library()
    begin = _Context(login, f"{service}@{host}", where)
    credential, name, context, token = _in_time(begin.begun, login, where)
    try:
        more = True
        while more:
            answer = yield token
            token, more = begin.step(credential, name, context, answer)
        offer = yield token
        out = _Buffer()
        _called(library().gss_unwrap, context.pointer, byref(_buffer(offer)), byref(out), None, None)
        layers = _taken(out)
        if len(layers) != 4 or not layers[0] & NO_LAYER:
            raise KerberosRefused("the listener asks for a security layer", where=where, next_step="use TLS instead")
        chosen = _buffer(bytes((NO_LAYER, 0, 0, 0)))
        out = _Buffer()
        _called(library().gss_wrap, context.pointer, c_int(0), c_uint32(0), byref(chosen), None, byref(out))
        yield _taken(out)
    except _Failed as error:
        raise KerberosRefused("the listener has not proven who it is", where=where, why=str(error)) from None


def ticket_seconds(login: Kerberos) -> int:
    """How long the login's ticket still lasts; from a keytab a new one is asked for where there is none.

    Raises as `gssapi` does.
    """
    _checked(login)
    library()

    def asked() -> int:
        left = c_uint32()
        try:
            credential = _credential(login)
            _called(library().gss_inquire_cred, credential.pointer, None, byref(left), None, None)
        except _Failed as error:
            raise _told(error, login, "", "Kerberos") from None
        return left.value

    return _in_time(asked, login, "Kerberos")
