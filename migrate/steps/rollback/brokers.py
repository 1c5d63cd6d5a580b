"""Two rolls back: a KRaft broker to migration mode while the controllers are up, and out of migration mode after them.

Files are restored from copies that were kept and are proven to be the ones (`restore`); a broker that is down has its
turn first, and comes back in the mode it goes to.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

from migrate.hosts.meta_properties import META_PROPERTIES, as_version_0
from migrate.hosts.properties import diff
from migrate.model.broker_modes import Mode, position_of
from migrate.model.ids import NodeId
from migrate.model.outcome import NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, Predicted, Progress
from migrate.model.views import ConfigFile, HostFile, MetaMissing, MetaProperties
from migrate.model.world import Need, World
from migrate.steps import facts, gates, named_gates
from migrate.steps.base import NARROW
from migrate.steps.named_gates import Gate, all_open
from migrate.steps.roll_broker import ROLLED, RollStep
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.restore import Restored, bytes_of, restorable, to_migration, to_zookeeper

LOOK = frozenset(
    {
        *(Need.ZOOKEEPER, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.BACKUPS, Need.CONTROLLER_NAMES),
        Need.LISTENERS,
    }
)


@dataclass(frozen=True, slots=True)
class RollToFile(RollStep):
    """A roll to the file that `restored` finds; where it finds none, nothing is planned and nothing done."""

    goes_back = True

    @abstractmethod
    def restored(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        """A proven copy's file, or what is made of the file that is there."""

    def target(self, world: World, raw: bytes) -> bytes:
        return bytes_of(self.restored(world, raw), self.broker)

    def restorable(self, world: World) -> Readiness:
        file = facts.config(world, self.broker)
        if not isinstance(file, ConfigFile):
            return Unknown(f"the file of broker {self.broker} cannot be read")
        return restorable(self.restored(world, file.raw))

    def progress(self, world: World) -> Progress:
        """As any roll; without a copy that is proven it cannot be determined."""
        gate = self.restorable(world)
        if not isinstance(gate, Ready):
            return Unknown(str(getattr(gate, "reason", gate)))
        return RollStep.progress(self, world)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        where, path, actions = f"broker {self.broker}", self.node(world).config, []
        raw = facts.predicted_config(world, before, self.broker)
        found = None if raw is None else self.restored(world, raw)
        if raw is None or not isinstance(found, Restored):
            actions.append(Action("?", where, f"{path} cannot be restored"))
        elif found.raw != raw:
            lines = tuple(diff(raw, found.raw, path))
            name = facts.file_name(world, self.broker)
            how = f"restore {name} from {found.source}" if found.source else f"edit {name}"
            actions.append(Action("~", where, how, lines))
            if found.note:
                actions.append(Action("=", where, f"{path} was {found.note}", found.kept))
        down = back.stopped(world, [self.broker])
        if not isinstance(down, Unknown) and down and NodeId(self.broker) not in before.configs:
            restart = "start (it is down): write the file, start"
        else:
            why = "" if NodeId(self.broker) in before.configs else position_of(world, self.broker).contradiction
            restart = "restart: stop, write the file, start" + (f" ({why})" if why else "")
        return (*actions, Action(">", where, restart))


@dataclass(frozen=True, slots=True)
class RollBack(RollToFile):
    """What both rolls back share: the broker's file becomes what a proven copy says."""

    name = "back-{broker}"
    waits_for = NARROW | {Need.ZOOKEEPER}

    def restored(self, world: World, raw: bytes) -> Restored | Refused | Unknown:
        find = to_migration if self.goal is Mode.MIGRATION else to_zookeeper
        return find(world, self.broker, raw)

    def has_copy(self) -> Gate:
        return Gate(f"a copy of broker {self.broker}'s file for {self.goal} mode is proven", self.restorable)


@dataclass(frozen=True, slots=True)
class RollBackToMigrationMode(RollBack):
    """A KRaft broker back to migration mode: it registers again as a migrating one, and has its session again."""

    kind = "roll-back-to-migration-mode"
    titled = "roll broker {broker} back to migration mode"
    stage_is = Stage.KRAFT_MODE
    goal = Mode.MIGRATION
    needs = ROLLED | {Need.BACKUPS}
    proof_needs = needs
    undo = "roll it forward to KRaft mode again: `kraft-migrate plan`"
    proof = "its new registration says migrating, it is in /brokers/ids, LogDirs equal its disks, every ISR is full"

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            named_gates.state_is(ZkMigrationState.MIGRATION),
            Gate(
                "a majority keeps up with the quorum's leader, and every controller that answers has the flag",
                back.quorum_leads,
            ),
            Gate("dual write can write all of the metadata to ZooKeeper", gates.all_writable),
            self.has_copy(),
            named_gates.disks_healthy(self.broker),
            _is_identified(self.broker),
            named_gates.stop_is_accepted(self.broker),
            back.whole_before_stop(self.broker),
            back.session_is_over(self.broker),
        )

    def resume(self, world: World) -> Readiness:
        return gates.first(
            gates.state_is(world, ZkMigrationState.MIGRATION),
            back.quorum_leads(world),
            self.restorable(world),
            gates.disks_healthy(world, self.broker),
            _identified(world, self.broker),
            back.session_ended(world, self.broker),
        )

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            self.process_lives(world),
            self.registered(world, migrating=True),
            _has_session(world, self.broker),
            back.whole_after(world, self.broker),
        )
        return self.proven(
            world, found, f"broker {self.broker} is registered as migrating, and in /brokers/ids", "every ISR is full"
        )


@dataclass(frozen=True, slots=True)
class RollToZookeeperMode(RollBack):
    kind = "roll-to-zookeeper-mode"
    titled = "roll broker {broker} out of migration mode"
    stage_is = Stage.MIGRATION_MODE
    goal = Mode.ZOOKEEPER
    needs = LOOK
    proof_needs = LOOK
    undo = "migrate again: `kraft-migrate plan`"
    proof = "it runs with its file of ZooKeeper mode, with a new session in ZooKeeper; every ISR is full"

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        *edits, restart = RollBack.actions(self, world, before)
        rewrites = (
            Action("~", f"broker {self.broker}", f"rewrite {meta.path}", tuple(diff(meta.raw, new, meta.path)))
            for meta, new in _rewrites(world, self.broker)
        )
        return (*edits, *rewrites, restart)

    def own_gates(self) -> tuple[Gate, ...]:
        return (
            *self._start_gates(),
            named_gates.stop_is_accepted(self.broker),
            back.whole_before_stop(self.broker),
        )

    def resume(self, world: World) -> Readiness:
        return all_open(self._start_gates(), world)

    def _start_gates(self) -> tuple[Gate, ...]:
        return (
            back.controllers_are_gone(),
            back.controls(),
            self.has_copy(),
            Gate(
                f"every meta.properties of broker {self.broker} was read",
                lambda world: _metas_trusted(world, self.broker),
            ),
            _is_identified(self.broker),
            back.every_broker_names_it(),
            back.session_is_over(self.broker),
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
            for path, meta in RollStep.identities(self, world).items()
            if path not in failed
        }

    def verify(self, world: World) -> Outcome:
        found = gates.first(
            self.process_lives(world),
            self.new_session(world),
            back.zookeeper_controls(world),
            back.whole_after(world, self.broker),
        )
        return self.proven(
            world, found, f"broker {self.broker} runs with its file of ZooKeeper mode", "every ISR is full"
        )


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


def _metas_trusted(world: World, broker: int) -> Readiness:
    """Each meta.properties of the broker was read: one of version 1 must be rewritten before the start."""
    if isinstance(world.backups, Unknown):
        return world.backups
    kept = world.backups.get(NodeId(broker), Unknown(f"the files of broker {broker} were not looked at"))
    return kept if isinstance(kept, Unknown) else Ready()


def _is_identified(broker: int) -> Gate:
    return Gate(
        f"every log directory of broker {broker} that works has its meta.properties",
        lambda world: _identified(world, broker),
    )


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
