"""What controllers left unwritten when they stopped: they come back once more, to write it to ZooKeeper.

A record that was committed between the last look at dual write and the end of the last controller would be lost with
the deletion of /controller: a topic made then lives in the metadata alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model.difference import DifferenceName, names_from_text
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import Running
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.controllers import all_flagged
from migrate.steps.rollback import gates as back

LOOK = frozenset({Need.ZOOKEEPER, Need.LIVE, Need.CONFIGS, Need.SERVICES})


@dataclass(frozen=True, slots=True)
class FinishDualWrite(BaseStep):
    """Start the controllers with the metadata that they have, until ZooKeeper is equal to it.

    `discarded` are the differences that the plan gives up (`names_to_text`).
    """

    discarded: str = ""

    kind: ClassVar[str] = "finish-dual-write"
    stage_is: ClassVar[Stage] = Stage.HYBRID
    title: ClassVar[str] = "start the controllers again: ZooKeeper lacks what they have committed"
    needs: ClassVar[frozenset[Need]] = LOOK | {Need.METADATA_LOGS}
    proof_needs: ClassVar[frozenset[Need]] = LOOK | {Need.KRAFT, Need.DIFF}
    waits_for: ClassVar[frozenset[Need]] = NARROW | {Need.ZOOKEEPER}
    undo: ClassVar[str] = "stop them again"
    proof: ClassVar[str] = "a controller leads with the flag, and ZooKeeper holds what the metadata holds"
    restores_controller: ClassVar[bool] = True

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """One start each."""
        lasting = () if isinstance(world.diff, Unknown) else back.standing(world.diff, names_from_text(self.discarded))
        names = ", ".join(str(DifferenceName.of(row)) for row in lasting[: back.NAMED])
        more = f" and {len(lasting) - back.NAMED} more" if len(lasting) > back.NAMED else ""
        said = f"{names}{more}" if names else "ZooKeeper may lack what they have committed"
        starts = (
            Action(">", f"controller {node}", "start with the migration flag") for node in back.controllers(world)
        )
        return (*starts, Action("=", "ZooKeeper", f"dual write goes on: {said}"))

    def check(self, world: World) -> Readiness:
        """With the flag, over a copy that their own metadata has made."""
        if isinstance(world.metadata_logs, Unknown):
            return world.metadata_logs
        if world.metadata_logs.state is not ZkMigrationState.MIGRATION:
            return Refused(f"the controllers' metadata says {world.metadata_logs.state.name}: it has made no copy")
        return all_flagged(world)

    def resume(self, world: World) -> Readiness:
        """Some run by now: that they belong was asked before the first."""
        return all_flagged(world)

    def progress(self, world: World) -> Progress:
        """How many of them live?"""
        down = back.stopped(world, back.controllers(world))
        if isinstance(down, Unknown):
            return down
        if not down:
            return AlreadyDone("every controller runs")
        return NotBegun() if len(down) == len(back.controllers(world)) else HalfDone(f"{len(down)} are still down")

    def do(self, world: World, effects: Effects) -> None:
        """Start those that do not run."""
        assert not isinstance(world.services, Unknown)
        for node in back.controllers(world):
            if not isinstance(world.services.get(NodeId(node)), Running):
                effects.start(NodeId(node))

    def verify(self, world: World) -> Outcome:
        """They lead, and have written everything."""
        found = gates.first(
            back.quorum_leads(world),
            gates.state_is(world, ZkMigrationState.MIGRATION),
            back.zookeeper_equal(world, names_from_text(self.discarded)),
        )
        return gates.as_outcome(found, "ZooKeeper was compared with the committed metadata, and is equal")
