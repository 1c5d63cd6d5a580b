"""Out of a copy that is stuck for ever: a fresh quorum, every broker registered with it, and the copy begins again.

Killed between the end of the copy and its note in /migration, the driver stays inactive on every later leader: the
metadata says MIGRATION, the znode says that nothing was copied.  Seen to work on 3.9.2: stop the controllers, delete
/controller and /migration, format the controllers again and start them, restart every broker; a broker that is not
restarted sends the old quorum's epoch for ever (STALE_BROKER_EPOCH).
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import Running, Stopped
from migrate.model.world import Need, World
from migrate.steps import facts, gates, served
from migrate.steps.forward import RollToMigrationMode
from migrate.steps.gates import Gate, gate, requires
from migrate.steps.roll import ROLLED
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.cleanup import SetControllerAside
from migrate.steps.rollback.control import StopControllers


def stuck(world: World) -> bool:
    """Is it known that the metadata counts the copy as done, and that /migration does not?"""
    if isinstance(world.kraft, Unknown) or isinstance(world.zookeeper, Unknown):
        return False
    if world.kraft.migration_state is not ZkMigrationState.MIGRATION:
        return False
    return not isinstance(world.zookeeper.migration, Unknown) and world.zookeeper.copy_note is None


@dataclass(frozen=True, slots=True)
class StopStuckControllers(StopControllers):
    """The same stop, if it is still stuck when it is time: a moment after the copy every migration looks like it."""

    kind = "stop-stuck-controllers"
    titled = "stop every controller, if the copy is still not noted in /migration"
    needs = StopControllers.needs - {Need.DIFF}  # nothing was ever dual-written

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(_still_stuck),
            *StopControllers.own_gates(self),
        )

    def check(self, world: World) -> Readiness:
        """Whether it is stuck is asked alone, and first."""
        found = _still_stuck(world)
        return StopControllers.check(self, world) if isinstance(found, Ready) else found


@requires("the copy is still not noted in /migration, or a controller is down")
def _still_stuck(world: World) -> Readiness:
    down = back.stopped(world, facts.controllers(world))
    if isinstance(down, Unknown):
        return down
    if not down and not stuck(world):
        return Refused("the copy is noted in /migration by now: it is not stuck, and continues")
    return Ready()


@dataclass(frozen=True, slots=True)
class SetMetadataAside(SetControllerAside):
    """A controller's metadata alone: its file stays, and is the one that it is formatted with anew."""

    kind = "set-metadata-aside"
    titled = "set the metadata of controller {controller} aside"
    keeps_file = True


@dataclass(frozen=True, slots=True)
class RestartInMigrationMode(RollToMigrationMode):
    """A broker in migration mode is restarted with its own file, and registers with the fresh quorum."""

    kind = "restart-in-migration-mode"
    name = "again-{broker}"
    titled = "restart broker {broker} in migration mode"
    needs = ROLLED | gates.FOR_BLOCKERS | {Need.CONTROLLER_NAMES}
    undo = "none needed: its file stays as it is"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        return (Action(">", f"broker {self.broker}", "restart: stop, start, with the current file"),)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.no_blockers, self.stage),
            *self._fit_to_join(),
            gate(gates.disks_healthy, self.broker),
            gate(gates.stop_is_accepted, self.broker),
            gate(back.controller_named),
            gate(back.whole_before, self.broker),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        """Its start may be the one that starts the copy: all blockers again, but for those that its stop made."""
        blockers = gate(gates.no_blockers, self.stage, down=self.broker)
        return (blockers, *self._fit_to_join(), gate(gates.disks_healthy, self.broker))

    def _fit_to_join(self) -> tuple[Gate, ...]:
        return (
            gate(gates.state_is, ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION),
            gate(gates.quorum_healthy),
            gate(back.session_ended, self.broker),
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
        assert not isinstance(world.services, Unknown)
        node = NodeId(self.broker)
        state = world.services[node]
        served.note(self.id, self.broker, world, effects)
        if isinstance(state, Running):
            effects.note(_process(self.id), str(state.pid))
            effects.stop(node)
        effects.start(node)


def _process(step: str) -> str:
    return f"process:{step}"
