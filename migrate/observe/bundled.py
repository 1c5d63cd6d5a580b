"""Sources that answer from a bundle, and the look that a bundle is made of."""

from __future__ import annotations

import pathlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from migrate.errors import MigrateError, NotVisible
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.launch import Launch, Listening
from migrate.model.outcome import Unknown
from migrate.model.rights import HostRights
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.stage import ZkMigrationState
from migrate.model.views import (
    BrokerDisks,
    KeptFiles,
    KraftView,
    LiveView,
    MigrationZnode,
    ServiceState,
    ZookeeperView,
)
from migrate.model.world import Need, World
from migrate.observe.analysis import await_dual_write
from migrate.observe.bundle import Bundle
from migrate.observe.sources import Configs, Sources
from migrate.observe.world import ClusterObserver
from migrate.zookeeper.client import ZookeeperClient

T = TypeVar("T")
LOOKED_AT: Final = frozenset(
    {
        Need.ZOOKEEPER,
        Need.KRAFT,
        Need.DISKS,
        Need.LIVE,
        Need.CONFIGS,
        Need.SERVICES,
        Need.LAUNCHES,
        Need.PORTS,
    }
)
NOT_IN_IT: Final = Unknown("the bundle does not have that node")


def look_for_bundle(observer: ClusterObserver) -> World:
    """Everything, with ZooKeeper read after dual write has passed the metadata: then the two can be compared later."""
    world = observer.observe(LOOKED_AT, {})
    view = world.kraft
    if not isinstance(view, Unknown) and view.migration_state is ZkMigrationState.MIGRATION:
        try:
            passed = await_dual_write(observer.sources, view.offset)
        except MigrateError as error:
            passed = Unknown(f"{error.id} {error}")
        later = passed if isinstance(passed, Unknown) else observer.sources.zookeeper()
        world = replace(world, zookeeper=later)
    return replace(world, zookeeper=observer.sources.with_sessions(world.zookeeper))


class BundledSources(Sources):
    """What a bundle holds, in the place of a cluster.  Nothing is opened but Spark, where that is asked for."""

    moves = False

    def __init__(
        self, inventory: Inventory, playbook: Playbook | Unknown, spark_folder: pathlib.Path | None, bundle: Bundle
    ) -> None:
        super().__init__(inventory, playbook, spark_folder)
        self._kept = bundle.world
        self._where = bundle.path

    def zookeeper_client(self) -> ZookeeperClient:
        raise NotVisible("a bundle has no session with ZooKeeper", where=self._where)

    def zookeeper(self) -> ZookeeperView | Unknown:
        return self._kept.zookeeper

    def with_sessions(self, view: ZookeeperView | Unknown) -> ZookeeperView | Unknown:
        return view

    def dual_write_offset(self) -> int:
        """/migration's offset as it was, -1 where it had none."""
        view = self._kept.zookeeper
        znode = None if isinstance(view, Unknown) else view.migration
        return znode.offset if isinstance(znode, MigrationZnode) else -1

    def kraft(self) -> KraftView | Unknown:
        return self._kept.kraft

    def live(self, *, controller_samples: int = 1) -> LiveView | Unknown:  # noqa: ARG002 - they were asked then
        return self._kept.live

    def protocols(self) -> Unknown:
        """No broker is asked now."""
        return Unknown("a bundle does not say which protocol version each broker runs with")

    def applied(self) -> Unknown:
        """No broker is asked now."""
        return Unknown("a bundle does not say which configuration each broker runs with")

    def stores(self, configs: Configs) -> Unknown:  # noqa: ARG002 - not in a bundle
        return Unknown("a bundle holds no store of a broker")

    def listeners(self, configs: Configs, broker: str | None) -> Unknown:  # noqa: ARG002 - nobody calls them now
        return Unknown("a bundle does not say what each broker's listeners serve")

    def configs(self) -> Configs:
        """The files as they were, without their secrets."""
        return self._of_nodes(self._kept.configs)

    def service_states(self) -> Mapping[NodeId, ServiceState]:
        return self._of_nodes(self._kept.services)

    def launches(self, states: Mapping[NodeId, ServiceState]) -> Mapping[NodeId, Launch | Unknown]:  # noqa: ARG002 - then
        """How the processes were started; no value of a secret is in it."""
        return self._of_nodes(self._kept.launches)

    def ports(self) -> Mapping[NodeId, tuple[Listening, ...] | Unknown]:
        return self._of_nodes(self._kept.ports)

    def host_rights(self) -> Mapping[NodeId, HostRights | Unknown]:
        """Nobody is asked for them now."""
        return {node.id: Unknown("a bundle does not say what is allowed on the hosts") for node in self.inventory.nodes}

    def leftovers(self) -> Unknown:
        """A bundle was made on no host of the nodes."""
        return Unknown("a bundle does not say what is on the nodes' hosts")

    def units(self) -> Unknown:
        """Nobody asks systemd now."""
        return Unknown("a bundle does not say what systemd knows of the units")

    def disks(self, configs: Configs) -> Mapping[NodeId, BrokerDisks | Unknown]:  # noqa: ARG002 - looked at by then
        return self._of_nodes(self._kept.disks)

    def backups(self, configs: Configs) -> Mapping[NodeId, KeptFiles | Unknown]:  # noqa: ARG002 - not in a bundle
        """Copies of files hold secrets: a bundle has none."""
        return {node.id: Unknown("a bundle has no copies of files") for node in self.inventory.brokers}

    def rehearsal(self) -> Unknown:
        """There is nobody to ask."""
        return Unknown("a bundle has no session with ZooKeeper")

    def metadata_logs(self, *, growing: Collection[NodeId] = ()) -> MetadataLogs | Unknown:  # noqa: ARG002 - there are none
        """Logs are not in a bundle either."""
        return Unknown("a bundle has no metadata logs")

    def _of_nodes(self, kept: Mapping[NodeId, T] | Unknown) -> dict[NodeId, T | Unknown]:
        ids: Iterable[NodeId] = (node.id for node in self.inventory.nodes)
        return {node: kept if isinstance(kept, Unknown) else kept.get(node, NOT_IN_IT) for node in ids}
