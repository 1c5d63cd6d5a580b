"""A lab with a TCP proxy between each broker and the controllers: `python -m tests.lab.links DIR` is the proxy.

The controllers are called `localhost` in every file.  A broker's Java finds that name in a hosts file of its own, with
a loopback address that only this proxy listens on; everybody else reaches the controllers themselves.  So no file of
Kafka's, and none of ours, knows of the proxy.

What it is to do stands in DIR/links.json, read anew whenever it changes: broker -> the API keys to hold back, and
whether the link is cut.  A request that is held back is passed on when it is let go; what stands behind it on the same
connection waits too, which for AssignReplicasToDirs (73) is nothing else: that channel is of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import migrate
from migrate.hosts.files import replace_file
from migrate.java.find import Java
from migrate.java.jars import KafkaJars, Progress, silent
from migrate.lab.cluster import Lab
from migrate.lab.supervisor import ProcessSpec, write_spec
from migrate.lab.topology import HOST, ZOOKEEPER, Shape, Topology, load_topology

LINKS: Final = "links"  # the proxy's name among the lab's processes
RULES_FILE: Final = "links.json"
NAME: Final = "localhost"  # what the controllers are called in every file
LOOK_SECONDS: Final = 0.1
PIECE: Final = 1 << 16
HEADER: Final = 6  # four bytes of size, two of the API key


@dataclass(frozen=True, slots=True)
class LinkRule:
    """What the proxy does with one broker's requests to the controllers: by default it forwards them."""

    hold: frozenset[int] = frozenset()
    cut: bool = False


PASS_ON: Final = LinkRule()


def link_address(broker: int) -> str:
    """The loopback address at which that broker finds the controllers."""
    return f"127.0.{1 + broker // 200}.{1 + broker % 200}"


def hosts_file(address: str) -> str:
    """A Java process's hosts file: the controllers' address, and its own host's (pure but for the latter)."""
    return f"{address} localhost\n{HOST} {socket.gethostname()}\n"


class ProxiedLab(Lab):
    """A lab whose brokers reach the controllers through the proxy, which starts first and stops last."""

    @classmethod
    def made(cls, directory: Path, shape: Shape) -> ProxiedLab:
        """Of that shape, with the controllers by name."""
        return cls.create(directory, replace(shape, controller_host=NAME))

    def describe(self, java: Java, jars: KafkaJars) -> None:
        """Each process with a hosts file of its own, and the proxy."""
        super().describe(java, jars)
        write_links(self.topology, self.supervisor.specs().values())

    def up(self, progress: Progress = silent) -> None:
        """The proxy, then the others."""
        self._start([LINKS], progress)
        super().up(progress)

    def down(self, progress: Progress = silent) -> None:
        """The others, then the proxy."""
        super().down(progress)
        self._stop([[LINKS]], progress)


def write_links(topology: Topology, specs: Iterable[ProcessSpec]) -> None:
    """The hosts files, each process's description with the option that names it, and the proxy's description."""
    addresses = {broker.name: link_address(broker.id) for broker in topology.brokers}
    for spec in specs:
        if spec.node is None and spec.name != ZOOKEEPER:
            continue
        path = topology.folder("conf", f"{spec.name}.hosts")
        replace_file(str(path), hosts_file(addresses.get(spec.name, HOST)).encode())
        java, *words = spec.argv
        write_spec(topology.processes, replace(spec, argv=(java, f"-Djdk.net.hosts.file={path}", *words)))
    write_spec(topology.processes, proxy_spec(topology))


# -- the rules ---------------------------------------------------------------------------------------------------
def read_rules(topology: Topology) -> dict[int, LinkRule]:
    """The present rules; a broker without one has none."""
    try:
        data = json.loads(topology.folder(RULES_FILE).read_bytes())
    except FileNotFoundError:
        return {}
    return {int(broker): LinkRule(frozenset(rule["hold"]), rule["cut"]) for broker, rule in data.items()}


def proxy_spec(topology: Topology) -> ProcessSpec:
    """The proxy as a process of the lab."""
    package = str(Path(migrate.__file__).parent.parent)
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return ProcessSpec(
        name=LINKS,
        node=None,
        argv=(sys.executable, "-m", "tests.lab.links", topology.directory),
        directory=topology.directory,
        log=str(topology.log(LINKS)),
        output=str(topology.folder("logs", f"{LINKS}.out")),
        config=str(topology.config(LINKS)),
        environment={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "PYTHONPATH": path},
    )


# -- the proxy ---------------------------------------------------------------------------------------------------
class Links:
    """The proxy at work."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._rules: dict[int, LinkRule] = {}
        self._stamp = -1
        self._changed = asyncio.Event()
        self._open: dict[int, set[asyncio.StreamWriter]] = {}

    async def serve(self) -> None:
        """Until it is killed."""
        self._look()
        for broker in self._topology.brokers:
            for controller in self._topology.controllers:
                serve = partial(self._link, broker.id, controller.port)
                await asyncio.start_server(serve, link_address(broker.id), controller.port)
        await asyncio.Event().wait()

    def rule(self, broker: int) -> LinkRule:
        """Of that broker, now."""
        return self._rules.get(broker, PASS_ON)

    def _look(self) -> None:
        """Read the rules where the file has changed; cut connections, and release held requests."""
        with contextlib.suppress(FileNotFoundError):
            stamp = self._topology.folder(RULES_FILE).stat().st_mtime_ns
            if stamp != self._stamp:
                self._rules, self._stamp = read_rules(self._topology), stamp
                for broker in filter(lambda one: self.rule(one).cut, self._open):
                    for writer in self._open[broker]:
                        writer.transport.abort()
                self._changed.set()
                self._changed = asyncio.Event()
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    async def _link(self, broker: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.rule(broker).cut:
            writer.transport.abort()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection(HOST, port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, to_writer}
        self._open.setdefault(broker, set()).update(both)
        ways = [
            asyncio.ensure_future(self._requests(broker, reader, to_writer)),
            asyncio.ensure_future(_pass_on(to_reader, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        self._open[broker] -= both
        for one in both:
            one.close()

    async def _requests(self, broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests one by one, each looked at for its key."""
        while True:
            head = await reader.readexactly(HEADER)
            size, key = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
            while key in self.rule(broker).hold:
                await self._changed.wait()
            writer.write(head)
            left = size - 2
            while left > 0:
                piece = await reader.read(min(PIECE, left))
                if not piece:
                    return
                writer.write(piece)
                await writer.drain()
                left -= len(piece)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE):
        writer.write(piece)
        await writer.drain()


def main(directory: str) -> None:
    """The proxy of the lab in that folder."""
    asyncio.run(Links(load_topology(Path(directory))).serve())


if __name__ == "__main__":
    main(sys.argv[1])
