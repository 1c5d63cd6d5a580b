"""Topics that clients create and delete while a run looks at the cluster: only what lasts is a fault (pure).

Views are read one after the other, so a topic in creation or deletion looks for a moment like a lasting fault: no
folder yet, a folder that nothing assigns, no directory in the metadata.  A gate waits for the objects that it saw in
the first look of its wait; the engine hands those that were there in every look back as a fact.  What stays ends the
wait by its name.  What came later is not waited for where it does no harm, or a busy cluster would never be ready.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from migrate import checks
from migrate.model.findings import Finding
from migrate.model.ledger import LedgerRow, ReplicaState
from migrate.model.new_directories import alone
from migrate.model.outcome import NotYet, Readiness, Ready, Unknown
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MetaProperties, ZookeeperView
from migrate.model.words import plural
from migrate.model.world import World
from migrate.steps import facts

PASSING: Final = "passing:"  # begins the key of a fact: the objects of one gate that were there in every look so far
NEW_IS_HARMLESS: Final = frozenset({"B-ZKN-06", "B-DIR-08", "B-DIR-21"})  # rows of B-DIR-08: the ledger's gate decides
REASSIGNED: Final = "B-ZKN-07"
LEADS: Final = (ZkMigrationState.MIGRATION, ZkMigrationState.POST_MIGRATION)  # the metadata does, by now
CLIENTS: Final = "whoever creates or deletes those topics, and the controller"


def leading(world: World) -> ZookeeperView | KraftView | Unknown:
    """The view whose partitions hold: the metadata once it leads, ZooKeeper before."""
    if not isinstance(world.kraft, Unknown) and (
        world.kraft.migration_state in LEADS or alone(world.kraft, world.inventory.zookeeper)
    ):
        return world.kraft
    return world.zookeeper


def reassigned(world: World) -> tuple[str, ...]:
    """The partitions that are being reassigned; none where that is unknown."""
    view = leading(world)
    return () if isinstance(view, Unknown) else tuple(view.partitions.reassigned())


def reassignments(partitions: Sequence[str]) -> NotYet:
    """The wait for these, whose replicas another tool is moving between brokers."""
    whose = "its" if len(partitions) == 1 else "their"
    return NotYet(
        f"{plural(len(partitions), 'partition')} to end {whose} reassignment: {', '.join(partitions[:5])}"
        f"{_more(partitions)}",
        "whoever moves those replicas (kafka-reassign-partitions, Cruise Control)",
        "let it end, or cancel it; keep such tools stopped until finalize, and restart no broker for it",
        progress=",".join(partitions),
    )


def findings_ended(world: World, blockers: Sequence[Finding]) -> Readiness:
    """Reassignments have all ended, and so has what else the wait's first look found.

    A deletion that has just begun is done again after a roll, and a folder that nothing assigns is of no topic.
    """
    moving = [finding.about for finding in blockers if finding.code == REASSIGNED]
    if moving:
        return reassignments([name.removeprefix("partition ") for name in moving])
    told = {f"{finding.code} {finding.about}": finding.message for finding in blockers}
    harmless = {f"{finding.code} {finding.about}" for finding in blockers if finding.code in NEW_IS_HARMLESS}
    next_step = f"nothing, where topics are being created or deleted; if it lasts: {blockers[0].fix}"
    return _ended(world, "findings", told, harmless, next_step)


def rows_ended(world: World, rows: Iterable[LedgerRow], broker: int | None = None) -> Readiness:
    """The same of replicas that `comes_and_goes`, of one broker or of all.

    A replica without a directory in the metadata may be of a new topic: its broker reports it by itself.
    """
    told, harmless = dict[str, str](), set[str]()
    for row in rows:
        name = f"{row.topic}-{row.partition} ({row.topic_id}) on broker {row.broker}"
        told[name] = f"{row.state.value} (on disk {row.on_disk or 'nowhere'}, in the metadata {row.in_metadata or '-'})"
        if row.state is ReplicaState.UNASSIGNED:
            harmless.add(name)
    gate = "replicas" if broker is None else f"replicas of broker {broker}"
    return _ended(
        world, gate, told, harmless, "nothing, where topics are being created or deleted; if it lasts, see `status`"
    )


def comes_and_goes(world: World, row: LedgerRow) -> bool:
    """Can a replica of a topic in creation or deletion look like this?  None that a sick disk explains."""
    match row.state:
        case ReplicaState.NOT_ON_DISK:
            disks = facts.disks(world, row.broker)
            return not isinstance(disks, Unknown) and all(
                not directory.problem and isinstance(directory.meta, MetaProperties) for directory in disks.directories
            )
        case ReplicaState.UNASSIGNED:
            return True
        case ReplicaState.MISMATCH:  # one of the two lists does not name it
            return not row.in_metadata
        case _:
            return False


def may_end(finding: Finding) -> bool:
    if finding.code == "B-DIR-08":
        return finding.evidence in (ReplicaState.NOT_ON_DISK, ReplicaState.UNASSIGNED)
    return finding.code in checks.COMES_AND_GOES or finding.code == REASSIGNED


def _ended(world: World, gate: str, told: Mapping[str, str], harmless: Container[str], next_step: str) -> Readiness:
    """`told` says what is wrong with each object of this look; of a `harmless` kind, a new one does not count."""
    before = world.facts.get(PASSING + gate)
    lasting = frozenset(told) & frozenset(before.split("\n")) if before else frozenset(told)
    waited = lasting | {name for name in told if name not in harmless}
    if not waited:
        return Ready()
    names = sorted(lasting or waited)
    shown = "; ".join(f"{name}: {told[name]}" for name in names[:5])
    return NotYet(
        f"what looks like topics in creation or deletion to end: {shown}{_more(names)}",
        CLIENTS,
        next_step,
        progress=str(len(names)),
        gate=gate,
        objects=lasting,
    )


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 5} more)" if len(names) > 5 else ""
