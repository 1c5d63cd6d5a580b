"""Sources that answer with the parts of a world: what commands and observers look at where there is no cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from migrate.errors import MigrateError
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.launch import Launch, Listening, Unit
from migrate.model.listeners import Heard, StoreFile
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.rollback_readiness import MetadataLogs, StateBehind
from migrate.model.views import BrokerDisks, KeptFiles, KraftView, LiveView, MigrationZnode, ServiceState, ZookeeperView
from migrate.model.work import Work
from migrate.model.world import World
from migrate.observe.sources import Configs
from migrate.zookeeper.rate_limit import Pace


class NoLogs:
    """Services of nodes that write no log."""

    def last_words(self, node: NodeId, lines: int) -> tuple[str, ...]:
        """Nothing."""
        return ()


class KeptSources:
    """Stands in for `migrate.observe.sources.Sources`; `asked` lists what was looked at, in order."""

    moves = True
    services = NoLogs()

    def __init__(self, world: World, unreachable: MigrateError | None = None) -> None:
        self.world = world
        self.inventory = world.inventory
        self.playbook = world.playbook
        self.pace = Pace(world.inventory.zookeeper_rate)
        self.work = Work()
        self.asked: list[str] = []
        self.closed = False
        self.wait: Callable[[], object] = lambda: None
        self.unreachable = unreachable

    def zookeeper_client(self) -> None:
        """No session, or the error that says why there is none."""
        if self.unreachable is not None:
            raise self.unreachable

    def zookeeper(self) -> ZookeeperView | Unknown:
        """The world's."""
        self.asked.append("zookeeper")
        self.wait()
        return self.world.zookeeper

    def with_sessions(self, view: ZookeeperView | Unknown) -> ZookeeperView | Unknown:
        """No server is near to be asked."""
        return view

    def dual_write_offset(self) -> int:
        """/migration's, -1 where it has none."""
        znode = Unknown("") if isinstance(self.world.zookeeper, Unknown) else self.world.zookeeper.migration
        return znode.offset if isinstance(znode, MigrationZnode) else -1

    def kraft(self) -> KraftView | Unknown:
        """The world's."""
        self.asked.append("kraft")
        self.wait()
        return self.world.kraft

    def live(self) -> LiveView | Unknown:
        """The world's."""
        self.asked.append("live")
        self.wait()
        return self.world.live

    def applied(self) -> Mapping[NodeId, Mapping[str, str] | Unknown] | Unknown:
        """The world's."""
        return self.world.applied

    def configs(self) -> Configs:
        """The world's."""
        self.asked.append("configs")
        assert not isinstance(self.world.configs, Unknown)
        return self.world.configs

    def disks(self, configs: Configs) -> Mapping[NodeId, BrokerDisks | Unknown]:
        """The world's."""
        assert configs is self.world.configs
        self.asked.append("disks")
        self.wait()
        assert not isinstance(self.world.disks, Unknown)
        return self.world.disks

    def rehearsal(self) -> str | Unknown:
        """The world's."""
        return self.world.rehearsal

    def metadata_logs(self, *, growing: Collection[NodeId] = ()) -> MetadataLogs | Unknown:
        """The world's."""
        self.asked.append("metadata-logs")
        return self.world.metadata_logs

    def forget_metadata_logs(self) -> None:
        """Nothing is kept."""
        self.asked.append("forget-metadata-logs")

    def states_behind(
        self, logs: MetadataLogs | Unknown, view: ZookeeperView | Unknown
    ) -> tuple[StateBehind, ...] | Unknown:
        """The world's, where there are logs and a view to compare."""
        self.asked.append("states-behind")
        found = logs if isinstance(logs, Unknown) else view
        return found if isinstance(found, Unknown) else self.world.states_behind

    def backups(self, configs: Configs) -> Mapping[NodeId, KeptFiles | Unknown]:
        """The world's; where it has none, each is unknown for that reason."""
        assert configs is self.world.configs
        self.asked.append("backups")
        found = self.world.backups
        return (
            dict.fromkeys((node.id for node in self.inventory.brokers), found) if isinstance(found, Unknown) else found
        )

    def launches(self, states: Mapping[NodeId, ServiceState]) -> Mapping[NodeId, Launch | Unknown]:
        """The world's; where it has none, each is unknown for that reason."""
        found = self.world.launches
        return dict.fromkeys(states, found) if isinstance(found, Unknown) else found

    def ports(self) -> Mapping[NodeId, tuple[Listening, ...] | Unknown]:
        """The world's, alike."""
        found = self.world.ports
        nodes = (node.id for node in self.inventory.nodes)
        return dict.fromkeys(nodes, found) if isinstance(found, Unknown) else found

    def host_rights(self) -> Mapping[NodeId, HostRights | Unknown]:
        """The world's, alike."""
        found = self.world.host_rights
        nodes = (node.id for node in self.inventory.nodes)
        return dict.fromkeys(nodes, found) if isinstance(found, Unknown) else found

    def leftovers(self) -> Mapping[NodeId, tuple[str, ...] | Unknown] | Unknown:
        """The world's."""
        return self.world.leftovers

    def stores(self, configs: Configs) -> Mapping[NodeId, tuple[StoreFile, ...] | Unknown] | Unknown:
        """The world's."""
        return self.world.stores

    def listeners(self, configs: Configs, broker: str | None) -> Mapping[NodeId, Heard | Unknown] | Unknown:
        """The world's."""
        return self.world.listeners

    def units(self) -> Mapping[NodeId, Unit | Unknown] | Unknown:
        """The world's."""
        return self.world.units

    def service_states(self) -> Mapping[NodeId, ServiceState]:
        """The world's."""
        self.asked.append("services")
        assert not isinstance(self.world.services, Unknown)
        return self.world.services

    def start_spark(self) -> None:
        """There is none."""

    def spark(self) -> None:
        """There is none."""

    def close(self) -> None:
        """Remember it."""
        self.closed = True


def sources_of(world: World, unreachable: MigrateError | None = None) -> Callable[..., Any]:
    """A class in the place of `Sources`: that world, with the inventory and the playbook that the command loaded."""

    def opened(inventory: Inventory, playbook: Playbook | Unknown, _spark_folder: object) -> KeptSources:
        return KeptSources(replace(world, inventory=inventory, playbook=playbook), unreachable)

    return opened
