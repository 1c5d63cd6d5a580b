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
from migrate.steps import gates
from migrate.steps.base import BaseStep

UNDO = "not needed: which replica of the ISR leads is no state that a rollback must restore"


@dataclass(frozen=True, slots=True)
class RestoreLeaders(BaseStep):
    """ElectLeaders PREFERRED to the active controller, for what the metadata says is led by another replica."""

    after: str  # label of the stage whose roll it stands behind
    most: int  # partitions a request

    kind: ClassVar[str] = "restore-leaders"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS})
    proof_needs: ClassVar[frozenset[Need]] = frozenset({Need.KRAFT, Need.LIVE})
    undo: ClassVar[str] = UNDO
    proof: ClassVar[str] = (
        "the metadata names the first replica as leader of every partition where it is in the ISR and its broker is "
        "unfenced and in no controlled shutdown"
    )
    title: ClassVar[str] = "give partitions back to their preferred leaders"
    zookeeper: ClassVar[bool] = False
    asked: ClassVar[str] = "the active controller"

    @property
    def id(self) -> str:
        """`kraft-mode/preferred-leaders`."""
        return f"{self.stage.label}/preferred-leaders"

    @property
    def stage(self) -> Stage:
        """That of the roll."""
        return Stage.from_label(self.after)

    def leaders(self, world: World) -> Leaders | Unknown:
        """Who leads what, by the store that controls the cluster."""
        return world.kraft if isinstance(world.kraft, Unknown) else preferred.of_kraft(world.kraft)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """One line."""
        what = f"ElectLeaders PREFERRED to {self.asked}, at most {plural(self.most, 'partition')} a request"
        return (Action("~", "leaders", what),)

    def progress(self, world: World) -> Progress:
        """Told by who leads: what is back already is not asked for again."""
        found = self.leaders(world)
        if isinstance(found, Unknown):
            return found
        return NotBegun() if found.electable else AlreadyDone(found.told)

    def check(self, world: World) -> Readiness:
        """Something to give back, a whole cluster and a whole quorum."""
        found = self.leaders(world)
        if isinstance(found, Unknown):
            return found
        return self.whole(world) if found.electable else AlreadyDone(found.told)

    def whole(self, world: World) -> Readiness:
        """What must hold before, and after, leaders move."""
        return gates.first(gates.quorum_healthy(world), gates.replicas_full(world))

    def do(self, world: World, effects: Effects) -> None:  # noqa: ARG002 - the protocol's signature
        """Batch after batch, each proven before the next."""
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
