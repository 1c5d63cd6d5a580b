"""Roll one broker: stop, change its file, start, and prove what it became.

Twice a broker: into migration mode (it registers with its log directories, still serving from ZooKeeper) and into
KRaft mode.  A configuration changes only between the stop and the start of that process.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from migrate.checks import stuck
from migrate.hosts.properties import diff
from migrate.model.broker_modes import Mode, node_mode, position_of, positions
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.ledger import Ledger, LedgerRow
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import DirectoryPolicy, Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.units import OF_UNITS
from migrate.model.verdict import No, Yes, can_unfence, may_restart
from migrate.model.views import BrokerDisks, ConfigFile, MetaProperties, NoFile, Running, Stopped
from migrate.model.words import registered_as
from migrate.model.world import NOT_ASKED, Need, World
from migrate.steps import churn, configuration, directory_order, facts, gates, moves
from migrate.steps.base import BaseStep
from migrate.steps.disks import with_sick_disks

AFTER = "nothing: it comes by itself; look at the broker's log and at its connection to the controllers"
BEFORE_COPY = "zookeeper-before-copy"  # the backup that the copy is held against; as journal and file name it
SEEN = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES})


@dataclass(frozen=True, slots=True)
class RollStep(BaseStep):
    """What both rolls share."""

    broker: int

    goal: ClassVar[Mode]

    @property
    def id(self) -> str:
        """`migration-mode/1`."""
        return f"{self.stage.label}/{self.broker}"

    @property
    def title(self) -> str:
        """One line for a person."""
        return f"restart broker {self.broker} into {self.goal} mode"

    def node(self, world: World) -> BrokerNode:
        """The broker in the inventory."""
        return next(node for node in world.inventory.brokers if node.id == self.broker)

    @abstractmethod
    def target(self, world: World, raw: bytes) -> bytes:
        """The file that the broker is to start with."""

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """The file's change and the restart."""
        path = self.node(world).config
        raw = facts.predicted_config(world, before, self.broker)
        if raw is None:
            return (Action("?", f"broker {self.broker}", f"{path} cannot be read"),)
        return (
            Action("~", f"broker {self.broker}", f"edit {path}", tuple(diff(raw, self.target(world, raw), path))),
            Action(">", f"broker {self.broker}", "restart: stop, write the file, start" + self._why(world)),
        )

    def _why(self, world: World) -> str:
        why = position_of(world, self.broker).contradiction
        return f" ({why})" if why else ""

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        """The file as it lies there, and the directories that it names."""
        raw = facts.predicted_config(world, before, self.broker)
        config = facts.UNKNOWN if raw is None else facts.sha256(raw)
        keys = facts.observed(world, (f"log_dirs:{self.broker}", "cluster_id:"))
        return {f"config:{self.broker}": config, **keys}

    def predict(self, world: World, before: Predicted) -> Predicted:
        """The file after it."""
        raw = facts.predicted_config(world, before, self.broker)
        return before if raw is None else facts.with_config(before, self.broker, self.target(world, raw))

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        """The file's hash, the node's mode, and how it is registered."""
        after = self.predict(world, before).configs.get(NodeId(self.broker))
        found = {f"mode:{self.broker}": self.goal, f"registered:{self.broker}": self.goal}
        return found if after is None else {**found, f"config:{self.broker}": facts.sha256(after)}

    def progress(self, world: World) -> Progress:
        """Told by the file's mode and by the file that the process was started with."""
        file = facts.config(world, self.broker)
        if isinstance(file, Unknown):
            return file
        if isinstance(file, NoFile) or isinstance(world.services, Unknown):
            return Unknown(f"the file or the process of broker {self.broker} cannot be seen")
        state = world.services.get(NodeId(self.broker), Unknown("not looked at"))
        edited = self._edited(world, file)
        match state:
            case Unknown():
                return state
            case Stopped():
                return HalfDone("stopped" + (", file written" if edited else ""))
            case Running(config_sha256=started) if edited and self._started_with(world, started, file.sha256):
                return AlreadyDone(f"it runs with the file of {self.goal} mode")
            case Running():
                return HalfDone("file written, old process alive") if edited else NotBegun()

    def _started_with(self, world: World, started: str | None, sha256: str) -> bool:
        """By the file that it was started with; where nobody knows that one, by how it has registered since."""
        if started is not None or isinstance(world.kraft, Unknown):
            return started == sha256
        found = world.kraft.brokers.get(NodeId(self.broker))
        if found is None or found.migrating is not (self.goal is Mode.MIGRATION):
            return False
        return found.incarnation != world.facts.get(ended(self.id)) and not found.fenced

    def _edited(self, world: World, file: ConfigFile) -> bool:
        """Is it the file that is wanted?  Of that mode alone is not enough: other keys of it may be missing."""
        return node_mode(file.values) is self.goal and self.target(world, file.raw) == file.raw

    def do(self, world: World, effects: Effects) -> None:
        """Stop, write, start: each only where it is missing.

        The incarnation that is registered now belongs to a process that ends: it is noted, and no proof afterwards.
        """
        file = facts.config(world, self.broker)
        assert isinstance(file, ConfigFile)
        assert not isinstance(world.services, Unknown)
        assert not isinstance(world.kraft, Unknown)
        old = world.kraft.brokers.get(NodeId(self.broker))
        effects.note(ended(self.id), "none" if old is None else old.incarnation)
        if isinstance(world.services[NodeId(self.broker)], Running):
            effects.stop(NodeId(self.broker))
        self.when_stopped(world, effects)
        if not self._edited(world, file):
            target = self.target(world, file.raw)
            effects.write_config(NodeId(self.broker), file.path, target, file.sha256)
        self.before_start(world, effects)
        effects.start(NodeId(self.broker))

    def when_stopped(self, world: World, effects: Effects) -> None:
        """What a step does to a stopped broker before its file is written."""

    def before_start(self, world: World, effects: Effects) -> None:
        """What a step does to a stopped broker whose file is written: here a last look at its disks."""
        if metas := self.identities(world):
            effects.require_same(NodeId(self.broker), metas)

    def identities(self, world: World) -> dict[str, MetaProperties]:
        """The meta.properties that each directory must hold at the start, by path; none where they were not seen."""
        disks = Unknown("not looked at") if isinstance(world.disks, Unknown) else world.disks.get(NodeId(self.broker))
        if not isinstance(disks, BrokerDisks):
            return {}
        entries = [*disks.directories, *([disks.metadata_directory] if disks.metadata_directory else [])]
        return {entry.path: entry.meta for entry in entries if isinstance(entry.meta, MetaProperties)}

    def process_lives(self, world: World) -> Readiness:
        """The process runs with the file that was written."""
        file = facts.config(world, self.broker)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of broker {self.broker} cannot be seen")
        return gates.runs_with(world, self.broker, file.sha256)

    def registered(self, world: World, *, migrating: bool) -> Readiness:
        """A registration of this kind, of another incarnation than the one that this step ended."""
        if not isinstance(world.kraft, Unknown):
            found = world.kraft.brokers.get(NodeId(self.broker))
            if found is not None and found.incarnation == world.facts.get(ended(self.id)):
                return NotYet(
                    f"broker {self.broker} to register anew (incarnation {found.incarnation} was stopped)",
                    f"broker {self.broker}",
                    AFTER,
                    progress=found.incarnation,
                )
        answer = is_registered(world, self.broker, migrating=migrating)
        if not isinstance(answer, NotYet) or not migrating:
            return answer
        nodes = frozenset({self.broker})
        what, after = answer.what + stuck.because(world, nodes), stuck.next_step(world, nodes) or answer.next_step
        return replace(answer, what=what, next_step=after)


def _taken_over(world: World) -> bool:
    """Is /controller a KRaft controller's?  Then the copy has begun, and ZooKeeper is no longer what it was."""
    return isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns


def ended(step: str) -> str:
    """The note's key: which incarnation a step has stopped."""
    return f"ended:{step}"


def is_registered(world: World, broker: int, *, migrating: bool) -> Readiness:
    """A registration of this kind, unfenced, whose LogDirs equal the directory ids on disk as a set."""
    if isinstance(world.kraft, Unknown):
        return NotYet(f"the metadata to be readable ({world.kraft.reason})", "the controllers", AFTER)
    found = world.kraft.brokers.get(NodeId(broker))
    if found is None or found.migrating is not migrating or found.fenced:
        was = "none" if found is None else registered_as(migrating=found.migrating, fenced=found.fenced)
        mode = Mode.MIGRATION if migrating else Mode.KRAFT
        return NotYet(
            f"broker {broker} to register in {mode} mode and unfence (now: {was})",
            f"broker {broker}",
            AFTER,
            progress=was,
        )
    if isinstance(world.disks, Unknown):
        return world.disks
    disks = world.disks.get(NodeId(broker), Unknown(f"the disks of broker {broker} were not looked at"))
    if isinstance(disks, Unknown):
        return disks
    here = {entry.id for entry in disks.directories}
    if here != set(found.log_dirs):
        return Refused(
            f"broker {broker} registered directories {sorted(found.log_dirs)}, its disks hold "
            f"{sorted(str(entry) for entry in here)}"
        )
    return Ready()


@dataclass(frozen=True, slots=True)
class RollToMigrationMode(RollStep):
    """Roll 1: the broker registers with its log directories; the last one's registration starts the copy by itself."""

    last: str = "no"

    kind: ClassVar[str] = "roll-to-migration-mode"
    stage_is: ClassVar[Stage] = Stage.MIGRATION_MODE
    goal: ClassVar[Mode] = Mode.MIGRATION
    needs: ClassVar[frozenset[Need]] = SEEN | {Need.LAUNCHES, Need.UNITS}
    proof_needs: ClassVar[frozenset[Need]] = SEEN | {Need.LEDGER}
    undo: ClassVar[str] = "one roll back to ZooKeeper mode with the backed-up file"
    proof: ClassVar[str] = (
        "its new registration says migrating, LogDirs equal the directory ids on its disks, every ISR is full"
    )

    def target(self, world: World, raw: bytes) -> bytes:
        """The file for migration mode."""
        return configuration.migration_mode(raw, world.inventory)

    def check(self, world: World) -> Readiness:
        """No blocker, healthy disks, full ISRs, an accepted loss, and controllers that wait for brokers."""
        found = gates.first(
            gates.no_blockers(world, self.stage),
            moves.ended(world),
            gates.state_is(world, ZkMigrationState.PRE_MIGRATION),
            *(is_registered(world, broker, migrating=True) for broker in self._rolled_before(world)),
            gates.disks_healthy(world, self.broker),
            gates.stop_is_accepted(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )
        return with_sick_disks(world, None, found)

    def _rolled_before(self, world: World) -> tuple[int, ...]:
        """Other brokers in migration mode: whoever rolled them, the next one waits for their proof.

        Not one whose file alone is of that mode, and whose process runs in ZooKeeper mode: its turn is still to come.
        """
        others = (one for one in positions(world) if one.broker != self.broker)
        return tuple(
            int(one.broker)
            for one in others
            if Mode.MIGRATION in (one.file, one.process) and one.process is not Mode.ZOOKEEPER
        )

    def resume(self, world: World) -> Readiness:
        """Its start may be the one that starts the copy: all blockers again, but of units and of its stop.

        A move between directories that its stop interrupted goes on when it is there again: it is no reason to leave
        it down.
        """
        found = gates.first(
            gates.no_blockers(world, self.stage, down=self.broker, besides=OF_UNITS | {moves.CODE}),
            gates.state_is(world, ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION),
            gates.disks_healthy(world, self.broker),
            gates.quorum_healthy(world),
        )
        return with_sick_disks(world, None, found)

    def verify(self, world: World) -> Outcome:
        """Registered as migrating, with its directories; ISRs full."""
        found = gates.first(
            self.process_lives(world), self.registered(world, migrating=True), gates.replicas_full(world)
        )
        return gates.as_outcome(with_sick_disks(world, self.broker, found), *self._evidence(world))

    def do(self, world: World, effects: Effects) -> None:
        """As any roll; before the last broker's restart, which starts the copy, ZooKeeper is backed up once more."""
        others = {int(node.id) for node in world.inventory.brokers} - {self.broker}
        if others == set(self._rolled_before(world)) and not _taken_over(world):
            effects.backup_zookeeper(BEFORE_COPY)
        RollStep.do(self, world, effects)

    def _evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.kraft, Unknown) or NodeId(self.broker) not in world.kraft.brokers:
            return ()
        found = world.kraft.brokers[NodeId(self.broker)]
        return (
            (
                f"registration at offset {found.epoch}: incarnation {found.incarnation}, migrating, "
                f"{len(found.log_dirs)} directories as on disk"
            ),
            "every partition has its full ISR in every broker's metadata",
        )


@dataclass(frozen=True, slots=True)
class RollToKraft(RollStep):
    """Roll 2: gated on the broker's ledger rows before, and on *can unfence* after."""

    policy: str = "observe"

    kind: ClassVar[str] = "roll-to-kraft"
    stage_is: ClassVar[Stage] = Stage.KRAFT_MODE
    goal: ClassVar[Mode] = Mode.KRAFT
    needs: ClassVar[frozenset[Need]] = SEEN | {Need.SPARK_LEDGER, Need.DIFF, Need.UNITS}
    proof_needs: ClassVar[frozenset[Need]] = SEEN | {Need.LEDGER}
    undo: ClassVar[str] = "roll back to migration mode while the controllers are up, then as from hybrid (two rolls)"
    proof: ClassVar[str] = (
        "registered directories equal those on disk, every replica of it VERIFIED, unfenced, every ISR full"
    )

    def target(self, world: World, raw: bytes) -> bytes:
        """The file for KRaft mode."""
        return configuration.kraft_mode(raw, world.inventory, self.node(world))

    def check(self, world: World) -> Readiness:
        """No blocker, views equal, *may restart*, an accepted loss, quorum and ISRs whole."""
        found = gates.first(
            gates.no_blockers(world, self.stage),
            gates.state_is(world, ZkMigrationState.MIGRATION),
            gates.views_equal(world),
            moves.ended(world),
            *(can_be_unfenced(world, broker) for broker in kraft_brokers(world)),
            self._may_restart(world),
            gates.stop_is_accepted(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )
        return with_sick_disks(world, None, found)

    def resume(self, world: World) -> Readiness:
        """What must hold of the stores and of its directories before it starts; itself it cannot be seen."""
        found = gates.first(
            moves.none_half_done(world, self.broker),
            gates.no_blockers(world, self.stage, down=self.broker, besides=OF_UNITS),
            gates.state_is(world, ZkMigrationState.MIGRATION),
            gates.views_equal(world, down=self.broker),
            self._may_restart(world),
            gates.quorum_healthy(world),
        )
        return with_sick_disks(world, None, found)

    def do(self, world: World, effects: Effects) -> None:
        """As any roll; first it is noted which directories are in the log before its KRaft registration."""
        driven = self._directory_policy is DirectoryPolicy.DRIVE
        directory_order.note(self.broker, world, effects, driven=driven)
        RollStep.do(self, world, effects)

    @property
    def _directory_policy(self) -> DirectoryPolicy:
        return DirectoryPolicy[self.policy.upper()]

    def _may_restart(self, world: World) -> Readiness:
        verdict = may_restart(NodeId(self.broker), self._directory_policy, world.ledger, world.disks, world.kraft)
        if not isinstance(verdict, No):
            return Ready()
        others, passing = _without_passing(world, self.broker)
        if isinstance(may_restart(NodeId(self.broker), self._directory_policy, others, world.disks, world.kraft), Yes):
            return churn.rows_ended(world, passing, self.broker)
        return Refused(f"broker {self.broker} may not restart into KRaft: {'; '.join(verdict.reasons[:5])}")

    def verify(self, world: World) -> Outcome:
        """*Can unfence*, is unfenced, and the ISRs are full."""
        found = gates.first(
            self.process_lives(world),
            self.registered(world, migrating=False),
            directory_order.kept(self.broker, world, driven=self._directory_policy is DirectoryPolicy.DRIVE),
            can_be_unfenced(world, self.broker),
            gates.replicas_full(world),
        )
        return gates.as_outcome(with_sick_disks(world, self.broker, found), *self._evidence(world))

    def _evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.ledger, Unknown):
            return ()
        return (
            f"{len(world.ledger.of(self.broker))} replicas VERIFIED at metadata offset {world.ledger.offset}",
            *directory_order.evidence(self.broker, world),
            "every partition has its full ISR in every broker's metadata",
        )


def kraft_brokers(world: World) -> tuple[int, ...]:
    """Brokers that are registered in KRaft mode: what was proven of them must still hold before the next one stops."""
    if isinstance(world.kraft, Unknown):
        return ()
    return tuple(sorted(int(node) for node, entry in world.kraft.brokers.items() if not entry.migrating))


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
