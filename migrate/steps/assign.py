"""Policy `drive`: send a broker's true directories before its KRaft restart (KIP-858, AssignReplicasToDirs)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from migrate.model.broker_modes import Mode
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import AlreadyDone, NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, HalfDone, NotBegun, Predicted, Progress
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.steps import churn, disks, gates
from migrate.steps.base import BaseStep
from migrate.steps.gates import Gate, gate

# the second: of topics made in hybrid
SENDABLE = (ReplicaState.MIGRATING, ReplicaState.UNASSIGNED, ReplicaState.VERIFIED)


@dataclass(frozen=True, slots=True)
class AssignDirectories(BaseStep):
    """Only rows whose directory id is registered by that broker and stands beside the current copy are sent."""

    broker: int

    kind = "assign-directories"
    name = "assign-{broker}"
    titled = "send the true directories of broker {broker}'s replicas (policy drive)"
    stage_is = Stage.KRAFT_MODE
    needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.LEDGER})
    proof_needs = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LEDGER})
    undo = "not needed: the ids are the true ones, and ZooKeeper mode ignores them"
    proof = "the metadata, read again, names the directory on disk for every replica of the broker"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        return (
            Action(
                "~", f"broker {self.broker}", "AssignReplicasToDirs to the active controller, at most 2250 a request"
            ),
        )

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        return {f"registered:{self.broker}": Mode.MIGRATION}

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(disks.ended),
            gate(gates.state_is, ZkMigrationState.MIGRATION),
            gate(gates.quorum_healthy),
            gate(gates.replicas_full),
            Gate(
                f"every replica of broker {self.broker} is {' or '.join(state.value for state in SENDABLE)}",
                lambda world: self._rows(world, SENDABLE),
            ),
        )

    def _rows(self, world: World, states: tuple[ReplicaState, ...]) -> Readiness:
        if isinstance(world.ledger, Unknown):
            return world.ledger
        wrong = [row for row in world.ledger.of(self.broker) if row.state not in states]
        if not wrong:
            return Ready()
        if world.ledger.unknown and any(row.state is ReplicaState.UNKNOWN for row in wrong):
            return Unknown(f"the ledger was made without a view: {'; '.join(world.ledger.unknown)}")
        definite = [row for row in wrong if not churn.comes_and_goes(world, row)]
        if not definite:
            return churn.rows_ended(world, wrong, self.broker)
        row = definite[0]
        return Refused(
            f"{plural(len(wrong), 'replica')} of broker {self.broker} in no state to be sent: "
            f"{row.topic}-{row.partition} is {row.state.value}"
            f" (on disk {row.on_disk or 'nowhere'}, in the metadata {row.in_metadata or '-'})"
        )

    def progress(self, world: World) -> Progress:
        """Told by the ledger: what the metadata already says is not sent again."""
        if isinstance(world.ledger, Unknown):
            return world.ledger
        rows = world.ledger.of(self.broker)
        done = sum(row.state is ReplicaState.VERIFIED for row in rows)
        if done == len(rows):
            return AlreadyDone("every replica of it is VERIFIED")
        return HalfDone(f"{done} of {len(rows)} are VERIFIED") if done else NotBegun()

    def do(self, world: World, effects: Effects) -> None:
        effects.assign_directories(NodeId(self.broker))

    def verify(self, world: World) -> Outcome:
        """By reading the metadata: neither the answers nor the ISRs prove it.

        What is UNASSIGNED now was made since: all others were sent, and seen in the metadata, before the effect ended.
        """
        if isinstance(world.ledger, Unknown):
            return world.ledger
        rows = world.ledger.of(self.broker)
        counts = Counter(row.state for row in rows)
        left, late = counts[ReplicaState.MIGRATING], counts[ReplicaState.UNASSIGNED]
        if left and counts.keys() <= {*SENDABLE}:
            return NotYet(
                f"{plural(left, 'replica')} of broker {self.broker} to be VERIFIED in the metadata",
                "the active controller",
                "nothing: the records were accepted and must be committed",
                progress=str(left),
            )
        proven = f"{plural(counts[ReplicaState.VERIFIED], 'replica')} VERIFIED at metadata offset {world.ledger.offset}"
        since = (f"{plural(late, 'replica')} made since, which the broker reports in KRaft mode",) if late else ()
        accepted = (ReplicaState.VERIFIED, ReplicaState.UNASSIGNED)
        return gates.as_outcome(self._rows(world, accepted), proven, *since)
