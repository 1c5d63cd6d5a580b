"""Builds the rollback to ZooKeeper mode, from whatever state the cluster is in, half-done ones too (pure).

No stage is remembered and no journal is asked: `migrate.model.broker_modes` says which mode each broker is in, the
znodes say who controls the cluster.  Each part of the way is planned if its effect is not already there, so a rollback
that was cut short anywhere is planned anew as its rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from migrate import checks
from migrate.checks.registry import SHOWN, shown
from migrate.checks.rollback import Start as Begun
from migrate.checks.rollback import origin
from migrate.checks.rollback.readiness import FIND_COPY, USE_COPY
from migrate.errors import NothingToPlan, NotVisible, RestoreRefused, RollbackImpossible
from migrate.model.broker_modes import BrokerPosition, Mode, positions
from migrate.model.causes import cause_of
from migrate.model.detect import Detected, detect
from migrate.model.difference import DifferenceName, names_from_text, names_to_text
from migrate.model.findings import Finding, Severity
from migrate.model.ids import NodeId
from migrate.model.inventory import Playbook
from migrate.model.outcome import NotYet, Ready, Refused, Unknown
from migrate.model.plan import Direction, Plan, PlanKind, PlanSummary
from migrate.model.rollback_readiness import RollbackReadiness, Weight, reason_lines
from migrate.model.stage import Stage
from migrate.model.step import Step
from migrate.model.views import ConfigFile, NoZnode
from migrate.model.world import Need, World
from migrate.plan.build import new_quorum, plan_of, planned_steps
from migrate.plan.summary import summarize
from migrate.steps import facts
from migrate.steps.look import WatchCopy
from migrate.steps.restore import to_the_end
from migrate.steps.rollback import gates
from migrate.steps.rollback.brokers import RollBackToMigrationMode, RollToZookeeperMode
from migrate.steps.rollback.cleanup import ProveZookeeperMode, SetControllerAside, left_over
from migrate.steps.rollback.control import (
    FinishDualWrite,
    HandBackControl,
    KeepZookeeper,
    RaiseStateVersions,
    StopControllers,
    are_behind,
    claims_again,
)
from migrate.steps.rollback.copy_again import RestartInMigrationMode, SetMetadataAside, StopStuckControllers, stuck
from migrate.steps.rollback.flag import PutFlagBack, never_without_flag, without_flag

PLANNED_ON: Final = frozenset(
    {Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.SERVICES, Need.BACKUPS}
) | {Need.METADATA_LOGS, Need.STATES_BEHIND, Need.DIFF}
UNWRITABLE: Final = "B-MIG-14"
# where it stands, and what holds dual write
TOLD: Final = ("B-MIG-01", "I-MIG-08", "W-MIG-09", "W-MIG-10", "W-MIG-12", UNWRITABLE)
DIFFERENT: Final = "B-MIG-06"
GONE: Final = "no rollback is possible"
FORWARD: Final = "what is left is the way forward: `kraft-migrate status` has its next step"


@dataclass(frozen=True, slots=True)
class Start:
    """Where the rollback begins.  Brokers that are down come first in both rolls."""

    kraft: tuple[int, ...]  # brokers that have to leave KRaft mode, then migration mode
    migration: tuple[int, ...]  # brokers that have to leave migration mode, or to prove which file they run with
    zookeeper: tuple[int, ...]
    down: tuple[int, ...]
    controllers: tuple[int, ...]  # controllers that run
    stuck: bool  # killed between the copy and its note in /migration: the driver waits for ever
    how: str

    @property
    def rolls(self) -> int:
        return 2 if self.kraft else int(bool(self.migration))

    @property
    def stage(self) -> Stage:
        if self.kraft:
            return Stage.KRAFT_MODE
        if self.migration:
            return Stage.MIGRATION_MODE
        return Stage.CONTROLLERS if self.controllers else Stage.ASSESS

    @property
    def name(self) -> str:
        if self.stuck:
            return "a copy that is stuck"
        if self.kraft:
            return "half of the second roll" if self.migration or self.zookeeper else "all brokers in KRaft mode"
        if self.migration:
            return "half of the first roll" if self.zookeeper else "all brokers in migration mode"
        return "controllers up" if self.controllers else "ZooKeeper mode"


def start_of(world: World) -> Start:
    """Where the cluster stands, by its files, processes and znodes.

    Raises:
        RollbackImpossible: it is finalized, or a controller without the flag may finalize it at any moment.
        NothingToPlan: something that decides is not visible.
    """
    _refuse_finalized(world)
    if isinstance(world.zookeeper, Unknown):
        raise NothingToPlan(
            f"ZooKeeper cannot be read: {world.zookeeper.reason}",
            next_step="bring ZooKeeper back, then give the same command again",
        )
    found = positions(world)
    for one in found:
        if isinstance(one.file, Unknown):
            raise NothingToPlan(one.file.reason, next_step="make it readable, and a file that this broker starts with")
    known = tuple(map(int, (*facts.brokers(world), *facts.controllers(world))))
    down = gates.stopped(world, known)
    begin = origin(world)
    if isinstance(down, Unknown):
        unseen = f"which processes run is unknown: {down.reason}"
        if begin.start is Begun.NOTHING:
            after = "`kraft-migrate status` says what comes next"
            raise NothingToPlan("nothing was begun: there is nothing to roll back", why=unseen, next_step=after)
        raise NothingToPlan(unseen, next_step="make its process visible, then plan the rollback again")
    if begin.unknown:
        reasons = "; ".join(begin.unknown.values())
        raise NothingToPlan(reasons, next_step="make the controllers' metadata readable, then plan the rollback again")
    rolled = {int(node) for node in begin.changed}
    start = Start(
        kraft=tuple(sorted(map(int, begin.kraft))),
        migration=tuple(sorted(map(int, begin.migration))),
        zookeeper=tuple(sorted(node for node in facts.brokers(world) if node not in rolled)),
        down=tuple(node for node in facts.brokers(world) if node in down),
        controllers=tuple(node for node in facts.controllers(world) if node not in down),
        stuck=stuck(world),
        how=_how(world, found),
    )
    if start.kraft and isinstance(world.kraft, Unknown):
        silent = [node for node in facts.controllers(world) if node not in start.controllers]
        where = f"brokers {list(start.kraft)} are in KRaft mode"
        what = f"{where}, their controllers cannot be read: {world.kraft.reason}"
        if not silent:  # a quorum that elects a leader answers in a moment
            again = "give the same command again; if it stays so, `status` says what they lack"
            raise NotVisible(what, next_step=again)
        again = f"start controllers {silent} again (with the flag, never formatted again), then plan the rollback"
        raise NothingToPlan(what, next_step=again)
    return start


def steps_of(world: World, start: Start, discarded: str = "") -> Iterator[Step]:
    yield from (PutFlagBack(node) for node in without_flag(world))
    order = sorted(facts.brokers(world), key=lambda node: (node not in start.down, node))
    if start.kraft:  # one that is down in migration mode is started first: no other is stopped beside it
        first = (*start.kraft, *(node for node in start.migration if node in start.down))
        yield from (RollBackToMigrationMode(node) for node in order if node in first)
    assert not isinstance(world.zookeeper, Unknown)
    taken_over = world.zookeeper.kraft_owns or not isinstance(world.zookeeper.migration, NoZnode)
    leading = taken_over or claims_again(world)
    due = (*start.kraft, *start.migration, *(node for node in start.zookeeper if node in start.down))
    rolls = [RollToZookeeperMode(node) for node in order if node in due]
    unequal = None if start.controllers else gates.stopped_equal(world, names_from_text(discarded))
    lacks = isinstance(unequal, Refused)
    if isinstance(unequal, Refused) and world.lost_logs:
        # they cannot be started to write what ZooKeeper lacks
        raise NothingToPlan(unequal.reason, next_step=world.give_up)
    if lacks:
        yield FinishDualWrite(discarded)
    if start.controllers or leading or rolls:
        yield KeepZookeeper()
    if start.controllers or lacks:
        yield StopControllers(discarded)
    if start.controllers or leading or (rolls and are_behind(world)):
        yield RaiseStateVersions(discarded)
    if start.controllers or leading or rolls:
        yield HandBackControl(discarded)
    yield from rolls
    yield from (SetControllerAside(node) for node in facts.controllers(world) if left_over(world, node))
    yield ProveZookeeperMode()


def steps_to_copy_again(world: World, start: Start) -> Iterator[Step]:
    """What leads out of a copy that is stuck: a fresh quorum, and every broker registered with it."""
    yield KeepZookeeper()
    if start.controllers:
        yield StopStuckControllers()
    yield RaiseStateVersions()
    yield HandBackControl()
    yield from (SetMetadataAside(node) for node in facts.controllers(world) if left_over(world, node))
    yield from new_quorum(world)
    order = sorted(facts.brokers(world), key=lambda node: (node not in start.down, node))
    yield from (RestartInMigrationMode(node, "yes" if node == order[-1] else "no") for node in order)
    yield WatchCopy()


def build(
    world: World, playbook: Playbook, *, created: float, copy_again: bool = False, discard_differences: bool = False
) -> Plan:
    """The rollback to ZooKeeper mode; with `copy_again` only out of a copy that is stuck, and into it again.

    With `discard_differences` every difference between ZooKeeper and the metadata that stands now is given up by name.
    Raises RollbackImpossible, NothingToPlan, and RestoreRefused where a broker's earlier file is missing or not proven.
    """
    start = start_of(world)
    discarded = discarded_of(world) if discard_differences else ()
    if copy_again:
        _must_be_stuck(world, start)
        steps = steps_to_copy_again(world, start)
    else:
        _restorable(world, start)
        steps = steps_of(world, start, names_to_text(discarded))
    planned = planned_steps(steps, world)
    # the stage as every command names it; by files and processes where the metadata and ZooKeeper do not tell it
    found, how = detect(world), f"{start.name}: {start.how}"
    here = Detected(start.stage, None, how) if isinstance(found, Unknown) else Detected(found.stage, found.half, how)
    summary = summarize(world, playbook, here)
    if isinstance(not_compared := gates.zookeeper_equal(world, discarded), Unknown | NotYet):
        said = not_compared.reason if isinstance(not_compared, Unknown) else f"waits for {not_compared.what}"
        blind = f"what a rollback would lose, which is asked again before a controller stops: {said}"
        summary = replace(summary, blind_spots=(*summary.blind_spots, blind))
    return plan_of(
        world,
        playbook,
        created=created,
        target=Stage.COPY if copy_again else Stage.ASSESS,
        steps=planned,
        findings=(*(() if copy_again or not start.controllers else _different(world, discarded)), *_findings(world)),
        summary=replace(summary, rollback=(_cost_again(start),) if copy_again else ()),
        direction=Direction.BACK,
    )


def discarded_of(world: World) -> tuple[DifferenceName, ...]:
    if isinstance(world.diff, Unknown):
        raise NothingToPlan(
            f"which differences would be discarded is not known: {world.diff.reason}",
            next_step="plan the rollback without --discard-differences",
        )
    if world.diff.uncovered_cut:
        raise NothingToPlan(
            "there are more differences than are listed: they cannot be discarded by name",
            next_step="see `kraft-migrate diff`, and repair what most of them have in common",
        )
    return tuple(DifferenceName.of(row) for row in world.diff.standing())


def _different(world: World, discarded: tuple[DifferenceName, ...]) -> Iterator[Finding]:
    """Differences that hold the rollback before it stops the controllers; stopped ones are started to write them."""
    if isinstance(world.diff, Unknown):
        return
    found = world.diff.standing(discarded)
    for row in found[:SHOWN]:
        cause, name = cause_of(row), DifferenceName.of(row)
        yield Finding(
            code=DIFFERENT,
            severity=Severity.BLOCKER,
            about=shown(f"{row.kind} {row.key} {row.field}".rstrip()),
            message=f"{name.cls}: {cause.cause}",
            evidence=shown(f"ZooKeeper {row.zookeeper or 'nothing'}, metadata {row.kraft or 'nothing'}"),
            fix=f"{cause.what_to_do}. Then plan the rollback again; or give it up: {world.give_up}",
            blocks_from=int(Stage.DISCOVER),
        )
    if len(found) > SHOWN:
        about, fix = f"{len(found) - SHOWN} more", "see `kraft-migrate diff`"
        yield Finding(DIFFERENT, Severity.BLOCKER, about, "ZooKeeper and KRaft differ", "", fix, int(Stage.DISCOVER))


def _refuse_finalized(world: World) -> None:
    if world.finalized:
        raise RollbackImpossible(
            f"{GONE}: the metadata says POST_MIGRATION, the migration is finalized", next_step=FORWARD
        )
    for node in without_flag(world):
        proof = never_without_flag(world, node)
        if not isinstance(proof, Ready):
            path = world.inventory.node(NodeId(node)).config
            raise RollbackImpossible(
                f"{path} is without the migration flag: once a controller was started from it the migration may "
                "be finalized",
                why=str(getattr(proof, "reason", proof)),
                next_step="if no controller ever ran without the flag, put it back and plan the rollback again; else "
                + FORWARD,
            )
    if isinstance(world.live, Unknown):
        raise NothingToPlan(f"no node could be asked: {world.live.reason}")
    refused = gates.flagged(world)
    if isinstance(refused, Refused):
        raise RollbackImpossible(refused.reason, next_step="stop those controllers first")


def _how(world: World, found: Sequence[BrokerPosition]) -> str:
    words = [one.furthest.words for one in found if isinstance(one.furthest, Mode)]
    counts = ", ".join(f"{words.count(word)} in {word}" for word in dict.fromkeys(words))
    here = detect(world)
    said = here.reason if isinstance(here, Unknown) else here.how
    return "; ".join([f"brokers: {counts}", *(one.contradiction for one in found if one.contradiction), said])


def _restorable(world: World, start: Start) -> None:
    """Every broker's way is known to its end before anything is touched."""
    problems, next_step = [], USE_COPY
    for broker in (*start.kraft, *start.migration):
        file = facts.config(world, broker)
        assert isinstance(file, ConfigFile)
        found = to_the_end(world, broker, file.raw, from_kraft=broker in start.kraft)
        if isinstance(found, Refused | Unknown):
            kept = "its backup is not known: " if isinstance(found, Unknown) else ""
            next_step = FIND_COPY if kept else next_step
            problems.append(f"broker {broker}: {kept}{found.reason}")
    if problems:
        why = "configurations are restored from copies, never generated"
        raise RestoreRefused("; ".join(problems), why=why, next_step=next_step)


def _must_be_stuck(world: World, start: Start) -> None:
    """Every broker's own file must be of migration mode: they are restarted with it."""
    others = [one for one in positions(world) if not one.settled(Mode.MIGRATION)]
    if start.stuck and others and not (start.kraft or start.zookeeper):
        said = [one.contradiction or f"broker {int(one.broker)} is not in migration mode" for one in others]
        raise NothingToPlan("; ".join(said), next_step="plan the rollback without --copy-again")
    if not start.stuck or start.kraft or start.zookeeper:
        raise NothingToPlan(
            f"the copy is not stuck ({start.name}: {start.how})",
            next_step="`kraft-migrate status` says what it waits for; without --copy-again the plan is the rollback",
        )


def _findings(world: World) -> Iterator[Finding]:
    """What a reader of a rollback wants of the checks: its steps have gates of their own, so nearly none of it blocks.

    What Kafka cannot write to ZooKeeper does where it holds dual write, so that nothing can be compared.  What else is
    in the way is said by the readiness, in the words of `status`.
    """
    for finding in checks.told(world, target=Stage.ASSESS):
        told = finding.code in TOLD or "-RBK-" in finding.code
        if told and finding.severity is not Severity.BLIND_SPOT:
            holds = finding.code == UNWRITABLE and isinstance(world.diff, Unknown)
            yield replace(finding, blocks_from=int(Stage.DISCOVER) if holds else checks.NEVER)


def _cost_again(start: Start) -> dict[str, str]:
    return {
        "from": start.name,
        "procedure": "stop the controllers; repair the znodes; format and start the controllers; restart every broker",
        "rolls": "1",
        "restarts": str(len(start.migration)),
        "controller_gap": "not relevant: during a stuck copy the controllers write nothing to ZooKeeper",
    }


def with_readiness(summary: PlanSummary, plan: Plan, found: RollbackReadiness) -> PlanSummary:
    """The summary of a rollback's plan with the answer of `status`: its word, its reasons and its cost.

    The plan out of a copy that is stuck is no rollback: it keeps its own cost, and is itself the remedy.
    """
    if plan.kind is PlanKind.COPY_AGAIN:
        return replace(summary, remedy="")
    return replace(
        summary,
        readiness=found.word.value,
        reasons=(*reason_lines(found.reasons), f"estimate: {found.cost.basis}"),
        remedy=summary.remedy or next((entry.next_step for entry in found.of(Weight.BAR)), ""),
        rollback=(
            {
                "from": found.origin,
                "procedure": found.procedure,
                "rolls": str(found.cost.rolls),
                "restarts": str(found.cost.restarts),
                "controller_gap": found.cost.gap,
            },
        ),
    )
