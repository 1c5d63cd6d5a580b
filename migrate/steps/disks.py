"""Disks at a roll: moves between directories that hold it, and what is said where disks are not as they should be.

A broker that did not start, or registered fewer directories than its file names, says nothing of the cause.  Offsets
tell whether directories stood in the log before a broker's KRaft registration: the look before its stop stands at one,
and the record of its registration has its own (a registration's broker epoch is that record's offset).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from migrate.model.disk_trouble import sick_directories
from migrate.model.ids import NodeId
from migrate.model.ledger import ReplicaState
from migrate.model.loader import moves, told
from migrate.model.outcome import NotYet, Readiness, Ready, Refused, Unknown
from migrate.model.ports import Effects
from migrate.model.stage import ZkMigrationState
from migrate.model.views import Stopped
from migrate.model.world import World
from migrate.steps import churn
from migrate.steps.gates import requires

LOOK = "`status` says what that does and what to do"


def with_sick_disks(world: World, broker: int | None, found: Readiness) -> Readiness:
    """The same answer: a refusal names the broker's sick directories, a wait those of all brokers as its next step.

    Without a broker the proof is of the whole cluster, and a refusal names all of them, too.  A disk that dies under
    another broker keeps the ISRs from filling: that does not come by itself.
    """
    if not isinstance(found, Refused | NotYet):
        return found
    sick = [
        f"{one.node} {one.directory.path}: {one.said}"
        for one in sick_directories(world)
        if broker in (None, one.broker) or isinstance(found, NotYet)
    ]
    if not sick:
        return found
    words = f"{'; '.join(sick)}: {LOOK}"
    if isinstance(found, NotYet):
        return replace(found, next_step=words)
    return replace(found, reason=f"{found.reason}; {words}")


CODE = "B-DIR-12"
HOW_TO_END = "`kafka-reassign-partitions --verify` shows them; to end one, move the replica to its current directory"


def _said(broker: int | None = None) -> str:
    return "no replica is moved between log directories" + ("" if broker is None else f" of broker {broker}")


@requires(_said)
def ended(world: World, broker: int | None = None) -> Readiness:
    """No move goes on, of any broker or of that one; what a broker that is down left of one does not end by itself."""
    found = moves(world.disks)
    if isinstance(found, Unknown):
        return found
    if broker is not None:
        found = tuple(move for move in found if move.broker == broker)
        if not isinstance(world.services, Unknown) and isinstance(world.services.get(NodeId(broker)), Stopped):
            return none_half_done(world, broker)
    if not found:
        return Ready()
    if isinstance(world.playbook, Unknown) or not world.playbook.wait_for_moves:
        return Refused(f"{told(found)}: wait until they are done, or let the playbook wait (moves: wait)", (CODE,))
    return NotYet(
        f"the end of {told(found)}",
        "whoever started them, and the brokers' move threads (replica.alter.log.dirs.io.max.bytes.per.second)",
        f"nothing: a finished move swaps the copies; {HOW_TO_END}",
        progress=f"{len(found)} {sum(move.done for move in found)}",
    )


def none_half_done(world: World, broker: int) -> Readiness:
    """A stopped broker that is to start in KRaft mode has no future copy: it could be made the current one, unfinished.

    A move that began between the last look and the stop; nobody goes on with it while the broker is down.
    """
    found = moves(world.disks)
    if isinstance(found, Unknown):
        return found
    here = [move for move in found if move.broker == broker]
    if not here:
        return Ready()
    folders = ", ".join(f"{move.target}/{move.folder}" for move in here[:3])
    finalized = not isinstance(world.kraft, Unknown) and world.kraft.migration_state is ZkMigrationState.POST_MIGRATION
    other = "" if finalized else ", or start it with the previous file and let the move end"
    return Refused(
        f"broker {broker} was stopped in the middle of {told(here)}: delete the unfinished copy ({folders}) while it "
        f"is down{other}; then run the same command again",
        (CODE,),
    )


NOTE = re.compile(r"(\d+) of (\d+) at metadata offset (\d+)")


@dataclass(frozen=True, slots=True)
class Before:
    """What the last look before the stop saw: `assigned` of `replicas` had their directory, at that offset."""

    assigned: int
    replicas: int
    offset: int


def order_key(broker: int) -> str:
    return f"assigned-before:{broker}"


def note_order(broker: int, world: World, effects: Effects, *, driven: bool) -> None:
    """Keep what the metadata says now, while the broker's registration is still that of its ZooKeeper life.

    Under policy drive the gate lets topics pass that clients are creating or deleting: they are not counted.
    """
    if isinstance(world.ledger, Unknown) or isinstance(world.kraft, Unknown):
        return
    registration = world.kraft.brokers.get(NodeId(broker))
    if registration is None or not registration.migrating:
        return  # it is in KRaft mode already: what it reported itself is no proof of an order
    rows = [row for row in world.ledger.of(broker) if not (driven and churn.comes_and_goes(world, row))]
    assigned = sum(row.state is ReplicaState.VERIFIED for row in rows)
    effects.note(order_key(broker), f"{assigned} of {len(rows)} at metadata offset {world.ledger.offset}")


def noted_order(broker: int, world: World) -> Before | None:
    found = NOTE.fullmatch(world.facts.get(order_key(broker), ""))
    return None if found is None else Before(*map(int, found.groups()))


def order_kept(broker: int, world: World, *, driven: bool) -> Readiness:
    """The broker registered behind what was noted; under policy drive all its directories stood there by then."""
    before = noted_order(broker, world)
    if before is None:
        return Ready()
    if isinstance(world.kraft, Unknown):
        return world.kraft
    registration = world.kraft.brokers.get(NodeId(broker))
    if registration is not None and registration.epoch <= before.offset:
        return Refused(
            f"broker {broker} registered in KRaft mode at offset {registration.epoch}, before its directories were "
            f"seen in the log (offset {before.offset})"
        )
    if driven and before.assigned < before.replicas:
        missing = before.replicas - before.assigned
        return Refused(f"{missing} of {before.replicas} directories of broker {broker} were not in the log before it")
    return Ready()


def order_evidence(broker: int, world: World) -> tuple[str, ...]:
    """One line: what was there before, and what came after it: by the broker's own reports, unless others sent it."""
    before = noted_order(broker, world)
    if before is None or isinstance(world.kraft, Unknown) or isinstance(world.ledger, Unknown):
        return ()
    registration = world.kraft.brokers.get(NodeId(broker))
    if registration is None:
        return ()
    left = len(world.ledger.of(broker)) - before.assigned
    rest = "none was left" if left <= 0 else f"the other {left} came after it"
    return (
        (
            f"{before.assigned} of {before.replicas} directories of broker {broker} were in the log at offset "
            f"{before.offset}, before its KRaft registration at offset {registration.epoch}; {rest}"
        ),
    )
