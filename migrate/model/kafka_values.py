"""Kafka's forms of values, read as Kafka 3.9.2 reads them: one function per form, for every text of a configuration.

A form is read here alone: from a node's file, a command line, a playbook and an inventory alike.  Each function raises
ValueError, with the reason, for a text that Kafka itself refuses; `tests/steps/test_configuration_kafka.py` asks
Kafka's own classes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ZOOKEEPER_PORT: Final = 2181
REFERENCE: Final = "${"  # a configuration provider resolves it on the node
_TRIMMED: Final = "".join(map(chr, range(0x21)))
_COMMA: Final = re.compile(r"[ \t\n\v\f\r]*,[ \t\n\v\f\r]*")  # Java's \s is ASCII: a no-break space is no blank
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")  # EndPoint.UriParseExp
_VOTER: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")  # Utils.HOST_PORT_PATTERN
_LIMITED: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")  # Utils.VALID_HOST_CHARACTERS
_WHOLE: Final = re.compile(r"[+-]?\d{1,40}")
_VERSION: Final = re.compile(r"(0\.\d+\.\d+|\d+\.\d+)(-IV\d+)?")
_HOST: Final = re.compile(r"[A-Za-z0-9_.-]+")
IPV6: Final = r"[0-9A-Fa-f:.]+(?:%[0-9A-Za-z._-]+)?"  # with the zone of an address that is of one link, as %eth0
_NOT_IN_PATHS: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")  # PathUtils.validatePath


def trim(value: str) -> str:
    """`java.lang.String.trim`: control characters and blanks go, a no-break space stays."""
    return value.strip(_TRIMMED)


# -- lists -------------------------------------------------------------------------------------------------------
def elements(text: str) -> tuple[str, ...]:
    """A key of type LIST, such as process.roles: empty entries are entries (`ConfigDef.parseType`)."""
    text = trim(text)
    return tuple(_COMMA.split(text)) if text else ()


def entries(text: str) -> tuple[str, ...]:
    """A text with commas, such as log.dirs or listeners: empty entries are dropped (`Csv.parseCsvList`)."""
    return tuple(filter(None, elements(text)))


def directories(text: str) -> tuple[str, ...]:
    """log.dirs or log.dir, as they are spelled."""
    found = entries(text)
    if not found:
        raise ValueError("no directory is named")
    return found


def roles(text: str) -> frozenset[str]:
    """process.roles; no role in ZooKeeper mode."""
    found = elements(text)
    if not set(found) <= {"broker", "controller"}:
        raise ValueError("each entry is broker or controller, in small letters, and none is empty")
    return frozenset(found)


def voters(text: str) -> dict[int, str]:
    """controller.quorum.voters: id to host:port (`QuorumConfig.parseVoterConnections`)."""
    found: dict[int, str] = {}
    for entry in elements(text):
        node, at, address = entry.partition("@")
        if not at or "@" in address or not _VOTER.fullmatch(address):
            raise ValueError(f"the entry {entry!r} is not ID@HOST:PORT")
        found[whole(node)] = address
    return found


def addresses(text: str) -> tuple[str, ...]:
    """controller.quorum.bootstrap.servers: each entry is HOST:PORT (`QuorumConfig.parseBootstrapServers`)."""
    found = elements(text)
    if not all(map(_VOTER.fullmatch, found)):
        raise ValueError("each entry is HOST:PORT")
    return found


def limits_of_addresses(text: str) -> dict[str, int]:
    """max.connections.per.ip.overrides: address to number of connections (`Csv.parseCsvMap`)."""
    pairs = [entry.rpartition(":") for entry in map_entries(text)]
    found = {trim(host): whole(number) for host, _, number in pairs}
    if strange := [host for host in found if not _LIMITED.fullmatch(host)]:
        raise ValueError(f"{strange[0]!r} is no address: write an IPv6 address without brackets")
    return found


# -- listeners ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Endpoint:
    """One entry of listeners or advertised.listeners.  `host` is "" for every address, and without brackets."""

    listener: str
    host: str
    port: int


def listener_name(text: str) -> str:
    """A listener's name as Kafka compares it (`ListenerName.normalised`)."""
    name = trim(text).upper()
    if not name:
        raise ValueError("a listener's name is missing")
    return name


def listener_prefix(name: str) -> str:
    """What the keys of one listener begin with, in small letters alone: `listener.name.internal.`."""
    return f"listener.name.{name.lower()}."


def security_protocol(text: str) -> str:
    """security.inter.broker.protocol: in capitals; a protocol map is read in any case (`SecurityProtocol.forName`)."""
    if text not in SECURITY_PROTOCOLS:
        raise ValueError(f"{text!r} is none of {', '.join(SECURITY_PROTOCOLS)}")
    return text


def recording_level(text: str) -> str:
    """metrics.recording.level, in any case: its definition takes every text (`Sensor.RecordingLevel.forName`)."""
    if (level := trim(text).upper()) not in ("INFO", "DEBUG", "TRACE"):
        raise ValueError(f"{text!r} is none of INFO, DEBUG, TRACE")
    return level


def map_entries(text: str) -> tuple[str, ...]:
    """The entries of a map as they are spelled: empty ones at its end are none (`String.split` of Java)."""
    found = list(elements(text))
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def listener_of(entry: str) -> str:
    """The listener that an entry of the protocol map is about: all before the last colon; "" where there is none."""
    return trim(entry.rpartition(":")[0]).upper()


def protocol_map(text: str) -> dict[str, str]:
    """listener.security.protocol.map: listener to protocol (`Csv.parseCsvMap`); of entries alike the last holds."""
    found: dict[str, str] = {}
    for entry in map_entries(text):
        if not listener_of(entry):
            raise ValueError(f"the entry {entry!r} is not NAME:PROTOCOL" if entry else "an entry is empty")
        found[listener_of(entry)] = security_protocol(trim(entry.rpartition(":")[2]).upper())
    return found


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """Listeners or advertised.listeners: at least one, each name once."""
    found: list[Endpoint] = []
    for entry in entries(text):
        match = _ENDPOINT.fullmatch(entry)
        if match is None:
            raise ValueError(f"the entry {entry!r} is not NAME://HOST:PORT")
        if not match[1] or match[1] != trim(match[1]):
            raise ValueError(f"the entry {entry!r} has no protocol: a blank is no part of a listener's name")
        found.append(Endpoint(listener_name(match[1]), match[2], int(match[3])))
    if not found:
        raise ValueError("no listener is named")
    if len({entry.listener for entry in found}) < len(found):
        raise ValueError("a listener is named twice")
    return tuple(found)


# -- single values -----------------------------------------------------------------------------------------------
def boolean(text: str) -> bool:
    """True or false in any case, and no other word."""
    match trim(text).lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError(f"{trim(text)!r} is neither true nor false")


def whole(text: str, bits: int = 32) -> int:
    """`Integer.parseInt`, or `Long.parseLong` for 64 bits: a sign and leading zeros are fine, blanks are not."""
    text = trim(text)
    number = int(text) if _WHOLE.fullmatch(text) else None
    if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"{text!r} is no whole number of {bits} bits")
    return number


def short(text: str) -> int:
    """A number of type SHORT, such as a factor of replication."""
    return whole(text, 16)


def long(text: str) -> int:
    """A number of type LONG: bytes, milliseconds."""
    return whole(text, 64)


def number(text: str) -> int | None:
    """The same as `whole`; None for what is no number."""
    try:
        return whole(text)
    except ValueError:
        return None


def truth(values: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """A boolean configuration of a node; the default also for a text that Kafka refuses (B-CFG-21 names it)."""
    try:
        return boolean(values[name])
    except (KeyError, ValueError):
        return default


def protocol_version(text: str) -> str:
    """inter.broker.protocol.version: `3.9.2` is 3.9 (`MetadataVersion.fromVersionString`).

    Kafka looks at the first two numbers (three behind `0.`), and only where more follow.  A short name is the newest of
    its line, which for 3.9 is 3.9-IV0: one version, with one name here.
    """
    version = trim(text)
    segments = version.rstrip(".").split(".")
    wanted = 3 if version.startswith("0.") else 2
    key = ".".join(segments[:wanted]) if len(segments) > wanted else version
    if not _VERSION.fullmatch(key):
        raise ValueError(f"{version!r} is no version that Kafka knows")
    return "3.9" if key == "3.9-IV0" else key


def version_name(text: str) -> str:
    """The same; a text that Kafka refuses as it stands."""
    try:
        return protocol_version(text)
    except ValueError:
        return text


# -- ZooKeeper ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ConnectString:
    """zookeeper.connect.  `chroot` is "" or a path, `servers` are `host:port`, IPv6 addresses in brackets."""

    servers: tuple[str, ...]
    chroot: str


def connect_string(text: str) -> ConnectString:
    """Read one as ZooKeeper's client does (`ConnectStringParser`).

    Everything from the first slash on is the chroot, commas and further servers too.  Blanks and empty entries between
    servers are nothing, a missing port is 2181.  Narrower than ZooKeeper in one point: a host has the characters that
    names and addresses of hosts have.
    """
    if scheme := re.match(r"\s*(\w+://)", text):
        raise ValueError(f"leave out {scheme[1]}")
    hosts, slash, path = trim(text).partition("/")
    chroot = slash + path if path else ""
    if chroot.endswith("/"):
        raise ValueError(f"the chroot {chroot} ends with a slash")
    if any(part in ("", ".", "..") for part in chroot.split("/")[1:]) or _NOT_IN_PATHS.search(chroot):
        why = "a part is empty, . or .., or has a control character"
        raise ValueError(f"the chroot {chroot!r} is no path of ZooKeeper's: {why}")
    servers = tuple(_server(server) for server in map(trim, hosts.split(",")) if server)
    if not servers:
        raise ValueError("no server is named")
    return ConnectString(servers, chroot)


def calls_itself(text: str) -> bool:
    """Does that connect string name a server by an address that is another one on each host?"""
    try:
        hosts = [server.rpartition(":")[0].lower() for server in connect_string(text).servers]
    except ValueError:
        return False
    return any(map(is_loopback, hosts))


def is_loopback(host: str) -> bool:
    """Is it an address, or a name, of the host itself that says it?"""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _server(text: str) -> str:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    host, port = (host, port or str(ZOOKEEPER_PORT)) if colon else (text, str(ZOOKEEPER_PORT))
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (_HOST.fullmatch(bare) or re.fullmatch(IPV6, bare)):
        raise ValueError(f"{text!r} is not HOST:PORT")
    if port != trim(port) or not 0 < (number(port) or 0) < 1 << 16:  # its parser takes no blank before a port
        raise ValueError(f"{text!r} has no port from 1 to 65535")
    return f"[{bare}]:{whole(port)}" if ":" in bare else f"{bare}:{whole(port)}"
