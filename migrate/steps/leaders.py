"""Preferred leaders back where they were, behind a roll: what restarts have moved is given back, if the playbook asks.

A restart moves every leader of its broker to another one, and nothing brings them back but Kafka's own balance
(`auto.leader.rebalance.enable`, every five minutes) or an election.  It is asked of whoever controls the cluster: the
active KRaft controller, or at the end of a rollback ZooKeeper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model import preferred
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Unknown
from migrate.model.ports import Effects
from migrate.model.preferred import Leaders
from migrate.model.stage import Stage
from migrate.model.step import Action, NotBegun, Predicted, Progress
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.steps import gates, named_gates
from migrate.steps.base import BaseStep
from migrate.steps.named_gates import Gate
from migrate.steps.rollback import gates as back

UNDO = "not needed: which replica of the ISR leads is no state that a rollback must restore"


@dataclass(frozen=True, slots=True)
class RestoreLeaders(BaseStep):
    """ElectLeaders PREFERRED to the active controller, for what the metadata says is led by another replica."""

    after: str  # label of the stage whose roll it stands behind
    most: int  # partitions a request

    kind = "restore-leaders"
    name = "preferred-leaders"
    needs = frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS})
    proof_needs = frozenset({Need.KRAFT, Need.LIVE})
    undo = UNDO
    proof = (
        "the metadata names the first replica as leader of every partition where it is in the ISR and its broker is "
        "unfenced and in no controlled shutdown"
    )
    titled = "give partitions back to their preferred leaders"
    zookeeper: ClassVar[bool] = False
    asked: ClassVar[str] = "the active controller"

    @property
    def stage(self) -> Stage:
        return Stage.from_label(self.after)

    def leaders(self, world: World) -> Leaders | Unknown:
        return world.kraft if isinstance(world.kraft, Unknown) else preferred.of_kraft(world.kraft)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        what = f"ElectLeaders PREFERRED to {self.asked}, at most {plural(self.most, 'partition')} a request"
        return (Action("~", "leaders", what),)

    def progress(self, world: World) -> Progress:
        """Told by who leads: what is back already is not asked for again."""
        found = self.leaders(world)
        if isinstance(found, Unknown):
            return found
        return NotBegun() if found.electable else AlreadyDone(found.told)

    def check(self, world: World) -> Readiness:
        found = self.leaders(world)
        if isinstance(found, Unknown):
            return found
        return self.whole(world) if found.electable else AlreadyDone(found.told)

    def own_gates(self) -> tuple[Gate, ...]:
        return named_gates.quorum_healthy(), named_gates.replicas_full()

    def whole(self, world: World) -> Readiness:
        return named_gates.all_open(self.own_gates(), world)

    def do(self, world: World, effects: Effects) -> None:
        effects.restore_leaders(self.most, zookeeper=self.zookeeper)

    def verify(self, world: World) -> Outcome:
        """By who leads now; an answer to a request is no proof."""
        found = self.leaders(world)
        if isinstance(found, Unknown):
            return found
        if found.electable:
            first = found.electable[0]
            return NotYet(
                f"{plural(len(found.electable), 'partition')} to be led by their first replica, {first.name} by broker "
                f"{first.preferred}",
                self.asked,
                "the same command asks for what is left; if it lasts, look at the log of the controller",
                progress=str(len(found.electable)),
            )
        return gates.as_outcome(self.whole(world), *self._evidence(world, found))

    def _evidence(self, world: World, found: Leaders) -> tuple[str, ...]:
        assert not isinstance(world.kraft, Unknown)
        return (f"{found.told} (metadata offset {world.kraft.offset})",)


@dataclass(frozen=True, slots=True)
class RestoreLeadersInZookeeperMode(RestoreLeaders):
    kind = "restore-leaders-zookeeper"
    needs = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS})
    proof_needs = frozenset({Need.ZOOKEEPER, Need.LIVE})
    waits_for = proof_needs
    proof = "ZooKeeper names the first replica as leader of every partition if it is in the ISR and its broker runs"
    zookeeper = True
    asked = "ZooKeeper's controller"

    def leaders(self, world: World) -> Leaders | Unknown:
        return world.zookeeper if isinstance(world.zookeeper, Unknown) else preferred.of_zookeeper(world.zookeeper)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            back.controls(),
            Gate("every broker sees every partition with its full ISR", lambda world: back.whole_but(world, ())),
        )

    def whole(self, world: World) -> Readiness:
        return named_gates.one_by_one(self.own_gates(), world)

    def _evidence(self, world: World, found: Leaders) -> tuple[str, ...]:
        assert not isinstance(world.zookeeper, Unknown)
        return (f"{found.told} (ZooKeeper at zxid {world.zookeeper.zxid_last:#x})",)
