"""A person at a host in a folder: does what instructions say when the desk waits, as badly as a test asks."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrate.hosts.manual.desk import Desk, Instruction
from migrate.hosts.manual.executor import ManualDisks, ManualFiles, ManualServices
from migrate.hosts.manual.witness import ANSWERS, REFUSES, Witness
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode, Inventory
from tests.testing import worlds
from tests.testing.clusters import CLUSTER_ID

FILL = re.compile(r"replace the placeholder behind (\S+)= by that key's value in [^:]*:(\S+)")
MOST = 8  # waits: a test whose instruction is never seen ends by name


class NeverSeenError(AssertionError):
    """The desk waits on, and nothing more will come."""


class Network(Witness):
    """What is seen from here."""

    def __init__(self, inventory: Inventory, listening: dict[int, str]) -> None:
        super().__init__(inventory)
        self.listening = listening
        self.naming: dict[int, str] = {}

    def connects(self, node: NodeId) -> str:
        """As told."""
        return self.listening.get(int(node), REFUSES)

    def named_by(self, node: NodeId) -> str:
        """As told."""
        return self.naming.get(int(node), "")


@dataclass
class Bench:
    """A desk, one broker's and one controller's host in folders, and whoever works there."""

    desk: Desk
    network: Network
    files: ManualFiles
    disks: ManualDisks
    services: ManualServices
    root: Path
    act: Callable[[Instruction], None]
    waits: int = 0
    done: list[str] = field(default_factory=list)

    @property
    def config(self) -> str:
        """Broker 0's file."""
        return str(self.root / "conf/b0.properties")

    def look(self) -> None:
        """The collector runs on both hosts without an instruction."""
        for node in self.desk.inventory.nodes:
            self.follow(self.desk.ask_to_look(node.id))

    def follow(self, folder: Path) -> Path:
        """Exactly what the text says; the copy in which it was done."""
        copy = self.root / "host" / folder.name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        for key, source in FILL.findall((copy / "README.txt").read_text()):
            value = re.search(rf"(?m)^{re.escape(key)}=.*$", Path(source).read_text())
            assert value is not None
            text = (copy / "content").read_text()
            (copy / "content").write_text(re.sub(rf"(?m)^{re.escape(key)}=.*$", value[0], text))
        for line in (copy / "commands.txt").read_text().splitlines():
            ran = subprocess.run(["/bin/sh", "-c", line], cwd=copy, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, f"{line}: {ran.stdout}{ran.stderr}"
        for answer in copy.glob("answer-*.json"):
            shutil.copy(answer, self.desk.inbox.folder / answer.name)
        self.done.append(folder.name)
        return copy

    def worked(self) -> None:
        """One wait of the desk."""
        self.waits += 1
        if self.waits > MOST:
            raise NeverSeenError
        waiting = self.desk.open()
        assert waiting is not None
        self.act(waiting)


def bench(root: Path) -> Bench:
    """Broker 0 with two directories and a secret, controller 3000 with nothing; the person does all that is asked."""
    for place in ("conf", "inbox", "d0/t-0", "d1", "host"):
        (root / place).mkdir(parents=True)
    (root / "d0/t-0/00.log").write_bytes(b"x" * 10)
    for place in ("d0", "d1"):
        (root / place / "meta.properties").write_text(f"version=0\nbroker.id=0\ncluster.id={CLUSTER_ID}\n")
    (root / "conf/b0.properties").write_text(
        f"# by the operator, token-in-a-comment\nbroker.id=0\nlog.dirs={root}/d0,{root}/d1\n"
        "password.encoder.secret=canary-1\nzookeeper.connect=zk:2181\n"
    )
    inventory = inventory_in(root)
    made: list[Bench] = []

    def pause() -> None:
        made[0].worked()

    network = Network(inventory, {0: ANSWERS})
    desk = Desk(inventory, network, pause)
    files, disks, services = ManualFiles(desk), ManualDisks(desk), ManualServices(desk)
    found = Bench(desk, network, files, disks, services, root, act=lambda _: None)
    found.act = lambda waiting: once(found, waiting)
    made.append(found)
    return found


@contextmanager
def like_kafka(*words: str, folder: Path | None = None, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process with those words behind Kafka's main class."""
    shell = ["/bin/sh", "-c", "read forever", "kafka.Kafka", *words]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, cwd=folder, user=user) as process:
        try:
            yield process
        finally:
            process.kill()


def once(found: Bench, waiting: Instruction) -> None:
    """Follow it where that was not done yet."""
    if waiting.folder.name not in found.done:
        found.follow(waiting.folder)


def again(found: Bench, waiting: Instruction) -> None:
    """The collector's line alone, once more."""
    copy = found.root / "host" / waiting.folder.name
    line = (copy / "commands.txt").read_text().splitlines()[-1]
    subprocess.run(["/bin/sh", "-c", line], cwd=copy, check=True)
    answer = next(copy.glob("answer-*.json"))
    (found.desk.inbox.folder / answer.name).write_bytes(answer.read_bytes())


def inventory_in(root: Path) -> Inventory:
    """Its nodes' paths lie below `root`."""
    brokers = (
        BrokerNode(NodeId(0), "b0.example", "b0:9092", str(root / "conf/b0.properties")),
        BrokerNode(NodeId(1), "b1.example", "b1:9092", str(root / "conf/b1.properties")),
    )
    controller = ControllerNode(
        NodeId(3000), "c0.example", "c0:9090", str(root / "conf/c0.properties"), str(root / "meta")
    )
    return replace(
        worlds.inventory(),
        brokers=brokers[:1],
        controllers=(controller,),
        executor="manual",
        executor_options={"inbox": str(root / "inbox")},
        runs=str(root / "runs"),
    )
