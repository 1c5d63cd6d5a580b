"""A lab whose host is reached by SSH: its server and its keys.

The name of the host is known to the lab's own client configuration only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import migrate
from migrate.lab.supervisor import ProcessSpec
from migrate.lab.topology import SSH, Topology

FOLDER: Final = "ssh"
HOST_NAME: Final = "kraft-migrate-lab"  # one: an address of the loopback is another one on each host


def options(topology: Topology) -> dict[str, str]:
    return {"ssh_config": str(topology.folder(FOLDER, "ssh_config"))}


def require() -> None:
    """Raise what is raised where asyncssh is not installed."""
    from migrate.lab import ssh_hosts as _  # noqa: F401, PLC0415 - its import alone tells


def lay_out(topology: Topology) -> None:
    """Write keys and the client's configuration."""
    from migrate.lab import ssh_hosts  # noqa: PLC0415 - asyncssh, for this alone

    ssh_hosts.prepare(topology.folder(FOLDER), [HOST_NAME], topology.ssh_port)


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
