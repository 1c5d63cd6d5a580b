"""Where a cluster stands, decided from what the cluster itself says (pure)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from migrate.model.broker_modes import controller_flags, positions
from migrate.model.config_keys import QuorumKind
from migrate.model.findings import ranges
from migrate.model.outcome import Unknown
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.views import ControllerZnode, KraftView, MigrationZnode, NullZnode, ZookeeperView
from migrate.model.world import World

# facts of World.facts: the cluster itself has no trace of these proofs
HYBRID_PROVEN: Final = "proven:hybrid"
CLEANUP_PROVEN: Final = "proven:cleanup"

AFTERWARDS_PAGE: Final = "docs/after-the-migration.md"  # what comes once that is proven


@dataclass(frozen=True, slots=True)
class Detected:
    """The last stage whose effects are complete, whether the next one is half done, and what says so."""

    stage: Stage
    half: Stage | None
    how: str

    @property
    def words(self) -> str:
        return self.stage.label if self.half is None else f"{self.stage.label}, {self.half.label} half done"


def detect(world: World) -> Detected | Unknown:
    """The stage by the metadata's state and the brokers' registrations; by ZooKeeper where no controller answers."""
    if not isinstance(world.kraft, Unknown):
        return _by_metadata(world, world.kraft)
    if isinstance(world.zookeeper, Unknown):
        return Unknown(
            f"neither ZooKeeper ({world.zookeeper.reason}) nor the metadata ({world.kraft.reason}) can be read"
        )
    return _by_zookeeper(world.zookeeper, world.kraft)


def by_cluster(world: World) -> Detected | Unknown:
    """The same by the cluster alone: what only journals prove is told to people, and no plan rests on it."""
    proofs = (HYBRID_PROVEN, CLEANUP_PROVEN)
    return detect(replace(world, facts={key: value for key, value in world.facts.items() if key not in proofs}))


def quorum_kind(world: World) -> QuorumKind | Unknown:
    """The kind of the quorum that runs, by the control records of its metadata or the directory ids of its voters.

    Never by the finalized feature kraft.version: 3.9 sets that for a static quorum, too, and drops it for a dynamic
    one, without any effect (KAFKA-18979; seen on 3.9.2).
    """
    if not isinstance(world.kraft, Unknown) and world.kraft.offset >= 0:
        return QuorumKind.DYNAMIC if world.kraft.kraft_version else QuorumKind.STATIC
    quorum = world.live if isinstance(world.live, Unknown) else world.live.quorum
    if not isinstance(quorum, Unknown) and any(voter.directory for voter in quorum.voters):
        return QuorumKind.DYNAMIC
    return world.kraft if isinstance(world.kraft, Unknown) else Unknown("the metadata is empty")


def _by_zookeeper(view: ZookeeperView, kraft: Unknown) -> Detected | Unknown:
    znode, owner = view.migration, view.controller
    if isinstance(znode, NullZnode) or view.copy_note is not None:
        return Unknown(f"/migration is there ({znode}), but no controller's metadata can be read: {kraft.reason}")
    if isinstance(znode, MigrationZnode):
        return Unknown(f"/migration waits, so controllers were started, but none answers: {kraft.reason}")
    blind = f"no controller's metadata can be read: {kraft.reason}"
    for path, entry in (("/migration", znode), ("/controller", owner)):
        if isinstance(entry, Unknown):
            return Unknown(f"{path} is not known ({entry.reason}), and {blind}")
    if isinstance(owner, ControllerZnode) and not owner.ephemeral:
        return Unknown(f"/controller is KRaft controller {owner.id}'s, and {blind}")
    return Detected(
        Stage.ASSESS, None, f"{len(view.brokers)} brokers in ZooKeeper mode, no /migration, no controller answers"
    )


def _by_metadata(world: World, view: KraftView) -> Detected | Unknown:
    listed = {int(node.id) for node in world.inventory.brokers}
    migrating = {int(node) for node, entry in view.brokers.items() if entry.migrating}
    kraft = {int(node) for node, entry in view.brokers.items() if not entry.migrating}
    said = f"ZkMigrationState={view.migration_state.name} at offset {view.offset}; "
    match view.migration_state:
        case ZkMigrationState.PRE_MIGRATION:
            how = said + f"{len(migrating)} of {len(listed)} brokers registered as migrating"
            return Detected(Stage.CONTROLLERS, Stage.MIGRATION_MODE if migrating else None, how)
        case ZkMigrationState.MIGRATION:
            how = said + f"{len(kraft)} of {len(listed)} brokers in KRaft mode"
            if not kraft:
                proven = world.facts.get(HYBRID_PROVEN)
                if proven is not None:
                    return Detected(Stage.HYBRID, None, f"{how}; hybrid was proven by {proven}")
                return Detected(Stage.COPY, None, how)
            put_back = [one.contradiction for one in positions(world) if one.contradiction]
            if listed <= kraft and not put_back:
                return Detected(Stage.KRAFT_MODE, None, how)
            return Detected(Stage.HYBRID, Stage.KRAFT_MODE, "; ".join([how, *put_back]))
        case ZkMigrationState.POST_MIGRATION:
            # a controller that does not answer may be the half-done one: it does not count as done
            flags = controller_flags(world)
            flagged = sorted(flag.node for flag in flags if flag.answer is True)
            silent = sorted(flag.node for flag in flags if isinstance(flag.answer, Unknown))
            parts = {"controllers that answer with the flag": flagged, "controllers that do not answer": silent}
            kept = [f"{what}: {ranges(nodes)}" for what, nodes in parts.items() if nodes]
            how = said + ("; ".join(kept) or "no controller has the flag")
            if migrating:
                early = f"finalized while brokers {sorted(migrating)} are in migration mode: roll them forward to KRaft"
                return Detected(Stage.HYBRID, Stage.KRAFT_MODE, said + early)
            if flagged or silent:
                return Detected(Stage.SOAK, Stage.FINALIZE, how)
            cleaned = world.facts.get(CLEANUP_PROVEN)
            if cleaned is not None:
                return Detected(Stage.CLEANUP, None, f"{how}; cleanup was proven by {cleaned}")
            return Detected(Stage.FINALIZE, None, how)
        case _ if not world.inventory.zookeeper:
            return Unknown(
                said + "the inventory names no ZooKeeper, so there is nothing to migrate; more log directories are a "
                "DirectoryPlaybook's business"
            )
        case _:
            return Unknown(said + "controllers that were started without the flag cannot migrate (B-MIG-02)")
