"""Gates: one condition each, from a World to a Readiness (pure).

A gate that waiting can open answers NotYet, one that it cannot answers Refused, and what cannot be seen is Unknown.

The rules of the migration, each with the gate that holds it:

- No controller runs without the migration flag before finalize: by being elected it would end the migration.
  `steps.controllers.all_flagged` before the first start, `run.guards.no_early_finalize` before each later step.
- No controller starts on what an earlier migration has left: it would wait for ever, or empty ZooKeeper.
  `steps.gates.logs_belong`
- Each step acts in the state that it is made for, and on nothing that a check calls a blocker.
  `steps.gates.state_is`, `steps.gates.no_blockers`
- One broker at a time, while the quorum is healthy, every ISR is full and its stop takes no topic away.
  `steps.gates.quorum_healthy`, `steps.gates.replicas_full`, `steps.gates.stop_is_accepted`
- A broker starts over the disks that it stopped with, and is proven by a new registration that equals them.
  `steps.gates.disks_healthy`, `steps.roll.is_registered`
- Kafka's copy loses nothing that ZooKeeper held.  `steps.look.nothing_dropped`
- In dual write both sides stay equal, and nothing moves.
  `steps.gates.views_equal`, `run.guards.controller_is_krafts`, `run.guards.nothing_moves`, `steps.disks.ended`
- A broker goes to KRaft mode when the directories of its replicas are known, and the next one when they are VERIFIED.
  `steps.forward.may_become_kraft`, `steps.forward.rolled_verified`
- There is no finalize before every broker is in KRaft mode and every replica VERIFIED: it cannot be undone.
  `steps.gates.all_brokers_kraft`, `steps.gates.ledger_is`
- A rollback stops the controllers when no broker is in KRaft mode and ZooKeeper holds what they committed.
  `steps.rollback.gates.none_runs_kraft`, `steps.rollback.gates.zookeeper_equal`, `steps.rollback.gates.rehearsed`
- /controller and /migration are deleted while no controller runs, and brokers leave migration mode after that.
  `steps.rollback.gates.controllers_gone`, `steps.rollback.gates.zookeeper_controls`
- A file goes back to what a proven copy says, and is never generated.  `steps.restore.to_zookeeper`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from migrate import checks
from migrate.checks import availability as health
from migrate.checks import processes
from migrate.checks.phase import no_quorum_yet
from migrate.checks.quorum import voteless
from migrate.checks.replicas import entries
from migrate.model import availability
from migrate.model.broker_modes import FLAG, controller_flags
from migrate.model.causes import kraft_only, summary
from migrate.model.config_keys import QuorumKind
from migrate.model.difference import NOTHING_COMPARED
from migrate.model.findings import Finding, Severity, blocks
from migrate.model.ids import NodeId
from migrate.model.launch import Unit, unfit
from migrate.model.ledger import ReplicaState
from migrate.model.outcome import AlreadyDone, Awaited, NotYet, Outcome, Readiness, Ready, Refused, Unknown, Verified
from migrate.model.rollback_readiness import old_log
from migrate.model.stage import Stage, ZkMigrationState
from migrate.model.step import Progress
from migrate.model.views import (
    KraftView,
    LiveView,
    MetadataAnswer,
    NodeAnswer,
    PartitionHealth,
    Running,
    ZookeeperView,
)
from migrate.model.words import plural, registered_as
from migrate.model.world import NOT_ASKED, Need, World
from migrate.steps import churn, facts

VOTER_LAG: Final = 10  # records: NoOps keep followers one or two behind at rest
CAUGHT_UP_MS: Final = 2000  # a follower fetches at least twice a second
LOOK_AT_ITS_LOG: Final = "usually nothing; look at that broker's log"
LOOK_AT_NODES_LOG: Final = "usually nothing; look at that node's log"
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Readiness])


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition that must hold before a step begins: in a sentence for the plan, and as the look that decides it."""

    requires: str
    holds: Callable[[World], Readiness]


def requires(sentence: str | Callable[..., str]) -> Callable[[F], F]:
    """Give a gate its sentence: `{0}` is its first argument behind the world, or a function makes it of all of them."""

    def decorated(function: F) -> F:
        function.__dict__["sentence"] = sentence
        return function

    return decorated


def gate(holds: Callable[Concatenate[World, P], Readiness], *args: P.args, **words: P.kwargs) -> Gate:
    """That gate with these arguments, and its sentence; one that no plan shows has none."""
    sentence: Any = getattr(holds, "sentence", "")
    said = sentence.format(*args) if isinstance(sentence, str) else sentence(*args, **words)
    return Gate(said, lambda world: holds(world, *args, **words))


def ask_all(found: Iterable[Gate], world: World) -> Readiness:
    """The first that is closed, by `first`; all are asked."""
    return first(*(one.holds(world) for one in found))


def ask_until_closed(found: Iterable[Gate], world: World) -> Readiness:
    """The first that is closed; later ones are not asked."""
    answers = (one.holds(world) for one in found)
    return next((answer for answer in answers if not isinstance(answer, Ready)), Ready())


def first(*gates: Readiness) -> Readiness:
    """The first gate that is not open, else Ready.  One that a narrow look did not ask for comes last."""
    shut = [gate for gate in gates if not isinstance(gate, Ready)]
    return next((gate for gate in shut if gate != NOT_ASKED), shut[0] if shut else Ready())


def as_outcome(readiness: Readiness, *evidence: str, left: tuple[str, ...] = ()) -> Outcome:
    if isinstance(readiness, Ready):
        return Verified(evidence, left)
    return readiness


def proven_by(found: Progress | Readiness, missing: str, *evidence: str) -> Outcome:
    """AlreadyDone as a proof by the evidence given; what is not done is refused with `missing`."""
    if isinstance(found, AlreadyDone):
        return Verified(evidence)
    return found if isinstance(found, Unknown | Refused | NotYet) else Refused(missing)


# what the checks of every stage up to `finalize` look at besides the views that each step reads itself (B-OPS-17)
FOR_BLOCKERS: Final = frozenset({Need.UNITS})


def _blockers_said(stage: Stage, *, besides: frozenset[str] = frozenset(), **_: object) -> str:
    said = f" (but {' and '.join(sorted(besides))}, which say what the step itself brings about)" if besides else ""
    return f"no check finds a blocker of stage {stage.label}{said}, and every check that could find one was made"


@requires(_blockers_said)
def no_blockers(
    world: World,
    stage: Stage,
    *,
    down: int | None = None,
    besides: frozenset[str] = frozenset(),
    of: frozenset[str] | None = None,
) -> Readiness:
    """No finding blocks that stage; the step that asks looks at FOR_BLOCKERS.

    A blocker refuses it, a blind spot that it cannot do without is Unknown.
    A finding that a topic in creation or deletion looks like is waited for: it is a fault only where it lasts.
    `down` is a node that the interrupted step itself has stopped: what is found only because of that is no blocker.
    `besides` are codes for what the step itself is there to bring about; `of` limits them to these objects (None: any).
    What is found only because processes of other nodes do not run is waited for: whoever owns them starts them.
    """
    found = [
        finding
        for finding in checks.run(world, target=stage)
        if blocks(finding, stage)
        and not processes.because_down(finding, down)
        and (finding.code not in besides or _of_others(finding, of))
    ]
    if not found:
        return Ready()
    if all(finding.severity is Severity.BLIND_SPOT and finding.evidence == NOT_ASKED.reason for finding in found):
        return NOT_ASKED
    due = world.inventory.brokers if no_quorum_yet(world) else world.inventory.nodes  # should have a process by now
    ended = processes.ended(world, due)
    missed = [node for node in ended if any(processes.because_down(finding, node) for finding in found)]
    if all(any(processes.because_down(finding, node) for node in missed) for finding in found):
        return processes.awaited(world.inventory, missed)
    blockers = [finding for finding in found if finding.severity is Severity.BLOCKER]
    definite = [finding for finding in blockers if not churn.may_end(finding)]
    if blockers and not definite:
        waited = churn.findings_ended(world, blockers)
        if isinstance(waited, NotYet):
            return waited
        found = [finding for finding in found if finding not in blockers]
        if not found:
            return Ready()
    if not definite:
        return Unknown(_unseen(found))
    text = "; ".join(f"{finding.code} {finding.about}: {finding.message}" for finding in definite[:5])
    more = f" (and {len(definite) - 5} more)" if len(definite) > 5 else ""
    return Refused(text + more, tuple(dict.fromkeys(finding.code for finding in found)))


def _of_others(finding: Finding, of: frozenset[str] | None) -> bool:
    return of is not None and finding.severity is Severity.BLOCKER and finding.about not in of


def _unseen(found: Sequence[Finding]) -> str:
    """Each reason once, with what cannot be seen because of it and the checks that it keeps from being made."""
    reasons: dict[str, list[Finding]] = {}
    for finding in found:
        reasons.setdefault(finding.evidence, []).append(finding)
    return "; ".join(
        f"{_few([entry.about for entry in entries])}: {reason} (not checked: {_few([entry.code for entry in entries])})"
        for reason, entries in reasons.items()
    )


def _few(words: Iterable[str]) -> str:
    each = list(dict.fromkeys(words))
    return ", ".join(each[:3]) + (f" and {len(each) - 3} more" if len(each) > 3 else "")


@requires("every broker sees all brokers and every partition with its full ISR")
def replicas_full(world: World) -> Readiness:
    if isinstance(world.live, Unknown):
        return world.live
    expected = tuple(sorted(int(node.id) for node in world.inventory.brokers))
    if not expected:
        return Unknown("the inventory lists no broker, so nothing was asked")
    partitions = _partitions(world)
    told = {node: world.live.metadata.get(NodeId(node), Unknown("it was not asked")) for node in expected}
    silent: dict[int, str] = {}
    heard: dict[int, MetadataAnswer] = {}
    for node, answer in told.items():
        if isinstance(answer, Unknown):
            silent[node] = answer.reason
        else:
            heard[node] = replace(answer, unhealthy=health.unexcused(world, answer))
    if silent:  # before all else: whoever does not see a broker that ended is not what the wait is for
        return _silent_brokers(world, silent)
    least = 0 if isinstance(partitions, Unknown) else partitions
    moving = None if isinstance(churn.leading(world), Unknown) else frozenset(churn.reassigned(world))
    found = first(*(_whole(node, answer, expected, least, moving) for node, answer in heard.items()))
    if isinstance(found, Ready) and isinstance(partitions, Unknown):
        return partitions
    return _with_offline(found, world.live) if isinstance(found, NotYet) else found


def _with_offline(found: NotYet, live: LiveView) -> NotYet:
    """A broker that lives on without a log directory (ZooKeeper and KRaft mode) is what such waits are mostly for."""
    offline = facts.offline_directories(live)
    if not offline:
        return found
    broker, path = offline[0]
    more = f" and {len(offline) - 1} more" if len(offline) > 1 else ""
    return NotYet(
        f"{found.what}; broker {broker} has log directory {path}{more} offline",
        f"whoever owns that disk of broker {broker}",
        "`kraft-migrate status` says what is wrong with it and which command repairs it; the run then continues",
        progress=found.progress,
    )


def _silent_brokers(world: World, silent: Mapping[int, str]) -> NotYet:
    ended = [node for node in processes.ended(world, world.inventory.brokers) if node in silent]
    if ended:
        return processes.awaited(world.inventory, ended)
    node, reason = next(iter(silent.items()))
    state = world.services.get(NodeId(node)) if not isinstance(world.services, Unknown) else None
    if isinstance(state, Awaited):  # its host is off or cut off, or its unit does not stay up
        return NotYet(f"broker {node} to answer ({reason}; {state.reason})", state.owner, state.next_step)
    return NotYet(f"broker {node} to answer ({reason})", f"broker {node}", LOOK_AT_ITS_LOG)


def _partitions(world: World) -> int | Unknown:
    """How many partitions there are."""
    view = churn.leading(world)
    if not isinstance(view, Unknown):
        return len(view.partitions)
    return view if view == NOT_ASKED else Unknown(f"how many partitions there are is unknown: {view.reason}")


def _whole(
    broker: int, answer: MetadataAnswer, expected: tuple[int, ...], partitions: int, moving: frozenset[str] | None
) -> Readiness:
    """`moving` are partitions under reassignment; None where this look sees none: then no restart is advised."""
    owner = f"broker {broker}"
    if tuple(sorted(answer.brokers)) != expected:
        return NotYet(
            f"broker {broker} to see brokers {list(expected)}; it sees {sorted(answer.brokers)}",
            owner,
            LOOK_AT_ITS_LOG,
            progress=str(sorted(answer.brokers)),
        )
    if answer.partitions < partitions:  # Kafka leaves out what the principal may not describe, without a word
        return NotYet(
            f"broker {broker} to report all {partitions} partitions; it reports {answer.partitions}",
            owner,
            "see that the principal of broker_access may DESCRIBE every topic",
            progress=str(answer.partitions),
        )
    moved = [name for entry in answer.unhealthy if (name := f"{entry.topic}-{entry.partition}") in (moving or ())]
    if moved:  # its new replicas join the ISR as they catch up: no broker has lost a request
        return churn.reassignments(moved)
    if answer.unhealthy:
        sample = answer.unhealthy[0]
        return NotYet(
            f"{plural(len(answer.unhealthy), 'partition')} to have {'its' if len(answer.unhealthy) == 1 else 'their'} "
            f"full ISR, {sample.topic}-{sample.partition} among them "
            f"(leader {sample.leader}, ISR {list(sample.isr)} of {list(sample.replicas)})",
            "the brokers' replication",
            LOOK_AT_ITS_LOG if moving is None else _after_isrs({entry.leader for entry in answer.unhealthy}),
            progress=str(len(answer.unhealthy)),
        )
    return Ready()


def _after_isrs(leaders: set[int]) -> str:
    """What to do about ISRs that stay as they are: restart the one broker that leads all of these partitions.

    A broker sends one request to change ISRs at a time.  One that is in flight as its channel is remade for another
    controller is never answered: the broker sends none until it is restarted, and its log says nothing.

    Source: NodeToControllerRequestThread.maybeResetNetworkClient, DefaultAlterPartitionManager (Kafka 3.9).
    """
    if len(leaders) != 1 or min(leaders) < 0:
        return LOOK_AT_ITS_LOG
    named = f"broker {min(leaders)}"
    return (
        f"usually nothing; if their number stays the same, restart {named} with the current file, then "
        f"give the same command again: {named} leads every one of these partitions, and has perhaps lost its request"
    )


def whole_but(world: World, down: Iterable[int]) -> Readiness:
    """Everything is whole, but for what the brokers in `down` have, and for replicas on no broker of the inventory.

    A dead id in an assignment holds the copy open for ever: it must not hold the rollback, too.
    """
    missing = frozenset(down)
    if isinstance(world.live, Unknown):
        return world.live
    left = tuple(node for node in world.inventory.brokers if int(node.id) not in missing)
    known = frozenset(int(node.id) for node in left)
    metadata = {
        node: answer if isinstance(answer, Unknown) else _without(answer, missing, known)
        for node, answer in world.live.metadata.items()
    }
    seen = replace(world, inventory=replace(world.inventory, brokers=left), live=replace(world.live, metadata=metadata))
    return replicas_full(seen)


def _without(answer: MetadataAnswer, missing: frozenset[int], known: frozenset[int]) -> MetadataAnswer:
    def sick(entry: PartitionHealth) -> bool:
        there = set(entry.replicas) & known
        if entry.partition < 0:  # a topic that answered with an error and no partition
            return True
        return not there <= set(entry.isr) or bool(entry.leader < 0 and there)

    left = tuple(broker for broker in answer.brokers if broker not in missing)
    return replace(answer, brokers=left, unhealthy=tuple(filter(sick, answer.unhealthy)))


@requires("the quorum has a leader, every controller answers, and every voter has caught up")
def quorum_healthy(world: World) -> Readiness:
    if isinstance(world.live, Unknown):
        return world.live
    quorum = world.live.quorum
    after = "usually nothing; look at the controllers' logs"
    if isinstance(quorum, Unknown):
        return NotYet(f"a leader of the quorum ({quorum.reason})", "the controllers", after)
    behind = [
        int(voter.id)
        for voter in quorum.voters
        if voter.log_end_offset <= 0
        or voter.log_end_offset < quorum.high_watermark - VOTER_LAG
        or not 0 <= voter.caught_up_ms <= CAUGHT_UP_MS
    ]
    # asked of each of them: the leader remembers the offsets of voters that are gone
    answers = {int(node.id): world.live.controllers.get(node.id) for node in world.inventory.controllers}
    silent = [node for node, answer in answers.items() if not isinstance(answer, NodeAnswer)]
    if silent:  # waiting does not bring a process back: whoever owns it must start it
        ended = [node for node in processes.ended(world, world.inventory.controllers) if node in silent]
        if ended:
            return processes.awaited(world.inventory, ended)
        return NotYet(f"controllers {silent} to answer", "those controllers", after, progress=str(silent))
    for node, said, cure in voteless(quorum, world):
        return NotYet(f"controller {node} to be a voter: {said}", "whoever formatted it", cure, progress=said)
    missing = {int(node.id) for node in world.inventory.controllers} - {int(voter.id) for voter in quorum.voters}
    if quorum.high_watermark <= 0 or behind or missing:
        return NotYet(
            f"every voter to catch up with high watermark {quorum.high_watermark}: behind {behind}, missing "
            f"{sorted(missing)}",
            f"leader {int(quorum.leader)}",
            after,
            progress=str([voter.log_end_offset for voter in quorum.voters]),
        )
    return Ready()


def controllers_ready(world: World) -> Readiness:
    """Before the copy, of a dynamic quorum: every controller is a voter, and has registered with the flag.

    With static voters the active controller waits for that itself (`reasonAllControllersZkMigrationNotReady`).  With
    dynamic ones it knows no controllers to wait for: one without the flag, elected later, ends the migration (seen on
    3.9.2).  Files and processes are held to the flag by a guard of every step.
    """
    if world.inventory.quorum is QuorumKind.STATIC:
        return Ready()
    if isinstance(world.kraft, Unknown):
        return world.kraft
    missing = [flag.node for flag in controller_flags(world) if flag.registered is not True]
    if missing:
        return NotYet(
            f"controllers {missing} to register with the migration flag: a dynamic quorum waits for nobody",
            "those controllers",
            f"see that {FLAG}=true is in each one's file, then restart it, the active one last",
            progress=str(missing),
        )
    return quorum_healthy(world)


def units_obey(world: World, nodes: Iterable[NodeId]) -> Readiness:
    """A run can stop and start each of these nodes: asked of all before the first of them is stopped.

    Nodes whose units the tool cannot see (the lab's processes, hosts that people work) are not asked.
    """
    if world.inventory.executor not in ("local", "ssh"):
        return Ready()
    if isinstance(world.units, Unknown):
        return world.units
    found = {node: world.units.get(node, Unknown("it was not looked at")) for node in nodes}
    wrong = [(node, unit, reason) for node, unit in found.items() if isinstance(unit, Unit) for reason in unfit(unit)]
    if wrong:
        told = [f"{unit.name} of node {int(node)} on {unit.host}: {what}" for node, unit, (_, what, _) in wrong]
        advice = dict.fromkeys(advice for _, _, (_, _, advice) in wrong)
        codes = dict.fromkeys(code for _, _, (code, _, _) in wrong)
        return Refused(f"{'; '.join(told)}. On each of these hosts {'; '.join(advice)}", tuple(codes))
    unseen = [
        f"the unit of node {int(node)}: {unit.reason}" for node, unit in found.items() if isinstance(unit, Unknown)
    ]
    return Unknown("; ".join(unseen)) if unseen else Ready()


@requires("every log directory of broker {0} is healthy")
def disks_healthy(world: World, broker: int) -> Readiness:
    disks = facts.disks(world, broker)
    if isinstance(disks, Unknown):
        return disks
    broken = [f"{entry.path} ({entry.problem})" for entry in disks.directories if entry.problem]
    if broken:
        return Refused(f"broker {broker} has log directories that are not healthy: {', '.join(broken)}")
    return Unknown(f"broker {broker}: {disks.unproven}") if disks.unproven else Ready()


@requires("a stop of broker {0} makes no topic unavailable but those that the playbook accepts")
def stop_is_accepted(world: World, broker: int) -> Readiness:
    view = world.zookeeper if isinstance(world.kraft, Unknown) or not len(world.kraft.partitions) else world.kraft
    if isinstance(view, Unknown):
        return view
    if isinstance(world.playbook, Unknown):
        return world.playbook
    default = availability.of_brokers(view.entities, world.configs, [node.id for node in world.inventory.brokers])
    found = availability.suffering(view.partitions, view.entities, default, [broker])
    refused = availability.not_accepted(found.topics, world.playbook.accept_unavailable)
    if refused:
        why = "; ".join(f"{topic} ({found.topics[topic]})" for topic in refused[:5])
        return Refused(
            f"stopping broker {broker} makes {plural(len(refused), 'topic')} unavailable that policy.availability."
            f"accept_unavailable does not name: {why}"
        )
    if found.unknown is not None:
        return Unknown(f"which topics suffer is not known: {found.unknown}")
    return _excused_bear(world, view, broker)


def _excused_bear(world: World, view: ZookeeperView | KraftView, broker: int) -> Readiness:
    """Partitions with an accepted replica keep one in sync, and as many as their topic asks for, without the broker."""
    if not any(entries(world, health.ISR_RULE)):
        return Ready()
    if isinstance(world.live, Unknown):
        return world.live
    found = list(health.endangered(world, view, world.live.metadata, NodeId(broker)))
    told = [why for why in found if not isinstance(why, Unknown)]
    if told:
        return Refused("; ".join(told[:5]), ("B-HLT-07",))
    return next((why for why in found if isinstance(why, Unknown)), Ready())


def runs_with(world: World, node: int, sha256: str) -> Readiness:
    if isinstance(world.services, Unknown):
        return world.services
    state = world.services.get(NodeId(node), Unknown(f"node {node} was not looked at"))
    match state:
        case Awaited(reason=reason):
            return replace(state, reason=f"{processes.name_of(world.inventory, node)} to run ({reason})")
        case Unknown():
            return state
        case Running(config_sha256=None):
            return Unknown(processes.unknown_file(world.inventory, node))
        case Running(config_sha256=started) if started == sha256:
            return Ready()
        case Running():
            return Refused(f"node {node} runs, but was started with another configuration file than the planned one")
        case _:
            return Refused(processes.ended_after_start(world.inventory, [node]))


@requires(lambda *states: f"the metadata says {' or '.join(state.name for state in states)}")
def state_is(world: World, *states: ZkMigrationState) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return world.kraft
    if world.kraft.migration_state in states:
        return Ready()
    if world.kraft.migration_state is ZkMigrationState.POST_MIGRATION:
        return Refused(
            "the metadata says POST_MIGRATION: a controller without the flag was elected, no rollback is possible; "
            "roll all brokers forward to KRaft and restart no ZooKeeper-mode broker",
            ("B-MIG-07",),
        )
    wanted = " or ".join(state.name for state in states)
    return Refused(f"the metadata says {world.kraft.migration_state.name}, not {wanted}")


@requires("controllers that do not run have no metadata log, or the one that /migration belongs to")
def logs_belong(world: World) -> Readiness:
    """Controllers that are to be started have logs that /migration belongs to, or none.

    A half-done rollback deletes /migration before it sets the controllers' metadata aside.  Started then, a log at
    MIGRATION waits for ever, and one that knows brokers copies as if they were there.
    """
    if isinstance(world.zookeeper, Unknown):
        return world.zookeeper
    states = {} if isinstance(world.services, Unknown) else world.services
    if any(isinstance(states.get(node.id), Running) for node in world.inventory.controllers):
        return Ready()  # they were started before this look: what they are is read off the quorum
    if isinstance(world.metadata_logs, Unknown):
        return world.metadata_logs
    old = old_log(world.zookeeper, world.metadata_logs)
    return Ready() if old is None else Refused(f"{old}: finish the rollback first, with `rollback plan`")


@requires("ZooKeeper and the metadata are equal, but for differences that are expected or accepted")
def views_equal(world: World, down: int | None = None) -> Readiness:
    """ZooKeeper and KRaft hold the same, but for differences with a rule or an acceptance.

    `down` is a broker that this step has stopped in migration mode: its znode went with its session, its registration
    stays, and nothing else about it is excused.
    """
    if isinstance(world.diff, Unknown):
        return world.diff
    found = [entry for entry in world.diff.unexcused if (entry.kind, entry.key) != ("broker", str(down))]
    if not found and not world.diff.compared:
        return Unknown(NOTHING_COMPARED)
    if not found and world.diff.unsettled:
        first = world.diff.unsettled[0]
        return Unknown(
            f"{len(world.diff.unsettled)} fields changed in every look and were not compared: "
            f"{first.kind} {first.key} {first.field}"
        )
    if not found:
        return Ready()
    sample = "; ".join(
        f"{entry.cls} {entry.kind} {entry.key} {entry.field} (ZooKeeper {entry.zookeeper}, KRaft {entry.kraft})"
        for entry in found[:3]
    )
    return Refused(f"{len(found)} differences between ZooKeeper and KRaft: {sample}", ("DIFF",))


@requires("dual write can write all of the metadata to ZooKeeper")
def all_writable(world: World) -> Readiness:
    """Dual write can write all of the metadata to ZooKeeper (B-MIG-14, for steps that do not ask the checks)."""
    if isinstance(world.kraft, Unknown):
        return world.kraft
    found = kraft_only(world.kraft.entities)
    return Refused(summary(found), ("B-MIG-14",)) if found else Ready()


@requires(lambda *states: f"every replica is {' or '.join(states)}")
def ledger_is(world: World, *states: ReplicaState) -> Readiness:
    if isinstance(world.ledger, Unknown):
        return world.ledger
    if world.ledger.unknown:
        return Unknown(f"the ledger was made without a view: {'; '.join(world.ledger.unknown)}")
    if not world.ledger.rows:  # what a cluster looks like whose metadata was wiped
        return Unknown("the ledger has no row: no replica proves nothing")
    wrong = [row for row in world.ledger.rows if row.state not in states]
    definite = [row for row in wrong if not churn.comes_and_goes(world, row)]
    if not definite:
        return churn.rows_ended(world, wrong)
    row = definite[0]
    wanted = " or ".join(state.value for state in states)
    return Refused(
        f"{len(wrong)} of {len(world.ledger.rows)} replicas are not {wanted}: {row.topic}-{row.partition} on broker "
        f"{row.broker} is {row.state.value} (on disk {row.on_disk or 'nowhere'}, in the metadata "
        f"{row.in_metadata or '-'})"
    )


@requires("every broker is registered in KRaft mode and unfenced")
def all_brokers_kraft(world: World) -> Readiness:
    if isinstance(world.kraft, Unknown):
        return world.kraft
    for node in world.inventory.brokers:
        found = world.kraft.brokers.get(node.id)
        if found is None or found.migrating or found.fenced:
            was = "not registered" if found is None else registered_as(migrating=found.migrating, fenced=found.fenced)
            return Refused(f"broker {int(node.id)} is not an unfenced KRaft broker ({was})")
    strangers = [int(node) for node, entry in world.kraft.brokers.items() if entry.migrating]
    if strangers:
        return Refused(f"registrations {strangers} still say that they are migrating ZooKeeper brokers")
    return Ready()
