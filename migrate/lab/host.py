"""The lab's host: the host program in a folder of the lab, installed and used as on an operator's hosts.

All nodes are units of one host, and the lab's processes are those units.  What a host has and this machine may lack
(systemd, an unpacked Kafka) is stood in for by small programs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from migrate.errors import LabRefused
from migrate.hosts import host_setup
from migrate.lab import units
from migrate.lab.supervisor import ProcessSpec
from migrate.lab.topology import Topology
from migrate.model.inventory import Inventory

FOLDER: Final = "host"
HOME: Final = "kafka"
BIN: Final = "bin"
PROGRAM: Final = "program"
STORAGE_TOOL: Final = Path("bin", "kafka-storage.sh")


def unit_of(name: str) -> str:
    """The unit of a process: `broker-0.service` (pure)."""
    return f"{name}{units.SUFFIX}"


def options(topology: Topology) -> dict[str, str]:
    """How the inventory's executor reaches the host program: as who runs the lab, without sudo."""
    folder = topology.folder(FOLDER)
    return {"kafka_home": str(folder / HOME), "host_program": str(folder / PROGRAM / "host"), "sudo": "no"}


def install(topology: Topology, inventory: Inventory, python: str = sys.executable) -> None:
    """Install the host program for the nodes of that inventory.

    It finds systemctl and journalctl in BIN: a host.json of root's own place names no such folder.

    Raises:
        LabRefused: it refuses to run in this folder, which somebody else may write.
    """
    folder = topology.folder(FOLDER)
    found = {**host_setup.configuration(inventory, inventory.nodes[0].host), "path": str(folder / BIN)}
    if refusal := host_setup.install(folder / PROGRAM, found, python):
        raise LabRefused(
            "the host program refuses to run in this folder",
            where=topology.directory,
            why=refusal,
            next_step="make the lab in another folder, such as one below your home directory",
        )


def write_programs(folder: Path, state: Path) -> None:
    """Write stand-ins for systemctl and journalctl, for the processes in `state`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in units.PROGRAMS:
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{units.__file__}" "{state}" {name} "$@"\n')
        program.chmod(0o755)


def lay_programs(topology: Topology, specs: Mapping[str, ProcessSpec]) -> None:
    """Write stand-ins for systemctl and journalctl into BIN, and Kafka's storage tool below HOME."""
    folder = topology.folder(FOLDER)
    write_programs(folder / BIN, topology.processes)
    tool = folder / HOME / STORAGE_TOOL
    tool.parent.mkdir(parents=True, exist_ok=True)
    formatting = next(spec.format_argv for spec in specs.values() if spec.format_argv)
    words = " ".join(f'"{word}"' for word in formatting[:-1])  # its last word is `format`, which the caller says
    tool.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    tool.chmod(0o755)
