"""Waits until a process of the lab is ready: for states, never for elapsed time alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from migrate.errors import LabNotReady, MigrateError
from migrate.hosts.meta_properties import CURRENT, decode_folder
from migrate.kafka.connection import Connection
from migrate.kafka.live import metadata
from migrate.lab.configure import inner_access
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import HOST, LabBroker, Topology
from migrate.model.ids import METADATA_TOPIC
from migrate.model.views import MetadataAnswer, Stopped

POLL_SECONDS: Final = 0.1
PATIENCE_SECONDS: Final = 120.0
LOOKED_AT: Final = 200
LAST_LINES: Final = 5
_never: Final = threading.Event()


def wait_until(what: str, reached: Callable[[], str], watched: Supervisor, names: list[str]) -> None:
    """Ask `reached` until it answers "" (it is reached; else: what is still missing).

    Raises:
        LabNotReady: one of the watched processes died (with the end of its log), or nothing came of it in two minutes.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while missing := reached():
        for name in names:
            if isinstance(watched.state(name), Stopped):
                words = "\n         ".join(pick_last_lines(watched.last_words(name, LOOKED_AT)))
                raise LabNotReady(f"{name} died while {what}", where=watched.spec(name).log, why=words)
        if time.monotonic() > deadline:
            raise LabNotReady(f"{what}: {missing} after {PATIENCE_SECONDS:.0f} s", where=", ".join(names))
        _never.wait(POLL_SECONDS)


def pick_last_lines(lines: Sequence[str]) -> list[str]:
    """The last informative lines: a stack trace is too long for a message (pure)."""
    return [line for line in lines if not line.startswith(("\tat ", "\t... "))][-LAST_LINES:]


def zookeeper_answers(port: int) -> str:
    """Does ZooKeeper answer `ruok`?  "" if so, else what is missing."""
    try:
        with socket.create_connection((HOST, port), 1.0) as connection:
            connection.sendall(b"ruok")
            return "" if connection.recv(8) == b"imok" else "ZooKeeper is not ok"
    except OSError as error:
        return f"ZooKeeper does not answer ({error})"


def port_answers(port: int) -> str:
    """Does anything listen on that port?  "" if so, else what is missing."""
    try:
        with socket.create_connection((HOST, port), 1.0):
            return ""
    except OSError:
        return f"nothing listens on port {port}"


def ask(topology: Topology, broker: LabBroker) -> MetadataAnswer | str:
    """One broker's Metadata answer on its INTERNAL listener, or why there is none."""
    try:
        with Connection(f"{topology.host}:{broker.internal_port}", inner_access(topology)) as connection:
            return metadata(connection)
    except MigrateError as error:
        return f"{broker.name}: {error.what}"


def brokers_agree(topology: Topology) -> str:
    """Does every broker see all brokers and the same partitions, each whole?  "" if so, else what is missing.

    Right after all of them started some know none yet.
    """
    expected = tuple(broker.id for broker in topology.brokers)
    known: set[int] = set()
    for broker in topology.brokers:
        answer = ask(topology, broker)
        if isinstance(answer, str):
            return answer
        if answer.brokers != expected:
            return f"{broker.name} sees brokers {list(answer.brokers)}"
        if answer.unhealthy:
            first = answer.unhealthy[0]
            return f"{len(answer.unhealthy)} partitions are not whole, {first.topic}-{first.partition} first"
        known.add(answer.partitions)
    if len(known) > 1:
        return f"the brokers know of {', '.join(map(str, sorted(known)))} partitions"
    if known == {0} and _has_replicas(topology):
        return "no broker knows a partition, and their disks hold replicas"
    return ""


def _has_replicas(topology: Topology) -> bool:
    places = (Path(path) for broker in topology.brokers for path in broker.log_dirs)
    folders = (decode_folder(entry.name) for place in places if place.is_dir() for entry in place.iterdir())
    return any(
        found is not None and found.kind == CURRENT and found.topic != METADATA_TOPIC  # a KRaft broker keeps it, too
        for found in folders
    )
