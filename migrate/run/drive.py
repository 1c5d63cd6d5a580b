"""Policy `drive`: AssignReplicasToDirs for one broker, sent only where it is proven, paced, and sent once.

A row is sent only where the directory id is in that broker's registration *and* in the meta.properties beside the
current, not future, copy: the ledger's state MIGRATING (or UNASSIGNED) says exactly that.  A wrong id would be accepted
by Kafka without an error (`ReplicationControlManager.handleAssignReplicasToDirs`), so nothing else is ever sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from migrate.errors import AssignmentRefused, DriveStopped, Retryable
from migrate.model.ids import NodeId
from migrate.model.ledger import Ledger, ReplicaState
from migrate.model.outcome import Unknown
from migrate.model.ports import Clock, DirectoryAssigner, Observer
from migrate.model.views import KraftView, MigrationZnode, Quorum, Registration
from migrate.model.world import Need, World

LOG: Final = logging.getLogger("migrate.run")
MOST: Final = 2250  # AssignReplicasToDirsRequest.MAX_ASSIGNMENTS_PER_REQUEST
ATTEMPTS: Final = 8
PACE_SECONDS: Final = 60.0
LOOK: Final = frozenset({Need.ZOOKEEPER, Need.KRAFT, Need.DISKS, Need.LIVE, Need.CONFIGS, Need.LEDGER})
SENDABLE: Final = (ReplicaState.MIGRATING, ReplicaState.UNASSIGNED)

Assignments = Mapping[str, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class Driver:
    """Sends a broker's directories; `drive` is the effect."""

    observer: Observer
    assigner: DirectoryAssigner
    clock: Clock
    still_ours: Callable[[], None]  # asked before each request: a broker may need many, and minutes

    def drive(self, broker: NodeId) -> str:
        """Send all that is missing; answers what was sent.

        Raises AssignmentRefused for an error that no retry mends, DriveStopped where the quorum's leader changed or a
        partition lost an ISR member, and the Retryable itself when its retries are used up.
        """
        world = self._look()
        leader, sent, requests, retries = _leader(world), 0, 0, 0
        while True:
            pending = next(chunks(to_send(world.ledger, broker)), None)
            if pending is None:
                return f"{sent} replicas in {requests} requests, {retries} retried"
            retries += self._send(broker, pending, world)
            sent += sum(map(len, pending.values()))
            requests += 1
            world = self._pace(world, pending)
            _still(world, leader)

    def _look(self) -> World:
        return self.observer.observe(LOOK, {})

    def _send(self, broker: NodeId, pending: Assignments, world: World) -> int:
        """One request, with retries on typed errors.

        Before each retry all is looked at again: the epoch, and what of the request is still proven and missing.
        """
        tries = 0

        def attempt() -> None:
            nonlocal tries, world
            if tries:
                world = self._look()
            tries += 1
            request = _proven(world, broker, pending)
            if not request:
                return
            self.still_ours()
            answers = self.assigner.assign(broker, _registration(world, broker).epoch, request)
            wrong = {replica: code for replica, code in answers.items() if code}
            if wrong:
                replica, code = next(iter(wrong.items()))
                raise AssignmentRefused(
                    f"the controller refused {len(wrong)} of {len(answers)} assignments of broker {int(broker)}, "
                    f"topic {replica[0]} partition {replica[1]} with error {code} among them"
                )

        retrying = Retrying(
            retry=retry_if_exception_type(Retryable),
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(multiplier=0.1, max=5),
            sleep=self.clock.sleep,
            before_sleep=lambda state: LOG.info(
                "assignment of broker %d sent again: %s", broker, _error(state.outcome)
            ),
            reraise=True,
        )
        retrying(attempt)
        return tries - 1

    def _pace(self, before: World, pending: Assignments) -> World:
        """Wait until the records are in the metadata and dual write has passed them."""
        assert isinstance(before.kraft, KraftView)
        wanted = {(topic, partition): directory for directory, rows in pending.items() for topic, partition in rows}
        began = self.clock.monotonic()
        while True:
            world = self._look()
            if not isinstance(world.kraft, Unknown) and not isinstance(world.zookeeper, Unknown):
                znode = world.zookeeper.migration
                passed = isinstance(znode, MigrationZnode) and znode.offset > before.kraft.offset
                if passed and not _left(world.ledger, wanted):
                    return world
            if self.clock.monotonic() - began > PACE_SECONDS:
                raise DriveStopped(f"dual write did not pass the last assignments within {PACE_SECONDS:.0f} s")
            self.clock.sleep(0.2)


def _error(outcome: object) -> object:
    exception: Callable[[], object] | None = getattr(outcome, "exception", None)
    return exception() if exception is not None else outcome


def _left(ledger: Ledger | Unknown, wanted: Mapping[tuple[str, int], str]) -> bool:
    """Is one of the rows that were sent still without its directory in the metadata?"""
    if isinstance(ledger, Unknown):
        return True
    return any(
        (row.topic_id, row.partition) in wanted
        and row.state in SENDABLE
        and wanted[row.topic_id, row.partition] == row.on_disk
        for row in ledger.rows
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
    """Requests of at most `most` replicas, in order."""
    current: dict[str, tuple[tuple[str, int], ...]] = {}
    room = most
    for directory, rows in assignments.items():
        start = 0
        while start < len(rows):
            part = rows[start : start + room]
            current[directory] = part
            start, room = start + len(part), room - len(part)
            if room == 0:
                yield current
                current, room = {}, most
    if current:
        yield current


def _proven(world: World, broker: NodeId, pending: Assignments) -> Assignments:
    """What of the request this very look proves and misses.

    DriveStopped for a directory that the broker has not registered: Kafka would take it without an error.
    """
    foreign = set(pending) - {str(directory) for directory in _registration(world, broker).log_dirs}
    if foreign:
        raise DriveStopped(f"broker {int(broker)} has not registered directories {', '.join(sorted(foreign))}")
    wanted = to_send(world.ledger, broker)
    kept = {
        directory: tuple(row for row in rows if row in set(wanted.get(directory, ())))
        for directory, rows in pending.items()
    }
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


def _still(world: World, leader: int) -> None:
    """Stop where the leader changed or a partition is not whole: something else is going on."""
    if _leader(world) != leader:
        raise DriveStopped(
            f"the active controller changed from {leader} to {_leader(world)} while directories were sent"
        )
    assert not isinstance(world.live, Unknown)
    for broker, answer in world.live.metadata.items():
        if isinstance(answer, Unknown):
            raise DriveStopped(f"whether every ISR is full is unknown to broker {int(broker)}: {answer.reason}")
        if answer.unhealthy:
            entry = answer.unhealthy[0]
            raise DriveStopped(
                f"{entry.topic}-{entry.partition} lacks a replica in its ISR, as broker {int(broker)} sees it"
            )
