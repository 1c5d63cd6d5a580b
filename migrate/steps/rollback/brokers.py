"""Two rolls back: a KRaft broker to migration mode while the controllers are up, and out of migration mode after them.

Files are restored from copies that were kept and are proven to be the ones (`restore`); a broker that is down has its
turn first, and comes back in the mode it goes to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from migrate.hosts.meta_properties import META_PROPERTIES, as_version_0
from migrate.hosts.properties import diff
from migrate.model.broker_modes import Mode, position_of
from migrate.model.ids import NodeId
from migrate.model.outcome import NotYet, Outcome, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Action, Predicted, Progress
from migrate.model.views import BrokerDisks, ConfigFile, HostFile, MetaMissing, MetaProperties, Running
from migrate.model.world import Need, World
from migrate.steps import facts, gates
from migrate.steps.base import NARROW
from migrate.steps.roll_broker import SEEN, RollStep, ended
from migrate.steps.rollback import gates as back
from migrate.steps.rollback.restore import Restored, bytes_of, restorable, to_migration, to_zookeeper

LOOK = frozenset(
    {Need.ZOOKEEPER, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.BACKUPS, Need.CONTROLLER_NAMES}
)


@dataclass(frozen=True, slots=True)
class RollBackToMigrationMode(RollStep):
    """A KRaft broker back to migration mode: it registers again as a migrating one, and has its session again."""

    kind: ClassVar[str] = "roll-back-to-migration-mode"
    stage_is: ClassVar[Stage] = Stage.KRAFT_MODE
    goal: ClassVar[Mode] = Mode.MIGRATION
    needs: ClassVar[frozenset[Need]] = SEEN | {Need.BACKUPS}
    proof_needs: ClassVar[frozenset[Need]] = SEEN | {Need.BACKUPS}
    waits_for: ClassVar[frozenset[Need]] = NARROW | {Need.ZOOKEEPER}
    undo: ClassVar[str] = "roll it forward to KRaft mode again: `kraft-migrate plan`"
    proof: ClassVar[str] = (
        "its new registration says migrating, it stands in /brokers/ids, LogDirs equal its disks, every ISR is full"
    )

    @property
    def id(self) -> str:
        """`kraft-mode/back-1`."""
        return f"{self.stage.label}/back-{self.broker}"

    @property
    def title(self) -> str:
        """One line for a person."""
        return f"roll broker {self.broker} back to migration mode"

    def target(self, world: World, raw: bytes) -> bytes:
        """The file of migration mode, from the copies; RestoreRefused where none is proven."""
        return bytes_of(to_migration(world, self.broker, raw), self.broker)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """Where the file comes from, its change, the restart."""
        return tuple(_actions(self, world, before))

    def progress(self, world: World) -> Progress:
        """As any roll; without a copy that is proven it cannot be told."""
        return _progress(self, world)

    def check(self, world: World) -> Readiness:
        """The controllers lead with the flag, nothing else is down, the file is restorable."""
        return gates.first(
            gates.state_is(world, ZkMigrationState.MIGRATION),
            back.quorum_leads(world),
            gates.all_writable(world),
            _restorable(self, world),
            gates.disks_healthy(world, self.broker),
            _identified(world, self.broker),
            gates.stop_is_accepted(world, self.broker),
            back.whole_before(world, self.broker),
            back.session_ended(world, self.broker),
        )

    def resume(self, world: World) -> Readiness:
        """The same, but for what its own stop took away."""
        return gates.first(
            gates.state_is(world, ZkMigrationState.MIGRATION),
            back.quorum_leads(world),
            _restorable(self, world),
            gates.disks_healthy(world, self.broker),
            _identified(world, self.broker),
            back.session_ended(world, self.broker),
        )

    def verify(self, world: World) -> Outcome:
        """Registered as migrating, in ZooKeeper's list, everything whole."""
        found = gates.first(
            self.process_lives(world),
            self.registered(world, migrating=True),
            _has_session(world, self.broker),
            back.whole_after(world, self.broker),
        )
        return gates.as_outcome(
            found, f"broker {self.broker} is registered as migrating, and in /brokers/ids", "every ISR is full"
        )


@dataclass(frozen=True, slots=True)
class RollToZookeeperMode(RollStep):
    """Out of migration mode: the file of ZooKeeper mode, and meta.properties that ZooKeeper mode takes."""

    kind: ClassVar[str] = "roll-to-zookeeper-mode"
    stage_is: ClassVar[Stage] = Stage.MIGRATION_MODE
    goal: ClassVar[Mode] = Mode.ZOOKEEPER
    needs: ClassVar[frozenset[Need]] = LOOK
    proof_needs: ClassVar[frozenset[Need]] = LOOK
    waits_for: ClassVar[frozenset[Need]] = NARROW | {Need.ZOOKEEPER}
    undo: ClassVar[str] = "migrate again: `kraft-migrate plan`"
    proof: ClassVar[str] = "it runs with its file of ZooKeeper mode, with a new session in ZooKeeper; every ISR is full"

    @property
    def id(self) -> str:
        """`migration-mode/back-1`."""
        return f"{self.stage.label}/back-{self.broker}"

    @property
    def title(self) -> str:
        """One line for a person."""
        return f"roll broker {self.broker} out of migration mode"

    def target(self, world: World, raw: bytes) -> bytes:
        """The file of before the migration, from the copies; RestoreRefused where none is proven."""
        return bytes_of(to_zookeeper(world, self.broker, raw), self.broker)

    def actions(self, world: World, before: Predicted) -> tuple[Action, ...]:
        """Where the file comes from, its change, what is rewritten of meta.properties, the restart."""
        *edits, restart = _actions(self, world, before)
        rewrites = (
            Action("~", f"broker {self.broker}", f"rewrite {meta.path}", tuple(diff(meta.raw, new, meta.path)))
            for meta, new in _rewrites(world, self.broker)
        )
        return (*edits, *rewrites, restart)

    def expects(self, world: World, before: Predicted) -> Mapping[str, str]:
        """The file's hash, the broker's mode, its session."""
        after = self.predict(world, before).configs.get(NodeId(self.broker))
        found = {f"mode:{self.broker}": self.goal, f"session:{self.broker}": "yes"}
        return found if after is None else {**found, f"config:{self.broker}": facts.sha256(after)}

    def progress(self, world: World) -> Progress:
        """As any roll; without a copy that is proven it cannot be told."""
        return _progress(self, world)

    def check(self, world: World) -> Readiness:
        """No controller lives, a broker owns /controller and every broker says so; nothing else is down."""
        return gates.first(
            self.resume(world), gates.stop_is_accepted(world, self.broker), back.whole_before(world, self.broker)
        )

    def resume(self, world: World) -> Readiness:
        """What must hold whether it runs or not."""
        return gates.first(
            back.controllers_gone(world),
            back.zookeeper_controls(world),
            _restorable(self, world),
            _metas_trusted(world, self.broker),
            _identified(world, self.broker),
            back.controller_named(world),
            back.session_ended(world, self.broker),
        )

    def do(self, world: World, effects: Effects) -> None:
        """Stop, rewrite and write, start: each only where it is missing."""
        file = facts.config(world, self.broker)
        assert isinstance(file, ConfigFile)
        assert not isinstance(world.services, Unknown)
        assert not isinstance(world.zookeeper, Unknown)
        node = NodeId(self.broker)
        old = world.zookeeper.brokers.get(node)
        effects.note(ended(self.id), "none" if old is None else str(old.epoch))
        if isinstance(world.services[node], Running):
            effects.stop(node)
        for meta, new in _rewrites(world, self.broker):
            effects.backup_file(node, meta.path)
            effects.write_config(node, meta.path, new, meta.sha256)
        target = self.target(world, file.raw)
        if target != file.raw:
            effects.write_config(node, file.path, target, file.sha256)
        self.before_start(world, effects)
        effects.start(node)

    def identities(self, world: World) -> dict[str, MetaProperties]:
        """As this step leaves them: those of version 1 have version 0.  A directory that had failed is not asked for.

        A broker in ZooKeeper mode goes on without such a directory, and makes none of its replicas anew
        (`LogManager.getOrCreateLog`).
        """
        disks = {} if isinstance(world.disks, Unknown) else world.disks
        found = disks.get(NodeId(self.broker))
        failed = {entry.path for entry in found.directories if entry.problem} if isinstance(found, BrokerDisks) else ()
        changed = {meta.path for meta, _ in _rewrites(world, self.broker)}
        return {
            path: replace(meta, version=0) if f"{path}/{META_PROPERTIES}" in changed else meta
            for path, meta in RollStep.identities(self, world).items()
            if path not in failed
        }

    def verify(self, world: World) -> Outcome:
        """A new session, the same owner rules, everything whole."""
        found = gates.first(
            self.process_lives(world),
            self._new_session(world),
            back.zookeeper_controls(world),
            back.whole_after(world, self.broker),
        )
        return gates.as_outcome(
            found, f"broker {self.broker} runs with its file of ZooKeeper mode", "every ISR is full"
        )

    def _started_with(self, world: World, started: str | None, sha256: str) -> bool:
        """By the file that it was started with; where nobody knows that one, by its new session."""
        if started is not None:
            return started == sha256
        return ended(self.id) in world.facts and isinstance(self._new_session(world), Ready)

    def _new_session(self, world: World) -> Readiness:
        """Another registration than the one that this step ended."""
        if isinstance(world.zookeeper, Unknown):
            return world.zookeeper
        found = world.zookeeper.brokers.get(NodeId(self.broker))
        if found is None or str(found.epoch) == world.facts.get(ended(self.id)):
            was = "none" if found is None else "the old one"
            return NotYet(
                f"broker {self.broker} to register in /brokers/ids (now: {was})",
                f"broker {self.broker}",
                back.AFTER,
                progress=was,
            )
        return Ready()


Roll = RollBackToMigrationMode | RollToZookeeperMode


def _found(step: Roll, world: World, raw: bytes) -> object:
    wanted = to_migration if isinstance(step, RollBackToMigrationMode) else to_zookeeper
    return wanted(world, step.broker, raw)


def _restorable(step: Roll, world: World) -> Readiness:
    file = facts.config(world, step.broker)
    if not isinstance(file, ConfigFile):
        return Unknown(f"the file of broker {step.broker} cannot be read")
    wanted = to_migration if isinstance(step, RollBackToMigrationMode) else to_zookeeper
    return restorable(wanted(world, step.broker, file.raw))


def _progress(step: Roll, world: World) -> Progress:
    gate = _restorable(step, world)
    if not isinstance(gate, Ready):
        return Unknown(str(getattr(gate, "reason", gate)))
    return RollStep.progress(step, world)


def _actions(step: Roll, world: World, before: Predicted) -> Iterator[Action]:
    where, path = f"broker {step.broker}", step.node(world).config
    raw = facts.predicted_config(world, before, step.broker)
    found = None if raw is None else _found(step, world, raw)
    if raw is None or not isinstance(found, Restored):
        yield Action("?", where, f"{path} cannot be restored")
    elif found.raw != raw:
        yield Action("~", where, f"restore {path} from {found.source}", tuple(diff(raw, found.raw, path)))
        if found.note:
            yield Action("=", where, f"{path} was {found.note}", found.kept)
    down = back.stopped(world, [step.broker])
    if not isinstance(down, Unknown) and down and NodeId(step.broker) not in before.configs:
        yield Action(">", where, "start (it is down): write the file, start")
    else:
        why = "" if NodeId(step.broker) in before.configs else position_of(world, step.broker).contradiction
        yield Action(">", where, "restart: stop, write the file, start" + (f" ({why})" if why else ""))


def _rewrites(world: World, broker: int) -> Iterator[tuple[HostFile, bytes]]:
    """Each meta.properties of version 1, with what it becomes."""
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


def _identified(world: World, broker: int) -> Readiness:
    """No log directory that works lacks its meta.properties: in either mode a start takes such a folder for a new disk.

    Replicas that lie there alone would be made anew, empty.
    """
    disks = world.disks if isinstance(world.disks, Unknown) else world.disks.get(NodeId(broker))
    if not isinstance(disks, BrokerDisks):
        return disks or Unknown(f"the disks of broker {broker} were not looked at")
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
    return NotYet(f"broker {broker} to stand in /brokers/ids", f"broker {broker}", back.AFTER)
