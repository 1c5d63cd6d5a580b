"""Stage cleanup: give the ZooKeeper lock back, then prove the cluster by its own metadata alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrate.checks.quorum import ACCEPTED_GHOST, GHOST, accepted_ghost
from migrate.hosts.leftovers import is_copy
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import NO_ZNODE, Action, Predicted
from migrate.model.views import ConfigFile
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import BaseStep
from migrate.steps.gates import Gate, gate, requires

LOOK = frozenset({Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES})


@dataclass(frozen=True, slots=True)
class ReleaseZookeeper(BaseStep):
    """From here the run's lock file holds alone; ZooKeeper may be stopped by its operator."""

    kind = "release-zookeeper"
    undo = "not needed: the next run takes a lock of its own"
    stage_is = Stage.CLEANUP
    titled = "give the lock in ZooKeeper back"
    needs = frozenset({Need.KRAFT, Need.CONFIGS, Need.SERVICES})
    proof_needs = needs
    proof = "every process of Kafka runs with a file that names no ZooKeeper"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        held = "this run as its holder"
        return (Action("-", "ZooKeeper", "delete the run's own lock", znode="lock", before=held, after=NO_ZNODE),)

    def own_gates(self) -> tuple[Gate, ...]:
        return free_of_zookeeper()

    def do(self, world: World, effects: Effects) -> None:
        effects.release_zookeeper_lock()

    def verify(self, world: World) -> Outcome:
        return gates.as_outcome(self.check(world), "POST_MIGRATION; the lock file holds from here")


@dataclass(frozen=True, slots=True)
class RemoveCopies(BaseStep):
    """What runs left beside the nodes' files: after finalize no rollback needs it, and there are secrets in it."""

    kind = "remove-copies"
    stage_is = Stage.CLEANUP
    titled = "remove the copies of files from the nodes' hosts"
    needs = frozenset({Need.KRAFT, Need.CONFIGS, Need.SERVICES, Need.LEFTOVERS})
    proof_needs = frozenset({Need.LEFTOVERS})
    undo = "none: the run's folder has copies of the files as they were before the migration"
    proof = "no copy is left next to any node's file"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        there = tuple(Action("-", f"node {int(node)}", f"remove {path}") for node, path in _copies(world))
        return (*there, Action("-", "every node", "remove the copies that this run leaves"))

    def own_gates(self) -> tuple[Gate, ...]:
        return (*free_of_zookeeper(), gate(_seen))

    def do(self, world: World, effects: Effects) -> None:
        """Each of them; a folder in a metadata directory stays, and is told."""
        for node, path in _copies(world):
            effects.remove_copy(node, path)

    def verify(self, world: World) -> Outcome:
        left = [path for _, path in _copies(world)]
        found = Refused(f"still there: {', '.join(left)}") if left else _seen(world)
        return gates.as_outcome(found, left=tuple(left_behind(world)))


def free_of_zookeeper() -> tuple[Gate, ...]:
    return (
        gate(gates.state_is, ZkMigrationState.POST_MIGRATION),
        gate(_no_zookeeper_keys),
        gate(_run_with_them),
    )


@requires("every node's host was searched for copies")
def _seen(world: World) -> Readiness:
    if isinstance(world.leftovers, Unknown):
        return world.leftovers
    return gates.first(*(found for found in world.leftovers.values() if isinstance(found, Unknown)))


def _copies(world: World) -> Iterator[tuple[NodeId, str]]:
    for node, found in {} if isinstance(world.leftovers, Unknown) else world.leftovers.items():
        yield from ((node, path) for path in (() if isinstance(found, Unknown) else found) if is_copy(path))


def left_behind(world: World) -> Iterator[str]:
    if isinstance(world.leftovers, Unknown):
        yield f"what is left on the nodes' hosts was not seen: {world.leftovers.reason}"
        return
    for node in world.inventory.nodes:
        found = world.leftovers.get(node.id, Unknown("it was not looked at"))
        where = f"on {node.host} (node {int(node.id)})"
        if isinstance(found, Unknown):
            yield f"what is left {where} was not seen: {found.reason}"
        elif found:
            yield f"left {where}, with secrets in it: {', '.join(found)}"
    if any(world.leftovers.values()):
        yield "the run's folder holds copies of these files and of ZooKeeper's tree, with secrets in them, too"


@dataclass(frozen=True, slots=True)
class ProveFinal(BaseStep):
    kind = "prove-final"
    stage_is = Stage.CLEANUP
    titled = "prove every replica by metadata and disk, and every file free of ZooKeeper"
    proof_needs = LOOK | {Need.SPARK_LEDGER, Need.UNITS, Need.LEFTOVERS}
    proof = "every replica VERIFIED; no zookeeper.* key in any file; no stale registration but accepted ones"

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            gates.state_is(world, ZkMigrationState.POST_MIGRATION),
            gates.all_brokers_kraft(world),
            _only_ours(world),
            _no_zookeeper_keys(world),
            gates.ledger_is(world, ReplicaState.VERIFIED),
            gates.quorum_healthy(world),
            gates.replicas_full(world),
        )
        lines = () if isinstance(world.ledger, Unknown) else (f"{len(world.ledger.rows)} replicas VERIFIED",)
        left = [f"the registration of controller {node}, {ACCEPTED_GHOST}" for node in sorted(_accepted_ghosts(world))]
        return gates.as_outcome(found, *lines, "no zookeeper.* key in any file", left=(*left, *left_behind(world)))


def _only_ours(world: World) -> Readiness:
    """No registration of a node that is not in the inventory: such ones hold up later upgrades.

    No command before Kafka 4.4 removes a controller's: one that the playbook accepts, and that has no vote, may stay.
    """
    if isinstance(world.kraft, Unknown):
        return world.kraft
    accepted = _accepted_ghosts(world)
    known = {int(node.id) for node in world.inventory.nodes}
    strangers = sorted({int(node) for node in (*world.kraft.brokers, *world.kraft.controllers)} - known - accepted)
    if strangers:
        return Refused(f"the metadata keeps registrations of {strangers}, which are not in the inventory", (GHOST,))
    if not accepted:
        return Ready()
    quorum = Unknown("nobody was asked") if isinstance(world.live, Unknown) else world.live.quorum
    if isinstance(quorum, Unknown):
        return Unknown(f"whether controllers {sorted(accepted)} vote: {quorum.reason}")
    voting = sorted(accepted & {int(voter.id) for voter in quorum.voters})
    return Refused(f"controllers {voting} are accepted as gone, and are voters", (GHOST,)) if voting else Ready()


def _accepted_ghosts(world: World) -> set[int]:
    """Controllers, and no brokers, of which a registration may stay."""
    if isinstance(world.kraft, Unknown):
        return set()
    known = {int(node.id) for node in world.inventory.nodes} | {int(node) for node in world.kraft.brokers}
    gone = {int(node) for node in world.kraft.controllers} - known
    return {node for node in gone if accepted_ghost(world, node)}


@requires("every process runs with its current file")
def _run_with_them(world: World) -> Readiness:
    files = [(int(node.id), facts.config(world, node.id)) for node in world.inventory.nodes]
    return gates.first(
        *(gates.runs_with(world, node, file.sha256) for node, file in files if isinstance(file, ConfigFile))
    )


@requires("no file of a node has a key of ZooKeeper")
def _no_zookeeper_keys(world: World) -> Readiness:
    for node in world.inventory.nodes:
        file = facts.config(world, node.id)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of node {int(node.id)} cannot be read")
        left = sorted(key for key in file.values if key.startswith("zookeeper."))
        if left:
            return Refused(f"{file.path} still has {', '.join(left)}")
    return Ready()
