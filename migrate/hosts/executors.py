"""Choose by the inventory's executor how files, disks and processes of hosts are reached.

`local` and `ssh` work systemd units, or give nodes' own commands, on this host or on the nodes' hosts; `manual` writes
instructions for people, and waits until what they ask is seen.  All of them serve the same steps through
`migrate.model.ports`, and what one of them cannot see is Unknown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from migrate.hosts.commands import HostAccess
from migrate.hosts.disks import CollectorDisks
from migrate.hosts.own_commands import HostServices, service_of
from migrate.hosts.remote_files import (
    HostLock,
    MetadataCopies,
    RemoteFiles,
    RemoteMetadata,
    is_held,
    owner_of,
)
from migrate.hosts.runner import Holder, LocalRunner, ProgramHolder, Runner
from migrate.hosts.ssh import SshConnections
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.ports import Disks, Files, ServiceControl

if TYPE_CHECKING:
    from migrate.hosts.manual.witness import Witness

LOCAL: Final = "local"
SSH: Final = "ssh"
MANUAL: Final = "manual"
HOSTS_AT_ONCE: Final = 20  # how many are looked at side by side


class CrashableFiles(Files, Protocol):
    """Files with a crash point between a write and its fsync."""

    between: Callable[[str], None]


def _nothing() -> None: ...


@dataclass(frozen=True, slots=True)
class LocksOnHosts:
    holders: Mapping[NodeId, Holder]

    def take(self, node: NodeId, path: str, owner: str) -> HostLock:
        return HostLock(self.holders[node], node, path, owner)

    def owner(self, node: NodeId, path: str) -> tuple[str, bool]:
        """Return the owner line of the file, and whether the lock is held; OSError where that cannot be seen."""
        holder = self.holders[node]
        text = owner_of(holder, node, path)
        return text, bool(text) and is_held(holder, node, path)


@dataclass(frozen=True, slots=True)
class Executor:
    """Access to the hosts; `parallel`: several hosts may be observed at once."""

    files: CrashableFiles
    disks: Disks
    services: ServiceControl
    metadata: MetadataCopies
    close: Callable[[], None] = field(default=_nothing)
    runners: Mapping[NodeId, Runner] = field(default_factory=dict)  # none where no hosts are worked
    parallel: bool = False
    locks: LocksOnHosts | None = None  # None: files of this host
    resume: Callable[[], None] = field(default=_nothing)  # continues what a killed run left to the operator
    witness: Witness | None = None  # what is seen from here, where only people touch the hosts


class _Waits:
    """A clock outside of runs: measures only how long a process takes to end."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        threading.Event().wait(seconds)


def executor_of(inventory: Inventory) -> Executor:
    """Return the inventory's executor.  Connections open on first use; `close` ends them."""
    if inventory.executor == MANUAL:
        from migrate.hosts.manual.desk import Desk  # noqa: PLC0415 - all of `manual`, which others do without
        from migrate.hosts.manual.executor import ManualDisks, ManualFiles, ManualServices  # noqa: PLC0415
        from migrate.hosts.manual.metadata import ManualMetadata  # noqa: PLC0415

        desk = Desk(inventory)
        by_hand = ManualServices(desk)
        return Executor(
            ManualFiles(desk), ManualDisks(desk), by_hand, ManualMetadata(desk), resume=by_hand.resume,
            witness=desk.witness,
        )  # fmt: skip
    connections = SshConnections(inventory.executor_options.get("ssh_config"))
    programs: dict[str, ProgramHolder] = {}  # by host; "" is this one

    def program(host: str) -> ProgramHolder:
        """All nodes of a host are worked in one way."""
        node = next((node for node in inventory.nodes if node.host == host), None)
        is_here = (inventory.executor if node is None else inventory.executor_of(node)) == LOCAL
        place = "" if is_here else host
        if place not in programs:
            options = inventory.executor_options if node is None else inventory.options_of(node)
            holder = LocalRunner() if is_here else connections.runner(host)
            programs[place] = ProgramHolder(holder, HostAccess.of(options))
        return programs[place]

    return _units(inventory, program, connections.close)


def _units(inventory: Inventory, program: Callable[[str], ProgramHolder], close: Callable[[], None]) -> Executor:
    runners = {node.id: program(node.host) for node in inventory.nodes}
    files = RemoteFiles(runners)
    services = {node.id: service_of(node, runner=runners[node.id], files=files) for node in inventory.nodes}

    def close_all() -> None:
        for found in runners.values():
            found.close()
        close()

    return Executor(
        files, CollectorDisks(runners), HostServices(services, _Waits()), RemoteMetadata(runners), close=close_all,
        runners=runners, parallel=True, locks=LocksOnHosts(runners),
    )  # fmt: skip
