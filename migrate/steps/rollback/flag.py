"""A controller's file without the flag that a half-done finalize left behind gets its flag back, before anything else.

Only where the last process of that controller is known to have been started with the very bytes that go back: then none
without the flag was left to be elected, and the next start of it, by whomever, must not be the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.hosts.properties import diff
from migrate.model.broker_modes import ControllerMode, controller_flags, flag_of, node_mode
from migrate.model.ids import NodeId
from migrate.model.outcome import AlreadyDone, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ConfigFile
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.gates import Gate, gate, requires
from migrate.steps.restore import Restored, bytes_of, to_flagged
from migrate.steps.rollback import gates as back

LOOK = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.BACKUPS})


@dataclass(frozen=True, slots=True)
class PutFlagBack(BaseStep):
    """The file of before goes back; the controller is started with it where finalize had stopped it."""

    controller: int

    kind = "put-flag-back"
    name = "flag-back-{controller}"
    titled = "put the migration flag back into the file of controller {controller}, which never ran without it"
    stage_is = Stage.HYBRID
    needs = LOOK
    proof_needs = LOOK
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "none needed: the flag is what every controller has before finalize"
    proof = "the file has the flag; a process that runs was started with these very bytes"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        file = facts.config(world, self.controller)
        if not isinstance(file, ConfigFile):
            return ()
        found = to_flagged(world, self.controller, file.raw)
        if not isinstance(found, Restored):
            return ()
        lines = tuple(diff(file.raw, found.raw, file.path))
        edit = Action("~", f"controller {self.controller}", f"restore {file.shown} from {found.source}", lines)
        down = back.stopped(world, [self.controller])
        if isinstance(down, Unknown) or not down:
            return (edit,)
        return (edit, Action(">", f"controller {self.controller}", "start with the migration flag (it is down)"))

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {f"mode:{self.controller}": ControllerMode.FLAGGED}

    def own_gates(self) -> tuple[Gate, ...]:
        return gate(back.not_finalized), gate(never_without_flag, self.controller)

    def progress(self, world: World) -> Progress:
        file = facts.config(world, self.controller)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of controller {self.controller} cannot be read")
        down = back.stopped(world, [self.controller])
        if isinstance(down, Unknown):
            return down
        if node_mode(file.values) is not ControllerMode.FLAGGED:
            return NotBegun()
        return HalfDone("it has the flag, and is down") if down else AlreadyDone("it has the flag, and runs")

    def do(self, world: World, effects: Effects) -> None:
        file = facts.config(world, self.controller)
        assert isinstance(file, ConfigFile)
        target = bytes_of(to_flagged(world, self.controller, file.raw), self.controller)
        if target != file.raw:
            effects.write_config(NodeId(self.controller), file.path, target, file.sha256)
        down = back.stopped(world, [self.controller])
        if not isinstance(down, Unknown) and down:
            effects.start(NodeId(self.controller))

    def verify(self, world: World) -> Outcome:
        found = gates.first(never_without_flag(world, self.controller), back.quorum_leads(world))
        return gates.as_outcome(found, "the file has the flag again, and so has what runs")


def without_flag(world: World) -> tuple[int, ...]:
    return tuple(flag.node for flag in controller_flags(world) if flag.file is False)


@requires("the last process of controller {0} was started with the flag")
def never_without_flag(world: World, controller: int) -> Readiness:
    """Is it proven that no process of this controller came from the file without the flag, and finalized nothing?"""
    if isinstance(world.kraft, Unknown):
        return Unknown(f"whether the migration is finalized is not known: {world.kraft.reason}")
    if world.kraft.migration_state is not ZkMigrationState.MIGRATION:
        return Refused(f"the metadata says {world.kraft.migration_state.name}, not MIGRATION")
    if flag_of(world, controller).registered is False:
        return Refused(f"controller {controller} has registered without the flag")
    file = facts.config(world, controller)
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of controller {controller} cannot be read")
    found = to_flagged(world, controller, file.raw)
    if not isinstance(found, Restored):
        return found
    if isinstance(world.services, Unknown):
        return world.services
    state = world.services.get(NodeId(controller), Unknown(f"controller {controller} was not looked at"))
    if isinstance(state, Unknown):
        return state
    if state.config_sha256 == facts.sha256(found.raw):
        return Ready()
    return Refused(f"the last process of controller {controller} is not known to have been started with the flag")
