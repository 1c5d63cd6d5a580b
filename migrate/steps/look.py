"""Steps that only look: discover, assess, copy, hybrid, soaks.  Their proof is their whole content."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from migrate.checks import processes, stuck
from migrate.model.broker_modes import Mode, positions
from migrate.model.columns import PartitionColumns
from migrate.model.copied import CopyCheck, NoLook, by_rule, names_of
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NotBegun, Predicted, Progress
from migrate.model.views import ZookeeperView
from migrate.model.words import counted, duration, plural
from migrate.model.world import FOR_PROOFS, Need, World
from migrate.steps import disks, facts, gates
from migrate.steps.base import BaseStep
from migrate.steps.disks import with_sick_disks
from migrate.steps.forward import can_be_unfenced
from migrate.steps.roll import SEEN, is_registered

LEFT_ALONE: Final = (  # added to what to do while the copy waits
    " Stopping this command changes nothing: the controllers make the copy by themselves, and the same command watches"
    " it again."
)
SOAK_LOOK_SECONDS: Final = (5.0, 60.0)  # between two looks of a soak: of the shortest, of the longest


@dataclass(frozen=True, slots=True)
class Discover(BaseStep):
    kind = "discover"
    stage_is = Stage.DISCOVER
    titled = "find out where the cluster is, from the cluster itself"
    needs = frozenset({Need.ZOOKEEPER})
    proof_needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.DISKS})
    proof = "ZooKeeper answers with the cluster id and the brokers that the plan was made for"

    def binds(self, world: World, before: Predicted) -> Mapping[str, str]:
        return facts.observed(world, ("cluster_id:",))

    def verify(self, world: World) -> Outcome:
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        listed = {int(node.id) for node in world.inventory.brokers}
        alive = {int(node) for node in world.zookeeper.brokers}
        if not isinstance(world.kraft, Unknown):  # a KRaft broker has no session with ZooKeeper any more
            alive |= {int(node) for node, entry in world.kraft.brokers.items() if not entry.migrating}
        if listed != alive:
            return Refused(_other_brokers(world, sorted(listed - alive), sorted(alive - listed)))
        return gates.as_outcome(
            Ready(),
            f"cluster {world.zookeeper.cluster_id}: {plural(len(alive), 'broker')}, "
            f"{plural(len(world.zookeeper.partitions), 'partition')}",
        )


def _other_brokers(world: World, absent: list[int], strange: list[int]) -> str:
    """Why the inventory's brokers are not those of the cluster; one that is down is no reason to edit the inventory."""
    said = [f"the cluster has brokers {strange}, which the inventory does not list"] if strange else []
    down = processes.ended(world, [node for node in world.inventory.brokers if node.id in absent])
    if down:
        typed = f"start what is down, with its file as it is ({processes.start(world.inventory, down)})"
        said.append(f"{processes.do_not_run(world.inventory, down)}: {processes.disks_first(world, down) or typed}")
    if others := [node for node in absent if node not in down]:
        said.append(f"brokers {others} of the inventory are not registered: their logs say why")
    return "; ".join(said) + ("; take no broker out of the inventory that the cluster has" if absent else "")


@dataclass(frozen=True, slots=True)
class Assess(BaseStep):
    kind = "assess"
    stage_is = Stage.ASSESS
    titled = "run every check"
    proof_needs = frozenset(
        {Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.DISKS, Need.CONFIGS, Need.SERVICES, Need.UNITS}
    )
    proof = "no check finds a blocker, and every unit may be stopped"

    def verify(self, world: World) -> Outcome:
        nodes = [node.id for node in world.inventory.nodes]
        found = gates.first(gates.no_blockers(world, Stage.PREPARE), gates.units_obey(world, nodes))
        return gates.as_outcome(found, "no check found a blocker")


@dataclass(frozen=True, slots=True)
class WatchCopy(BaseStep):
    """The copy is Kafka's: it starts by itself when the last broker registers.  We watch, and explain waiting."""

    kind = "copy"
    stage_is = Stage.COPY
    titled = "watch Kafka copy ZooKeeper's metadata"
    proof_needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.COPY})
    waits_for = proof_needs - {Need.COPY}
    undo = "one roll and the znodes of the takeover"
    proof = (
        "/migration has an offset above 0, the metadata says MIGRATION, a KRaft controller owns /controller, and what "
        "ZooKeeper held before the copy is in the metadata"
    )

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {"migration_state:": "MIGRATION", "migration_znode:": "copied"}

    def verify(self, world: World) -> Outcome:
        if isinstance(world.zookeeper, Unknown):
            return NotYet(f"ZooKeeper to be readable ({world.zookeeper.reason})", "ZooKeeper", "look at ZooKeeper")
        if isinstance(world.kraft, Unknown):
            return NotYet(
                f"the metadata to be readable ({world.kraft.reason})", "the controllers", "look at their logs"
            )
        view, kraft, note = world.zookeeper, world.kraft, world.zookeeper.copy_note
        # progress is what was moved, not the offset: the leader writes NoOp records twice a second
        if kraft.migration_state is not ZkMigrationState.MIGRATION or not view.kraft_owns or note is None:
            return NotYet(
                _why_waiting(world, view) + stuck.because(world),
                "the active controller's migration driver",
                (stuck.next_step(world) or "Repair what it waits for; the controllers look again within a minute.")
                + LEFT_ALONE,
                progress=f"{kraft.migration_state.name} {len(kraft.partitions)} {len(kraft.entities)} {kraft.waiting}",
            )
        left = _partitions(view.partitions) - _partitions(world.kraft.partitions)
        if left:
            return NotYet(
                f"{plural(len(left), 'partition')} of ZooKeeper to be in the metadata",
                "the active controller",
                "compare both with `kraft-migrate diff`",
                progress=str(len(left)),
            )
        return gates.as_outcome(
            gates.first(nothing_dropped(world), gates.replicas_full(world)),
            f"/migration at metadata offset {note.offset}, written by controller {note.controller_id}",
            f"{len(world.kraft.partitions)} partitions in the metadata, {len(view.partitions)} in ZooKeeper",
            *copy_evidence(world),
        )


def nothing_dropped(world: World) -> Readiness:
    """What ZooKeeper held before the copy is in the metadata, but for what a rule or an acceptance explains.

    Where no look from before the copy is kept, nothing is held against it: the evidence says so.
    """
    match world.copy:
        case Unknown():
            return world.copy
        case NoLook():
            return Ready()
        case CopyCheck(lost=(), miscounted=()):
            return Ready()
        case CopyCheck(lost=lost) if lost:
            what, why = f"{len(lost)} fields that ZooKeeper held before the copy", names_of(lost)
        case CopyCheck(miscounted=wrong):
            what, why = "records that the controller counted in the copy", "; ".join(wrong)
    return Refused(
        f"{what} are not in the metadata at offset {world.copy.offset}: {why} (look at zxid {world.copy.zxid}: "
        f"{world.copy.source}). ZooKeeper cannot show it any more: the driver deletes there what the metadata lacks. "
        "Look it up in the backup (`kraft-migrate backup restore FILE PLAYBOOK --path ZNODE` shows it, and writes "
        "nothing), then make it again with Kafka's own tools; or "
        "accept by name in the playbook what was deleted or changed on purpose while the last broker was restarted; or "
        "go back with `kraft-migrate rollback plan`, and put back from that backup what is missing (`backup restore`)",
        ("DIFF",),
    )


def copy_evidence(world: World) -> tuple[str, ...]:
    if isinstance(world.copy, Unknown):
        return ()
    if isinstance(world.copy, NoLook):
        return (f"not checked: what the copy may have dropped ({world.copy.reason})",)
    found = world.copy
    kinds = ", ".join(f"{after} of {before} {kind}" for kind, (before, after) in found.counts.items())
    where = "the copy's end" if found.at_end else "a later state: the log no longer reaches back to the copy"
    lines = [f"ZooKeeper before the copy, zxid {found.zxid}: metadata offset {found.offset} ({where}) has {kinds}"]
    lines += [f"known to be missing ({rule}): {names_of(rows)}" for rule, rows in by_rule(found.known).items()]
    if isinstance(found.driver, Unknown):
        lines.append(f"not checked: the controller's own count of the copy's records ({found.driver.reason})")
    elif found.records:
        lines.append(f"the {sum(found.driver.values())} records that the controller counted in the copy are in the log")
    return tuple(lines)


def _partitions(columns: PartitionColumns) -> set[tuple[str, int]]:
    return set(zip(columns.topic_id, columns.partition, strict=True))


def _why_waiting(world: World, view: ZookeeperView) -> str:
    """In the driver's own order: brokers alive, brokers in assignments, topics without id."""
    assert not isinstance(world.kraft, Unknown)
    registered = {int(node) for node, entry in world.kraft.brokers.items() if entry.migrating}
    alive = {int(node) for node in view.brokers} - registered
    if alive:
        return f"ZooKeeper-mode brokers {sorted(alive)} to register with KRaft"
    assigned = {replica for replicas in view.partitions.replicas for replica in replicas} - registered
    if assigned:
        return f"brokers {sorted(assigned)}, found in assignments, to register with KRaft"
    if view.topics_without_id:
        return f"topics without topic_id to get one: {', '.join(view.topics_without_id[:5])}"
    return f"the copy to finish (the metadata says {world.kraft.migration_state.name})"


@dataclass(frozen=True, slots=True)
class ProveHybrid(BaseStep):
    """In hybrid the comparison must be empty, and the ledger may say nothing worse than MIGRATING.

    A topic made in hybrid is UNASSIGNED from its beginning, until its brokers are in KRaft mode: that is no worse.
    """

    kind = "hybrid"
    stage_is = Stage.HYBRID
    titled = "compare ZooKeeper with KRaft, and every replica with its disk"
    proof_needs = FOR_PROOFS
    undo = "one roll and the znodes of the takeover"
    proof = (
        "no difference outside EXPECTED, nothing of ZooKeeper before the copy is missing; every replica MIGRATING, "
        "UNASSIGNED or VERIFIED"
    )

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            gates.state_is(world, ZkMigrationState.MIGRATION),
            gates.all_writable(world),
            nothing_dropped(world),
            gates.views_equal(world),
            disks.ended(world),
            gates.ledger_is(world, ReplicaState.MIGRATING, ReplicaState.UNASSIGNED, ReplicaState.VERIFIED),
            gates.replicas_full(world),
        )
        return gates.as_outcome(with_sick_disks(world, None, found), *evidence(world), *copy_evidence(world))


@dataclass(frozen=True, slots=True)
class Soak(BaseStep):
    seconds: float

    kind = "soak"
    stage_is = Stage.SOAK
    proof_needs = FOR_PROOFS - {Need.COPY}
    waits_for = frozenset()  # its looks are the proof
    undo = "two rolls and the znodes of the takeover"
    proof = "views equal and every replica VERIFIED, at the end of the soak; faults meanwhile are named"

    @property
    def title(self) -> str:
        return f"pure dual write for {duration(self.seconds)}, then compare everything again"

    def pace(self, waited: float) -> float:
        """Seconds to the next look: each compares everything and is written down, and a soak may last for days."""
        return min(max(SOAK_LOOK_SECONDS[0], self.seconds / 100), SOAK_LOOK_SECONDS[1], self.seconds - waited)

    def check(self, world: World) -> Readiness:
        return Ready()

    def verify(self, world: World) -> Outcome:
        waited, state = float(world.facts.get("soak_elapsed", "0")), gates.state_is(world, ZkMigrationState.MIGRATION)
        found = gates.first(
            state,
            gates.all_brokers_kraft(world),
            gates.all_writable(world),
            gates.views_equal(world),
            disks.ended(world),
            gates.ledger_is(world, ReplicaState.VERIFIED),
            gates.replicas_full(world),
        )
        found = with_sick_disks(world, None, found)
        if waited < self.seconds and isinstance(state, Ready):
            return self._lasting(waited, found)
        return gates.as_outcome(found, *evidence(world))

    def _lasting(self, waited: float, found: Readiness) -> NotYet:
        """Time is left: what does not hold now is named and waited for, and must hold again at the end."""
        what = f"the end of the soak: {duration(self.seconds - waited)} left of {duration(self.seconds)}"
        owner, after = CLOCK, "nothing; run the same command again later if you like"
        progress, pace = f"{waited:.0f}", self.pace(waited)
        if isinstance(found, NotYet):
            return replace(found, what=f"{what}; wrong now: {found.what}", progress=progress, pace=pace)
        if isinstance(found, Refused | Unknown):
            what, owner = f"{what}; wrong now: {found.reason}", "whoever owns what is named"
            after = "look into it now: the soak ends only when it holds again"
        return NotYet(what, owner, after, progress, pace)


def evidence(world: World) -> tuple[str, ...]:
    lines = []
    if not isinstance(world.diff, Unknown):
        expected = sum(classes.get("EXPECTED", 0) for classes in world.diff.counts.values())
        lines.append(
            f"{world.diff.compared} fields compared at metadata offset {world.diff.offset}: "
            f"{world.diff.unexcused_total} differ, "
            f"{expected} by rule"
        )
    if not isinstance(world.ledger, Unknown):
        lines.append(f"{plural(len(world.ledger.rows), 'replica')}: {counted(world.ledger.counts())}")
    return tuple(lines)


HELD: Final = "held"  # the fact: for how many seconds this step's look has found nothing wrong
CLOCK: Final = "the clock"  # who is waited for while nothing is wrong
LOOK_SECONDS: Final = (1.0, 30.0)  # between two looks: of the shortest soak, of the longest


@dataclass(frozen=True, slots=True)
class CanarySoak(BaseStep):
    """The first broker of a roll is watched for a while before the next one is restarted.

    The time counts only while everything holds and somebody looks: what breaks meanwhile (an ISR, the broker, its
    directories) is waited for, and then the time begins anew, as it does in a new session.
    """

    broker: int
    seconds: float

    name = "canary-{broker}"
    goal: ClassVar[str] = ""
    proof_needs = SEEN | {Need.LEDGER}
    waits_for = frozenset()  # its looks are the proof
    proof = "for the whole time every ISR was full, and the canary registered with its directories"

    @property
    def title(self) -> str:
        return f"watch broker {self.broker}, the canary of the roll, for {duration(self.seconds)} before the next one"

    def progress(self, world: World) -> Progress:
        """Where another broker was restarted after it, it was watched, or somebody decided to go on."""
        if any(one.now is self.goal for one in positions(world) if one.broker != self.broker):
            return AlreadyDone(f"another broker is in {self.goal} mode already")
        return NotBegun()

    @abstractmethod
    def holds(self, world: World) -> Readiness: ...

    def verify(self, world: World) -> Outcome:
        found = with_sick_disks(world, self.broker, self.holds(world))
        if not isinstance(found, Ready):
            return found
        if HELD not in world.facts:
            return Unknown("for how long everything has held was not measured")
        held = float(world.facts[HELD])
        if held < self.seconds:
            return NotYet(
                f"the end of the soak of canary {self.broker}: {duration(self.seconds - held)} left of "
                f"{duration(self.seconds)}, all of it without a fault",
                CLOCK,
                "nothing: the next broker follows; a fault meanwhile starts the soak again",
                progress=f"{held:.0f}",
                pace=self.pace(held),
            )
        return gates.as_outcome(
            Ready(), f"{duration(held)} without a fault: every ISR full, broker {self.broker} as it was proven"
        )

    def pace(self, held: float) -> float:
        return max(0.1, min(max(LOOK_SECONDS[0], self.seconds / 100), LOOK_SECONDS[1], self.seconds - held))


@dataclass(frozen=True, slots=True)
class CanaryInMigrationMode(CanarySoak):
    kind = "canary-in-migration-mode"
    stage_is = Stage.MIGRATION_MODE
    goal = Mode.MIGRATION
    undo = "one roll back to ZooKeeper mode of that broker, with the backed-up file"

    def holds(self, world: World) -> Readiness:
        return gates.first(
            gates.state_is(world, ZkMigrationState.PRE_MIGRATION),
            is_registered(world, self.broker, migrating=True),
            gates.disks_healthy(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )


@dataclass(frozen=True, slots=True)
class CanaryInKraftMode(CanarySoak):
    kind = "canary-in-kraft-mode"
    stage_is = Stage.KRAFT_MODE
    goal = Mode.KRAFT
    undo = "roll that broker back to migration mode while the controllers are up"

    def holds(self, world: World) -> Readiness:
        return gates.first(
            gates.state_is(world, ZkMigrationState.MIGRATION),
            is_registered(world, self.broker, migrating=False),
            gates.disks_healthy(world, self.broker),
            can_be_unfenced(world, self.broker),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )
