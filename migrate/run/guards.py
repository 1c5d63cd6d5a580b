"""What must hold of the whole cluster before any step acts, whatever that step asks for itself (pure).

A step looks at its own part.  A guard looks for what somebody else did meanwhile: another cluster behind the same
address, a file that was put back, a controller without the flag, a `/controller` that was cleaned, replicas that move.
Each stands in `GUARDS` under its name, and has a test in which the cluster comes to harm without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from migrate.checks import processes
from migrate.errors import PlanIsStale, PlanUnreadable, PredictionFailed
from migrate.model.broker_modes import FLAG, controller_flags
from migrate.model.ids import NodeId
from migrate.model.outcome import Awaited, NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.plan import Plan, PlannedStep
from migrate.model.stage import Stage
from migrate.model.step import Predicted, Step
from migrate.model.views import ControllerZnode
from migrate.model.world import Need, World
from migrate.run import repairs
from migrate.steps import churn, facts, gates
from migrate.steps.registry import rebuild

IN_DUAL_WRITE: Final = ("assign-directories", "roll-to-kraft", "finalize-controller")
STARTS_COPY: Final = ("roll-to-migration-mode", "restart-in-migration-mode")  # the last such restart of a plan
BEFORE_FINALIZE: Final = (*STARTS_COPY, "assign-directories", "roll-to-kraft")
ROLL_FORWARD: Final = (
    "no rollback is possible; restart no ZooKeeper-mode broker. `kraft-migrate plan` makes the plan that rolls every "
    "remaining broker forward to KRaft: carry it out without delay"
)


@dataclass(frozen=True, slots=True)
class Situation:
    """Where the run stands: the step that is about to act, and the steps that were concluded before it."""

    plan: Plan
    planned: PlannedStep
    done: frozenset[str]
    needs: frozenset[Need]


Guard = Callable[[Situation, World], Readiness]


def needs(planned: PlannedStep) -> frozenset[Need]:
    """What the guards look at before that step, besides what the step asks for (it asks for who answers)."""
    issuers = {Need.ISSUERS} if planned.restarts else set()
    if planned.stage <= Stage.CONTROLLERS or planned.stage is Stage.PROTOCOL:
        return frozenset({Need.ZOOKEEPER, Need.CONFIGS} | issuers)
    if planned.stage < Stage.FINALIZE:
        return frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.CONFIGS} | issuers)
    return frozenset({Need.KRAFT, Need.CONFIGS} | issuers)


def alone(now: Situation) -> frozenset[Need]:
    """What the guards read of all that is looked at: enough to hear them before Spark or a disk is waited for."""
    return needs(now.planned) | (now.needs & {Need.LIVE, Need.SERVICES})


def processes_seen(now: Situation, world: World) -> Readiness:
    """Where a step asks for processes, each of them is known to run or to be stopped.

    One that cannot be seen would pass for one that is stopped: its file would be changed while it runs.
    """
    if Need.SERVICES not in now.needs:
        return Ready()
    if isinstance(world.services, Unknown):
        return world.services
    nodes = [int(node.id) for node in world.inventory.nodes]
    states = {node: world.services.get(NodeId(node), Unknown("it was not looked at")) for node in nodes}
    return _first_unseen(world, "the process of {}", states)


def _first_unseen(world: World, what: str, found: Mapping[int, object]) -> Readiness:
    """The first reason for which something cannot be seen, with every node that it hides; an awaited one stays so."""
    unseen = {node: entry for node, entry in found.items() if isinstance(entry, Unknown)}
    if not unseen:
        return Ready()
    first = next(iter(unseen.values()))
    hidden = [processes.name_of(world.inventory, node) for node, entry in unseen.items() if entry == first]
    named = what.format(" and ".join(hidden))
    if isinstance(first, Awaited):
        return replace(first, reason=f"{named} to be seen ({first.reason})")
    return Unknown(f"{named} cannot be seen: {first.reason}")


def same_cluster(now: Situation, world: World) -> Readiness:
    """The cluster's id is asked again: an address, a chroot or a tunnel may lead elsewhere by now."""
    seen = {}
    if not isinstance(world.zookeeper, Unknown):
        seen["ZooKeeper"] = world.zookeeper.cluster_id
    if not isinstance(world.kraft, Unknown):
        seen["the controllers"] = world.kraft.cluster_id
    others = [f"{found} by {who}" for who, found in seen.items() if found and found != now.plan.cluster_id]
    if others:
        text = ", ".join(others)
        raise PlanIsStale(
            f"the plan is for cluster {now.plan.cluster_id}, this is {text}",
            where=now.planned.id,
            why="an address, a chroot or a tunnel leads to another cluster than the one that was planned for",
            next_step="compare the inventory's addresses and chroot with the brokers' own files",
        )
    return Ready() if any(seen.values()) else Unknown("which cluster this is cannot be asked: no store answers")


def no_early_finalize(now: Situation, world: World) -> Readiness:
    """No controller without the flag while a broker needs ZooKeeper: its election would end the migration.

    Read are every controller's file (it decides the next start) and its own answer, where the tag is absent, not false.
    """
    if now.planned.kind not in BEFORE_FINALIZE:
        return Ready()
    if isinstance(world.kraft, Unknown):
        return world.kraft
    if world.finalized:
        return Refused(
            f"the metadata says POST_MIGRATION: a controller without the flag was elected; {ROLL_FORWARD}",
            ("B-MIG-07",),
        )
    found = _all_flagged(world)
    if isinstance(found, Ready) and now.planned.kind in STARTS_COPY:
        return gates.controllers_ready(world)
    return found


def _all_flagged(world: World) -> Readiness:
    flags = controller_flags(world)
    for flag in flags:
        if not isinstance(flag.file, bool):
            return Unknown(f"the file of controller {flag.node} cannot be read, and with it its flag")
    unflagged = [
        *(f"controller {flag.node}: {flag.path} has no {FLAG}=true" for flag in flags if not flag.file),
        *(f"controller {flag.node} runs without the flag" for flag in flags if flag.answer is False),
    ]
    if not unflagged:
        return Ready()
    return Refused(
        f"{'; '.join(unflagged)}: by being elected it would finalize the migration. Put the flag back into its file, "
        "and restart that controller alone (the active one never before it)",
        ("B-MIG-07",),
    )


def controller_is_krafts(now: Situation, world: World) -> Readiness:
    """In dual write `/controller` is a KRaft controller's, persistent.

    Cleaned while controllers run, a ZooKeeper-mode broker takes it; KRaft claims it again at its next failover and
    deletes what that broker created meanwhile (seen on 3.9.2).
    """
    if now.planned.kind not in IN_DUAL_WRITE or world.finalized or now.planned.params.get("position", "1") != "1":
        return Ready()
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    owner = world.zookeeper.controller
    if isinstance(owner, Unknown):
        return owner
    if world.zookeeper.kraft_owns and isinstance(owner, ControllerZnode) and owner.kraft_epoch >= 0:
        return Ready()
    return Refused(
        f"/controller is not a KRaft controller's ({owner}): it was cleaned while the controllers run. Create and "
        "delete no topics; what was made since then is deleted when KRaft claims it again. Restart the active "
        "controller, so that the next one claims it, compare with `kraft-migrate diff`, then run the same command",
        ("B-MIG-13",),
    )


def nothing_moves(now: Situation, world: World) -> Readiness:
    """In dual write no replica is being moved by another tool (`kafka-reassign-partitions`, Cruise Control)."""
    if now.planned.kind not in IN_DUAL_WRITE:
        return Ready()
    if isinstance(world.kraft, Unknown):
        return world.kraft
    moving = churn.reassigned(world)
    return churn.reassignments(moving) if moving else Ready()


def logins_issued(now: Situation, world: World) -> Readiness:
    """Whoever issues the logins of the nodes that are to start answers: without it each would end at its start."""
    if not now.planned.restarts:
        return Ready()
    if isinstance(world.issuers, Unknown):
        return world.issuers
    for node in own_step(now.planned).starts(world):
        away = world.issuers.get(NodeId(node), Unknown(f"who issues the logins of node {node} was not asked"))
        if isinstance(away, Unknown):
            return away
        if away:
            what = f"who issues the logins of {processes.name_of(world.inventory, node)} to answer: {'; '.join(away)}"
            after = "start it, or repair the way to it; until then no node is stopped, for it could not start again"
            return NotYet(what, "whoever runs it", after, progress=str(away))
    return Ready()


def files_as_left(now: Situation, world: World) -> Readiness:
    """Every node's file is the one that this plan has seen or written last: no other hand is at work on them.

    Or the repaired one that was accepted in its place.
    """
    wanted = _accepted(left_by(now), world)
    seen = facts.observed(world, wanted)
    unseen = {_node(key): facts.config(world, _node(key)) for key in wanted if seen[key] == facts.UNKNOWN}
    if unseen:
        return _first_unseen(world, "the file of {}", unseen)
    wrong = [
        f"{facts.shown(world, key)} (sha256 {seen[key][:12]}, not {want[:12]})"
        for key, want in wanted.items()
        if seen[key] != want
    ]
    if not wrong:
        return Ready()
    raise PlanIsStale(
        f"configuration files are not as this plan left them: {'; '.join(wrong)}",
        where=now.planned.id,
        why="another hand writes them (configuration management?), and a process may start with what it wrote",
        next_step="stop that hand, put the file back as this plan left it (backup/ in the run's folder has each first "
        "one, diff-file in the journal each change) and run the same command again; or, where the files are as they "
        f"should be, {repairs.plan_anew(now.plan, world, world.inventory.brokers)}",
    )


def _node(key: str) -> int:
    return int(key.partition(":")[2])


def left_by(now: Situation) -> Mapping[str, str]:
    """`config:N` -> SHA-256 as the concluded steps left it, else as the next step that names it was planned on.

    What the step at hand is about to write, or has written in part, is its own matter.
    """
    own = {key for key in (*now.planned.binds, *now.planned.expects) if key.startswith("config:")}
    if now.planned.stage is Stage.FINALIZE:  # controllers change one by one, in an order that is chosen when it is time
        own |= {key for step in now.plan.steps if step.stage is Stage.FINALIZE for key in _files(step.binds)}
    left: dict[str, str] = {}
    for step in now.plan.steps:
        if step.id in now.done:
            left.update(_files(step.binds))
            left.update(_files(step.expects))
        else:
            for key, value in _files(step.binds).items():
                left.setdefault(key, value)
    return {key: value for key, value in left.items() if key not in own and value != facts.UNKNOWN}


def _files(entries: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in entries.items() if key.startswith("config:")}


GUARDS: Final[dict[str, Guard]] = {
    "processes-seen": processes_seen,
    "same-cluster": same_cluster,
    "early-finalize": no_early_finalize,
    "controller-is-krafts": controller_is_krafts,
    "nothing-moves": nothing_moves,
    "files-as-left": files_as_left,
    "logins-issued": logins_issued,
}


def hold(now: Situation, world: World) -> Readiness:
    """The first guard that does not hold, else Ready; PlanIsStale for another cluster or another hand's files."""
    for guard in GUARDS.values():
        found = guard(now, world)
        if not isinstance(found, Ready):
            return found
    return Ready()


def own_step(planned: PlannedStep) -> Step:
    """The step that a plan describes.

    PlanUnreadable where the plan calls it by another name or puts it into another stage than its kind says: neither is
    part of the fingerprint, and by the stage a reader and `--confirm` know the point of no return.
    """
    step = rebuild(planned.kind, planned.params)
    if (step.id, step.stage) != (planned.id, planned.stage):
        raise PlanUnreadable(
            f"the plan calls a step {planned.id} of stage {planned.stage.label}, it is {step.id} of {step.stage.label}"
        )
    return step


def check_files(plan: Plan, planned: PlannedStep, world: World) -> None:
    """Raise PlanIsStale where the step would now write, or start with, another file than the plan shows.

    Asked before every act, of a half-done step too: its file may have been changed while nobody looked.  The files of
    finalize are those of its last step: controllers change one by one, in an order that is chosen when it is time.
    """
    of_stage = [step for step in plan.steps if step.stage is planned.stage]
    shows = of_stage[-1] if planned.stage is Stage.FINALIZE else planned
    files = _files({**planned.binds, **shows.expects})  # a step that writes none starts its nodes with those it binds
    wanted = _accepted(files, world)
    would = {**facts.observed(world, files), **own_step(shows).expects(world, Predicted())}
    changed = {key: now for key, want in wanted.items() if (now := would.get(key, facts.UNKNOWN)) != want}
    if changed:
        wrong = "; ".join(f"{key} would become {now}, planned is {wanted[key]}" for key, now in changed.items())
        raise PlanIsStale(
            f"step {planned.id} would do other than planned: {wrong}",
            where=planned.id,
            why="its file or the inventory is not what the plan was made from",
            next_step="make the file, or the inventory, what the plan shows, and give the same command; or "
            f"{repairs.plan_anew(plan, world, world.inventory.nodes)}",
        )


def _accepted(entries: Mapping[str, str], world: World) -> dict[str, str]:
    """The same facts, with repaired files that were accepted in the place of planned ones."""
    files = {key: repairs.accepted(world, key, want) for key, want in _files(entries).items()}
    return {**entries, **files}


def check_binds(plan: Plan, planned: PlannedStep, world: World) -> None:
    seen = facts.observed(world, planned.binds)
    changed = [
        f"{facts.shown(world, key)} was {was}, is {seen[key]}"
        for key, was in _accepted(planned.binds, world).items()
        if seen[key] != was or was == facts.UNKNOWN
    ]
    if changed:
        raise PlanIsStale(
            f"step {planned.id} was planned for another world: {'; '.join(changed)}",
            where=planned.id,
            why="its actions were decided by what changed",
            next_step=f"check what changed; then {repairs.plan_anew(plan, world, world.inventory.nodes)}",
        )


def check_expectations(planned: PlannedStep, world: World) -> None:
    wanted = _accepted(planned.expects, world)
    seen = facts.observed(world, wanted)
    wrong = [f"{key} should be {want}, is {seen[key]}" for key, want in wanted.items() if seen[key] != want]
    if wrong:
        raise PredictionFailed(f"step {planned.id} did not do what it predicted: {'; '.join(wrong)}", where=planned.id)
