"""Meet each listener of a broker as a stranger does: TLS, versions, the mechanisms of SASL, and no credential.

Nothing is verified, because nothing is sent that anybody could misuse: what is presented is looked at, and compared
with what was presented before.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Final

from migrate.errors import AnswerBroken, KafkaRefused, MigrateError, TlsRefused
from migrate.kafka.connection import DEFAULT_LIMITS, HANDSHAKE_VERSION, Connection, Limits, reach
from migrate.kafka.tls import CLOSED, last_word, tls_error
from migrate.model.inventory import Access, BrokerNode
from migrate.model.kafka_values import Endpoint, is_loopback
from migrate.model.listeners import Certificate, Served, listeners, mechanisms, protocols
from migrate.protocol.messages import SASL_HANDSHAKE

WANTS_ONE: Final = ("bad certificate", "certificate required")  # alerts to a client without a certificate
THREADS: Final = 8


def meet(broker: BrokerNode, values: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> dict[str, Served]:
    """What each listener of the broker's file serves, all at once.  Never raises for what a broker does."""
    known, found = protocols(values), listeners(values)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="listener") as pool:
        asked = {
            entry.listener: pool.submit(
                _first_met,
                known.get(entry.listener, ""),
                tuple(_addresses(broker, entry, values)),
                next(filter(None, mechanisms(values, entry.listener)), "GSSAPI"),
                limits,
            )
            for entry in found
        }
        return {name: future.result() for name, future in asked.items()}


def _addresses(broker: BrokerNode, bound: Endpoint, values: Mapping[str, str]) -> Iterator[str]:
    """Where the listener may be met: where it is advertised, else where it is bound.

    An address of the loopback is this host's own, unless the inventory reaches the broker there.  The inventory's host
    is taken with a port of the file where no other port stands for it.
    """
    host, _, port = broker.address.rpartition(":")
    here, ports = is_loopback(host), [str(entry.port) for entry in listeners(values)]
    told = [entry for entry in listeners(values, "advertised.listeners") if entry.listener == bound.listener]
    for entry in (*told, bound):
        if entry.host and not _is_everywhere(entry.host) and (here or not is_loopback(entry.host)):
            yield _address(entry.host, entry.port)
    if port in ports:
        yield _address(host.strip("[]"), bound.port)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _first_met(protocol: str, addresses: tuple[str, ...], mechanism: str, limits: Limits) -> Served:
    found = Served(protocol, "", silent="no address of it is one that this host can call")
    for address in dict.fromkeys(addresses):
        met = _met(protocol, address, mechanism, limits)
        if not met.silent:
            return met
        found = found if found.address else met
    return found


def _met(protocol: str, address: str, mechanism: str, limits: Limits) -> Served:
    found = Served(protocol, address)
    try:
        opened = reach(address, _unverified() if protocol.endswith("SSL") else None, limits)
        shown = opened.getpeercert(binary_form=True) if isinstance(opened, ssl.SSLSocket) else None
        found = replace(found, certificate=None if shown is None else _read(shown))
        if isinstance(opened, ssl.SSLSocket):
            _hear_out(opened, address)
        with Connection(address, Access(), limits, opened) as connection:
            if not protocol.startswith("SASL_"):
                return found
            answer = connection.exchange(SASL_HANDSHAKE, HANDSHAKE_VERSION, {"mechanism": mechanism})
            return replace(found, mechanisms=tuple(sorted(answer["mechanisms"])))
    except TlsRefused as error:  # of TLS 1.2 before any certificate is shown, of TLS 1.3 behind it
        wants = any(alert in error.what for alert in WANTS_ONE)
        return replace(found, guarded=True) if wants else replace(found, refused=error.what)
    except (AnswerBroken, KafkaRefused) as error:
        return replace(found, refused=error.what)
    except MigrateError as error:
        return replace(found, silent=error.what)


def _hear_out(opened: ssl.SSLSocket, address: str) -> None:
    """An alert to a client without a certificate comes behind the handshake, and is lost with the first request.

    Raises TlsRefused.
    """
    word = last_word(opened)
    if isinstance(word, ssl.SSLError) and not isinstance(word, CLOSED):
        opened.close()
        raise tls_error(word, address)


@cache
def _unverified() -> ssl.SSLContext:
    """A context for looking alone: whatever is presented is taken, weak keys too."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname = False
    found.verify_mode = ssl.CERT_NONE
    found.set_ciphers("DEFAULT:@SECLEVEL=0")
    return found


def _read(raw: bytes) -> Certificate:
    from cryptography import x509  # noqa: PLC0415 - it loads slowly

    try:
        found = x509.load_der_x509_certificate(raw)
        subject, issuer = found.subject.rfc4514_string(), found.issuer.rfc4514_string()
    except ValueError as error:
        return Certificate(f"one that cannot be read: {error}", "")
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return Certificate(subject, issuer)
    return Certificate(subject, issuer, tuple(sorted(str(name.value) for name in names)))
