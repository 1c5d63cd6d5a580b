"""Which processes a lab has, on which ports and in which folders: decided once, kept in DIR/lab.json.

Everything is under DIR; every listener is on the loopback interface.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
import secrets
import shlex
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from migrate.errors import LabFolderNotOurs, LabMissing
from migrate.hosts.files import replace_file
from migrate.model.config_keys import QuorumKind

HOST: Final = "127.0.0.1"
LAB_FILE: Final = "lab.json"
SEED_FILE: Final = "seed.json"  # what a lab from a bundle is seeded with
FORMAT: Final = 3  # 2 was of labs whose nodes were no units
FIRST_CONTROLLER: Final = 3000
LOWEST_PORT: Final = 20000
PORT_SPAN: Final = 10000
PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9/._+@=~-]+")
EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
# listener names that are not Kafka's defaults, so that nothing works by chance
INTERNAL: Final = "INTERNAL"
CLIENT: Final = "CLIENT"
CONTROLLER: Final = "CTL"
ZOOKEEPER: Final = "zookeeper"
ISSUER: Final = "issuer"  # of tokens, for a secured lab with OAUTHBEARER
KDC: Final = "kdc"  # of a secured lab with GSSAPI
SSH: Final = "sshd"  # the server through which the nodes are reached


@dataclass(frozen=True, slots=True)
class LabBroker:
    """A broker: its ports and its log directories (absolute)."""

    id: int
    internal_port: int
    client_port: int
    log_dirs: tuple[str, ...]
    jmx_port: int = 0  # 0: it offers no JMX

    @property
    def name(self) -> str:
        return f"broker-{self.id}"


@dataclass(frozen=True, slots=True)
class LabController:
    """A controller: its port and its metadata directory (absolute)."""

    id: int
    port: int
    metadata_directory: str

    @property
    def name(self) -> str:
        return f"controller-{self.id}"


@dataclass(frozen=True, slots=True)
class Shape:
    """The size and kind of a lab; `disks` are the log directories of each broker, where they are not the same."""

    brokers: int = 3
    directories: int = 3
    controllers: int = 3
    chroot: str = "/kafka"
    controller_host: str = HOST
    jmx: bool = False
    kraft: bool = False
    ssh: bool = False
    secured: bool = False
    bundled: bool = False
    mechanism: str = "PLAIN"
    disks: tuple[int, ...] = ()
    quorum: QuorumKind = QuorumKind.STATIC


DEFAULT_SHAPE: Final = Shape()


@dataclass(frozen=True, slots=True)
class Topology:
    """One lab.  `directory` is its absolute folder.

    `controller_host`: what the controllers' host is called in every file.
    `kraft`: it is KRaft from its first start, and has no ZooKeeper.
    `ssh_port`: its host is reached by SSH there (see ssh_access); 0: it is this host.
    `secured`: everybody is encrypted and has a name (see secured).
    `mechanism`: how brokers, controllers and the tool log in to a secured one.
    `bundled`: it has the shape of a bundle (see from_bundle), and is seeded with DIR/seed.json.
    """

    directory: str
    zookeeper_port: int
    chroot: str
    brokers: tuple[LabBroker, ...]
    controllers: tuple[LabController, ...]
    controller_host: str = HOST
    kraft: bool = False
    ssh_port: int = 0
    secured: bool = False
    bundled: bool = False
    quorum: QuorumKind = QuorumKind.STATIC
    mechanism: str = "PLAIN"
    issuer_port: int = 0  # of a lab with OAUTHBEARER
    kdc_port: int = 0  # of a lab with GSSAPI

    @property
    def host(self) -> str:
        """What nodes are called: Kerberos has keys of names, and none of addresses."""
        return "localhost" if self.kdc_port else HOST

    # -- names and addresses -------------------------------------------------------------------------------------
    @property
    def zookeeper(self) -> str:
        """zookeeper.connect; "" for a lab without one."""
        return "" if self.kraft else f"{self.host}:{self.zookeeper_port}{self.chroot}"

    @property
    def bootstrap(self) -> str:
        """host:port of the CLIENT listeners, comma separated."""
        return ",".join(f"{self.host}:{broker.client_port}" for broker in self.brokers)

    def ports(self) -> dict[int, str]:
        """Port -> name of the process that listens there."""
        found = {} if self.kraft else {self.zookeeper_port: ZOOKEEPER}
        for broker in self.brokers:
            found |= {broker.internal_port: broker.name, broker.client_port: broker.name}
            found |= {broker.jmx_port: broker.name} if broker.jmx_port else {}
        if self.ssh_port:
            found[self.ssh_port] = SSH
        if self.issuer_port:
            found[self.issuer_port] = ISSUER
        if self.kdc_port:
            found[self.kdc_port] = KDC
        return found | {controller.port: controller.name for controller in self.controllers}

    # -- folders -------------------------------------------------------------------------------------------------
    def folder(self, *parts: str) -> Path:
        return Path(self.directory, *parts)

    def config(self, name: str) -> Path:
        return self.folder("conf", f"{name}.properties")

    def log(self, name: str) -> Path:
        """The log that a process writes through log4j."""
        return self.folder("logs", f"{name}.log")

    @property
    def jars(self) -> Path:
        """The list of Kafka's jars, a path a line."""
        return self.folder("jars.txt")

    def classpath(self) -> list[str]:
        """What every Java process of the lab is started with."""
        return self.jars.read_text(encoding="utf-8").splitlines()

    @property
    def processes(self) -> Path:
        return self.folder("processes")

    @property
    def inventory(self) -> Path:
        return self.folder("inventory.yaml")


def plan_topology(directory: Path, shape: Shape = DEFAULT_SHAPE) -> Topology:
    """A topology for that folder on ports that are free now; nothing is written."""
    root, by_tokens, by_kerberos = directory.resolve(), shape.mechanism == "OAUTHBEARER", shape.mechanism == "GSSAPI"
    count = 1 + (3 if shape.jmx else 2) * shape.brokers + shape.controllers + shape.ssh + by_tokens + by_kerberos
    ports = iter(free_ports(count))
    disks = shape.disks or (shape.directories,) * shape.brokers
    return Topology(
        directory=str(root),
        zookeeper_port=next(ports),
        chroot=shape.chroot,
        brokers=tuple(
            LabBroker(
                number,
                next(ports),
                next(ports),
                tuple(str(root / "data" / f"broker-{number}" / f"disk{disk}") for disk in range(disks[number])),
                next(ports) if shape.jmx else 0,
            )
            for number in range(shape.brokers)
        ),
        controllers=tuple(
            LabController(number, next(ports), str(root / "data" / f"controller-{number}" / "metadata"))
            for number in range(FIRST_CONTROLLER, FIRST_CONTROLLER + shape.controllers)
        ),
        controller_host="localhost" if by_kerberos else shape.controller_host,
        kraft=shape.kraft,
        ssh_port=next(ports) if shape.ssh else 0,
        secured=shape.secured,
        bundled=shape.bundled,
        quorum=shape.quorum,
        mechanism=shape.mechanism,
        issuer_port=next(ports) if by_tokens else 0,
        kdc_port=next(ports) if by_kerberos else 0,
    )


# -- ports -------------------------------------------------------------------------------------------------------
def free_ports(count: int) -> list[int]:
    """Ports on which nothing listens, outside the range from which the kernel serves outgoing connections.

    A port of that range could be taken by any client while its broker is being restarted.  One that was given before,
    and has no listener yet, is not given again before all others were.
    """
    low = _ephemeral_start()
    candidates = itertools.islice(_candidates(), PORT_SPAN)
    usable = (port for port in candidates if (port < low or low <= LOWEST_PORT) and is_free(port))
    return list(itertools.islice(usable, count))


@functools.cache
def _candidates() -> Iterator[int]:
    start = secrets.randbelow(PORT_SPAN)
    return itertools.cycle(LOWEST_PORT + (start + step) % PORT_SPAN for step in range(PORT_SPAN))


def _ephemeral_start() -> int:
    try:
        return int(EPHEMERAL.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32768


def is_free(port: int) -> bool:
    """Could a server listen on that loopback port now?"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's servers do: closed ones may linger
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


# -- DIR/lab.json ------------------------------------------------------------------------------------------------
def save_topology(topology: Topology) -> None:
    """Write DIR/lab.json: from then on the folder is a lab's."""
    text = json.dumps({"format": FORMAT, **asdict(topology)}, indent=1)
    replace_file(str(topology.folder(LAB_FILE)), (text + "\n").encode())


def load_topology(directory: Path) -> Topology:
    """The topology of an existing lab.

    Raises:
        LabMissing: the folder holds no lab.
        LabFolderNotOurs: lab.json is not readable, or of another folder (a lab cannot be moved).
    """
    path = directory.resolve() / LAB_FILE
    try:
        found = _decode(json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        above = directory.parent  # the lab itself, where the default name was looked for in its own folder
        hint = f"{above.resolve()} is a lab: --dir {shlex.quote(str(above))}" if (above / LAB_FILE).exists() else ""
        raise LabMissing("there is no lab here", where=str(directory.resolve()), next_step=hint) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LabFolderNotOurs("lab.json cannot be read", where=str(path), why=str(error)) from error
    if found.directory != str(directory.resolve()):
        raise LabFolderNotOurs(
            f"this lab was made in {found.directory}",
            where=str(path),
            why="its configuration files name absolute paths",
            next_step="move it back, or make another with `kraft-migrate lab up --dir DIR`",
        )
    return found


def _decode(data: dict[str, Any]) -> Topology:
    if data["format"] != FORMAT:
        message = f"format {data['format']!r} instead of {FORMAT}"
        raise ValueError(message)
    return Topology(
        data["directory"],
        int(data["zookeeper_port"]),
        data["chroot"],
        tuple(
            LabBroker(b["id"], b["internal_port"], b["client_port"], tuple(b["log_dirs"]), b.get("jmx_port", 0))
            for b in data["brokers"]
        ),
        tuple(LabController(c["id"], c["port"], c["metadata_directory"]) for c in data["controllers"]),
        str(data.get("controller_host", HOST)),
        bool(data.get("kraft", False)),
        int(data.get("ssh_port", 0)),
        bool(data.get("secured", False)),
        bool(data.get("bundled", False)),
        QuorumKind(data.get("quorum", QuorumKind.STATIC)),
        str(data.get("mechanism", "PLAIN")),
        int(data.get("issuer_port", 0)),
        int(data.get("kdc_port", 0)),
    )


def claim(directory: Path) -> None:
    """Check that a new lab may be created in that folder: it does not exist, or is empty.

    Raises:
        LabFolderNotOurs: it holds something, or is no folder.
    """
    path = str(directory.resolve())
    if not PLAIN_PATH.fullmatch(path):
        raise LabFolderNotOurs(
            "the path holds characters that Kafka's files cannot carry",
            where=path,
            why="log.dirs is a list with commas, and properties files are Latin-1 with escapes",
            next_step="choose a folder whose path has letters, digits, dots, dashes, underscores and slashes only",
        )
    if directory.exists() and not directory.is_dir():
        raise LabFolderNotOurs("this is no folder", where=str(directory))
    with contextlib.suppress(FileNotFoundError):
        # a run killed while it wrote lab.json leaves the file's temporary name alone, and a bundle's seed before it
        ours = (f".{LAB_FILE}.", f".{SEED_FILE}.", SEED_FILE)
        first = next((path.name for path in directory.iterdir() if not path.name.startswith(ours)), None)
        if first is not None:
            raise LabFolderNotOurs(
                "the folder is not empty and holds no lab", where=str(directory), why=f"it holds {first}"
            )
