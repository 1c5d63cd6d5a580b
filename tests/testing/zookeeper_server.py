"""A real ZooKeeper server for tests: the one in pyspark's jars, on loopback, with its data under the test's folder."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE

from migrate.java.find import find_java
from migrate.lab.topology import free_ports
from migrate.zookeeper.backup import BackupTree
from migrate.zookeeper.client import ZookeeperClient, connect
from migrate.zookeeper.layout import Znode

MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
JARS = ("zookeeper-3*", "zookeeper-jute-*", "slf4j-api-*", "metrics-core-*", "snappy-java-*", "netty-*")
TICK_MS = 200  # the shortest session is two ticks
START_SECONDS = 60.0


def classpath() -> str:
    """The jars that the server needs, of whatever version pyspark brings."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    return os.pathsep.join(str(jar) for pattern in JARS for jar in sorted(folder.glob(f"{pattern}.jar")))


class ZookeeperServer:
    """One server process; `address` is host:port.  It can be stopped, started again, paused and resumed."""

    def __init__(self, folder: Path, extra: str = "", options: Sequence[str] = (), main: str = MAIN_CLASS) -> None:
        self.folder = folder
        self.main = main
        self.options = options
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "zoo.cfg").write_text(
            f"dataDir={folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\ntickTime={TICK_MS}\n"
            f"maxSessionTimeout=60000\nadmin.enableServer=false\n4lw.commands.whitelist=*\n{extra}"
        )

    def start(self) -> None:
        """Start, and return when the server gives sessions."""
        self.launch()
        self.client(timeout=START_SECONDS).close()

    def launch(self) -> None:
        """Start, and return at once: one of several gives no session before the others run."""
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no", *self.options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [find_java().path, *options, "-cp", classpath(), self.main, str(self.folder / "zoo.cfg")],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def client(self, chroot: str = "", *, session: float = 10.0, timeout: float = 20.0) -> ZookeeperClient:
        """A session below `chroot`."""
        return connect(self.address + chroot, timeout=timeout, session_timeout=session)

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """End the process at once (a crash, as far as clients can tell)."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None


@contextmanager
def running_server(folder: Path, extra: str = "", options: Sequence[str] = ()) -> Iterator[ZookeeperServer]:
    """A server that runs while the block does."""
    server = ZookeeperServer(folder, extra, options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def create(client: ZookeeperClient, path: str, data: bytes | None = b"", *, ephemeral: bool = False) -> None:
    """Create a znode; data None is null data, which kazoo's own calls cannot write."""
    if data is None:
        result = client.kazoo.handler.async_result()
        absolute = client.kazoo.chroot + path
        client.kazoo._call(Create(absolute, None, OPEN_ACL_UNSAFE, int(ephemeral)), result)
        result.get(timeout=20)
    else:
        client.kazoo.create(path, data, ephemeral=ephemeral)


def load_tree(client: ZookeeperClient, tree: BackupTree) -> None:
    """Create every znode of a tree below the client's chroot (parents first; ephemeral ones in its session)."""
    pending = []
    for path, znode in sorted(tree.znodes.items(), key=lambda entry: (entry[0].count("/"), entry[0])):
        if path == "/" or not isinstance(znode, Znode):
            continue
        flags = 1 if znode.ephemeral_owner else 0
        result = client.kazoo.handler.async_result()
        client.kazoo._call(Create(client.kazoo.chroot + path, znode.data, OPEN_ACL_UNSAFE, flags), result)
        pending.append(result)
    for result in pending:
        result.get(timeout=60)
