"""Stage controllers: format and start the KRaft quorum with the flag; it ends in PRE_MIGRATION, waiting for brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.checks import processes, stuck
from migrate.model.broker_modes import FLAG, ControllerMode, controller_flags, node_mode
from migrate.model.config_keys import Moment
from migrate.model.ids import NodeId
from migrate.model.inventory import ControllerNode
from migrate.model.outcome import AlreadyDone, Failed, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import NOT_THERE, ConfigFile, MetaBroken, MetaProperties, NullZnode, Running
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.gates import Gate, gate, requires

LOOK = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.CONFIGS, Need.DISKS, Need.LIVE, Need.SERVICES})


@dataclass(frozen=True, slots=True)
class FormatControllers(BaseStep):
    """All of them at once: each is its own host's work."""

    release_version: str

    kind = "format-controllers"
    titled = "format the metadata directories of the controllers"
    stage_is = Stage.CONTROLLERS
    needs = LOOK | gates.FOR_BLOCKERS
    proof_needs = LOOK
    undo = "set their metadata aside"
    proof = "each meta.properties holds the cluster id and the node id"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        return tuple(self.action(node) for node in world.inventory.controllers)

    def action(self, node: ControllerNode) -> Action:
        # its path is told where it is not the others'
        tool = f"{node.kafka_home.rstrip('/')}/bin/kafka-storage.sh" if node.kafka_home else "kafka-storage"
        command = f"{tool} format --cluster-id=ID -c {node.config} --release-version {self.release_version}"
        return Action("+", f"controller {int(node.id)}", f"{command} ({node.metadata_directory})")

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        nodes = world.inventory.controllers
        configs = {f"config:{int(node.id)}": facts.predicted_sha256(world, before, node.id) for node in nodes}
        return {**configs, **facts.observed(world, ("cluster_id:",))}

    def own_gates(self) -> tuple[Gate, ...]:
        directory = "the metadata directory of each controller is empty, or of this cluster and this node"
        return Gate(directory, self.formatted), gate(gates.no_blockers, self.stage)

    def check(self, world: World) -> Readiness:
        return gates.ask_until_closed(self.own_gates(), world)

    def formatted(self, world: World) -> Readiness:
        """What the first says that may not be formatted; else whether some are left."""
        found = [self.is_formatted(world, node) for node in facts.controllers(world)]
        closed = (answer for answer in found if not isinstance(answer, Ready | AlreadyDone))
        return next(closed, None) or next((answer for answer in found if isinstance(answer, Ready)), found[0])

    def is_formatted(self, world: World, controller: int) -> Readiness:
        if isinstance(world.disks, Unknown) or isinstance(world.zookeeper, Unknown):
            return Unknown("the metadata directory or ZooKeeper's cluster id cannot be seen")
        disks = facts.disks(world, controller, "the metadata directory was not looked at")
        if isinstance(disks, Unknown):
            return disks
        if len(disks.directories) != 1:
            return Unknown(f"{len(disks.directories)} metadata directories of controller {controller} were seen")
        (directory,) = disks.directories
        meta = directory.meta
        if isinstance(meta, MetaBroken):
            return Refused(f"{directory.path} has a meta.properties that cannot be trusted: {meta.reason}")
        if not isinstance(meta, MetaProperties):
            if directory.holds_metadata_log:
                return Refused(f"{directory.path} holds a metadata log and no meta.properties: set it aside")
            return Ready()
        if (meta.cluster_id, meta.node_id) != (world.zookeeper.cluster_id, controller):
            return Refused(
                f"{directory.path} belongs to cluster {meta.cluster_id} and node {meta.node_id}, not to "
                f"cluster {world.zookeeper.cluster_id} and node {controller}: set it aside"
            )
        return AlreadyDone("each meta.properties holds this cluster's id and its node id")

    def progress(self, world: World) -> Progress:
        """By controller: meta.properties is written last and atomically by Kafka's tool."""
        found = self.formatted(world)
        if isinstance(found, AlreadyDone | Unknown):
            return found
        count, left = len(facts.controllers(world)), len(self._left(world))
        return HalfDone(f"{count - left} of {count} are formatted") if left < count else NotBegun()

    def _left(self, world: World) -> list[int]:
        nodes = facts.controllers(world)
        return [node for node in nodes if not isinstance(self.is_formatted(world, node), AlreadyDone)]

    def do(self, world: World, effects: Effects) -> None:
        """Make the directories that are not there, for their parents may be root's; format what is not formatted."""
        assert not isinstance(world.zookeeper, Unknown)
        assert not isinstance(world.disks, Unknown)
        due = [NodeId(node) for node in facts.controllers(world) if isinstance(self.is_formatted(world, node), Ready)]
        for node in due:
            disks = world.disks[node]
            assert not isinstance(disks, Unknown)
            for directory in disks.directories:
                if directory.problem == NOT_THERE:
                    effects.make_directory(node, directory.path)
        self.format(due, world.zookeeper.cluster_id, effects)

    def format(self, due: Sequence[NodeId], cluster_id: str, effects: Effects) -> None:
        effects.format_storage(due, cluster_id, self.release_version)

    def verify(self, world: World) -> Outcome:
        found = self.formatted(world)
        how = found.how if isinstance(found, AlreadyDone) else ""
        return gates.proven_by(found, f"no meta.properties in the directories of controllers {self._left(world)}", how)


@dataclass(frozen=True, slots=True)
class FormatVoters(FormatControllers):
    """The same for a dynamic quorum (KIP-853): each controller gets the same list, with directory ids of this plan."""

    voters: str  # ID@HOST:PORT:DIRECTORY of every controller

    kind = "format-voters"
    name = "format-controllers"
    proof = "each meta.properties holds the cluster id, the node id and its directory id of the voters"

    def action(self, node: ControllerNode) -> Action:
        action = FormatControllers.action(self, node)
        return replace(action, what=f"{action.what}; --initial-controllers {self.voters}")

    def is_formatted(self, world: World, controller: int) -> Readiness:
        found = FormatControllers.is_formatted(self, world, controller)
        if not isinstance(found, AlreadyDone):
            return found
        own, disks = directories_of(self.voters)[controller], facts.disks(world, controller)
        found_id = None if isinstance(disks, Unknown) else disks.directories[0].id
        if found_id != own:
            return Refused(
                f"the metadata directory of controller {controller} has directory.id {found_id}, and the plan gives it "
                f"{own}: set it aside"
            )
        return AlreadyDone(f"{found.how}, and its directory id of the voters")

    def format(self, due: Sequence[NodeId], cluster_id: str, effects: Effects) -> None:
        effects.format_storage(due, cluster_id, self.release_version, self.voters)


def directories_of(voters: str) -> dict[int, str]:
    """Node id -> directory id of ID@HOST:PORT:DIRECTORY,... (pure)."""
    entries = (entry.partition("@") for entry in voters.split(","))
    return {int(node): rest.rpartition(":")[2] for node, _, rest in entries}


@dataclass(frozen=True, slots=True)
class StartControllers(BaseStep):
    """Start every controller; none ever without the flag before finalize."""

    kind = "start-controllers"
    stage_is = Stage.CONTROLLERS
    writes_at = (Moment.RENDERED,)
    titled = "start the controllers with the migration flag"
    needs = LOOK | gates.FOR_BLOCKERS | {Need.METADATA_LOGS, Need.PORTS, Need.LAUNCHES, Need.STORES}
    proof_needs = LOOK
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "stop the controllers and delete /migration"
    proof = "PRE_MIGRATION, every voter caught up, every controller registered with the flag, /migration waits"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        starts = tuple(
            Action(">", f"controller {int(node.id)}", "start with the migration flag")
            for node in world.inventory.controllers
        )
        found = world.zookeeper if isinstance(world.zookeeper, Unknown) else world.zookeeper.migration
        version, value = facts.version_and_value(found)
        appears = Action(
            *("+", "ZooKeeper", "the controllers create /migration, waiting"),
            znode="/migration",
            version=version,
            before=value,
            after=facts.NO_COPY,
        )
        return (*starts, appears)

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        nodes = world.inventory.controllers
        return {f"config:{int(node.id)}": facts.predicted_sha256(world, before, node.id) for node in nodes}

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {"migration_state:": "PRE_MIGRATION", "migration_znode:": "waiting"}

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(_none_alone),
            gate(gates.no_blockers, self.stage),
            gate(all_flagged),
            gate(gates.logs_belong),
            gate(gates.replicas_full),
            self.formatted_alike(),
        )

    def formatted_alike(self) -> Gate:
        return gate(_without_voters)

    def progress(self, world: World) -> Progress:
        if isinstance(world.services, Unknown):
            return world.services
        alive = [isinstance(world.services.get(node.id), Running) for node in world.inventory.controllers]
        if all(alive):
            return AlreadyDone("all controllers run")
        return HalfDone(f"{sum(alive)} of {len(alive)} run") if any(alive) else NotBegun()

    def starts(self, world: World) -> tuple[int, ...]:
        return facts.controllers(world)

    def resume(self, world: World) -> Readiness:
        """Some run already: the flag in every file, and still no copy that this quorum has not made."""
        return gates.first(all_flagged(world), _no_other_copy(world))

    def do(self, world: World, effects: Effects) -> None:
        assert not isinstance(world.services, Unknown)
        if not isinstance(all_flagged(world), Ready):
            return
        for node in world.inventory.controllers:
            if not isinstance(world.services.get(node.id), Running):
                effects.start(node.id)

    def verify(self, world: World) -> Outcome:
        """The quorum waits for brokers; a controller whose process has ended is not waited for."""
        ended = processes.ended(world, world.inventory.controllers)
        if ended:
            return Failed(
                f"{processes.do_not_run(world.inventory, ended)}: it ended after the start",
                "its last lines say why; repair that, then run the same command again: it starts what does not run. "
                "What comes from the inventory's controllers.properties is corrected there, then plan again",
            )
        found = gates.first(gates.quorum_healthy(world), _waiting(world))
        return gates.as_outcome(found, "quorum healthy; every controller registered with the flag; state PRE_MIGRATION")


@dataclass(frozen=True, slots=True)
class StartVoters(StartControllers):
    """The same for a dynamic quorum, whose directories must all have been formatted with the same voters.

    Kafka compares nothing: a controller that was formatted with another list runs without a vote, in silence.
    """

    voters: str

    kind = "start-voters"
    name = "start-controllers"

    def formatted_alike(self) -> Gate:
        return Gate(
            "every controller's metadata directory was formatted with the voters of this plan", self._same_voters
        )

    def _same_voters(self, world: World) -> Readiness:
        """Also of controllers that ran and ended; of those Kafka may have deleted the list, never the directory id."""
        logs = world.metadata_logs
        if isinstance(logs, Unknown):
            return logs
        for node in world.inventory.controllers:
            disks = facts.disks(world, node.id)
            if isinstance(disks, Unknown):
                return disks
            found, own = disks.directories[0].id, directories_of(self.voters)[node.id]
            voters = logs.formatted.get(node.id) or (self.voters if node.id in logs.holders else "none")
            if voters != self.voters or found != own:
                return Refused(
                    f"controller {int(node.id)} was formatted with voters {voters} and directory id {found}, the plan "
                    f"has {self.voters}: set its metadata directory aside, and plan again"
                )
        return Ready()


@requires("no controller's metadata directory was formatted for a dynamic quorum")
def _without_voters(world: World) -> Readiness:
    """Kafka would start each as a quorum of its own list, whatever the file says."""
    logs = world.metadata_logs
    if isinstance(logs, Unknown) or not logs.formatted:
        return Ready()  # `logs_belong` has asked whether they were seen
    nodes = ", ".join(map(str, sorted(logs.formatted)))
    return Refused(
        f"the metadata directory of controllers {nodes} was formatted for a dynamic quorum, and the inventory says "
        "static: set it aside where no controller ran on it, or write `quorum: dynamic` there; then plan again"
    )


@requires("the controllers run all or none")
def _none_alone(world: World) -> Readiness:
    """A controller without its quorum has no leader, so the metadata that the checks ask for is never readable."""
    states = {} if isinstance(world.services, Unknown) else world.services
    nodes = [int(node.id) for node in world.inventory.controllers]
    alone = [node for node in nodes if isinstance(states.get(NodeId(node)), Running)]
    if not alone or len(alone) == len(nodes):
        return Ready()
    names = " and ".join(processes.name_of(world.inventory, node) for node in alone)
    return NotYet(
        f"{names} to stop: another hand started it before the run, and without the others it has no leader",
        processes.owner(world.inventory, alone),
        f"{processes.stop(world.inventory, alone)}; the run starts all of them",
        progress=str(alone),
    )


@requires("every controller's file has the migration flag")
def all_flagged(world: World) -> Readiness:
    """Every controller's file has the flag: one without it finalizes by being elected."""
    for node in world.inventory.controllers:
        file = facts.config(world, node.id)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of controller {int(node.id)} cannot be read")
        if node_mode(file.values) is not ControllerMode.FLAGGED:
            return Refused(f"{file.path} lacks {FLAG}=true: such a controller would finalize by being elected")
    return Ready()


def _no_other_copy(world: World) -> Readiness:
    """A fresh quorum that finds a copied offset in /migration empties ZooKeeper as the last broker registers."""
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    znode = world.zookeeper.migration
    if isinstance(znode, NullZnode):
        return Refused("/migration exists with null data", ("B-ZKN-02",))
    if world.zookeeper.copy_note is not None:
        return Refused(f"/migration remembers a copy that this quorum has not made: {znode}", ("B-ZKN-01",))
    return Ready()


def _waiting(world: World) -> Readiness:
    after = "usually nothing; look at the controllers' logs"
    if isinstance(world.kraft, Unknown):
        return NotYet(f"the metadata to be readable ({world.kraft.reason})", "the controllers", after)
    missing = [flag.node for flag in controller_flags(world) if flag.registered is not True]
    if missing:
        return NotYet(
            f"controllers {missing} to register with the flag{stuck.because(world, frozenset(missing))}",
            "those controllers",
            stuck.next_step(world, frozenset(missing)) or after,
            progress=str(missing),
        )
    if facts.observed(world, ("migration_znode:",))["migration_znode:"] == facts.ABSENT:
        return NotYet("the migration driver to create /migration", "the active controller", after)
    return gates.state_is(world, ZkMigrationState.PRE_MIGRATION)
