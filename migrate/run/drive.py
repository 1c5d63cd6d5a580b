"""Policy `drive`: AssignReplicasToDirs for one broker, sent only where it is proven, paced, and sent once.

A row is sent only where the directory id is in that broker's registration *and* in the meta.properties beside the
current, not future, copy: the ledger's state MIGRATING (or UNASSIGNED) says exactly that.  A wrong id would be accepted
by Kafka without an error (`ReplicationControlManager.handleAssignReplicasToDirs`), so nothing else is ever sent.

Between two requests the metadata must hold the last one, and dual write must have passed it: `/migration` is never more
than one request behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from migrate.checks.availability import unexcused
from migrate.errors import AssignmentRefused, DriveStopped, ReplicaMoved, Retryable
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.ports import Clock, DirectoryAssigner, Observer
from migrate.model.stage import ZkMigrationState
from migrate.model.views import KraftView, MigrationZnode, Quorum, Registration
from migrate.model.words import plural
from migrate.model.world import Need, World
from migrate.protocol.messages import Code, error_name

LOG: Final = logging.getLogger("migrate.run")
MOST: Final = 2250  # AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST
ATTEMPTS: Final = 8
PACE_SECONDS: Final = 60.0  # without any progress
LOOK: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.LEDGER})
NARROW: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.LIVE})
PACE: Final = 0.5  # seconds between two looks after a request; dual write moves twice a second
SENDABLE: Final = (ReplicaState.MIGRATING, ReplicaState.UNASSIGNED)
EXPLAINED: Final[Mapping[int, str]] = {
    Code.UNKNOWN_TOPIC_ID: "the topic was deleted in between",
    Code.UNKNOWN_TOPIC_OR_PARTITION: "the partition does not exist any more",
    Code.NOT_LEADER_OR_FOLLOWER: "the broker is no replica of it any more: it was reassigned in between",
    Code.UNSUPPORTED_VERSION: "metadata.version is below 3.7-IV2: the metadata knows no directories",
}
GONE: Final = (Code.UNKNOWN_TOPIC_ID, Code.UNKNOWN_TOPIC_OR_PARTITION, Code.NOT_LEADER_OR_FOLLOWER)

Assignments = Mapping[str, tuple[tuple[str, int], ...]]


def _log(broker: NodeId, text: str) -> None:
    LOG.info("assignment of broker %d: %s", broker, text)


@dataclass(frozen=True, slots=True)
class Driver:
    """Sends a broker's directories; `drive` is the effect.

    `still_ours` is asked before each request, for a broker may need many, and minutes; `tell` is told of each before it
    is sent, `reached` of each that was answered; `most` is how many replicas a request may hold.
    """

    observer: Observer
    assigner: DirectoryAssigner
    clock: Clock
    still_ours: Callable[[], None]
    reached: Callable[[str], None] = lambda _: None
    most: int = MOST
    tell: Callable[[NodeId, str], None] = _log

    def drive(self, broker: NodeId) -> str:
        """Send all that is missing; answers what was sent.

        Raises AssignmentRefused for an error that no retry mends, DriveStopped where the quorum's leader changed or a
        partition lacks an ISR member, and the Retryable itself when its retries are used up.
        """
        world = self._look()
        leader, sent, requests, retries = _leader(world), 0, 0, 0
        while True:
            missing = to_send(world.ledger, broker)
            pending = next(chunks(missing, min(self.most, MOST)), None)
            if pending is None:
                return f"{plural(sent, 'replica')} in {plural(requests, 'request')}, {retries} retried"
            _still(world, leader)
            size, left = _size(pending), _size(missing)
            requests += 1
            self.tell(broker, f"request {requests} with {size} of {left} replicas")
            tries, answered = self._send(broker, pending, world, leader)
            retries, sent = retries + tries, sent + answered
            self.reached(f"sent:{int(broker)}:{requests}")
            world = self._pace(broker, pending)
            _still(world, leader)

    def _look(self) -> World:
        return self.observer.observe(LOOK, {})

    def _send(self, broker: NodeId, pending: Assignments, world: World, leader: int) -> tuple[int, int]:
        """One request, with retries on typed errors: how many retries, how many replicas the last of them held.

        Before each retry all is looked at again: the epoch, what of the request is still proven and missing, and
        whether another controller leads by now (NOT_CONTROLLER says so).
        """
        tries, held = 0, 0

        def attempt() -> None:
            nonlocal tries, held, world
            if tries:
                world = self._look()
                _not_another(world, leader)
            tries += 1
            request = _proven(world, broker, pending)
            if not request:
                return
            self.still_ours()
            held = _size(request)
            raise_refused(broker, self.assigner.assign(broker, _registration(world, broker).epoch, request))

        retrying(f"assignment of broker {int(broker)}", self.clock, attempt)
        return tries - 1, held

    def _pace(self, broker: NodeId, pending: Assignments) -> World:
        """Wait until the records are in the metadata, and dual write has passed the last of them.

        The offset at which they are first seen there is at or behind the last record: `/migration` must reach it.  A
        cluster that is not in dual write has nobody to wait for.  What ends the wait is that nothing moves.  No disk is
        read while dual write is waited for.  All is looked at again where another request follows.
        """
        wanted = {(topic, partition): directory for directory, rows in pending.items() for topic, partition in rows}
        target: int | None = None
        moved, seen, whole = self.clock.monotonic(), None, self._look()
        world = whole
        while True:
            now: object = None
            if not isinstance(world.kraft, Unknown):
                left = _left(whole.ledger, wanted) if target is None else 0
                if left == 0 and target is None:
                    target = world.kraft.offset
                if target is not None and _passed(world, world.kraft, target):
                    return self._look() if to_send(whole.ledger, broker) else replace(whole, live=world.live)
                now = left if target is None else _reached(world)
            if now != seen:
                moved, seen = self.clock.monotonic(), now
            elif self.clock.monotonic() - moved > PACE_SECONDS:
                raise DriveStopped(_stood(target, now))
            self.clock.sleep(PACE)
            if target is None:
                world = whole = self._look()
            else:
                world = self.observer.observe(NARROW, {})


def retrying(what: str, clock: Clock, attempt: Callable[[], None]) -> None:
    """Repeat a request while a Retryable says so; raises the last of them when the attempts are used up."""

    def tell(state: RetryCallState) -> None:
        LOG.info("%s is sent again: %s", what, state.outcome.exception() if state.outcome is not None else "")

    retry = Retrying(
        retry=retry_if_exception_type(Retryable),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential(multiplier=0.1, max=5),
        sleep=clock.sleep,
        before_sleep=tell,
        reraise=True,
    )
    retry(attempt)


def _size(assignments: Assignments) -> int:
    return sum(map(len, assignments.values()))


def _passed(world: World, kraft: KraftView, target: int) -> bool:
    if kraft.migration_state is not ZkMigrationState.MIGRATION:
        return True
    found = _reached(world)
    return found is not None and found >= target


def _reached(world: World) -> int | None:
    """The offset in /migration; None where it cannot be seen or there is none."""
    if isinstance(world.zookeeper, Unknown) or not isinstance(world.zookeeper.migration, MigrationZnode):
        return None
    return world.zookeeper.migration.offset


def _stood(target: int | None, now: object) -> str:
    if target is None:
        return f"the metadata did not take the last assignments within {PACE_SECONDS:.0f} s: {now or 'all'} are missing"
    where = "has no offset" if now is None else f"is at {now}"
    return f"dual write did not pass the last assignments within {PACE_SECONDS:.0f} s: /migration {where} of {target}"


def raise_refused(broker: NodeId, answers: Mapping[tuple[str, int], int]) -> None:
    """Raise for the replicas that the controller refused.

    ReplicaMoved, a Retryable, where each of them is gone or another broker's, as the controller says: the next look
    knows it too, and they are sent no more.  AssignmentRefused for anything else.
    """
    wrong = {replica: code for replica, code in answers.items() if code}
    if not wrong:
        return
    final = {replica: code for replica, code in wrong.items() if code not in GONE}
    (topic, partition), code = next(iter((final or wrong).items()))
    kind = AssignmentRefused if final else ReplicaMoved
    raise kind(
        f"the controller refused {len(wrong)} of {len(answers)} assignments of broker {int(broker)}: topic {topic} "
        f"partition {partition} with {error_name(code)}",
        why=EXPLAINED.get(code, "the active controller's log says more"),
    )


def _left(ledger: Ledger | Unknown, wanted: Mapping[tuple[str, int], str]) -> int | None:
    """How many of the rows that were sent are still without their directory in the metadata; None: unknown."""
    if isinstance(ledger, Unknown):
        return None
    return sum(
        row.state in SENDABLE and wanted.get((row.topic_id, row.partition)) == row.on_disk for row in ledger.rows
    )


def to_send(ledger: Ledger | Unknown, broker: int) -> Assignments:
    """Directory id -> replicas, of the rows that may be sent; each once.  DriveStopped without a ledger."""
    if isinstance(ledger, Unknown):
        raise DriveStopped(f"the ledger is unknown: {ledger.reason}")
    unknown = [row.why for row in ledger.of(broker) if row.state is ReplicaState.UNKNOWN] or list(ledger.unknown)
    if unknown:
        raise DriveStopped(f"{len(unknown)} replicas of broker {broker} are unknown: {unknown[0]}")
    found: dict[str, dict[tuple[str, int], None]] = {}
    for row in ledger.of(broker):
        if row.state in SENDABLE and row.on_disk and row.topic_id:
            found.setdefault(row.on_disk, {})[row.topic_id, row.partition] = None
    return {directory: tuple(rows) for directory, rows in sorted(found.items())}


def chunks(assignments: Assignments, most: int = MOST) -> Iterator[Assignments]:
    each = [(directory, row) for directory, rows in assignments.items() for row in rows]
    for start in range(0, len(each), most):
        part: dict[str, list[tuple[str, int]]] = {}
        for directory, row in each[start : start + most]:
            part.setdefault(directory, []).append(row)
        yield {directory: tuple(rows) for directory, rows in part.items()}


def _proven(world: World, broker: NodeId, pending: Assignments) -> Assignments:
    """What of the request this very look proves and misses.

    DriveStopped for a directory that the broker has not registered: Kafka would take it without an error.
    """
    foreign = set(pending) - {str(directory) for directory in _registration(world, broker).log_dirs}
    if foreign:
        raise DriveStopped(f"broker {int(broker)} has not registered directories {', '.join(sorted(foreign))}")
    return still_wanted(pending, to_send(world.ledger, broker))


def still_wanted(pending: Assignments, wanted: Assignments) -> Assignments:
    """What of a request this look still wants sent."""
    sendable = {directory: frozenset(wanted.get(directory, ())) for directory in pending}
    kept = {directory: tuple(row for row in rows if row in sendable[directory]) for directory, rows in pending.items()}
    return {directory: rows for directory, rows in kept.items() if rows}


def _registration(world: World, broker: NodeId) -> Registration:
    if isinstance(world.kraft, Unknown):
        raise DriveStopped(f"the metadata cannot be read: {world.kraft.reason}")
    registration = world.kraft.brokers.get(broker)
    if registration is None:
        raise DriveStopped(f"broker {int(broker)} is not registered")
    return registration


def _leader(world: World) -> int:
    if isinstance(world.live, Unknown) or not isinstance(world.live.quorum, Quorum):
        raise DriveStopped("the quorum's leader is unknown")
    return int(world.live.quorum.leader)


def _not_another(world: World, leader: int) -> None:
    """Stop where another controller is seen to lead; one that nobody sees yet is no change."""
    quorum = Unknown("not seen") if isinstance(world.live, Unknown) else world.live.quorum
    if isinstance(quorum, Quorum) and int(quorum.leader) != leader:
        raise DriveStopped(
            f"the active controller changed from {leader} to {int(quorum.leader)} while directories were sent"
        )


def _still(world: World, leader: int) -> None:
    """Stop where the leader changed or a partition is not whole: something else is going on."""
    _leader(world)
    _not_another(world, leader)
    assert not isinstance(world.live, Unknown)
    for broker, answer in world.live.metadata.items():
        if isinstance(answer, Unknown):
            raise DriveStopped(f"whether every ISR is full is unknown to broker {int(broker)}: {answer.reason}")
        if unhealthy := unexcused(world, answer):
            entry = unhealthy[0]
            raise DriveStopped(
                f"{entry.topic}-{entry.partition} lacks a replica in its ISR, as broker {int(broker)} sees it"
            )
