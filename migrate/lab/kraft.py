"""A lab that is KRaft from its first start: no ZooKeeper, the files a migration would end with, formatted by Kafka."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from migrate.hosts.properties import edit, parse
from migrate.hosts.supervisor import Supervisor
from migrate.java.cache import Progress
from migrate.lab.configure import broker_file
from migrate.lab.inventory import inventory_of
from migrate.lab.topology import LabBroker, LabController, Topology
from migrate.steps import configuration

RELEASE: Final = "3.9"
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


def format_all(topology: Topology, supervisor: Supervisor, progress: Progress) -> None:
    """kafka-storage format of every node that is not formatted yet, with one new cluster id for all."""
    nodes: list[LabBroker | LabController] = [*topology.controllers, *topology.brokers]
    places = {node.name: _first(node) for node in nodes}
    due = [node for node in nodes if not Path(places[node.name], "meta.properties").exists()]
    if not due:
        return
    cluster_id = _cluster_id(places.values())
    progress(f"formatting {len(due)} nodes of cluster {cluster_id}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda node: supervisor.format_storage(node.name, cluster_id, RELEASE), due))


def _first(node: LabBroker | LabController) -> str:
    return node.log_dirs[0] if isinstance(node, LabBroker) else node.metadata_directory


def _cluster_id(places: Iterable[str]) -> str:
    """The one that a node was formatted with already, else a new one."""
    for place in places:
        path = Path(place, "meta.properties")
        if path.exists():
            return parse(path.read_bytes(), str(path))["cluster.id"]
    return base64.urlsafe_b64encode(b"\x4b" + secrets.token_bytes(15)).decode().rstrip("=")
