"""A lab whose nodes are reached by SSH and run as systemd units: its server, its keys, and its host's programs.

All nodes are on one host, whose name only the lab's own client configuration knows.  The host program is installed
below the lab's folder, by the script that root runs on real hosts.  What a real host has and this machine may lack
(systemd, an unpacked Kafka) is stood in for by small programs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import migrate
from migrate.hosts import host_setup
from migrate.hosts.supervisor import ProcessSpec
from migrate.lab.fake_systemd import SUFFIX, write_programs
from migrate.lab.topology import SSH, Topology
from migrate.model.inventory import Inventory

FOLDER: Final = "ssh"
HOME: Final = "kafka"
BIN: Final = "bin"
PROGRAM: Final = "host"
HOST_NAME: Final = "kraft-migrate-lab"  # one: an address of the loopback is another one on each host
STORAGE_TOOL: Final = Path("bin", "kafka-storage.sh")


def unit_of(name: str) -> str:
    """The unit of a process: `broker-0.service` (pure)."""
    return f"{name}{SUFFIX}"


def options(topology: Topology) -> dict[str, str]:
    folder = topology.folder(FOLDER)
    program = str(folder / PROGRAM / "host")
    return {
        "kafka_home": str(folder / HOME), "host_program": program, "sudo": "no",
        "ssh_config": str(folder / "ssh_config"),
    }  # fmt: skip


def require() -> None:
    """Raise what is raised where asyncssh is not installed."""
    from migrate.lab import ssh_hosts as _  # noqa: F401, PLC0415 - its import alone tells


def lay_out(topology: Topology, specs: dict[str, ProcessSpec]) -> None:
    """Write keys, the client's configuration, and the programs for the sessions."""
    from migrate.lab import ssh_hosts  # noqa: PLC0415 - asyncssh, for this alone

    folder = topology.folder(FOLDER)
    ssh_hosts.prepare(folder, [HOST_NAME], topology.ssh_port)
    lay_programs(topology, folder, specs)


def install(folder: Path, inventory: Inventory, programs: Path, python: str = sys.executable) -> str:
    """Install the host program of a host of the inventory below a folder; its path.

    It finds systemctl and journalctl in `programs`: a host.json of root's own place names no such folder.
    """
    found = {**host_setup.configuration(inventory, inventory.nodes[0].host), "path": str(programs)}
    return str(host_setup.install(folder, found, python))


def lay_programs(topology: Topology, folder: Path, specs: dict[str, ProcessSpec]) -> None:
    """Write stand-ins for systemctl and journalctl into FOLDER/bin, and Kafka's storage tool below FOLDER/kafka."""
    write_programs(folder / BIN, topology.processes)
    tool = folder / HOME / STORAGE_TOOL
    tool.parent.mkdir(parents=True, exist_ok=True)
    formatting = next(spec.format_argv for spec in specs.values() if spec.format_argv)
    words = " ".join(f'"{word}"' for word in formatting[:-1])  # its last word is `format`, which the caller says
    tool.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    tool.chmod(0o755)


def server_spec(topology: Topology) -> ProcessSpec:
    package = str(Path(migrate.__file__).parent.parent)
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    return ProcessSpec(
        name=SSH,
        node=None,
        argv=(sys.executable, "-m", "migrate.lab.ssh_hosts", str(topology.folder(FOLDER)), str(topology.ssh_port)),
        directory=topology.directory,
        log=str(topology.log(SSH)),
        output=str(topology.folder("logs", f"{SSH}.out")),
        config=str(topology.folder(FOLDER, "ssh_config")),
        environment={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "PYTHONPATH": path},
    )
