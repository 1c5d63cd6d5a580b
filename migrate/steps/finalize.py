"""Stage finalize: the controllers without the flag, one by one, the active one last.  No rollback from the first on.

Source: `ActivationRecordsGenerator` (a controller that becomes active in MIGRATION with the flag unset writes
POST_MIGRATION at once, and asks nobody), KAFKA-20960.

Where that happened too early, while brokers were in migration mode, `RollForward` and `FinishFinalize` do what is left.
Those brokers still serve; restarted as they are, they are refused (BROKER_ID_NOT_REGISTERED) although they log
`started`.  ZooKeeper is written no more: there is nothing to compare with it, and no rollback.  Seen to work on 3.9.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from migrate.checks import processes
from migrate.hosts.properties import diff
from migrate.model.broker_modes import ControllerMode, Mode, controller_flags, flag_of, node_mode
from migrate.model.config_keys import Moment
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ConfigFile, MigrationZnode, Running
from migrate.model.world import FOR_PROOFS, Need, World
from migrate.steps import configuration, disks, facts, gates
from migrate.steps.base import BaseStep
from migrate.steps.forward import RollToKraft, can_be_unfenced, rolled_verified
from migrate.steps.gates import Gate, ask_all, gate, requires
from migrate.steps.roll import SEEN

OURS_TO_DO = frozenset({"B-MIG-07", "B-QRM-03"})  # a controller without the flag: what a confirmed finalize makes


@dataclass(frozen=True, slots=True)
class FinalizeController(BaseStep):
    """One of them, chosen when it is time: a half-done one first, then followers, the active controller last."""

    position: int
    of: int

    kind = "finalize-controller"
    name = "{position}-of-{of}"
    titled = "restart controller {position} of {of} without the migration flag"
    writes_at = (Moment.RENDERED, Moment.FINALIZE)
    stage_is = Stage.FINALIZE
    proof_needs = frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.UNITS})
    undo = "none: no rollback is possible after the first start without the flag"
    proof = "it runs without the flag, the quorum is healthy; after the last: POST_MIGRATION"

    @property
    def needs(self) -> frozenset[Need]:  # type: ignore[override] # the first looks at everything
        if self.position == 1:
            return FOR_PROOFS - {Need.COPY, Need.LEFTOVERS} | {Need.STORES}
        return frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES})

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """The files' changes are listed at the first position; the order is chosen when it is time."""
        restart = Action("!", "a controller", f"restart number {self.position} of {self.of}, the active one last")
        if self.position > 1:
            return (restart,)
        edits = []
        for node in world.inventory.controllers:
            raw = facts.predicted_config(world, before, node.id)
            if raw is not None:
                lines = tuple(diff(raw, configuration.finalized_controller(raw), node.config))
                edits.append(
                    Action("~", f"controller {int(node.id)}", f"edit {facts.file_name(world, node.id)}", lines)
                )
        return (*edits, restart)

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        """Every controller's file at the first position: later ones change them themselves."""
        if self.position > 1:
            return {}
        nodes = world.inventory.controllers
        return {f"config:{int(node.id)}": facts.predicted_sha256(world, before, node.id) for node in nodes}

    def predict(self, world: World, before: Predicted) -> Predicted:
        if self.position < self.of:
            return before
        after = before
        for node in world.inventory.controllers:
            raw = facts.predicted_config(world, before, node.id)
            if raw is not None:
                after = facts.with_config(after, node.id, configuration.finalized_controller(raw))
        return after

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        if self.position < self.of:
            return {}
        after = self.predict(world, before)
        hashes = {
            f"config:{int(node.id)}": facts.sha256(after.configs[node.id])
            for node in world.inventory.controllers
            if node.id in after.configs
        }
        return {"migration_state:": "POST_MIGRATION", **hashes}

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            *(self._no_return_gates(None) if self.position == 1 else ()),
            gate(gates.state_is, ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION),
            gate(_no_broker_needs_zookeeper),
            gate(gates.quorum_healthy),
        )

    def check(self, world: World) -> Readiness:
        """The gates of the point of no return while a rollback is possible; a healthy quorum before each.

        A plan created again finds controllers that an earlier run finalized: they count, once its gates hold.
        """
        found = BaseStep.check(self, world)
        done = _finalized(world)
        if not isinstance(found, Ready) or isinstance(done, Unknown) or len(done) < self.position:
            return done if isinstance(done, Unknown) and isinstance(found, Ready) else found
        return AlreadyDone(f"controllers {sorted(done)} run without the flag already")

    def _no_return_gates(self, down: int | None) -> tuple[Gate, ...]:
        """`down` is a controller that the interrupted step itself has stopped."""
        return (
            gate(gates.no_blockers, self.stage, down=down, besides=OURS_TO_DO),
            gate(gates.state_is, ZkMigrationState.MIGRATION),
            gate(gates.all_brokers_kraft),
            gate(_no_broker_flag),
            gate(gates.views_equal),
            gate(gates.ledger_is, ReplicaState.VERIFIED),
            gate(_dual_write_keeps_up),
            gate(gates.replicas_full),
        )

    def resume(self, world: World) -> Readiness:
        """Its gates are asked until a controller has run without the flag, however late it is."""
        if self.position > 1 or _crossed(world):
            return Ready()
        return ask_all(self._no_return_gates(_half_way(world)), world)

    def starts(self, world: World) -> tuple[int, ...]:
        return facts.controllers(world)

    def becomes(self, world: World, node: int, raw: bytes) -> bytes:
        return configuration.finalized_controller(raw)

    def progress(self, world: World) -> Progress:
        done = _finalized(world)
        if isinstance(done, Unknown):
            return done
        if len(done) >= self.position:
            return AlreadyDone(f"{len(done)} controllers run without the flag")
        half = _half_way(world)
        return HalfDone(f"controller {half} is half way") if half is not None else NotBegun()

    def do(self, world: World, effects: Effects) -> None:
        chosen = choose(world)
        if chosen is None:
            return
        node = NodeId(chosen)
        file = facts.config(world, node)
        assert isinstance(file, ConfigFile)
        assert not isinstance(world.services, Unknown)
        if isinstance(world.services[node], Running):
            effects.stop(node)
        target = configuration.finalized_controller(file.raw)
        if target != file.raw:
            effects.write_config(node, file.path, target, file.sha256)
        effects.start(node)

    def verify(self, world: World) -> Outcome:
        done = _finalized(world)
        if isinstance(done, Unknown):
            return done
        if len(done) < self.position and (ended := processes.ended(world, world.inventory.controllers)):
            return Refused(processes.ended_after_start(world.inventory, ended))
        if len(done) < self.position:
            return Refused(f"only {len(done)} of {self.position} controllers run without the flag: {sorted(done)}")
        found = gates.quorum_healthy(world)
        if isinstance(found, Ready) and self.position == self.of:
            found = _post_migration(world)
        return gates.as_outcome(found, f"controllers {sorted(done)} run without the flag; the quorum is healthy")


@requires("no broker is registered as a migrating ZooKeeper broker")
def _no_broker_needs_zookeeper(world: World) -> Readiness:
    """No registration says that it is a migrating ZooKeeper broker; a KRaft broker may be down for a while."""
    if isinstance(world.kraft, Unknown):
        return world.kraft
    left = [int(node) for node, entry in world.kraft.brokers.items() if entry.migrating]
    if not left:
        return Ready()
    return Refused(
        f"brokers {left} still need ZooKeeper: roll them forward to KRaft first (`kraft-migrate plan` makes that plan)",
        ("B-MIG-04",),
    )


def _crossed(world: World) -> bool:
    """Has a controller of the inventory run without the flag?  Its registration says so, also when it is down again."""
    done = _flagless(world)
    if isinstance(done, Unknown) or isinstance(world.kraft, Unknown):
        return False
    registered = any(flag.registered is False for flag in controller_flags(world))
    return bool(done) or registered or world.kraft.migration_state is ZkMigrationState.POST_MIGRATION


def choose(world: World) -> int | None:
    """The controller to restart next: a half-done one, else a follower by id, else the active one."""
    half = _half_way(world)
    if half is not None:
        return half
    done = _finalized(world)
    if isinstance(done, Unknown) or isinstance(world.live, Unknown) or isinstance(world.live.quorum, Unknown):
        return None
    leader = int(world.live.quorum.leader)
    left = sorted(int(node.id) for node in world.inventory.controllers if int(node.id) not in done)
    return next((node for node in left if node != leader), leader if left else None)


def _finalized(world: World) -> set[int] | Unknown:
    """Those that run without the flag with a file that has nothing of ZooKeeper left.

    Another hand that took the flag out may have left the rest: that controller is restarted once more.
    """
    found = _flagless(world)
    if isinstance(found, Unknown):
        return found
    return {node for node, file in found.items() if configuration.finalized_controller(file.raw) == file.raw}


def _flagless(world: World) -> dict[int, ConfigFile] | Unknown:
    """Controllers whose process was started with the current file, and that file has no flag."""
    if isinstance(world.services, Unknown):
        return world.services
    found = {}
    for node in world.inventory.controllers:
        file = facts.config(world, node.id)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of controller {int(node.id)} cannot be read")
        state = world.services.get(node.id, Unknown("not looked at"))
        if isinstance(state, Unknown):
            return state
        if (
            node_mode(file.values) is ControllerMode.FINALIZED
            and isinstance(state, Running)
            and _started_without(world, node.id, state, file)
        ):
            found[int(node.id)] = file
    return found


def _half_way(world: World) -> int | None:
    if isinstance(world.services, Unknown):
        return None
    for node in world.inventory.controllers:
        file, state = facts.config(world, node.id), world.services.get(node.id)
        if not isinstance(file, ConfigFile):
            continue
        if not isinstance(state, Running):
            return int(node.id)
        flagless = node_mode(file.values) is ControllerMode.FINALIZED
        if flagless and not _started_without(world, node.id, state, file):
            return int(node.id)
    return None


def _started_without(world: World, node: NodeId, state: Running, file: ConfigFile) -> bool:
    """Was it started with this flagless file?  Where nobody knows with which one, its own answer says so."""
    if state.config_sha256 is None:
        return flag_of(world, node).answer is False
    return state.config_sha256 == file.sha256


@requires("every broker's file is of KRaft mode")
def _no_broker_flag(world: World) -> Readiness:
    for node in world.inventory.brokers:
        file = facts.config(world, node.id)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of broker {int(node.id)} cannot be read")
        if node_mode(file.values) is not Mode.KRAFT:
            return Refused(f"{file.path} is not a KRaft broker's file")
    return Ready()


@requires("/migration is at or past the metadata offset of the comparison")
def _dual_write_keeps_up(world: World) -> Readiness:
    """/migration stands near the committed end (both move twice a second with NoOp records)."""
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    if isinstance(world.diff, Unknown):
        return world.diff
    znode = world.zookeeper.migration
    if not isinstance(znode, MigrationZnode) or znode.offset < world.diff.offset:
        return NotYet(
            f"dual write to pass metadata offset {world.diff.offset} (now: {znode})",
            "the active controller",
            "look at the active controller's log",
            progress=str(znode),
        )
    return Ready()


def _post_migration(world: World) -> Readiness:
    after = "nothing: the first active controller without the flag writes it"
    if isinstance(world.kraft, Unknown):
        return NotYet(f"the metadata to be readable ({world.kraft.reason})", "the controllers", after)
    if world.kraft.migration_state is not ZkMigrationState.POST_MIGRATION:
        return NotYet("POST_MIGRATION in the metadata", "the active controller", after)
    return Ready()


def finalized_early(world: World) -> bool:
    if isinstance(world.kraft, Unknown) or not world.finalized:
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
    """The controllers that still have the flag, past the point of no return: its gates are asked no more."""

    kind = "finish-finalize"

    @property
    def needs(self) -> frozenset[Need]:  # type: ignore[override] # as later positions: there is nothing to compare with
        return frozenset({Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES})

    def _no_return_gates(self, down: int | None) -> tuple[Gate, ...]:
        return (gate(gates.state_is, ZkMigrationState.POST_MIGRATION),)


@dataclass(frozen=True, slots=True)
class RollForward(RollToKraft):
    """As roll 2, but by the metadata and the disks alone."""

    kind = "roll-forward"
    names_sick_disks = False
    needs = SEEN | gates.FOR_BLOCKERS | {Need.LEDGER}
    proof_needs = SEEN | {Need.LEDGER}
    undo = "none: the migration is finalized"
    proof = "registered in KRaft mode, directories equal to those on disk, every replica of it VERIFIED"

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.state_is, ZkMigrationState.POST_MIGRATION),
            gate(self._lost_ones_first),
            gate(gates.disks_healthy, self.broker),
            gate(disks.ended, self.broker),
            gate(rolled_verified),
            gate(gates.stop_is_accepted, self.broker),
            gate(gates.quorum_healthy),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.state_is, ZkMigrationState.POST_MIGRATION),
            gate(gates.disks_healthy, self.broker),
            gate(disks.none_half_done, self.broker),
            gate(gates.quorum_healthy),
        )

    def living_gates(self) -> tuple[Gate, ...]:
        return (gate(gates.stop_is_accepted, self.broker),)

    @requires("brokers that were restarted or are down have had their turn")
    def _lost_ones_first(self, world: World) -> Readiness:
        """None that still serves is stopped beside one that is lost: that one may have become so after the plan."""
        if isinstance(world.kraft, Unknown):
            return world.kraft
        lost = {int(node) for node, entry in world.kraft.brokers.items() if entry.migrating and entry.fenced}
        if not lost - {self.broker} or self.broker in lost:
            return Ready()
        return Refused(
            f"brokers {sorted(lost)} were restarted or are down, and nothing but their own roll makes them whole: plan "
            "anew, they come first"
        )

    def verify(self, world: World) -> Outcome:
        """It is a KRaft broker, and its replicas are where the metadata says; ISRs fill when the last one is through.

        Brokers that wait for their turn hear nothing new: their Metadata answers prove nothing.
        """
        found = gates.first(
            self.process_lives(world), self.registered(world, migrating=False), can_be_unfenced(world, self.broker)
        )
        return gates.as_outcome(found, *self.evidence(world)[:1])
