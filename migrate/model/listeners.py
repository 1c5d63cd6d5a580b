"""What a broker's listeners serve to whoever calls without a credential, and what of it a restart took away (pure).

A KRaft broker opens its listeners by its file, and learns its dynamic configuration afterwards: what it cannot take
then, it never takes (KAFKA-17431).  Neither its registration nor its health says so; its clients do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from migrate.model import strict_json
from migrate.model.codec import decode
from migrate.model.kafka_values import Endpoint, elements, endpoints, listener_prefix, protocol_map, trim, truth
from migrate.model.outcome import Unknown

PROTOCOL_MAP: Final = "listener.security.protocol.map"
DEFAULT_PROTOCOL_MAP: Final = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
DEFAULT_LISTENERS: Final = "PLAINTEXT://:9092"
KEYSTORE: Final = "ssl.keystore.location"
CHAIN: Final = "ssl.keystore.certificate.chain"
TRUSTSTORE: Final = "ssl.truststore.location"  # its certificates may have ended: Java asks no day of what it trusts
STORES: Final = (KEYSTORE, CHAIN, TRUSTSTORE)
ZOOKEEPER: Final = "zookeeper."
MECHANISMS: Final = "sasl.enabled.mechanisms"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
JAAS: Final = "sasl.jaas.config"
GONE: Final = "does not exist"
DENIED: Final = "cannot be read by the user that the node runs as"
BEGIN: Final = re.compile(  # of one life of a node, in its log or in its unit's
    r"Registered kafka:type=kafka\.Log4jController MBean|Registered signal handlers for|: Scheduled restart job,"
)
_REFUSED: Final = re.compile(r"(?:Per-broker configs of \d+|Cluster default configs) could not be applied")
_CAUSE: Final = re.compile(r"[\w.$]*(?:Exception|Error): .*")


def protocols(values: Mapping[str, str]) -> dict[str, str]:
    """listener.security.protocol.map: listener -> protocol, both in capitals; of a text that Kafka refuses nothing."""
    try:
        return protocol_map(values.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP))
    except ValueError:
        return {}


def listeners(values: Mapping[str, str], key: str = "listeners") -> tuple[Endpoint, ...]:
    """Return `listeners` (or Kafka's default) or `advertised.listeners`; of a text that Kafka refuses nothing."""
    try:
        return endpoints(values.get(key, DEFAULT_LISTENERS if key == "listeners" else ""))
    except ValueError:
        return ()


def inter_broker_listener(values: Mapping[str, str]) -> str:
    """Its name in capitals: inter.broker.listener.name, else the protocol of security.inter.broker.protocol."""
    named = values.get("inter.broker.listener.name", "")
    return trim(named or values.get("security.inter.broker.protocol", "PLAINTEXT")).upper()


def mechanisms(values: Mapping[str, str], listener: str) -> tuple[str, ...]:
    """What a listener of SASL takes."""
    return elements(values.get(f"{listener_prefix(listener)}{MECHANISMS}", values.get(MECHANISMS, "GSSAPI")))


def jaas_key(listener: str, mechanism: str) -> str:
    """`listener.name.ctl.plain.sasl.jaas.config`."""
    return f"{listener_prefix(listener)}{mechanism.lower()}.{JAAS}"


def spoken(values: Mapping[str, str], controllers: str, protocol: str) -> dict[str, str]:
    """The listeners that a node has or calls, with their protocols, sorted.

    `controllers` is the controllers' listener, of that protocol: a broker calls it from its first restart on.
    """
    mine = {entry.listener for entry in listeners(values)}
    unknown = dict.fromkeys(mine, "SASL_SSL")  # it may be any
    known = {**unknown, **protocols(values), controllers.upper(): protocol}
    return {name: known.get(name, name) for name in sorted({*mine, inter_broker_listener(values), controllers.upper()})}


def called(values: Mapping[str, str], controllers: str, protocol: str) -> dict[str, str]:
    """The listeners of SASL that a node calls, with the mechanism of each; the two words are those of `spoken`."""
    known = {**protocols(values), controllers.upper(): protocol}
    keys = {inter_broker_listener(values): BROKER_MECHANISM, controllers.upper(): CONTROLLER_MECHANISM}
    sasl = (name for name in keys if known.get(name, name).startswith("SASL"))
    return {name: trim(values.get(keys[name], "GSSAPI")) for name in sasl}


def logins(values: Mapping[str, str], controllers: str, protocol: str) -> frozenset[tuple[str, str]]:
    """Listener and mechanism of each login that a node makes: for what it opens, and for what it calls."""
    sasl = {name for name, by in spoken(values, controllers, protocol).items() if by.startswith("SASL")}
    mine = sasl.intersection(entry.listener for entry in listeners(values))
    served = ((name, mechanism) for name in mine for mechanism in mechanisms(values, name))
    return frozenset({*served, *called(values, controllers, protocol).items()})


def stores_named(values: Mapping[str, str], controllers: str, protocol: str) -> tuple[str, ...]:
    """The keys by which a node of that file opens stores when it starts: for a listener that is `spoken`.

    A key without a listener's prefix is opened where a listener with TLS has none of its own.
    """
    tls = [name for name, spoken_there in spoken(values, controllers, protocol).items() if spoken_there.endswith("SSL")]
    found = []
    for base in STORES:
        own = [f"{listener_prefix(name)}{base}" for name in tls]
        found += [key for key in own if key in values]
        found += [base] if base in values and not all(key in values for key in own) else []
    if truth(values, "zookeeper.ssl.client.enable"):
        found += [key for key in (f"{ZOOKEEPER}{KEYSTORE}", f"{ZOOKEEPER}{TRUSTSTORE}") if key in values]
    return tuple(key for key in found if values[key].strip())


def latest_life(lines: Sequence[str]) -> Sequence[str]:
    """The lines since the last start, as far as they were read."""
    return lines[max((number for number, line in enumerate(lines) if BEGIN.search(line)), default=0) :]


def not_applied(lines: Sequence[str]) -> tuple[str, ...] | Unknown:
    """What a broker says since its start that it could not apply, each with its cause; Unknown without the start.

    Source: `DynamicBrokerConfig.updateBrokerConfig`, `updateDefaultConfig` (Kafka 3.9).
    """
    if not any(BEGIN.search(line) for line in lines):
        return Unknown("what can be read of its log does not go back to its start")
    latest, found = latest_life(lines), dict[str, None]()
    for number, line in enumerate(latest):
        if match := _REFUSED.search(line):
            after = latest[number + 1] if number + 1 < len(latest) else ""
            cause = _CAUSE.match(after)
            found[match[0] + (f" ({cause[0][:300]})" if cause else "")] = None
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate that a listener presents: names as RFC 4514 and X.509 spell them."""

    subject: str
    issuer: str
    names: tuple[str, ...] = ()  # subject alternative names, sorted


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A store that a node's file names under `key`, or holds itself: then `path` is "".

    Or a file of logins: `key` is then the word of the command line, or the login, that names it.

    `ends` is the ISO date (UTC) of the last day of the certificate that it presents, "" where it presents none, and
    `begins` that of its first day where it is yet to come.
    `fault` is why the node cannot open it, `GONE` or `DENIED`; Unknown where nobody looked as the node's user.
    """

    key: str
    path: str
    ends: str | Unknown
    fault: str | Unknown = ""
    begins: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """One listener, as it was met.

    `silent` says that nobody answered there, `refused` that somebody did, without TLS or without Kafka's protocol; both
    are "" where it serves.  A listener that wants a client's certificate serves: it is `guarded`, and may show no more.
    """

    protocol: str
    address: str
    certificate: Certificate | None = None
    mechanisms: tuple[str, ...] = ()  # of SASL, sorted
    guarded: bool = False
    refused: str = ""
    silent: str = ""

    @property
    def serves(self) -> bool:
        return not (self.refused or self.silent)

    @property
    def told(self) -> str:
        if not self.serves:
            return f"nothing ({self.address}: {self.refused or self.silent})"
        parts = [self.protocol, *([f"certificate {self.certificate.subject}"] if self.certificate else [])]
        parts += [f"for {', '.join(self.certificate.names)}"] if self.certificate and self.certificate.names else []
        parts += [f"mechanisms {', '.join(self.mechanisms)}"] if self.mechanisms else []
        return ", ".join([*parts, *(["for clients with a certificate"] if self.guarded else [])])


@dataclass(frozen=True, slots=True)
class Heard:
    """A broker's listeners by name, and what its log says since its start that could not be applied."""

    listeners: Mapping[str, Served] = field(default_factory=dict)
    not_applied: tuple[str, ...] | Unknown = ()


def noted(found: Heard | Unknown) -> str:
    """The value as a run's fact."""
    return json.dumps(asdict(found), sort_keys=True)


def from_note(text: str) -> Heard | Unknown:
    """What `noted` wrote; Unknown for any other text."""
    try:
        value = strict_json.loads(text)
        kind = Unknown if "reason" in value else Heard
        return decode(kind, value, "it", plain=True)  # type: ignore[no-any-return] # by its first argument
    except (ValueError, TypeError) as error:
        return Unknown(f"what was noted of its listeners cannot be read: {error}")


@dataclass(frozen=True, slots=True)
class Change:
    """What a listener served, what it serves now; `passing`: it may come by itself, nobody answers yet."""

    listener: str
    before: str
    now: str
    passing: bool = False

    @property
    def told(self) -> str:
        return f"listener {self.listener} served {self.before}; it serves now {self.now}"


def lost(before: Heard, now: Heard) -> Iterator[Change]:
    """Listeners that served and do not any more."""
    for name, was in before.listeners.items():
        found = now.listeners.get(name, Served(was.protocol, was.address, refused="its file has no such listener"))
        if was.serves and not found.serves:
            yield Change(name, was.told, found.told, passing=bool(found.silent))


def changed(before: Heard, now: Heard) -> Iterator[Change]:
    """Listeners that serve something else.

    A renewed certificate has its subject, and all names of the old one, which is what Kafka itself asks of a store that
    replaces another (`SslFactory.CertificateEntries.ensureCompatible`); its issuer may be another.
    """
    for name, was in before.listeners.items():
        found = now.listeners.get(name)
        if found is None or not (was.serves and found.serves):
            continue
        old, new = was.certificate, found.certificate
        renewed = old is None or (new is not None and new.subject == old.subject and {*old.names} <= {*new.names})
        same = (was.mechanisms, was.guarded) == (found.mechanisms, found.guarded)
        if not renewed or not same:
            yield Change(name, was.told, found.told)


def unseen(before: Heard, now: Heard) -> Iterator[str]:
    """Listeners of which nothing can be said, each with the reason."""
    for name, was in before.listeners.items():
        if was.silent:
            yield f"{name} could not be reached before ({was.address}: {was.silent})"
        elif was.refused:
            yield f"{name} served nothing before ({was.address}: {was.refused})"
    yield from (f"{name} is new" for name in now.listeners if name not in before.listeners)
