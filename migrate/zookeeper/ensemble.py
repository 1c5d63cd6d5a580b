"""ZooKeeper's servers, asked one by one who uses them: their clients, and whose znodes they hold.

Every server answers `srvr`, for zkServer.sh needs it. It counts the server's connections, the one that asks among them.
`cons`, where it is allowed, adds whose connections these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from migrate.errors import MigrateError
from migrate.model.ensemble import Ensemble, EnsembleServer
from migrate.model.outcome import Unknown
from migrate.zookeeper import layout
from migrate.zookeeper.backup import OWN_TREE
from migrate.zookeeper.client import ZookeeperAccess, connect, parse_connect_string
from migrate.zookeeper.layout import Absent
from migrate.zookeeper.lock import answer_of, ask_server, parse_sessions

NOT_SERVING: Final = "is not currently serving requests"
CONNECTIONS: Final = re.compile(r"(?m)^Connections: ([0-9]{1,9})$")
ROLE: Final = re.compile(r"(?m)^Mode: (leader|follower|observer|standalone)\s*$")
LAST: Final = ("leader", "standalone")  # best stopped behind the others, and so told in that order


def look_at_ensemble(
    connect_string: str, addresses: Iterable[str], access: ZookeeperAccess, lock_path: str
) -> Ensemble:
    """Every server by itself, those that lead last; no session of this tool may be open meanwhile."""
    found = sorted((_server(address) for address in addresses), key=lambda server: server.role in LAST)
    serves = any(server.role for server in found)
    strangers = _strangers(connect_string, access, lock_path) if serves else Unknown("no server of ZooKeeper serves")
    return Ensemble(tuple(found), strangers)


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


def _strangers(connect_string: str, access: ZookeeperAccess, lock_path: str) -> tuple[str, ...] | Unknown:
    """Znodes beside Kafka's own on each level down to the chroot, and among Kafka's own."""
    lock = lock_path.split("/")[1]
    own = layout.TOP_LEVEL | {lock, f"{lock}-fence"}
    known = parse_connect_string(connect_string)
    names = known.chroot.split("/")[1:] if known.chroot else []
    folders = ["/" + "/".join(names[:depth]) for depth in range(len(names) + 1)]
    try:
        with connect(",".join(known.servers), access=access) as client:
            answers = client.children(folders)
    except MigrateError as error:
        return Unknown(f"what else ZooKeeper stores cannot be read: {error.id} {error}")
    found: list[str] = []
    for depth, (folder, answer) in enumerate(zip(folders, answers, strict=True)):
        if answer is Absent.MISSING:
            return Unknown(f"ZooKeeper has no {folder}, which the connect string names")
        if isinstance(answer, Absent):
            return Unknown(f"what else ZooKeeper stores cannot be read: {folder} needs READ")
        ours = {names[depth]} if depth < len(names) else own
        paths = (layout.child(folder.rstrip("/"), name) for name in answer if name not in ours)
        found += [path for path in paths if path != OWN_TREE]
    return tuple(found)
