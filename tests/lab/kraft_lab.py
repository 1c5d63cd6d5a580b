"""A lab that is KRaft from its first start, one log directory a broker, and gets more of them by a DirectoryPlaybook.

`python -m tests.lab.kraft_lab DIR` makes it, applies the playbook under load, and ends in a report, as `lab demo` does.
"""

from __future__ import annotations

import base64
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from confluent_kafka.admin import AdminClient

from migrate.cli.demo import Demo, DemoOptions
from migrate.cli.progress import ProgressLines
from migrate.hosts.files import replace_file
from migrate.hosts.properties import edit, parse
from migrate.java.jars import KAFKA_VERSION, Progress, line_of, silent
from migrate.lab import ready
from migrate.lab.cluster import Lab
from migrate.lab.configure import broker_file, inventory_of
from migrate.lab.seed import create_topics, settings_for
from migrate.lab.seed_data import SeedTopic
from migrate.lab.topology import LabBroker, LabController, Shape, Topology
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.ports import Observer
from migrate.model.stage import Stage
from migrate.model.world import Need, World
from migrate.observe.sources import Sources
from migrate.observe.world import ClusterObserver
from migrate.playbook.load import load_playbook
from migrate.report.run_values import Claim, Holds
from migrate.run.carry_out import RunFolder
from migrate.steps import configuration
from tests.testing.this_host import format_storage

PLAYBOOK: Final = Path(__file__).parents[1] / "data" / "lab-directories.yaml"
SOON: Final = {"log.segment.delete.delay.ms": "1000"}  # of deleted topics, from the disks too
AT_ONCE: Final = 2  # Java processes: a lab's host is small


def kraft_files(topology: Topology, passwords: dict[str, str]) -> dict[str, str]:
    """File name -> content of every broker and controller (pure): what the last stage of a migration leaves."""
    inventory = inventory_of(topology)
    files: dict[str, str] = {}
    plain = {broker.id: broker_file(topology, broker, passwords).encode() for broker in topology.brokers}
    for node, broker in zip(inventory.brokers, topology.brokers, strict=True):
        raw = configuration.kraft_mode(configuration.migration_mode(plain[broker.id], inventory), inventory, node)
        raw = raw.replace(b", in ZooKeeper mode.", b", in KRaft mode from its first start.")
        files[f"{broker.name}.properties"] = edit(raw, SOON, _zookeeper(raw)).decode()
    first = parse(plain[topology.brokers[0].id])
    for controller, place in zip(inventory.controllers, topology.controllers, strict=True):
        raw = configuration.finalized_controller(configuration.controller(first, inventory, controller))
        files[f"{place.name}.properties"] = raw.decode()
    return files


def _zookeeper(raw: bytes) -> list[str]:
    return [key for key in parse(raw) if key.startswith("zookeeper.")]


def format_all(topology: Topology, inventory: Inventory, progress: Progress) -> None:
    """kafka-storage format of every node that is not formatted yet, with one new cluster id for all."""
    nodes: list[LabBroker | LabController] = [*topology.controllers, *topology.brokers]
    places = {node.name: _first(node) for node in nodes}
    due = [node for node in nodes if not Path(places[node.name], "meta.properties").exists()]
    if not due:
        return
    cluster_id = _cluster_id(places.values())
    progress(f"formatting {len(due)} nodes of cluster {cluster_id}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda node: format_storage(inventory, node.id, cluster_id, line_of(KAFKA_VERSION)), due))


def _first(node: LabBroker | LabController) -> str:
    return node.log_dirs[0] if isinstance(node, LabBroker) else node.metadata_directory


def _cluster_id(places: Iterable[str]) -> str:
    """The cluster id of a formatted node, else a new one."""
    for place in places:
        path = Path(place, "meta.properties")
        if path.exists():
            return parse(path.read_bytes(), str(path))["cluster.id"]
    return base64.urlsafe_b64encode(b"\x4b" + secrets.token_bytes(15)).decode().rstrip("=")


class KraftLab(Lab):
    """The lab; its playbook names two directories more for each broker, which are there and empty."""

    def up(self, progress: Progress = silent) -> None:
        """Formatted, then started."""
        format_all(self.topology, self.inventory, progress)
        super().up(progress)

    def _node_files(self, passwords: dict[str, str]) -> dict[str, str]:
        return kraft_files(self.topology, passwords)

    def _write_playbook(self) -> None:
        replace_file(str(self.playbook_path), PLAYBOOK.read_bytes())
        for paths in load_playbook(self.playbook_path).new_directories.values():
            for path in paths:
                Path(path).mkdir(mode=0o750, parents=True, exist_ok=True)


TOPIC: Final = SeedTopic("after-directories", 12, 3)
NEEDS: Final = frozenset({Need.KRAFT, Need.DISKS, Need.CONFIGS, Need.LEDGER})


@dataclass(frozen=True, slots=True)
class Spread:
    """The new topic's replicas, how many of them are in new directories, and what contradicts it ("" nothing)."""

    replicas: int
    in_new: int
    against: str = ""


def spread(lab: Lab, observer: Observer, new: Mapping[NodeId, tuple[str, ...]]) -> Spread:
    """Create the topic, wait until each of its replicas is VERIFIED, and count; LabNotReady where that never comes."""
    create_topics(AdminClient(settings_for(lab.topology)), [TOPIC])
    wanted = TOPIC.partitions * TOPIC.replication
    found: list[World] = []

    def reached() -> str:
        found[:] = [observer.observe(NEEDS, {})]
        return _missing(found[0], wanted)

    names = [broker.name for broker in lab.topology.brokers]
    ready.wait_until("waiting for the new topic's directories", reached, lab.supervisor, names)
    return Spread(wanted, in_new(found[0], new))


def _missing(world: World, wanted: int) -> str:
    if isinstance(world.ledger, Unknown):
        return world.ledger.reason
    rows = [row for row in world.ledger.rows if row.topic == TOPIC.name]
    verified = sum(row.state is ReplicaState.VERIFIED for row in rows)
    return "" if verified == wanted else f"{verified} of {wanted} replicas are VERIFIED"


def in_new(world: World, new: Mapping[NodeId, tuple[str, ...]], topic: str = TOPIC.name) -> int:
    """Replicas of the topic in these directories, by the disks."""
    if isinstance(world.disks, Unknown):
        return 0
    count = 0
    for broker, paths in new.items():
        disks = world.disks.get(broker, Unknown("not looked at"))
        if isinstance(disks, Unknown):
            continue
        for entry in disks.directories:
            rows = zip(entry.replicas.topic, entry.replicas.kind, strict=True)
            count += sum(name == topic and kind == "current" for name, kind in rows) if entry.path in paths else 0
    return count


class DirectoryDemo(Demo):
    """The demo of a DirectoryPlaybook: a KRaft cluster gets more log directories."""

    lab: ClassVar[type[Lab]] = KraftLab
    shape: ClassVar[Shape] = Shape(directories=1, kraft=True)

    def _run(self) -> int:
        playbook = self._begin()
        sources = Sources(self._lab.inventory, playbook, None)
        try:
            plan, folder = self._migrate(sources, playbook)
            if not self._state().get("spread"):
                self._lines.say("a topic is created: its replicas go where the fewest are")
                found = spread(self._lab, ClusterObserver(sources), playbook.new_directories)
                self._remember(spread=[found.replicas, found.in_new, found.against])
        finally:
            sources.close()
        return self._finish(plan, folder, playbook)

    def _first_claims(self) -> Iterator[Claim]:
        """What the cluster does with its new directories."""
        found = Spread(*self._state()["spread"])
        holds = Holds.NO if found.against or not found.in_new else Holds.YES
        evidence = found.against or f"{found.in_new} of {found.replicas} new replicas are in them, all VERIFIED"
        yield Claim("New replicas go into the new directories, and the metadata says which.", holds, evidence)

    def _last_claims(self, folder: RunFolder, playbook: Playbook) -> Iterator[Claim]:
        """What is on the disks in the end."""
        yield self._none_set_aside()


if __name__ == "__main__":
    options = DemoOptions(Path(sys.argv[1]), None, Stage.DIRECTORIES, keep=True, load=True)
    sys.exit(DirectoryDemo(options, ProgressLines()).run())
