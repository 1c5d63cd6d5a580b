"""Sources that answer from a bundle, and the look that a bundle is made of."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

from migrate.errors import MigrateError, NotVisible
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown, unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import MigrationZnode, ZookeeperView
from migrate.model.world import World
from migrate.observe.analysis import await_dual_write
from migrate.observe.bundle import Bundle
from migrate.observe.sources import KEPT, Sources
from migrate.observe.views import View
from migrate.observe.world import ClusterObserver
from migrate.zookeeper.client import ZookeeperClient

NOT_IN_IT: Final = Unknown("the bundle does not have that node")


def look_for_bundle(observer: ClusterObserver) -> World:
    """Everything, with ZooKeeper read after dual write has passed the metadata: then the two can be compared later."""
    world = observer.observe(frozenset(KEPT), {})
    view = world.kraft
    if not isinstance(view, Unknown) and view.migration_state is ZkMigrationState.MIGRATION:
        try:
            passed = await_dual_write(observer.sources, view.offset)
        except MigrateError as error:
            passed = unknown(error)
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

    def answer(self, view: View, look: Callable[[], Any]) -> Any:
        """What the bundle has of it; a node that the bundle does not have is unknown, never absent."""
        if view.derived:
            return look()
        kept = Unknown(view.absent) if view.absent else getattr(self._kept, view.part)
        if not view.by_node:
            return kept
        nodes = (node.id for node in self.inventory.nodes)
        return {node: kept if isinstance(kept, Unknown) else kept.get(node, NOT_IN_IT) for node in nodes}

    def logs_on_disk(self, *, growing: Collection[NodeId] = ()) -> Unknown:  # noqa: ARG002 - there are none
        return Unknown("a bundle has no metadata logs")

    def with_sessions(self, view: ZookeeperView | Unknown) -> ZookeeperView | Unknown:
        return view

    def dual_write_offset(self) -> int:
        """/migration's offset as it was, -1 where it had none."""
        view = self._kept.zookeeper
        znode = None if isinstance(view, Unknown) else view.migration
        return znode.offset if isinstance(znode, MigrationZnode) else -1
