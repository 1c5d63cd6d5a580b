"""The real host program, installed in a folder of a test by the real set-up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from migrate.hosts import host_setup
from migrate.hosts.commands import HostAccess
from migrate.hosts.runner import Holder, LocalRunner, ProgramHolder
from migrate.lab import units
from migrate.lab.host import write_programs
from migrate.lab.supervisor import ProcessSpec, write_spec
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode, ControllerNode
from tests.testing import worlds

HOST = "kafka-1"


def broker(node: int, config: Path | str) -> BrokerNode:
    """A broker of that host, with a unit `node-N.service`."""
    return BrokerNode(NodeId(node), HOST, f"{HOST}:9092", str(config), unit=f"node-{node}.service")


def controller(node: int, config: Path | str, metadata: Path | str) -> ControllerNode:
    """A controller of that host."""
    return ControllerNode(NodeId(node), HOST, f"{HOST}:9090", str(config), str(metadata), unit=f"node-{node}.service")


def installed(
    folder: Path,
    brokers: Sequence[BrokerNode] = (),
    controllers: Sequence[ControllerNode] = (),
    *,
    state: Path | None = None,
    user: int | None = None,
    kafka_home: Path | str = "/opt/kafka",
    python: str = sys.executable,
) -> HostAccess:
    """How the program in that folder is called.

    systemctl is the lab's stand-in, over the processes described in `state`; without one every node's unit is known,
    and runs nothing.  Units run as `user`, else as we do.
    """
    inventory = replace(
        worlds.inventory(),
        executor="ssh",
        executor_options={"kafka_home": str(kafka_home), "sudo": "no", "host_program": f"{folder}/host"},
        brokers=tuple(brokers),
        controllers=tuple(controllers),
    )
    if state is None:
        state = folder.parent / f"{folder.name}-units"
        state.mkdir()
        for node in inventory.nodes:
            place = str(state / f"node-{node.id}")
            write_spec(state, ProcessSpec(f"node-{node.id}", int(node.id), ("true",), "/", place, place, node.config))
    if user is not None:
        (state / units.USER).write_text(str(user))
    programs = folder.parent / f"{folder.name}-bin"
    write_programs(programs, state)
    host = inventory.nodes[0].host
    host_setup.install(folder, {**host_setup.configuration(inventory, host), "path": str(programs)}, python)
    return HostAccess.of(inventory.executor_options)


def here(access: HostAccess) -> Holder:
    """The program of this host."""
    return ProgramHolder(LocalRunner(), access)
