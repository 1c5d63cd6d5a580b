"""Preferred leaders at the end of a rollback: ZooKeeper's controller is asked, the partitions' znodes are the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model import preferred
from migrate.model.outcome import Readiness, Ready, Unknown
from migrate.model.preferred import Leaders
from migrate.model.world import Need, World
from migrate.steps.leaders import RestoreLeaders
from migrate.steps.rollback import gates


@dataclass(frozen=True, slots=True)
class RestoreLeadersInZookeeperMode(RestoreLeaders):
    """The same at the end of a rollback: ZooKeeper's controller is asked, and the partitions' znodes are the proof."""

    kind: ClassVar[str] = "restore-leaders-zookeeper"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS})
    proof_needs: ClassVar[frozenset[Need]] = frozenset({Need.ZOOKEEPER, Need.LIVE})
    waits_for: ClassVar[frozenset[Need]] = proof_needs
    proof: ClassVar[str] = (
        "ZooKeeper names the first replica as leader of every partition where it is in the ISR and its broker lives"
    )
    zookeeper: ClassVar[bool] = True
    asked: ClassVar[str] = "ZooKeeper's controller"

    def leaders(self, world: World) -> Leaders | Unknown:
        """By the partitions' state znodes."""
        return world.zookeeper if isinstance(world.zookeeper, Unknown) else preferred.of_zookeeper(world.zookeeper)

    def whole(self, world: World) -> Readiness:
        """A broker controls, and every ISR is full; there is no quorum any more."""
        found = gates.zookeeper_controls(world)
        return gates.whole_but(world, ()) if isinstance(found, Ready) else found

    def _evidence(self, world: World, found: Leaders) -> tuple[str, ...]:
        assert not isinstance(world.zookeeper, Unknown)
        return (f"{found.told} (ZooKeeper at zxid {world.zookeeper.zxid_last:#x})",)
