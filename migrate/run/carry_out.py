"""Carries out a saved plan on a real cluster: opens the run's folder, takes the locks, starts the engine.

`apply` and the lab's demo both come in here; there is no other way to act.
"""

from __future__ import annotations

import logging
import pathlib
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from migrate import __version__
from migrate.errors import (
    HostRightMissing,
    JournalDamaged,
    JournalUnwritable,
    LockHeld,
    MigrateError,
    NotConfirmed,
    PlanIsStale,
    UnitNotUsable,
)
from migrate.kafka.controller import ActiveController
from migrate.model.detect import detect
from migrate.model.history import Event, concluded
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.launch import Unit, unfit
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.ports import DirectoryAssigner, Observer
from migrate.model.rights import HostRights, denied
from migrate.model.stage import Stage
from migrate.model.world import Need, World
from migrate.observe.sources import Sources
from migrate.observe.world import SLOW, ClusterObserver
from migrate.plan.parking import may_lack_controller
from migrate.run import journal as journals
from migrate.run import locks
from migrate.run.clock import SystemClock
from migrate.run.drive import MOST, Driver
from migrate.run.effects import CrashPoints, Hands, JournaledEffects
from migrate.run.engine import Engine, Machinery
from migrate.run.gatekeeper import RunGate
from migrate.run.guards import own_step
from migrate.run.interrupts import ParkRequest, half_done, parking_on_interrupt
from migrate.run.journal import Journal
from migrate.run.last_words import last_words_told, rerun_after_election_race
from migrate.run.locks import LockFile, RunLock, of_brokers
from migrate.run.past_runs import kept_before_copy, readiness_noted, samples_of
from migrate.steps.rollback.control import HandBackControl
from migrate.zookeeper.layout import Absent
from migrate.zookeeper.lock import LOCK_PATH, Fence, ZookeeperLock, acquire, look_at_lock
from migrate.zookeeper.rights import require_rollback_rights
from migrate.zookeeper.write import ZookeeperWriter

LOG: Final = logging.getLogger("migrate.run")
RELEASED: Final = "cleanup/release-zookeeper"
NO_PROGRESS: Final = 600.0
READ_IT: Final = "read this plan (plan.txt beside it): the command with its fingerprint is at its end"
TOLD: Final = "what is half done was said"  # a KeyboardInterrupt with words needs none more


@dataclass(frozen=True, slots=True)
class RunFolder:
    path: pathlib.Path

    @property
    def journal(self) -> pathlib.Path:
        return self.path / "journal.jsonl"

    @property
    def plan(self) -> pathlib.Path:
        return self.path / "plan.json"


def folder_of(inventory: Inventory, plan: Plan) -> RunFolder:
    return RunFolder(pathlib.Path(inventory.runs) / plan.short)


@dataclass(frozen=True, slots=True)
class Options:
    """How to carry it out: the confirmations, who listens, and what stands between us and AssignReplicasToDirs.

    With `say`, the first signal (Ctrl-C, SIGTERM, SIGHUP) only asks to park at the next safe point, and `say` is told.
    `untold` is asked when the engine has ended, and answers what `--on-event` did not take: the journal's last line.
    """

    confirm: str = ""
    owner: str = ""
    listen: Callable[[Event], None] = lambda _: None
    wrap_assigner: Callable[[DirectoryAssigner], DirectoryAssigner] = lambda assigner: assigner
    confirm_cluster: str = ""  # the cluster's name, typed: asked for on top where there is no rollback
    say: Callable[[str], None] | None = None
    untold: Callable[[], str] = str
    until: str = ""  # a stage or a step of the plan: park after it


def carry_out(plan: Plan, sources: Sources, options: Options) -> RunFolder:
    """Run the plan to its end, from wherever its journal stands.

    Raises NotConfirmed for another confirmation than the fingerprint, RunLocked or LockHeld where somebody else acts,
    ZookeeperDenied where our identity there may not do what the plan needs, HostRightMissing where a host refuses a
    command of it, UnitNotUsable where systemd would kill a node, and what the engine raises.
    """
    steps = [own_step(planned) for planned in plan.steps]
    folder = folder_of(sources.inventory, plan)
    _may_be_carried_out(plan, sources, options)
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    alone = not plan.kind.has_zookeeper  # to lock in, or to roll back to
    clock, request = SystemClock(), ParkRequest()
    since = datetime.fromtimestamp(clock.now(), UTC).isoformat(timespec="seconds")
    who = {"owner": options.owner, "run": plan.short, "since": since}
    lock = RunLock(LockFile(folder.path.parent / "lock", who), None)
    journal = None
    observer = ClusterObserver(sources)
    try:
        journal = _open_journal(folder, plan, clock)
        fence = None
        if alone:
            lock = lock.joined(of_brokers(sources.inventory, sources.lock_on_host))
        elif RELEASED not in concluded(journal.events):
            znode = _zookeeper_lock(sources, options.owner, plan.fingerprint, clock)
            lock, fence = lock.joined(znode), znode.fence
            done = concluded(journal.events)
            if any(isinstance(step, HandBackControl) and step.id not in done for step in steps):
                require_rollback_rights(sources.zookeeper_client())  # asked before anything is stopped
        if not any(event.name == "effect" for event in journal.events):  # later: on as far as it may, for what is down
            require_host_rights(plan, sources.host_rights())
            require_units(plan.cluster, sources.units())
        sources.resume()
        if any(Need.COPY in step.proof_needs for step in steps):
            sources.kept_look = partial(kept_before_copy, sources.inventory)
        if not any(event.name == "session" for event in journal.events):  # the first: note the stage of the cluster
            journal.append(clock.now(), "note", {"key": "found", "value": found_by(plan, observer)})
        else:
            gone_back(plan, concluded(journal.events), observer.observe(LOOK, {}))
        if any((step.needs | step.proof_needs) & SLOW for step in steps):
            sources.start_spark()
        effects = _effects(observer, options, folder, journal, lock, fence, clock)
        gate = RunGate(
            plan,
            sources.playbook,
            folder.path,
            journal,
            clock,
            observer,
            options.listen,
            request,
            options.until,
            samples_of(folder.path.parent, plan.cluster, but=folder.path),
        )
        patience = (lambda _: NO_PROGRESS) if isinstance(sources.playbook, Unknown) else sources.playbook.patience
        engine = Engine(plan, Machinery(observer, effects, journal, lock, clock, patience, options.listen, gate))
        parking = nullcontext() if options.say is None else parking_on_interrupt(request, options.say)
        with (
            parking,
            readiness_noted(observer, journal, clock) if plan.kind.migrates else nullcontext(),
            last_words_told(journal, sources.services, clock, [node.id for node in sources.inventory.brokers]),
        ):
            rerun_after_election_race(engine.run, journal, sources.services, clock)
    except KeyboardInterrupt:
        if journal is not None:
            _interrupted(plan, journal, clock.now(), options)
        raise
    finally:
        _over(journal, lock, clock, options.untold)
    return folder


def _over(journal: Journal | None, lock: RunLock, clock: SystemClock, untold: Callable[[], str]) -> None:
    """Note what was not told, close, and give the lock back; a full disk must not hide what ended the run."""
    try:
        if journal is not None and (missed := untold()):
            journal.append(clock.now(), "note", {"key": "on-event", "value": missed})
    except JournalUnwritable as error:
        LOG.warning("what --on-event did not take is not in the journal: %s", error)
    finally:
        if journal is not None:
            journal.close()
        _give_back(lock)


def _may_be_carried_out(plan: Plan, sources: Sources, options: Options) -> None:
    """Raise for what the plan itself, its confirmation or its playbook forbids; nothing is looked at."""
    _confirmed(plan, options)
    if plan.tool_version != __version__:  # another version may do other things under the same names
        raise PlanIsStale(
            f"the plan was made by version {plan.tool_version} of this tool, this is {__version__}",
            why="its steps may mean something else here",
            next_step="make a new plan with this version, or continue with that one; nothing was changed",
        )
    playbook, anew = sources.playbook, f"check what changed, then make a new plan: `{plan.plan_again}`"
    if not isinstance(playbook, Unknown) and playbook.sha256 != plan.playbook_sha256:
        raise PlanIsStale(
            f"the playbook {playbook.path} changed after the plan was made", where=playbook.path, next_step=anew
        )
    if sources.inventory.sha256 != plan.inventory_sha256:  # other hosts, units or paths than were planned and reviewed
        raise PlanIsStale(
            f"the inventory {plan.inventory}, or a file that it names, changed after the plan was made",
            where=plan.inventory,
            next_step=anew,
        )


def _effects(
    observer: ClusterObserver,
    options: Options,
    folder: RunFolder,
    journal: Journal,
    lock: RunLock,
    fence: Fence | None,
    clock: SystemClock,
) -> JournaledEffects:
    sources, crash = observer.sources, CrashPoints()
    assigner = options.wrap_assigner(ActiveController(sources.inventory))
    most = MOST if isinstance(sources.playbook, Unknown) else sources.playbook.assignments_per_request

    def sending(broker: NodeId, text: str) -> None:  # each request stands in the journal before it is sent
        journal.append(clock.now(), "note", {"key": f"sending:{int(broker)}", "value": text})

    driver = Driver(observer, assigner, clock, lock.still_ours, crash.reach, most, sending)
    hands = Hands(
        sources.files,
        sources.services,
        lambda: ZookeeperWriter(sources.zookeeper_client(), fence),
        driver.drive,
        options.listen,
        not_storing=sources.not_storing,
        at_once=sources.hosts_at_once,
    )
    journal.between = sources.files.between = crash.reach
    return JournaledEffects(hands, journal, lock, clock, folder.path, crash)


def _interrupted(plan: Plan, journal: Journal, now: float, options: Options) -> None:
    """Say what is left half done: in the journal, and to whoever pressed Ctrl-C."""
    left = half_done(journal.events)
    if may_lack_controller(plan.steps, concluded(journal.events), journals.begun(journal.events)):
        left += "; the cluster may have no controller until control is handed back: do not leave it so"
    journal.append(now, "stop", {"reason": f"interrupted: {left}", "code": ""})
    if options.say is not None:
        options.say(f"stopped now: {left}; the same command resumes")
        raise KeyboardInterrupt(TOLD)


@contextmanager
def acting_alone(sources: Sources, purpose: str, *, zookeeper: bool = True) -> Iterator[RunLock]:
    """Both locks as one, for a single act outside a plan; RunLocked or LockHeld where a run goes on.

    `zookeeper` False is for a finalized cluster: the lock file holds alone there.
    """
    runs = pathlib.Path(sources.inventory.runs)
    runs.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = RunLock(LockFile(runs / "lock"), None)
    try:
        if zookeeper:
            lock = lock.joined(_zookeeper_lock(sources, purpose, purpose, SystemClock()))
        yield lock
    finally:
        _give_back(lock)


def _give_back(lock: RunLock) -> None:
    """Release both; one that is lost already must not hide what ended the run."""
    try:
        lock.release()
    except MigrateError as error:
        LOG.warning("the lock was not given back: %s", error)


def _confirmed(plan: Plan, options: Options) -> None:
    """Where there is no rollback, the cluster is named on top: a fingerprint is pasted, a name is typed.

    A fingerprint that is given binds every plan: it is what somebody else approved.
    """
    if options.confirm and options.confirm != plan.fingerprint:
        cut = len(options.confirm) < len(plan.fingerprint) and plan.fingerprint.startswith(options.confirm)
        raise NotConfirmed(
            f"--confirm has {'only the beginning of' if cut else 'another fingerprint than'} this plan's"
            f"{' fingerprint' if cut else ''}: {options.confirm!r}",
            where=f"plan {plan.short}",
            why="the run is bound to the plan that was approved, by its whole fingerprint",
            next_step=f"apply the plan whose fingerprint was approved, or {READ_IT}; nothing was begun",
        )
    if not plan.needs_confirmation:
        return
    if not options.confirm:
        raise NotConfirmed(plan.words.unconfirmed, why=plan.words.why, next_step=READ_IT)
    if plan.irreversible and options.confirm_cluster != plan.cluster:
        raise NotConfirmed(
            f"{options.confirm_cluster!r} is not this cluster's name"
            if options.confirm_cluster
            else "the cluster's name was not given",
            why=f"{plan.words.why}, and fingerprints of two clusters look alike",
            next_step="type the name on a terminal, or give it with --confirm-cluster NAME",
        )


def _open_journal(folder: RunFolder, plan: Plan, clock: SystemClock) -> Journal:
    header = {
        "plan": plan.fingerprint,
        "tool": __version__,
        "cluster": plan.cluster,
        "cluster_id": plan.cluster_id,
        "change": plan.change,
        "host": socket.gethostname(),
    }
    journal = Journal.opened(folder.journal, clock.now(), header)
    first = journal.events[0].data
    if first.get("plan") != plan.fingerprint or first.get("tool") != __version__:
        raise JournalDamaged(
            f"the journal belongs to plan {str(first.get('plan'))[:8]} of version {first.get('tool')}",
            where=str(folder.journal),
        )
    return journal


def _zookeeper_lock(sources: Sources, owner: str, purpose: str, clock: SystemClock) -> ZookeeperLock:
    """The lock in ZooKeeper.  One left by a dead process of this host goes with its session: that is waited for."""
    path = LOCK_PATH if isinstance(sources.playbook, Unknown) else sources.playbook.lock_path
    client = sources.zookeeper_client()
    deadline = clock.monotonic() + 3 * client.session_timeout
    while True:
        try:
            return acquire(client, owner, purpose, path)
        except LockHeld:
            seen = look_at_lock(client, path)
            if isinstance(seen, Absent):
                continue
            holder = seen.holder
            if holder is None or locks.process_alive(holder.host, holder.pid) is not locks.Alive.DEAD:
                raise
            if clock.monotonic() > deadline:
                raise
            LOG.info("waiting for the lock that process %d left: it goes with its ZooKeeper session", holder.pid)
            clock.sleep(0.5)


LOOK: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE, Need.CONFIGS})


def found_by(plan: Plan, observer: Observer) -> str:
    """Where the cluster stands as the plan first runs; PlanIsStale where that is beyond the plan's beginning."""
    text = what_is_found(plan, observer.observe(LOOK, {}))
    LOG.info("no journal of plan %s yet; found: %s", plan.short, text)
    return text


def gone_back(plan: Plan, done: frozenset[str], world: World) -> None:
    """PlanIsStale the stage of the cluster before what this plan's own journal concluded: it was rolled back (pure).

    Only a known place counts; where it cannot be determined, the steps' own gates decide.
    """
    here = detect(world)
    reached = max((step.stage for step in plan.steps if step.id in done), default=Stage.DISCOVER)
    if plan.kind.rolls_back or not plan.kind.migrates or isinstance(here, Unknown):
        return
    if reached < Stage.CONTROLLERS or here.stage > Stage.PREPARE:
        return
    if any(step.stage is Stage.CONTROLLERS and step.id not in done for step in plan.steps):
        return  # its own controllers are half done: they wait, and have said nothing yet
    raise PlanIsStale(
        f"this plan had reached stage {reached.label}, and the cluster is at {here.stage.label} ({here.how})",
        where=f"plan {plan.short}",
        why="it was rolled back since: what the plan's journal calls done is undone",
        next_step=f"make a new plan: `{plan.plan_again}`",
    )


def what_is_found(plan: Plan, world: World) -> str:
    if not plan.kind.has_zookeeper:
        return "a cluster in KRaft mode only: its file says which broker has which directories"
    here = detect(world)
    if isinstance(here, Unknown):
        return f"the stage of the cluster cannot be determined: {here.reason}"
    first = next((step.stage for step in plan.steps if step.stage > Stage.ASSESS), None)
    text = f"stage {here.words} ({here.how})"
    if first is not None and not plan.kind.rolls_back and here.stage >= first:
        raise PlanIsStale(
            f"the plan begins with stage {first.label}, the cluster is at {text}, and it has no journal here",
            where=f"plan {plan.short}",
            why="it was carried out elsewhere, or its journal is lost: what it did already cannot be known from it",
            next_step=f"put the journal back into the run's folder; or make a new plan: `{plan.plan_again}`",
        )
    return text


def require_host_rights(plan: Plan, rights: Mapping[NodeId, HostRights | Unknown]) -> None:
    """Return if no host refuses a command; HostRightMissing names every refusal, and nothing was done.

    A host that does not answer is no refusal: each step looks at it again before it acts there.
    """
    refused = list(denied(rights))
    if refused:
        raise HostRightMissing(
            "; ".join(what for what, _ in refused),
            where=plan.cluster,
            why="the run would stop at the first step that needs it, perhaps between two brokers: nothing was done",
            next_step="; ".join(dict.fromkeys(advice for _, advice in refused)),
        )


def require_units(cluster: str, units: Mapping[NodeId, Unit | Unknown] | Unknown) -> None:
    """Return if a run can stop and start every unit; UnitNotUsable names each that it cannot, and why.

    A unit that cannot be seen is no refusal here: the step that stops it asks again.
    """
    seen = {} if isinstance(units, Unknown) else units
    wrong = [
        (f"{unit.name} of node {int(node)} on {unit.host}: {problem}", advice)
        for node, unit in sorted(seen.items())
        if isinstance(unit, Unit)
        for _, problem, advice in unfit(unit)
    ]
    if wrong:
        raise UnitNotUsable(
            "; ".join(what for what, _ in wrong),
            where=cluster,
            why="the run would stop there, perhaps between two controllers: nothing was done",
            next_step=f"on each of these hosts {'; '.join(dict.fromkeys(advice for _, advice in wrong))}",
        )
