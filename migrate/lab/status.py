"""The state of a lab: its processes, their memory and ports, and the brokers' view."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from migrate.hosts.properties import parse
from migrate.lab import ready, units
from migrate.lab.seed import seeded
from migrate.lab.supervisor import Supervisor
from migrate.lab.topology import ISSUER, KDC, SSH, ZOOKEEPER, Topology
from migrate.model.broker_modes import ControllerMode, node_mode
from migrate.model.outcome import Unknown
from migrate.model.views import MetadataAnswer, Running, ServiceState


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process: `mode` is from its configuration file, `state` whether it runs; memory is resident, in MB."""

    name: str
    mode: str
    state: str
    pid: int | None
    memory_mb: int
    ports: tuple[int, ...]
    restart_due: bool  # its file has changed since it was started


@dataclass(frozen=True, slots=True)
class LabStatus:
    """The whole lab; the cluster's numbers are None while no broker answers."""

    directory: str
    inventory: str
    zookeeper: str
    bootstrap: str
    processes: tuple[ProcessStatus, ...]
    brokers: tuple[int, ...] | None
    partitions: int | None
    not_whole: int | None
    seeded: bool
    protocol: str = "SASL_PLAINTEXT"  # of the clients' listener


def observe_lab(topology: Topology, supervisor: Supervisor) -> LabStatus:
    """Observe processes and brokers; nothing is changed."""
    described = supervisor.specs()
    first = [] if topology.kraft else [ZOOKEEPER]
    names = [*first, SSH, ISSUER, KDC, *(b.name for b in topology.brokers), *(c.name for c in topology.controllers)]
    answers = (ready.ask(topology, broker) for broker in topology.brokers)
    answer = next((found for found in answers if isinstance(found, MetadataAnswer)), None)
    return LabStatus(
        directory=topology.directory,
        inventory=str(topology.inventory),
        zookeeper=topology.zookeeper,
        bootstrap=topology.bootstrap,
        processes=tuple(_process(topology, supervisor, name) for name in names if name in described),
        brokers=None if answer is None else answer.brokers,
        partitions=None if answer is None else answer.partitions,
        not_whole=None if answer is None else len(answer.unhealthy),
        seeded=seeded(topology) is not None,
        protocol="SASL_SSL" if topology.secured else "SASL_PLAINTEXT",
    )


def _process(topology: Topology, supervisor: Supervisor, name: str) -> ProcessStatus:
    state = supervisor.state(name)
    config = topology.config(name)
    return ProcessStatus(
        name=name,
        mode=mode_in_words(parse(config.read_bytes(), str(config)) if config.exists() else {}, name),
        state=_word(state),
        pid=state.pid if isinstance(state, Running) else None,
        memory_mb=resident_mb(state.pid) if isinstance(state, Running) else 0,
        ports=tuple(port for port, owner in topology.ports().items() if owner == name),
        restart_due=isinstance(state, Running)
        and config.exists()
        and state.config_sha256 != units.config_sha256(str(config)),
    )


def mode_in_words(values: dict[str, str], name: str) -> str:
    """The mode of a process, by its configuration file (pure)."""
    if name == ZOOKEEPER:
        return "zookeeper"
    if name == ISSUER:
        return "issuer of tokens"
    if name == KDC:
        return "KDC of Kerberos"
    if name == SSH:
        return "SSH server of the nodes' hosts"
    if not values:
        return "not configured yet"
    match node_mode(values):
        case ControllerMode.FLAGGED:
            return "controller, migrating"
        case ControllerMode.FINALIZED:
            return "controller"
        case ControllerMode.COMBINED:
            return "controller and broker"
        case mode:
            return mode.words


def _word(state: ServiceState) -> str:
    if isinstance(state, Unknown):
        return f"unknown: {state.reason}"
    return "running" if isinstance(state, Running) else "stopped"


def resident_mb(pid: int) -> int:
    """Resident memory of a process in MB; 0 where it is gone."""
    try:
        found = re.search(r"^VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) // 1024 if found else 0
