"""Roll forward: what is left to do where the migration was finalized too early, by whatever hand.

A controller without the flag was elected while brokers were in migration mode (KAFKA-20960).  Those brokers still
serve; restarted as they are, they are refused (BROKER_ID_NOT_REGISTERED) although they log `started`.  ZooKeeper is
written no more: there is nothing to compare with it, and no rollback.  Seen to work on 3.9.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model.ids import NodeId
from migrate.model.outcome import Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.finalize import FinalizeController
from migrate.steps.roll_broker import SEEN, RollToKraft, can_be_unfenced, kraft_brokers


def finalized(world: World) -> bool:
    """Does the metadata say POST_MIGRATION, by whatever hand?"""
    return not isinstance(world.kraft, Unknown) and world.kraft.migration_state is ZkMigrationState.POST_MIGRATION


def finalized_early(world: World) -> bool:
    """POST_MIGRATION, and a registration that still says that its broker is migrating."""
    if isinstance(world.kraft, Unknown) or not finalized(world):
        return False
    return any(entry.migrating for entry in world.kraft.brokers.values())


def forward_order(world: World) -> tuple[int, ...]:
    """Brokers by id, but first those that were restarted since, or are down: nothing makes them whole but their roll.

    A controller without the flag takes no registration of a broker outside KRaft mode: its session in the metadata
    ends, and it stays fenced.  Another one stopped beside it would take partitions away that need not go.
    """
    known = {} if isinstance(world.kraft, Unknown) else world.kraft.brokers

    def lost(broker: int) -> bool:
        found = known.get(NodeId(broker))
        return found is None or found.fenced

    return tuple(sorted((int(node.id) for node in world.inventory.brokers), key=lambda node: (not lost(node), node)))


@dataclass(frozen=True, slots=True)
class FinishFinalize(FinalizeController):
    """The controllers that still have the flag, where the point of no return lies behind: no interlock holds it up."""

    kind: ClassVar[str] = "finish-finalize"

    @property
    def needs(self) -> frozenset[Need]:  # type: ignore[override] # as later positions: there is nothing to compare with
        """The quorum, the files, the processes."""
        return frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES})

    def _interlock(self, world: World, down: int | None) -> Readiness:  # noqa: ARG002 - the interlock's signature
        """The state that it was planned for."""
        return gates.state_is(world, ZkMigrationState.POST_MIGRATION)


@dataclass(frozen=True, slots=True)
class RollForward(RollToKraft):
    """As roll 2, but by the metadata and the disks alone."""

    kind: ClassVar[str] = "roll-forward"
    needs: ClassVar[frozenset[Need]] = SEEN | {Need.LEDGER}
    proof_needs: ClassVar[frozenset[Need]] = SEEN | {Need.LEDGER}
    undo: ClassVar[str] = "none: the migration is finalized"
    proof: ClassVar[str] = "registered in KRaft mode, directories equal to those on disk, every replica of it VERIFIED"

    def check(self, world: World) -> Readiness:
        """Healthy disks, an accepted loss, the brokers before it proven, a healthy quorum."""
        return gates.first(
            gates.state_is(world, ZkMigrationState.POST_MIGRATION),
            self._lost_ones_first(world),
            gates.disks_healthy(world, self.broker),
            *(can_be_unfenced(world, broker) for broker in kraft_brokers(world)),
            gates.stop_is_accepted(world, self.broker),
            gates.quorum_healthy(world),
        )

    def _lost_ones_first(self, world: World) -> Readiness:
        """None that still serves is stopped beside one that is lost: that one may have become so after the plan."""
        assert not isinstance(world.kraft, Unknown)  # the gate before asked it
        lost = {int(node) for node, entry in world.kraft.brokers.items() if entry.migrating and entry.fenced}
        if not lost - {self.broker} or self.broker in lost:
            return Ready()
        return Refused(
            f"brokers {sorted(lost)} were restarted or are down, and nothing but their own roll makes them whole: plan "
            "anew, they come first"
        )

    def resume(self, world: World) -> Readiness:
        """The same, but for what its own stop took away."""
        return gates.first(
            gates.state_is(world, ZkMigrationState.POST_MIGRATION),
            gates.disks_healthy(world, self.broker),
            gates.quorum_healthy(world),
        )

    def verify(self, world: World) -> Outcome:
        """It is a KRaft broker, and its replicas are where the metadata says; ISRs fill when the last one is through.

        Brokers that wait for their turn hear nothing new: their Metadata answers prove nothing.
        """
        found = gates.first(
            self.process_lives(world), self.registered(world, migrating=False), can_be_unfenced(world, self.broker)
        )
        return gates.as_outcome(found, *self._evidence(world)[:1])
