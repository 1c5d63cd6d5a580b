"""Sources that answer with the parts of a world: what commands and observers look at where there is no cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from migrate.errors import MigrateError
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory, Playbook
from migrate.model.outcome import Unknown
from migrate.model.rollback_readiness import MetadataLogs
from migrate.model.views import KraftView, MigrationZnode, ZookeeperView
from migrate.model.world import Need, World
from migrate.observe.sources import Sources
from migrate.observe.views import View

SIDE_BY_SIDE = {Need.ZOOKEEPER, Need.LIVE, Need.DISKS}


class NoLogs:
    """Services of nodes that write no log."""

    def last_words(self, node: NodeId, lines: int) -> tuple[str, ...]:
        """Nothing."""
        return ()


class KeptSources(Sources):
    """`Sources` of a world that is known; `asked` lists what was looked at, in order."""

    def __init__(self, world: World, unreachable: MigrateError | None = None) -> None:
        super().__init__(world.inventory, world.playbook, None)
        self.world = world
        self.services: Any = NoLogs()
        self.asked: list[str] = []
        self.closed = False
        self.wait: Callable[[], object] = lambda: None
        self.unreachable = unreachable
        self._reader: Any = KeptMetadata(self)

    def zookeeper_client(self) -> Any:
        """No session, or the error that says why there is none."""
        if self.unreachable is not None:
            raise self.unreachable

    def answer(self, view: View, look: Callable[[], Any]) -> Any:
        """The world's part; of each node the reason where the world has none."""
        if view.derived or view.need is Need.KRAFT:
            return look()
        self.asked.append(view.need)
        if view.need in SIDE_BY_SIDE:
            self.wait()
        found = getattr(self.world, view.part)
        if isinstance(found, Unknown) and (view.by_node or view.need is Need.BACKUPS):
            return dict.fromkeys((node.id for node in self.inventory.nodes), found)
        return found

    def with_sessions(self, view: ZookeeperView | Unknown) -> ZookeeperView | Unknown:
        """No server is near to be asked."""
        return view

    def dual_write_offset(self) -> int:
        """/migration's, -1 where it has none."""
        znode = Unknown("") if isinstance(self.world.zookeeper, Unknown) else self.world.zookeeper.migration
        return znode.offset if isinstance(znode, MigrationZnode) else -1

    def logs_on_disk(self, *, growing: Collection[NodeId] = ()) -> MetadataLogs | Unknown:
        """The world's."""
        self.asked.append("metadata-logs")
        return self.world.metadata_logs

    def spark(self) -> None:
        """There is none."""

    def close(self) -> None:
        """Remember it."""
        super().close()
        self.closed = True


class KeptMetadata:
    """A reader of the metadata that knows the world's."""

    def __init__(self, sources: KeptSources) -> None:
        self._sources = sources

    def view(self) -> KraftView | Unknown:
        """The world's."""
        self._sources.asked.append("kraft")
        self._sources.wait()
        return self._sources.world.kraft

    def close(self) -> None:
        """Nothing is open."""


def sources_of(world: World, unreachable: MigrateError | None = None) -> Callable[..., Any]:
    """A class in the place of `Sources`: that world, with the inventory and the playbook that the command loaded."""

    def opened(inventory: Inventory, playbook: Playbook | Unknown, _spark_folder: object) -> KeptSources:
        return KeptSources(replace(world, inventory=inventory, playbook=playbook), unreachable)

    return opened
