"""ZooKeeper's servers, asked one by one who uses them: their clients, and whose znodes they hold.

Every server answers `srvr`, for zkServer.sh needs it. It counts the server's connections, the one that asks among them.
`cons`, where it is allowed, adds whose connections these are.  A connect string names some of the servers, and hardly
ever an observer: the members are read from `/zookeeper/config`, or from `conf` where a server answers it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from migrate.errors import MigrateError
from migrate.model.ensemble import Ensemble, EnsembleServer
from migrate.model.outcome import Unknown
from migrate.zookeeper import layout
from migrate.zookeeper.backup import OWN_TREE
from migrate.zookeeper.client import ZookeeperAccess, ZookeeperClient, address_of, connect, parse_connect_string
from migrate.zookeeper.layout import Absent
from migrate.zookeeper.lock import answer_of, ask_server, parse_sessions

NOT_SERVING: Final = "is not currently serving requests"
CONNECTIONS: Final = re.compile(r"(?m)^Connections: ([0-9]{1,9})$")
ROLE: Final = re.compile(r"(?m)^Mode: (leader|follower|observer|standalone)\s*$")
SERVER: Final = re.compile(r"(?m)^server\.([0-9]{1,9})=(\S+)$")
HOST: Final = re.compile(r"\[[^\]]+\]|[^:]+")
EVERYWHERE: Final = ("", "0.0.0.0", "::", "0:0:0:0:0:0:0:0", "*")  # noqa: S104 - bound to all, reached at its host
CONFIG_NODE: Final = "/zookeeper/config"
LAST: Final = ("leader", "standalone")  # best stopped behind the others, and so told in that order


@dataclass(frozen=True, slots=True)
class Member:
    """A line `server.N` of the ensemble's configuration; `client` is "" where it has no client port."""

    id: int
    hosts: tuple[str, ...]
    client: str

    def __str__(self) -> str:
        return f"server {self.id} at {self.client or self.hosts[0]}"


def look_at_ensemble(
    connect_string: str, addresses: Iterable[str], access: ZookeeperAccess, lock_path: str
) -> Ensemble:
    """Every member by itself, those that lead last; no session of this tool may be open meanwhile.

    Members that `addresses` leave out are asked where the configuration tells their client port.
    """
    found = [_server(address) for address in addresses]
    if not any(server.role for server in found):
        silent = Unknown("no server of ZooKeeper serves")
        return Ensemble(tuple(found), silent, silent)
    listed, strangers = _read(connect_string, access, lock_path)
    members = listed or _told(found)
    if isinstance(members, Unknown):
        return Ensemble(_leaders_last(found), strangers, members)
    asked = [(_places(host), port) for host, port in (address_of(server.address) for server in found)]
    found += [_server(member.client) for member in members if member.client and not _is_asked(member, asked)]
    missing = _without_address(members, [places for places, _ in asked])
    return Ensemble(_leaders_last(found), strangers, tuple(map(str, missing)))


def _leaders_last(servers: Iterable[EnsembleServer]) -> tuple[EnsembleServer, ...]:
    return tuple(sorted(servers, key=lambda server: server.role in LAST))


def parse_members(text: str) -> tuple[Member, ...]:
    """The `server.N` lines of /zookeeper/config or of `conf` (QuorumPeer.QuorumServer)."""
    found = []
    for number, line in SERVER.findall(text):
        peers, _, ports = line.partition(";")
        client = ports.partition(";")[0]  # a port for TLS may follow
        hosts = tuple(match[0].strip("[]") for peer in peers.split("|") if (match := HOST.match(peer)))
        host, _, port = client.strip().rpartition(":")
        known = hosts[0] if host.strip("[]") in EVERYWHERE and hosts else host.strip("[]")
        address = f"[{known}]:{port}" if ":" in known else f"{known}:{port}"
        found.append(Member(int(number), hosts or ("",), address if port else ""))
    return tuple(found)


def _told(servers: Iterable[EnsembleServer]) -> tuple[Member, ...] | Unknown:
    """The members by `conf`; a server that is alone has none."""
    serving = [server for server in servers if server.role]
    if [server.role for server in serving] == ["standalone"]:
        return ()
    for server in serving:
        said = ask_server(server.address, b"conf")
        if not isinstance(said, Unknown) and (members := parse_members(said)):
            return members
    return Unknown("which servers belong to it is told neither by /zookeeper/config nor by conf")


def _places(host: str) -> frozenset[str]:
    """What a name stands for, so that a member's address is known by another name, too."""
    try:
        return frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(host, None)) | {host.lower()}
    except OSError:
        return frozenset({host.lower()})


def _is_asked(member: Member, asked: Iterable[tuple[frozenset[str], int]]) -> bool:
    host, port = address_of(member.client)
    places = _places(host).union(*map(_places, member.hosts))
    return any(other == port and theirs & places for theirs, other in asked)


def _without_address(members: Iterable[Member], asked: Iterable[frozenset[str]]) -> list[Member]:
    """Members without a client port, but for those on a host at which as many addresses were asked."""
    found: list[Member] = []
    left = list(asked)
    for member in members:
        if member.client:
            continue
        places = frozenset[str]().union(*map(_places, member.hosts))
        match = next((other for other in left if other & places), None)
        if match is None:
            found.append(member)
        else:
            left.remove(match)
    return found


def _server(address: str) -> EnsembleServer:
    try:
        said = answer_of(address, b"srvr")
    except ConnectionRefusedError:
        return EnsembleServer(address, listens=False)
    except OSError as error:
        return EnsembleServer(address, listens=Unknown(f"{address} does not answer srvr: {error.strerror or error}"))
    if isinstance(said, Unknown):
        return EnsembleServer(address, listens=True, clients=said)
    if NOT_SERVING in said:
        return EnsembleServer(address, listens=True)
    count, role = CONNECTIONS.search(said), ROLE.search(said)
    if count is None or role is None:
        unread = Unknown(f"the answer of {address} to srvr names no connections, or no mode")
        return EnsembleServer(address, listens=True, clients=unread)
    clients = int(count[1]) - 1
    return EnsembleServer(address, True, role[1], clients, _hosts(address) if clients else ())


def _hosts(address: str) -> tuple[str, ...]:
    told = ask_server(address, b"cons")
    return () if isinstance(told, Unknown) else tuple(sorted({entry.host for entry in parse_sessions(told)}))


def _read(
    connect_string: str, access: ZookeeperAccess, lock_path: str
) -> tuple[tuple[Member, ...], tuple[str, ...] | Unknown]:
    """The members, () where the tree does not tell them; and znodes that are not Kafka's."""
    known = parse_connect_string(connect_string)
    try:
        with connect(",".join(known.servers), access=access) as client:
            (znode,) = client.data([CONFIG_NODE])
            members = () if isinstance(znode, Absent) else parse_members((znode.data or b"").decode(errors="replace"))
            return members, _strangers(client, known.chroot, lock_path)
    except MigrateError as error:
        return (), Unknown(f"what else ZooKeeper stores cannot be read: {error.id} {error}")


def _strangers(client: ZookeeperClient, chroot: str, lock_path: str) -> tuple[str, ...] | Unknown:
    """Znodes beside Kafka's own on each level down to the chroot, among Kafka's own, and one level below some."""
    lock = lock_path.split("/")[1]
    own = layout.TOP_LEVEL | {lock, f"{lock}-fence"}
    names = chroot.split("/")[1:] if chroot else []
    above = {"/" + "/".join(names[:depth]): frozenset(names[depth : depth + 1]) for depth in range(len(names))}
    below = {f"{chroot}/{name}": known for name, known in layout.SECOND_LEVEL.items()}
    folders = {**above, chroot or "/": own, **below}
    found: list[str] = []
    for (folder, ours), answer in zip(folders.items(), client.children(list(folders)), strict=True):
        if answer is Absent.MISSING:
            if folder in below:
                continue
            return Unknown(f"ZooKeeper has no {folder}, which the connect string names")
        if isinstance(answer, Absent):
            return Unknown(f"what else ZooKeeper stores cannot be read: {folder} needs READ")
        paths = (layout.child(folder.rstrip("/"), name) for name in answer if name not in ours)
        found += [path for path in paths if path != OWN_TREE]
    return tuple(found)
