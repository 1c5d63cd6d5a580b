"""Two rolls back: a KRaft broker to migration mode while the controllers are up, and out of migration mode after them.

Files are restored from copies that were kept and are proven to be the ones (`restore`); a broker that is down has its
turn first, and comes back in the mode it goes to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate.hosts.meta_properties import META_PROPERTIES, as_version_0
from migrate.hosts.properties import diff
from migrate.model.broker_modes import Mode
from migrate.model.ids import NodeId
from migrate.model.outcome import NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, Predicted
from migrate.model.views import HostFile, MetaMissing, MetaProperties
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW
from migrate.steps.gates import Gate, gate, requires
from migrate.steps.restore import Restored, to_migration, to_zookeeper
from migrate.steps.roll import ROLLED, Roll
from migrate.steps.rollback import gates as back

LOOK = frozenset(
    {
        *(Need.ZOOKEEPER, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.BACKUPS, Need.CONTROLLER_NAMES),
        Need.LISTENERS,
    }
)


@dataclass(frozen=True, slots=True)
class RollBackToMigrationMode(Roll):
    """A KRaft broker back to migration mode: it registers again as a migrating one, and has its session again."""

    kind = "roll-back-to-migration-mode"
    name = "back-{broker}"
    titled = "roll broker {broker} back to migration mode"
    stage_is = Stage.KRAFT_MODE
    goal = Mode.MIGRATION
    goes_back = True
    needs = ROLLED | {Need.BACKUPS}
    proof_needs = needs
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "roll it forward to KRaft mode again: `kraft-migrate plan`"
    proof = "its new registration says migrating, it is in /brokers/ids, LogDirs equal its disks, every ISR is full"

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return to_migration(world, self.broker, raw)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.state_is, ZkMigrationState.MIGRATION),
            gate(back.quorum_leads),
            gate(gates.all_writable),
            self.has_copy(),
            gate(gates.disks_healthy, self.broker),
            gate(_identified, self.broker),
            gate(gates.stop_is_accepted, self.broker),
            gate(back.whole_before, self.broker),
            gate(back.session_ended, self.broker),
        )

    def start_gates(self) -> tuple[Gate, ...]:
        return (
            gate(gates.state_is, ZkMigrationState.MIGRATION),
            gate(back.quorum_leads),
            self.has_copy(),
            gate(gates.disks_healthy, self.broker),
            gate(_identified, self.broker),
            gate(back.session_ended, self.broker),
        )

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self.process_lives(world)
        yield self.registered(world, migrating=True)
        yield _has_session(world, self.broker)
        yield back.whole_after(world, self.broker)

    def evidence(self, world: World) -> tuple[str, ...]:
        return f"broker {self.broker} is registered as migrating, and in /brokers/ids", "every ISR is full"


@dataclass(frozen=True, slots=True)
class RollToZookeeperMode(Roll):
    kind = "roll-to-zookeeper-mode"
    name = "back-{broker}"
    titled = "roll broker {broker} out of migration mode"
    stage_is = Stage.MIGRATION_MODE
    goal = Mode.ZOOKEEPER
    goes_back = True
    needs = LOOK
    proof_needs = LOOK
    waits_for = NARROW | {Need.ZOOKEEPER}
    undo = "migrate again: `kraft-migrate plan`"
    proof = "it runs with its file of ZooKeeper mode, with a new session in ZooKeeper; every ISR is full"

    def file(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        return to_zookeeper(world, self.broker, raw)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        *edits, restart = Roll.actions(self, world, before)
        rewrites = (
            Action("~", f"broker {self.broker}", f"rewrite {meta.path}", tuple(diff(meta.raw, new, meta.path)))
            for meta, new in _rewrites(world, self.broker)
        )
        return (*edits, *rewrites, restart)

    def own_gates(self) -> tuple[Gate, ...]:
        stop = gate(gates.stop_is_accepted, self.broker), gate(back.whole_before, self.broker)
        return (*self.start_gates(), *stop)

    def start_gates(self) -> tuple[Gate, ...]:
        return (
            gate(back.controllers_gone),
            gate(back.zookeeper_controls),
            self.has_copy(),
            gate(_metas_trusted, self.broker),
            gate(_identified, self.broker),
            gate(back.controller_named),
            gate(back.session_ended, self.broker),
        )

    def when_stopped(self, world: World, effects: Effects) -> None:
        rewrites = tuple(_rewrites(world, self.broker))
        effects.backup_files(NodeId(self.broker), [meta.path for meta, _ in rewrites])
        for meta, new in rewrites:
            effects.write_config(NodeId(self.broker), meta.path, new, meta.sha256)

    def identities(self, world: World) -> dict[str, MetaProperties]:
        """As this step leaves them: those of version 1 have version 0.  A directory that had failed is not asked for.

        A broker in ZooKeeper mode continues without such a directory, and makes none of its replicas anew
        (`LogManager.getOrCreateLog`).
        """
        found = facts.disks(world, self.broker)
        failed = () if isinstance(found, Unknown) else {entry.path for entry in found.directories if entry.problem}
        changed = {meta.path for meta, _ in _rewrites(world, self.broker)}
        return {
            path: replace(meta, version=0) if f"{path}/{META_PROPERTIES}" in changed else meta
            for path, meta in Roll.identities(self, world).items()
            if path not in failed
        }

    def proofs(self, world: World) -> Iterator[Readiness]:
        yield self.process_lives(world)
        yield self.new_session(world)
        yield back.zookeeper_controls(world)
        yield back.whole_after(world, self.broker)

    def evidence(self, world: World) -> tuple[str, ...]:
        return f"broker {self.broker} runs with its file of ZooKeeper mode", "every ISR is full"


def _rewrites(world: World, broker: int) -> Iterator[tuple[HostFile, bytes]]:
    if isinstance(world.backups, Unknown):
        return
    kept = world.backups.get(NodeId(broker))
    if kept is None or isinstance(kept, Unknown):
        return
    for meta in kept.metas:
        new = as_version_0(meta.raw)
        if new is not None:
            yield meta, new


@requires("every meta.properties of broker {0} was read")
def _metas_trusted(world: World, broker: int) -> Readiness:
    """Each meta.properties of the broker was read: one of version 1 must be rewritten before the start."""
    if isinstance(world.backups, Unknown):
        return world.backups
    kept = world.backups.get(NodeId(broker), Unknown(f"the files of broker {broker} were not looked at"))
    return kept if isinstance(kept, Unknown) else Ready()


@requires("every log directory of broker {0} that works has its meta.properties")
def _identified(world: World, broker: int) -> Readiness:
    """No log directory that works lacks its meta.properties: in either mode a start takes such a folder for a new disk.

    Replicas that lie there alone would be created again, empty.
    """
    disks = facts.disks(world, broker)
    if isinstance(disks, Unknown):
        return disks
    bare = [entry.path for entry in disks.directories if not entry.problem and isinstance(entry.meta, MetaMissing)]
    if not bare:
        return Ready()
    return Refused(
        f"broker {broker} has no meta.properties in {', '.join(bare)}: emptied, new, or not mounted. Mount the disk, "
        "or put the file there that `status` prints; then run the same command again",
        ("B-DIR-24",),
    )


def _has_session(world: World, broker: int) -> Readiness:
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    if NodeId(broker) in world.zookeeper.brokers:
        return Ready()
    return NotYet(f"broker {broker} to be in /brokers/ids", f"broker {broker}", back.AFTER)
