"""Carries out a saved plan on a real cluster: opens the run's folder, takes the locks, starts the engine.

`apply` and the lab's demo both come in here; there is no other way to act.
"""

from __future__ import annotations

import logging
import pathlib
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from migrate import __version__
from migrate.errors import JournalDamaged, LockHeld, MigrateError, NotConfirmed, PlanIsStale
from migrate.kafka.controller import ActiveController, Elections
from migrate.model.history import Event
from migrate.model.ids import NodeId
from migrate.model.inventory import Inventory
from migrate.model.outcome import Unknown
from migrate.model.plan import Plan
from migrate.model.ports import DirectoryAssigner
from migrate.model.stage import Stage
from migrate.model.step import Step
from migrate.model.world import Need
from migrate.observe.sources import Sources
from migrate.observe.world import SLOW, ClusterObserver
from migrate.plan.parking import may_lack_controller
from migrate.run import journal as journals
from migrate.run import owners
from migrate.run.approvals import refuse_strange
from migrate.run.before_copy import kept_before_copy
from migrate.run.budget import clients_served
from migrate.run.clock import SystemClock
from migrate.run.crash import CrashPoints
from migrate.run.drive import MOST, Driver
from migrate.run.effects import Hands, JournaledEffects
from migrate.run.engine import Engine, Machinery
from migrate.run.first_election import once_more
from migrate.run.gatekeeper import RunGate
from migrate.run.host_rights import require_host_rights, require_units
from migrate.run.interrupts import ParkRequest, half_done, parking_on_interrupt
from migrate.run.journal import Journal
from migrate.run.last_words import last_words_told
from migrate.run.leaders import LeaderRestorer
from migrate.run.locks import LockFile, RunLock, of_brokers
from migrate.run.probing import probed
from migrate.run.staleness import own_step
from migrate.run.takeover import LOOK as PLACE
from migrate.run.takeover import found_by, gone_back
from migrate.run.way_back_facts import readiness_noted
from migrate.steps.rollback.control import HandBackControl
from migrate.zookeeper.lock import LOCK_PATH, Fence, ZookeeperLock, acquire, look_at_lock
from migrate.zookeeper.rights import require_way_back
from migrate.zookeeper.write import ZookeeperWriter
from migrate.zookeeper.znode import Absent

LOG: Final = logging.getLogger("migrate.run")
RELEASED: Final = "cleanup/release-zookeeper"
NO_PROGRESS: Final = 600.0
TOLD: Final = "what is half done was said"  # a KeyboardInterrupt with words needs none more


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Everything one run leaves here: plan, journal, backups, reports."""

    path: pathlib.Path

    @property
    def journal(self) -> pathlib.Path:
        """The journal."""
        return self.path / "journal.jsonl"

    @property
    def plan(self) -> pathlib.Path:
        """The saved plan."""
        return self.path / "plan.json"


def folder_of(inventory: Inventory, plan: Plan) -> RunFolder:
    """The run's folder, named by the plan."""
    return RunFolder(pathlib.Path(inventory.runs) / plan.short)


@dataclass(frozen=True, slots=True)
class Options:
    """How to carry it out: the confirmations, who listens, and what stands between us and AssignReplicasToDirs.

    With `say`, the first Ctrl-C only asks to park at the next safe point, and `say` is told so.
    """

    confirm: str = ""
    owner: str = ""
    listen: Callable[[Event], None] = lambda _: None
    wrap_assigner: Callable[[DirectoryAssigner], DirectoryAssigner] = lambda assigner: assigner
    confirm_cluster: str = ""  # the cluster's name, typed: asked for on top where there is no way back
    say: Callable[[str], None] | None = None


def carry_out(plan: Plan, sources: Sources, options: Options) -> RunFolder:
    """Run the plan to its end, from wherever its journal stands.

    Raises NotConfirmed for a plan with the point of no return and another confirmation than its fingerprint,
    RunLocked or LockHeld where somebody else acts, ZookeeperDenied where our identity there may not do what the plan
    will need, HostRightMissing where a host refuses a command of it, UnitNotUsable where systemd would kill a node,
    and what the engine raises.
    """
    steps = [own_step(planned) for planned in plan.steps]
    folder = folder_of(sources.inventory, plan)
    _may_be_carried_out(plan, sources, options, folder)
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    alone = not plan.kind.migrates  # no ZooKeeper to lock in, and no way back to it
    clock, request = SystemClock(), ParkRequest()
    lock = RunLock(LockFile(folder.path.parent / "lock"), None)
    journal = None
    observer = ClusterObserver(sources)
    try:
        journal = _open_journal(folder, plan, clock)
        fence = None
        if alone:
            lock = lock.joined(of_brokers(sources.inventory, sources.lock_on_host))
        elif RELEASED not in journals.concluded(journal.events):
            znode = _zookeeper_lock(sources, options.owner, plan.fingerprint, clock)
            lock, fence = lock.joined(znode), znode.fence
            _znodes_may_be_changed(steps, journal, sources)
        if not any(event.name == "effect" for event in journal.events):  # later: on as far as it may, for what is down
            require_host_rights(plan, sources.host_rights())
            require_units(plan.cluster, sources.units())
        sources.resume()
        if any(Need.COPY in step.proof_needs for step in steps):
            sources.kept_look = partial(kept_before_copy, sources.inventory)
        _place_looked_at(plan, journal, observer, clock)
        if any((step.needs | step.proof_needs) & SLOW for step in steps):
            sources.start_spark()
        effects = _effects(observer, options, folder, journal, lock, fence, clock)
        gate = RunGate(plan, sources.playbook, folder.path, journal, clock, observer, options.listen, request)
        engine = Engine(
            plan, Machinery(observer, effects, journal, lock, clock, _patience(sources), options.listen, gate)
        )
        parking = nullcontext() if options.say is None else parking_on_interrupt(request, options.say)
        with (
            parking,
            nullcontext() if alone else readiness_noted(observer, journal, clock),
            probed(sources.inventory, sources.playbook, journal.events),
            last_words_told(journal, sources.services, clock, [node.id for node in sources.inventory.brokers]),
        ):
            once_more(engine.run, journal, sources.services, clock)
    except KeyboardInterrupt:
        if journal is not None:
            _interrupted(plan, journal, clock.now(), options)
        raise
    finally:
        if journal is not None:
            journal.close()
        _give_back(lock)
    return folder


def _znodes_may_be_changed(steps: Sequence[Step], journal: Journal, sources: Sources) -> None:
    """Ask ZooKeeper before anything is stopped, where a step that is still to come gives control back in it."""
    done = journals.concluded(journal.events)
    if any(isinstance(step, HandBackControl) and step.id not in done for step in steps):
        require_way_back(sources.zookeeper_client())


def _may_be_carried_out(plan: Plan, sources: Sources, options: Options, folder: RunFolder) -> None:
    """Raise for what the plan itself, its confirmation, its playbook or its approvals forbid; nothing is looked at."""
    _confirmed(plan, options)
    _same_tool(plan)
    _same_playbook(plan, sources)
    _same_inventory(plan, sources.inventory)
    _approvals_sound(plan, sources, folder)


def _place_looked_at(plan: Plan, journal: Journal, observer: ClusterObserver, clock: SystemClock) -> None:
    """A first session notes where the cluster stands; a later one goes on only if nobody rolled it back since."""
    if len(journal.events) == 1:
        journal.append(clock.now(), "note", {"key": "found", "value": found_by(plan, observer)})
    else:
        gone_back(plan, journals.concluded(journal.events), observer.observe(PLACE, {}))


def _effects(
    observer: ClusterObserver,
    options: Options,
    folder: RunFolder,
    journal: Journal,
    lock: RunLock,
    fence: Fence | None,
    clock: SystemClock,
) -> JournaledEffects:
    """The run's hands: each effect is journalled, under the lock, between two crash points."""
    sources, crash = observer.sources, CrashPoints()
    assigner = options.wrap_assigner(ActiveController(sources.inventory))
    most = MOST if isinstance(sources.playbook, Unknown) else sources.playbook.assignments_per_request
    note = _noted(journal, clock)

    def sending(broker: NodeId, text: str) -> None:
        note(f"sending:{int(broker)}", text)

    driver = Driver(observer, assigner, clock, lock.still_ours, crash.reach, most, sending)
    restorer = LeaderRestorer(
        observer,
        Elections(sources.inventory),
        clock,
        lock.still_ours,
        lambda: clients_served(sources.playbook, clock.now()),
        crash.reach,
        partial(note, "electing"),
    )
    hands = Hands(
        sources.files,
        sources.services,
        lambda: ZookeeperWriter(sources.zookeeper_client(), fence),
        driver.drive,
        restorer.restore,
        options.listen,
        not_storing=sources.not_storing,
    )
    journal.between = sources.files.between = crash.reach
    return JournaledEffects(hands, journal, lock, clock, folder.path, crash)


def _patience(sources: Sources) -> Callable[[Stage], float]:
    return (lambda _: NO_PROGRESS) if isinstance(sources.playbook, Unknown) else sources.playbook.patience


def _noted(journal: Journal, clock: SystemClock) -> Callable[[str, str], None]:
    """Each request of policy drive, and each for elections, stands in the journal before it is sent."""

    def note(key: str, text: str) -> None:
        journal.append(clock.now(), "note", {"key": key, "value": text})

    return note


def _approvals_sound(plan: Plan, sources: Sources, folder: RunFolder) -> None:
    """Raise ApprovalRefused for one of another plan, or with a signature that does not fit, before anything is done."""
    if not isinstance(sources.playbook, Unknown):
        refuse_strange(sources.playbook.approvals, plan.fingerprint, folder.path)


def _interrupted(plan: Plan, journal: Journal, now: float, options: Options) -> None:
    """Say what is left half done: in the journal, and to whoever pressed Ctrl-C."""
    left = half_done(journal.events)
    if may_lack_controller(plan.steps, journals.concluded(journal.events), journals.begun(journal.events)):
        left += "; the cluster may have no controller until control is handed back: do not leave it so"
    journal.append(now, "stop", {"reason": f"interrupted: {left}", "code": ""})
    if options.say is not None:
        options.say(f"stopped now: {left}; the same command goes on")
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
    if not plan.needs_confirmation:
        return
    if options.confirm == plan.fingerprint:
        _cluster_named(plan, options)
        return
    command = plan.kind.apply_command
    line = f"`kraft-migrate {command} PLAN --confirm {plan.fingerprint}`"
    raise NotConfirmed(plan.words.unconfirmed, why=plan.words.why, next_step=f"read the plan to its end, then {line}")


def _cluster_named(plan: Plan, options: Options) -> None:
    """Where there is no way back, the cluster is named on top: a fingerprint is pasted, a name is typed."""
    if plan.irreversible and options.confirm_cluster != plan.cluster:
        raise NotConfirmed(
            f"the cluster's name was not given: {options.confirm_cluster!r} is not this cluster",
            why="after finalize there is no way back, and fingerprints of two clusters look alike",
            next_step="type the name on a terminal, or give it with --confirm-cluster NAME",
        )


def _same_tool(plan: Plan) -> None:
    """Another version may do other things under the same names: it makes a plan of its own."""
    if plan.tool_version != __version__:
        raise PlanIsStale(
            f"the plan was made by version {plan.tool_version} of this tool, this is {__version__}",
            why="its steps may mean something else here",
            next_step="make the plan anew with this version, or go on with that one; nothing was changed",
        )


def _same_playbook(plan: Plan, sources: Sources) -> None:
    if isinstance(sources.playbook, Unknown) or sources.playbook.sha256 == plan.playbook_sha256:
        return
    raise PlanIsStale(
        f"the playbook {sources.playbook.path} changed after the plan was made", where=sources.playbook.path
    )


def _same_inventory(plan: Plan, inventory: Inventory) -> None:
    """Other hosts, units or paths than those that were planned, reviewed and confirmed are another plan's."""
    if inventory.sha256 != plan.inventory_sha256:
        raise PlanIsStale(
            f"the inventory {plan.inventory}, or a file that it names, changed after the plan was made",
            where=plan.inventory,
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
            if holder is None or owners.process(holder.host, holder.pid) is not owners.Alive.DEAD:
                raise
            if clock.monotonic() > deadline:
                raise
            LOG.info("waiting for the lock that process %d left: it goes with its ZooKeeper session", holder.pid)
            clock.sleep(0.5)
