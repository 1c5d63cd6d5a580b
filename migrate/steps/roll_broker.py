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
from migrate.model.config_keys import Moment
from migrate.model.ids import NodeId
from migrate.model.inventory import BrokerNode
from migrate.model.launch import OF_UNITS
from migrate.model.ledger import Ledger, LedgerRow, No, Yes, can_unfence, may_restart
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown, Verified
from migrate.model.ports import Effects
from migrate.model.stage import DirectoryPolicy, Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.views import ConfigFile, MetaProperties, NoFile, Running, Stopped
from migrate.model.words import registered_as
from migrate.model.world import NOT_ASKED, Need, World
from migrate.steps import applied, churn, configuration, disks, facts, gates, named_gates, served
from migrate.steps.base import NARROW, BaseStep
from migrate.steps.disks import with_sick_disks
from migrate.steps.named_gates import Gate

AFTER = "usually nothing; look at the broker's log and its connection to the controllers"
BEFORE_COPY = "zookeeper-before-copy"  # the backup that the copy is held against; as journal and file name it
FULL_ISRS = "every partition has its full ISR in every broker's metadata"
SEEN = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES})
ROLLED = SEEN | {Need.LISTENERS}


@dataclass(frozen=True, slots=True)
class RollStep(BaseStep):
    broker: int

    name = "{broker}"
    goal: ClassVar[Mode]
    writes_at: ClassVar[tuple[Moment, ...]] = (Moment.FIRST_ROLL, Moment.SECOND_ROLL)
    goes_back: ClassVar[bool] = False  # to a file from before: what its listeners served then, they may serve again

    def node(self, world: World) -> BrokerNode:
        return next(node for node in world.inventory.brokers if node.id == self.broker)

    @property
    def without_quorum(self) -> bool:
        """It ends in ZooKeeper mode, where the broker's new session tells its new process: nobody else registers it."""
        return self.goal is Mode.ZOOKEEPER

    @abstractmethod
    def target(self, world: World, raw: bytes) -> bytes: ...

    def starts(self, world: World) -> tuple[int, ...]:
        return (self.broker,)

    def becomes(self, world: World, node: int, raw: bytes) -> bytes:
        return self.target(world, raw)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        path = self.node(world).config
        raw = facts.predicted_config(world, before, self.broker)
        if raw is None:
            return (Action("?", f"broker {self.broker}", f"{path} cannot be read"),)
        why, name = position_of(world, self.broker).contradiction, facts.file_name(world, self.broker)
        return (
            Action("~", f"broker {self.broker}", f"edit {name}", tuple(diff(raw, self.target(world, raw), path))),
            Action(">", f"broker {self.broker}", "restart: stop, write the file, start" + (f" ({why})" if why else "")),
        )

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        keys = facts.observed(world, (f"log_dirs:{self.broker}", "cluster_id:"))
        return {f"config:{self.broker}": facts.predicted_sha256(world, before, self.broker), **keys}

    def predict(self, world: World, before: Predicted) -> Predicted:
        raw = facts.predicted_config(world, before, self.broker)
        return before if raw is None else facts.with_config(before, self.broker, self.target(world, raw))

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        after = self.predict(world, before).configs.get(NodeId(self.broker))
        registered = f"session:{self.broker}" if self.without_quorum else f"registered:{self.broker}"
        found = {f"mode:{self.broker}": self.goal, registered: "yes" if self.without_quorum else self.goal}
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
        if started is None and self.without_quorum:
            return ended(self.id) in world.facts and isinstance(self.new_session(world), Ready)
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
        """Stop, write, start: each only where it is missing."""
        file = facts.config(world, self.broker)
        assert isinstance(file, ConfigFile)
        assert not isinstance(world.services, Unknown)
        effects.note(ended(self.id), self.registration(world))
        served.note(self.id, self.broker, world, effects)
        if isinstance(world.services[NodeId(self.broker)], Running):
            effects.stop(NodeId(self.broker))
        self.when_stopped(world, effects)
        if not self._edited(world, file):
            target = self.target(world, file.raw)
            effects.write_config(NodeId(self.broker), file.path, target, file.sha256)
        self.before_start(world, effects)
        effects.start(NodeId(self.broker))

    def registration(self, world: World) -> str:
        """What is registered now belongs to a process that ends: it is noted, and no proof afterwards."""
        if self.without_quorum:
            assert not isinstance(world.zookeeper, Unknown)
            session = world.zookeeper.brokers.get(NodeId(self.broker))
            return "none" if session is None else str(session.epoch)
        assert not isinstance(world.kraft, Unknown)
        old = world.kraft.brokers.get(NodeId(self.broker))
        return "none" if old is None else old.incarnation

    def when_stopped(self, world: World, effects: Effects) -> None: ...

    def before_start(self, world: World, effects: Effects) -> None:
        if metas := self.identities(world):
            effects.require_same(NodeId(self.broker), metas)

    def identities(self, world: World) -> dict[str, MetaProperties]:
        """The meta.properties that each directory must hold at the start, by path; none where they were not seen."""
        disks = facts.disks(world, self.broker)
        if isinstance(disks, Unknown):
            return {}
        entries = [*disks.directories, *([disks.metadata_directory] if disks.metadata_directory else [])]
        return {entry.path: entry.meta for entry in entries if isinstance(entry.meta, MetaProperties)}

    def proven(self, world: World, found: Readiness, *evidence: str) -> Outcome:
        """The proof, once all else of it holds: the listeners serve what they served before the stop."""
        if not isinstance(found, Ready):
            return gates.as_outcome(found)
        kept = served.kept(self.id, self.node(world), world, back=self.goes_back)
        return (
            gates.as_outcome(found, *evidence, *served.evidence(self.id, self.broker, world)) if kept is None else kept
        )

    def process_lives(self, world: World) -> Readiness:
        file = facts.config(world, self.broker)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of broker {self.broker} cannot be seen")
        return gates.runs_with(world, self.broker, file.sha256)

    def new_session(self, world: World) -> Readiness:
        """A session with ZooKeeper that is not the one which this step ended."""
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        found = world.zookeeper.brokers.get(NodeId(self.broker))
        if found is None or str(found.epoch) == world.facts.get(ended(self.id)):
            was = "none" if found is None else "the old one"
            what = f"broker {self.broker} to register in /brokers/ids (now: {was})"
            return NotYet(what, f"broker {self.broker}", gates.LOOK_AT_NODES_LOG, progress=was)
        return Ready()

    def registered(self, world: World, *, migrating: bool) -> Readiness:
        """A registration of this kind, of another incarnation than the one that this step ended."""
        if not isinstance(world.kraft, Unknown):
            found = world.kraft.brokers.get(NodeId(self.broker))
            if found is not None and found.incarnation == world.facts.get(ended(self.id)):
                what = f"broker {self.broker} to register again (incarnation {found.incarnation} was stopped)"
                return NotYet(what, f"broker {self.broker}", AFTER, progress=found.incarnation)
        answer = is_registered(world, self.broker, migrating=migrating)
        if not isinstance(answer, NotYet) or not migrating:
            return answer
        nodes = frozenset({self.broker})
        what, after = answer.what + stuck.because(world, nodes), stuck.next_step(world, nodes) or answer.next_step
        return replace(answer, what=what, next_step=after)


def ended(step: str) -> str:
    return f"ended:{step}"


def is_registered(world: World, broker: int, *, migrating: bool) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return NotYet(f"the metadata to be readable ({world.kraft.reason})", "the controllers", AFTER)
    found = world.kraft.brokers.get(NodeId(broker))
    if found is None or found.migrating is not migrating or found.fenced:
        was = "none" if found is None else registered_as(migrating=found.migrating, fenced=found.fenced)
        mode = Mode.MIGRATION if migrating else Mode.KRAFT
        what = f"broker {broker} to register in {mode} mode and unfence (now: {was})"
        return NotYet(what, f"broker {broker}", AFTER, progress=was)
    disks = facts.disks(world, broker)
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

    kind = "roll-to-migration-mode"
    stage_is = Stage.MIGRATION_MODE
    goal = Mode.MIGRATION
    writes_at = (Moment.FIRST_ROLL,)
    titled = "restart broker {broker} into migration mode"
    needs = ROLLED | gates.FOR_BLOCKERS | {Need.LAUNCHES, Need.STORES}
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

    def target(self, world: World, raw: bytes) -> bytes:
        return configuration.migration_mode(raw, world.inventory)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            named_gates.no_blockers(self.stage),
            named_gates.moves_ended(),
            named_gates.state_is(ZkMigrationState.PRE_MIGRATION),
            Gate("brokers in migration mode are registered as such, with the directories on their disks", self._proven),
            named_gates.disks_healthy(self.broker),
            named_gates.stop_is_accepted(self.broker),
            named_gates.quorum_healthy(),
            named_gates.replicas_full(),
        )

    def check(self, world: World) -> Readiness:
        return with_sick_disks(world, None, RollStep.check(self, world))

    def _proven(self, world: World) -> Readiness:
        return gates.first(*(is_registered(world, broker, migrating=True) for broker in self._rolled_before(world)))

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
            gates.no_blockers(world, self.stage, down=self.broker, besides=OF_UNITS | {disks.CODE}),
            gates.state_is(world, ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION),
            gates.disks_healthy(world, self.broker),
            gates.quorum_healthy(world),
        )
        return with_sick_disks(world, None, found)

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            self.process_lives(world), self.registered(world, migrating=True), gates.replicas_full(world)
        )
        return self.proven(world, with_sick_disks(world, self.broker, found), *self._evidence(world))

    def do(self, world: World, effects: Effects) -> None:
        """As any roll; before the last broker's restart, which starts the copy, ZooKeeper is backed up once more."""
        others = {int(node.id) for node in world.inventory.brokers} - {self.broker}
        # a KRaft controller that has /controller has begun the copy: ZooKeeper is no longer what it was
        taken_over = isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns
        if others == set(self._rolled_before(world)) and not taken_over:
            effects.backup_zookeeper(BEFORE_COPY)
        RollStep.do(self, world, effects)

    def _evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.kraft, Unknown) or NodeId(self.broker) not in world.kraft.brokers:
            return ()
        found = world.kraft.brokers[NodeId(self.broker)]
        line = f"registration at offset {found.epoch}: incarnation {found.incarnation}, migrating"
        return f"{line}, {len(found.log_dirs)} directories as on disk", FULL_ISRS


@dataclass(frozen=True, slots=True)
class RollToKraft(RollStep):
    """Roll 2: gated on the broker's ledger rows before, and on *can unfence* after."""

    policy: str = "observe"

    kind = "roll-to-kraft"
    stage_is = Stage.KRAFT_MODE
    goal = Mode.KRAFT
    writes_at = (Moment.SECOND_ROLL,)
    titled = "restart broker {broker} into kraft mode"
    needs = ROLLED | gates.FOR_BLOCKERS | {Need.STORES, Need.SPARK_LEDGER, Need.DIFF, Need.APPLIED}
    proof_needs = ROLLED | {Need.LEDGER, Need.APPLIED}
    undo = "roll back to migration mode while the controllers are up, then as from hybrid (two rolls)"
    proof = (
        "registered directories equal those on disk, every replica of it VERIFIED, unfenced, every ISR full, its "
        "listeners serve what they served"
    )

    def target(self, world: World, raw: bytes) -> bytes:
        return configuration.kraft_mode(raw, world.inventory, self.node(world))

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            named_gates.no_blockers(self.stage),
            named_gates.state_is(ZkMigrationState.MIGRATION),
            named_gates.views_equal(),
            named_gates.moves_ended(),
            rolled_verified(),
            Gate(f"broker {self.broker} may restart into KRaft mode, by its directories' replicas", self._may_restart),
            named_gates.stop_is_accepted(self.broker),
            named_gates.quorum_healthy(),
            named_gates.replicas_full(),
        )

    def check(self, world: World) -> Readiness:
        return with_sick_disks(world, None, RollStep.check(self, world))

    def resume(self, world: World) -> Readiness:
        found = gates.first(
            disks.none_half_done(world, self.broker),
            gates.no_blockers(world, self.stage, down=self.broker, besides=OF_UNITS),
            gates.state_is(world, ZkMigrationState.MIGRATION),
            gates.views_equal(world, down=self.broker),
            self._may_restart(world),
            applied.will_say(world, self.broker),
            gates.quorum_healthy(world),
        )
        return with_sick_disks(world, None, found)

    def do(self, world: World, effects: Effects) -> None:
        """As any roll; first it is noted which directories are in the log before its KRaft registration."""
        driven = self._directory_policy is DirectoryPolicy.DRIVE
        disks.note_order(self.broker, world, effects, driven=driven)
        applied.note_before(world, self.broker, effects)
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
        found = gates.first(
            self.process_lives(world),
            self.registered(world, migrating=False),
            disks.order_kept(self.broker, world, driven=self._directory_policy is DirectoryPolicy.DRIVE),
            can_be_unfenced(world, self.broker),
            gates.replicas_full(world),
        )
        outcome = self.proven(world, with_sick_disks(world, self.broker, found), *self._evidence(world))
        if not isinstance(outcome, Verified):  # a dead listener says more than the values that went with it
            return outcome
        return gates.as_outcome(applied.runs_with_what_is_stored(world, self.broker), *outcome.evidence)

    def _evidence(self, world: World) -> tuple[str, ...]:
        if isinstance(world.ledger, Unknown):
            return ()
        return (
            f"{len(world.ledger.of(self.broker))} replicas VERIFIED at metadata offset {world.ledger.offset}",
            *disks.order_evidence(self.broker, world),
            FULL_ISRS,
            *applied.evidence(world, self.broker),
        )


def kraft_brokers(world: World) -> tuple[int, ...]:
    """Brokers that are registered in KRaft mode: what was proven of them must still hold before the next one stops."""
    if isinstance(world.kraft, Unknown):
        return ()
    return tuple(sorted(int(node) for node, entry in world.kraft.brokers.items() if not entry.migrating))


def rolled_verified() -> Gate:
    def holds(world: World) -> Readiness:
        return gates.first(*(can_be_unfenced(world, broker) for broker in kraft_brokers(world)))

    return Gate("every replica of brokers in KRaft mode is VERIFIED", holds)


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
