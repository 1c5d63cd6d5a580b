"""Out of a copy that is stuck for ever: a fresh quorum, every broker registered with it, and the copy begins again.

Killed between the end of the copy and its note in /migration, the driver stays inactive on every later leader: the
metadata says MIGRATION, the znode says that nothing was copied.  Seen to work on 3.9.2: stop the controllers, delete
/controller and /migration, format the controllers anew and start them, restart every broker; a broker that is not
restarted sends the old quorum's epoch for ever (STALE_BROKER_EPOCH).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Readiness, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import MigrationZnode, Running, Stopped
from migrate.model.world import Need, World
from migrate.steps import gates
from migrate.steps.roll_broker import SEEN, RollToMigrationMode
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.cleanup import SetControllerAside
from migrate.steps.rollback.control import StopControllers


def stuck(world: World) -> bool:
    """Is it known that the metadata counts the copy as done, and that /migration does not?"""
    if isinstance(world.kraft, Unknown) or isinstance(world.zookeeper, Unknown):
        return False
    if world.kraft.migration_state is not ZkMigrationState.MIGRATION:
        return False
    znode = world.zookeeper.migration
    return not isinstance(znode, Unknown) and not (isinstance(znode, MigrationZnode) and znode.copied)


@dataclass(frozen=True, slots=True)
class StopStuckControllers(StopControllers):
    """The same stop, if it is still stuck when it is time: a moment after the copy every migration looks like it."""

    kind: ClassVar[str] = "stop-stuck-controllers"
    title: ClassVar[str] = "stop every controller, if the copy is still not noted in /migration"
    needs: ClassVar[frozenset[Need]] = StopControllers.needs - {Need.DIFF}  # nothing was ever dual-written

    def check(self, world: World) -> Readiness:
        """Still stuck, besides what any such stop asks for."""
        down = back.stopped(world, back.controllers(world))
        if isinstance(down, Unknown):
            return down
        if not down and not stuck(world):
            return Refused("the copy is noted in /migration by now: it is not stuck, and goes on by itself")
        return StopControllers.check(self, world)


@dataclass(frozen=True, slots=True)
class SetMetadataAside(SetControllerAside):
    """A controller's metadata alone: its file stays, and is the one that it is formatted with anew."""

    kind: ClassVar[str] = "set-metadata-aside"
    keeps_file: ClassVar[bool] = True

    @property
    def title(self) -> str:
        """One line."""
        return f"set the metadata of controller {self.controller} aside"


@dataclass(frozen=True, slots=True)
class RestartInMigrationMode(RollToMigrationMode):
    """A broker in migration mode is restarted with its own file, and registers with the fresh quorum."""

    kind: ClassVar[str] = "restart-in-migration-mode"
    needs: ClassVar[frozenset[Need]] = SEEN | {Need.CONTROLLER_NAMES}
    undo: ClassVar[str] = "none needed: its file stays as it is"

    @property
    def id(self) -> str:
        """`migration-mode/again-1`."""
        return f"{self.stage.label}/again-{self.broker}"

    @property
    def title(self) -> str:
        """One line for a person."""
        return f"restart broker {self.broker} in migration mode"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:  # noqa: ARG002 - the protocol's signature
        """The restart alone."""
        return (Action(">", f"broker {self.broker}", "restart: stop, start, with the file that lies there"),)

    def check(self, world: World) -> Readiness:
        """Those before it are registered; ZooKeeper has control, and the broker knows; nothing is down."""
        return gates.first(
            gates.no_blockers(world, self.stage),
            self._may_start(world),
            gates.disks_healthy(world, self.broker),
            gates.stop_is_accepted(world, self.broker),
            back.controller_named(world),
            back.whole_before(world, self.broker),
        )

    def resume(self, world: World) -> Readiness:
        """Its start may be the one that starts the copy: all blockers again, but for those that its stop made."""
        return gates.first(
            gates.no_blockers(world, self.stage, down=self.broker),
            self._may_start(world),
            gates.disks_healthy(world, self.broker),
        )

    def _may_start(self, world: World) -> Readiness:
        return gates.first(
            gates.state_is(world, ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION),
            gates.quorum_healthy(world),
            back.session_ended(world, self.broker),
        )

    def progress(self, world: World) -> Progress:
        """By the process: another one than the one that this step has noted is the one that it started."""
        if isinstance(world.services, Unknown):
            return world.services
        noted = world.facts.get(_process(self.id))
        match world.services.get(NodeId(self.broker), Unknown("not looked at")):
            case Unknown() as unknown:
                return unknown
            case Stopped():
                return HalfDone("stopped")
            case Running(pid=pid):
                restarted = noted is not None and noted != str(pid)
                return AlreadyDone("its process is a new one") if restarted else NotBegun()

    def do(self, world: World, effects: Effects) -> None:
        """Stop, start."""
        assert not isinstance(world.services, Unknown)
        node = NodeId(self.broker)
        state = world.services[node]
        if isinstance(state, Running):
            effects.note(_process(self.id), str(state.pid))
            effects.stop(node)
        effects.start(node)


def _process(step: str) -> str:
    """The note's key: which process a step has stopped."""
    return f"process:{step}"
