"""The two rolls forward: into migration mode, where a broker still serves from ZooKeeper, and into KRaft mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate.checks.principals import successor
from migrate.model.broker_modes import Mode, positions
from migrate.model.config_keys import Moment
from migrate.model.ids import NodeId
from migrate.model.launch import OF_UNITS
from migrate.model.ledger import Ledger, LedgerRow, No, ReplicaState, Yes, can_unfence, may_restart
from migrate.model.outcome import NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import DirectoryPolicy, Stage, ZkMigrationState
from migrate.model.world import NOT_ASKED, Need, World
from migrate.steps import applied, churn, configuration, disks, gates
from migrate.steps.base import NARROW
from migrate.steps.gates import FOR_BLOCKERS, Gate, gate, requires
from migrate.steps.restore import Restored
from migrate.steps.roll import FULL_ISRS, ROLLED, Roll, is_registered

BEFORE_COPY = "zookeeper-before-copy"  # the backup that the copy is held against; as journal and file name it


@dataclass(frozen=True, slots=True)
class RollToMigrationMode(Roll):
    """Roll 1: the broker registers with its log directories; the last one's registration starts the copy by itself."""

    last: str = "no"

    kind = "roll-to-migration-mode"
    stage_is = Stage.MIGRATION_MODE
    goal = Mode.MIGRATION
    names_sick_disks = True
    writes_at = (Moment.FIRST_ROLL,)
    titled = "restart broker {broker} into migration mode"
    needs = ROLLED | FOR_BLOCKERS | {Need.LAUNCHES, Need.STORES}
    proof_needs = ROLLED | {Need.LEDGER}
    undo = "one roll back to ZooKeeper mode with the backed-up file"
    proof = (
        "its new registration says migrating, LogDirs equal the directory ids on its disks, every ISR is full, its "
        "listeners serve what they served"
    )

    @property
    def waits_for(self) -> frozenset[Need]:  # type: ignore[override] # the last broker's wait ends with the copy
        """ZooKeeper too for the last broker: the copy is held against the last look before it, which must be recent."""
        return NARROW | {Need.ZOOKEEPER} if self.last == "yes" else NARROW

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return Restored(configuration.migration_mode(raw, world.inventory), "")

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.no_blockers, self.stage),
            gate(disks.ended),
            gate(gates.state_is, ZkMigrationState.PRE_MIGRATION),
            gate(self._proven),
            gate(gates.disks_healthy, self.broker),
            gate(gates.stop_is_accepted, self.broker),
            gate(gates.quorum_healthy),
            gate(gates.replicas_full),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        """Its start may start the copy: all blockers again, except those about units and about this broker being down.

        A move between directories that its stop interrupted goes on when it is there again: it is no reason to leave
        it down.
        """
        return (
            gate(gates.no_blockers, self.stage, down=self.broker, besides=OF_UNITS | {disks.CODE}),
            gate(gates.state_is, ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION),
            gate(gates.disks_healthy, self.broker),
            gate(gates.quorum_healthy),
        )

    @requires("brokers in migration mode are registered as such, with the directories on their disks")
    def _proven(self, world: World) -> Readiness:
        return gates.first(*(is_registered(world, broker, migrating=True) for broker in self._rolled_before(world)))

    def _rolled_before(self, world: World) -> tuple[int, ...]:
        """Other brokers in migration mode: whoever rolled them, the next one waits for their proof.

        A broker whose file has that mode, but whose process still runs in ZooKeeper mode, is not one of them.
        """
        others = (one for one in positions(world) if one.broker != self.broker)
        return tuple(
            int(one.broker)
            for one in others
            if Mode.MIGRATION in (one.file, one.process) and one.process is not Mode.ZOOKEEPER
        )

    def do(self, world: World, effects: Effects) -> None:
        """As any roll; before the last broker's restart, which starts the copy, ZooKeeper is backed up once more."""
        others = {int(node.id) for node in world.inventory.brokers} - {self.broker}
        # a KRaft controller that has /controller has begun the copy: ZooKeeper is no longer what it was
        taken_over = isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns
        if others == set(self._rolled_before(world)) and not taken_over:
            effects.backup_zookeeper(BEFORE_COPY)
        Roll.do(self, world, effects)

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self.process_lives(world)
        yield self.registered(world, migrating=True)
        yield gates.controllers_ready(world)
        yield gates.replicas_full(world)

    def evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.kraft, Unknown) or NodeId(self.broker) not in world.kraft.brokers:
            return ()
        found = world.kraft.brokers[NodeId(self.broker)]
        line = f"registration at offset {found.epoch}: incarnation {found.incarnation}, migrating"
        return f"{line}, {len(found.log_dirs)} directories as on disk", FULL_ISRS


@dataclass(frozen=True, slots=True)
class RollToKraft(Roll):
    """Roll 2: gated on the broker's ledger rows before, and on *can unfence* after."""

    policy: str = "observe"

    kind = "roll-to-kraft"
    stage_is = Stage.KRAFT_MODE
    goal = Mode.KRAFT
    names_sick_disks = True
    writes_at = (Moment.SECOND_ROLL,)
    waits_for = NARROW | {Need.ZOOKEEPER}  # the guard of dual write reads who owns /controller
    titled = "restart broker {broker} into kraft mode"
    needs = ROLLED | FOR_BLOCKERS | {Need.STORES, Need.SPARK_LEDGER, Need.DIFF, Need.APPLIED}
    proof_needs = ROLLED | {Need.LEDGER, Need.APPLIED}
    undo = "roll back to migration mode while the controllers are up, then as from hybrid (two rolls)"
    proof = (
        "registered directories equal those on disk, every replica of it VERIFIED, unfenced, every ISR full, its "
        "listeners serve what they served"
    )

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return Restored(configuration.kraft_mode(raw, world.inventory, self.node(world), successor(world)), "")

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.no_blockers, self.stage),
            gate(gates.state_is, ZkMigrationState.MIGRATION),
            gate(gates.views_equal),
            gate(disks.ended),
            gate(rolled_verified),
            gate(may_become_kraft, self.broker, self._directory_policy),
            gate(gates.stop_is_accepted, self.broker),
            gate(gates.quorum_healthy),
            gate(gates.replicas_full),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        return (
            gate(disks.none_half_done, self.broker),
            gate(gates.no_blockers, self.stage, down=self.broker, besides=OF_UNITS),
            gate(gates.state_is, ZkMigrationState.MIGRATION),
            gate(gates.views_equal, down=self.broker),
            gate(may_become_kraft, self.broker, self._directory_policy),
            gate(gates.quorum_healthy),
        )

    @property
    def _directory_policy(self) -> DirectoryPolicy:
        return DirectoryPolicy[self.policy.upper()]

    def do(self, world: World, effects: Effects) -> None:
        """As any roll; first it is noted which directories are in the log before its KRaft registration."""
        driven = self._directory_policy is DirectoryPolicy.DRIVE
        disks.note_order(self.broker, world, effects, driven=driven)
        applied.note_before(world, self.broker, effects)
        Roll.do(self, world, effects)

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self.process_lives(world)
        yield self.registered(world, migrating=False)
        yield disks.order_kept(self.broker, world, driven=self._directory_policy is DirectoryPolicy.DRIVE)
        yield can_be_unfenced(world, self.broker)
        yield gates.replicas_full(world)

    def last_proof(self, world: World) -> Readiness:
        return applied.runs_with_what_is_stored(world, self.broker)

    def evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.ledger, Unknown):
            return ()
        return (
            f"{len(world.ledger.of(self.broker))} replicas VERIFIED at metadata offset {world.ledger.offset}",
            *disks.order_evidence(self.broker, world),
            FULL_ISRS,
            *applied.evidence(world, self.broker),
        )


@requires("broker {0} may restart into KRaft mode, by its directories' replicas")
def may_become_kraft(world: World, broker: int, policy: DirectoryPolicy) -> Readiness:
    """The verdict *may restart* as a gate: topics in creation or deletion are waited for.

    An UNASSIGNED replica is of a topic that was made behind the assignments: the broker reports it in KRaft mode only.
    """
    for part in (world.ledger, world.disks, world.kraft):
        if isinstance(part, Unknown):
            return part
    verdict = may_restart(NodeId(broker), policy, world.ledger, world.disks, world.kraft)
    if not isinstance(verdict, No):
        return Ready()
    others, passing = _without_passing(world, broker)
    if isinstance(may_restart(NodeId(broker), policy, others, world.disks, world.kraft), Yes):
        ending = [row for row in passing if row.state is not ReplicaState.UNASSIGNED]
        return churn.rows_ended(world, ending, broker)
    return Refused(f"broker {broker} may not restart into KRaft: {'; '.join(verdict.reasons[:5])}")


def kraft_brokers(world: World) -> tuple[int, ...]:
    """Brokers that are registered in KRaft mode: what was proven of them must still hold before the next one stops."""
    if isinstance(world.kraft, Unknown):
        return ()
    return tuple(sorted(int(node) for node, entry in world.kraft.brokers.items() if not entry.migrating))


@requires("every replica of brokers in KRaft mode is VERIFIED")
def rolled_verified(world: World) -> Readiness:
    return gates.first(*(can_be_unfenced(world, broker) for broker in kraft_brokers(world)))


def can_be_unfenced(world: World, broker: int) -> Readiness:
    """The verdict *can unfence* as a gate that waits: the broker reports its directories by itself."""
    if NOT_ASKED in (world.ledger, world.disks):
        return NOT_ASKED
    verdict = can_unfence(NodeId(broker), world.ledger, world.disks, world.kraft)
    if isinstance(verdict, No):
        found = NotYet(
            f"every replica of broker {broker} to be VERIFIED: {'; '.join(verdict.reasons[:3])}",
            f"broker {broker} (its AssignReplicasToDirs) and the active controller",
            "nothing at first: a STALE_BROKER_EPOCH in its log is sent again within a second; if it lasts, `status` "
            "says why",
            progress=str(len(verdict.rows)),
        )
        others, passing = _without_passing(world, broker)
        if isinstance(can_unfence(NodeId(broker), others, world.disks, world.kraft), No):
            return found
        waited = churn.rows_ended(world, passing, broker)
        return replace(found, gate=waited.gate, objects=waited.objects) if isinstance(waited, NotYet) else waited
    return Ready()


def _without_passing(world: World, broker: int) -> tuple[Ledger | Unknown, tuple[LedgerRow, ...]]:
    """The ledger without the replicas of that broker that may be of topics in creation or deletion, and those."""
    if isinstance(world.ledger, Unknown):
        return world.ledger, ()
    passing = tuple(row for row in world.ledger.of(broker) if churn.comes_and_goes(world, row))
    gone = set(passing)
    return replace(world.ledger, rows=tuple(row for row in world.ledger.rows if row not in gone)), passing
