"""Builds the plan: steps from the stage of the cluster to the target stage, each planned on what will be (pure)."""

from __future__ import annotations

import secrets
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from migrate import __version__, checks
from migrate.checks import processes
from migrate.errors import NothingToPlan, NotVisible
from migrate.model.broker_modes import Mode, position_of, positions
from migrate.model.config_keys import QuorumKind
from migrate.model.detect import Detected, by_cluster, detect
from migrate.model.findings import Finding, Severity, Word
from migrate.model.ids import DirectoryId
from migrate.model.inventory import Inventory, Playbook, RollOrder
from migrate.model.outcome import AlreadyDone, Refused, Unknown
from migrate.model.plan import Direction, Plan, PlannedStep, PlanSummary
from migrate.model.rollback_readiness import Growing, old_log
from migrate.model.stage import DirectoryPolicy, Stage, ZkMigrationState
from migrate.model.step import Predicted, Step
from migrate.model.views import BrokerDisks, ControllerZnode, MetaProperties, PartlyRead, Running
from migrate.model.world import World
from migrate.plan.summary import summarize
from migrate.steps import facts, foreseen
from migrate.steps.assign import AssignDirectories
from migrate.steps.cleanup import ProveFinal, ReleaseZookeeper, RemoveCopies
from migrate.steps.controllers import FormatControllers, FormatVoters, StartControllers, StartVoters
from migrate.steps.finalize import (
    FinalizeController,
    FinishFinalize,
    RollForward,
    finalized_early,
    forward_order,
)
from migrate.steps.forward import RollToKraft, RollToMigrationMode
from migrate.steps.look import Assess, CanaryInKraftMode, CanaryInMigrationMode, Discover, ProveHybrid, Soak, WatchCopy
from migrate.steps.prepare import BackUpBroker, BackUpZookeeper, RenderController


def roll_order(world: World, playbook: Playbook, goal: Mode) -> list[int]:
    """Every broker once; `goal` is the mode that the roll leads to.

    Those that are there already come first: a roll that is planned anew ends with a broker that it restarts.  With
    CANARY_FIRST the one with the fewest leaders follows, its rack, the other racks, and the ZooKeeper-mode controller
    last: each restart of it moves the controller.  Who leads is as of now, and the plan keeps the order that it got.
    """
    brokers = [int(node.id) for node in world.inventory.brokers]
    if playbook.roll_order is RollOrder.INVENTORY:
        return brokers
    done = [broker for broker in brokers if position_of(world, broker).settled(goal)]
    left = [broker for broker in brokers if broker not in done]
    leaders = _leaders(world)
    if leaders is None or not left:
        return [*done, *left]
    controller, racks = zookeeper_controller(world), _racks(world.inventory)
    canary = min(left, key=lambda broker: (broker == controller, leaders[broker], broker))

    def place(broker: int) -> tuple[bool, bool, str, int, int]:
        rack = racks[broker]
        return broker == controller, rack != racks[canary], rack, leaders[broker], broker

    return [*done, canary, *sorted((broker for broker in left if broker != canary), key=place)]


def order_rows(world: World, playbook: Playbook, brokers: Sequence[int]) -> Iterator[Mapping[str, str]]:
    """Say of each broker of a roll why it has its place, and how many partitions it leads now: they move."""
    leaders, controller, racks = _leaders(world), zookeeper_controller(world), _racks(world.inventory)
    for at, broker in enumerate(brokers):
        if playbook.roll_order is RollOrder.INVENTORY:
            why = "the inventory's order"
        elif leaders is None:
            why = "the inventory's order: the leaders are unknown"
        elif broker == controller:
            why = "last: it is the controller of ZooKeeper mode"
        elif not at:
            why = "first: it leads the fewest partitions"
        else:
            why = "the first one's rack" if racks[broker] == racks[brokers[0]] else "another rack"
            why += ", fewest leaders first"
        yield {"broker": str(broker), "why": why, "leaders": "unknown" if leaders is None else str(leaders[broker])}


def _restarted(steps: Sequence[PlannedStep]) -> list[int]:
    """The brokers of the plan's last roll, as they are restarted."""
    rolls = (
        [int(step.params["broker"]) for step in steps if step.kind == roll.kind]
        for roll in (RollToKraft, RollToMigrationMode)
    )
    return next(filter(None, rolls), [])


def _leaders(world: World) -> Counter[int] | None:
    """How many partitions each broker leads; None where nobody knows: the inventory's order stays then."""
    for view in (world.kraft, world.zookeeper):
        if not isinstance(view, Unknown) and len(view.partitions):
            return Counter(int(leader) for leader in view.partitions.leader)
    return None


def zookeeper_controller(world: World) -> int | None:
    """The broker that is ZooKeeper's controller, if one is."""
    if isinstance(world.zookeeper, Unknown) or world.zookeeper.kraft_owns:
        return None
    found = world.zookeeper.controller
    return found.id if isinstance(found, ControllerZnode) else None


def _racks(inventory: Inventory) -> dict[int, str]:
    return {int(node.id): node.rack or "" for node in inventory.brokers}


RELEASE: Final = "3.9"  # the only inter.broker.protocol.version that is not refused


def steps_of(stage: Stage, world: World, playbook: Playbook) -> Iterator[Step]:
    brokers, controllers = facts.brokers(world), facts.controllers(world)
    match stage:
        case Stage.DISCOVER:
            yield Discover()
        case Stage.ASSESS:
            yield Assess()
        case Stage.PREPARE:
            yield BackUpZookeeper()
            yield from (BackUpBroker(broker) for broker in brokers)
            yield from (RenderController(controller) for controller in controllers)
        case Stage.CONTROLLERS:
            yield from new_quorum(world)
        case Stage.MIGRATION_MODE:
            yield from _first_roll(roll_order(world, playbook, Mode.MIGRATION), playbook)
        case Stage.COPY:
            yield WatchCopy()
        case Stage.HYBRID:
            yield ProveHybrid()
        case Stage.KRAFT_MODE if finalized_early(world):
            yield from (RollForward(broker) for broker in forward_order(world))
        case Stage.SOAK if finalized_early(world):
            return  # nothing is written to ZooKeeper any more: there is no dual write to soak in
        case Stage.KRAFT_MODE:
            yield from _second_roll(roll_order(world, playbook, Mode.KRAFT), playbook)
        case Stage.SOAK:
            yield Soak(playbook.soak_seconds)
        case Stage.FINALIZE:
            count = len(controllers)
            kind = FinishFinalize if world.finalized else FinalizeController
            yield from (kind(position, count) for position in range(1, count + 1))
        case Stage.CLEANUP:
            yield ReleaseZookeeper()
            if playbook.remove_copies:
                yield RemoveCopies()
            yield ProveFinal()


def new_quorum(world: World) -> Iterator[Step]:
    """Format and start every controller; those of a dynamic quorum with one list of voters."""
    if world.inventory.quorum is QuorumKind.STATIC:
        yield FormatControllers(RELEASE)
        yield StartControllers()
        return
    voters = initial_voters(world)
    yield FormatVoters(RELEASE, voters)
    yield StartVoters(voters)


def initial_voters(world: World) -> str:
    """The voters of a dynamic quorum to come, with new directory ids, which are never used again.

    Directories that an earlier plan has formatted, and on which no controller ran, keep their ids.  Raises
    NothingToPlan: they were formatted with other lists, or it is not known with which.
    """
    logs = world.metadata_logs
    if isinstance(logs, Unknown) and not isinstance(logs, Growing) and (formatted := _formatted(world)):
        raise NothingToPlan(
            f"with which voters the metadata directories of controllers {formatted} were formatted is not known",
            why=logs.reason,
            next_step="let them be read, then plan again: with new directory ids they would have to be set aside",
        )
    found = {} if isinstance(logs, Unknown) else logs.founding
    places = sorted((int(node.id), node.address) for node in world.inventory.controllers)
    if not found:
        ids = iter(lambda: str(DirectoryId.from_bytes(secrets.token_bytes(16))), "")
        usable = (text for text in ids if not text.startswith("-") and not DirectoryId(text).reserved)
        return ",".join(f"{node}@{address}:{text}" for (node, address), text in zip(places, usable, strict=False))
    (first, *others), wanted = sorted(set(found.values())), [f"{node}@{address}" for node, address in places]
    if others or [entry.rpartition(":")[0] for entry in first.split(",")] != wanted:
        raise NothingToPlan(
            f"the metadata directories of controllers {sorted(map(int, found))} were formatted with other voters",
            why="a controller that was formatted with another list of voters runs without a vote, in silence",
            next_step="set these directories aside on their hosts (no controller ran on them), then plan again",
        )
    return first


def _formatted(world: World) -> list[int]:
    """Controllers whose metadata directory is seen to be formatted."""
    disks = {} if isinstance(world.disks, Unknown) else world.disks
    seen = ((node.id, disks.get(node.id)) for node in world.inventory.controllers)
    return [
        int(node)
        for node, found in seen
        if isinstance(found, BrokerDisks) and any(isinstance(one.meta, MetaProperties) for one in found.directories)
    ]


def _first_roll(brokers: list[int], playbook: Playbook) -> Iterator[Step]:
    for broker in brokers:
        yield RollToMigrationMode(broker, "yes" if broker == brokers[-1] else "no")
        if broker == brokers[0] and _soaks(brokers, playbook):
            yield CanaryInMigrationMode(broker, playbook.canary_soak)


def _second_roll(brokers: list[int], playbook: Playbook) -> Iterator[Step]:
    for broker in brokers:
        policy = playbook.policy(broker)
        if policy is DirectoryPolicy.DRIVE:
            yield AssignDirectories(broker)
        yield RollToKraft(broker, policy.name.lower())
        if broker == brokers[0] and _soaks(brokers, playbook):
            yield CanaryInKraftMode(broker, playbook.canary_soak)


def _soaks(brokers: list[int], playbook: Playbook) -> bool:
    """Is a canary watched?  Only where another broker follows it."""
    return playbook.canary_soak > 0 and len(brokers) > 1


def build(world: World, playbook: Playbook, *, target: Stage, only: bool, created: float) -> Plan:
    """The plan up to `target`; with `only`, of that stage alone.

    Raises:
        NotVisible: neither ZooKeeper nor the metadata can be read: the verdict would be INCOMPLETE.
        NothingToPlan: the cluster's stage is unknown, or `only` asks for a stage that is not the next.
    """
    here, told = by_cluster(world), detect(world)
    if isinstance(here, Unknown):
        raise _nowhere(world, here)
    assert isinstance(told, Detected)  # what journals prove only adds to what is known
    _no_half_done_rollback(world)
    _no_kraft_file_before_the_copy(world)
    stages = [stage for stage in Stage if stage <= target and stage in (Stage.DISCOVER, *playbook.stages)]
    if only:
        # the last broker's registration starts the copy by itself: whoever rolls must watch it
        stages = [Stage.MIGRATION_MODE, Stage.COPY] if target is Stage.MIGRATION_MODE else [target]
        if target is Stage.FINALIZE and Stage.SOAK in playbook.stages:
            stages = [Stage.SOAK, Stage.FINALIZE]  # what an earlier plan soaked counts; nobody goes around it
        _must_be_next(target, told, shlex.quote(playbook.path))
    if told.stage is Stage.CLEANUP and not only:  # proven to its end: cleanup is planned again where somebody names it
        stages = []
    due = [
        step
        for stage in stages
        for step in steps_of(stage, world, playbook)
        if stage <= Stage.ASSESS or not (stage <= here.stage or _done(step, world, here))
    ]
    _no_other_file(due, replace(world, playbook=playbook))
    planned = planned_steps(due, world)
    first_change = next((step.stage for step in planned if step.stage >= Stage.PREPARE), target)
    return plan_of(
        world,
        playbook,
        created=created,
        target=target,
        steps=planned,
        findings=foreseen.told(world, target=first_change),
        summary=replace(
            summarize(world, playbook, told),
            checks=len(checks.asked(world)),
            order=tuple(order_rows(world, playbook, _restarted(planned))),
        ),
    )


def plan_of(
    world: World,
    playbook: Playbook,
    *,
    created: float,
    target: Stage,
    steps: tuple[PlannedStep, ...],
    findings: tuple[Finding, ...],
    summary: PlanSummary,
    direction: Direction = Direction.FORWARD,
) -> Plan:
    """A plan of this world and playbook, by this version."""
    return Plan(
        cluster=world.inventory.name,
        cluster_id=facts.observed(world, ("cluster_id:",))["cluster_id:"],
        change=playbook.change,
        tool_version=__version__,
        playbook=playbook.path,
        playbook_sha256=playbook.sha256,
        inventory=world.inventory.path,
        inventory_sha256=world.inventory.sha256,
        created=created,
        target=target,
        steps=steps,
        findings=findings,
        summary=summary,
        direction=direction,
    )


def plan_of_one_roll(
    world: World,
    playbook: Playbook,
    steps: Iterable[Step],
    *,
    created: float,
    here: Detected,
    findings: tuple[Finding, ...],
    checked: int,
    restarts: int,
    undo: str,
    back: bool,
) -> Plan:
    """A plan of one roll beside the migration's stages; `undo` says how it is rolled back, by one roll as well.

    `checked` is how many checks were asked.
    """
    row = {
        "stage": here.stage.label,
        "procedure": f"`rollback plan` with this playbook: {undo}",
        "rolls": "1",
        "restarts": str(restarts),
        "controller_gap": "none",
    }
    rollback = (row,) if restarts and not back else ()
    return plan_of(
        world,
        playbook,
        created=created,
        target=here.stage,
        steps=planned_steps(steps, world),
        findings=findings,
        summary=replace(summarize(world, playbook, here), rollback=rollback, checks=checked),
        direction=Direction.BACK if back else Direction.FORWARD,
    )


def _no_half_done_rollback(world: World) -> None:
    """Forward over what a rollback has not set aside yet would start the old quorum, and end stuck."""
    if isinstance(world.zookeeper, Unknown) or isinstance(world.metadata_logs, Unknown):
        return  # a controller runs, or the step that starts them asks again
    old = old_log(world.zookeeper, world.metadata_logs)
    if old is not None:
        raise NothingToPlan(f"a rollback is half done: {old}", next_step="finish it: `kraft-migrate rollback plan`")


def _no_kraft_file_before_the_copy(world: World) -> None:
    """The first roll adds to a file of ZooKeeper mode: one of KRaft mode would start with both, or with neither."""
    if isinstance(world.kraft, Unknown) or world.kraft.migration_state is not ZkMigrationState.PRE_MIGRATION:
        return
    early = [one for one in positions(world) if one.file is Mode.KRAFT]
    if early:
        raise NothingToPlan(
            "; ".join(one.contradiction or f"the file of broker {int(one.broker)} says KRaft mode" for one in early),
            why="nothing was copied to the controllers yet: a broker that starts in KRaft mode now has no topics",
            next_step="put the files of ZooKeeper mode back, then plan again; or `kraft-migrate rollback plan`",
        )


def _no_other_file(due: Sequence[Step], world: World) -> None:
    """A controller's file of an earlier plan, or of a hand: the run writes none over it, and would stop there.

    Or start with it, where the plan is of stage controllers alone.
    """
    controllers = {step.controller for step in due if isinstance(step, RenderController)}
    services = {} if isinstance(world.services, Unknown) else world.services
    started = any(isinstance(services.get(node.id), Running) for node in world.inventory.controllers)
    if not started and any(step.stage is Stage.CONTROLLERS for step in due):
        controllers |= {*facts.controllers(world)}
    found = (RenderController(node).check(world) for node in sorted(controllers))
    refused = [answer for answer in found if isinstance(answer, Refused)]
    if refused:
        raise NothingToPlan(
            "; ".join(answer.reason for answer in refused),
            why="no controller was started yet, and what an earlier plan or a hand wrote is never overwritten",
            next_step="on each host move the file away (it may hold passwords), then plan again: it is written anew",
        )


def _nowhere(world: World, here: Unknown) -> NothingToPlan | NotVisible:
    """The refusal, with the blockers that may be its cause: a stale /migration looks like controllers that are gone."""
    unread = isinstance(world.zookeeper, Unknown) and not isinstance(world.zookeeper, PartlyRead)
    if unread and isinstance(world.kraft, Unknown):
        return NotVisible(
            f"{Word.INCOMPLETE}: {here.reason}",
            where=world.inventory.path,
            why="without either store nothing of this cluster is known, so nothing can be planned",
            next_step="make ZooKeeper answer, or the controllers; `kraft-migrate assess` says what cannot be seen",
        )
    blockers = [entry for entry in checks.run(world, target=Stage.CONTROLLERS) if entry.severity is Severity.BLOCKER]
    why = "; ".join(f"{entry.code} {entry.about}: {entry.message}" for entry in blockers[:5])
    down = processes.ended(world, world.inventory.controllers)
    next_step = "give the same command again; if it stays so, `status` says what the controllers lack"
    if blockers:
        next_step = f"fix what blocks first: {blockers[0].fix}"
    elif down:
        typed = processes.start(world.inventory, down)
        next_step = f"start the controllers as they are, never formatted again ({typed}), then plan again; or, where a "
        next_step += "rollback has stopped them, `kraft-migrate rollback plan`"
    return NothingToPlan(f"the stage of the cluster is unknown: {here.reason}", why=why, next_step=next_step)


def _must_be_next(target: Stage, here: Detected, playbook: str) -> None:
    """Stages are planned alone only where the stages before them are complete (looking stages may be skipped over)."""
    looking = (Stage.DISCOVER, Stage.ASSESS, Stage.HYBRID, Stage.SOAK)
    missing = [stage.label for stage in Stage if here.stage < stage < target and stage not in (*looking, Stage.PREPARE)]
    if missing:
        raise NothingToPlan(
            f"stage {target.label} cannot be planned: the cluster is at {here.stage.label} ({here.how})",
            next_step=f"`kraft-migrate plan {playbook} --stage {missing[0]}` first; or all of them in one plan: "
            f"`kraft-migrate plan {playbook} --to {target.label}`",
        )


def _done(step: Step, world: World, here: Detected) -> bool:
    """Does the world already show the step's effect?  Only asked for the stage that is half done."""
    if step.stage is not here.half and step.stage is not Stage.PREPARE:
        return False
    return step.proof_needs != frozenset() and isinstance(step.progress(world), AlreadyDone)


def planned_steps(steps: Iterable[Step], world: World) -> tuple[PlannedStep, ...]:
    """The steps in their order, each planned on the world that those before it will leave."""
    planned, before = [], Predicted()
    for step in steps:
        own: Any = step
        planned.append(
            PlannedStep(
                id=step.id,
                kind=step.kind,
                stage=step.stage,
                title=step.title,
                params=step.params(),
                actions=step.actions(world, before),
                binds=step.binds(world, before),
                expects=step.expects(world, before),
                undo=step.undo,
                proof=str(own.proof),
                requires=step.requires,
            )
        )
        before = step.predict(world, before)
    return tuple(planned)
